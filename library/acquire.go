package library

import (
	"context"
	"fmt"
	"math"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/source"
)

// Acquire returns the slide that id names, open and in the state its file had
// at most Options.CheckEvery ago.
//
// It fails with ErrNotFound for whatever is not a slide file below a root,
// ErrForbidden when the file may not be read, ErrSource when the disk fails,
// what Options.Open says of the file, and ctx's error when the caller leaves
// before a shared open is done.
func (l *Library) Acquire(ctx context.Context, id string) (*Handle, error) {
	if v, ok := l.slides.Load(id); ok {
		if h := l.reuse(v.(*openSlide)); h != nil {
			return h, nil
		}
	}
	return l.acquireSlow(ctx, id)
}

// reuse hands out an open slide, or nil when it is no longer the file's state.
func (l *Library) reuse(s *openSlide) *Handle {
	if !s.retain() {
		return nil
	}
	now := l.now()
	if now-s.checked.Load() >= int64(l.opt.CheckEvery) && !l.unchanged(s) {
		s.drop()
		return nil
	}
	s.used.Store(now)
	return &Handle{slide: s}
}

// unchanged looks at the file of an open slide. All who find the last look too
// old wait for one new look: a slide that lay unused for an hour is not served
// stale to anyone.
func (l *Library) unchanged(s *openSlide) bool {
	s.check.Lock()
	defer s.check.Unlock()
	now := l.now()
	if now-s.checked.Load() < int64(l.opt.CheckEvery) {
		return true
	}
	if s.retired.Load() {
		return false
	}
	l.count.checks.Add(1)
	s.place.mount.refresh(now, int64(l.opt.CheckEvery))
	fi, err := s.place.stat()
	if err == nil && source.Stat(fi).ID == s.gen {
		s.checked.Store(now)
		return true
	}
	l.count.replaced.Add(1)
	l.mu.Lock()
	l.forget(s)
	l.mu.Unlock()
	s.retire()
	return false
}

// flight is one open under way, shared by all who wait for it. mu of the
// Library guards waiters; the rest is written before done is closed.
type flight struct {
	id      string
	place   place
	waiters int
	done    chan struct{}
	slide   *openSlide // one reference for each waiter
	err     error
}

func (l *Library) acquireSlow(ctx context.Context, id string) (*Handle, error) {
	p, err := l.mounts.find(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mount.refresh(l.now(), int64(l.opt.CheckEvery))
	s, f, err := l.board(id, p)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return &Handle{slide: s}, nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		l.leave(f)
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	return &Handle{slide: f.slide}, nil
}

// board returns the slide, retained, when it was opened meanwhile; else the
// flight that the caller now waits for.
func (l *Library) board(id string, p place) (*openSlide, *flight, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, fmt.Errorf("%w: the library is closed", microtome.ErrNotFound)
	}
	if v, ok := l.slides.Load(id); ok {
		if s := v.(*openSlide); s.retain() {
			return s, nil, nil
		}
	}
	f, ok := l.flights[id]
	if !ok {
		f = &flight{id: id, place: p, done: make(chan struct{})}
		l.flights[id] = f
		l.work.Go(func() { l.fly(f) })
	}
	f.waiters++
	return nil, f, nil
}

// leave takes a waiter off a flight, or gives back its reference when the
// flight has just landed.
func (l *Library) leave(f *flight) {
	l.mu.Lock()
	f.waiters--
	landed := f.slide
	l.mu.Unlock()
	if landed != nil {
		landed.drop()
	}
}

// fly opens the slide. It goes on when all waiters have left: the work is
// bounded, and they tend to come back.
func (l *Library) fly(f *flight) {
	l.opening <- struct{}{}
	s, err := l.openPlace(l.ctx, f.id, f.place)
	<-l.opening
	l.mu.Lock()
	delete(l.flights, f.id)
	f.slide, f.err = s, err
	var old []*openSlide
	if s != nil {
		s.refs.Store(1 + int64(f.waiters))
		l.slides.Store(f.id, s)
		l.open++
		old = l.evict(s)
	}
	close(f.done)
	l.mu.Unlock()
	for _, o := range old {
		o.retire()
	}
}

// forget takes a slide out of the table. The caller holds mu, and retires it.
func (l *Library) forget(s *openSlide) {
	if l.slides.CompareAndDelete(s.id, s) {
		l.open--
	}
}

// evict forgets the least recently used slides above the bound, idle ones
// first, and never the newest. The caller holds mu, and retires them.
func (l *Library) evict(newest *openSlide) []*openSlide {
	var out []*openSlide
	for l.open > l.opt.MaxOpen {
		oldest := l.oldest(newest)
		if oldest == nil {
			break
		}
		l.forget(oldest)
		l.count.evicted.Add(1)
		out = append(out, oldest)
	}
	return out
}

func (l *Library) oldest(except *openSlide) *openSlide {
	var idle, busy *openSlide
	idleUsed, busyUsed := int64(math.MaxInt64), int64(math.MaxInt64)
	l.slides.Range(func(_, v any) bool {
		s := v.(*openSlide)
		used := s.used.Load()
		if s == except {
			return true
		}
		if used < busyUsed {
			busy, busyUsed = s, used
		}
		if used < idleUsed && s.refs.Load() == 1 {
			idle, idleUsed = s, used
		}
		return true
	})
	if idle != nil {
		return idle
	}
	return busy
}
