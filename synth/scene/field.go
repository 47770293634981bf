package scene

import "math"

// field is the slow part of the scene: where tissue is, where in a gland a
// point lies, and how strongly it is stained.
type field struct {
	w, h    float32 // period
	octaves []octave
	stain   lattice
	wobble  lattice
	gx, gy  float32 // size of a gland's cell
	nx, ny  int
	seed    uint32
	bias    float32
	outline bool
	cx, cy  float32 // of the outline, and its half axes
	rx, ry  float32
}

type octave struct {
	lattice
	weight float32
}

// sample is the field at one point: tissue is positive inside; gland is the
// distance from a gland's middle, 1 at its edge; stain multiplies colours.
type sample struct{ tissue, gland, stain float32 }

func newField(o Options) field {
	w, h := float64(o.PeriodX), float64(o.PeriodY)
	f := field{w: float32(w), h: float32(h), seed: o.Seed*977 + 11, bias: float32(o.Coverage)}
	for i, size := range []float64{2900, 1300, 560, 230, 90, 34} {
		weight := []float32{1, 0.55, 0.32, 0.15, 0.07, 0.035}[i]
		f.octaves = append(f.octaves, octave{newLattice(w, h, size, f.seed+uint32(i)), weight})
	}
	f.stain = newLattice(w, h, 700, f.seed+20)
	f.wobble = newLattice(w, h, 110, f.seed+21)
	const gland = 820
	f.nx, f.ny = max(1, int(w/gland)), max(1, int(h/gland))
	f.gx, f.gy = f.w/float32(f.nx), f.h/float32(f.ny)
	if !o.Repeat {
		f.outline = true
		f.cx, f.cy = float32(o.Width)*0.5, float32(o.Height)*0.5
		f.rx, f.ry = float32(o.Width)*0.47, float32(o.Height)*0.45
	}
	return f
}

// at samples the field at a level-0 point; detail finer than the downsample is
// left out.
func (f *field) at(x, y, downsample float32) sample {
	t := f.bias
	for i := range f.octaves {
		o := &f.octaves[i]
		if o.size < float64(5*downsample) {
			break
		}
		t += o.weight * o.at(x, y)
	}
	if f.outline {
		dx, dy := (x-f.cx)/f.rx, (y-f.cy)/f.ry
		t = 1.6*(1-float32(math.Sqrt(float64(dx*dx+dy*dy)))) + 0.45*(t-f.bias) + f.bias
	}
	s := sample{tissue: t, gland: 9, stain: 1 + 0.13*f.stain.at(x, y)}
	if t > -0.1 {
		s.gland = f.gland(x, y, downsample)
	}
	return s
}

// gland is the smallest relative distance to the glands around a point.
func (f *field) gland(x, y, downsample float32) float32 {
	var w float32
	if downsample < 24 {
		w = f.wobble.at(x, y)
	}
	ci, _ := floor32(x / f.gx)
	cj, _ := floor32(y / f.gy)
	best := float32(9)
	for j := cj - 1; j <= cj+1; j++ {
		for i := ci - 1; i <= ci+1; i++ {
			h := hash(wrap(i, f.nx), wrap(j, f.ny), f.seed+40)
			if h%8 < 2 {
				continue
			}
			a, b := float32(h>>8&0xff)/255, float32(h>>16&0xff)/255
			px, py := (float32(i)+0.25+0.5*a)*f.gx, (float32(j)+0.25+0.5*b)*f.gy
			r := f.gx * (0.26 + 0.16*float32(h>>24)/255)
			dx, dy := (x-px)/r, (y-py)/(r*(0.7+0.5*a))
			dx += 0.35 * b * dy
			if d := dx*dx + dy*dy; d < best {
				best = d
			}
		}
	}
	return float32(math.Sqrt(float64(best))) + 0.13*w
}
