package j2kenc

import "math/bits"

// band is the orientation of a subband: which direction is high-pass.
type band int

const (
	bandLL band = iota
	bandHL      // horizontally
	bandLH      // vertically
	bandHH
)

// Flags of a coefficient while its code-block is coded.
const (
	significant = 1 << iota
	negative
	visited
	refined
)

// blockCoder codes code-blocks bit plane by bit plane (T.800 annex D). Its
// arrays have a border of one coefficient.
type blockCoder struct {
	mq     mqEncoder
	w, h   int
	stride int
	band   band
	mag    []uint32
	flag   []uint8
}

// codedBlock is a code-block's data, all its passes in one codeword segment.
type codedBlock struct {
	data   []byte
	planes int // magnitude bit planes
}

// passes is the number of coding passes.
func (c codedBlock) passes() int { return max(3*c.planes-2, 0) }

// encode codes w by h coefficients, rows stride apart.
func (b *blockCoder) encode(p []int32, stride, w, h int, orientation band) codedBlock {
	b.w, b.h, b.stride, b.band = w, h, w+2, orientation
	n := (w + 2) * (h + 2)
	b.mag, b.flag = make([]uint32, n), make([]uint8, n)
	var all uint32
	for y := range h {
		for x := range w {
			i := (y+1)*b.stride + x + 1
			v := p[y*stride+x]
			if v < 0 {
				b.flag[i] = negative
				v = -v
			}
			b.mag[i] = uint32(v)
			all |= uint32(v)
		}
	}
	planes := bits.Len32(all)
	if planes == 0 {
		return codedBlock{}
	}
	b.mq.reset()
	for plane := planes - 1; plane >= 0; plane-- {
		if plane < planes-1 {
			b.scan(func(i int) { b.propagate(i, uint(plane)) })
			b.scan(func(i int) { b.refine(i, uint(plane)) })
		}
		b.cleanup(uint(plane))
		for i := range b.flag {
			b.flag[i] &^= visited
		}
	}
	return codedBlock{append([]byte(nil), b.mq.flush()...), planes}
}

// scan visits the coefficients in stripes of four rows, column by column (T.800
// D.1).
func (b *blockCoder) scan(f func(i int)) {
	for y0 := 0; y0 < b.h; y0 += 4 {
		for x := range b.w {
			for y := y0; y < min(y0+4, b.h); y++ {
				f((y+1)*b.stride + x + 1)
			}
		}
	}
}

// neighbours counts significant ones horizontally, vertically, diagonally.
func (b *blockCoder) neighbours(i int) (h, v, d int) {
	f, s := b.flag, b.stride
	h = int(f[i-1]&1 + f[i+1]&1)
	v = int(f[i-s]&1 + f[i+s]&1)
	d = int(f[i-s-1]&1 + f[i-s+1]&1 + f[i+s-1]&1 + f[i+s+1]&1)
	return h, v, d
}

// zeroContext is the context of a significance decision (T.800 table D.1).
func (b *blockCoder) zeroContext(i int) int {
	h, v, d := b.neighbours(i)
	if b.band == bandHH {
		hv := min(h+v, 2)
		switch {
		case d >= 3:
			return 8
		case d == 2:
			return 6 + min(hv, 1)
		case d == 1:
			return 3 + hv
		}
		return hv
	}
	if b.band == bandHL {
		h, v = v, h
	}
	switch {
	case h == 2:
		return 8
	case h == 1 && v > 0:
		return 7
	case h == 1:
		return 5 + min(d, 1)
	case v > 0:
		return 2 + v
	}
	return min(d, 2)
}

// sign codes a coefficient's sign (T.800 D.3.2) and makes it significant.
func (b *blockCoder) sign(i int) {
	of := func(j int) int {
		switch b.flag[j] & (significant | negative) {
		case significant:
			return 1
		case significant | negative:
			return -1
		}
		return 0
	}
	h := min(max(of(i-1)+of(i+1), -1), 1)
	v := min(max(of(i-b.stride)+of(i+b.stride), -1), 1)
	flip := uint8(0)
	if h < 0 || h == 0 && v < 0 {
		h, v, flip = -h, -v, 1
	}
	ctx := ctxSign + 3*h + v
	b.mq.encode(ctx, b.flag[i]&negative>>1^flip)
	b.flag[i] |= significant
}

func (b *blockCoder) bit(i int, plane uint) uint8 { return uint8(b.mag[i] >> plane & 1) }

// propagate is the significance propagation pass (T.800 D.3.1).
func (b *blockCoder) propagate(i int, plane uint) {
	if b.flag[i]&significant != 0 {
		return
	}
	ctx := b.zeroContext(i)
	if ctx == 0 {
		return
	}
	b.mq.encode(ctx, b.bit(i, plane))
	b.flag[i] |= visited
	if b.bit(i, plane) == 1 {
		b.sign(i)
	}
}

// refine is the magnitude refinement pass (T.800 D.3.3).
func (b *blockCoder) refine(i int, plane uint) {
	if b.flag[i]&(significant|visited) != significant {
		return
	}
	ctx := ctxMagnitude
	if b.flag[i]&refined != 0 {
		ctx += 2
	} else if h, v, d := b.neighbours(i); h+v+d > 0 {
		ctx++
	}
	b.mq.encode(ctx, b.bit(i, plane))
	b.flag[i] |= refined
}

// cleanup is the pass over all that is left (T.800 D.3.4); four insignificant
// ones in a column with insignificant surroundings are coded as a run.
func (b *blockCoder) cleanup(plane uint) {
	for y0 := 0; y0 < b.h; y0 += 4 {
		for x := range b.w {
			y := y0
			if b.runs(x, y0) {
				r := 0
				for r < 4 && b.bit((y0+r+1)*b.stride+x+1, plane) == 0 {
					r++
				}
				if r == 4 {
					b.mq.encode(ctxRun, 0)
					continue
				}
				b.mq.encode(ctxRun, 1)
				b.mq.encode(ctxUniform, uint8(r>>1))
				b.mq.encode(ctxUniform, uint8(r&1))
				y = y0 + r
				b.sign((y+1)*b.stride + x + 1)
				y++
			}
			for ; y < min(y0+4, b.h); y++ {
				b.clean((y+1)*b.stride+x+1, plane)
			}
		}
	}
}

func (b *blockCoder) clean(i int, plane uint) {
	if b.flag[i]&(significant|visited) != 0 {
		return
	}
	b.mq.encode(b.zeroContext(i), b.bit(i, plane))
	if b.bit(i, plane) == 1 {
		b.sign(i)
	}
}

// runs says whether a column of a stripe is coded as a run.
func (b *blockCoder) runs(x, y0 int) bool {
	if y0+4 > b.h {
		return false
	}
	for y := y0; y < y0+4; y++ {
		i := (y+1)*b.stride + x + 1
		if b.flag[i]&(significant|visited) != 0 || b.zeroContext(i) != 0 {
			return false
		}
	}
	return true
}
