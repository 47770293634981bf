package tiles

import (
	"context"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
)

// scanned asks for regions one after the other, each after what was loaded
// ahead has come, and returns the reader's counts.
func scanned(t *testing.T, s *fakeSlide, e *fakeEngine, at []image.Point) Stats {
	t.Helper()
	r := newTestReader(t, e, nil)
	r.ahead.workers = 4
	for _, p := range at {
		px, _, err := r.RegionPixels(context.Background(), s, Region{L0X: int64(p.X), L0Y: int64(p.Y), Width: 50, Height: 50}, PixelOptions{Priority: microtome.PrioritySampler})
		if err != nil {
			t.Fatal(err)
		}
		px.Release()
		r.ahead.all.Wait()
	}
	return r.Stats()
}

// TestReadAhead: a caller that steps along rows finds most regions loaded; the
// end of a row costs little, and nothing is decoded twice.
func TestReadAhead(t *testing.T) {
	s := newFake("ahead", 3, 50, 50, image.Pt(1000, 500))
	var rows []image.Point
	for y := range 10 {
		for x := range 20 {
			rows = append(rows, image.Pt(50*x, 50*y))
		}
	}
	e := &fakeEngine{}
	st := scanned(t, s, e, rows)
	if st.AheadUsed < 150 || st.AheadSent < st.AheadUsed {
		t.Errorf("%d regions loaded ahead, %d used, of %d", st.AheadSent, st.AheadUsed, len(rows))
	}
	if n := e.jobs.Load(); n != 200 {
		t.Errorf("%d decodes of 200 tiles", n)
	}
}

// TestReadAheadKeepsQuiet: callers that don't scan have nothing loaded for them,
// and nothing is loaded beyond the slide.
func TestReadAheadKeepsQuiet(t *testing.T) {
	s := newFake("quiet", 3, 50, 50, image.Pt(1000, 500))
	rng := rand.New(rand.NewPCG(3, 4))
	var random, still, end []image.Point
	for range 200 {
		random = append(random, image.Pt(rng.IntN(950), rng.IntN(450)))
		still = append(still, image.Pt(300, 300))
	}
	for x := range 6 {
		end = append(end, image.Pt(900+50*x, 100))
	}
	for name, at := range map[string][]image.Point{"random": random, "still": still, "end": end} {
		if st := scanned(t, s, &fakeEngine{}, at); st.AheadSent > 1 {
			t.Errorf("%s: %d regions loaded ahead", name, st.AheadSent)
		}
	}
}

// TestReadAheadOfTwo: two callers that scan at once don't hide each other.
func TestReadAheadOfTwo(t *testing.T) {
	s := newFake("two", 3, 50, 50, image.Pt(1000, 500))
	var at []image.Point
	for x := range 18 {
		at = append(at, image.Pt(50*x, 0), image.Pt(900-50*x, 400))
	}
	if st := scanned(t, s, &fakeEngine{}, at); st.AheadUsed < 20 {
		t.Errorf("%d of %d regions were loaded ahead", st.AheadUsed, len(at))
	}
}
