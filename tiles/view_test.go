package tiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
)

var raw = PixelOptions{Format: microtome.FormatRaw}

// answerPixels reads a raw answer.
func answerPixels(t *testing.T, a Answer) microtome.Pixels {
	t.Helper()
	if len(a.Body) != a.Width*a.Height*a.Channels {
		t.Fatalf("%d bytes for %dx%dx%d", len(a.Body), a.Width, a.Height, a.Channels)
	}
	return microtome.NewHostPixels(a.Body, a.Width, a.Height, a.Channels, nil)
}

// zoomed is the Deep Zoom level that is 2^k smaller, whole.
func zoomed(s *fakeSlide, k int) View {
	l0 := s.info.Levels[0]
	n := int64(1) << k
	v := View{Downsample: float64(n), Width: (l0.Width + n - 1) / n, Height: (l0.Height + n - 1) / n}
	v.Rect = image.Rect(0, 0, int(v.Width), int(v.Height))
	return v
}

// Every tile of every virtual level has its size, and put together they equal
// the whole level made at once: no seams.
func TestViewTilesEqualWhole(t *testing.T) {
	for _, size := range []image.Point{{1000, 700}, {257, 1}, {1, 1}, {513, 300}} {
		s := newFake(fmt.Sprint("whole", size), 3, 48, 64, size, image.Pt(max(size.X/4, 1), max((size.Y+3)/4, 1)))
		for _, reduce := range []bool{false, true} {
			r := newTestReader(t, &fakeEngine{reduce: reduce}, nil)
			for k := 0; k < 11; k++ {
				v := zoomed(s, k)
				whole, err := r.View(context.Background(), s, v, raw)
				if err != nil {
					t.Fatal(err)
				}
				for y := 0; y < int(v.Height); y += 37 {
					for x := 0; x < int(v.Width); x += 37 {
						v.Rect = image.Rect(x, y, min(x+37, int(v.Width)), min(y+37, int(v.Height)))
						a, err := r.View(context.Background(), s, v, raw)
						if err != nil || a.Width != v.Rect.Dx() || a.Height != v.Rect.Dy() {
							t.Fatalf("%v of %+v: %dx%d, %v", size, v, a.Width, a.Height, err)
						}
						if a.Level != whole.Level { // the whole sticks out of a stored level, the tile does not
							continue
						}
						for j := range a.Height {
							if !bytes.Equal(a.Body[j*a.Width*3:(j+1)*a.Width*3], whole.Body[((y+j)*whole.Width+x)*3:][:a.Width*3]) {
								t.Fatalf("%v, 2^%d: row %d of %v differs from the whole", size, k, j, v.Rect)
							}
						}
					}
				}
			}
		}
	}
}

// Views of random pyramids against the definition: the pixels of the next finer
// level, area-weighted.
func TestViewAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		size := image.Pt(1+rng.IntN(400), 1+rng.IntN(300))
		s := newFake(fmt.Sprint("view", n), 3, 32, 40, size)
		r := newTestReader(t, &fakeEngine{}, nil)
		d := 1 + 6*rng.Float64()
		v := View{Downsample: d, Width: max(1, int64(float64(size.X)/d)), Height: max(1, int64(float64(size.Y)/d))}
		x, y := rng.IntN(int(v.Width)), rng.IntN(int(v.Height))
		v.Rect = image.Rect(x, y, min(x+1+rng.IntN(60), int(v.Width)), min(y+1+rng.IntN(60), int(v.Height)))
		a, err := r.View(context.Background(), s, v, raw)
		if err != nil {
			t.Fatal(err)
		}
		want := naive(s, 0, float64(x)*d, float64(y)*d, d, d, v.Rect.Dx(), v.Rect.Dy())
		compare(t, fmt.Sprintf("%v %+v", size, v), answerPixels(t, a), want, 0.75)
	}
}

// A stored level's own tile leaves as stored, decoding nothing; with an overlap,
// another quality or another format it is rendered from the same level.
func TestViewPassesThrough(t *testing.T) {
	s := jpegSlide("passes", image.Pt(1000, 700), image.Pt(250, 175))
	e := &fakeEngine{}
	r := newTestReader(t, e, nil)
	v := zoomed(s, 2)
	v.Rect = image.Rect(64, 64, 128, 128)
	a, err := r.View(context.Background(), s, v, PixelOptions{})
	if err != nil || a.Made != Stored || a.Engine != "none" || a.Level != 1 || a.Downsample != 4 || a.Width != 64 || a.CacheHit || e.jobs.Load() != 0 {
		t.Fatalf("%+v, %v, %d decodes", a, err, e.jobs.Load())
	}
	b, err := r.Stored(context.Background(), s, 1, 0, 1, 1)
	if err != nil || !b.CacheHit || !bytes.Equal(a.Body, b.Body) {
		t.Errorf("the stored tile: %v, hit %v", err, b.CacheHit)
	}
	v.Rect = image.Rect(192, 128, 250, 175)
	if a, err = r.View(context.Background(), s, v, PixelOptions{}); err != nil || a.Made != Cropped || a.Width != 58 || a.Height != 47 {
		t.Errorf("corner: %+v, %v", a, err)
	}
	for _, c := range []struct {
		rect image.Rectangle
		o    PixelOptions
	}{
		{image.Rect(63, 63, 129, 129), PixelOptions{}},
		{image.Rect(64, 64, 128, 128), PixelOptions{Quality: 50}},
		{image.Rect(64, 64, 128, 128), PixelOptions{ICC: "embed"}},
		{image.Rect(64, 64, 128, 128), PixelOptions{Format: microtome.FormatPNG}},
	} {
		v.Rect = c.rect
		if a, err = r.View(context.Background(), s, v, c.o); err != nil || a.Made != Rendered || a.Level != 1 {
			t.Errorf("%+v: %+v, %v", c, a, err)
		}
	}
	if string(e.icc) != "" {
		t.Errorf("a profile that nobody asked for: %q", e.icc)
	}
}

// The stored level is a floor and the virtual one a ceil: the last row is missing
// there and comes from the next finer level.
func TestViewMissingLastRow(t *testing.T) {
	s := newFake("lastrow", 3, 64, 64, image.Pt(256, 257), image.Pt(128, 128))
	r := newTestReader(t, &fakeEngine{}, nil)
	v := zoomed(s, 1)
	if v.Height != 129 {
		t.Fatal("the test's sizes are wrong")
	}
	v.Rect = image.Rect(0, 64, 64, 128)
	a, err := r.View(context.Background(), s, v, raw)
	if err != nil || a.Level != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	compare(t, "inside", answerPixels(t, a), naive(s, 1, 0, 64, 1, 1, 64, 64), 0)
	v.Rect = image.Rect(0, 128, 64, 129)
	if a, err = r.View(context.Background(), s, v, raw); err != nil || a.Level != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	compare(t, "last row", answerPixels(t, a), naive(s, 0, 0, 256, 2, 2, 64, 1), 0.51)
}

// Between stored levels the codec's own scaling is used for JPEG, under other
// keys than the exact pixels.
func TestViewReduces(t *testing.T) {
	s := newFake("reduces", 3, 64, 64, image.Pt(1024, 512))
	e := &fakeEngine{reduce: true}
	r := newTestReader(t, e, nil)
	v := zoomed(s, 1)
	v.Rect = image.Rect(0, 0, 64, 64)
	a, err := r.View(context.Background(), s, v, PixelOptions{})
	if err != nil || a.Made != Rendered || e.jobs.Load() != 4 {
		t.Fatalf("%+v, %v, %d decodes", a, err, e.jobs.Load())
	}
	if _, err := r.View(context.Background(), s, v, raw); err != nil || e.jobs.Load() != 8 {
		t.Errorf("exact pixels after reduced ones: %v, %d decodes, want 8", err, e.jobs.Load())
	}
	if a, err = r.View(context.Background(), s, v, PixelOptions{}); err != nil || !a.CacheHit || e.jobs.Load() != 8 {
		t.Errorf("again: %v, hit %v", err, a.CacheHit)
	}
}

// Trap F4 (the arithmetic): what lies outside is an error, never a panic.
func TestViewErrors(t *testing.T) {
	s := pyramid("viewerrors")
	r := newTestReader(t, &fakeEngine{}, nil)
	good := zoomed(s, 1)
	for _, change := range []func(*View){
		func(v *View) { v.Downsample = 0 }, func(v *View) { v.Downsample = -1 }, func(v *View) { v.Downsample = math.NaN() },
		func(v *View) { v.Downsample = math.Inf(1) }, func(v *View) { v.Rect = image.Rectangle{} },
		func(v *View) { v.Rect = image.Rect(-1, 0, 5, 5) }, func(v *View) { v.Rect = image.Rect(0, 0, 501, 5) },
		func(v *View) { v.Rect = image.Rect(500, 0, 501, 5) }, func(v *View) { v.Width = 1 << 50 }, func(v *View) { v.Width, v.Height, v.Rect = -9, -9, image.Rect(-5, -5, -1, -1) },
	} {
		v := good
		change(&v)
		if _, err := r.View(context.Background(), s, v, raw); !errors.Is(err, microtome.ErrMalformed) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

func TestThumbnail(t *testing.T) {
	s := pyramid("thumbnail")
	r := newTestReader(t, &fakeEngine{}, nil)
	for _, c := range []struct{ size, w, h, level int }{{100, 100, 70, 1}, {50, 50, 35, 2}, {5000, 1000, 700, 0}, {1, 1, 1, 2}} {
		a, err := r.Thumbnail(context.Background(), s, c.size, PixelOptions{})
		if err != nil || a.Width != c.w || a.Height != c.h || a.Level != c.level {
			t.Errorf("%d: %dx%d from level %d, %v", c.size, a.Width, a.Height, a.Level, err)
			continue
		}
		if cfg, err := jpeg.DecodeConfig(bytes.NewReader(a.Body)); err != nil || cfg.Width != c.w || cfg.Height != c.h {
			t.Errorf("%d: body is %dx%d, %v", c.size, cfg.Width, cfg.Height, err)
		}
	}
	if _, err := r.Thumbnail(context.Background(), s, 0, PixelOptions{}); !errors.Is(err, microtome.ErrMalformed) {
		t.Error(err)
	}
}

func TestPlanes(t *testing.T) {
	s := newFake("planes", 1, 64, 64, image.Pt(100, 100))
	s.info.Planes = microtome.Planes{C: 2, Z: 3, T: 1}
	r := newTestReader(t, &fakeEngine{}, nil)
	for c := range 2 {
		for z := range 3 {
			o := raw
			o.C, o.Z = c, z
			a, err := r.View(context.Background(), s, zoomed(s, 0), o)
			if err != nil || a.Channels != 1 || a.Body[0] != s.pix[0][0]+byte(z*2+c) {
				t.Errorf("c=%d z=%d: %v", c, z, err)
			}
		}
	}
	if _, err := r.View(context.Background(), s, zoomed(s, 0), PixelOptions{Z: 3}); !errors.Is(err, microtome.ErrNotFound) {
		t.Error(err)
	}
}

func FuzzView(f *testing.F) {
	f.Add(2.0, int64(500), int64(350), 0, 0, 10, 10)
	f.Add(1e-9, int64(1<<39), int64(1<<39), 1<<38, 0, 10, 10)
	f.Add(1e18, int64(1), int64(1), 0, 0, 1, 1)
	s := pyramid("fuzzview")
	r, err := New(Options{Decoder: &fakeEngine{reduce: true}, Encoder: &fakeEngine{}, MaxPixels: 1 << 16, PixelBytes: 8 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, d float64, w, h int64, x0, y0, dx, dy int) {
		v := View{Downsample: d, Width: w, Height: h, Rect: image.Rect(x0, y0, x0+dx, y0+dy)}
		a, err := r.View(context.Background(), s, v, raw)
		if err == nil && (a.Width != v.Rect.Dx() || a.Height != v.Rect.Dy()) {
			t.Errorf("%+v: %dx%d", v, a.Width, a.Height)
		}
	})
}
