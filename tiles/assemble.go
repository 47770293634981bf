package tiles

import (
	"context"
	"errors"
	"image"
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// window is how many tiles one question has on their way at once.
const window = 32

// piece is one tile on its way to a canvas.
type piece struct {
	ticket cache.Ticket[tileKey, microtome.Pixels]
	held   microtome.Pixels // in place of the ticket, when not nil
	col    int
	row    int
	part   image.Rectangle // of the picture, that is wanted
	origin image.Point     // where the ticket's pixels begin in the picture
}

// assemble lays the part src of the picture, which must lie inside it, on dst
// with its corner at (dx, dy). Empty tiles become background. It returns how
// many tiles had pixels; a tile that cannot be read fails the whole.
func (p *picture) assemble(ctx context.Context, src image.Rectangle, dst *canvas, dx, dy int, a access) (int, error) {
	if src.Empty() {
		return 0, nil
	}
	g := p.grid
	c0, c1 := src.Min.X/g.TileWidth, (src.Max.X-1)/g.TileWidth
	r0, r1 := src.Min.Y/g.TileHeight, (src.Max.Y-1)/g.TileHeight
	whole := a.cache == nil || a.held != nil || !a.partly || p.reduce > 0 || p.scan(c0, c1, r0, r1)
	var pieces [window]piece
	n, drawn := 0, 0
	off := image.Pt(dx-src.Min.X, dy-src.Min.Y)
	for row := r0; row <= r1; row++ {
		for col := c0; col <= c1; col++ {
			pieces[n] = p.begin(ctx, col, row, src, a, whole)
			if n++; n < window {
				continue
			}
			k, err := p.land(ctx, pieces[:n], dst, off, a)
			if drawn += k; err != nil {
				return drawn, err
			}
			n = 0
		}
	}
	k, err := p.land(ctx, pieces[:n], dst, off, a)
	return drawn + k, err
}

// begin asks for a tile's pixels: whole, or only the part inside src when that
// is at most half of it and nothing says that the rest will be needed.
func (p *picture) begin(ctx context.Context, col, row int, src image.Rectangle, a access, whole bool) piece {
	cell := p.cell(col, row)
	e := piece{col: col, row: row, part: cell.Intersect(src), origin: cell.Min}
	if e.held = a.held.get(col, row); e.held != nil {
		return e
	}
	k, kept := p.key(col, row), a.cache
	var crop image.Rectangle
	if !whole && 2*area(e.part) <= area(cell) && !a.has(k) {
		crop, kept = e.part.Sub(cell.Min), p.r.once
		e.origin = e.part.Min
		k.crop = [4]int32{int32(crop.Min.X), int32(crop.Min.Y), int32(crop.Max.X), int32(crop.Max.Y)}
	}
	if kept == nil {
		kept = p.r.once
	}
	e.ticket = begin(ctx, kept, k, p.slide, func(ctx context.Context) (microtome.Pixels, error) {
		return p.decode(ctx, col, row, crop, a.priority)
	})
	return e
}

// has says that a tile is kept, whole.
func (a access) has(k tileKey) bool {
	px, ok := a.cache.Lookup(k)
	if ok {
		px.Release()
	}
	return ok
}

func area(r image.Rectangle) int { return r.Dx() * r.Dy() }

// land waits for the pieces and draws them, all of them also after a failure:
// each ticket holds a reference.
func (p *picture) land(ctx context.Context, pieces []piece, dst *canvas, off image.Point, a access) (drawn int, err error) {
	for i := range pieces {
		e := &pieces[i]
		px, perr := e.wait(ctx)
		switch {
		case errors.Is(perr, microtome.ErrEmptyTile), a.forgiving && bearable(perr):
			at := e.part.Add(off)
			dst.fill(at.Min.X, at.Min.Y, at.Max.X, at.Max.Y, p.bg)
			continue
		case perr != nil:
			if err == nil {
				err = perr
			}
			continue
		}
		if err == nil {
			err = p.put(px, e, dst, off)
			drawn++
			a.held.put(e.col, e.row, px)
		}
		px.Release()
	}
	return drawn, err
}

// wait returns the piece's pixels with a reference of their own.
func (e *piece) wait(ctx context.Context) (microtome.Pixels, error) {
	if e.held != nil {
		return e.held, nil
	}
	px, _, err := e.ticket.Wait(ctx)
	return px, err
}

// put draws one piece.
func (p *picture) put(px microtome.Pixels, e *piece, dst *canvas, off image.Point) error {
	pix, stride, ok := px.Host()
	if !ok {
		return errNotHost
	}
	at, from := e.part.Add(off), e.part.Min.Sub(e.origin)
	ch := px.Channels()
	dst.draw(at.Min.X, at.Min.Y, block{
		pix: pix[from.Y*stride+from.X*ch:], stride: stride, w: e.part.Dx(), h: e.part.Dy(), ch: ch,
	}, p.bg)
	return nil
}

var errNotHost = errors.New("tiles: pixels are not in host memory")

// touches remembers which tiles were lately touched by regions: a tile touched
// for the second time, or whose neighbour in the same region was, is decoded
// whole and kept, since a scan is going on. It is a lossy table of 32-bit
// names; a wrong guess costs time, never pixels.
type touches struct {
	clock atomic.Uint32
	slots [touchSlots]atomic.Uint64
}

const (
	touchSlots = 1 << 13
	// touchAge is how many later touches a touch is remembered for.
	touchAge = 4096
)

// touch notes a tile and says whether it had been touched lately.
func (t *touches) touch(h uint64) bool {
	now := t.clock.Add(1)
	s := &t.slots[h%touchSlots]
	old := s.Swap(h&^0xffffffff | uint64(now))
	return old != 0 && old>>32 == h>>32 && now-uint32(old) <= touchAge
}

// scan touches all tiles of a region and says whether any had been before. One
// larger than a few tiles is a scan of its own.
func (p *picture) scan(c0, c1, r0, r1 int) bool {
	seen := false
	for row := r0; row <= r1; row++ {
		for col := c0; col <= c1; col++ {
			if p.r.touched.touch(p.key(col, row).hash()) {
				seen = true
			}
			if (row-r0+1)*(c1-c0+1) > touchAge/4 {
				return true
			}
		}
	}
	return seen
}
