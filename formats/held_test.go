package formats

import (
	"context"
	"runtime"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/tiffw"
)

// manyTiles is a pyramid of ten levels whose tables list 100,000 tiles each;
// their bytes are all the same ones.
func manyTiles() []byte {
	b := tiffw.NewBuffer()
	w := tiffw.New(b, tiffw.Options{Big: true})
	at := uint64(w.Block(filled(16*16*3, 1)))
	offsets, counts := make([]uint64, 100_000), make([]uint32, 100_000)
	for i := range offsets {
		offsets[i], counts[i] = at, 16*16*3
	}
	for k := range 10 {
		side := uint32(16*316) >> k
		d := new(tiffw.Dir).Long(256, side).Long(257, side).Short(258, 8, 8, 8).Short(259, 1).Short(262, 2).Short(277, 3).
			Long(322, 16).Long(323, 16).Long8(324, offsets...).Long(325, counts...)
		if k > 0 {
			d.Long(254, 1)
		}
		w.Dir(d)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestHeldBySlide: an open slide costs less than 32 KB however many tiles it
// has.
func TestHeldBySlide(t *testing.T) {
	src := &memory{data: manyTiles()}
	const slides = 64
	open := make([]microtome.Slide, slides)
	before := heap()
	for i := range open {
		s, err := Open(context.Background(), src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		open[i] = s
	}
	held := (heap() - before) / slides
	t.Logf("%d bytes a slide", held)
	if levels := len(open[0].Info().Levels); levels != 10 || held > 32<<10 {
		t.Errorf("a slide of %d levels holds %d bytes, want 10 and at most 32 KB", levels, held)
	}
	runtime.KeepAlive(open)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkOpen(b *testing.B) {
	src := &memory{data: manyTiles()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(context.Background(), src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
