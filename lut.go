package microtome

import (
	"fmt"
	"math"
)

// LUT has the bits that stand for each 8-bit sample of up to three channels.
type LUT = [3][256]uint32

// NewLUT is the one place where samples become floats, for answers of the CPU and
// of devices: (x/255 - mean) / std of sample x, in this order in float64, then
// rounded once to the nearest of t, ties to even. mean 0 and std 1 give x/255. A
// std that is not above 0, and values that t can't hold, are ErrMalformed.
func NewLUT(t DataType, mean, std [3]float64) (*LUT, error) {
	lut := new(LUT)
	for c := range lut {
		if math.IsNaN(mean[c]) || math.IsInf(mean[c], 0) {
			return nil, fmt.Errorf("mean of channel %d is %v, not a finite number: %w", c, mean[c], ErrMalformed)
		}
		if !(std[c] > 0) || math.IsInf(std[c], 0) {
			return nil, fmt.Errorf("std of channel %d is %v, not a finite number above 0: %w", c, std[c], ErrMalformed)
		}
		for x := range lut[c] {
			v := (float64(x)/255 - mean[c]) / std[c]
			bits, ok := t.bits(v)
			if !ok {
				return nil, fmt.Errorf("mean %v and std %v of channel %d make %.6g of sample %d, which %s can't hold: %w", mean[c], std[c], c, v, x, t, ErrMalformed)
			}
			lut[c][x] = bits
		}
	}
	return lut, nil
}

// bits are v's in the type; ok is false when it is beyond what the type holds.
func (t DataType) bits(v float64) (bits uint32, ok bool) {
	switch t {
	case Float16:
		return narrow(v, 10, 5)
	case BFloat16:
		return narrow(v, 7, 8)
	case Float32:
		return narrow(v, 23, 8)
	}
	return 0, false
}

// narrow rounds v once, to the nearest number of a binary format of IEEE 754
// (§3.4) with so many bits of fraction and exponent, ties to even, subnormals
// included. ok is false, and the bits are infinity's or a NaN's, when there is none.
func narrow(v float64, fraction, exponent int) (bits uint32, ok bool) {
	sign := uint32(math.Float64bits(v)>>63) << (fraction + exponent)
	infinity := uint32(1<<exponent-1) << fraction
	switch v = math.Abs(v); {
	case v != v:
		return infinity + 1<<(fraction-1), false
	case math.IsInf(v, 0):
		return sign | infinity, false
	case v == 0:
		return sign, true
	}
	// v is a whole number of steps, and a bit: the steps of its power of two, or
	// the subnormals'.
	least := 2 - 1<<(exponent-1)
	e := max(math.Ilogb(v), least)
	steps := math.RoundToEven(math.Ldexp(v, fraction-e))
	// The leading bit of the steps adds one to the exponent, and so does a carry.
	whole := uint64(e-least)<<fraction + uint64(steps)
	if whole >= uint64(infinity) {
		return sign | infinity, false
	}
	return sign | uint32(whole), true
}
