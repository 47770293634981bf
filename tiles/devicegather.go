package tiles

import (
	"context"
	"errors"
	"fmt"
	"image"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// deviceGather brings the tiles of a batch into a device's memory: each that
// several items need once, and each that others load already by waiting for them.
type deviceGather struct {
	d     *device
	b     *batch
	life  uint64 // of the device
	loads []deviceLoad
	needs []need // of the items
	uses  []deviceUse
	named map[tileKey]int
	bytes int64 // of the tiles
}

// deviceLoad is a tile on its way, or a patch that the CPU makes.
type deviceLoad struct {
	p        *picture
	col, row int
	key      tileKey
	q        *request // of a patch that is made on the CPU and copied
	drawn    int      // tiles of that patch
	px       microtome.Pixels
	hit      bool // it was there
	blank    bool // nothing is stored there
	err      error
}

// need is what an item is made of: uses [first, first+n), or one load alone.
type need struct {
	src      image.Rectangle // of the picture
	off      image.Point     // from the picture's pixels to the target's
	first, n int
	alone    int // a load, -1: none
	whole    bool
	filtered bool
}

// deviceUse is a part of a load, in the picture's pixels.
type deviceUse struct {
	load int
	part image.Rectangle
}

// newDeviceGather lists the tiles of a batch.
func newDeviceGather(d *device, b *batch) *deviceGather {
	g := &deviceGather{d: d, b: b, life: d.life.Load(), needs: make([]need, len(b.items)), named: map[tileKey]int{}}
	for i := range b.items {
		if p := &b.items[i]; p.err == nil {
			g.list(&p.plan.req, &g.needs[i])
		}
	}
	return g
}

func (g *deviceGather) list(q *request, n *need) {
	n.first, n.alone = len(g.uses), -1
	if q.ax.copies() && q.ay.copies() {
		lay := q.part()
		n.src, n.off = lay, image.Pt(int(-q.ax.origin-q.x0), int(-q.ay.origin-q.y0))
		n.whole = n.src.Dx() == q.w && n.src.Dy() == q.h
	} else {
		n.src, n.filtered, n.whole = q.source(0, q.h), true, true
		if n.src.Empty() || area(n.src) > bandPixels {
			n.alone, n.filtered = len(g.loads), false
			g.loads = append(g.loads, deviceLoad{p: q.p, q: q})
			g.bytes += int64(q.w) * int64(q.h) * int64(q.p.channels())
			return
		}
		n.off = image.Pt(-n.src.Min.X, -n.src.Min.Y)
		// Its source and the lines between the two passes.
		g.bytes += int64(n.src.Dx()+2*q.w) * int64(n.src.Dy()) * int64(q.p.channels())
	}
	if n.src.Empty() {
		return
	}
	grid := &q.p.grid
	for row := n.src.Min.Y / grid.TileHeight; row <= (n.src.Max.Y-1)/grid.TileHeight; row++ {
		for col := n.src.Min.X / grid.TileWidth; col <= (n.src.Max.X-1)/grid.TileWidth; col++ {
			g.uses = append(g.uses, deviceUse{load: g.find(q.p, col, row), part: q.p.cell(col, row).Intersect(n.src)})
			n.n++
		}
	}
}

// part is what a request that copies shows of the picture.
func (q *request) part() image.Rectangle {
	lx, ly := q.ax.origin+q.x0, q.ay.origin+q.y0
	x0, x1 := max(lx, 0), min(lx+int64(q.w), q.ax.size)
	y0, y1 := max(ly, 0), min(ly+int64(q.h), q.ay.size)
	if x0 >= x1 || y0 >= y1 {
		return image.Rectangle{}
	}
	return image.Rect(int(x0), int(y0), int(x1), int(y1))
}

func (g *deviceGather) find(p *picture, col, row int) int {
	k := p.key(col, row)
	k.life = g.life
	if i, ok := g.named[k]; ok {
		return i
	}
	i := len(g.loads)
	g.named[k] = i
	g.loads = append(g.loads, deviceLoad{p: p, col: col, row: row, key: k})
	g.bytes += p.r.tileBytes(p)
	return i
}

// failed is why an item can't be made: the error of its first tile that failed.
func (g *deviceGather) failed(n *need) error {
	if n.alone >= 0 {
		return g.loads[n.alone].err
	}
	for _, u := range g.uses[n.first : n.first+n.n] {
		if err := g.loads[u.load].err; err != nil {
			return err
		}
	}
	return nil
}

func (g *deviceGather) release() {
	for i := range g.loads {
		if px := g.loads[i].px; px != nil {
			px.Release()
		}
	}
}

// load brings all tiles in. Its error is of the whole batch.
func (g *deviceGather) load(ctx context.Context) error {
	var missing []int
	for i := range g.loads {
		l := &g.loads[i]
		if l.q == nil {
			l.px, l.hit = g.d.kept.Lookup(l.key)
		}
		if !l.hit {
			missing = append(missing, i)
		}
	}
	var coming sync.WaitGroup // results of the device
	g.each(len(missing), func(from, to int) { g.some(ctx, missing[from:to], &coming) })
	coming.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, i := range missing {
		if err := g.loads[i].err; errors.Is(err, microtome.ErrDeviceLost) || errors.Is(err, microtome.ErrBusy) {
			return err
		}
	}
	return nil
}

// fewTiles are brought in by the caller itself: it waits for them at once.
const fewTiles = 4

// each has ranges of n worked off by as many goroutines as there are cores.
func (g *deviceGather) each(n int, work func(from, to int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if n <= fewTiles || workers <= 1 {
		if n > 0 {
			work(0, n)
		}
		return
	}
	size := min(maxGroup, (n+workers-1)/workers)
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				to := int(next.Add(int64(size)))
				if to-size >= n {
					return
				}
				work(to-size, min(to, n))
			}
		})
	}
	all.Wait()
}

// some reads tiles that nobody else loads, hands them to the device, and then
// waits for those that others load.
func (g *deviceGather) some(ctx context.Context, group []int, coming *sync.WaitGroup) {
	var loans [maxGroup]*cache.Loan[tileKey, microtome.Pixels]
	var lent, joined [maxGroup]int
	var tickets [maxGroup]cache.Ticket[tileKey, microtome.Pixels]
	for len(group) > 0 {
		n, m := 0, 0
		part := group[:min(len(group), maxGroup)]
		group = group[len(part):]
		for _, i := range part {
			l := &g.loads[i]
			if l.q != nil {
				g.copy(ctx, l, coming)
				continue
			}
			t, loan := g.d.kept.Reserve(ctx, l.key, nil)
			if loan == nil {
				tickets[m], joined[m] = t, i
				m++
				continue
			}
			loans[n], lent[n] = loan, i
			n++
		}
		g.lend(ctx, loans[:n], lent[:n], coming)
		for k := range m {
			l := &g.loads[joined[k]]
			px, _, err := tickets[k].Wait(ctx)
			l.land(px, err)
		}
	}
}

func (l *deviceLoad) land(px microtome.Pixels, err error) {
	switch {
	case errors.Is(err, microtome.ErrEmptyTile):
		l.blank = true
	case err != nil:
		l.err = err
	default:
		l.px = px
	}
}

// lend reads tiles and has the device decode them.
// Every loan is fulfilled.
func (g *deviceGather) lend(ctx context.Context, loans []*cache.Loan[tileKey, microtome.Pixels], lent []int, coming *sync.WaitGroup) {
	if len(lent) == 0 {
		return
	}
	var tiles [maxGroup]microtome.TileResult
	g.read(ctx, lent, tiles[:len(lent)])
	jobs := make([]microtome.Job, 0, len(lent))
	done := make([]func(microtome.Pixels, error), 0, len(lent))
	for k, i := range lent {
		l := &g.loads[i]
		land := func(px microtome.Pixels, err error) {
			if err != nil {
				err = l.p.at(l.col, l.row, err)
			}
			px, err = loans[k].Fulfil(px, err)
			l.land(px, err)
		}
		if !loans[k].Wanted() {
			land(nil, context.Canceled)
			continue
		}
		tile, err := g.tile(ctx, l, tiles[k])
		if err != nil {
			land(nil, err)
			continue
		}
		jobs = append(jobs, microtome.Job{Tile: tile, Priority: g.b.priority})
		done = append(done, land)
	}
	coming.Add(len(jobs))
	// What is read for one may be waited for by others: it is decoded.
	g.d.Load(context.WithoutCancel(ctx), jobs, func(k int, r microtome.Result) {
		done[k](r.Pixels, r.Err)
		coming.Done()
	})
}

// tile is what is to be decoded for a load.
func (g *deviceGather) tile(ctx context.Context, l *deviceLoad, t microtome.TileResult) (microtome.Tile, error) {
	if errors.Is(t.Err, microtome.ErrEmptyTile) && l.p.inherits() {
		return l.painted(ctx, g.b.priority)
	}
	if t.Err != nil {
		return t.Tile, t.Err
	}
	if t.Tile.VisibleWidth <= 0 || t.Tile.VisibleHeight <= 0 {
		return t.Tile, fmt.Errorf("nothing of it is visible: %w", microtome.ErrCorrupt)
	}
	if want := l.p.cell(l.col, l.row).Size(); t.Tile.VisibleWidth < want.X || t.Tile.VisibleHeight < want.Y {
		return t.Tile, fmt.Errorf("%dx%d of %dx%d: %w", t.Tile.VisibleWidth, t.Tile.VisibleHeight, want.X, want.Y, microtome.ErrCorrupt)
	}
	return t.Tile, nil
}

// read fetches the bytes of tiles, those of one slide together.
func (g *deviceGather) read(ctx context.Context, lent []int, out []microtome.TileResult) {
	ctx = context.WithoutCancel(ctx) // others may wait for it
	for len(lent) > 0 {
		p := g.loads[lent[0]].p
		batch, ok := p.slide.(microtome.BatchReader)
		if !ok {
			l := &g.loads[lent[0]]
			out[0] = p.readOne(ctx, l.col, l.row)
			lent, out = lent[1:], out[1:]
			continue
		}
		var refs [maxGroup]microtome.TileRef
		n := 0
		for n < len(lent) && g.loads[lent[n]].p.slide == p.slide {
			l := &g.loads[lent[n]]
			refs[n] = microtome.TileRef{Level: l.p.level, Plane: l.p.plane, Col: l.col, Row: l.row}
			n++
		}
		p.r.count.read(guardedRead(ctx, batch, refs[:n], out[:n]))
		lent, out = lent[n:], out[n:]
	}
}

// painted is an empty tile as it is painted from the next larger level, as a raw
// tile.
func (l *deviceLoad) painted(ctx context.Context, pr microtome.Priority) (microtome.Tile, error) {
	px, err := l.p.inherited(ctx, l.col, l.row, image.Rectangle{}, pr)
	if err != nil {
		return microtome.Tile{}, err
	}
	defer px.Release()
	return rawTile(px)
}

// rawTile is host pixels as an uncompressed tile.
func rawTile(px microtome.Pixels) (microtome.Tile, error) {
	pix, stride, ok := px.Host()
	if !ok {
		return microtome.Tile{}, errNotHost
	}
	w, h, ch := px.Width(), px.Height(), px.Channels()
	t := microtome.Tile{
		Data: make([]byte, 0, w*h*ch), Codec: microtome.CodecNone, Color: microtome.ColorRGB, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: ch, Bits: 8, Predictor: 1, FillOrder: 1,
	}
	if ch == 1 {
		t.Color = microtome.ColorGray
	}
	for y := range h {
		t.Data = append(t.Data, pix[y*stride:][:w*ch]...)
	}
	return t, nil
}

// copy has the CPU make a patch by itself, and copies it to the device.
func (g *deviceGather) copy(ctx context.Context, l *deviceLoad, coming *sync.WaitGroup) {
	dst, drawn, err := l.q.scaled(ctx)
	if err != nil {
		l.err = err
		return
	}
	l.drawn = drawn
	defer dst.free()
	tile, err := rawTile(dst.pixels())
	if err != nil {
		l.err = err
		return
	}
	coming.Add(1)
	jobs := []microtome.Job{{Tile: tile, Priority: g.b.priority}}
	g.d.Load(ctx, jobs, func(_ int, r microtome.Result) {
		l.land(r.Pixels, r.Err)
		coming.Done()
	})
}
