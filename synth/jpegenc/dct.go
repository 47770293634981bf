package jpegenc

// The forward DCT works on rows, then columns, each by its symmetry: even
// outputs come from the sums of mirrored samples, odd ones from the
// differences. The constants are cos(k*pi/16)/2 times 2^13.
const (
	c1 = 4017
	c2 = 3784
	c3 = 3406
	c4 = 2896
	c5 = 2276
	c6 = 1567
	c7 = 799

	constBits = 13
	rowBits   = 3 // fraction bits kept between the passes
)

// block is 8x8 samples, level-shifted, and then coefficients, row by row.
type block [64]int32

// fdct1 transforms eight values at a stride of s and shifts the results right
// by n bits, rounded.
func fdct1(b *block, at, s int, n uint) {
	x0, x1, x2, x3 := int(b[at]), int(b[at+s]), int(b[at+2*s]), int(b[at+3*s])
	x7, x6, x5, x4 := int(b[at+7*s]), int(b[at+6*s]), int(b[at+5*s]), int(b[at+4*s])
	s0, s1, s2, s3 := x0+x7, x1+x6, x2+x5, x3+x4
	d0, d1, d2, d3 := x0-x7, x1-x6, x2-x5, x3-x4
	r := 1 << (n - 1)
	p, q := s0+s3, s1+s2
	u, v := s0-s3, s1-s2
	b[at] = int32((c4*(p+q) + r) >> n)
	b[at+4*s] = int32((c4*(p-q) + r) >> n)
	b[at+2*s] = int32((c2*u + c6*v + r) >> n)
	b[at+6*s] = int32((c6*u - c2*v + r) >> n)
	b[at+s] = int32((c1*d0 + c3*d1 + c5*d2 + c7*d3 + r) >> n)
	b[at+3*s] = int32((c3*d0 - c7*d1 - c1*d2 - c5*d3 + r) >> n)
	b[at+5*s] = int32((c5*d0 - c1*d1 + c7*d2 + c3*d3 + r) >> n)
	b[at+7*s] = int32((c7*d0 - c5*d1 + c3*d2 - c1*d3 + r) >> n)
}

// fdct replaces samples by the DCT of T.81 A.3.3 with rowBits fraction bits.
func (b *block) fdct() {
	for i := 0; i < 64; i += 8 {
		fdct1(b, i, 1, constBits-rowBits)
	}
	for i := 0; i < 8; i++ {
		fdct1(b, i, 8, constBits)
	}
}

// divisor quantizes without dividing: x/q is x*recip >> 32.
type divisor struct {
	half, recip uint64
}

func newDivisor(q uint8) divisor {
	d := uint64(q) << rowBits
	return divisor{d / 2, (1<<32)/d + 1}
}

// quantize rounds to the nearest multiple, halves away from zero.
func (d divisor) quantize(v int32) int32 {
	if v < 0 {
		return -int32((uint64(-v) + d.half) * d.recip >> 32)
	}
	return int32((uint64(v) + d.half) * d.recip >> 32)
}
