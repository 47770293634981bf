package tiles

import "sync/atomic"

// touches remembers which tiles were lately touched by regions: what is touched
// for the second time is decoded whole and kept, since a scan is going on. It is
// a lossy table of 32-bit names; a wrong guess costs time, never pixels.
type touches struct {
	clock atomic.Uint32
	slots [touchSlots]atomic.Uint64
}

const (
	touchSlots = 1 << 13
	// touchAge is how many later touches a touch is remembered for.
	touchAge = 4096
)

// touch notes a tile and says whether it had been touched lately.
func (t *touches) touch(h uint64) bool {
	now := t.clock.Add(1)
	s := &t.slots[h%touchSlots]
	old := s.Swap(h&^0xffffffff | uint64(now))
	return old != 0 && old>>32 == h>>32 && now-uint32(old) <= touchAge
}
