package jpegenc

// plane is one component's samples, padded to whole MCUs by repeating the last
// column and row.
type plane struct {
	pix    []uint8
	stride int
}

func (p *plane) size(w, h int) {
	if cap(p.pix) < w*h {
		p.pix = make([]uint8, w*h)
	}
	p.pix, p.stride = p.pix[:w*h], w
}

// load fills the encoder's planes from interleaved samples.
func (e *Encoder) load(src []uint8, w, h, stride int) {
	n := len(e.comps)
	mw, mh := 8*e.hMax, 8*e.vMax
	pw, ph := (w+mw-1)/mw*mw, (h+mh-1)/mh*mh
	for c := range e.comps {
		e.full[c].size(pw, ph)
	}
	for y := range ph {
		row := src[min(y, h-1)*stride:]
		if e.o.Color == YCbCr {
			e.convertRow(row, y, w)
		} else {
			for c := range n {
				dst := e.full[c].pix[y*pw:]
				for x, i := 0, c; x < w; x, i = x+1, i+n {
					dst[x] = row[i]
				}
			}
		}
		for c := range e.comps {
			dst := e.full[c].pix[y*pw : (y+1)*pw]
			for x := w; x < pw; x++ {
				dst[x] = dst[w-1]
			}
		}
	}
	for c := range e.comps {
		e.shrink(c, pw, ph)
	}
}

// convertRow is RGB to YCbCr by the equations of JFIF (ITU-R BT.601, full
// range), in 16-bit fixed point.
func (e *Encoder) convertRow(row []uint8, y, w int) {
	s := e.full[0].stride
	yy, cb, cr := e.full[0].pix[y*s:], e.full[1].pix[y*s:], e.full[2].pix[y*s:]
	for x, i := 0, 0; x < w; x, i = x+1, i+3 {
		r, g, b := int32(row[i]), int32(row[i+1]), int32(row[i+2])
		yy[x] = uint8((19595*r + 38470*g + 7471*b + 1<<15) >> 16)
		cb[x] = uint8((-11059*r - 21709*g + 32768*b + 128<<16 + 1<<15 - 1) >> 16)
		cr[x] = uint8((32768*r - 27439*g - 5329*b + 128<<16 + 1<<15 - 1) >> 16)
	}
}

// shrink averages a component down to its sampling factors.
func (e *Encoder) shrink(c, pw, ph int) {
	fx, fy := e.hMax/e.comps[c].h, e.vMax/e.comps[c].v
	if fx == 1 && fy == 1 {
		e.planes[c] = e.full[c]
		return
	}
	if e.small[c] == nil {
		e.small[c] = new(plane)
	}
	dst := e.small[c]
	dst.size(pw/fx, ph/fy)
	half, area := fx*fy/2, fx*fy
	for y := range ph / fy {
		for x := range pw / fx {
			sum := half
			for j := range fy {
				for _, v := range e.full[c].pix[(y*fy+j)*pw+x*fx:][:fx] {
					sum += int(v)
				}
			}
			dst.pix[y*dst.stride+x] = uint8(sum / area)
		}
	}
	e.planes[c] = *dst
}
