package tiles

import (
	"bytes"
	"context"
	"errors"
	"image"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome"
)

// packed is the rows of pixels without what lies between them.
func packed(t *testing.T, px microtome.Pixels) []byte {
	t.Helper()
	pix, stride, ok := px.Host()
	if !ok {
		t.Fatal("not in host memory")
	}
	var out []byte
	for y := range px.Height() {
		out = append(out, pix[y*stride:][:px.Width()*px.Channels()]...)
	}
	return out
}

// mixed is a batch of everything: two slides, all scales, edges, outside, an
// empty tile, and the same patch twice.
func mixed() []Patch {
	a := newFake("mixed a", 3, 64, 48, image.Pt(500, 400), image.Pt(125, 100))
	a.empty[[3]int{0, 2, 2}] = true
	a.info.MPP = &microtome.MPP{X: 0.25, Y: 0.25}
	b := newFake("mixed b", 3, 50, 50, image.Pt(300, 300))
	b.info.Background = &microtome.RGB{R: 200, G: 100, B: 50}
	var items []Patch
	add := func(s microtome.Slide, x, y int64, sc Scale) {
		items = append(items, Patch{Slide: s, Region: Region{L0X: x, L0Y: y, Width: 64, Height: 48, Scale: sc}})
	}
	for i := range int64(20) {
		add(a, 37*i-60, 23*i-40, Scale{})
		add(b, 29*i-100, 17*i, Scale{})
	}
	add(a, 64, 48, Scale{}) // one tile
	add(a, 64, 48, Scale{})
	add(a, 448, 384, Scale{}) // one tile at the corner, cut
	add(a, 128, 96, Scale{})  // the empty tile
	add(a, 5000, -5000, Scale{})
	add(a, 100, 100, Scale{Kind: ByLevel, Value: 1})
	add(a, 10, 20, Scale{Kind: ByMPP, Value: 0.4})
	add(a, -30, 330, Scale{Kind: ByDownsample, Value: 2.5})
	add(a, 0, 0, Scale{Kind: ByDownsample, Value: 0.5})
	add(b, 200, 200, Scale{Kind: ByDownsample, Value: 3})
	return items
}

// TestPatchesEqualRegions: a batch is as many regions, pixel for pixel.
func TestPatchesEqualRegions(t *testing.T) {
	items := mixed()
	for _, kept := range []int64{0, 32 << 20} {
		r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PixelBytes = kept })
		one := newTestReader(t, &fakeEngine{}, nil)
		for range 2 { // cold and warm
			got, ch, err := r.Patches(context.Background(), items, PatchOptions{Priority: microtome.PrioritySampler})
			if err != nil || ch != 3 || len(got) != len(items) {
				t.Fatal(len(got), ch, err)
			}
			for i, res := range got {
				px, a, err := one.RegionPixels(context.Background(), items[i].Slide, items[i].Region, PixelOptions{})
				if err != nil || res.Err != nil {
					t.Fatalf("item %d: %v, alone %v", i, res.Err, err)
				}
				if !bytes.Equal(packed(t, res.Pixels), packed(t, px)) {
					t.Errorf("item %d: other pixels than alone", i)
				}
				if res.Answer.Made != a.Made || res.Answer.Level != a.Level || res.Answer.Downsample != a.Downsample || res.Answer.Width != 64 {
					t.Errorf("item %d: %+v, alone %+v", i, res.Answer, a)
				}
				px.Release()
				res.Pixels.Release()
			}
		}
	}
}

// TestPatchesDecodeOnce: however many patches of however many callers share a
// tile, it is decoded once.
func TestPatchesDecodeOnce(t *testing.T) {
	s := newFake("once", 3, 64, 64, image.Pt(640, 640))
	var items []Patch
	for y := range int64(9) {
		for x := range int64(9) {
			items = append(items, Patch{Slide: s, Region: Region{L0X: 60*x + 10, L0Y: 60*y + 10, Width: 60, Height: 60}})
		}
	}
	e := &fakeEngine{}
	r := newTestReader(t, e, nil)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			got, _, err := r.Patches(context.Background(), items, PatchOptions{Priority: microtome.PrioritySampler})
			if err != nil {
				t.Error(err)
				return
			}
			for _, res := range got {
				res.Pixels.Release()
			}
		})
	}
	callers.Wait()
	if n := e.jobs.Load(); n != 81 {
		t.Errorf("%d decodes of 81 tiles", n)
	}
	if st := r.Stats(); st.Read.Tiles != 81 || st.Read.ReadBytes > st.Read.TileBytes*11/10 {
		t.Errorf("%+v", st.Read)
	}
}

// TestFarPatchesAreDecodedInPart: what only one patch touches, and little of.
func TestFarPatchesAreDecodedInPart(t *testing.T) {
	s := newFake("far", 3, 100, 100, image.Pt(4000, 4000))
	var items []Patch
	for i := range int64(12) {
		items = append(items, Patch{Slide: s, Region: Region{L0X: 320*i + 70, L0Y: 300*i + 60, Width: 60, Height: 70}})
	}
	e := &fakeEngine{}
	r := newTestReader(t, e, nil)
	got, _, err := r.Patches(context.Background(), items, PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range got {
		at := items[i].Region
		for _, p := range []image.Point{{0, 0}, {59, 0}, {0, 69}, {59, 69}, {31, 44}} {
			if pix, stride, _ := res.Pixels.Host(); pix[p.Y*stride+3*p.X+1] != s.at(0, int(at.L0X)+p.X, int(at.L0Y)+p.Y, 1, microtome.RGB{}) {
				t.Errorf("item %d: wrong at %v", i, p)
			}
		}
		res.Pixels.Release()
	}
	if e.crops.Load() != e.jobs.Load() || e.jobs.Load() < 40 {
		t.Errorf("%d of %d decodes were of parts", e.crops.Load(), e.jobs.Load())
	}
}

// TestPatchesFailAlone: one bad item never loses the others.
func TestPatchesFailAlone(t *testing.T) {
	s := newFake("alone", 3, 64, 64, image.Pt(640, 640))
	s.bad[[3]int{0, 3, 3}] = true
	at := func(x, y int64, w int, sc Scale) Patch {
		return Patch{Slide: s, Region: Region{L0X: x, L0Y: y, Width: w, Height: 64, Scale: sc}}
	}
	items := []Patch{
		at(0, 0, 64, Scale{}),
		at(150, 150, 64, Scale{}), // touches the bad tile
		at(192, 192, 64, Scale{}), // is the bad tile
		at(0, 0, 64, Scale{Kind: ByLevel, Value: 7}),
		at(0, 0, 64, Scale{Kind: ByMPP, Value: 0.5}),
		at(0, 0, 1<<30, Scale{}),
		at(0, 0, -1, Scale{}),
		{Region: Region{Width: 64, Height: 64}},
		{Slide: s, Region: Region{Width: 64, Height: 64}, C: 9},
		at(0, 0, 64, Scale{Kind: ByDownsample, Value: math.NaN()}),
		at(150, 150, 64, Scale{Kind: ByDownsample, Value: 1.5}), // filters the bad tile
		at(300, 300, 64, Scale{}),
	}
	want := []error{nil, microtome.ErrCorrupt, microtome.ErrCorrupt, microtome.ErrNotFound, microtome.ErrUnanswerable, microtome.ErrLimit,
		microtome.ErrMalformed, microtome.ErrMalformed, microtome.ErrNotFound, microtome.ErrMalformed, microtome.ErrCorrupt, nil}
	r := newTestReader(t, &fakeEngine{}, nil)
	got, _, err := r.Patches(context.Background(), items, PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range got {
		if !errors.Is(res.Err, want[i]) || (res.Pixels == nil) != (want[i] != nil) {
			t.Errorf("item %d: %v, want %v", i, res.Err, want[i])
		}
		if res.Pixels != nil {
			res.Pixels.Release()
		}
	}
	if _, _, err := r.Patches(context.Background(), items, PatchOptions{Channels: 2}); !errors.Is(err, microtome.ErrMalformed) {
		t.Errorf("2 channels: %v", err)
	}
}

// TestPatchChannels: one number of channels holds for all items.
func TestPatchChannels(t *testing.T) {
	rgb, grey := newFake("rgb", 3, 64, 64, image.Pt(200, 200)), newFake("grey", 1, 64, 64, image.Pt(200, 200))
	all := Region{L0X: 3, L0Y: 5, Width: 90, Height: 80}
	tile := Region{Width: 64, Height: 64}
	small := Region{Width: 50, Height: 50, Scale: Scale{Kind: ByDownsample, Value: 2}}
	for _, c := range []struct {
		slides []microtome.Slide
		ask    int
		want   int
	}{
		{[]microtome.Slide{grey, grey}, 0, 1}, {[]microtome.Slide{grey, rgb}, 0, 3},
		{[]microtome.Slide{grey}, 3, 3}, {[]microtome.Slide{rgb, grey}, 1, 1},
	} {
		var items []Patch
		for _, s := range c.slides {
			items = append(items, Patch{Slide: s, Region: all}, Patch{Slide: s, Region: tile}, Patch{Slide: s, Region: small})
		}
		r := newTestReader(t, &fakeEngine{}, nil)
		got, ch, err := r.Patches(context.Background(), items, PatchOptions{Channels: c.ask})
		if err != nil || ch != c.want {
			t.Fatal(ch, err)
		}
		for i, res := range got {
			if res.Err != nil || res.Pixels.Channels() != c.want {
				t.Fatalf("item %d: %v", i, res.Err)
			}
			pix, _, _ := res.Pixels.Host()
			if s := items[i].Slide.(*fakeSlide); s.ch == 1 && items[i].Region == tile && pix[0] != s.pix[0][0] {
				t.Errorf("item %d: %d, the slide has %d", i, pix[0], s.pix[0][0])
			}
			res.Pixels.Release()
		}
	}
}

// TestPatchesLeave: a batch whose caller has left gives no pixels, and the next
// one works.
func TestPatchesLeave(t *testing.T) {
	s := newFake("leave", 3, 64, 64, image.Pt(640, 640))
	e := &fakeEngine{gate: make(chan struct{})}
	r := newTestReader(t, e, nil)
	items := []Patch{{Slide: s, Region: Region{Width: 300, Height: 300}}, {Slide: s, Region: Region{L0X: 64, L0Y: 64, Width: 64, Height: 64}}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, _, err := r.Patches(ctx, items, PatchOptions{})
		done <- err
	}()
	e.gate <- struct{}{} // one decode is let through
	cancel()
	close(e.gate)
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the batch hangs")
	}
	left := e.jobs.Load()
	if left > 4 {
		t.Errorf("%d decodes for a caller that left", left)
	}
	got, _, err := r.Patches(context.Background(), items, PatchOptions{})
	if err != nil || got[0].Err != nil || got[1].Err != nil {
		t.Fatal(err, got)
	}
	got[0].Pixels.Release()
	got[1].Pixels.Release()
}

// TestLateTilesOfAFailedPatch: a tile that is not fetched since its patch has
// failed does not make the patch whole again, whatever the order.
func TestLateTilesOfAFailedPatch(t *testing.T) {
	s := newFake("late", 3, 64, 64, image.Pt(640, 640))
	for x := range 10 {
		s.bad[[3]int{0, x, 9}] = true // the last tiles of the patch
	}
	for range 50 {
		r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PixelBytes = 0 })
		got, _, err := r.Patches(context.Background(), []Patch{{Slide: s, Region: Region{Width: 640, Height: 640}}, {Slide: s, Region: Region{Width: 64, Height: 64}}}, PatchOptions{})
		if err != nil || !errors.Is(got[0].Err, microtome.ErrCorrupt) || got[1].Err != nil {
			t.Fatal(err, got[0].Err, got[1].Err)
		}
		got[1].Pixels.Release()
	}
	g := &gather{uses: []use{{lay: &lay{}, next: -1}}, loads: []load{{first: 0}, {first: 0}}}
	l := g.uses[0].lay
	l.left.Store(9)
	l.fail(1, microtome.ErrCorrupt)
	g.lack(0, g.unwanted(&g.loads[0]), false)
	if !errors.Is(l.err(), microtome.ErrCorrupt) {
		t.Errorf("a late tile made it %v", l.err())
	}
}
