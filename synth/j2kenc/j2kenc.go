// Package j2kenc encodes 8-bit images as JPEG 2000 Part 1 codestreams (T.800),
// without loss: the reversible 5/3 wavelet, one tile, one layer, one precinct
// for each resolution.
package j2kenc

import (
	"encoding/binary"
	"fmt"
)

// Options is the form of the stream.
type Options struct {
	// Levels of wavelet decomposition, at most 32; 0: 5, fewer for small images.
	// -1 is none.
	Levels int
	// Transform applies the reversible component transform to three components.
	// The decoder undoes it, so the components stay what they are.
	Transform bool
}

const (
	blockSize = 64
	precision = 8
	guardBits = 2
)

// Encode makes the codestream of w by h pixels with interleaved components (1
// to 4).
func Encode(pix []byte, w, h, components int, o Options) ([]byte, error) {
	switch {
	case w < 1 || h < 1 || w > 1<<15 || h > 1<<15:
		return nil, fmt.Errorf("j2kenc: size %dx%d is not within 1 to 32768", w, h)
	case components < 1 || components > 4 || len(pix) < w*h*components:
		return nil, fmt.Errorf("j2kenc: %d bytes do not hold %dx%d pixels of %d components", len(pix), w, h, components)
	case o.Levels < -1 || o.Levels > 32:
		return nil, fmt.Errorf("j2kenc: %d levels", o.Levels)
	}
	levels := max(o.Levels, 0)
	if o.Levels == 0 {
		for levels < 5 && min(w, h)>>levels > 8 {
			levels++
		}
	}
	e := encoder{w: w, h: h, levels: levels, transform: o.Transform && components == 3}
	e.load(pix, components)
	tile := e.packets()
	out := e.mainHeader()
	out = binary.BigEndian.AppendUint16(out, 0xff90) // SOT
	out = binary.BigEndian.AppendUint16(out, 10)
	out = binary.BigEndian.AppendUint16(out, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(14+len(tile)))
	out = append(out, 0, 1, 0xff, 0x93) // only part; SOD
	return append(append(out, tile...), 0xff, 0xd9), nil
}

type encoder struct {
	w, h, levels int
	transform    bool
	comps        [][]int32
}

// load separates the components, shifts them about zero and transforms them.
func (e *encoder) load(pix []byte, n int) {
	for c := range n {
		p := make([]int32, e.w*e.h)
		for i := range p {
			p[i] = int32(pix[i*n+c]) - 1<<(precision-1)
		}
		e.comps = append(e.comps, p)
	}
	if e.transform { // T.800 G.2.1
		r, g, b := e.comps[0], e.comps[1], e.comps[2]
		for i := range r {
			r[i], g[i], b[i] = (r[i]+2*g[i]+b[i])>>2, b[i]-g[i], r[i]-g[i]
		}
	}
	for _, p := range e.comps {
		transform(p, e.w, e.w, e.h, e.levels)
	}
}

// exponent is a subband's dynamic range in bits (T.800 E.1): the precision, the
// filter's gain, and a bit for the differences of the component transform.
func (e *encoder) exponent(b band) int {
	gain := [...]int{bandLL: 0, bandHL: 1, bandLH: 1, bandHH: 2}[b]
	if e.transform {
		gain++
	}
	return precision + gain
}

// mainHeader is SOC, SIZ, COD and QCD (T.800 A.4 to A.6).
func (e *encoder) mainHeader() []byte {
	be := binary.BigEndian
	n := len(e.comps)
	out := []byte{0xff, 0x4f, 0xff, 0x51}
	out = be.AppendUint16(out, uint16(38+3*n))
	out = be.AppendUint16(out, 0)
	for _, v := range []int{e.w, e.h, 0, 0, e.w, e.h, 0, 0} {
		out = be.AppendUint32(out, uint32(v))
	}
	out = be.AppendUint16(out, uint16(n))
	for range n {
		out = append(out, precision-1, 1, 1)
	}
	var mct byte
	if e.transform {
		mct = 1
	}
	// LRCP, one layer; code-blocks of 64x64; the 5/3 filter.
	out = append(out, 0xff, 0x52, 0, 12, 0, 0, 0, 1, mct, byte(e.levels), 4, 4, 0, 1)
	out = append(out, 0xff, 0x5c, 0, byte(4+3*e.levels), guardBits<<5, byte(e.exponent(bandLL)<<3))
	for range e.levels {
		for _, b := range []band{bandHL, bandLH, bandHH} {
			out = append(out, byte(e.exponent(b)<<3))
		}
	}
	return out
}

// packets is the tile's data, resolution by resolution.
func (e *encoder) packets() (out []byte) {
	var coder blockCoder
	for r := 0; r <= e.levels; r++ {
		for _, p := range e.comps {
			var bands []subband
			if r == 0 {
				w, h := e.size(e.levels)
				bands = append(bands, e.subband(&coder, p, 0, 0, w, h, bandLL))
			} else {
				// The high halves of the split that made the next lower resolution.
				w, h := e.size(e.levels - r)
				lw, lh := e.size(e.levels - r + 1)
				bands = append(bands,
					e.subband(&coder, p, lw, 0, w-lw, lh, bandHL),
					e.subband(&coder, p, 0, lh, lw, h-lh, bandLH),
					e.subband(&coder, p, lw, lh, w-lw, h-lh, bandHH))
			}
			out = append(out, packet(bands)...)
		}
	}
	return out
}

// size is the image's after so many halvings.
func (e *encoder) size(halvings int) (w, h int) {
	r := 1<<halvings - 1
	return (e.w + r) >> halvings, (e.h + r) >> halvings
}

func (e *encoder) subband(coder *blockCoder, p []int32, x, y, w, h int, b band) subband {
	s := subband{maxPlanes: guardBits + e.exponent(b) - 1}
	if w == 0 || h == 0 {
		return s
	}
	s.cols, s.rows = (w+blockSize-1)/blockSize, (h+blockSize-1)/blockSize
	for j := 0; j < h; j += blockSize {
		for i := 0; i < w; i += blockSize {
			at := (y+j)*e.w + x + i
			s.blocks = append(s.blocks, coder.encode(p[at:], e.w, min(blockSize, w-i), min(blockSize, h-j), b))
		}
	}
	return s
}
