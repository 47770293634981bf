package tiles

import (
	"context"
	"image"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// ahead watches callers that ask for one region after the other. Of one that
// steps along a line, the tiles under the next steps are loaded by workers that
// would stand idle: so one caller keeps all cores busy. Nothing is loaded ahead
// while as many regions are being made as there are workers.
type ahead struct {
	r       *Reader
	workers int
	busy    atomic.Int32 // regions being made
	loading atomic.Int32 // steps being loaded ahead
	sent    atomic.Int64 // steps loaded ahead, since the start
	used    atomic.Int64 // of them asked for later

	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	streams [aheadStreams]stream
	clock   uint64
}

const (
	aheadStreams = 32
	// aheadSure is how many equal steps make a line.
	aheadSure = 2
	// aheadDepth is how many steps a worker are loaded ahead.
	aheadDepth = 3
	// aheadPixels bounds a region that is worth it.
	aheadPixels = 1 << 20
)

// scanKey tells apart what may be one caller's scan.
type scanKey struct {
	generation   string
	level, plane int32
	w, h         int
	stepX, stepY uint64
}

// stream is one scan. The n-th next region lies n steps beyond the last.
type stream struct {
	key    scanKey
	last   image.Point
	step   image.Point
	sure   int // equal steps so far
	loaded int // of the next steps, loaded ahead already
	count  int // steps since the last turn
	line   int // steps of the line before that, 0 when unknown
	used   uint64
}

func newAhead(r *Reader) *ahead {
	a := &ahead{r: r, workers: runtime.GOMAXPROCS(0)}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// close waits until nothing is being loaded.
func (a *ahead) close() {
	a.stop()
	a.all.Wait()
}

// begin notes that a region is being made; the caller calls the answer when it
// is.
func (a *ahead) begin() (end func()) {
	a.busy.Add(1)
	return func() { a.busy.Add(-1) }
}

// saw notes a region that is about to be made, and loads ahead: to the device d,
// or, when that is nil, to the CPU's cache.
func (a *ahead) saw(g *regionPlan, d *device) {
	q := &g.req
	c := a.r.patches
	if d != nil {
		c = d.kept
	}
	if a.workers < 2 || area(q.source(0, q.h)) > aheadPixels || a.r.tileBytes(q.p) > c.Largest() {
		return
	}
	at := image.Pt(int(q.ax.origin), int(q.ay.origin))
	key := scanKey{q.p.info.Generation.ID, int32(q.p.level), int32(q.p.plane), q.w, q.h, q.ax.step, q.ay.step}
	from, step, n := a.follow(key, at)
	for i := range n {
		next := *q
		next.ax.origin += int64((from + i) * step.X)
		next.ay.origin += int64((from + i) * step.Y)
		src := next.source(0, next.h)
		if src.Empty() {
			return
		}
		a.send(&next, src, d)
	}
}

// follow finds the scan that a region belongs to. The n steps from the from-th
// on are to be loaded.
func (a *ahead) follow(key scanKey, at image.Point) (from int, step image.Point, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock++
	s := a.find(key, at)
	s.used = a.clock
	moved := at.Sub(s.last)
	switch {
	case s.sure >= 0 && moved == s.step && moved != image.Point{}:
		s.sure++
		s.count++
		if s.loaded > 0 {
			s.loaded--
			a.used.Add(1)
		}
	case s.sure >= aheadSure:
		// A new row, perhaps: if the next step is the old one, the line goes on.
		s.sure, s.loaded, s.line, s.count = aheadSure-1, 0, s.count, 0
	default:
		s.sure, s.step, s.loaded, s.line, s.count = 0, moved, 0, 0, 0
	}
	s.last = at
	if s.sure < aheadSure || int(a.busy.Load()) >= a.workers {
		return 0, image.Point{}, 0
	}
	// More than run at once: the next begins before the caller comes again.
	n = min(aheadDepth*a.workers-int(a.loading.Load()), aheadDepth*a.workers-s.loaded)
	if s.line > 0 && s.line >= s.count { // lines of a scan are of one length
		n = min(n, s.line-s.count-s.loaded)
	}
	n = max(n, 0)
	from = s.loaded + 1
	s.loaded += n
	return from, s.step, n
}

// find is the stream that expects a region, else one whose scan may have turned
// there, else one in place of that unused for longest. The lock is held.
func (a *ahead) find(key scanKey, at image.Point) *stream {
	var turned, oldest *stream
	for i := range a.streams {
		s := &a.streams[i]
		if s.used > 0 && s.key == key {
			if s.last.Add(s.step) == at {
				return s
			}
			if s.mayTurn(at) && (turned == nil || s.used > turned.used) {
				turned = s
			}
		}
		if oldest == nil || s.used < oldest.used {
			oldest = s
		}
	}
	if turned != nil {
		return turned
	}
	*oldest = stream{key: key, last: at, sure: -1}
	return oldest
}

// mayTurn says that a region may be the next of a scan: it lies next to the last
// or, when that was at the end of a line, in the next one.
func (s *stream) mayTurn(at image.Point) bool {
	d := at.Sub(s.last)
	dx, dy := max(d.X, -d.X), max(d.Y, -d.Y)
	if s.sure < aheadSure {
		return dx <= 2*s.key.w && dy <= 2*s.key.h
	}
	return dx <= 2*s.key.w || dy <= 2*s.key.h
}

// send loads the tiles under a request, in the background.
func (a *ahead) send(q *request, src image.Rectangle, d *device) {
	release := hold(q.p.slide)
	a.loading.Add(1)
	a.sent.Add(1)
	a.all.Go(func() {
		defer release()
		defer a.loading.Add(-1)
		if d != nil {
			d.warm(a.ctx, a.r, q)
			return
		}
		l := &lay{p: q.p, src: src, warm: true}
		a.r.lay(a.ctx, []*lay{l}, access{priority: microtome.PrioritySampler, cache: a.r.patches})
	})
}

// tileBytes is about what a tile's pixels take.
func (r *Reader) tileBytes(p *picture) int64 {
	return int64(p.grid.TileWidth) * int64(p.grid.TileHeight) * int64(p.channels())
}
