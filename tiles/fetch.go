package tiles

import (
	"context"
	"errors"
	"fmt"
	"image"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// borrowed is a load that this goroutine makes for all who wait for it.
type borrowed struct {
	load int32
	loan *cache.Loan[tileKey, microtome.Pixels]
	crop image.Rectangle // of the tile; empty: whole
	// urgency of the decode, raised by those who join it and wait for it sooner.
	urgency *microtome.Urgency
	dst     *pane // where the crop goes; nil: to memory of its own
}

// fetch loads a group of tiles: it takes the loans of those that nobody else
// loads, reads them together, decodes and draws each, and only then waits for
// those that others load. So no two wait for each other.
func (g *gather) fetch(ctx context.Context, group []int32) {
	var lent [maxGroup]borrowed
	var joined [maxGroup]cache.Ticket[tileKey, microtome.Pixels]
	var joins [maxGroup]borrowed
	n, m := 0, 0
	for _, i := range group {
		l := &g.loads[i]
		if err := ctx.Err(); err != nil {
			g.lack(int(i), err, false)
			continue
		}
		if err := g.unwanted(l); err != nil {
			g.lack(int(i), err, false)
			continue
		}
		b, k, c := g.ask(i)
		b.urgency = microtome.NewUrgency(g.a.priority)
		t, loan := c.Reserve(ctx, k, b.urgency)
		if loan == nil {
			if u, ok := t.Tag().(*microtome.Urgency); ok {
				u.Raise(g.a.priority)
			}
			joined[m], joins[m] = t, b
			m++
			continue
		}
		b.loan = loan
		lent[n] = b
		n++
	}
	g.load(ctx, lent[:n])
	for j := range m {
		px, _, err := joined[j].Wait(ctx)
		g.land(&joins[j], px, err)
	}
}

// ask says under which key, and from which cache, a load is had.
func (g *gather) ask(i int32) (borrowed, tileKey, *cache.Cache[tileKey, microtome.Pixels]) {
	n := &g.loads[i]
	b, k := borrowed{load: i}, n.key
	if n.whole {
		if g.a.cache == nil {
			return b, k, g.r.once
		}
		return b, k, g.a.cache
	}
	u := &g.uses[n.first]
	b.crop = u.part.Sub(n.p.cell(n.col, n.row).Min)
	k.crop = [4]int32{int32(b.crop.Min.X), int32(b.crop.Min.Y), int32(b.crop.Max.X), int32(b.crop.Max.Y)}
	if dst := u.lay.dst; dst != nil && dst.ch == n.p.channels() {
		b.dst = dst.pane(u.part.Add(u.lay.off))
	}
	return b, k, g.r.once
}

// load reads and decodes what was lent. Every loan is fulfilled, come what may.
func (g *gather) load(ctx context.Context, lent []borrowed) {
	if len(lent) == 0 {
		return
	}
	fulfilled := 0
	defer func() { // all of them, unless drawing one panicked
		for _, b := range lent[fulfilled:] {
			_, _ = b.loan.Fulfil(nil, errAbandoned)
		}
	}()
	var tiles [maxGroup]microtome.TileResult
	g.read(ctx, lent, tiles[:len(lent)])
	for j := range lent {
		b := &lent[j]
		px, err := g.decode(b, tiles[j])
		tiles[j] = microtome.TileResult{}
		px, err = b.loan.Fulfil(px, err)
		fulfilled++
		g.land(b, px, err)
	}
}

var errAbandoned = errors.New("tiles: the load was given up")

// read fetches the bytes of the tiles, those of one slide together.
func (g *gather) read(ctx context.Context, lent []borrowed, out []microtome.TileResult) {
	// What one asker reads others may wait for: it is read to its end.
	ctx = context.WithoutCancel(ctx)
	for len(lent) > 0 {
		p := g.loads[lent[0].load].p
		batch, ok := p.slide.(microtome.BatchReader)
		if !ok || p.built != nil || p.level < 0 {
			n := &g.loads[lent[0].load]
			out[0] = p.readOne(ctx, n.col, n.row)
			lent, out = lent[1:], out[1:]
			continue
		}
		var refs [maxGroup]microtome.TileRef
		n := 0
		for n < len(lent) {
			l := &g.loads[lent[n].load]
			if l.p.slide != p.slide || l.p.level < 0 || l.p.built != nil {
				break
			}
			refs[n] = microtome.TileRef{Level: l.p.level, Plane: l.p.plane, Col: l.col, Row: l.row}
			n++
		}
		p.r.count.read(guardedRead(ctx, batch, refs[:n], out[:n]))
		lent, out = lent[n:], out[n:]
	}
}

// guardedRead turns a panic of a parser into errors: whoever waits must not hang.
func guardedRead(ctx context.Context, s microtome.BatchReader, refs []microtome.TileRef, out []microtome.TileResult) (n microtome.ReadCount) {
	defer func() {
		if p := recover(); p != nil {
			for i := range out {
				out[i] = microtome.TileResult{Err: fmt.Errorf("panic while reading: %v", p)}
			}
		}
	}()
	return s.ReadTiles(ctx, refs, out)
}

// readOne is picture.read, counted.
func (p *picture) readOne(ctx context.Context, col, row int) (res microtome.TileResult) {
	defer func() {
		if e := recover(); e != nil {
			res = microtome.TileResult{Err: fmt.Errorf("panic while reading: %v", e)}
		}
	}()
	t, err := p.read(ctx, col, row)
	if err == nil && p.built == nil {
		p.r.count.read(microtome.ReadOne(t))
	}
	return microtome.TileResult{Tile: t, Err: err}
}

// decode turns a tile that was read into pixels.
func (g *gather) decode(b *borrowed, t microtome.TileResult) (px microtome.Pixels, err error) {
	defer func() {
		if p := recover(); p != nil {
			px, err = nil, fmt.Errorf("panic while decoding: %v", p)
		}
	}()
	n := &g.loads[b.load]
	if !b.loan.Wanted() {
		return nil, context.Canceled
	}
	job := microtome.Job{Tile: t.Tile, Crop: b.crop, Reduce: n.p.reduce, Priority: g.a.priority, Urgency: b.urgency}
	if b.dst != nil {
		job.Dst = b.dst
	}
	return n.p.decoded(b.loan.Context(), n.col, n.row, job, t.Err)
}

// land draws a load that has come, from this goroutine's loan or another's.
func (g *gather) land(b *borrowed, px microtome.Pixels, err error) {
	n := &g.loads[b.load]
	switch {
	case errors.Is(err, microtome.ErrEmptyTile), g.a.forgiving && bearable(err):
		g.lack(int(b.load), err, true)
		return
	case err != nil:
		g.lack(int(b.load), err, false)
		return
	}
	for u := n.first; u >= 0; u = g.uses[u].next {
		g.uses[u].lay.missed.Store(true)
	}
	switch {
	case b.dst != nil && px == microtome.Pixels(b.dst): // it is where it belongs
		u := &g.uses[n.first]
		u.lay.drawn.Add(1)
		u.lay.landed()
	default:
		g.draw(int(b.load), px, n.p.cell(n.col, n.row).Min.Add(b.crop.Min))
	}
	if g.a.held != nil {
		n.kept = px // until the gathering has ended
		return
	}
	px.Release()
}
