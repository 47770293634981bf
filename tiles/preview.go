package tiles

import (
	"context"
	"errors"
	"image"
	"math"

	"github.com/microtome/microtome"
)

const (
	// previewTiles is how many tiles a preview is made of, when they can be
	// decoded at 1/8; otherwise fewer.
	previewTiles     = 768
	previewFullTiles = 96
	previewLevel     = -2 // in tile keys
)

// preview answers with a coarse picture of the whole slide, enlarged: the
// slide's thumbnail where there is one, else one pixel for the mean of every
// so manyth tile.
func (r *Reader) preview(ctx context.Context, s microtome.Slide, v *View, plane int, o *PixelOptions) (Answer, error) {
	info := s.Info()
	bg := r.background(info, o)
	k := tileKey{generation: info.Generation.ID, level: previewLevel, plane: int32(plane), background: bg}
	small, _, err := begin(ctx, r.pixels, k, s, func(ctx context.Context) (microtome.Pixels, error) {
		if px := r.thumbnailOf(ctx, s, plane, bg); px != nil {
			return px, nil
		}
		return r.sampled(ctx, r.levelPicture(s, len(info.Levels)-1, plane, bg), o.Priority)
	}).Wait(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer small.Release()
	pix, stride, ok := small.Host()
	if !ok {
		return Answer{}, errNotHost
	}
	src := block{pix: pix, stride: stride, w: small.Width(), h: small.Height(), ch: small.Channels()}
	px := enlarged(src, v).pixels()
	defer px.Release()
	a := &Answer{Made: Rendered, Engine: "cpu", Preview: true, Width: px.Width(), Height: px.Height(), Channels: px.Channels()}
	v.describe(a, info, len(info.Levels)-1)
	if a, err = r.encode(ctx, s, px, a, o); err != nil {
		return Answer{}, err
	}
	r.count.previews.Add(1)
	return *a, nil
}

// thumbnailOf is the slide's own thumbnail, nil when there is none that shows
// the whole slide.
func (r *Reader) thumbnailOf(ctx context.Context, s microtome.Slide, plane int, bg microtome.RGB) microtome.Pixels {
	p := r.associatedPicture(s, "thumbnail", bg)
	if p == nil || plane != 0 || p.grid.Width*p.grid.Height > maxSource/8 {
		return nil
	}
	l0 := s.Info().Levels[0]
	shape := float64(p.grid.Width) / float64(p.grid.Height) * float64(l0.Height) / float64(l0.Width)
	if math.Abs(shape-1) > 0.02 {
		return nil
	}
	px, _, err := p.rectangle(ctx, image.Rect(0, 0, int(p.grid.Width), int(p.grid.Height)), access{cache: r.once})
	if err != nil {
		return nil
	}
	return px
}

// previewLays is how many tiles of a preview are had at once.
const previewLays = 64

// sampled has one pixel for each block of n x n tiles: the mean of the block's
// middle tile.
func (r *Reader) sampled(ctx context.Context, p *picture, pr microtome.Priority) (microtome.Pixels, error) {
	budget := previewFullTiles
	if small := p.reduced(3); small != nil {
		p, budget = small, previewTiles
	}
	n := 1
	for (p.grid.Cols+n-1)/n*((p.grid.Rows+n-1)/n) > budget {
		n++
	}
	w, h := (p.grid.Cols+n-1)/n, (p.grid.Rows+n-1)/n
	dst := newCanvas(w, h, p.channels())
	dst.fill(0, 0, w, h, p.bg)
	lays := make([]*lay, 0, previewLays)
	for i := 0; i < w*h; i += previewLays {
		lays = lays[:0]
		for j := i; j < min(i+previewLays, w*h); j++ {
			col, row := min(j%w*n+n/2, p.grid.Cols-1), min(j/w*n+n/2, p.grid.Rows-1)
			lays = append(lays, &lay{p: p, src: p.cell(col, row), alone: true, ch: p.channels()})
		}
		r.lay(ctx, lays, access{priority: pr, cache: r.once})
		if err := dst.dots(i, lays); err != nil {
			dst.free()
			return nil, err
		}
	}
	return dst.pixels(), nil
}

// bearable says that a tile may be missing from a picture that is not kept as
// exact.
func bearable(err error) bool {
	return errors.Is(err, microtome.ErrEmptyTile) || errors.Is(err, microtome.ErrCorrupt)
}

// dots paints the pixels from the i-th on, each in the mean colour of a tile, and
// frees the tiles. Those that are empty or corrupt are left out.
func (c *canvas) dots(i int, lays []*lay) (failed error) {
	for j, l := range lays {
		px, err := l.taken()
		if err != nil {
			if !bearable(err) {
				failed = err
			}
			continue
		}
		if l.drawn.Load() > 0 {
			c.dot((i+j)%c.w, (i+j)/c.w, px)
		}
		px.Release()
	}
	return failed
}

// dot paints one pixel in the mean colour of px.
func (c *canvas) dot(x, y int, px microtome.Pixels) {
	pix, stride, ok := px.Host()
	if !ok {
		return
	}
	ch := px.Channels()
	var sum [4]int
	for j := range px.Height() {
		row := pix[j*stride:][:px.Width()*ch]
		for i := 0; i < len(row); i += ch {
			for k := range ch {
				sum[k] += int(row[i+k])
			}
		}
	}
	var mean [4]byte
	for k := range ch {
		mean[k] = byte(sum[k] / (px.Width() * px.Height()))
	}
	c.draw(x, y, block{pix: mean[:ch], stride: ch, w: 1, h: 1, ch: ch}, microtome.RGB{})
}

// enlarged is the view's part of a small picture of the whole, interpolated, or
// area-filtered where the small picture is the larger one.
func enlarged(src block, v *View) *canvas {
	rx, ry := float64(src.w)/float64(v.Width), float64(src.h)/float64(v.Height)
	dst := newCanvas(v.Rect.Dx(), v.Rect.Dy(), src.ch)
	if rx >= 1 && ry >= 1 {
		ax, ay := axis{step: stepOf(rx), size: int64(src.w)}, axis{step: stepOf(ry), size: int64(src.h)}
		f := newFilter(ax, ay, int64(v.Rect.Min.X), dst.w, true, src.ch, microtome.RGB{})
		f.rows(dst, 0, dst.h, int64(v.Rect.Min.Y), &canvas{pix: src.pix, w: src.stride / src.ch, h: src.h, ch: src.ch},
			image.Rect(0, 0, src.w, src.h))
		return dst
	}
	for y := range dst.h {
		y0, y1, fy := between(float64(v.Rect.Min.Y+y), ry, src.h)
		for x := range dst.w {
			x0, x1, fx := between(float64(v.Rect.Min.X+x), rx, src.w)
			for k := range src.ch {
				at := func(x, y int) float64 { return float64(src.pix[y*src.stride+x*src.ch+k]) }
				top := at(x0, y0)*(1-fx) + at(x1, y0)*fx
				low := at(x0, y1)*(1-fx) + at(x1, y1)*fx
				dst.pix[(y*dst.w+x)*src.ch+k] = byte(top*(1-fy) + low*fy + 0.5)
			}
		}
	}
	return dst
}

// between is the two source pixels around the centre of pixel z, and how far it
// lies towards the second.
func between(z, ratio float64, n int) (int, int, float64) {
	at := min(max((z+0.5)*ratio-0.5, 0), float64(n-1))
	i := int(at)
	return i, min(i+1, n-1), at - float64(i)
}
