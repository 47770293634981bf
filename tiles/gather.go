package tiles

import (
	"context"
	"image"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// gather lays tiles on canvases: each tile that several lays need is read and
// decoded once, and drawn on all of them while it is warm.
type gather struct {
	r     *Reader
	a     access
	loads []load
	uses  []use
	named map[tileKey]int32 // loads by key; nil for a single lay
}

// load is a tile on its way.
type load struct {
	p        *picture
	col, row int
	key      tileKey
	kept     microtome.Pixels // found, in place of a decode
	first    int32            // of its uses, -1: none
	n        int32            // of its uses
	whole    bool
}

// use is a lay that needs a part of a load.
type use struct {
	lay  *lay
	part image.Rectangle // of the picture
	next int32           // of the same load, -1: none
}

const (
	// maxLoads bounds the tiles that a gathering knows at once.
	maxLoads = 2048
	// maxGroup bounds the tiles that one worker reads at once.
	maxGroup = 8
)

// lay lays all of them. Each tells by its err whether it is whole; ctx's error
// is that of every lay that was not finished when it ended.
func (r *Reader) lay(ctx context.Context, lays []*lay, a access) {
	g := &gather{r: r, a: a}
	if len(lays) > 1 {
		g.named = make(map[tileKey]int32)
	}
	for _, l := range lays {
		l.left.Store(1)
		g.collect(ctx, l)
		l.landed()
	}
	g.run(ctx)
}

// collect enters the tiles of a lay, and works off what has gathered when that
// is much.
func (g *gather) collect(ctx context.Context, l *lay) {
	if l.src.Empty() {
		return
	}
	grid := &l.p.grid
	c0, c1 := l.src.Min.X/grid.TileWidth, (l.src.Max.X-1)/grid.TileWidth
	r0, r1 := l.src.Min.Y/grid.TileHeight, (l.src.Max.Y-1)/grid.TileHeight
	for row := r0; row <= r1; row++ {
		for col := c0; col <= c1; col++ {
			if len(g.loads) >= maxLoads {
				g.run(ctx)
			}
			i := g.find(l.p, col, row)
			n := &g.loads[i]
			l.left.Add(1)
			g.uses = append(g.uses, use{lay: l, part: l.p.cell(col, row).Intersect(l.src), next: n.first})
			n.first = int32(len(g.uses) - 1)
			n.n++
		}
	}
}

// find is the load of a tile.
func (g *gather) find(p *picture, col, row int) int32 {
	k := p.key(col, row)
	if i, ok := g.named[k]; ok {
		return i
	}
	g.loads = append(g.loads, load{p: p, col: col, row: row, key: k, first: -1})
	i := int32(len(g.loads) - 1)
	if g.named != nil {
		g.named[k] = i
	}
	return i
}

// run loads and draws what has gathered, and forgets it.
func (g *gather) run(ctx context.Context) {
	if len(g.loads) == 0 {
		return
	}
	missing := g.lookUp()
	g.choose(missing)
	g.each(ctx, missing)
	if h := g.a.held; h != nil {
		for i := range g.loads {
			if n := &g.loads[i]; n.kept != nil {
				h.put(n.col, n.row, n.kept)
			}
		}
	}
	for i := range g.loads {
		if px := g.loads[i].kept; px != nil {
			px.Release()
		}
	}
	g.loads, g.uses = g.loads[:0], g.uses[:0]
	clear(g.named)
}

// lookUp finds what is kept, and returns the loads that are not.
func (g *gather) lookUp() []int32 {
	missing := make([]int32, 0, len(g.loads))
	for i := range g.loads {
		n := &g.loads[i]
		if n.kept = g.a.held.get(n.col, n.row); n.kept == nil && g.a.cache != nil {
			if px, ok := g.a.cache.Lookup(n.key); ok {
				n.kept = px
			}
		}
		if n.kept == nil {
			missing = append(missing, int32(i))
		}
	}
	return missing
}

// each draws what is kept and works off what is missing, in the order of the
// lays, by as many workers as there is work for.
func (g *gather) each(ctx context.Context, missing []int32) {
	// Callers at once keep the others busy themselves.
	most := max(1, runtime.GOMAXPROCS(0)+1-int(g.r.ahead.busy.Load()))
	size := min(maxGroup, (len(missing)+most-1)/most)
	size = max(size, 1)
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(int64(size)))
			if end-size >= len(missing) {
				return
			}
			g.fetch(ctx, missing[end-size:min(end, len(missing))])
		}
	}
	var others sync.WaitGroup
	var failed atomic.Pointer[any] // a panic of another worker, for the caller
	defer func() {
		if p := failed.Load(); p != nil {
			panic(*p)
		}
	}()
	for range min(most, (len(missing)+size-1)/size) - 1 {
		others.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					failed.Store(&p)
				}
			}()
			work()
		})
	}
	for i := range g.loads {
		if n := &g.loads[i]; n.kept != nil {
			g.draw(i, n.kept, n.p.cell(n.col, n.row).Min)
		}
	}
	work()
	others.Wait()
}

// choose says which of the missing tiles are decoded whole: those of which more
// than three quarters are needed, that several lays need or that were lately
// touched; and all of them when so many are that a scan is going on.
func (g *gather) choose(missing []int32) {
	whole := !g.a.partly
	again := len(g.loads) - len(missing)
	for _, i := range missing {
		n := &g.loads[i]
		n.whole = whole || n.p.reduce > 0
		if n.whole {
			continue
		}
		if g.r.touched.touch(n.key.hash()) || n.n > 1 {
			n.whole = true
			again++
			continue
		}
		n.whole = 4*area(g.uses[n.first].part) > 3*area(n.p.cell(n.col, n.row))
	}
	if again > 0 && 3*again >= len(g.loads) || len(g.loads) > touchAge/4 {
		for _, i := range missing {
			g.loads[i].whole = true
		}
	}
}

func area(r image.Rectangle) int { return r.Dx() * r.Dy() }

// draw lays the pixels of a load, which begin at origin, wherever they are
// needed.
func (g *gather) draw(i int, px microtome.Pixels, origin image.Point) {
	for u := g.loads[i].first; u >= 0; u = g.uses[u].next {
		use := &g.uses[u]
		if err := use.lay.put(px, origin, use.part); err != nil {
			use.lay.fail(i, err)
		}
		use.lay.drawn.Add(1)
		use.lay.landed()
	}
}

// lack tells all who need a load that it has no pixels.
func (g *gather) lack(i int, err error, blank bool) {
	for u := g.loads[i].first; u >= 0; u = g.uses[u].next {
		use := &g.uses[u]
		if blank {
			use.lay.blank(use.part)
		} else {
			use.lay.fail(i, err)
		}
		use.lay.landed()
	}
}

// unwanted is why every lay of a load has failed already; nil when one has not.
func (g *gather) unwanted(n *load) (err error) {
	for u := n.first; u >= 0; u = g.uses[u].next {
		if err = g.uses[u].lay.err(); err == nil {
			return nil
		}
	}
	return err
}
