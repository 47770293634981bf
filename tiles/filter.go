package tiles

import (
	"image"

	"github.com/microtome/microtome"
)

// filter is the area filter. For each pixel of the answer:
//
//	row(s)  = (sum over source columns of wx * v + 2^5) >> 6       8.8 fixed point
//	answer  = (sum over source rows of wy * row(s) + 2^21) >> 22
//
// where wx and wy are the 14-bit weights of axis.appendTap, each summing to
// 2^14, and v are the 8-bit samples. All sums fit 32 unsigned bits (255 * 2^8 *
// 2^14 < 2^30). A pixel without weights on either axis is background.
type filter struct {
	taps   []tap
	ay     axis
	clamp  bool
	ch     int
	bg     microtome.RGB
	line   []uint16 // one source row, filtered across
	lineOf int64    // the source row that line holds, -1: none
	sums   []uint32 // one row of the answer
	vert   []uint32 // weights of the row at work
}

// newFilter computes the weights across of w pixels from x0.
func newFilter(ax, ay axis, x0 int64, w int, clamp bool, ch int, bg microtome.RGB) *filter {
	f := &filter{
		taps: make([]tap, w), ay: ay, clamp: clamp, ch: ch, bg: bg, lineOf: -1,
		line: make([]uint16, w*ch), sums: make([]uint32, w*ch),
	}
	// Neighbours share at most one source pixel.
	weights := make([]uint32, 0, min(int64(w)*int64(ax.step>>32+2), ax.size+2*int64(w)))
	for i := range f.taps {
		f.taps[i], weights = ax.appendTap(weights, x0+int64(i), clamp)
	}
	return f
}

// rows makes rows [j0, j1) of dst, the first of which is row y0 of the axis.
// band holds the part src of the source; nil: nothing there.
func (f *filter) rows(dst *canvas, j0, j1 int, y0 int64, band *canvas, src image.Rectangle) {
	f.lineOf = -1
	for j := j0; j < j1; j++ {
		var t tap
		t, f.vert = f.ay.appendTap(f.vert[:0], y0+int64(j), f.clamp)
		if band == nil || len(t.weights) == 0 {
			dst.fill(0, j, dst.w, j+1, f.bg)
			continue
		}
		clear(f.sums)
		f.add(t, band, src)
		f.store(dst, j)
	}
}

// add adds the source rows that both the tap and the band have to the sums.
func (f *filter) add(t tap, band *canvas, src image.Rectangle) {
	for n, wy := range t.weights {
		ly := t.first + int64(n)
		if ly < int64(src.Min.Y) || ly >= int64(src.Max.Y) {
			continue
		}
		f.across(band, src, ly)
		for i, v := range f.line {
			f.sums[i] += wy * uint32(v)
		}
	}
}

// store writes the sums as row j of dst.
func (f *filter) store(dst *canvas, j int) {
	out := dst.pix[j*dst.w*dst.ch:][:dst.w*dst.ch]
	for i, s := range f.sums {
		out[i] = byte((s + 1<<21) >> 22)
	}
}

// across filters source row ly into f.line.
func (f *filter) across(band *canvas, src image.Rectangle, ly int64) {
	if f.lineOf == ly {
		return
	}
	f.lineOf = ly
	row := band.pix[(int(ly)-src.Min.Y)*band.w*band.ch:][:band.w*band.ch]
	if f.ch == 1 {
		f.acrossGrey(row, src.Min.X)
		return
	}
	for i := range f.taps {
		t := &f.taps[i]
		out := f.line[3*i:][:3]
		if len(t.weights) == 0 {
			out[0], out[1], out[2] = uint16(f.bg.R)<<8, uint16(f.bg.G)<<8, uint16(f.bg.B)<<8
			continue
		}
		var r, g, b uint32 = 1 << 5, 1 << 5, 1 << 5
		px := row[3*(int(t.first)-src.Min.X):][:3*len(t.weights)]
		for _, w := range t.weights {
			r += w * uint32(px[0])
			g += w * uint32(px[1])
			b += w * uint32(px[2])
			px = px[3:]
		}
		out[0], out[1], out[2] = uint16(r>>6), uint16(g>>6), uint16(b>>6)
	}
}

func (f *filter) acrossGrey(row []byte, x0 int) {
	for i := range f.taps {
		t := &f.taps[i]
		if len(t.weights) == 0 {
			f.line[i] = uint16(luma(f.bg)) << 8
			continue
		}
		var v uint32 = 1 << 5
		for n, w := range t.weights {
			v += w * uint32(row[int(t.first)-x0+n])
		}
		f.line[i] = uint16(v >> 6)
	}
}
