// Package scene paints haematoxylin-and-eosin-like tissue: pink stroma, purple
// glands with nuclei, white background. Any rectangle of any power-of-two
// downsample is painted by itself, always the same for a seed.
package scene

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
)

// Detail tunes the tissue's texture at one level.
type Detail struct {
	Contrast float64 // 1 leaves it as it is
	Grain    float64 // amplitude of noise added, in sample values
}

// Options is what a scene looks like.
type Options struct {
	Seed          uint32
	Width, Height int // of level 0, pixels
	// Repeat paints an endless pattern that recurs after PeriodX and PeriodY
	// level-0 pixels, multiples of 1024; otherwise one piece of tissue fills the
	// slide.
	Repeat           bool
	PeriodX, PeriodY int
	// Coverage shifts the share of tissue: 0 is about half, 1 nearly all.
	Coverage float64
	// Detail is by level of downsample 1, 2, 4 and so on; missing ones are plain.
	Detail []Detail
}

// Scene is ready to be painted from any number of goroutines.
type Scene struct {
	o          Options
	field      field
	stroma     mips
	epithelium mips
}

// Background is the colour of bare glass.
var Background = [3]uint8{244, 243, 245}

// lumen is the colour inside a gland.
var lumen = rgb{240, 232, 238}

// New prepares the textures.
func New(o Options) (*Scene, error) {
	if o.Width < 1 || o.Height < 1 {
		return nil, fmt.Errorf("scene: size %dx%d", o.Width, o.Height)
	}
	if !o.Repeat {
		o.PeriodX, o.PeriodY = (o.Width/period+1)*period, (o.Height/period+1)*period
	}
	if o.PeriodX < period || o.PeriodY < period || o.PeriodX%period != 0 || o.PeriodY%period != 0 {
		return nil, fmt.Errorf("scene: period %dx%d is no multiple of %d", o.PeriodX, o.PeriodY, period)
	}
	s := &Scene{o: o, field: newField(o)}
	s.stroma = stroma(o.Seed*31+1).pyramid(o.Seed+5, o.Detail)
	s.epithelium = epithelium(o.Seed*31+2).pyramid(o.Seed+6, o.Detail)
	return s, nil
}

// Key names a tile's content: tiles of a downsample with the same key look the
// same.
func (s *Scene) Key(x, y, downsample int) [2]int {
	if !s.o.Repeat {
		return [2]int{x, y}
	}
	return [2]int{x * downsample % s.o.PeriodX, y * downsample % s.o.PeriodY}
}

func detailOf(d []Detail, level int) Detail {
	if level < len(d) {
		return d[level]
	}
	return Detail{Contrast: 1}
}

// step is the distance, in the level's pixels, of the points at which the field
// is sampled.
const step = 8

// Paint fills dst, w*h*3 bytes of RGB, with the rectangle whose top left pixel
// is (x, y) at a power-of-two downsample, and says whether any of it is tissue.
func (s *Scene) Paint(dst []uint8, x, y, w, h, downsample int) bool {
	level := min(bits.Len(uint(downsample))-1, len(s.stroma)-1)
	p := painter{
		s: s, dst: dst, x: x, y: y, w: w, h: h,
		stroma: &s.stroma[level], epithelium: &s.epithelium[level],
		edge: max(300/float32(downsample), 18), ring: max(90/float32(downsample), 5),
	}
	ox, oy := x%step, y%step // the grid of samples is the level's, not the rectangle's
	if downsample > 128 {    // the islands are down to some pixels: nothing is sharp
		p.edge = 5
	}
	cols := (ox+w+step-1)/step + 1
	rows := [2][]sample{make([]sample, cols), make([]sample, cols)}
	d := float32(downsample)
	fill := func(row []sample, ly int) {
		for i := range row {
			row[i] = s.field.at((float32(x-ox+i*step)+0.5)*d, (float32(ly)+0.5)*d, d)
		}
	}
	fill(rows[0], y-oy)
	any := false
	for j := -oy; j < h; j += step {
		fill(rows[1], y+j+step)
		for i := 0; i+1 < cols; i++ {
			any = p.block(i*step-ox, j, [4]sample{rows[0][i], rows[0][i+1], rows[1][i], rows[1][i+1]}) || any
		}
		rows[0], rows[1] = rows[1], rows[0]
	}
	return any
}

// parallel runs f for 0 to n-1 on all processors.
func parallel(n int, f func(i int)) {
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			for i := k; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}
