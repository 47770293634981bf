package openjpeg

import "image"

// plane is one component, maybe of fewer samples than the picture has pixels.
type plane struct {
	pix        []byte
	w, h       int
	subX, subY int
}

// picture is decoded components on their way to pixels.
type picture struct {
	w, h, n int
	planes  [4]plane
	color   *table // not nil: the components are Y, Cb, Cr
}

// write interleaves a part of the picture. A sample of a smaller component
// stands for all pixels that it covers: no filter, as OpenSlide shows them.
func (p *picture) write(dst []byte, stride int, part image.Rectangle) {
	for y := part.Min.Y; y < part.Max.Y; y++ {
		row := dst[(y-part.Min.Y)*stride:][:part.Dx()*p.n]
		for c := range p.n {
			s := &p.planes[c]
			line := s.pix[min(y/s.subY, s.h-1)*s.w:][:s.w]
			if s.subX == 1 && s.w >= part.Max.X {
				for o, x := c, part.Min.X; x < part.Max.X; o, x = o+p.n, x+1 {
					row[o] = line[x]
				}
				continue
			}
			for o, x := c, part.Min.X; x < part.Max.X; o, x = o+p.n, x+1 {
				row[o] = line[min(x/s.subX, s.w-1)]
			}
		}
		if p.color != nil && p.n == 3 {
			p.color.convert(row)
		}
	}
}

// halved is the whole picture, interleaved, after some more halvings. Each pixel
// is the rounded mean of up to four.
func (p *picture) halved(times int) []byte {
	w, h := p.w, p.h
	pix := make([]byte, w*h*p.n)
	p.write(pix, w*p.n, image.Rect(0, 0, w, h))
	for range times {
		nw, nh := ceilShift(w, 1), ceilShift(h, 1)
		for y := range nh {
			y1 := min(2*y+1, h-1)
			for x := range nw {
				x1 := min(2*x+1, w-1)
				for c := range p.n {
					at := func(x, y int) int { return int(pix[(y*w+x)*p.n+c]) }
					sum := at(2*x, 2*y) + at(x1, 2*y) + at(2*x, y1) + at(x1, y1)
					// What is written lies at or before what was read last.
					pix[(y*nw+x)*p.n+c] = byte((sum + 2) / 4)
				}
			}
		}
		w, h = nw, nh
	}
	return pix
}

// table holds the products of the YCbCr equations (BT.601, full range) in fixed
// point: 16 bits for red and blue, 23 for green, whose sum of two is rounded.
// The result is OpenSlide's for each of the 65536 pairs of chroma.
type table struct {
	redCr, blueCb    [256]int32
	greenCb, greenCr [256]int32
}

func newTable() *table {
	const (
		half  = 1 << 15
		green = 1<<22 + 64 // the rest makes an exact half round up
	)
	t := new(table)
	for i := range 256 {
		x := int32(i - 128)
		t.redCr[i] = (91881*x + half) >> 16   // 1.402
		t.blueCb[i] = (116130*x + half) >> 16 // 1.772
		t.greenCr[i] = -5990641 * x           // 0.71414
		t.greenCb[i] = -2886856*x + green     // 0.34414
	}
	return t
}

func (t *table) convert(row []byte) {
	for i := 0; i+3 <= len(row); i += 3 {
		y, cb, cr := int32(row[i]), row[i+1], row[i+2]
		row[i] = clamp(y + t.redCr[cr])
		row[i+1] = clamp(y + (t.greenCb[cb]+t.greenCr[cr])>>23)
		row[i+2] = clamp(y + t.blueCb[cb])
	}
}

func clamp(v int32) byte { return byte(max(0, min(255, v))) }
