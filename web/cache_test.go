package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome/tiles"
)

const tileURL = "/deepzoom/a.svs_files/10/0_0.jpg"

func TestNotModified(t *testing.T) {
	s := newSite(t, nil, nil)
	s.list(t, "")
	for _, target := range []string{
		tileURL, "/deepzoom/a.svs.dzi", "/slides/a.svs", "/slides", "/", "/slides/a.svs/levels/0/tiles/0/0",
		"/slides/a.svs/region?x=0&y=0&width=1&height=1", "/slides/a.svs/thumbnail", "/slides/a.svs/associated/thumbnail", "/openapi.json",
	} {
		etag := s.get(target).Header().Get("Etag")
		if etag == "" {
			t.Errorf("%s: no ETag", target)
			continue
		}
		n := s.reader.count()
		for _, given := range []string{etag, "W/" + etag, `"x", ` + etag} {
			for _, method := range []string{"GET", "HEAD"} {
				w := s.do(method, target, "If-None-Match: "+given)
				want(t, target, w, http.StatusNotModified, "")
				if w.Body.Len() != 0 || w.Header().Get("Etag") != etag || w.Header().Get("Cache-Control") == "" {
					t.Errorf("%s: 304 with %d bytes, headers %v", target, w.Body.Len(), w.Header())
				}
			}
		}
		if s.reader.count() != n {
			t.Errorf("%s: a 304 asked the reader", target)
		}
		want(t, target, s.get(target, `If-None-Match: "other"`), 200, "")
		want(t, target, s.get(target, `If-None-Match: *`), 200, "")
	}
}

func TestETagsTellQueriesApart(t *testing.T) {
	s := newSite(t, nil, nil)
	seen := map[string]string{}
	for _, target := range []string{
		tileURL, tileURL + "?tile=254", tileURL + "?tile=254&overlap=1", tileURL + "?quality=50", tileURL + "?background=000000",
		"/deepzoom/a.svs_files/10/1_0.jpg", "/deepzoom/a.svs_files/10/0_1.jpg", "/deepzoom/a.svs_files/9/0_0.jpg",
		"/deepzoom/a.svs_files/10/0_0.png", "/deepzoom/b.svs_files/10/0_0.jpg", tileURL + "?icc=embed",
		"/slides/a.svs/levels/0/tiles/0/0", "/slides/a.svs/levels/0/tiles/0/0?format=jpeg", "/slides/a.svs/thumbnail", "/slides/a.svs/thumbnail?size=1",
		"/slides/a.svs/region?x=0&y=0&width=1&height=11", "/slides/a.svs/region?x=0&y=0&width=11&height=1",
		"/slides/a.svs/region?x=0&y=0&width=1&height=11&mpp=1", "/slides/a.svs/region?x=0&y=0&width=1&height=11&downsample=1",
		"/slides/a.svs/region?x=0&y=0&width=1&height=11&origin=bounds", "/slides/a.svs/region?x=0&y=0&width=1&height=11&mpp=1&mpp_tolerance=.1",
	} {
		etag := s.get(target).Header().Get("Etag")
		if other, ok := seen[etag]; ok || etag == "" {
			t.Errorf("%s and %s share %s", target, other, etag)
		}
		seen[etag] = target
	}
	if a, b := s.get(tileURL), s.get(tileURL+"?v=1&c=0&_=123"); a.Header().Get("Etag") != b.Header().Get("Etag") {
		t.Error("parameters that change no pixel change the ETag")
	}
}

// Two replicas with copies of a file agree, also when only inodes differ; the
// content is read once.
func TestETagEqualOnReplicas(t *testing.T) {
	a, b := newSite(t, nil, nil), newSite(t, nil, nil)
	when := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, s := range []*site{a, b} {
		if err := os.Chtimes(filepath.Join(s.dir, "a.svs"), when, when); err != nil {
			t.Fatal(err)
		}
	}
	x, y := a.get(tileURL).Header().Get("Etag"), b.get(tileURL).Header().Get("Etag")
	if x == "" || x != y {
		t.Errorf("ETags %s and %s", x, y)
	}
	for range 5 {
		a.get(tileURL)
	}
	if n := a.ids.Load(); n != 1 {
		t.Errorf("content id read %d times", n)
	}
	c := newSite(t, nil, func(o *Options) { o.EncoderVersion = "other" })
	if err := os.Chtimes(filepath.Join(c.dir, "a.svs"), when, when); err != nil {
		t.Fatal(err)
	}
	if z := c.get(tileURL).Header().Get("Etag"); z == x {
		t.Error("another encoder has the same ETag")
	}
}

func TestCacheControl(t *testing.T) {
	s := newSite(t, nil, nil)
	dzi := s.get("/slides/a.svs").Body.String()
	_, after, _ := strings.Cut(dzi, "?v=")
	gen, _, _ := strings.Cut(after, `"`)
	public := newSite(t, nil, func(o *Options) { o.PublicCache = true })
	token := newSite(t, nil, func(o *Options) { o.PublicCache, o.Token = true, "secret" })
	for _, c := range []struct {
		s            *site
		target, want string
	}{
		{s, tileURL, "private, no-cache"}, {s, tileURL + "?v=old", "private, no-cache"}, {s, tileURL + "?v=", "private, no-cache"},
		{s, tileURL + "?v=" + gen, "private, max-age=31536000, immutable"},
		{s, "/slides/a.svs/thumbnail?v=" + gen, "private, max-age=31536000, immutable"},
		{s, "/deepzoom/a.svs.dzi?v=" + gen, "private, max-age=31536000, immutable"},
		{s, "/slides/a.svs", "private, no-cache"},
		{public, tileURL, "public, no-cache"}, {token, tileURL + "?token=secret", "private, no-cache"},
	} {
		if got := c.s.get(c.target).Header().Get("Cache-Control"); got != c.want {
			t.Errorf("%s: %q, want %q", c.target, got, c.want)
		}
	}
	s.reader.change = func(a *tiles.Answer) { a.Preview = true }
	w := s.get(tileURL + "?v=" + gen)
	if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Etag") != "" {
		t.Errorf("preview: %v", w.Header())
	}
}

// Trap H3: a replaced file has new pixels, a new ETag and a new generation
// within the library's interval, and the old address is no longer immutable.
func TestH3Replaced(t *testing.T) {
	s := newSite(t, nil, nil)
	etags := map[string]bool{s.get(tileURL).Header().Get("Etag"): true}
	for i, text := range []string{"slide other and longer", "slide OTHER and longer"} {
		s.put(t, "a.svs", text)
		deadline := time.Now().Add(time.Minute)
		for s.get(tileURL); s.reader.last(t).Slide != text; s.get(tileURL) {
			if time.Now().After(deadline) {
				t.Fatalf("replacement %d not seen: %q", i, s.reader.last(t).Slide)
			}
			time.Sleep(5 * time.Millisecond)
		}
		w := s.get(tileURL)
		if etag := w.Header().Get("Etag"); etags[etag] {
			t.Errorf("replacement %d has an old ETag", i)
		} else {
			etags[etag] = true
		}
	}
}

// Trap F8: no crossed tiles.
func TestF8NoCrossedSlides(t *testing.T) {
	s := newSite(t, nil, nil)
	s.reader.quiet = true
	const each = 2500
	var wg sync.WaitGroup
	for i := range 4 {
		name := [2]string{"a.svs", "b.svs"}[i%2]
		wg.Go(func() {
			for n := range each {
				w := s.get(fmt.Sprintf("/deepzoom/%s_files/10/%d_%d.jpg", name, n%5, n%3))
				if w.Code != 200 || !strings.Contains(w.Body.String(), `"Slide":"slide `+name+`"`) {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A client that leaves gets nothing, and its 499 is only logged.
func TestClientGone(t *testing.T) {
	s := newSite(t, nil, nil)
	s.reader.block = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", tileURL, nil)
	r.Host = "localhost"
	s.get(tileURLInfo) // learns the tag, so that only the reader sees the end
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Body.Len() != 0 {
		t.Errorf("body %s", w.Body)
	}
	if !strings.Contains(s.log.String(), "status=499") {
		t.Errorf("log %s", s.log)
	}
	s.reader.block = nil
	want(t, "after", s.get(tileURL), 200, "")
}

const tileURLInfo = "/deepzoom/a.svs.dzi"
