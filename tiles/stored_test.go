package tiles

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"sync"
	"testing"

	"github.com/microtome/microtome"
)

// jpegSlide has JPEG tiles, all alike.
func jpegSlide(id string, sizes ...image.Point) *fakeSlide {
	s := newFake(id, 3, 64, 64, sizes...)
	for i := range s.info.Levels {
		s.info.Levels[i].Codec = microtome.CodecJPEG
	}
	s.codec = func(t microtome.Tile) microtome.Tile {
		t.Codec, t.Data = microtome.CodecJPEG, testJPEG(t.Width, t.Height)
		return t
	}
	return s
}

// Trap H11: a hundred ask for one cold tile: one decode, one read.
func TestH11OneDecode(t *testing.T) {
	s := newFake("h11", 3, 64, 64, image.Pt(640, 640))
	e := &fakeEngine{gate: make(chan struct{})}
	r := newTestReader(t, e, nil)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if a, err := r.StoredPixels(context.Background(), s, 0, 0, 3, 4, raw); err != nil || a.Made != Rendered {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	close(e.gate)
	wg.Wait()
	if e.jobs.Load() != 1 || s.reads.Load() != 1 {
		t.Errorf("%d decodes, %d reads", e.jobs.Load(), s.reads.Load())
	}
}

func TestStoredEmptyIsBackground(t *testing.T) {
	s := newFake("empty", 3, 64, 64, image.Pt(100, 100))
	s.empty[[3]int{0, 1, 0}] = true
	a, err := newTestReader(t, &fakeEngine{}, nil).Stored(context.Background(), s, 0, 0, 1, 0)
	if err != nil || a.Made != Empty || a.Engine != "none" || a.Width != 36 || a.Height != 64 {
		t.Fatalf("%+v, %v", a, err)
	}
	img, err := jpeg.Decode(bytes.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := img.At(5, 5).RGBA(); r>>8 > 14 || g>>8 < 16 || b>>8 < 26 {
		t.Errorf("colour %d %d %d", r>>8, g>>8, b>>8)
	}
}

// Trap D8: an empty tile of an Aperio level is painted from the next larger
// level, recursively; where there is nothing either, background.
func TestD8PaintedFromLargerLevel(t *testing.T) {
	s := newFake("d8", 3, 64, 64, image.Pt(1024, 512), image.Pt(256, 128), image.Pt(64, 32))
	s.info.InheritEmpty = true
	s.empty[[3]int{2, 0, 0}], s.empty[[3]int{1, 0, 0}] = true, true
	for col := range 2 {
		for row := range 2 {
			s.empty[[3]int{0, col, row}] = true
		}
	}
	r := newTestReader(t, &fakeEngine{}, nil)
	a, err := r.StoredPixels(context.Background(), s, 1, 0, 0, 0, raw)
	if err != nil || a.Made != Rendered {
		t.Fatalf("%+v, %v", a, err)
	}
	compare(t, "level 1", answerPixels(t, a), naive(s, 0, 0, 0, 4, 4, 64, 64), 0.51)
	if a, err = r.StoredPixels(context.Background(), s, 2, 0, 0, 0, raw); err != nil || a.Made != Rendered {
		t.Fatalf("level 2: %+v, %v", a, err)
	}
	want := naive(s, 1, 0, 0, 4, 4, 64, 32) // its left part is of level 0
	pix := answerPixels(t, a)
	host, _, _ := pix.Host()
	for y := range 16 {
		for x := range 16 {
			for c := range 3 {
				want[(y*64+x)*3+c] = naive(s, 0, float64(16*x), float64(16*y), 16, 16, 1, 1)[c]
			}
		}
	}
	compare(t, "level 2", microtome.NewHostPixels(host, 64, 32, 3, nil), want, 1.1)
	for i := range 128 {
		s.empty[[3]int{0, i % 16, i / 16}] = true
	}
	s.info.Generation.ID = "d8 again"
	if a, err = r.StoredPixels(context.Background(), s, 1, 0, 0, 0, raw); err != nil || a.Made != Empty {
		t.Errorf("nothing at all: %+v, %v", a, err)
	}
}

// What a browser can't play is rendered.
func TestStoredRendersWhatCannotPlay(t *testing.T) {
	s := newFake("raw tiles", 3, 64, 64, image.Pt(100, 100))
	a, err := newTestReader(t, &fakeEngine{}, nil).Stored(context.Background(), s, 0, 0, 1, 1)
	if err != nil || a.Made != Rendered || a.Engine != "cpu" || a.Format != microtome.FormatJPEG || a.Width != 36 {
		t.Fatalf("%+v, %v", a, err)
	}
}

// Trap C11: bytes that are no JPEG are an error of that tile, each time anew.
func TestC11NotAJPEG(t *testing.T) {
	s := jpegSlide("c11", image.Pt(128, 64))
	good := s.codec
	s.codec = func(tl microtome.Tile) microtome.Tile {
		tl = good(tl)
		tl.Data[0] = 0x11
		return tl
	}
	r := newTestReader(t, &fakeEngine{}, nil)
	for range 2 {
		if _, err := r.Stored(context.Background(), s, 0, 0, 0, 0); !errors.Is(err, microtome.ErrCorrupt) {
			t.Error(err)
		}
	}
	s.codec = good
	if a, err := r.Stored(context.Background(), s, 0, 0, 0, 0); err != nil || a.Made != Stored {
		t.Errorf("mended: %v", err)
	}
}

func TestStoredErrors(t *testing.T) {
	s := jpegSlide("bounds", image.Pt(128, 64))
	r := newTestReader(t, &fakeEngine{}, nil)
	for _, c := range [][4]int{{1, 0, 0, 0}, {-1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 2, 0}, {0, 0, 0, 1}, {0, 0, -1, 0}} {
		if _, err := r.Stored(context.Background(), s, c[0], c[1], c[2], c[3]); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("%v: %v", c, err)
		}
		if _, err := r.StoredPixels(context.Background(), s, c[0], c[1], c[2], c[3], raw); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// A replaced file has another generation and nothing of the old one.
func TestGenerationKeysTheCaches(t *testing.T) {
	r := newTestReader(t, &fakeEngine{}, nil)
	for _, id := range []string{"one", "three"} {
		s := newFake(id, 3, 64, 64, image.Pt(64, 64))
		a, err := r.StoredPixels(context.Background(), s, 0, 0, 0, 0, raw)
		if err != nil || a.CacheHit || !bytes.Equal(a.Body, s.pix[0]) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestAssociated(t *testing.T) {
	s := newFake("assoc", 3, 64, 64, image.Pt(64, 64))
	g := microtome.Grid{Width: 70, Height: 30, TileWidth: 70, TileHeight: 8, Cols: 1, Rows: 4, Samples: 3, Bits: 8, Color: microtome.ColorRGB}
	s.info.Associated = []microtome.Associated{{Name: "label", Grid: g}}
	s.assoc = bytes.Repeat([]byte{1, 2, 3, 250}, 70*30*3/4)
	e := &fakeEngine{}
	r := newTestReader(t, e, nil)
	a, err := r.Associated(context.Background(), s, "label", raw)
	if err != nil || a.Width != 70 || a.Height != 30 || !bytes.Equal(a.Body, s.assoc) {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := r.Associated(context.Background(), s, "label", PixelOptions{ICC: "embed"}); err != nil || string(e.icc) != "icc label" {
		t.Errorf("%q, %v", e.icc, err)
	}
	if _, err := r.Associated(context.Background(), s, "macro", raw); !errors.Is(err, microtome.ErrNotFound) {
		t.Error(err)
	}
}

// The hot path: a kept stored tile costs next to no allocation.
func TestStoredHitAllocates(t *testing.T) {
	s := jpegSlide("hot", image.Pt(1000, 700))
	r := newTestReader(t, &fakeEngine{}, nil)
	v := zoomed(s, 0)
	v.Rect = image.Rect(64, 64, 128, 128)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if a, err := r.View(ctx, s, v, PixelOptions{}); err != nil || a.Made != Stored {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
