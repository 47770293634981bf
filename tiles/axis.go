package tiles

import (
	"math"
	"math/bits"
)

// axis maps the pixels of an answer to those of a source image along one axis.
// Positions are fixed point, so that every machine gets the same pixels: pixel
// i of the answer covers the source from edge(i) to edge(i+1), in 1/65536
// pixels.
type axis struct {
	origin int64  // where the answer's pixel 0 begins, in source pixels
	step   uint64 // source pixels an answer's pixel, 32.32 fixed point
	size   int64  // of the source image
}

const (
	one      = 1 << 32 // axis.step of an unscaled copy
	edgeBits = 16
	// maxScale bounds steps: 2^31 pixels of a source, far above any slide's.
	maxScale = 1 << 30
	// maxPosition bounds pixels of an answer, so that products fit 95 bits.
	maxPosition = 1 << 40
)

// stepOf is a ratio as a step, at least the smallest and at most maxScale.
func stepOf(ratio float64) uint64 {
	if !(ratio > 1.0/(1<<16)) {
		ratio = 1.0 / (1 << 16)
	}
	if ratio > maxScale {
		ratio = maxScale
	}
	return uint64(math.Round(ratio * one))
}

// edge is the position of pixel i's left edge: origin + floor(i*step), in
// 1/65536 pixels. i is not negative.
func (a axis) edge(i int64) int64 {
	hi, lo := bits.Mul64(uint64(i), a.step)
	return a.origin<<edgeBits + int64(hi<<(32+edgeBits)|lo>>(32-edgeBits))
}

// span is the half-open range of source pixels under the answer's [i0, i1), cut
// to the image. It is empty when they lie outside.
func (a axis) span(i0, i1 int64) (s0, s1 int64) {
	s0 = a.edge(i0) >> edgeBits
	s1 = (a.edge(i1) + 1<<edgeBits - 1) >> edgeBits
	s0, s1 = max(s0, 0), min(max(s1, s0+1), a.size)
	return s0, max(s0, s1)
}

// copies says that pixels are taken as they are.
func (a axis) copies() bool { return a.step == one }

// tap is the weights of one pixel of the answer along one axis: source pixels
// first, first+1, … It is empty outside the image.
type tap struct {
	first   int64
	weights []uint32 // their sum is weightOne
}

const (
	weightBits = 14
	weightOne  = 1 << weightBits
)

// appendTap computes the weights of pixel i: the length of each source pixel
// inside [edge(i), edge(i+1)), cut to the image, in parts of 1/16384. The cut
// points, not the lengths, are rounded (down), so that the sum is exact. A
// pixel whose whole range lies outside the image has no weights, unless clamp
// is set: then it is the nearest one inside.
func (a axis) appendTap(weights []uint32, i int64, clamp bool) (tap, []uint32) {
	lo, hi := a.edge(i), a.edge(i+1)
	hi = max(hi, lo+1)
	end := a.size << edgeBits
	if hi <= 0 || lo >= end {
		if !clamp {
			return tap{}, weights
		}
		lo = min(max(lo, 0), end-1)
		hi = lo + 1
	}
	lo, hi = max(lo, 0), min(hi, end)
	first, last := lo>>edgeBits, (hi-1)>>edgeBits
	start := len(weights)
	length := uint64(hi - lo)
	var before uint64
	for s := first; s <= last; s++ {
		cut := uint64(min(hi, (s+1)<<edgeBits) - lo)
		h, l := bits.Mul64(cut, weightOne)
		upto, _ := bits.Div64(h, l, length)
		weights = append(weights, uint32(upto-before))
		before = upto
	}
	return tap{first: first, weights: weights[start:]}, weights
}
