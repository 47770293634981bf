package web

import (
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
)

// realSite serves real slides by the real packages.
type realSite struct {
	site
	reader *tiles.Reader
}

func newRealSite(t testing.TB, slides map[string]synth.Spec, change func(*Options)) *realSite {
	t.Helper()
	s := &realSite{site: site{dir: t.TempDir(), log: &bytes.Buffer{}}}
	for name, spec := range slides {
		s.put(t, name, slideFile(t, spec))
	}
	cpu := decode.NewCPU(decode.Options{})
	t.Cleanup(func() { _ = cpu.Close() })
	var err error
	s.reader, err = tiles.New(tiles.Options{Decoder: cpu, Encoder: cpu, AnswerBytes: 8 << 20, PixelBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.reader.Close() })
	lib, err := library.New([]library.Root{{Path: s.dir}}, library.Options{CheckEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lib.Close() })
	o := Options{Library: lib, Reader: s.reader, Version: "test", Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	if s.Handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return s
}

// made keeps the slides of the tests, which many share.
var made sync.Map

// slideFile is the content of a made-up slide.
func slideFile(t testing.TB, spec synth.Spec) string {
	t.Helper()
	key := fmt.Sprint(spec)
	if text, ok := made.Load(key); ok {
		return text.(string)
	}
	path := filepath.Join(t.TempDir(), "slide")
	if err := synth.WriteFile(path, spec, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	made.Store(key, string(b))
	return string(b)
}

// svs is a slide of two levels, 1500x1100 and 375x275, in tiles of 240.
func svs(seed uint32) synth.Spec {
	return synth.Spec{Width: 1500, Height: 1100, Seed: seed, Codec: synth.JPEGRGB, Quality: 60, MPP: .5, AppMag: 20}
}

// picture decodes an answer.
func picture(t *testing.T, what string, w *httptest.ResponseRecorder) image.Image {
	t.Helper()
	want(t, what, w, 200, "")
	m, _, err := image.Decode(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return m
}

func TestRealStoredTile(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	for _, c := range []struct {
		level, zlevel, col, row, w, h int
		made                          string
	}{
		{0, 11, 1, 1, 240, 240, "stored"}, {0, 11, 6, 4, 60, 140, "cropped"}, {0, 11, 6, 0, 60, 240, "cropped"}, {1, 9, 0, 0, 240, 240, "stored"},
	} {
		zoom := s.get(fmt.Sprintf("/deepzoom/a.svs_files/%d/%d_%d.jpg", c.zlevel, c.col, c.row))
		tile := s.get(fmt.Sprintf("/slides/a.svs/levels/%d/tiles/%d/%d", c.level, c.col, c.row))
		if m := picture(t, "zoom", zoom); m.Bounds().Dx() != c.w || m.Bounds().Dy() != c.h {
			t.Errorf("%+v: %v", c, m.Bounds())
		}
		if !bytes.Equal(zoom.Body.Bytes(), tile.Body.Bytes()) {
			t.Errorf("%+v: the Deep Zoom tile is not the stored one", c)
		}
		for _, w := range []*httptest.ResponseRecorder{zoom, tile} {
			if got := w.Header().Get("Microtome-Tile"); !strings.HasPrefix(got, c.made+"; engine=none") {
				t.Errorf("%+v: made %q", c, got)
			}
		}
	}
}

// Traps F1 and F3 on pixels: every tile of every level has its size.
func TestRealDeepZoomSizes(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.tif": {Format: synth.TIFF, Width: 600, Height: 509, Seed: 2}}, nil)
	for _, c := range []struct{ tile, overlap int }{{254, 1}, {256, 0}, {300, 7}} {
		w, h := 600, 509
		for level := 10; level >= 0; level-- {
			cols, rows := (w+c.tile-1)/c.tile, (h+c.tile-1)/c.tile
			for col := range cols {
				for row := range rows {
					target := fmt.Sprintf("/deepzoom/a.tif_files/%d/%d_%d.png?tile=%d&overlap=%d", level, col, row, c.tile, c.overlap)
					r := image.Rect(col*c.tile-c.overlap, row*c.tile-c.overlap, (col+1)*c.tile+c.overlap, (row+1)*c.tile+c.overlap).Intersect(image.Rect(0, 0, w, h))
					if got := picture(t, target, s.get(target)).Bounds().Size(); got != r.Size() {
						t.Errorf("%s: %v, want %v", target, got, r.Size())
					}
				}
			}
			target := fmt.Sprintf("/deepzoom/a.tif_files/%d/%d_0.png?tile=%d&overlap=%d", level, cols, c.tile, c.overlap)
			want(t, target, s.get(target), 404, "not_found")
			w, h = (w+1)/2, (h+1)/2
		}
	}
}

// A tile's pixels are the same by every route that gives them exactly.
func TestRealPixelsAgree(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	tile := s.get("/slides/a.svs/levels/0/tiles/2/3?format=raw")
	want(t, "tile", tile, 200, "")
	region := s.get("/slides/a.svs/region?x=480&y=720&width=240&height=240&format=raw")
	want(t, "region", region, 200, "")
	if !bytes.Equal(tile.Body.Bytes(), region.Body.Bytes()) || tile.Body.Len() != 240*240*3 || region.Header().Get("Microtome-Shape") != "240,240,3" {
		t.Errorf("tile of %d bytes, region of %d, shape %q", tile.Body.Len(), region.Body.Len(), region.Header().Get("Microtome-Shape"))
	}
	zoom := picture(t, "zoom", s.get("/deepzoom/a.svs_files/11/2_3.png"))
	pix := tile.Body.Bytes()
	for y := range 240 {
		for x := range 240 {
			r, g, b, _ := zoom.At(x, y).RGBA()
			if p := pix[3*(240*y+x):]; uint32(p[0]) != r>>8 || uint32(p[1]) != g>>8 || uint32(p[2]) != b>>8 {
				t.Fatalf("at %d,%d: %d %d %d, want %v", x, y, r>>8, g>>8, b>>8, p[:3])
			}
		}
	}
	if got := s.get("/slides/a.svs/region?x=0&y=0&width=9&height=9&mpp=2&format=raw").Header().Get("Microtome-Scale"); !strings.HasPrefix(got, "level=1; downsample=4; mpp-x=2") {
		t.Errorf("scale %q", got)
	}
}

func TestRealSlideAndImages(t *testing.T) {
	none := svs(3)
	none.MPP, none.AppMag = 0, 0
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1), "none.svs": none}, func(o *Options) { o.OpenAssociated = true })
	body := s.get("/slides/a.svs").Body.String()
	for _, part := range []string{`"mpp":{"x":0.5,"y":0.5}`, `"objective_power":20`, `"format":"aperio"`, `"openslide.mpp-x":"0.5"`, `"openslide.quickhash-1":`} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	if strings.Contains(body, "openslide.comment") || strings.Contains(body, "ImageDescription") {
		t.Errorf("free text in %s", body)
	}
	for _, name := range []string{"label", "macro", "thumbnail"} {
		picture(t, name, s.get("/slides/a.svs/associated/"+name))
	}
	if m := picture(t, "thumbnail", s.get("/slides/a.svs/thumbnail?size=200")); max(m.Bounds().Dx(), m.Bounds().Dy()) != 200 {
		t.Errorf("thumbnail %v", m.Bounds())
	}
	if body := s.get("/slides/none.svs").Body.String(); !strings.Contains(body, `"mpp":null,"objective_power":null`) {
		t.Errorf("no mpp: %s", body)
	}
	want(t, "mpp", s.get("/slides/none.svs/region?x=0&y=0&width=9&height=9&mpp=1"), 422, "unanswerable")
	want(t, "magnification", s.get("/slides/none.svs/region?x=0&y=0&width=9&height=9&magnification=5"), 422, "unanswerable")
	want(t, "after", s.get("/slides/none.svs/region?x=0&y=0&width=9&height=9"), 200, "")
}

// One broken tile fails alone, again and again, and the slide keeps answering.
func TestRealBrokenTile(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	path := filepath.Join(s.dir, "a.svs")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored := s.get("/slides/a.svs/levels/0/tiles/2/2").Body.Bytes()
	at := bytes.Index(file, stored[len(stored)-64:])
	if at < 0 {
		t.Fatal("the tile's bytes are not in the file")
	}
	copy(file[at-200:at+60], bytes.Repeat([]byte{0xFF, 0xD9, 0x11}, 90))
	if err := os.WriteFile(filepath.Join(s.dir, "broken.svs"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		want(t, "broken", s.get("/slides/broken.svs/levels/0/tiles/2/2?format=png"), 422, "corrupt")
		want(t, "broken", s.get("/slides/broken.svs/region?x=700&y=700&width=20&height=20"), 422, "corrupt")
		want(t, "neighbour", s.get("/slides/broken.svs/levels/0/tiles/2/1?format=png"), 200, "")
		want(t, "neighbour", s.get("/deepzoom/broken.svs_files/11/1_2.jpg"), 200, "")
		want(t, "same place of the whole slide", s.get("/slides/a.svs/levels/0/tiles/2/2?format=png"), 200, "")
	}
}

// H10 for files that are none: a stable client error, not a 500.
func TestRealUnreadable(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	for name, text := range map[string]string{"text.svs": "no slide at all", "empty.svs": "", "loop.tif": "II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00"} {
		s.put(t, name, text)
		for _, target := range []string{"/slides/" + name, "/deepzoom/" + name + ".dzi", "/slides/" + name + "/thumbnail"} {
			if w := s.get(target); w.Code != 415 && w.Code != 422 || strings.Contains(w.Body.String(), s.dir) {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
	}
	want(t, "after", s.get("/slides/a.svs/thumbnail"), 200, "")
}

// Trap H11: a hundred identical requests at once decode a cold tile once.
func TestH11OneDecode(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	alone := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	const target = "/deepzoom/a.svs_files/10/1_1.jpg"
	body := alone.get(target).Body.Bytes()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if w := s.get(target); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), body) {
				t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
			}
		})
	}
	wg.Wait()
	if got, once := s.reader.Stats().Decodes, alone.reader.Stats().Decodes; got != once || once == 0 {
		t.Errorf("%d decodes, one request alone makes %d", got, once)
	}
}

// Traps F8 and H3 on pixels: two slides at once, one of them replaced meanwhile.
func TestRealReplacedUnderLoad(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1), "b.svs": svs(2)}, nil)
	tile := func(name string, n int) string {
		return fmt.Sprintf("/deepzoom/%s_files/%d/%d_%d.jpg", name, 11-n%2, n%3, n%2)
	}
	bodies := map[string][]byte{}
	next := slideFile(t, svs(3))
	s.put(t, "c.svs", next)
	for _, name := range []string{"a.svs", "b.svs", "c.svs"} {
		for n := range 6 {
			bodies[tile(name, n)] = s.get(tile(name, n)).Body.Bytes()
		}
	}
	old := s.get(tile("a.svs", 0)).Header().Get("Etag")
	var replaced sync.WaitGroup
	replaced.Add(1)
	go func() {
		defer replaced.Done()
		time.Sleep(20 * time.Millisecond)
		s.put(t, "a.svs", next)
	}()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 1000 {
				a, b := s.get(tile("a.svs", n)), s.get(tile("b.svs", n))
				isOld, isNew := bytes.Equal(a.Body.Bytes(), bodies[tile("a.svs", n%6)]), bytes.Equal(a.Body.Bytes(), bodies[tile("c.svs", n%6)])
				if a.Code != 200 || b.Code != 200 || !isOld && !isNew || !bytes.Equal(b.Body.Bytes(), bodies[tile("b.svs", n%6)]) {
					t.Errorf("tile %d: %d and %d, wrong pixels", n, a.Code, b.Code)
					return
				}
			}
		})
	}
	wg.Wait()
	replaced.Wait()
	time.Sleep(40 * time.Millisecond) // beyond CheckEvery
	w := s.get(tile("a.svs", 0))
	if !bytes.Equal(w.Body.Bytes(), bodies[tile("c.svs", 0)]) || w.Header().Get("Etag") == old {
		t.Error("the replaced file is still served")
	}
}
