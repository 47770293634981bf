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

// block fills step by step pixels at (bx, by) of dst between four samples of the
// field; it says whether there is tissue.
func (p *painter) block(bx, by int, c [4]sample) bool {
	w, h := min(step, p.w-bx), min(step, p.h-by)
	if c[0].tissue <= 0 && c[1].tissue <= 0 && c[2].tissue <= 0 && c[3].tissue <= 0 {
		for j := range h {
			row := p.dst[((by+j)*p.w+bx)*3:][:3*w]
			for i := 0; i < len(row); i += 3 {
				row[i], row[i+1], row[i+2] = Background[0], Background[1], Background[2]
			}
		}
		return false
	}
	n := p.stroma.n
	for j := range h {
		v := (float32(j) + 0.5) / step
		a, b := between(c[0], c[2], v), between(c[1], c[3], v)
		row := p.dst[((by+j)*p.w+bx)*3:][:3*w]
		texels := (p.y + by + j) & (n - 1) * n
		cur := a
		d := sample{(b.tissue - a.tissue) / step, (b.gland - a.gland) / step, (b.stain - a.stain) / step}
		for i := 0; i < w; i++ {
			p.pixel(row[3*i:3*i+3:3*i+3], 3*(texels+(p.x+bx+i)&(n-1)), cur)
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
