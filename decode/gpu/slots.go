//go:build cgo && linux

package gpu

import (
	"math/bits"
	"sync"
)

// slots hands out pieces of a memory that it never touches: the worker's arena,
// or the ring. The memory is cut into slabs; a slab holds slots of one size
// class (powers of two and the halves between them), and is free for another class
// once all its slots are. What is larger than half a slab takes slabs of its own.
type slots struct {
	mu      sync.Mutex
	base    int64 // where the memory begins
	slab    int64
	slabs   []slab
	classes map[int64][]int // slot size to slabs that have free ones
	used    int64
	count   int64
	waiters []chan struct{}
}

type slab struct {
	size int64    // of its slots; 0: the slab is free; -1: a part of a run
	free []uint32 // slots
	used int
	run  int  // slabs of a run that begins here
	open bool // listed in classes
}

const smallestSlot = 4096

func newSlots(base, bytes, slabBytes int64) *slots {
	return &slots{base: base, slab: slabBytes, slabs: make([]slab, bytes/slabBytes), classes: map[int64][]int{}}
}

// slotSize is the class that holds n bytes.
func slotSize(n int64) int64 {
	if n <= smallestSlot {
		return smallestSlot
	}
	b := bits.Len64(uint64(n - 1))
	if half := int64(3) << (b - 2); n <= half {
		return half
	}
	return 1 << b
}

// get returns where n bytes lie, false when there are none free.
func (s *slots) get(n int64) (at int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(n)
}

// getBoth returns where n and m bytes lie, false when there are not both free. No
// bytes of m are nowhere.
func (s *slots) getBoth(n, m int64) (first, second int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok = s.take(n); !ok || m == 0 {
		return first, 0, ok
	}
	if second, ok = s.take(m); !ok {
		s.give(first) // nobody has seen that it was gone
	}
	return first, second, ok
}

// take is get. The lock is held.
func (s *slots) take(n int64) (at int64, ok bool) {
	if at, ok = s.find(n); !ok && s.reclaim() {
		at, ok = s.find(n)
	}
	return at, ok
}

func (s *slots) find(n int64) (at int64, ok bool) {
	size := slotSize(n)
	if size > s.slab/2 {
		return s.run(int((n + s.slab - 1) / s.slab))
	}
	if len(s.classes[size]) == 0 && !s.addSlab(size) {
		return 0, false
	}
	list := s.classes[size]
	i := list[len(list)-1]
	b := &s.slabs[i]
	k := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	b.used++
	if len(b.free) == 0 {
		b.open = false
		s.classes[size] = list[:len(list)-1]
	}
	s.used += size
	s.count++
	return s.base + int64(i)*s.slab + int64(k)*size, true
}

// addSlab gives a free slab to a class.
func (s *slots) addSlab(size int64) bool {
	for i := range s.slabs {
		b := &s.slabs[i]
		if b.size != 0 {
			continue
		}
		b.size, b.open = size, true
		n := s.slab / size
		b.free = b.free[:0]
		for k := n - 1; k >= 0; k-- {
			b.free = append(b.free, uint32(k))
		}
		s.classes[size] = append(s.classes[size], i)
		return true
	}
	return false
}

// run takes n free slabs that lie together.
func (s *slots) run(n int) (int64, bool) {
	for i, free := 0, 0; i < len(s.slabs); i++ {
		if s.slabs[i].size != 0 {
			free = 0
			continue
		}
		if free++; free < n {
			continue
		}
		first := i - n + 1
		for k := first; k <= i; k++ {
			s.slabs[k].size = -1
		}
		s.slabs[first].run = n
		s.used += int64(n) * s.slab
		s.count++
		return s.base + int64(first)*s.slab, true
	}
	return 0, false
}

// put gives back what get returned, and wakes who waits.
func (s *slots) put(at int64) {
	s.mu.Lock()
	s.give(at)
	wake := s.waiters
	s.waiters = nil
	s.mu.Unlock()
	for _, w := range wake {
		close(w)
	}
}

// give is put without the waking. The lock is held.
func (s *slots) give(at int64) {
	at -= s.base
	i := int(at / s.slab)
	b := &s.slabs[i]
	if b.size < 0 {
		n := b.run
		for k := i; k < i+n; k++ {
			s.slabs[k].size, s.slabs[k].run = 0, 0
		}
		s.used -= int64(n) * s.slab
	} else {
		b.free = append(b.free, uint32(at%s.slab/b.size))
		b.used--
		s.used -= b.size
		if !b.open {
			b.open = true
			s.classes[b.size] = append(s.classes[b.size], i)
		}
		if b.used == 0 && len(s.classes[b.size]) > 1 {
			s.close(i)
		}
	}
	s.count--
}

// close makes a slab without slots in use free for any class.
func (s *slots) close(i int) {
	b := &s.slabs[i]
	list := s.classes[b.size]
	for k, j := range list {
		if j == i {
			list[k] = list[len(list)-1]
			s.classes[b.size] = list[:len(list)-1]
			break
		}
	}
	b.size, b.open = 0, false
}

// reclaim makes every slab without slots in use free for any class, and says
// whether there were such. The lock is held.
func (s *slots) reclaim() (some bool) {
	for i := range s.slabs {
		if b := &s.slabs[i]; b.size > 0 && b.used == 0 {
			s.close(i)
			some = true
		}
	}
	return some
}

// changed is closed at the next put.
func (s *slots) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := make(chan struct{})
	s.waiters = append(s.waiters, w)
	return w
}

func (s *slots) inUse() (bytes, count int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.count
}
