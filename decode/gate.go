package decode

import (
	"container/list"
	"context"
	"runtime"
	"sync"

	"github.com/microtome/microtome"
)

// samplerShare is how often a waiting sampler goes before a waiting viewer: one
// start in so many.
const samplerShare = 4

// gate lets a bounded number of decodes run at once and orders those that wait:
// viewers newest first (the newest tile is what is on the screen), samplers in
// order with a minimum share, background last. Only samplers are ever refused:
// each waiter is a caller that blocks, so the queue is bounded by its callers.
type gate struct {
	mu      sync.Mutex
	free    int
	limit   int // of waiting samplers
	waiting [3]list.List
	starts  uint64
	dropped func()
}

// waiter is one decode that waits for a slot.
type waiter struct {
	ctx   context.Context
	ready chan struct{}
	in    microtome.Priority // the queue it is in
	at    *list.Element      // nil once it was granted or dropped
}

func newGate(slots, limit int, dropped func()) *gate {
	return &gate{free: slots, limit: limit, dropped: dropped}
}

// acquire returns when the caller may decode; it must release then. The error is
// ErrBusy, or ctx's when that ended first.
func (g *gate) acquire(ctx context.Context, p microtome.Priority) error {
	return g.acquireUrgent(ctx, microtome.NewUrgency(p))
}

// acquireUrgent is acquire with a priority that may be raised meanwhile.
func (g *gate) acquireUrgent(ctx context.Context, u *microtome.Urgency) error {
	if err := ctx.Err(); err != nil {
		g.dropped()
		return err
	}
	p := min(u.Now(), microtome.PriorityBackground)
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	if p == microtome.PrioritySampler && g.waiting[p].Len() >= g.limit {
		g.mu.Unlock()
		return microtome.ErrBusy
	}
	w := &waiter{ctx: ctx, ready: make(chan struct{}), in: p}
	w.at = g.waiting[p].PushBack(w)
	g.mu.Unlock()
	g.raise(w, u.Watch(func(p microtome.Priority) { g.raise(w, p) }))
	defer u.Watch(nil)
	select {
	case <-w.ready:
	case <-ctx.Done():
		return g.leave(w)
	}
	// Whoever is woken runs at once, before those who have been waiting to say
	// that their callers left. They go first here, so that nothing is decoded for
	// nobody.
	runtime.Gosched()
	if err := ctx.Err(); err != nil {
		g.release()
		g.dropped()
		return err
	}
	return nil
}

// raise moves a waiter to a more urgent queue.
func (g *gate) raise(w *waiter, p microtome.Priority) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.at == nil || p >= w.in {
		return
	}
	g.waiting[w.in].Remove(w.at)
	w.in, w.at = p, g.waiting[p].PushBack(w)
}

// leave takes a waiter whose context ended out of the queue; one that was
// granted a slot in that moment hands it on.
func (g *gate) leave(w *waiter) error {
	g.mu.Lock()
	if w.at != nil {
		g.waiting[w.in].Remove(w.at)
		w.at = nil
		g.mu.Unlock()
	} else {
		g.mu.Unlock()
		g.release()
	}
	g.dropped()
	return w.ctx.Err()
}

// release gives a slot to the next waiter, or back.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.next(); w != nil {
		close(w.ready)
		return
	}
	g.free++
}

// next takes the waiter that goes first out of the queue.
func (g *gate) next() *waiter {
	g.starts++
	viewers, samplers, background := &g.waiting[0], &g.waiting[1], &g.waiting[2]
	var e *list.Element
	from := viewers
	switch {
	case samplers.Len() > 0 && (viewers.Len() == 0 || g.starts%samplerShare == 0):
		from, e = samplers, samplers.Front()
	case viewers.Len() > 0:
		e = viewers.Back()
	case background.Len() > 0:
		from, e = background, background.Front()
	default:
		return nil
	}
	w := from.Remove(e).(*waiter)
	w.at = nil
	return w
}

// idle says how many slots are free and how many decodes wait.
func (g *gate) idle() (free, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free, g.waiting[0].Len() + g.waiting[1].Len() + g.waiting[2].Len()
}
