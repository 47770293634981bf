// Package jpegenc encodes baseline JPEG (T.81) with the freedom that test slides
// need: stored colour, sampling, component ids, markers and tables are all
// choosable, and streams may be abbreviated.
//
// It writes the typical Huffman tables of T.81 K.3. Integer arithmetic only, so
// the same pixels give the same bytes everywhere.
package jpegenc

import (
	"fmt"
)

// Color is what the components of the stream are.
type Color int

const (
	// YCbCr converts RGB pixels; chroma has its own tables and sampling.
	YCbCr Color = iota
	// RGB stores the three channels as they are, all with the first tables.
	RGB
	// Gray stores one channel.
	Gray
	// CMYK stores four channels as they are, all with the first tables.
	CMYK
)

// Sampling is how many samples of the first component lie over one of the
// others, horizontally and vertically. The zero value is 4:4:4.
type Sampling struct{ H, V int }

// The samplings by their usual names.
var (
	S444 = Sampling{1, 1}
	S422 = Sampling{2, 1}
	S420 = Sampling{2, 2}
	S440 = Sampling{1, 2}
	S411 = Sampling{4, 1}
)

// Options is the form of the stream. The zero value is a whole 4:4:4 YCbCr
// stream of quality 75 without APPn markers.
type Options struct {
	Color    Color
	Sampling Sampling
	Quality  int    // 1 to 100 on the Independent JPEG Group's scale; 0 is 75
	IDs      []byte // component ids; nil: 1, 2, 3, 4
	JFIF     bool   // APP0, version 1.01
	// Adobe writes APP14 with this Transform (0 RGB or CMYK, 1 YCbCr, 2 YCCK).
	Adobe     bool
	Transform byte
	// Restart is the restart interval in MCUs; 0 is none.
	Restart int
	// Abbreviated leaves the tables out of Encode's streams: they stand in
	// Tables (T.81 B.5).
	Abbreviated bool
}

type component struct {
	id, h, v, table int
}

// Encoder encodes any number of images of the same form. It keeps scratch
// memory, so one goroutine uses it at a time.
type Encoder struct {
	o          Options
	comps      []component
	hMax, vMax int
	quants     [][64]uint8
	div        [2][64]divisor // in zigzag order
	dc, ac     [2][256]code
	full       [4]plane
	small      [4]*plane
	planes     [4]plane
}

// New checks the options and makes the tables.
func New(o Options) (*Encoder, error) {
	if o.Quality == 0 {
		o.Quality = 75
	}
	if o.Sampling == (Sampling{}) {
		o.Sampling = S444
	}
	n := o.Color.Components()
	switch {
	case n == 0:
		return nil, fmt.Errorf("jpegenc: unknown colour %d", o.Color)
	case o.Quality < 1 || o.Quality > 100:
		return nil, fmt.Errorf("jpegenc: quality %d is not within 1 to 100", o.Quality)
	case o.Sampling.H < 1 || o.Sampling.H > 4 || o.Sampling.V < 1 || o.Sampling.V > 4 || o.Sampling.H*o.Sampling.V > 8:
		return nil, fmt.Errorf("jpegenc: sampling %dx%d", o.Sampling.H, o.Sampling.V)
	case o.IDs != nil && len(o.IDs) != n:
		return nil, fmt.Errorf("jpegenc: %d component ids for %d components", len(o.IDs), n)
	case o.Restart < 0 || o.Restart > 0xffff:
		return nil, fmt.Errorf("jpegenc: restart interval %d", o.Restart)
	}
	e := &Encoder{o: o, hMax: o.Sampling.H, vMax: o.Sampling.V}
	if n == 1 { // a single component is coded block by block whatever its factors (T.81 A.2.2)
		e.hMax, e.vMax = 1, 1
	}
	for i := range n {
		c := component{id: i + 1, h: 1, v: 1}
		if o.IDs != nil {
			c.id = int(o.IDs[i])
		}
		if i == 0 {
			c.h, c.v = e.hMax, e.vMax
		} else if o.Color == YCbCr {
			c.table = 1
		}
		e.comps = append(e.comps, c)
	}
	e.makeTables()
	return e, nil
}

// Components is how many samples a pixel has, in the stream and as input; 0 for
// an unknown colour.
func (c Color) Components() int {
	switch c {
	case YCbCr, RGB:
		return 3
	case Gray:
		return 1
	case CMYK:
		return 4
	}
	return 0
}

// tableSets is 2 where chroma has its own tables.
func (e *Encoder) tableSets() int {
	if e.o.Color == YCbCr {
		return 2
	}
	return 1
}

func (e *Encoder) makeTables() {
	for t := range e.tableSets() {
		q := quant(&baseQuant[t], e.o.Quality)
		e.quants = append(e.quants, q)
		for k, i := range zigzag {
			e.div[t][k] = newDivisor(q[i])
		}
		e.dc[t] = huffSpecs[0][t].codes()
		e.ac[t] = huffSpecs[1][t].codes()
	}
}

// Encode appends the stream of a w by h image to dst. src is interleaved, with
// Color's number of bytes a pixel (RGB for YCbCr), rows stride bytes apart. Pixels
// beyond the size to whole MCUs repeat the last column and row.
func (e *Encoder) Encode(dst, src []byte, w, h, stride int) ([]byte, error) {
	n := len(e.comps)
	if w < 1 || h < 1 || w > 0xffff || h > 0xffff {
		return nil, fmt.Errorf("jpegenc: size %dx%d is not within 1 to 65535", w, h)
	}
	if stride < w*n || len(src) < (h-1)*stride+w*n {
		return nil, fmt.Errorf("jpegenc: %d bytes with stride %d do not hold %dx%d pixels", len(src), stride, w, h)
	}
	e.load(src, w, h, stride)
	dst = e.head(dst, w, h)
	dst = e.scan(dst, w, h)
	return append(dst, 0xff, markerEOI), nil
}
