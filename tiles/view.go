package tiles

import (
	"context"
	"fmt"
	"image"
	"math"

	"github.com/microtome/microtome"
)

// View returns a rectangle of a virtual level for a viewer, encoded.
//
// When a stored level is the virtual one (its size is W/downsample rounded
// either way) and the rectangle is exactly one of its tiles, that leaves as it
// is stored. Otherwise the rectangle is made of the next finer level, stored or
// built; for JPEG and WebP that is decoded at 1/2, 1/4 or 1/8 by the codec
// itself where the ratio allows, and what remains is area-filtered. Where that
// would cost too much (a large slide whose upper levels are still being built)
// a coarse picture is given: see Answer.Preview.
func (r *Reader) View(ctx context.Context, s microtome.Slide, v View, o PixelOptions) (Answer, error) {
	info := s.Info()
	n, err := plane(info, &o)
	if err != nil {
		return Answer{}, err
	}
	if err := v.check(r.o.MaxPixels); err != nil {
		return Answer{}, err
	}
	if level, col, row, ok := v.storedCell(info, &o); ok {
		return r.stored(ctx, s, level, n, col, row, r.background(info, &o))
	}
	return r.view(ctx, s, v, n, askView, &o)
}

func (v *View) check(maxPixels int64) error {
	full := image.Rect(0, 0, int(v.Width), int(v.Height))
	switch {
	case !(v.Downsample > 0) || math.IsInf(v.Downsample, 0):
		return fmt.Errorf("downsample %v: %w", v.Downsample, microtome.ErrMalformed)
	case v.Width <= 0 || v.Height <= 0 || v.Width > maxPosition || v.Height > maxPosition || v.Rect.Empty() || !v.Rect.In(full):
		return fmt.Errorf("%v of a level of %dx%d: %w", v.Rect, v.Width, v.Height, microtome.ErrMalformed)
	case int64(v.Rect.Dx()) > maxPixels/int64(v.Rect.Dy()):
		return fmt.Errorf("%dx%d pixels, at most %d: %w", v.Rect.Dx(), v.Rect.Dy(), maxPixels, microtome.ErrLimit)
	}
	return nil
}

// isLevel says that a stored level is the virtual one.
func (v *View) isLevel(info *microtome.Info, level int) bool {
	l0, l := &info.Levels[0], &info.Levels[level]
	return matches(l0.Width, l.Width, v.Downsample) && matches(l0.Height, l.Height, v.Downsample)
}

// storedCell finds the stored tile that is exactly the rectangle.
func (v *View) storedCell(info *microtome.Info, o *PixelOptions) (level, col, row int, ok bool) {
	if o.Format != microtome.FormatJPEG || o.Quality != 0 || o.ICC != "" {
		return 0, 0, 0, false
	}
	for i := range info.Levels {
		if !v.isLevel(info, i) {
			continue
		}
		g := &info.Levels[i].Grid
		col, row := v.Rect.Min.X/g.TileWidth, v.Rect.Min.Y/g.TileHeight
		if col < g.Cols && row < g.Rows && g.TileRect(col, row) == v.Rect {
			return i, col, row, true
		}
	}
	return 0, 0, 0, false
}

// view answers for a rectangle that has to be made.
func (r *Reader) view(ctx context.Context, s microtome.Slide, v View, plane int, ask question, o *PixelOptions) (Answer, error) {
	k := r.pixelKey(s.Info(), ask, plane, o)
	k.x, k.y, k.width, k.height = int64(v.Rect.Min.X), int64(v.Rect.Min.Y), int32(v.Rect.Dx()), int32(v.Rect.Dy())
	k.step = [2]uint64{floatBits(v.Downsample)}
	k.virtual = [2]int64{v.Width, v.Height}
	if a, ok := r.answers.Lookup(k); ok {
		out := *a
		out.CacheHit = true
		return out, nil
	}
	if err := fits(o.Format, v.Rect.Dx(), v.Rect.Dy()); err != nil {
		return Answer{}, err
	}
	q, ok := r.viewRequest(ctx, s, &v, plane, o)
	if !ok {
		return r.preview(ctx, s, &v, plane, o)
	}
	return r.answered(ctx, s, k, pixelCost(int64(v.Rect.Dx()), int64(v.Rect.Dy()))+q.bandCost(), func(ctx context.Context) (*Answer, error) {
		dst, drawn, err := q.scaled(ctx)
		if err != nil {
			return nil, err
		}
		px := dst.pixels()
		defer px.Release()
		a := answerOf(px, drawn)
		v.describe(a, s.Info(), q.p.storedLevel())
		return r.encode(ctx, s, px, a, o)
	})
}

// describe fills in an answer's scale: that of the virtual level.
func (v *View) describe(a *Answer, info *microtome.Info, level int) {
	a.Level, a.Downsample = max(level, 0), v.Downsample
	if m := info.MPP; m != nil {
		a.MPP = &microtome.MPP{X: m.X * v.Downsample, Y: m.Y * v.Downsample}
	}
}

const (
	// maxTiles and maxSource bound what is decoded for one View. Of small tiles
	// (strips of one row) there may be more.
	maxTiles      = 1024
	maxSmallTiles = 16 * maxTiles
	maxSource     = 64 << 20
)

// viewRequest chooses the picture and the axes; false when it would cost too
// much.
func (r *Reader) viewRequest(ctx context.Context, s microtome.Slide, v *View, plane int, o *PixelOptions) (request, bool) {
	p := r.viewPicture(ctx, s, v, plane, r.background(s.Info(), o))
	if o.Format == microtome.FormatJPEG || o.Format == microtome.FormatWebP {
		ratio := min(v.Downsample/p.scale[0], v.Downsample/p.scale[1]) * (1 + 1e-9)
		for n := 3; n > 0; n-- {
			if ratio < float64(int(1)<<n) {
				continue
			}
			if small := p.reduced(n); small != nil {
				p = small
				break
			}
		}
	}
	q := request{p: p, x0: int64(v.Rect.Min.X), y0: int64(v.Rect.Min.Y), w: v.Rect.Dx(), h: v.Rect.Dy(), clamp: true,
		access: access{priority: o.Priority, cache: r.pixels}}
	q.ax = axis{step: stepOf(v.Downsample / p.scale[0]), size: p.grid.Width}
	q.ay = axis{step: stepOf(v.Downsample / p.scale[1]), size: p.grid.Height}
	src := q.source(0, q.h)
	cost := int64(area(src)) << (2 * p.reduce)
	n := tilesUnder(p.grid, src)
	return q, n <= maxTiles && cost <= maxSource || n <= maxSmallTiles && cost <= bandPixels
}

// tilesUnder counts the tiles that a rectangle touches.
func tilesUnder(g microtome.Grid, r image.Rectangle) int {
	if r.Empty() {
		return 0
	}
	cols := (r.Max.X-1)/g.TileWidth - r.Min.X/g.TileWidth + 1
	rows := (r.Max.Y-1)/g.TileHeight - r.Min.Y/g.TileHeight + 1
	return cols * rows
}

// viewPicture is the virtual level itself where it is stored and holds the
// whole rectangle; otherwise the coarsest picture that is finer, stored or
// built.
func (r *Reader) viewPicture(ctx context.Context, s microtome.Slide, v *View, plane int, bg microtome.RGB) *picture {
	info := s.Info()
	best := r.levelPicture(s, 0, plane, bg)
	for i := range info.Levels {
		p := r.levelPicture(s, i, plane, bg)
		if v.isLevel(info, i) {
			if v.Rect.In(image.Rect(0, 0, int(p.grid.Width), int(p.grid.Height))) {
				p.scale = [2]float64{v.Downsample, v.Downsample}
				return p
			}
			continue
		}
		if p.suffices(v, best) {
			best = p
		}
	}
	if r.pyramid != nil {
		return r.pyramid.finer(ctx, s, v, plane, best)
	}
	return best
}

// storedLevel is the stored level that the pixels come from.
func (p *picture) storedLevel() int {
	if p.built != nil {
		return p.built.grids[p.level].base
	}
	return max(p.level, 0)
}

// suffices says that p is fine enough for the view, and coarser than best.
func (p *picture) suffices(v *View, best *picture) bool {
	coarsest := max(p.scale[0], p.scale[1])
	return coarsest <= v.Downsample*(1+1e-9) && coarsest > max(best.scale[0], best.scale[1])
}
