package tiles

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/microtome/microtome"
)

// sourceFactor bounds the pixels that may be decoded for one region, in
// multiples of Options.MaxPixels.
const sourceFactor = 4

// maxRegionTiles bounds the tiles under one region, where they are tiny.
const maxRegionTiles = 1 << 20

// Region returns a rectangle of the slide at any scale, encoded, of exactly the
// size asked for. See RegionPixels.
func (r *Reader) Region(ctx context.Context, s microtome.Slide, q Region, o PixelOptions) (Answer, error) {
	plan, err := r.planRegion(s, q, &o)
	if err == nil {
		err = fits(o.Format, q.Width, q.Height)
	}
	if err != nil {
		return Answer{}, err
	}
	k := r.pixelKey(s.Info(), askRegion, plan.req.p.plane, &o)
	k.level, k.x, k.y, k.width, k.height = int32(plan.level), plan.req.ax.origin, plan.req.ay.origin, int32(q.Width), int32(q.Height)
	k.step = [2]uint64{plan.req.ax.step, plan.req.ay.step}
	return r.answered(ctx, s, k, pixelCost(int64(q.Width), int64(q.Height))+plan.req.bandCost(), func(ctx context.Context) (*Answer, error) {
		px, a, err := plan.pixels(ctx)
		if err != nil {
			return nil, err
		}
		defer px.Release()
		return r.encode(ctx, s, px, a, &o)
	})
}

// RegionPixels returns the pixels of a region: 3 channels, or 1 for grey
// slides. The caller releases them. Answer.Body is empty.
//
// The level is the one with the largest downsample whose size is the floor,
// round or ceil of W/d on both axes or whose downsample is at most 1.005 d, for
// a wanted downsample d; by mpp, the level nearest to it when that is within the
// tolerance. The corner lies at floor(l0x * levelWidth / W + 1/2) of that
// level, and so for y. When the level is that of d itself, pixels are copied;
// otherwise tiles are decoded at full size and go through one integer area filter
// (filter, axis), pixel i covering the source from corner + i*d/e to
// corner + (i+1)*d/e, e being the level's own downsample. What lies outside the
// slide, and what is not stored, is background; a pixel that lies partly
// outside is made of its inside.
//
// ErrMalformed: a size or scale that makes no sense. ErrUnanswerable: the slide
// doesn't know its mpp or objective power. ErrLimit: the answer, or what must
// be decoded for it, is too large. ErrNotFound: no such level or plane.
func (r *Reader) RegionPixels(ctx context.Context, s microtome.Slide, q Region, o PixelOptions) (microtome.Pixels, Answer, error) {
	plan, err := r.planRegion(s, q, &o)
	if err != nil {
		return nil, Answer{}, err
	}
	px, a, err := plan.pixels(ctx)
	if err != nil {
		return nil, Answer{}, err
	}
	return px, *a, nil
}

// regionPlan is a region resolved to a level and axes.
type regionPlan struct {
	req   request
	level int
	down  [2]float64
	mpp   *microtome.MPP
}

func (r *Reader) planRegion(s microtome.Slide, q Region, o *PixelOptions) (*regionPlan, error) {
	info := s.Info()
	if q.Width <= 0 || q.Height <= 0 {
		return nil, fmt.Errorf("a region of %dx%d: %w", q.Width, q.Height, microtome.ErrMalformed)
	}
	if int64(q.Width) > r.o.MaxPixels/int64(q.Height) {
		return nil, fmt.Errorf("a region of %dx%d, at most %d pixels: %w", q.Width, q.Height, r.o.MaxPixels, microtome.ErrLimit)
	}
	n, err := plane(info, o)
	if err != nil {
		return nil, err
	}
	c, err := choose(info, q.Scale)
	if err != nil {
		return nil, err
	}
	p := r.levelPicture(s, c.level, n, r.background(info, o))
	l0 := info.Levels[0]
	plan := &regionPlan{level: c.level, down: c.down, req: request{p: p, w: q.Width, h: q.Height}}
	plan.req.access = access{priority: o.Priority, cache: r.patches}
	plan.req.ax = axis{origin: onLevel(q.L0X, p.grid.Width, l0.Width), step: one, size: p.grid.Width}
	plan.req.ay = axis{origin: onLevel(q.L0Y, p.grid.Height, l0.Height), step: one, size: p.grid.Height}
	if !c.native {
		plan.req.ax.step = stepOf(c.down[0] / p.scale[0])
		plan.req.ay.step = stepOf(c.down[1] / p.scale[1])
	}
	src := plan.req.source(0, q.Height)
	if !src.Empty() && (int64(src.Dy()) > sourceFactor*r.o.MaxPixels/int64(src.Dx()) || tilesUnder(p.grid, src) > maxRegionTiles) {
		return nil, fmt.Errorf("%dx%d pixels of level %d are needed, at most %d: %w",
			src.Dx(), src.Dy(), c.level, sourceFactor*r.o.MaxPixels, microtome.ErrLimit)
	}
	if m := info.MPP; m != nil {
		plan.mpp = &microtome.MPP{X: m.X * c.down[0], Y: m.Y * c.down[1]}
	}
	return plan, nil
}

// onLevel is floor(l0 * size / full + 1/2), and far outside for what is far
// outside.
func onLevel(l0, size, full int64) int64 {
	if l0 > maxPosition || l0 < -maxPosition {
		return int64(math.Copysign(maxPosition, float64(l0)))
	}
	if size == full {
		return l0
	}
	// floor((2*l0*size + full) / (2*full)), in 128 bits; below 0 by
	// floor(-a/b) = -ceil(a/b).
	n, neg := uint64(l0), l0 < 0
	if neg {
		n = uint64(-l0)
	}
	hi, lo := bits.Mul64(2*n, uint64(size))
	var carry uint64
	if neg { // ceil((2*n*size - full) / (2*full)) = floor((2*n*size + full - 1) / (2*full))
		lo, carry = bits.Add64(lo, uint64(full)-1, 0)
	} else {
		lo, carry = bits.Add64(lo, uint64(full), 0)
	}
	q := uint64(maxPosition)
	if hi+carry < 2*uint64(full) {
		q, _ = bits.Div64(hi+carry, lo, 2*uint64(full))
	}
	at := int64(min(q, maxPosition))
	if neg {
		return -at
	}
	return at
}

// pixels makes the region: a batch of one.
func (g *regionPlan) pixels(ctx context.Context) (microtome.Pixels, *Answer, error) {
	b := &batch{r: g.req.p.r, items: []patch{{plan: g}}, channels: g.req.p.channels(), priority: g.req.access.priority, counted: true}
	if err := b.make(ctx); err != nil {
		b.drop()
		return nil, nil, err
	}
	res := b.items[0].result()
	return res.Pixels, &res.Answer, res.Err
}

// answer describes the pixels made.
func (g *regionPlan) answer(px microtome.Pixels, drawn int) *Answer {
	a := answerOf(px, drawn)
	a.Level, a.Downsample, a.MPP = g.level, (g.down[0]+g.down[1])/2, g.mpp
	return a
}

// answerOf describes pixels made of so many tiles that had some.
func answerOf(px microtome.Pixels, drawn int) *Answer {
	a := &Answer{Made: Rendered, Engine: "cpu", Width: px.Width(), Height: px.Height(), Channels: px.Channels()}
	if drawn == 0 {
		a.Made, a.Engine = Empty, "none"
	}
	return a
}
