package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// FuzzRequest sends any target through the whole chain: nothing but a slide
// that is there may be read, and nothing fails as an internal error.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{
		"/", "/view/a.svs", "/slides?folder=x&limit=3", "/slides/a.svs", tileURL + "?tile=254&overlap=1&v=1",
		"/slides/b.svs/region?x=0&y=0&width=4&height=4&mpp=.5&origin=bounds", "/slides/a.svs/levels/0/tiles/0/0?format=raw",
		"/slides/a.svs/associated/label", "/slides/..%2f..%2fetc/passwd", "/assets/../x", "/a/b?token=x", "/slides/a.svs/thumbnail?size=5&background=ff00ff",
		"//evil.example/%2e%2e", "/deepzoom/a.svs.dzi?tile=1000000&overlap=1000000",
	} {
		f.Add(target, "localhost", "image/webp,*/*;q=0.1", false)
		f.Add(target, "[::1]:80", "", true)
	}
	s := newSite(f, nil, func(o *Options) { o.CORS, o.MaxPixels = []string{"*"}, 1<<20 })
	s.reader.quiet = true
	f.Fuzz(func(t *testing.T, target, host, accept string, head bool) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Scheme != "" { // net/http answers 400 itself
			return
		}
		r := &http.Request{Method: http.MethodGet, URL: u, Host: host, RequestURI: target, RemoteAddr: "127.0.0.1:1",
			Header: http.Header{"Accept": {accept}, "Origin": {host}}}
		if head {
			r.Method = http.MethodHead
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code < 200 || w.Code >= 500 {
			t.Fatalf("%q: %d %s", target, w.Code, w.Body)
		}
		if head && w.Body.Len() != 0 && w.Code != http.StatusOK {
			t.Fatalf("HEAD %q: %d with a body", target, w.Code)
		}
	})
}

func FuzzZoomQuery(f *testing.F) {
	f.Add("tile=254&overlap=1&v=abc&_=123")
	f.Add("format=webp&background=%23ffffff&origin=bounds&c=1")
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseZoomQuery(raw)
		if err == nil && (q.tileSeen && q.tile < 1 || q.overlap < 0 || q.C < 0 || q.Quality < 0 || q.Quality > 100) {
			t.Fatalf("%q: %+v", raw, q)
		}
	})
}
