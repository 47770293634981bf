package synth

import (
	"bytes"
	"fmt"

	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/scene"
	"github.com/microtome/microtome/synth/tilecodec"
)

// Sizes of the associated images, as Aperio's scanners have them.
const (
	thumbnailWidth = 1024
	labelWidth     = 387
	labelHeight    = 463
	macroWidth     = 1280
	macroHeight    = 431
	aperioRows     = 16 // rows per strip
	lzwRows        = 4  // rows per strip of the label
)

// picture is RGB pixels.
type picture struct {
	w, h int
	pix  []byte
}

func newPicture(w, h int, c [3]byte) picture {
	return picture{w, h, bytes.Repeat(c[:], w*h)}
}

// fill paints a rectangle, cut to the picture.
func (p picture) fill(x, y, w, h int, c [3]byte) {
	for j := max(y, 0); j < min(y+h, p.h); j++ {
		for i := max(x, 0); i < min(x+w, p.w); i++ {
			copy(p.pix[(j*p.w+i)*3:], c[:])
		}
	}
}

func backgroundPixels(n int) []byte { return bytes.Repeat(scene.Background[:], n) }

// overview is the whole slide at a size, averaged from the smallest downsample
// that is not smaller.
func (wr *writer) overview(w, h int) picture {
	d := 1
	for wr.s.Width/(2*d) >= w && wr.s.Height/(2*d) >= h {
		d *= 2
	}
	lw, lh := max(wr.s.Width/d, 1), max(wr.s.Height/d, 1)
	big := make([]byte, lw*lh*3)
	wr.scene.Paint(big, 0, 0, lw, lh, d)
	p := picture{w, h, make([]byte, w*h*3)}
	for y := range h {
		y0 := y * lh / h
		y1 := max((y+1)*lh/h, y0+1)
		for x := range w {
			x0 := x * lw / w
			x1 := max((x+1)*lw/w, x0+1)
			average(p.pix[(y*w+x)*3:], big, lw, x0, y0, x1, y1)
		}
	}
	return p
}

// average writes the mean colour of a rectangle of pix, stride pixels wide.
func average(dst, pix []byte, stride, x0, y0, x1, y1 int) {
	var sum [3]int
	n := (x1 - x0) * (y1 - y0)
	for y := y0; y < y1; y++ {
		for i := (y*stride + x0) * 3; i < (y*stride+x1)*3; i++ {
			sum[(i-(y*stride+x0)*3)%3] += int(pix[i])
		}
	}
	for c, v := range sum {
		dst[c] = byte((v + n/2) / n)
	}
}

func (wr *writer) thumbnail() error {
	w := min(thumbnailWidth, wr.s.Width)
	h := max(wr.s.Height*w/wr.s.Width, 1)
	sw, sh := wr.scan()
	text := fmt.Sprintf("%s%dx%d -> %dx%d - %s", aperioHead, sw, sh, w, h, wr.aperioKeys())
	return wr.associated(wr.overview(w, h), text, 0)
}

// label is a printed sticker: a box like a barcode and lines like text.
func (wr *writer) label() error {
	p := newPicture(labelWidth, labelHeight, [3]byte{235, 235, 235})
	ink := [3]byte{40, 40, 40}
	for j := range 18 {
		for i := range 18 {
			if (uint32(i*7+j*13)*2654435761+wr.s.Seed)>>29&1 == 1 || i == 0 || j == 17 {
				p.fill(60+i*8, 60+j*8, 8, 8, ink)
			}
		}
	}
	for line := range 5 {
		for i, x := 0, 60; x < 320; i++ {
			n := 8 + (i*5+line*3)%9
			p.fill(x, 250+line*34, n, 18, ink)
			x += n + 4 + (i+line)%3*5
		}
	}
	if wr.s.Associated == WholeJPEG {
		return wr.associated(p, fmt.Sprintf("%slabel %dx%d", aperioHead, p.w, p.h), 1)
	}
	return wr.lzwStrips(p, fmt.Sprintf("%slabel %dx%d", aperioHead, p.w, p.h), 1)
}

// macro is the glass slide from afar: the label on the left, the scan on the
// right.
func (wr *writer) macro() error {
	p := newPicture(macroWidth, macroHeight, [3]byte{225, 225, 225})
	p.fill(20, 20, 330, 390, [3]byte{236, 236, 232})
	p.fill(60, 150, 240, 120, [3]byte{60, 60, 60})
	o := wr.overview(800, 320)
	for y := range o.h {
		copy(p.pix[((60+y)*p.w+400)*3:], o.pix[y*o.w*3:(y+1)*o.w*3])
	}
	return wr.associated(p, fmt.Sprintf("%smacro %dx%d", aperioHead, p.w, p.h), 9)
}

// associated writes a JPEG picture in strips, or one whole stream.
func (wr *writer) associated(p picture, text string, subfile uint32) error {
	o, rows := jpegenc.Options{Quality: 75, Abbreviated: true}, aperioRows
	if wr.s.Codec == JPEGRGB {
		o.Color = jpegenc.RGB
	}
	if wr.s.Associated == WholeJPEG {
		o, rows = jpegenc.Options{Quality: 75, JFIF: true}, p.h
	}
	e, err := jpegenc.New(o)
	if err != nil {
		return err
	}
	encode := func(pix []byte, h int) ([]byte, error) { return e.Encode(nil, pix, p.w, h, p.w*3) }
	offsets, counts, err := wr.strips(p, rows, encode)
	if err != nil {
		return err
	}
	photometric := uint16(photometricYCbCr)
	if o.Color == jpegenc.RGB {
		photometric = photometricRGB
	}
	d := wr.imageDir(p.w, p.h, 3, 7, photometric).Long(tagNewSubfileType, subfile).Short(tagPlanar, 1)
	d.ASCII(tagDescription, text).Long(tagRowsPerStrip, uint32(rows))
	wr.offsets(d, tagStripOffsets, offsets)
	wr.offsets(d, tagStripCounts, counts)
	if o.Abbreviated {
		d.Undefined(tagJPEGTables, e.Tables())
	}
	if photometric == photometricYCbCr {
		ycbcr(d, 1, 1)
	}
	wr.w.Dir(d)
	return nil
}

// lzwStrips writes a picture as LZW strips with horizontal differencing.
func (wr *writer) lzwStrips(p picture, text string, subfile uint32) error {
	offsets, counts, err := wr.strips(p, lzwRows, func(pix []byte, _ int) ([]byte, error) {
		return tilecodec.Encode(tilecodec.LZWCode, pix, p.w, 3, true)
	})
	if err != nil {
		return err
	}
	d := wr.imageDir(p.w, p.h, 3, tilecodec.LZWCode, photometricRGB).Long(tagNewSubfileType, subfile)
	d.Short(tagPlanar, 1).Short(tagPredictor, 2).ASCII(tagDescription, text).Long(tagRowsPerStrip, lzwRows)
	wr.offsets(d, tagStripOffsets, offsets)
	wr.offsets(d, tagStripCounts, counts)
	wr.w.Dir(d)
	return nil
}

func (wr *writer) strips(p picture, rows int, encode func(pix []byte, h int) ([]byte, error)) (offsets, counts []uint64, err error) {
	for y := 0; y < p.h; y += rows {
		h := min(rows, p.h-y)
		data, err := encode(p.pix[y*p.w*3:(y+h)*p.w*3], h)
		if err != nil {
			return nil, nil, err
		}
		offsets = append(offsets, uint64(wr.w.Block(data)))
		counts = append(counts, uint64(len(data)))
	}
	return offsets, counts, nil
}
