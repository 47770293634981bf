package scene

import "math"

// hash mixes a lattice point and a seed into 32 random bits.
func hash(x, y int, seed uint32) uint32 {
	h := seed ^ uint32(x)*0x9e3779b1 ^ uint32(y)*0x85ebca77
	h ^= h >> 15
	h *= 0x2c1b3c6d
	h ^= h >> 12
	h *= 0x297a2d39
	return h ^ h>>15
}

// unit is a hash as a number from -1 to below 1.
func unit(h uint32) float32 { return float32(int32(h)) * (1.0 / (1 << 31)) }

// lattice is smooth noise of value -1 to 1 that repeats after nx by ny cells.
type lattice struct {
	nx, ny int
	sx, sy float32 // cells per pixel
	seed   uint32
	size   float64 // of a cell, pixels
}

// newLattice fits cells of about size pixels into a period of w by h.
func newLattice(w, h, size float64, seed uint32) lattice {
	nx, ny := max(1, int(math.Round(w/size))), max(1, int(math.Round(h/size)))
	return lattice{nx, ny, float32(float64(nx) / w), float32(float64(ny) / h), seed, size}
}

// wrap is x modulo n, never negative.
func wrap(x, n int) int {
	if x %= n; x < 0 {
		x += n
	}
	return x
}

// floor32 splits into the cell and the place in it, eased.
func floor32(v float32) (int, float32) {
	i := int(v)
	if float32(i) > v {
		i--
	}
	f := v - float32(i)
	return i, f * f * (3 - 2*f)
}

func (l *lattice) at(x, y float32) float32 {
	ix, fx := floor32(x * l.sx)
	iy, fy := floor32(y * l.sy)
	x0, x1 := wrap(ix, l.nx), wrap(ix+1, l.nx)
	y0, y1 := wrap(iy, l.ny), wrap(iy+1, l.ny)
	a, b := unit(hash(x0, y0, l.seed)), unit(hash(x1, y0, l.seed))
	c, d := unit(hash(x0, y1, l.seed)), unit(hash(x1, y1, l.seed))
	top, low := a+(b-a)*fx, c+(d-c)*fx
	return top + (low-top)*fy
}

// clamp01 limits v to 0..1.
func clamp01(v float32) float32 { return min(max(v, 0), 1) }
