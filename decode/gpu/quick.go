//go:build cgo && linux

package gpu

import (
	"context"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// A caller that asks for one patch after the other waits for every step: for it
// the steps are made on its own goroutine, on a lane that nobody else uses now.

// quickMost is how many tiles are decoded so.
const quickMost = 4

// quick decodes a few tiles at once, when no others wait and a lane is free. It
// returns false when it did not: the tiles go into the queue then.
func (e *Engine) quick(s *session, live []*loading) bool {
	if len(live) == 0 || len(live) > quickMost || !e.queue.idle() {
		return false
	}
	var msg wire.Batch
	defer e.queue.done()
	if !e.decodeBatch(s, 0, live, &msg) {
		e.flush(s)
	}
	return true
}

// idle takes the queue's place for a batch when no lane is at work and no tile
// waits. Whoever gets it calls done.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy > 0 || len(q.items) > 0 || q.closed {
		return false
	}
	q.busy++
	return true
}

// Load implements microtome.Device.
func (e *Engine) Load(ctx context.Context, jobs []microtome.Job, then func(i int, r microtome.Result)) {
	s := e.session.Load()
	e.queue.begin()
	defer e.queue.end()
	var few []*loading
	for i := range jobs {
		done := func(r microtome.Result) { then(i, r) }
		if s == nil {
			done(microtome.Result{Err: microtome.ErrDeviceLost})
			continue
		}
		l := e.prepare(ctx, s, &jobs[i], done)
		switch {
		case l == nil:
		case len(jobs) <= quickMost:
			few = append(few, l)
		default:
			e.enqueue(l)
		}
	}
	if e.quick(s, few) {
		return
	}
	for _, l := range few {
		e.enqueue(l)
	}
}

// enqueue has a tile wait for a lane.
func (e *Engine) enqueue(l *loading) {
	if !e.queue.put(l) {
		e.lose(l, errClosed)
		return
	}
	if l.s.over() {
		e.flush(l.s)
	}
}
