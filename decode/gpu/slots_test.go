//go:build cgo && linux

package gpu

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSlotSize(t *testing.T) {
	for _, c := range []struct{ n, want int64 }{
		{0, 4096}, {1, 4096}, {4096, 4096}, {4097, 6144}, {6144, 6144}, {6145, 8192}, {8192, 8192}, {8193, 12288},
		{196608, 196608}, {196609, 262144}, {1 << 20, 1 << 20}, {1<<20 + 1, 3 << 19}, {3<<40 + 1, 1 << 42},
	} {
		if got := slotSize(c.n); got != c.want {
			t.Errorf("slotSize(%d) = %d, want %d", c.n, got, c.want)
		}
	}
	// A class holds what it is for, with at most half of it to spare, and is its
	// own class.
	for n, last := int64(smallestSlot+1), int64(smallestSlot); n < 1<<24; n += 1 + n/977 {
		size := slotSize(n)
		if size < n || 2*size >= 3*n || size < last || slotSize(size) != size {
			t.Fatalf("slotSize(%d) = %d after %d", n, size, last)
		}
		last = size
	}
}

// piece is what get gave for n bytes.
type piece struct{ at, n int64 }

// held is the pieces that are in use, in order.
type held []piece

// add puts a piece in its place. It returns false when that overlaps another.
func (h *held) add(p piece) bool {
	i, _ := slices.BinarySearchFunc(*h, p, func(a, b piece) int { return int(a.at - b.at) })
	if i > 0 && (*h)[i-1].at+(*h)[i-1].n > p.at || i < len(*h) && p.at+p.n > (*h)[i].at {
		return false
	}
	*h = slices.Insert(*h, i, p)
	return true
}

func (h *held) take(i int) piece {
	p := (*h)[i]
	*h = slices.Delete(*h, i, i+1)
	return p
}

// anySize is mostly of a few classes, as tiles are, and at times a run.
func anySize(rng *rand.Rand, slab int64) int64 {
	switch rng.IntN(8) {
	case 0:
		return 1 + rng.Int64N(3*slab)
	case 1:
		return 1 + rng.Int64N(slab)
	case 2:
		return slab/2 + rng.Int64N(3) - 1
	}
	return 3000 << rng.IntN(6)
}

// wholeAgain holds that a memory without pieces in use can be had in one, and by
// each class to the last slot.
func wholeAgain(t *testing.T, s *slots) {
	t.Helper()
	all := int64(len(s.slabs)) * s.slab
	s.reclaim()
	at, ok := s.get(all)
	if !ok || at != s.base {
		t.Fatalf("the whole memory: %d, %v", at, ok)
	}
	if _, ok := s.get(1); ok {
		t.Error("a slot of a full memory")
	}
	s.put(at)
	for size := int64(smallestSlot); size <= s.slab/2; size = slotSize(size + 1) {
		var h held
		for {
			at, ok := s.get(size)
			if !ok {
				break
			}
			if !h.add(piece{at, size}) || at < s.base || at+size > s.base+all {
				t.Fatalf("%d bytes at %d overlap or lie outside", size, at)
			}
		}
		if want := int(s.slab/size) * len(s.slabs); len(h) != want {
			t.Fatalf("%d slots of %d bytes, want %d", len(h), size, want)
		}
		for _, p := range h {
			s.put(p.at)
		}
		s.reclaim()
	}
	empty(t, s)
}

func empty(t *testing.T, s *slots) {
	t.Helper()
	if bytes, count := s.inUse(); bytes != 0 || count != 0 {
		t.Fatalf("%d bytes in %d slots are in use", bytes, count)
	}
}

// Pieces never overlap, whatever comes and goes, and nothing is lost.
func TestSlotsAtRandom(t *testing.T) {
	for name, c := range map[string]struct{ base, slab, bytes int64 }{
		"at 0":           {0, 1 << 18, 8 << 18},
		"behind a base":  {12345 << 12, 1 << 18, 8 << 18},
		"odd slabs":      {4096, 100_000, 1_250_000},
		"one slab":       {1 << 33, 1 << 20, 1 << 20},
		"a cut-off slab": {7, 1 << 17, 9<<17 + 5000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlots(c.base, c.bytes, c.slab)
			end := c.base + c.bytes/c.slab*c.slab
			rng := rand.New(rand.NewPCG(3, uint64(c.slab)))
			var h held
			gave, refused := 0, 0
			for step := range 20_000 {
				// Tides: the memory runs full and empty again.
				if len(h) > 0 && rng.IntN(100) < 35+30*(step/500%2) {
					s.put(h.take(rng.IntN(len(h))).at)
				} else if n := anySize(rng, c.slab); true {
					at, ok := s.get(n)
					if !ok {
						refused++
						s.reclaim()
						continue
					}
					gave++
					if at < c.base || at+n > end || !h.add(piece{at, n}) {
						t.Fatalf("step %d: %d bytes at %d overlap or lie outside", step, n, at)
					}
				}
				var sum int64
				for _, p := range h {
					sum += p.n
				}
				if bytes, count := s.inUse(); count != int64(len(h)) || bytes < sum || bytes > end-c.base {
					t.Fatalf("step %d: %d bytes in %d slots, want %d in %d", step, bytes, count, sum, len(h))
				}
			}
			if gave < 1000 || refused < 100 {
				t.Errorf("%d given, %d refused: too one-sided to tell", gave, refused)
			}
			for len(h) > 0 {
				s.put(h.take(rng.IntN(len(h))).at)
			}
			empty(t, s)
			wholeAgain(t, s)
		})
	}
}

// What is larger than half a slab takes whole slabs that lie together.
func TestSlotsRuns(t *testing.T) {
	const base, slab = 1 << 20, 1 << 16
	s := newSlots(base, 6*slab, slab)
	for _, c := range []struct{ n, slabs int64 }{{slab/2 + 1, 1}, {slab, 1}, {slab + 1, 2}, {3 * slab, 3}, {6 * slab, 6}} {
		at, ok := s.get(c.n)
		if bytes, count := s.inUse(); !ok || at != base || bytes != c.slabs*slab || count != 1 {
			t.Errorf("%d bytes: at %d, %v, %d bytes in %d slots in use", c.n, at, ok, bytes, count)
		}
		s.put(at)
	}
	if _, ok := s.get(6*slab + 1); ok {
		t.Error("more than there is")
	}
	var at [6]int64
	for i := range at {
		at[i], _ = s.get(slab)
	}
	s.put(at[1])
	s.put(at[3])
	if _, ok := s.get(2 * slab); ok {
		t.Error("a run of slabs that lie apart")
	}
	s.put(at[2])
	mid, ok := s.get(3 * slab)
	if !ok || mid != at[1] {
		t.Errorf("a run in the middle: %d, %v", mid, ok)
	}
	for _, a := range []int64{at[0], mid, at[4], at[5]} {
		s.put(a)
	}
	wholeAgain(t, s)
}

// The last slab of a class is kept for it until another needs it.
func TestSlotsReclaim(t *testing.T) {
	const slab = 1 << 16
	s := newSlots(0, 2*slab, slab)
	small, _ := s.get(1)
	other, _ := s.get(5000)
	s.put(small)
	if s.slabs[small/slab].size == 0 {
		t.Error("a slab was taken from its class though nobody needs it")
	}
	run, ok := s.get(slab)
	if !ok {
		t.Error("a slab without slots in use was not reclaimed")
	}
	if again, ok := s.get(5000); !ok || again == other || again/slab != other/slab {
		t.Errorf("a slab in use was reclaimed: %d beside %d", again, other)
	} else {
		s.put(again)
	}
	s.put(other)
	s.put(run)
	wholeAgain(t, s)
}

func TestSlotsChanged(t *testing.T) {
	s := newSlots(4096, 4<<16, 1<<16)
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	slot, _ := s.get(1)
	run, _ := s.get(1 << 17)
	first, second := s.changed(), s.changed()
	s.reclaim()
	more, _ := s.get(1)
	if closed(first) || closed(second) {
		t.Error("closed without a put")
	}
	s.put(slot)
	if !closed(first) || !closed(second) {
		t.Error("a put woke not all who wait")
	}
	third := s.changed()
	if closed(third) {
		t.Error("closed by a put that was before")
	}
	s.put(run)
	if !closed(third) {
		t.Error("a run's put woke nobody")
	}
	s.put(more)
	empty(t, s)
}

// Two pieces are had together or not at all, and nobody is woken for nothing.
func TestSlotsBoth(t *testing.T) {
	const slab = 1 << 16
	s := newSlots(4096, 3*slab, slab)
	a, b, ok := s.getBoth(2*slab, 5000)
	if !ok || a != 4096 || b < a+2*slab {
		t.Fatalf("%d, %d, %v", a, b, ok)
	}
	woken := s.changed()
	if _, _, ok := s.getBoth(5000, slab); ok {
		t.Error("a slab that is not there")
	}
	if bytes, n := s.inUse(); n != 2 || bytes != 2*slab+6144 {
		t.Errorf("%d bytes in %d pieces after a refusal", bytes, n)
	}
	if isClosed(woken) {
		t.Error("a refusal woke who waits")
	}
	s.put(a)
	s.put(b)
	if one, _, ok := s.getBoth(slab, 0); !ok {
		t.Error("one of two")
	} else {
		s.put(one)
	}
	wholeAgain(t, s)
}
