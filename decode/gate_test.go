package decode

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome"
)

// waitFor polls until the gate holds n waiters.
func waitFor(t *testing.T, g *gate, n int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, waiting := g.idle(); waiting == n {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%d wait, want %d", waiting, n)
		}
	}
}

// order queues waiters one after another behind a held slot and returns in which
// order they ran.
func order(t *testing.T, queue []microtome.Priority) []int {
	t.Helper()
	g := newGate(1, 100, func() {})
	if err := g.acquire(context.Background(), microtome.PriorityViewer); err != nil {
		t.Fatal(err)
	}
	var (
		mu  sync.Mutex
		ran []int
		all sync.WaitGroup
	)
	for i, p := range queue {
		all.Go(func() {
			if err := g.acquire(context.Background(), p); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			ran = append(ran, i)
			mu.Unlock()
			g.release()
		})
		waitFor(t, g, i+1)
	}
	g.release()
	all.Wait()
	return ran
}

func TestViewersGoNewestFirstBackgroundLast(t *testing.T) {
	const v, s, b = microtome.PriorityViewer, microtome.PrioritySampler, microtome.PriorityBackground
	got := order(t, []microtome.Priority{b, s, v, v, b})
	want := []int{3, 2, 1, 0, 4}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("order %v, want %v", got, want)
		}
	}
}

// TestSamplersHaveAShare: behind any number of viewers, one start in four is a
// sampler's.
func TestSamplersHaveAShare(t *testing.T) {
	queue := []microtome.Priority{microtome.PrioritySampler, microtome.PrioritySampler}
	for range 12 {
		queue = append(queue, microtome.PriorityViewer)
	}
	at := map[int]int{}
	for place, i := range order(t, queue) {
		at[i] = place
	}
	if at[0] >= samplerShare || at[1] >= 2*samplerShare {
		t.Errorf("samplers ran at places %d and %d", at[0], at[1])
	}
}

func TestOnlySamplersAreRefused(t *testing.T) {
	g := newGate(1, 2, func() {})
	_ = g.acquire(context.Background(), microtome.PrioritySampler)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i, p := range []microtome.Priority{1, 1, 0, 0, 0, 2, 2, 2} {
		all.Go(func() {
			if err := g.acquire(ctx, p); !errors.Is(err, context.Canceled) {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
		waitFor(t, g, i+1)
	}
	if err := g.acquire(context.Background(), microtome.PrioritySampler); !errors.Is(err, microtome.ErrBusy) {
		t.Errorf("a third waiting sampler: %v", err)
	}
	cancel()
	all.Wait()
	g.release()
	if free, waiting := g.idle(); free != 1 || waiting != 0 {
		t.Errorf("%d free, %d wait", free, waiting)
	}
}

// TestAbortedWaitersAreDroppedAndCounted (H9): nothing is decoded for a caller
// that left, and no slot is lost in the race between leaving and being granted.
func TestAbortedWaitersAreDroppedAndCounted(t *testing.T) {
	dropped := make(chan struct{}, 1000)
	g := newGate(2, 1000, func() { dropped <- struct{}{} })
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		left int
	)
	for i := range 500 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			if i%50 != 0 {
				time.AfterFunc(time.Duration(i%7)*100*time.Microsecond, cancel)
			}
			defer cancel()
			if err := g.acquire(ctx, microtome.Priority(i%3)); err != nil {
				mu.Lock()
				left++
				mu.Unlock()
				return
			}
			time.Sleep(50 * time.Microsecond)
			g.release()
		})
	}
	all.Wait()
	if free, waiting := g.idle(); free != 2 || waiting != 0 || len(dropped) != left {
		t.Errorf("%d free, %d wait, %d counted of %d that left", free, waiting, len(dropped), left)
	}
}

// TestRaisedWaiterGoesFirst: a viewer that needs what a sampler waits for does
// not wait in the sampler's place.
func TestRaisedWaiterGoesFirst(t *testing.T) {
	g := newGate(1, 100, func() {})
	if err := g.acquire(context.Background(), microtome.PriorityViewer); err != nil {
		t.Fatal(err)
	}
	ran := make(chan int, 3)
	urgencies := make([]*microtome.Urgency, 3)
	var all sync.WaitGroup
	for i := range urgencies {
		urgencies[i] = microtome.NewUrgency(microtome.PriorityBackground)
		all.Go(func() {
			if err := g.acquireUrgent(context.Background(), urgencies[i]); err != nil {
				t.Error(err)
				return
			}
			ran <- i
			g.release()
		})
		waitFor(t, g, i+1)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		urgencies[2].Raise(microtome.PriorityViewer)
		if g.mu.Lock(); g.waiting[microtome.PriorityViewer].Len() == 1 {
			g.mu.Unlock()
			break
		}
		g.mu.Unlock()
	}
	urgencies[1].Raise(microtome.PrioritySampler)
	urgencies[1].Raise(microtome.PriorityBackground) // lowers nothing
	waitFor(t, g, 3)
	g.release()
	all.Wait()
	if a, b, c := <-ran, <-ran, <-ran; a != 2 || b != 1 || c != 0 {
		t.Errorf("ran %d, %d, %d, want 2, 1, 0", a, b, c)
	}
}
