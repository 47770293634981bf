//go:build cgo && linux

package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// session is one life of the worker: its arena, as the index of slots that only
// this side keeps, the shared ring, and the lanes.
type session struct {
	name  string
	info  native.Info
	arena *slots // of tiles
	// arrays is the end of the arena, where what is made lies: its pieces are
	// large and do not stay, so that tiles must not lie among them.
	arrays *slots
	making int64 // how much of it batches in the making may take; kept arrays have the rest
	makers *semaphore.Weighted
	ring   []byte // mapped by both sides
	rings  *slots
	run    transport
	// lanes that lay and copy, by number; whoever uses one takes it out.
	copiers chan int
	stage   chan *staged
	gone    chan struct{} // closed when the session has ended

	refs atomic.Int64 // of the ring: the session's own, and users'
	once sync.Once
	err  error // why it ended
}

// transport gets messages to whoever executes them.
type transport interface {
	// do executes the message at an offset of the ring, on a lane, and returns a
	// result of package wire. An error means that the worker is gone.
	do(lane int, at int64) (int, error)
	close()
}

const (
	slabBytes  = 4 << 20
	leastArena = 64 << 20
	// arrayShare is the part of the arena that arrays have.
	arrayShare = 4
)

// tileBytes is the part of an arena that tiles have.
func tileBytes(arena int64) int64 { return (arena - arena/arrayShare) / slabBytes * slabBytes }

func newSession(e *Engine) (*session, error) {
	o := &e.o
	if o.Arena < leastArena {
		return nil, fmt.Errorf("an arena of %d bytes, at least %d", o.Arena, leastArena)
	}
	fd, err := unix.MemfdCreate("microtome-ring", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, o.Ring); err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	ring, err := unix.Mmap(fd, 0, int(o.Ring), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap of the ring: %w", err)
	}
	s := &session{
		name: e.name, arena: newSlots(0, tileBytes(o.Arena), slabBytes),
		arrays: newSlots(tileBytes(o.Arena), o.Arena-tileBytes(o.Arena), slabBytes),
		ring:   ring, rings: newSlots(0, o.Ring, slabBytes),
		copiers: make(chan int, copyLanes), stage: make(chan *staged, 256), gone: make(chan struct{}),
	}
	s.making = (o.Arena - tileBytes(o.Arena)) / 2
	s.makers = semaphore.NewWeighted(s.making)
	s.refs.Store(1)
	if len(o.Worker) == 0 {
		s.run, s.info, err = inProcess(o, ring)
	} else {
		s.run, s.info, err = startWorker(o, fd)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(ring))
	}
	for i := range copyLanes {
		s.copiers <- o.Lanes + i
	}
	return s, nil
}

// end ends the session once, and says whether this call did.
func (s *session) end(why error) (first bool) {
	s.once.Do(func() {
		first = true
		s.err = why
		close(s.gone)
		s.run.close()
		s.drop()
	})
	return first
}

func (s *session) over() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// hold keeps the ring mapped until drop; it fails when nobody holds it any more.
func (s *session) hold() bool {
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

func (s *session) drop() {
	if s.refs.Add(-1) == 0 {
		_ = unix.Munmap(s.ring) // nobody is left to hear of it
	}
}

// free gives a piece of the arena back. Whoever used it has waited for the device:
// that is the fence before it is used again.
func (s *session) free(at, bytes int64) {
	if poisonFreed && !s.over() && s.hold() {
		s.poison(at, bytes)
		s.drop()
	}
	if at >= s.arrays.base {
		s.arrays.put(at)
		return
	}
	s.arena.put(at)
}

// poison overwrites a freed slot, so that whoever still reads it is seen to.
func (s *session) poison(at, bytes int64) {
	b := wire.Batch{Uploads: []wire.Upload{{Src: wire.NoSource, Dst: uint64(at), Bytes: uint64(bytes), Value: 0xA5}}}
	lane := <-s.copiers
	_, _ = s.send(lane, &b, nil) // a lost device has nothing to poison
	s.copiers <- lane
}

// leaks tells of what the session still holds: slots, pieces of the ring, or the
// ring itself. It has ended.
func (s *session) leaks() error {
	bytes, n := s.inUse()
	if n != 0 {
		return fmt.Errorf("gpu: %d slots of %d bytes were never released", n, bytes)
	}
	if bytes, n = s.rings.inUse(); n != 0 {
		return fmt.Errorf("gpu: %d pieces of %d bytes of the ring were never released", n, bytes)
	}
	if n := s.refs.Load(); n != 0 {
		return fmt.Errorf("gpu: the ring has %d users", n)
	}
	return nil
}

// inUse is what is taken of the arena.
func (s *session) inUse() (bytes, count int64) {
	a, n := s.arena.inUse()
	b, m := s.arrays.inUse()
	return a + b, n + m
}

// send executes a batch on a lane. seen, when set, looks at the answer while it
// still lies in the ring. An error means that the session is over; a result that is
// not wire.OK, that the device refused the batch as a whole.
func (s *session) send(lane int, b *wire.Batch, seen func(m *wire.Message, tiles []wire.Tile)) (int, error) {
	at, ok := s.rings.get(int64(b.Size()))
	if !ok {
		return wire.Memory, nil
	}
	defer s.rings.put(at)
	mem := s.ring[at:]
	m := b.Write(mem)
	rc, err := s.run.do(lane, at)
	if err != nil {
		if rc != wire.OK && m.VendorCode != 0 { // an answer, which says what the vendor's library said
			err = fmt.Errorf("%w, the vendor's code %d", err, m.VendorCode)
		}
		return rc, err
	}
	if seen != nil {
		seen(m, wire.TilesOf(mem, len(b.Tiles)))
	}
	return rc, nil
}
