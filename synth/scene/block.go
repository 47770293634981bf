package scene

// painter paints the blocks of one rectangle.
type painter struct {
	s                  *Scene
	dst                []uint8
	x, y, w, h         int
	stroma, epithelium *texture
	edge, ring         float32 // how sharp tissue and gland borders are
}

// lumenEdge is the relative radius of a gland's hollow.
const lumenEdge = 0.42

// block fills step by step pixels at (bx, by) of dst, cut to dst, between four
// samples of the field; it says whether there is tissue.
func (p *painter) block(bx, by int, c [4]sample) bool {
	x0, x1 := max(bx, 0), min(bx+step, p.w)
	y0, y1 := max(by, 0), min(by+step, p.h)
	if c[0].tissue <= 0 && c[1].tissue <= 0 && c[2].tissue <= 0 && c[3].tissue <= 0 {
		for j := y0; j < y1; j++ {
			row := p.dst[(j*p.w+x0)*3 : (j*p.w+x1)*3]
			for i := 0; i < len(row); i += 3 {
				row[i], row[i+1], row[i+2] = Background[0], Background[1], Background[2]
			}
		}
		return false
	}
	n := p.stroma.n
	for j := y0; j < y1; j++ {
		v := (float32(j-by) + 0.5) / step
		cur, end := between(c[0], c[2], v), between(c[1], c[3], v)
		d := sample{(end.tissue - cur.tissue) / step, (end.gland - cur.gland) / step, (end.stain - cur.stain) / step}
		cur = between(cur, end, float32(x0-bx)/step)
		texels := (p.y + j) & (n - 1) * n
		for i := x0; i < x1; i++ {
			o := (j*p.w + i) * 3
			p.pixel(p.dst[o:o+3:o+3], 3*(texels+(p.x+i)&(n-1)), cur)
			cur.tissue += d.tissue
			cur.gland += d.gland
			cur.stain += d.stain
		}
	}
	return true
}

func between(a, b sample, t float32) sample {
	return sample{a.tissue + (b.tissue-a.tissue)*t, a.gland + (b.gland-a.gland)*t, a.stain + (b.stain-a.stain)*t}
}

// pixel blends the materials at one texel, in 8-bit fixed point.
func (p *painter) pixel(out []uint8, texel int, s sample) {
	tissue := weight(s.tissue * p.edge)
	if tissue == 0 {
		out[0], out[1], out[2] = Background[0], Background[1], Background[2]
		return
	}
	epi := weight((1 - s.gland) * p.ring)
	hollow := weight((lumenEdge - s.gland) * p.ring)
	stain := int(s.stain * 256)
	a, b := p.stroma.pix[texel:texel+3:texel+3], p.epithelium.pix[texel:texel+3:texel+3]
	for i := range 3 {
		v := int(a[i])
		if epi > 0 {
			v += (int(b[i]) - v) * epi >> 8
		}
		if hollow > 0 {
			v += (int(lumen[i]) - v) * hollow >> 8
		}
		// The stain scales what light is absorbed.
		v = max(255-(255-v)*stain>>8, 0)
		bg := int(Background[i])
		out[i] = uint8(bg + (v-bg)*tissue>>8)
	}
}

// weight limits v to 0..1, as 0..256.
func weight(v float32) int { return int(clamp01(v) * 256) }
