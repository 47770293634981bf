package j2kenc

import "math/bits"

// headerBits writes a packet header: after a byte 0xff the next has only seven
// bits (T.800 B.10.1).
type headerBits struct {
	out  []byte
	acc  byte
	left int // free bits of acc
}

func newHeaderBits() *headerBits { return &headerBits{left: 8} }

func (w *headerBits) put(v uint32, n int) {
	for n--; n >= 0; n-- {
		w.left--
		w.acc |= byte(v>>uint(n)&1) << w.left
		if w.left == 0 {
			w.next()
		}
	}
}

func (w *headerBits) next() {
	w.out = append(w.out, w.acc)
	w.left = 8
	if w.acc == 0xff {
		w.left = 7
	}
	w.acc = 0
}

// end pads the last byte; a header never ends in 0xff.
func (w *headerBits) end() []byte {
	if w.left < 8 {
		w.next()
	}
	if n := len(w.out); n > 0 && w.out[n-1] == 0xff {
		w.out = append(w.out, 0)
	}
	return w.out
}

// tagTree codes numbers of a two-dimensional array by the minima of their
// quads (T.800 B.10.2). Level 0 is the array itself.
type tagTree struct {
	levels []tagLevel
}

type tagLevel struct {
	w, h       int
	value, low []int
	known      []bool
}

func newTagTree(w, h int, values []int) *tagTree {
	t := &tagTree{}
	for {
		n := w * h
		t.levels = append(t.levels, tagLevel{w, h, values, make([]int, n), make([]bool, n)})
		if n <= 1 {
			return t
		}
		pw, ph := (w+1)/2, (h+1)/2
		parents := make([]int, pw*ph)
		for i := range parents {
			parents[i] = 1 << 30
		}
		for i, v := range values {
			p := i/w/2*pw + i%w/2
			parents[p] = min(parents[p], v)
		}
		w, h, values = pw, ph, parents
	}
}

// encode says whether the number at (x, y) is below the threshold, and as much
// of it as that takes.
func (t *tagTree) encode(out *headerBits, x, y, threshold int) {
	low := 0
	for k := len(t.levels) - 1; k >= 0; k-- {
		l := &t.levels[k]
		i := y>>k*l.w + x>>k
		low = max(low, l.low[i])
		for low < threshold && !l.known[i] {
			if low >= l.value[i] {
				out.put(1, 1)
				l.known[i] = true
				break
			}
			out.put(0, 1)
			low++
		}
		l.low[i] = low
	}
}

// passCount writes the number of coding passes (T.800 table B.4).
func passCount(out *headerBits, n int) {
	switch {
	case n == 1:
		out.put(0, 1)
	case n == 2:
		out.put(2, 2)
	case n <= 5:
		out.put(3<<2|uint32(n-3), 4)
	case n <= 36:
		out.put(15<<5|uint32(n-6), 9)
	default:
		out.put(511<<7|uint32(n-37), 16)
	}
}

// subband is a subband's coded code-blocks, row by row.
type subband struct {
	cols, rows int
	blocks     []codedBlock
	maxPlanes  int // M_b of T.800 equation E-2
}

// packet is the header and body of one resolution of one component.
func packet(bands []subband) []byte {
	out := newHeaderBits()
	out.put(1, 1)
	var body []byte
	for _, b := range bands {
		if len(b.blocks) == 0 {
			continue
		}
		absent, zeros := make([]int, len(b.blocks)), make([]int, len(b.blocks))
		for i, c := range b.blocks {
			zeros[i] = b.maxPlanes - c.planes
			if c.planes == 0 {
				absent[i] = 1
			}
		}
		inclusion, empty := newTagTree(b.cols, b.rows, absent), newTagTree(b.cols, b.rows, zeros)
		for i, c := range b.blocks {
			x, y := i%b.cols, i/b.cols
			inclusion.encode(out, x, y, 1)
			if c.planes == 0 {
				continue
			}
			empty.encode(out, x, y, 1<<20)
			passCount(out, c.passes())
			length(out, c)
			body = append(body, c.data...)
		}
	}
	return append(out.end(), body...)
}

// length writes a code-block's byte count (T.800 B.10.7); Lblock starts at 3.
func length(out *headerBits, c codedBlock) {
	const lblock = 3
	n := lblock + bits.Len(uint(c.passes())) - 1
	for need := bits.Len(uint(len(c.data))); n < need; n++ {
		out.put(1, 1)
	}
	out.put(0, 1)
	out.put(uint32(len(c.data)), n)
}
