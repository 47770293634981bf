package tiles_test

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/formats"
	"github.com/microtome/microtome/formats/source"
	"github.com/microtome/microtome/tiles"
)

// The benchmarks run over the slide that MICROTOME_BENCH_SLIDE names (with
// levels at 1, 4, …), through the real formats and decoders.
func benchReader(b *testing.B, change func(*tiles.Options)) (*tiles.Reader, microtome.Slide) {
	b.Helper()
	path := os.Getenv("MICROTOME_BENCH_SLIDE")
	if path == "" {
		b.Skip("MICROTOME_BENCH_SLIDE names no slide")
	}
	src, err := source.OpenFile(path)
	if err != nil {
		b.Fatal(err)
	}
	s, err := formats.Open(b.Context(), src, formats.Options{})
	if err != nil {
		b.Fatal(err)
	}
	cpu := decode.NewCPU(decode.Options{})
	o := tiles.Options{Decoder: cpu, Encoder: cpu, AnswerBytes: 64 << 20, PixelBytes: 128 << 20}
	if change != nil {
		change(&o)
	}
	r, err := tiles.New(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _, _ = r.Close(), s.Close(), cpu.Close() })
	return r, s
}

// randomView is a random cell of the virtual level at 2^k, on a grid of the
// stored tile's size.
func randomView(s microtome.Slide, k int) tiles.View {
	l0, n := s.Info().Levels[0], int64(1)<<k
	v := tiles.View{Downsample: float64(n), Width: (l0.Width + n - 1) / n, Height: (l0.Height + n - 1) / n}
	tw, th := l0.TileWidth, l0.TileHeight
	x, y := rand.IntN(int(v.Width)/tw)*tw, rand.IntN(int(v.Height)/th)*th
	v.Rect = image.Rect(x, y, x+tw, y+th)
	return v
}

func benchView(b *testing.B, k int, o tiles.PixelOptions, change func(*tiles.Options)) {
	r, s := benchReader(b, change)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.View(context.Background(), s, randomView(s, k), o); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func uncached(o *tiles.Options) { o.AnswerBytes = 0; o.PixelBytes = 8 << 20 }

func BenchmarkViewStoredCold(b *testing.B)  { benchView(b, 0, tiles.PixelOptions{}, uncached) }
func BenchmarkViewStoredWarm(b *testing.B)  { benchView(b, 2, tiles.PixelOptions{}, nil) }
func BenchmarkViewBetweenCold(b *testing.B) { benchView(b, 1, tiles.PixelOptions{}, uncached) }

func benchRegion(b *testing.B, at func(i int, l0 microtome.Level) (int64, int64)) {
	r, s := benchReader(b, nil)
	l0 := s.Info().Levels[0]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x, y := at(i, l0)
		px, _, err := r.RegionPixels(context.Background(), s, tiles.Region{L0X: x, L0Y: y, Width: 256, Height: 256}, tiles.PixelOptions{Priority: microtome.PrioritySampler})
		if err != nil {
			b.Fatal(err)
		}
		px.Release()
	}
}

func BenchmarkRegionRandom(b *testing.B) {
	benchRegion(b, func(_ int, l0 microtome.Level) (int64, int64) {
		return rand.Int64N(l0.Width - 256), rand.Int64N(l0.Height - 256)
	})
}

func BenchmarkRegionGrid(b *testing.B) {
	benchRegion(b, func(i int, l0 microtome.Level) (int64, int64) {
		cols := int((l0.Width - 256) / 256)
		return int64(i % cols * 256), int64(i/cols*256) % (l0.Height - 256)
	})
}

func BenchmarkRegionWarm(b *testing.B) {
	benchRegion(b, func(i int, _ microtome.Level) (int64, int64) { return int64(i % 8 * 256), int64(i / 8 % 8 * 256) })
}

// gridPatches are the 24 x 24 patches of the published protocol, at the slide's
// middle.
func gridPatches(s microtome.Slide) []tiles.Patch {
	l0 := s.Info().Levels[0]
	x0, y0 := (l0.Width/2-12*256)/256*256, (l0.Height/2-12*256)/256*256
	items := make([]tiles.Patch, 0, 24*24)
	for y := range int64(24) {
		for x := range int64(24) {
			items = append(items, tiles.Patch{Slide: s, Region: tiles.Region{L0X: x0 + 256*x, L0Y: y0 + 256*y, Width: 256, Height: 256}})
		}
	}
	return items
}

// randomPatches lie anywhere on level 0.
func randomPatches(s microtome.Slide, n int) []tiles.Patch {
	l0, rnd := s.Info().Levels[0], rand.New(rand.NewPCG(1, 2))
	items := make([]tiles.Patch, n)
	for i := range items {
		items[i] = tiles.Patch{Slide: s, Region: tiles.Region{
			L0X: rnd.Int64N(l0.Width - 256), L0Y: rnd.Int64N(l0.Height - 256), Width: 256, Height: 256}}
	}
	return items
}

// cpuSeconds is the time that this process has computed: on a shared machine a
// steadier measure than the clock.
func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// benchPatches asks for the items in batches; a fresh Reader for each pass over
// them when cold.
func benchPatches(b *testing.B, cold bool, batch int, pick func(microtome.Slide) []tiles.Patch) {
	pixels := int64(2 * 32 << 20) // half of it is for patches: OpenSlide's default
	if !cold {
		pixels = 2 * 256 << 20
	}
	cpu := decode.NewCPU(decode.Options{})
	open := func() *tiles.Reader {
		r, err := tiles.New(tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: pixels})
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	_, s := benchReader(b, nil)
	items := pick(s)
	r := open()
	pass := func() {
		for i := 0; i < len(items); i += batch {
			res, _, err := r.Patches(context.Background(), items[i:min(i+batch, len(items))], tiles.PatchOptions{Priority: microtome.PrioritySampler})
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range res {
				if p.Err != nil {
					b.Fatal(p.Err)
				}
				p.Pixels.Release()
			}
		}
	}
	pass()
	b.ReportAllocs()
	before := cpuSeconds()
	for b.Loop() {
		if cold {
			r.Close()
			r = open()
		}
		pass()
	}
	b.ReportMetric(float64(len(items)*b.N)/b.Elapsed().Seconds(), "patches/s")
	b.ReportMetric(float64(len(items)*b.N)/(cpuSeconds()-before), "patches/cpu-s")
	b.ReportMetric(float64(cpu.Stats().Full)/float64(b.N+1), "whole/pass")
	b.ReportMetric(float64(cpu.Stats().Partial)/float64(b.N+1), "parts/pass")
}

func BenchmarkPatches(b *testing.B) {
	random := func(s microtome.Slide) []tiles.Patch { return randomPatches(s, 600) }
	for _, batch := range []int{1, 64} {
		for name, pick := range map[string]func(microtome.Slide) []tiles.Patch{"grid": gridPatches, "random": random} {
			b.Run(fmt.Sprintf("%s/batch=%d/cold", name, batch), func(b *testing.B) { benchPatches(b, true, batch, pick) })
		}
		b.Run(fmt.Sprintf("grid/batch=%d/warm", batch), func(b *testing.B) { benchPatches(b, false, batch, gridPatches) })
	}
}

// flat is a slide that has lost all levels but the first, and its thumbnail.
type flat struct {
	microtome.Slide
	info microtome.Info
}

func (f *flat) Info() *microtome.Info { return &f.info }

// BenchmarkFlat opens a slide without a pyramid: the time to the first picture,
// and until its levels are built.
func BenchmarkFlat(b *testing.B) {
	for b.Loop() {
		r, s := benchReader(b, func(o *tiles.Options) { o.PyramidDir = b.TempDir() })
		f := &flat{s, *s.Info()}
		f.info.Levels, f.info.Associated = f.info.Levels[:1], nil
		start := time.Now()
		a, err := r.Thumbnail(b.Context(), f, 1024, tiles.PixelOptions{})
		if err != nil || !a.Preview {
			b.Fatal(a.Preview, err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s-to-first-picture")
		for building := true; building; time.Sleep(time.Millisecond) {
			_, _, building = r.Progress(f)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s-to-levels")
		if a, err = r.Thumbnail(b.Context(), f, 1024, tiles.PixelOptions{}); err != nil || a.Preview {
			b.Fatal(a.Preview, err)
		}
		if out := os.Getenv("MICROTOME_BENCH_OUT"); out != "" {
			_ = os.WriteFile(out, a.Body, 0o644)
		}
	}
}
