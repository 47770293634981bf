package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"net/http"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

func TestRoutesAnswer(t *testing.T) {
	s := newSite(t, nil, nil)
	s.list(t, "")
	for target, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/view/a.svs": "text/html; charset=utf-8", "/status": "text/html; charset=utf-8",
		"/slides": "application/json", "/slides/a.svs": "application/json", "/openapi.json": "application/json",
		"/healthz": "application/json", "/readyz": "application/json",
		"/deepzoom/a.svs.dzi": "application/xml", "/deepzoom/a.svs_files/10/0_0.jpg": "image/jpeg",
		"/deepzoom/a.svs_files/10/0_0.jpeg": "image/jpeg", "/deepzoom/a.svs_files/10/0_0.png": "image/png",
		"/deepzoom/a.svs_files/10/0_0.webp":                                "image/webp",
		"/slides/a.svs/levels/0/tiles/0/0":                                 "image/jpeg",
		"/slides/a.svs/levels/0/tiles/0/0?format=png":                      "image/png",
		"/slides/a.svs/region?x=0&y=0&width=9&height=9":                    "image/jpeg",
		"/slides/a.svs/region?x=0&y=0&width=9&height=9&format=npy":         "application/x-npy",
		"/slides/a.svs/region?x=0&y=0&width=9&height=9&level=1&format=raw": "application/octet-stream",
		"/slides/a.svs/associated/thumbnail":                               "image/jpeg",
		"/slides/a.svs/thumbnail?size=99&format=webp":                      "image/webp",
		"/metrics": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
	} {
		w := s.get(target)
		want(t, target, w, http.StatusOK, "")
		if got := w.Header().Get("Content-Type"); got != kind {
			t.Errorf("%s: type %q, want %q", target, got, kind)
		}
		h := s.do(http.MethodHead, target)
		want(t, "HEAD "+target, h, http.StatusOK, "")
		if target == "/metrics" {
			continue
		}
		if h.Body.Len() != 0 || h.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) || h.Header().Get("Etag") != w.Header().Get("Etag") {
			t.Errorf("HEAD %s: %d bytes, headers %v; GET had %d bytes", target, h.Body.Len(), h.Header(), w.Body.Len())
		}
	}
}

// Traps F4 and H10: stable statuses, and each failure is followed by a good
// answer of the same slide.
func TestH10Statuses(t *testing.T) {
	s := newSite(t, nil, nil)
	s.list(t, "")
	s.put(t, "unsupported.svs", "unsupported")
	s.put(t, "corrupt.svs", "corrupt")
	const rect = "x=0&y=0&width=9&height=9"
	for _, c := range []struct {
		target string
		status int
		code   string
	}{
		{"/nothing", 404, "not_found"}, {"/deepzoom", 404, "not_found"}, {"/deepzoom/", 404, "not_found"},
		{"/slides/", 404, "not_found"}, {"/assets/none.js", 404, "not_found"}, {"/assets/../web.go", 404, "not_found"},
		{"/slides/none.svs", 404, "not_found"}, {"/deepzoom/none.svs.dzi", 404, "not_found"},
		{"/slides/unsupported.svs", 415, "unsupported"}, {"/deepzoom/corrupt.svs.dzi", 422, "corrupt"},
		{"/deepzoom/a.svs_files/11/0_0.jpg", 404, "not_found"}, {"/deepzoom/a.svs_files/-1/0_0.jpg", 404, "not_found"},
		{"/deepzoom/a.svs_files/10/5_0.jpg", 404, "not_found"}, {"/deepzoom/a.svs_files/10/0_3.jpg", 404, "not_found"},
		{"/deepzoom/a.svs_files/10/-1_0.jpg", 404, "not_found"}, {"/deepzoom/a.svs_files/x/0_0.jpg", 400, "malformed"},
		{"/deepzoom/a.svs_files/10/0_x.jpg", 400, "malformed"}, {"/deepzoom/a.svs_files/10/0_0.gif", 415, "unsupported"},
		{"/deepzoom/a.svs.dzi?tile=254&tile=255", 400, "malformed"}, {"/deepzoom/a.svs_files/10/0_0.jpg?x=1&x=2", 200, ""},
		{"/slides/a.svs/levels/0/tiles/0/0?c=0&c=0", 400, "malformed"}, {"/slides/a.svs/thumbnail?size=9&size=9", 400, "malformed"},
		{"/slides?limit=1&limit=2", 400, "malformed"},
		{"/deepzoom/a.svs.dzi?tile=0", 400, "malformed"}, {"/deepzoom/a.svs.dzi?overlap=-1", 400, "malformed"},
		{"/slides/a.svs/levels/0/tiles/0/0?origin=bounds", 400, "malformed"},
		{"/slides/a.svs/associated/thumbnail?origin=bounds", 400, "malformed"}, {"/slides/a.svs/thumbnail?mpp_tolerance=x", 400, "malformed"},
		{"/deepzoom/a.svs.dzi?format=raw", 415, "unsupported"},
		{"/deepzoom/a.svs.dzi?tile=9999999", 413, "over_limit"}, {"/deepzoom/a.svs_files/10/0_0.jpg?c=1", 404, "not_found"},
		{"/slides/a.svs/levels/2/tiles/0/0", 404, "not_found"}, {"/slides/a.svs/levels/0/tiles/5/0", 404, "not_found"},
		{"/slides/a.svs/levels/0/tiles/0/3", 404, "not_found"}, {"/slides/a.svs/levels/0/tiles/x/0", 400, "malformed"},
		{"/slides/a.svs/levels/0/tiles/0/0?z=1", 404, "not_found"}, {"/slides/a.svs/levels/0/tiles/0/0?what=1", 400, "malformed"},
		{"/slides/a.svs/region", 400, "malformed"}, {"/slides/a.svs/region?" + rect + "&level=2", 404, "not_found"},
		{"/slides/a.svs/region?x=0&y=0&width=16000&height=16000", 413, "over_limit"},
		{"/slides/a.svs/region?" + rect + "&format=tiff", 415, "unsupported"}, {"/slides/a.svs/region?" + rect + "&t=7", 404, "not_found"},
		{"/slides/a.svs/associated/none", 404, "not_found"}, {"/slides/a.svs/associated/label", 403, "forbidden"},
		{"/slides/a.svs/associated/macro", 403, "forbidden"}, {"/slides/a.svs/thumbnail?size=0", 400, "malformed"},
		{"/slides/a.svs/thumbnail?size=99999", 400, "malformed"}, {"/slides?limit=0", 400, "malformed"},
		{"/slides?offset=-1", 400, "malformed"}, {"/slides?recursive=maybe", 400, "malformed"}, {"/slides?x=1", 400, "malformed"},
		{"/slides?folder=none", 404, "not_found"},
		{"/slides/a.svs?" + strings.Repeat("x", 9000), 414, "url_too_long"},
	} {
		want(t, c.target, s.get(c.target), c.status, c.code)
		want(t, "after "+c.target, s.get("/deepzoom/a.svs_files/10/0_0.jpg"), 200, "")
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "BREW"} {
		w := s.do(method, "/slides/a.svs")
		want(t, method, w, 405, "method_not_allowed")
		if w.Header().Get("Allow") == "" {
			t.Errorf("%s: no Allow", method)
		}
	}
}

func TestReaderErrors(t *testing.T) {
	s := newSite(t, nil, nil)
	for _, c := range []struct {
		err     error
		status  int
		code    string
		message string
	}{
		{fmt.Errorf("level 0: tile 1,2: %w", microtome.ErrCorrupt), 422, "corrupt", "level 0: tile 1,2: corrupt"},
		{fmt.Errorf("tag 259: %w", &microtome.Unsupported{Tag: "Compression", Value: "200"}), 415, "unsupported", "tag 259: unsupported Compression 200"},
		{fmt.Errorf("no mpp: %w", microtome.ErrUnanswerable), 422, "unanswerable", "no mpp: the slide cannot answer that"},
		{fmt.Errorf("x: %w", microtome.ErrLimit), 413, "over_limit", "x: over a limit"},
		{fmt.Errorf("read /data/secret/a.svs: %w", microtome.ErrSource), 502, "source_failed", "source failed"},
		{fmt.Errorf("read /data/secret/a.svs: %w", microtome.ErrCorrupt), 422, "corrupt", "corrupt"},
		{fmt.Errorf("slide a.svs: %w", microtome.ErrNotFound), 404, "not_found", "not found"},
		{microtome.ErrBusy, 503, "busy", "busy"},
		{context.DeadlineExceeded, 503, "busy", "took too long"},
		{context.Canceled, 503, "busy", "the work was given up; ask again"},
		{errors.New("surprise in /data/secret"), 500, "internal", "internal error"},
	} {
		s.reader.fail = c.err
		w := s.get("/deepzoom/a.svs_files/10/0_0.jpg")
		want(t, c.err.Error(), w, c.status, c.code)
		var e struct{ Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Message != c.message {
			t.Errorf("%v: message %q, want %q", c.err, e.Message, c.message)
		}
		if (w.Header().Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%v: Retry-After %q", c.err, w.Header().Get("Retry-After"))
		}
		want(t, "after "+c.err.Error(), s.get("/deepzoom/a.svs_files/10/0_0.jpg"), 200, "")
	}
}

func TestPanicIsInternalError(t *testing.T) {
	s := newSite(t, nil, nil)
	s.reader.panics = true
	w := s.get("/deepzoom/a.svs_files/10/0_0.jpg")
	want(t, "panic", w, 500, "internal")
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("body %s", w.Body)
	}
	s.reader.panics = false
	want(t, "after", s.get("/deepzoom/a.svs_files/10/0_0.jpg"), 200, "")
}

// What the reader is asked for.
func TestReaderIsAskedFor(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.OpenAssociated = true })
	green := &microtome.RGB{G: 255}
	for _, c := range []struct {
		target string
		want   call
	}{
		{"/deepzoom/a.svs_files/10/1_2.png", call{Op: "view", View: tiles.View{Downsample: 1, Width: 1000, Height: 700, Rect: image.Rect(240, 480, 480, 700)},
			Options: tiles.PixelOptions{Format: microtome.FormatPNG}}},
		{"/deepzoom/a.svs_files/9/0_0.jpg?tile=254&overlap=1&background=00ff00", call{Op: "view",
			View: tiles.View{Downsample: 2, Width: 500, Height: 350, Rect: image.Rect(0, 0, 255, 255)}, Options: tiles.PixelOptions{Background: green}}},
		{"/slides/a.svs/levels/1/tiles/1/0", call{Op: "stored", Level: 1, Col: 1}},
		{"/slides/a.svs/levels/1/tiles/1/0?format=jpeg", call{Op: "pixels", Level: 1, Col: 1}},
		{"/slides/a.svs/levels/1/tiles/1/0?format=raw", call{Op: "pixels", Level: 1, Col: 1, Options: tiles.PixelOptions{Format: microtome.FormatRaw}}},
		{"/slides/a.svs/region?x=-7&y=8&width=9&height=10&mpp=1.5&mpp_tolerance=0.1&icc=embed&quality=91", call{Op: "region",
			Region:  tiles.Region{L0X: -7, L0Y: 8, Width: 9, Height: 10, Scale: tiles.Scale{Kind: tiles.ByMPP, Value: 1.5, Tolerance: .1}},
			Options: tiles.PixelOptions{ICC: "embed", Quality: 91}}},
		{"/slides/a.svs/region?x=1&y=2&width=9&height=10&level=1&origin=bounds", call{Op: "region",
			Region: tiles.Region{L0X: 101, L0Y: 52, Width: 9, Height: 10, Scale: tiles.Scale{Kind: tiles.ByLevel, Value: 1}}}},
		{"/slides/a.svs/levels/1/tiles/1/0?origin=slide&mpp_tolerance=.1&icc=none&image=0", call{Op: "stored", Level: 1, Col: 1}},
		{"/deepzoom/a.svs_files/9/1_1.jpg?origin=bounds&tile=254&overlap=1", call{Op: "region", // of 800x600 at 100,50: 400x300
			Region: tiles.Region{L0X: 100 + 2*253, L0Y: 50 + 2*253, Width: 147, Height: 47, Scale: tiles.Scale{Kind: tiles.ByDownsample, Value: 2}}}},
		{"/slides/a.svs/thumbnail?origin=bounds&size=200", call{Op: "region",
			Region: tiles.Region{L0X: 100, L0Y: 50, Width: 200, Height: 150, Scale: tiles.Scale{Kind: tiles.ByDownsample, Value: 4}}}},
		{"/slides/a.svs/associated/label?format=png", call{Op: "associated", Name: "label", Options: tiles.PixelOptions{Format: microtome.FormatPNG}}},
		{"/slides/a.svs/thumbnail", call{Op: "thumbnail", Size: 256}},
		{"/slides/a.svs/thumbnail?size=33", call{Op: "thumbnail", Size: 33}},
	} {
		want(t, c.target, s.get(c.target), 200, "")
		got := s.reader.last(t)
		if got.Options.Background != nil && c.want.Options.Background != nil && *got.Options.Background == *c.want.Options.Background {
			got.Options.Background = c.want.Options.Background
		}
		c.want.Slide = got.Slide
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.target, got, c.want)
		}
	}
}

func TestDescriptors(t *testing.T) {
	s := newSite(t, nil, nil)
	for query, want := range map[string]string{
		"":                                       `Format="jpeg" Overlap="0" TileSize="240"><Size Width="1000" Height="700"/>`,
		"?tile=254&overlap=1&format=jpg&v=x&_=1": `Format="jpeg" Overlap="1" TileSize="254"><Size Width="1000" Height="700"/>`,
		"?origin=bounds&format=png":              `Format="png" Overlap="0" TileSize="240"><Size Width="800" Height="600"/>`,
	} {
		if body := s.get("/deepzoom/a.svs.dzi" + query).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: %s", query, body)
		}
	}
}

func TestAccept(t *testing.T) {
	s := newSite(t, nil, nil)
	const tile = "/slides/a.svs/levels/0/tiles/0/0"
	w := s.get(tile, "Accept: image/avif,image/webp,*/*;q=0.8")
	if s.reader.last(t).Op != "stored" || w.Header().Get("Vary") != "Accept" {
		t.Errorf("a browser got %+v, Vary %q", s.reader.last(t), w.Header().Get("Vary"))
	}
	jpeg := w.Header().Get("Etag")
	w = s.get(tile, "Accept: image/png")
	if got := s.reader.last(t); got.Op != "pixels" || got.Options.Format != microtome.FormatPNG || w.Header().Get("Etag") == jpeg {
		t.Errorf("image/png got %+v, Etag %s", got, w.Header().Get("Etag"))
	}
	want(t, "text/html", s.get(tile, "Accept: text/html"), 415, "unsupported")
	want(t, "format wins", s.get(tile+"?format=png", "Accept: text/html"), 200, "")
}

func TestPixelHeaders(t *testing.T) {
	s := newSite(t, nil, nil)
	const region = "/slides/a.svs/region?x=0&y=0&width=3&height=2&format=raw"
	w := s.get(region)
	for name, want := range map[string]string{
		"Microtome-Tile": "rendered; engine=cpu; cache=miss", "Microtome-Scale": "level=1; downsample=4; mpp-x=2; mpp-y=2",
		"Microtome-Shape": "2,3,3",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	s.reader.change = func(a *tiles.Answer) { a.Made, a.Engine, a.CacheHit = tiles.Empty, "none", true }
	if got := s.get(region).Header().Get("Microtome-Tile"); got != "empty; engine=none; cache=hit" {
		t.Errorf("empty: %q", got)
	}
	w = s.get("/slides/a.svs/levels/0/tiles/0/0")
	if w.Header().Get("Microtome-Tile") == "" || w.Header().Get("Microtome-Scale") != "" {
		t.Errorf("tile headers %v", w.Header())
	}
	s.reader.change = nil
	if got := s.get("/slides/a.svs/levels/0/tiles/0/0").Header().Get("Microtome-Tile"); got != "stored; engine=none; cache=miss" {
		t.Errorf("stored: %q", got)
	}
}
