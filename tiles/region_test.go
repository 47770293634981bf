package tiles

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
)

var testBackground = microtome.RGB{R: 10, G: 20, B: 30}

// naive is the definition of a region, in floating point, pixel by pixel.
func naive(s *fakeSlide, level int, lx, ly, ratioX, ratioY float64, w, h int) []float64 {
	g := s.info.Levels[level].Grid
	out := make([]float64, 0, w*h*s.ch)
	for j := range h {
		for i := range w {
			x0, x1 := lx+float64(i)*ratioX, lx+float64(i+1)*ratioX
			y0, y1 := ly+float64(j)*ratioY, ly+float64(j+1)*ratioY
			x0, x1 = max(x0, 0), min(x1, float64(g.Width))
			y0, y1 = max(y0, 0), min(y1, float64(g.Height))
			for c := range s.ch {
				if x0 >= x1 || y0 >= y1 {
					out = append(out, float64(s.at(level, -1, -1, c, testBackground)))
					continue
				}
				sum, weight := 0.0, 0.0
				for y := math.Floor(y0); y < y1; y++ {
					wy := min(y1, y+1) - max(y0, y)
					for x := math.Floor(x0); x < x1; x++ {
						wx := min(x1, x+1) - max(x0, x)
						sum += wx * wy * float64(s.at(level, int(x), int(y), c, testBackground))
						weight += wx * wy
					}
				}
				out = append(out, sum/weight)
			}
		}
	}
	return out
}

func compare(t *testing.T, what string, px microtome.Pixels, want []float64, within float64) {
	t.Helper()
	pix, stride, _ := px.Host()
	row := px.Width() * px.Channels()
	if row*px.Height() != len(want) {
		t.Fatalf("%s: %dx%dx%d pixels, want %d samples", what, px.Width(), px.Height(), px.Channels(), len(want))
	}
	for i, v := range want {
		if got := float64(pix[i/row*stride+i%row]); math.Abs(got-v) > within {
			t.Fatalf("%s: pixel %d,%d sample %d is %v, want %v", what, i%row/px.Channels(), i/row, i%px.Channels(), got, v)
		}
	}
}

// Random regions of random pyramids against the definition. Where the edge of
// an answer's pixel lies within 1/65536 of a source pixel's, a filter may see
// or not see a sliver of it; so much is allowed for.
func TestRegionAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		w, h := 1+rng.IntN(300), 1+rng.IntN(200)
		ch := []int{1, 3}[rng.IntN(2)]
		s := newFake(fmt.Sprint("definition", n), ch, 16+rng.IntN(80), 16+rng.IntN(80),
			image.Pt(w, h), image.Pt(max(w/2, 1), (h+1)/2), image.Pt((w+4)/5, max(h/5, 1)))
		for range 4 {
			s.empty[[3]int{rng.IntN(3), rng.IntN(4), rng.IntN(4)}] = true
		}
		r := newTestReader(t, &fakeEngine{}, nil)
		for range 6 {
			q := Region{L0X: rng.Int64N(400) - 60, L0Y: rng.Int64N(300) - 60, Width: 1 + rng.IntN(90), Height: 1 + rng.IntN(90)}
			q.Scale = Scale{Kind: ByLevel, Value: float64(rng.IntN(3))}
			if rng.IntN(2) == 0 {
				q.Scale = Scale{Kind: ByDownsample, Value: 0.4 + 7*rng.Float64()}
			}
			px, a, err := r.RegionPixels(context.Background(), s, q, PixelOptions{Priority: microtome.PrioritySampler})
			if err != nil {
				t.Fatalf("%+v: %v", q, err)
			}
			l := s.info.Levels[a.Level]
			lx := math.Floor(float64(q.L0X*l.Width)/float64(w) + 0.5)
			ly := math.Floor(float64(q.L0Y*l.Height)/float64(h) + 0.5)
			ratio, within := [2]float64{1, 1}, 0.0
			if a.Downsample != l.Downsample {
				scale := levelScale(s.info, a.Level)
				ratio, within = [2]float64{a.Downsample / scale[0], a.Downsample / scale[1]}, 0.75
			}
			compare(t, fmt.Sprintf("%dx%d: %+v at level %d", w, h, q, a.Level), px, naive(s, a.Level, lx, ly, ratio[0], ratio[1], q.Width, q.Height), within)
			px.Release()
		}
	}
}

func pyramid(id string) *fakeSlide {
	s := newFake(id, 3, 64, 64, image.Pt(1000, 700), image.Pt(250, 175), image.Pt(62, 43))
	power := 40.0
	s.info.MPP, s.info.ObjectivePower = &microtome.MPP{X: 0.25, Y: 0.25}, &power
	return s
}

func TestChoose(t *testing.T) {
	info := pyramid("choose").info
	for _, c := range []struct {
		scale  Scale
		level  int
		native bool
		down   float64
	}{
		{Scale{}, 0, true, 1},
		{Scale{Kind: ByLevel, Value: 2}, 2, true, info.Levels[2].Downsample},
		{Scale{Kind: ByDownsample, Value: 1}, 0, true, 1},
		{Scale{Kind: ByDownsample, Value: 4}, 1, true, 4},
		{Scale{Kind: ByDownsample, Value: 3.99}, 1, true, 3.99}, // 250 is the floor of 1000/3.99
		{Scale{Kind: ByDownsample, Value: 3.9}, 0, false, 3.9},
		{Scale{Kind: ByDownsample, Value: 16}, 2, true, 16}, // 62 and 43 are floors
		{Scale{Kind: ByDownsample, Value: 12}, 1, false, 12},
		{Scale{Kind: ByDownsample, Value: 0.5}, 0, false, 0.5},
		{Scale{Kind: ByMPP, Value: 0.25}, 0, true, 1},
		{Scale{Kind: ByMPP, Value: 0.2549}, 0, true, 1},
		{Scale{Kind: ByMPP, Value: 0.2549, Tolerance: 0.001}, 0, false, 1.0196},
		{Scale{Kind: ByMPP, Value: 0.985}, 1, true, 4}, // finer than the level, within 2 %
		{Scale{Kind: ByMPP, Value: 0.9}, 0, false, 3.6},
		{Scale{Kind: ByMagnification, Value: 10}, 1, true, 4},
		{Scale{Kind: ByMagnification, Value: 20}, 0, false, 2}, // trap E5
	} {
		got, err := choose(info, c.scale)
		if err != nil || got.level != c.level || got.native != c.native || math.Abs(got.down[0]/c.down-1) > 0.02 {
			t.Errorf("%+v: %+v, %v; want level %d native %v downsample %v", c.scale, got, err, c.level, c.native, c.down)
		}
	}
}

// Trap E5: levels 1 and 4, asked for 2: from level 0 by the exact mean of 2x2.
func TestE5FromLevel0ByTwo(t *testing.T) {
	s := pyramid("e5")
	px, a, err := newTestReader(t, &fakeEngine{}, nil).RegionPixels(context.Background(), s,
		Region{L0X: 100, L0Y: 60, Width: 50, Height: 40, Scale: Scale{Kind: ByMagnification, Value: 20}}, PixelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer px.Release()
	if a.Level != 0 || a.Downsample != 2 || a.MPP.X != 0.5 {
		t.Errorf("level %d, downsample %v, mpp %v", a.Level, a.Downsample, a.MPP)
	}
	pix, _, _ := px.Host()
	for j := range 40 {
		for i := range 50 {
			for c := range 3 {
				sum := 2
				for k := range 4 {
					sum += int(s.at(0, 100+2*i+k%2, 60+2*j+k/2, c, testBackground))
				}
				if got := pix[(j*50+i)*3+c]; int(got) != sum/4 {
					t.Fatalf("pixel %d,%d: %d, want %d", i, j, got, sum/4)
				}
			}
		}
	}
}

// Trap D7: no mpp, no answer by mpp; and what makes no sense is malformed.
func TestRegionErrors(t *testing.T) {
	s := newFake("errors", 3, 64, 64, image.Pt(1000, 700))
	r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.MaxPixels = 10000 })
	for _, c := range []struct {
		q    Region
		o    PixelOptions
		kind error
	}{
		{Region{Width: 9, Height: 9, Scale: Scale{Kind: ByMPP, Value: 0.5}}, PixelOptions{}, microtome.ErrUnanswerable},
		{Region{Width: 9, Height: 9, Scale: Scale{Kind: ByMagnification, Value: 20}}, PixelOptions{}, microtome.ErrUnanswerable},
		{Region{Width: 0, Height: 9}, PixelOptions{}, microtome.ErrMalformed},
		{Region{Width: 9, Height: -1}, PixelOptions{}, microtome.ErrMalformed},
		{Region{Width: 9, Height: 9, Scale: Scale{Kind: ByDownsample, Value: math.NaN()}}, PixelOptions{}, microtome.ErrMalformed},
		{Region{Width: 9, Height: 9, Scale: Scale{Kind: ByDownsample, Value: math.Inf(1)}}, PixelOptions{}, microtome.ErrMalformed},
		{Region{Width: 9, Height: 9, Scale: Scale{Kind: ByDownsample}}, PixelOptions{}, microtome.ErrMalformed},
		{Region{Width: 9, Height: 9, Scale: Scale{Value: 0.5}}, PixelOptions{}, microtome.ErrMalformed},
		{Region{Width: 9, Height: 9, Scale: Scale{Value: 1}}, PixelOptions{}, microtome.ErrNotFound},
		{Region{Width: 9, Height: 9, Scale: Scale{Value: -1}}, PixelOptions{}, microtome.ErrNotFound},
		{Region{Width: 9, Height: 9}, PixelOptions{C: 1}, microtome.ErrNotFound},
		{Region{Width: 101, Height: 100}, PixelOptions{}, microtome.ErrLimit},
		{Region{Width: math.MaxInt, Height: math.MaxInt}, PixelOptions{}, microtome.ErrLimit},
		{Region{Width: 100, Height: 70, Scale: Scale{Kind: ByDownsample, Value: 10}}, PixelOptions{}, microtome.ErrLimit}, // 700,000 to decode
	} {
		if _, err := r.Region(context.Background(), s, c.q, c.o); !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v, want %v", c.q, err, c.kind)
		}
	}
}

// Trap A7, C11: a bad tile fails what needs it, is asked for again, and leaves
// the rest alone. Trap A20: nothing of one answer is seen in another.
func TestA7BadTileIsNotSticky(t *testing.T) {
	s := newFake("a7", 3, 64, 64, image.Pt(256, 64))
	r := newTestReader(t, &fakeEngine{}, nil)
	read := func(col int) error {
		px, _, err := r.RegionPixels(context.Background(), s, Region{L0X: int64(col * 64), Width: 64, Height: 64}, PixelOptions{})
		if err == nil {
			compare(t, "tile", px, naive(s, 0, float64(col*64), 0, 1, 1, 64, 64), 0)
			px.Release()
		}
		return err
	}
	s.bad[[3]int{0, 2, 0}], s.empty[[3]int{0, 1, 0}] = true, true
	for col := range 4 {
		if err := read(col); errors.Is(err, microtome.ErrCorrupt) != (col == 2) || (err != nil) != (col == 2) {
			t.Errorf("tile %d: %v", col, err)
		}
	}
	s.bad = nil
	if err := read(2); err != nil {
		t.Errorf("the mended tile: %v", err)
	}
}

// Trap A24: no tile at all is a picture of background.
func TestA24AllMissing(t *testing.T) {
	s := newFake("a24", 3, 64, 64, image.Pt(200, 100))
	for i := range 8 {
		s.empty[[3]int{0, i % 4, i / 4}] = true
	}
	r := newTestReader(t, &fakeEngine{}, nil)
	px, a, err := r.RegionPixels(context.Background(), s, Region{Width: 200, Height: 100}, PixelOptions{})
	if err != nil || a.Made != Empty || a.Engine != "none" {
		t.Fatalf("%+v, %v", a, err)
	}
	compare(t, "all missing", px, naive(s, 0, 0, 0, 1, 1, 200, 100), 0)
	px.Release()
}

// Traps A8, A9, A12: widths that are no multiple of the tile's, and tiles larger
// than the picture: no padding is seen.
func TestA8A9A12NoPadding(t *testing.T) {
	for _, c := range []struct{ w, h, tw, th int }{{300, 300, 128, 128}, {50, 30, 256, 256}, {1, 1, 16, 16}, {100, 52, 100, 8}} {
		s := newFake(fmt.Sprint(c), 3, c.tw, c.th, image.Pt(c.w, c.h))
		px, _, err := newTestReader(t, &fakeEngine{}, nil).RegionPixels(context.Background(), s, Region{L0X: -3, L0Y: -2, Width: c.w + 9, Height: c.h + 9}, PixelOptions{})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, fmt.Sprint(c), px, naive(s, 0, -3, -2, 1, 1, c.w+9, c.h+9), 0)
		px.Release()
	}
}

// A tile touched for the first time is decoded only where it is touched; once a
// scan is seen, whole and once. The pixels are the same.
func TestRegionDecodesPartsAndThenWhole(t *testing.T) {
	s := newFake("parts", 3, 64, 64, image.Pt(640, 640))
	e := &fakeEngine{}
	r := newTestReader(t, e, nil)
	read := func(x, y int) {
		t.Helper()
		px, _, err := r.RegionPixels(context.Background(), s, Region{L0X: int64(x), L0Y: int64(y), Width: 40, Height: 40}, PixelOptions{})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, fmt.Sprint(x, y), px, naive(s, 0, float64(x), float64(y), 1, 1, 40, 40), 0)
		px.Release()
	}
	read(110, 110) // four tiles, a part of each
	if e.jobs.Load() != 4 || e.crops.Load() != 4 {
		t.Fatalf("first: %d decodes, %d of parts", e.jobs.Load(), e.crops.Load())
	}
	read(150, 110) // two of them again
	if e.jobs.Load() != 6 || e.crops.Load() != 4 {
		t.Fatalf("second: %d decodes, %d of parts", e.jobs.Load(), e.crops.Load())
	}
	read(140, 120)
	if e.jobs.Load() != 6 {
		t.Fatalf("third: %d decodes", e.jobs.Load())
	}
	read(400, 400) // elsewhere
	if e.crops.Load() == 4 {
		t.Error("elsewhere, tiles are decoded whole")
	}
}

// One pixel over more than is held at once.
func TestRegionOfOnePixel(t *testing.T) {
	s := newFake("onepixel", 1, 512, 512, image.Pt(2600, 2000))
	r := newTestReader(t, &fakeEngine{}, nil)
	px, _, err := r.RegionPixels(context.Background(), s, Region{Width: 1, Height: 1, Scale: Scale{Kind: ByDownsample, Value: 2600}}, PixelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer px.Release()
	compare(t, "one pixel", px, naive(s, 0, 0, 0, 2600, 2600, 1, 1), 1)
}

// Strips of one row are many but small: no preview.
func TestViewOfManyStrips(t *testing.T) {
	s := newFake("strips", 1, 1500, 1, image.Pt(1500, 1500))
	a, err := newTestReader(t, &fakeEngine{}, nil).View(context.Background(), s, zoomed(s, 3), raw)
	if err != nil || a.Preview {
		t.Errorf("preview %v, %v", a.Preview, err)
	}
}

// A side that a format cannot hold is a limit, found before anything is decoded.
func TestTooLongForTheFormat(t *testing.T) {
	s := newFake("long", 1, 64, 64, image.Pt(64, 64))
	r := newTestReader(t, &fakeEngine{}, nil)
	for f, n := range map[microtome.Format]int{microtome.FormatJPEG: 1 << 16, microtome.FormatWebP: 1 << 14} {
		if _, err := r.Region(context.Background(), s, Region{Width: n, Height: 1}, PixelOptions{Format: f}); !errors.Is(err, microtome.ErrLimit) {
			t.Errorf("format %d: %v", f, err)
		}
	}
}

func FuzzRegion(f *testing.F) {
	f.Add(int64(0), int64(0), 5, 5, uint8(0), 0.0)
	f.Add(int64(-1<<63), int64(1<<62), 3, 7, uint8(3), 2.5)
	f.Add(int64(999), int64(699), 64, 64, uint8(1), 0.26)
	f.Add(int64(1), int64(1), 1, 1, uint8(3), 1e300)
	f.Add(int64(1), int64(1), 1, 1, uint8(3), 1e-300)
	s := pyramid("fuzz")
	r, err := New(Options{Decoder: &fakeEngine{}, Encoder: &fakeEngine{}, MaxPixels: 1 << 18, PixelBytes: 8 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, x, y int64, w, h int, kind uint8, value float64) {
		px, a, err := r.RegionPixels(context.Background(), s, Region{L0X: x, L0Y: y, Width: w, Height: h, Scale: Scale{Kind: ScaleKind(kind), Value: value}}, PixelOptions{})
		if err != nil {
			return
		}
		if px.Width() != w || px.Height() != h || a.Width != w || a.Height != h {
			t.Errorf("%dx%d, want %dx%d", px.Width(), px.Height(), w, h)
		}
		px.Release()
	})
}
