package tiles

import (
	"context"
	"fmt"
	"image"

	"github.com/microtome/microtome"
)

// Patch is one item of a batch: a region of a slide's plane, which must be held
// open by the caller until Patches returns.
type Patch struct {
	Slide   microtome.Slide
	Region  Region
	C, Z, T int
	// Background, when set, goes before the slide's and the Reader's.
	Background *microtome.RGB
}

// PatchOptions hold for all items of a batch.
type PatchOptions struct {
	// Channels is 1 or 3 samples a pixel for every item; 0 means 3, or 1 when
	// all slides are grey.
	Channels int
	Priority microtome.Priority
	// Each, when set, gets every item as soon as it is made, in any order and
	// from many goroutines at once, and owns its pixels. The results of Patches
	// have none then. It is first called when the number of channels is known.
	Each func(i, channels int, res PatchResult)
}

// PatchResult answers one Patch: exactly one of Pixels and Err is set.
type PatchResult struct {
	// Pixels are the caller's to release. They may be shared with others.
	Pixels microtome.Pixels
	// Answer tells how they were made; its Body is empty.
	Answer Answer
	Err    error
}

// Patches returns the pixels of many regions at once, in their order, and the
// number of samples that all of them have. An item fails alone, with what
// RegionPixels would say of it. The error is of the whole batch: ErrMalformed
// for options that make no sense, ErrBusy when too many batches wait already, or
// ctx's when that ended first; no item has pixels then.
func (r *Reader) Patches(ctx context.Context, items []Patch, o PatchOptions) ([]PatchResult, int, error) {
	if o.Channels != 0 && o.Channels != 1 && o.Channels != 3 {
		return nil, 0, fmt.Errorf("%d channels: %w", o.Channels, microtome.ErrMalformed)
	}
	if err := r.batches.Take(ctx, 1); err != nil {
		return nil, 0, err
	}
	defer r.batches.Give(1)
	b := &batch{r: r, items: make([]patch, len(items)), channels: o.Channels, priority: o.Priority, each: o.Each}
	b.plan(items)
	if err := b.make(ctx); err != nil {
		b.drop()
		return nil, 0, err
	}
	results := make([]PatchResult, len(items))
	if b.each == nil {
		for i := range results {
			results[i] = b.items[i].result()
		}
	}
	return results, b.channels, nil
}

// batch is patches in the making.
type batch struct {
	r        *Reader
	items    []patch
	channels int
	priority microtome.Priority
	counted  bool // the memory is accounted for elsewhere
	each     func(i, channels int, res PatchResult)
}

// patch is one item in the making.
type patch struct {
	plan   *regionPlan
	lay    *lay
	band   *canvas // the source of what is filtered, while it is laid
	px     microtome.Pixels
	drawn  int
	hit    bool
	engine string // that decoded it, when that was not the CPU
	err    error
	done   bool // made, or failed
}

// plan resolves the items, and the number of channels.
func (b *batch) plan(items []Patch) {
	channels := 1
	for i := range items {
		it, p := &items[i], &b.items[i]
		o := PixelOptions{C: it.C, Z: it.Z, T: it.T, Background: it.Background, Priority: b.priority}
		if it.Slide == nil {
			p.err = fmt.Errorf("no slide: %w", microtome.ErrMalformed)
			continue
		}
		p.plan, p.err = b.r.planRegion(it.Slide, it.Region, &o)
		if p.err == nil {
			channels = max(channels, p.plan.req.p.channels())
		} else if !grey(it.Slide.Info()) {
			channels = 3
		}
	}
	if b.channels == 0 {
		b.channels = channels
	}
	for i := range b.items {
		if b.items[i].err != nil {
			b.made(i)
		}
	}
}

// made hands an item over to who wants each.
func (b *batch) made(i int) {
	p := &b.items[i]
	p.done = true
	if b.each == nil {
		return
	}
	b.each(i, b.channels, p.result())
	p.px = nil
}

// maxMaking bounds the memory of what a batch filters at once, in bytes.
const maxMaking = 64 << 20

// make makes the pixels of all items, so many at once as memory allows.
func (b *batch) make(ctx context.Context) error {
	defer b.r.ahead.begin()()
	if len(b.items) == 1 && b.items[0].err == nil {
		b.r.ahead.saw(b.items[0].plan, nil)
	}
	b.onDevice(ctx)
	for i := 0; i < len(b.items); {
		from, making := i, int64(0)
		for ; i < len(b.items) && making < maxMaking; i++ {
			if p := &b.items[i]; p.err == nil && !p.done {
				making += p.plan.req.bandCost()
			}
		}
		if err := b.some(ctx, from, i, making); err != nil {
			return err
		}
	}
	return nil
}

// some makes the items from the from-th to before the to-th, which take so much
// memory meanwhile.
func (b *batch) some(ctx context.Context, from, to int, making int64) error {
	if making > 0 && !b.counted {
		take := b.r.making.Take
		if from > 0 {
			take = b.r.making.more
		}
		if err := take(ctx, making); err != nil {
			return err
		}
		defer b.r.making.Give(making)
	}
	lays := make([]*lay, 0, to-from)
	var alone []int
	for i := from; i < to; i++ {
		p := &b.items[i]
		if p.err != nil || p.done {
			continue
		}
		if p.begin(b.channels); p.lay == nil {
			alone = append(alone, i)
			continue
		}
		p.lay.then = func() {
			p.end(ctx, b.channels)
			b.made(i)
		}
		lays = append(lays, p.lay)
	}
	b.r.lay(ctx, lays, access{priority: b.priority, cache: b.r.patches, partly: true})
	for _, i := range alone {
		b.items[i].end(ctx, b.channels)
		b.made(i)
	}
	return ctx.Err()
}

// drop frees what was made.
func (b *batch) drop() {
	for i := range b.items {
		if px := b.items[i].px; px != nil {
			px.Release()
		}
	}
}

// begin prepares the item's lay. What is too large to be laid with the others
// has none: end makes it by itself.
func (p *patch) begin(channels int) {
	q := &p.plan.req
	if q.ax.copies() && q.ay.copies() {
		p.lay = q.flat(channels)
		return
	}
	src := q.source(0, q.h)
	if src.Empty() || area(src) > bandPixels {
		return
	}
	p.band = newCanvas(src.Dx(), src.Dy(), q.p.channels())
	p.lay = &lay{p: q.p, src: src, dst: p.band, ch: p.band.ch, off: image.Pt(-src.Min.X, -src.Min.Y)}
}

// flat is the lay of a request that copies pixels, background around them.
func (q *request) flat(channels int) *lay {
	lx, ly := q.ax.origin+q.x0, q.ay.origin+q.y0
	all := image.Rect(0, 0, q.w, q.h)
	l := &lay{p: q.p, ch: channels}
	if lx < q.ax.size && ly < q.ay.size && lx+int64(q.w) > 0 && ly+int64(q.h) > 0 {
		l.off = image.Pt(int(-lx), int(-ly))
		l.src = all.Sub(l.off).Intersect(image.Rect(0, 0, int(q.ax.size), int(q.ay.size)))
	}
	whole := l.src.Size() == all.Size()
	if g := &q.p.grid; whole && l.src == g.TileRect(l.src.Min.X/g.TileWidth, l.src.Min.Y/g.TileHeight) {
		l.alone, l.off = true, image.Point{}.Sub(l.src.Min)
		return l
	}
	l.dst = newCanvas(q.w, q.h, channels)
	if !whole {
		l.dst.fill(0, 0, q.w, q.h, q.p.bg)
	}
	return l
}

// end takes what was laid, or makes what could not be laid with the others.
func (p *patch) end(ctx context.Context, channels int) {
	l := p.lay
	if l != nil {
		p.drawn, p.hit, p.err = int(l.drawn.Load()), !l.missed.Load(), l.err()
	}
	q := &p.plan.req
	switch {
	case l == nil:
		var dst *canvas
		if dst, p.drawn, p.err = q.scaled(ctx); p.err == nil {
			p.px = dst.pixels()
		}
	case p.band == nil:
		p.px, p.err = l.taken()
	case p.err == nil:
		dst := newCanvas(q.w, q.h, p.band.ch)
		newFilter(q.ax, q.ay, q.x0, q.w, q.clamp, p.band.ch, q.p.bg).rows(dst, 0, q.h, q.y0, p.band, l.src)
		p.px = dst.pixels()
	}
	if p.band != nil {
		p.band.free()
		p.band = nil
	}
	if p.err == nil && p.px.Channels() != channels {
		p.px = recoloured(p.px, channels, q.p.bg)
	}
}

// recoloured turns grey into RGB or RGB into grey, and releases px.
func recoloured(px microtome.Pixels, channels int, bg microtome.RGB) microtome.Pixels {
	defer px.Release()
	pix, stride, _ := px.Host() // a canvas of ours
	dst := newCanvas(px.Width(), px.Height(), channels)
	dst.draw(0, 0, block{pix: pix, stride: stride, w: dst.w, h: dst.h, ch: px.Channels()}, bg)
	return dst.pixels()
}

// result hands the item's pixels over.
func (p *patch) result() PatchResult {
	if p.err != nil {
		return PatchResult{Err: p.err}
	}
	a := p.plan.answer(p.px, p.drawn)
	if p.engine != "" && p.drawn > 0 {
		a.Engine = p.engine
	}
	a.CacheHit = p.hit && p.drawn > 0
	return PatchResult{Pixels: p.px, Answer: *a}
}

// grey says that a slide has no colours.
func grey(info *microtome.Info) bool {
	c := info.Levels[0].Color
	return c == microtome.ColorGray || c == microtome.ColorGrayWhite
}
