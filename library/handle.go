package library

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// Handle is one use of an open slide. Whoever got it from Acquire calls
// Release once, after the last use of the slide.
type Handle struct {
	slide    *openSlide
	released atomic.Bool
}

// ID is the id that the slide was acquired by.
func (h *Handle) ID() string { return h.slide.id }

// Slide is the open slide. It stays readable until Release, also when its file
// is replaced or deleted meanwhile. It is a microtome.Holder.
func (h *Handle) Slide() microtome.Slide { return h.slide }

// Release ends the use. Further calls do nothing.
func (h *Handle) Release() {
	if !h.released.Swap(true) {
		h.slide.drop()
	}
}

// openSlide is one state of one file, open. The library owns one reference
// while it hands the slide out, every Handle another; the last to go closes.
type openSlide struct {
	microtome.Slide
	id    string
	place place
	gen   string

	refs    atomic.Int64
	used    atomic.Int64 // when it was last acquired, by Library.now
	checked atomic.Int64 // when its file was last known to be the same
	check   sync.Mutex   // one look at the file at a time
	retired atomic.Bool  // the library's own reference is gone
}

// retain adds a reference unless the slide is closed already.
func (s *openSlide) retain() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Hold implements microtome.Holder.
func (s *openSlide) Hold() (release func()) {
	s.refs.Add(1)
	return s.drop
}

// ReadTiles implements microtome.BatchReader, tile by tile where the slide can't
// do better.
func (s *openSlide) ReadTiles(ctx context.Context, refs []microtome.TileRef, out []microtome.TileResult) (n microtome.ReadCount) {
	if b, ok := s.Slide.(microtome.BatchReader); ok {
		return b.ReadTiles(ctx, refs, out)
	}
	for i, r := range refs {
		t, err := s.ReadTile(ctx, r.Level, r.Plane, r.Col, r.Row)
		out[i] = microtome.TileResult{Tile: t, Err: err}
		if err == nil {
			n.Add(microtome.ReadOne(t))
		}
	}
	return n
}

// Close does nothing: the last reference closes.
func (s *openSlide) Close() error { return nil }

func (s *openSlide) drop() {
	if s.refs.Add(-1) == 0 {
		// Nobody is left to hear of an error, and nothing was written.
		_ = s.Slide.Close()
	}
}

// retire gives up the library's own reference, once.
func (s *openSlide) retire() {
	if !s.retired.Swap(true) {
		s.drop()
	}
}
