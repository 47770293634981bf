package tiles

import (
	"context"
	"errors"
	"image"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/microtome/microtome"
)

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(10, 2)
		if err := b.Take(t.Context(), 100); err != nil { // more than all counts as all
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 2)
		go func() { got <- b.Take(ctx, 4) }()
		synctest.Wait()
		go func() { got <- b.Take(t.Context(), 6) }()
		synctest.Wait()
		if err := b.Take(t.Context(), 1); !errors.Is(err, microtome.ErrBusy) || b.refused.Load() != 1 {
			t.Errorf("the third that waits: %v", err)
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		b.Give(100)
		if err := <-got; err != nil || b.Used() != 6 || b.Waiting() != 0 {
			t.Errorf("%v, %d used, %d wait", err, b.Used(), b.Waiting())
		}
		b.Give(6)
	})
}

// TestBatchesAreBounded: so many are made at once, so many wait, the rest is
// refused whole; those that waited are answered.
func TestBatchesAreBounded(t *testing.T) {
	s := newFake("bounded", 3, 64, 64, image.Pt(640, 640))
	e := &fakeEngine{gate: make(chan struct{})}
	r := newTestReader(t, e, func(o *Options) { o.Batches = 2 })
	var all sync.WaitGroup
	results := make(chan error, 20)
	for i := range int64(20) {
		all.Go(func() {
			got, _, err := r.Patches(context.Background(), []Patch{{Slide: s, Region: Region{L0X: 64 * (i % 10), L0Y: 64 * (i / 10), Width: 64, Height: 64}}}, PatchOptions{})
			if err == nil {
				err = got[0].Err
				got[0].Pixels.Release()
			}
			results <- err
		})
	}
	for range 10 { // 2 are made, 8 wait
		if err := <-results; !errors.Is(err, microtome.ErrBusy) {
			t.Error(err)
		}
	}
	if st := r.Stats(); st.Batches != 2 || st.BatchesWaiting != 8 || st.Busy != 10 {
		t.Errorf("%d made, %d wait, %d refused", st.Batches, st.BatchesWaiting, st.Busy)
	}
	close(e.gate)
	all.Wait()
	for range 10 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestViewerRaisesTheSamplersLoad: a viewer that joins a load that a sampler
// waits for does not wait in the sampler's place.
func TestViewerRaisesTheSamplersLoad(t *testing.T) {
	s := newFake("raise", 3, 64, 64, image.Pt(640, 640))
	e := &urgentEngine{fakeEngine: fakeEngine{gate: make(chan struct{})}, seen: make(chan *microtome.Urgency, 1)}
	r, err := New(Options{Decoder: e, Encoder: e, PixelBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q := Region{Width: 64, Height: 64}
	var all sync.WaitGroup
	ask := func(p microtome.Priority) {
		all.Go(func() {
			px, _, err := r.RegionPixels(context.Background(), s, q, PixelOptions{Priority: p})
			if err != nil {
				t.Error(err)
				return
			}
			px.Release()
		})
	}
	ask(microtome.PrioritySampler)
	u := <-e.seen
	if u.Now() != microtome.PrioritySampler {
		t.Errorf("priority %d at first", u.Now())
	}
	raised := make(chan microtome.Priority, 1)
	u.Watch(func(p microtome.Priority) { raised <- p })
	ask(microtome.PriorityViewer)
	if p := <-raised; p != microtome.PriorityViewer {
		t.Errorf("raised to %d", p)
	}
	close(e.gate)
	all.Wait()
}

// urgentEngine tells the urgency of the jobs it gets.
type urgentEngine struct {
	fakeEngine
	seen chan *microtome.Urgency
}

func (e *urgentEngine) DecodeBatch(ctx context.Context, jobs []microtome.Job) []microtome.Result {
	e.seen <- jobs[0].Urgency
	return e.fakeEngine.DecodeBatch(ctx, jobs)
}
