package tiff_test

import (
	"context"
	"image/color"
	"runtime"
	"sync"
	"testing"

	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/synth/tiffw"
)

const (
	manyLevels = 10
	manyTiles  = 100_000
)

// large is a slide of ten levels of 100,000 tiles each.
func large(t testing.TB) []byte {
	offsets, counts := make([]uint64, manyTiles), make([]uint32, manyTiles)
	return write(t, tiffw.Options{Big: true}, func(w *tiffw.Writer) {
		at := w.Block(filled(256, 7))
		for i := range manyTiles {
			offsets[i], counts[i] = uint64(at), 256
		}
		for range manyLevels {
			d := picture(16*manyTiles/100, 16*100, 1, 1, 1).Short(322, 16).Short(323, 16).
				ASCII(270, "a description of some length").Short(284, 1).Rational(282, 1, 2).Rational(283, 1, 2)
			w.Dir(d.Long8(324, offsets...).Long(325, counts...))
		}
	})
}

// TestOpenHoldsLittle: an open slide of 100,000 tiles and ten levels holds less
// than 32 KB, and opening reads no table.
func TestOpenHoldsLittle(t *testing.T) {
	const opened = 100
	src := memory(large(t))
	files := make([]*tiff.File, opened)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range files {
		f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Dirs {
			if _, err := d.Grid(); err != nil {
				t.Fatal(err)
			}
		}
		files[i] = f
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / opened
	t.Logf("%d bytes held, %d bytes read in %d reads", held, src.bytes.Load()/opened, src.reads.Load()/opened)
	if len(files[0].Dirs) != manyLevels || held > 32<<10 {
		t.Errorf("%d levels, %d bytes held", len(files[0].Dirs), held)
	}
	if read := src.bytes.Load() / opened; read > 2<<10*manyLevels {
		t.Errorf("%d bytes read", read)
	}
	runtime.KeepAlive(files)
}

// TestLookUpIsBounded: however many tiles are looked up, by however many
// goroutines, only a few chunks stay.
func TestLookUpIsBounded(t *testing.T) {
	src := memory(large(t))
	f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	reads := src.reads.Load()
	var all sync.WaitGroup
	for k, d := range f.Dirs {
		all.Go(func() {
			for i := int64(k); i < manyTiles; i++ {
				if off, n, err := d.TileRef(context.Background(), i); off != 16 || n != 256 || err != nil {
					t.Errorf("tile %d: %d %d %v", i, off, n, err)
					return
				}
			}
		})
	}
	all.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 400<<10 {
		t.Errorf("%d bytes held after looking up", held)
	}
	if n := src.reads.Load() - reads; n > manyLevels*manyTiles/4 {
		t.Errorf("%d reads for %d look-ups", n, manyLevels*manyTiles)
	}
	runtime.KeepAlive(f)
}

func BenchmarkOpen(b *testing.B) {
	src := memory(large(b))
	b.ReportAllocs()
	for b.Loop() {
		f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
		if err != nil || len(f.Dirs) != manyLevels {
			b.Fatal(err)
		}
	}
}

func BenchmarkTileRef(b *testing.B) {
	f := parse(b, large(b))
	for i := int64(0); b.Loop(); i = (i + 7919) % manyTiles {
		if _, _, err := f.Dirs[0].TileRef(context.Background(), i); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadCell(b *testing.B) {
	tables, abbreviated := split(b, photo(b, 256, 256, color.White))
	abbreviated = append(abbreviated[:len(abbreviated)-2], filled(16<<10, 0x55)...)
	for name, photometric := range map[string]int{"YCbCr": 6, "RGB": 2} {
		b.Run(name, func(b *testing.B) {
			d := onlyTile(b, picture(256, 256, 3, photometric, 7).Undefined(347, tables), 256, 256, abbreviated)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.ReadCell(context.Background(), 0, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
