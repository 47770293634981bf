package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/png"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
)

// Patches answers with pixels of x's value, and fails where x is above 1000.
func (f *fakeReader) Patches(ctx context.Context, items []tiles.Patch, o tiles.PatchOptions) ([]tiles.PatchResult, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail; err != nil {
		f.fail = nil
		return nil, 0, err
	}
	ch := max(o.Channels, 1)
	out := make([]tiles.PatchResult, len(items))
	for i, it := range items {
		f.calls = append(f.calls, call{Op: "patch", Region: it.Region})
		if i > 0 && f.block != nil {
			if err := f.block(ctx); err != nil {
				return nil, 0, err
			}
		}
		if it.Region.L0X == 1000 {
			out[i].Err = fmt.Errorf("a load: %w", context.Canceled)
			o.Each(i, ch, out[i])
			continue
		}
		if it.Region.L0X > 1000 {
			out[i].Err = fmt.Errorf("level 0: tile 9,9: %w", microtome.ErrCorrupt)
			o.Each(i, ch, out[i])
			continue
		}
		n := it.Region.Width * it.Region.Height * ch
		f.lent.Add(1)
		out[i].Pixels = microtome.NewHostPixels(bytes.Repeat([]byte{byte(it.Region.L0X)}, n), it.Region.Width, it.Region.Height, ch, func([]byte) { f.lent.Add(-1) })
		out[i].Answer = tiles.Answer{Made: tiles.Rendered, Level: 1, CacheHit: i == 0}
		if i > 0 && f.loses {
			out[i].Pixels.Release()
			return nil, 0, errors.New("lost")
		}
		if i > 0 { // not in order
			defer o.Each(i, ch, out[i])
			continue
		}
		o.Each(i, ch, out[i])
	}
	return nil, ch, ctx.Err()
}

func (f *fakeReader) EncodePixels(_ context.Context, px microtome.Pixels, _ microtome.Format, _ int) ([]byte, error) {
	pix, _, _ := px.Host()
	if f.panics {
		panic("encoder /secret/path")
	}
	return []byte(fmt.Sprintf("picture of %d", pix[0])), nil
}

// post asks for a batch.
func (s *site) post(body string, header ...string) *httptest.ResponseRecorder {
	return s.postTo("/patches", body, header...)
}

func (s *site) postTo(target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Host = "localhost:8080"
	r.Header.Set("Content-Type", "application/json")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const fourItems = `"width":2,"height":1,"channels":3,"items":[{"slide":"a.svs","x":7,"y":0},{"slide":"none.svs","x":0,"y":0},{"slide":"b.svs","x":2000,"y":0},{"slide":"b.svs","x":9,"y":0}]`

func TestPatchesRaw(t *testing.T) {
	s := newSite(t, nil, nil)
	w := s.post(`{"fill":200,` + fourItems + `}`)
	want(t, "raw", w, 200, "")
	b := w.Body.Bytes()
	le := binary.LittleEndian
	if len(b) != 64+4*8+4*6 || string(b[:8]) != "MTPATCH1" || le.Uint32(b[12:]) != 4 || le.Uint32(b[32:]) != 2 || w.Header().Get("Content-Length") != fmt.Sprint(len(b)) {
		t.Fatalf("%d bytes: %x", len(b), b)
	}
	for i, code := range []uint16{200, 404, 422, 200} {
		if got := le.Uint16(b[64+8*i:]); got != code {
			t.Errorf("item %d: status %d, want %d", i, got, code)
		}
	}
	if b[64+3] != 1 || b[64+24+3] != 0 || b[64+2] != 2 || b[64+8+2] != 255 || b[64+4] != 1 {
		t.Errorf("statuses %x", b[64:96])
	}
	if want := []byte{7, 7, 7, 7, 7, 7, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 9, 9, 9, 9, 9, 9}; !bytes.Equal(b[96:], want) {
		t.Errorf("pixels %v", b[96:])
	}
	if w.Header().Get("Microtome-Failed") != "2" || s.reader.lent.Load() != 0 {
		t.Errorf("%s failed, %d pixels not released", w.Header().Get("Microtome-Failed"), s.reader.lent.Load())
	}
	last := s.post(`{"fill":200,"statuses":"last",` + fourItems + `}`).Body.Bytes()
	if len(last) != len(b) || !bytes.Equal(last[64:64+24], b[96:]) || !bytes.Equal(last[64+24:], b[64:96]) || le.Uint64(last[40:]) != 64+24 || le.Uint64(last[48:]) != 64 {
		t.Errorf("statuses last: %x", last)
	}
	page := s.get("/metrics").Body.String()
	for _, line := range []string{`microtome_patch_items_total{outcome="failed"} 4`, `microtome_patch_items_total{outcome="ok"} 4`} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s", line)
		}
	}
}

func TestPatchesNPY(t *testing.T) {
	s := newSite(t, nil, nil)
	body := `{"format":"npy",` + fourItems + `}`
	w := s.post(body)
	want(t, "npy", w, 200, "")
	if got := w.Header().Get("Microtome-Failures"); got != "1:404, 2:422" || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) || w.Body.Len() != 128+24 {
		t.Errorf("failures %q, %d bytes", got, w.Body.Len())
	}
	if w.Header().Get("Microtome-Failed") != "2" {
		t.Error(w.Header())
	}
	w = s.post(body, "TE: trailers")
	if got := w.Result().Trailer.Get("Microtome-Failures"); got != "1:404, 2:422" || w.Body.Len() != 128+24 {
		t.Errorf("trailer %q, %d bytes", got, w.Body.Len())
	}
	w = s.postTo("/patches?statuses=1", body)
	want(t, "npy in parts", w, 200, "")
	parts := readParts(t, w)
	if len(parts) != 2 || len(parts[0].body) != 128+24 {
		t.Fatalf("%d parts", len(parts))
	}
	var got struct{ Statuses []itemJSON }
	if err := json.Unmarshal(parts[1].body, &got); err != nil || len(got.Statuses) != 4 {
		t.Fatalf("%s: %v", parts[1].body, err)
	}
	if st := got.Statuses; st[0].Cache != "hit" || st[3].Made != "rendered" || st[1].Code != "not_found" || st[2].Status != 422 || !strings.Contains(st[2].Message, "tile 9,9") {
		t.Errorf("%+v", st)
	}
}

// part is a part of a multipart answer.
type part struct {
	head map[string][]string
	body []byte
}

func readParts(t *testing.T, w *httptest.ResponseRecorder) (all []part) {
	t.Helper()
	kind, p, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatal(kind, err)
	}
	m := multipart.NewReader(w.Body, p["boundary"])
	for {
		next, err := m.NextPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(next)
		if err != nil || next.Header.Get("Content-Length") != fmt.Sprint(len(b)) {
			t.Fatal(next.Header, len(b), err)
		}
		all = append(all, part{next.Header, b})
	}
}

func TestPatchesAsPictures(t *testing.T) {
	s := newSite(t, nil, nil)
	w := s.post(`{"format":"png",` + fourItems + `}`)
	want(t, "png", w, 200, "")
	parts := readParts(t, w)
	if len(parts) != 4 || string(parts[0].body) != "picture of 7" || string(parts[3].body) != "picture of 9" {
		t.Fatalf("%d parts: %q", len(parts), parts)
	}
	for i, st := range []string{"200", "404", "422", "200"} {
		if parts[i].head["Microtome-Status"][0] != st {
			t.Errorf("part %d: %v", i, parts[i].head)
		}
	}
	if parts[0].head["Content-Type"][0] != "image/png" || parts[1].head["Content-Type"][0] != "application/json" {
		t.Errorf("%v, %v", parts[0].head, parts[1].head)
	}
	if s.reader.lent.Load() != 0 {
		t.Errorf("%d pixels not released", s.reader.lent.Load())
	}
}

// TestPatchesEncoderPanics: it fails the items, neither the batch nor the process.
func TestPatchesEncoderPanics(t *testing.T) {
	s := newSite(t, nil, nil)
	s.reader.panics = true
	w := s.post(`{"format":"jpeg",` + fourItems + `}`)
	want(t, "jpeg", w, 200, "")
	if strings.Contains(w.Body.String(), "secret") || w.Header().Get("Microtome-Failed") != "4" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	parts := readParts(t, w)
	if len(parts) != 4 || parts[0].head["Microtome-Status"][0] != "500" || !strings.Contains(string(parts[3].body), `"code":"internal"`) {
		t.Errorf("%q", parts)
	}
	if s.reader.lent.Load() != 0 || !strings.Contains(s.log.String(), "msg=panic") {
		t.Errorf("%d pixels not released; the log: %s", s.reader.lent.Load(), s.log)
	}
}

func TestPatchesRefused(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.MaxPixels = 1000 })
	good := `{` + fourItems + `}`
	many := `{"width":1,"height":1,"items":[`
	for i := range maxBatchSlides + 1 {
		many += fmt.Sprintf(`{"slide":"s%d","x":0,"y":0},`, i)
	}
	many = strings.TrimSuffix(many, ",") + `]}`
	for _, c := range []struct {
		target, body, header string
		status               int
		code                 string
	}{
		{"/patches", `{`, "", 400, "malformed"}, {"/patches", good, "Content-Type: text/plain", 415, "unsupported"}, {"/patches", good, "Content-Encoding: gzip", 415, "unsupported"},
		{"/patches?x=1", good, "", 400, "malformed"}, {"/patches?statuses=2", good, "", 400, "malformed"}, {"/patches?statuses=1", good, "", 400, "malformed"},
		{"/patches?format=png", good, "", 400, "malformed"}, {"/patches", strings.Repeat(" ", maxBatchBody+1), "", 413, "over_limit"},
		{"/patches", `{"slide":"a.svs","width":30,"height":30,"items":[{"x":0,"y":0},{"x":0,"y":0}]}`, "", 413, "over_limit"},
		{"/patches", many, "", 413, "over_limit"}, {"/slides", good, "", 405, "method_not_allowed"}, {"/patches/", good, "", 405, "method_not_allowed"},
		{"/patches", good, "Host: evil.example", 403, "host_not_allowed"},
	} {
		w := s.postTo(c.target, c.body, c.header)
		want(t, c.target+" "+c.body[:min(40, len(c.body))], w, c.status, c.code)
	}
	w := s.get("/patches")
	want(t, "GET", w, 405, "method_not_allowed")
	if w.Header().Get("Allow") != "POST, OPTIONS" {
		t.Errorf("Allow: %s", w.Header().Get("Allow"))
	}
	for _, method := range []string{"PUT", "DELETE", "HEAD"} {
		if w := s.do(method, "/patches"); w.Code != 405 || w.Header().Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: %d, Allow: %s", method, w.Code, w.Header().Get("Allow"))
		}
	}
	if w := s.post(`{"slide":"a.svs","width":1,"height":1,"items":[{"x":1000,"y":0}]}`); w.Code != 200 || binary.LittleEndian.Uint16(w.Body.Bytes()[64:]) != 503 {
		t.Errorf("an item whose load was given up: %d, %x", w.Code, w.Body.Bytes()[64:72])
	}
	s.reader.fail = fmt.Errorf("full: %w", microtome.ErrBusy)
	w = s.post(good)
	want(t, "busy", w, 503, "busy")
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	want(t, "then", s.post(good), 200, "")
	if s.reader.lent.Load() != 0 {
		t.Errorf("%d pixels not released", s.reader.lent.Load())
	}
}

// TestPatchesBreakOff: an answer that can't be finished is not taken for whole.
func TestPatchesBreakOff(t *testing.T) {
	s := newSite(t, nil, nil)
	for _, body := range []string{`{"statuses":"last",` + fourItems + `}`, `{"format":"npy",` + fourItems + `}`} {
		s.reader.loses = true
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("%.20s: %v", body, p)
				}
			}()
			s.post(body, "TE: trailers")
		}()
		s.reader.loses = false
		if got := s.log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "error=lost") || !strings.Contains(got, "items=4") {
			t.Errorf("the log: %s", got)
		}
		s.log.Reset()
		want(t, "then", s.post(body), 200, "")
	}
	s.reader.loses = true
	want(t, "before the head is out", s.post(`{`+fourItems+`}`), 500, "internal")
	if s.reader.lent.Load() != 0 {
		t.Errorf("%d pixels not released", s.reader.lent.Load())
	}
}

// TestPatchesLeft: when the client leaves, the work ends and all is given back.
func TestPatchesLeft(t *testing.T) {
	for _, settings := range []string{``, `"statuses":"last",`, `"format":"npy",`, `"format":"png",`} {
		s := newSite(t, nil, nil)
		ctx, leave := context.WithCancel(t.Context())
		s.reader.block = func(ctx context.Context) error {
			leave()
			<-ctx.Done()
			return ctx.Err()
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/patches", strings.NewReader(`{`+settings+fourItems+`}`))
		r.Host = "localhost:8080"
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(httptest.NewRecorder(), r)
		if s.reader.lent.Load() != 0 {
			t.Errorf("%s: %d pixels not released", settings, s.reader.lent.Load())
		}
		if room := s.Handler.(*server).room; room.Used() != 0 || room.Waiting() != 0 {
			t.Errorf("%s: room is still taken", settings)
		}
		if page := s.get("/metrics").Body.String(); !strings.Contains(page, `microtome_patch_items_total{outcome="ok"} 0`) {
			t.Errorf("%s: items are counted that nobody got", settings)
		}
	}
}

// closing counts that a slide is closed.
type closing struct {
	microtome.Slide
	open *atomic.Int64
}

func (c closing) Close() error {
	c.open.Add(-1)
	return c.Slide.Close()
}

// TestPatchesClosesSlides: a batch gives back every slide it used.
func TestPatchesClosesSlides(t *testing.T) {
	var ids, open atomic.Int64
	dir := t.TempDir()
	for _, name := range []string{"a.svs", "b.svs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("slide "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lib, err := library.New([]library.Root{{Path: dir}}, library.Options{Open: func(ctx context.Context, src microtome.Source) (microtome.Slide, error) {
		s, err := openFake(&ids)(ctx, src)
		open.Add(1)
		return closing{s, &open}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, nil, func(o *Options) { o.Library = lib })
	want(t, "ok", s.post(`{`+fourItems+`}`), 200, "")
	s.reader.fail = fmt.Errorf("full: %w", microtome.ErrBusy)
	want(t, "busy", s.post(`{`+fourItems+`}`), 503, "busy")
	if open.Load() != 2 {
		t.Fatalf("%d slides were opened", open.Load())
	}
	if err := lib.Close(); err != nil || open.Load() != 0 {
		t.Errorf("%v, %d slides stay open", err, open.Load())
	}
}

// TestPatchesFromOtherOrigins: a page of an allowed origin may send JSON.
func TestPatchesFromOtherOrigins(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.CORS, o.Token = []string{"https://viewer.example"}, "t" })
	const origin = "Origin: https://viewer.example"
	h := s.do("OPTIONS", "/patches", origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type").Header()
	if !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "Content-Type") ||
		h.Get("Allow") != "POST, OPTIONS" {
		t.Errorf("preflight: %v", h)
	}
	w := s.post(`{`+fourItems+`}`, origin, "Authorization: Bearer t")
	want(t, "post", w, 200, "")
	if w.Header().Get("Access-Control-Allow-Origin") != "https://viewer.example" || !strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Microtome-Failed") {
		t.Errorf("post: %v", w.Header())
	}
	h = s.do("OPTIONS", "/patches", "Origin: https://evil.example", "Access-Control-Request-Method: POST").Header()
	if h.Get("Access-Control-Allow-Origin") != "" || h.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("a foreign origin's preflight: %v", h)
	}
}

// TestPatchesCrossSite: a page of another site can't use the visitor's cookie.
func TestPatchesCrossSite(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.Token = "secret" })
	cookie := "Cookie: " + strings.Split(s.get("/?token=secret").Header().Get("Set-Cookie"), ";")[0]
	body := `{` + fourItems + `}`
	want(t, "no token", s.post(body), 401, "token_needed")
	want(t, "token in the address", s.postTo("/patches?token=secret", body), 200, "")
	want(t, "bearer", s.post(body, "Authorization: Bearer secret", "Origin: https://evil.example"), 200, "")
	want(t, "own page", s.post(body, cookie, "Sec-Fetch-Site: same-origin"), 200, "")
	want(t, "other site", s.post(body, cookie, "Sec-Fetch-Site: cross-site"), 403, "cross_site")
	want(t, "old browser", s.post(body, cookie, "Origin: https://evil.example"), 403, "cross_site")
}

// TestRoomForBatches: what is under way is bounded, and so is who waits.
func TestRoomForBatches(t *testing.T) {
	r := tiles.NewBudget(100, maxBatchWaiting)
	if err := r.Take(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for range maxBatchWaiting {
		go func() {
			err := r.Take(ctx, 1)
			if err == nil {
				r.Give(1)
			}
			done <- err
		}()
	}
	for r.Waiting() < maxBatchWaiting {
	}
	if err := r.Take(t.Context(), 1); explain(err, "").status != 503 {
		t.Errorf("one too many: %v", err)
	}
	r.Give(1000)
	for range maxBatchWaiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	cancel()
}

// TestRealPatches: the pixels of a batch are those of regions.
func TestRealPatches(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1), "dir/b.svs": svs(2)}, nil)
	type item struct{ slide, scale string }
	var items, regions []string
	for i, it := range []item{{"a.svs", `"level":0`}, {"dir/b.svs", `"level":1`}, {"a.svs", `"mpp":1.3`}, {"dir/b.svs", `"downsample":2.7`}, {"a.svs", `"magnification":10`}} {
		for _, at := range [][2]int{{240 * i, 240}, {101*i - 50, 77 * i}, {1400, 1050}, {5000, 0}} {
			items = append(items, fmt.Sprintf(`{"slide":%q,"x":%d,"y":%d,%s}`, it.slide, at[0], at[1], it.scale))
			regions = append(regions, fmt.Sprintf("/slides/%s/region?x=%d&y=%d&width=120&height=110&format=raw&%s", it.slide, at[0], at[1],
				strings.NewReplacer(`"`, "", ":", "=").Replace(it.scale)))
		}
	}
	body := `"width":120,"height":110,"items":[` + strings.Join(items, ",") + `]}`
	const size = 120 * 110 * 3
	w := s.post("{" + body)
	want(t, "raw", w, 200, "")
	pix := w.Body.Bytes()[64+8*len(items):]
	planar := s.post(`{"layout":"NCHW",` + body).Body.Bytes()[64+8*len(items):]
	pictures := readParts(t, s.post(`{"format":"png",`+body))
	for i, target := range regions {
		one := s.get(target)
		want(t, target, one, 200, "")
		mine := pix[i*size:][:size]
		if !bytes.Equal(mine, one.Body.Bytes()) {
			t.Errorf("%s: the batch has other pixels", target)
		}
		for p := range 120 * 110 {
			if planar[i*size+p] != mine[3*p] || planar[i*size+120*110+p] != mine[3*p+1] || planar[i*size+2*120*110+p] != mine[3*p+2] {
				t.Errorf("%s: NCHW differs at pixel %d", target, p)
				break
			}
		}
		m, _, err := image.Decode(bytes.NewReader(pictures[i].body))
		if err != nil {
			t.Fatal(err)
		}
		if r, g, b, _ := m.At(60, 50).RGBA(); byte(r>>8) != mine[3*(50*120+60)] || byte(g>>8) != mine[3*(50*120+60)+1] || byte(b>>8) != mine[3*(50*120+60)+2] {
			t.Errorf("%s: the picture differs", target)
		}
	}
}

// TestArraysAreForSamplers: whoever asks for arrays goes behind the viewers.
func TestArraysAreForSamplers(t *testing.T) {
	s := newSite(t, nil, nil)
	for format, want := range map[string]microtome.Priority{"raw": microtome.PrioritySampler, "npy": microtome.PrioritySampler,
		"png": microtome.PriorityViewer, "jpeg": microtome.PriorityViewer} {
		s.get("/slides/a.svs/region?x=0&y=0&width=9&height=9&format=" + format)
		if got := s.reader.last(t).Options.Priority; got != want {
			t.Errorf("%s: priority %d, want %d", format, got, want)
		}
	}
}
