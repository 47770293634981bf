package tiles

import (
	"image"

	"github.com/microtome/microtome"
)

// canvas is pixels being made: packed rows in pooled memory.
type canvas struct {
	pix      []byte
	w, h, ch int
	host     *microtome.HostPixels
}

// memory is where all canvases come from and go back to.
var memory microtome.Buffers

// newCanvas returns a canvas of undefined content.
func newCanvas(w, h, ch int) *canvas {
	host := memory.Pixels(w, h, ch)
	return &canvas{pix: host.Pix, w: w, h: h, ch: ch, host: host}
}

// free gives the memory back. The canvas must not be used after.
func (c *canvas) free() { c.host.Release() }

// pixels turns the canvas into Pixels, which own the memory from here on.
func (c *canvas) pixels() microtome.Pixels { return c.host }

// pane is a part of a canvas as Pixels, to be decoded into. Whoever retains it
// retains the whole.
type pane struct {
	*microtome.HostPixels
	at image.Rectangle
}

// pane must lie inside the canvas.
func (c *canvas) pane(at image.Rectangle) *pane { return &pane{c.host, at} }

// Width implements microtome.Pixels.
func (p *pane) Width() int { return p.at.Dx() }

// Height implements microtome.Pixels.
func (p *pane) Height() int { return p.at.Dy() }

// Host implements microtome.Pixels.
func (p *pane) Host() ([]byte, int, bool) {
	pix, stride, ok := p.HostPixels.Host()
	ch := p.Channels()
	from, to := p.at.Min.Y*stride+p.at.Min.X*ch, (p.at.Max.Y-1)*stride+p.at.Max.X*ch
	return pix[from:to], stride, ok
}

// fill paints a rectangle, cut to the canvas, in one colour.
func (c *canvas) fill(x0, y0, x1, y1 int, rgb microtome.RGB) {
	x0, y0, x1, y1 = max(x0, 0), max(y0, 0), min(x1, c.w), min(y1, c.h)
	if x0 >= x1 || y0 >= y1 {
		return
	}
	row := func(y int) []byte { return c.pix[(y*c.w+x0)*c.ch : (y*c.w+x1)*c.ch] }
	first := row(y0)
	if c.ch == 1 {
		for i := range first {
			first[i] = luma(rgb)
		}
	} else {
		for i := 0; i < len(first); i += 3 {
			first[i], first[i+1], first[i+2] = rgb.R, rgb.G, rgb.B
		}
	}
	for y := y0 + 1; y < y1; y++ {
		copy(row(y), first)
	}
}

// luma is the grey of a colour (ITU-R BT.601, as in JFIF).
func luma(c microtome.RGB) byte {
	return byte((19595*uint32(c.R) + 38470*uint32(c.G) + 7471*uint32(c.B) + 1<<15) >> 16)
}

// block is a rectangle of rows to copy from.
type block struct {
	pix    []byte // from its first pixel on
	stride int
	w, h   int
	ch     int
}

// draw copies b to (x, y). It must lie inside the canvas. What has alpha is laid
// over bg.
func (c *canvas) draw(x, y int, b block, bg microtome.RGB) {
	for j := range b.h {
		dst := c.pix[((y+j)*c.w+x)*c.ch:][:b.w*c.ch]
		src := b.pix[j*b.stride:][:b.w*b.ch]
		if b.ch == c.ch {
			copy(dst, src)
			continue
		}
		convertRow(dst, c.ch, src, b.ch, bg)
	}
}

// convertRow turns grey (1), RGB (3) or RGBA (4) into grey or RGB.
func convertRow(dst []byte, dch int, src []byte, sch int, bg microtome.RGB) {
	for i, o := 0, 0; i < len(src); i, o = i+sch, o+dch {
		p := microtome.RGB{R: src[i], G: src[i], B: src[i]}
		if sch >= 3 {
			p = microtome.RGB{R: src[i], G: src[i+1], B: src[i+2]}
		}
		if sch == 4 {
			a := src[i+3]
			p = microtome.RGB{R: over(p.R, bg.R, a), G: over(p.G, bg.G, a), B: over(p.B, bg.B, a)}
		}
		if dch == 1 {
			dst[o] = luma(p)
			continue
		}
		dst[o], dst[o+1], dst[o+2] = p.R, p.G, p.B
	}
}

func over(v, bg, a byte) byte {
	return byte((uint32(v)*uint32(a) + uint32(bg)*uint32(255-a) + 127) / 255)
}
