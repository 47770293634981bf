package scene

import "math"

// period is the size of the tissue textures in level-0 pixels; a power of two,
// so that every coarser copy repeats evenly too.
const period = 1024

// rgb is a colour with room for arithmetic.
type rgb [3]float32

func mix(a, b rgb, t float32) rgb {
	for i := range a {
		a[i] += (b[i] - a[i]) * t
	}
	return a
}

// texture is a square picture that repeats in both directions.
type texture struct {
	n   int
	pix []uint8 // n*n*3
}

// mips is a texture at downsample 1, 2, 4 and so on.
type mips []texture

// stroma is pink collagen in wavy bundles with clefts and a few thin nuclei.
func stroma(seed uint32) texture {
	warp := newLattice(period, period, 146, seed)
	sway := newLattice(period, period, 64, seed+1)
	fine := newLattice(period, period, 9.3, seed+2)
	hue := newLattice(period, period, 85, seed+3)
	nuclei := newCells(period, 52, seed+4)
	return paint(func(x, y float32) rgb {
		u := x*0.45 + 46*warp.at(x, y) + 14*sway.at(x, y)
		v := y * (2 * math.Pi / period)
		s := float32(math.Sin(float64(v*34 + u*(2*math.Pi/period)*20)))
		f := fine.at(x, y)
		c := mix(rgb{233, 160, 190}, rgb{206, 92, 140}, clamp01(0.45+0.4*s+0.35*f))
		c = mix(c, rgb{222, 130, 176}, clamp01(0.5+0.7*hue.at(x, y)))
		gap := clamp01((s*0.6 + 0.9*sway.at(x+300, y+170) - 0.62 + 0.25*f) * 4)
		c = mix(c, rgb{246, 236, 242}, gap)
		d, id := nuclei.nearest(x, y, 0.5, 2.3)
		if id%3 == 0 {
			c = mix(c, rgb{88, 52, 118}, clamp01((7.5-d+1.5*f)*0.5))
		}
		return c
	})
}

// epithelium is purple cytoplasm packed with round nuclei.
func epithelium(seed uint32) texture {
	fine := newLattice(period, period, 4.1, seed)
	mid := newLattice(period, period, 17, seed+1)
	hue := newLattice(period, period, 110, seed+2)
	nuclei := newCells(period, 30, seed+3)
	return paint(func(x, y float32) rgb {
		f, m := fine.at(x, y), mid.at(x, y)
		c := mix(rgb{196, 138, 186}, rgb{164, 96, 154}, clamp01(0.5+0.4*m+0.3*f))
		c = mix(c, rgb{214, 140, 180}, clamp01(0.3+0.6*hue.at(x, y)))
		d, id := nuclei.nearest(x, y, 0.85, 1.15)
		size := 8 + float32(id%5)
		in := clamp01((size - d + 1.2*m) * 0.45)
		dark := mix(rgb{98, 58, 132}, rgb{58, 32, 92}, clamp01(0.5+0.55*f+0.3*m))
		if id%11 == 0 {
			dark = mix(dark, rgb{150, 112, 178}, 0.5)
		}
		return mix(c, dark, in)
	})
}

// paint makes a texture of a colour function.
func paint(at func(x, y float32) rgb) texture {
	t := texture{n: period, pix: make([]uint8, period*period*3)}
	parallel(period, func(y int) {
		for x := range period {
			c := at(float32(x), float32(y))
			for i, v := range c {
				t.pix[(y*period+x)*3+i] = uint8(min(max(v, 0), 255))
			}
		}
	})
	return t
}

// cells is a jittered grid of points, one a cell, that repeats.
type cells struct {
	n    int
	size float32
	seed uint32
}

func newCells(period, size float64, seed uint32) cells {
	n := int(period / size)
	return cells{n, float32(period / float64(n)), seed}
}

// nearest is the distance to the closest point, its axes stretched by sx and sy,
// and a number that belongs to that point.
func (c *cells) nearest(x, y, sx, sy float32) (float32, uint32) {
	cx, cy := int(x/c.size), int(y/c.size)
	best, id := float32(math.MaxFloat32), uint32(0)
	for j := cy - 1; j <= cy+1; j++ {
		for i := cx - 1; i <= cx+1; i++ {
			h := hash(wrap(i, c.n), wrap(j, c.n), c.seed)
			px := (float32(i) + 0.15 + 0.7*float32(h&0xffff)/0xffff) * c.size
			py := (float32(j) + 0.15 + 0.7*float32(h>>16)/0xffff) * c.size
			dx, dy := (px-x)*sx, (py-y)*sy
			if d := dx*dx + dy*dy; d < best {
				best, id = d, h>>3
			}
		}
	}
	return float32(math.Sqrt(float64(best))), id
}

// shrink halves a texture by averaging.
func (t texture) shrink() texture {
	n := t.n / 2
	s := texture{n: n, pix: make([]uint8, n*n*3)}
	for y := range n {
		for x := range n {
			for c := range 3 {
				i := (2*y*t.n+2*x)*3 + c
				sum := int(t.pix[i]) + int(t.pix[i+3]) + int(t.pix[i+3*t.n]) + int(t.pix[i+3*t.n+3])
				s.pix[(y*n+x)*3+c] = uint8((sum + 2) / 4)
			}
		}
	}
	return s
}

// pyramid is the texture at every downsample, each roughened for its level.
func (t texture) pyramid(seed uint32, detail []Detail) mips {
	var m mips
	for level := 0; t.n >= 1; level++ {
		m = append(m, t.rough(seed, level, detailOf(detail, level)))
		if t.n == 1 {
			break
		}
		t = t.shrink()
	}
	return m
}

// rough is a copy with its contrast scaled about the mean and grain added.
func (t texture) rough(seed uint32, level int, d Detail) texture {
	if d == (Detail{Contrast: 1}) {
		return t
	}
	var mean [3]float32
	for i, v := range t.pix {
		mean[i%3] += float32(v)
	}
	for i := range mean {
		mean[i] /= float32(t.n * t.n)
	}
	out := texture{n: t.n, pix: make([]uint8, len(t.pix))}
	for i, v := range t.pix {
		g := unit(hash(i, level, seed)) * 0.4
		if d.Grain != 0 {
			g += unit(hash(i/3, level, seed+1))
		}
		c := mean[i%3]
		out.pix[i] = uint8(min(max(c+(float32(v)-c)*float32(d.Contrast)+g*float32(d.Grain), 0), 255))
	}
	return out
}
