package tiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microtome/microtome"
)

const (
	// largestTop is the side of a smallest level above which levels are built.
	largestTop = 2048
	// largestGap is the ratio of two neighbouring levels above which levels are
	// built between them.
	largestGap = 8
	// firstBuilt is the scale of the finest built level relative to the level
	// below it; what lies between is quick enough to make from there.
	firstBuilt = 4
	builtSide  = 256
	// maxBuiltWidth and maxBuiltTiles bound the memory of a build, one row of
	// tiles and the index: a header may claim any size. Slides above them (of
	// 700,000 pixels across) keep their previews.
	maxBuiltWidth = 700_000 / firstBuilt
	maxBuiltTiles = 1 << 22
	// pyramidVersion changes with the file's format and with the pixels in it.
	pyramidVersion = "1"
	pyramidSuffix  = ".pyramid"
	// A failed build is begun again with the next view, not before retryAfter
	// and after every further failure twice as long: it may be a full disk, or
	// a tile that nothing decodes.
	retryAfter  = 10 * time.Second
	retryAtMost = time.Hour
	maxSets     = 256
)

// builtGrid is one level to be built.
type builtGrid struct {
	microtome.Grid
	base  int // the stored level that it is made of
	scale [2]float64
}

// missingLevels are the levels that a slide lacks, finest first: halvings
// between two stored levels that lie far apart, and above a large smallest one.
func missingLevels(info *microtome.Info) (out []builtGrid) {
	for base := range info.Levels {
		l, scale := &info.Levels[base], levelScale(info, base)
		end := math.Inf(1)
		if base+1 < len(info.Levels) {
			next := levelScale(info, base+1)
			end = min(next[0], next[1]) / max(scale[0], scale[1])
			if end <= largestGap {
				continue
			}
		} else if max(l.Width, l.Height) <= largestTop {
			continue
		}
		for k := float64(firstBuilt); k < end; k *= 2 {
			g := builtGrid{base: base, scale: [2]float64{scale[0] * k, scale[1] * k}}
			g.Grid = microtome.Grid{
				Width: (l.Width + int64(k) - 1) / int64(k), Height: (l.Height + int64(k) - 1) / int64(k),
				TileWidth: builtSide, TileHeight: builtSide, Codec: microtome.CodecJPEG,
				Color: microtome.ColorYCbCr, Samples: 3, Bits: 8,
			}
			if l.Color == microtome.ColorGray || l.Color == microtome.ColorGrayWhite {
				g.Color, g.Samples = microtome.ColorGray, 1
			}
			g.Cols, g.Rows = int((g.Width+builtSide-1)/builtSide), int((g.Height+builtSide-1)/builtSide)
			if g.Width > maxBuiltWidth || g.Cols*g.Rows > maxBuiltTiles {
				break
			}
			out = append(out, g)
			if max(g.Width, g.Height) <= builtSide {
				break
			}
		}
	}
	return out
}

// pyramids builds and keeps the levels that slides lack: one slide at a time,
// behind all other work.
type pyramids struct {
	r      *Reader
	dir    string
	budget int64
	ctx    context.Context
	cancel context.CancelFunc
	turn   chan struct{} // holds one token: whoever has it builds
	wait   sync.WaitGroup
	count  struct{ built, failed, opened, evicted atomic.Int64 }

	mu   sync.Mutex
	sets map[setKey]*build
}

type setKey struct {
	generation string
	plane      int
}

// build is the state of one slide's built levels.
type build struct {
	key         setKey
	set         atomic.Pointer[builtSet] // nil until there
	done, total atomic.Int64             // rows of tiles
	running     atomic.Bool

	// opening is held by the one who opens a file or begins a build; it guards
	// what follows. Others wait as long as their callers do.
	opening chan struct{}
	looked  bool // for a file of an earlier run
	retry   time.Time
	pause   time.Duration // after the last failure
}

func newPyramids(r *Reader, dir string, budget int64) (*pyramids, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tiles: pyramid folder: %w", err)
	}
	p := &pyramids{r: r, dir: dir, budget: budget, turn: make(chan struct{}, 1), sets: map[setKey]*build{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.sweep()
	return p, nil
}

func (p *pyramids) close() {
	p.cancel()
	p.wait.Wait()
}

func (p *pyramids) stats() PyramidStats {
	st := PyramidStats{Built: p.count.built.Load(), Failed: p.count.failed.Load(),
		Opened: p.count.opened.Load(), Evicted: p.count.evicted.Load()}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.sets {
		st.Building = st.Building || b.running.Load()
	}
	return st
}

// finer returns the built level that is better than best for the view, if one
// is there. Otherwise it sees to it that one will be.
func (p *pyramids) finer(ctx context.Context, s microtome.Slide, v *View, plane int, best *picture) *picture {
	missing := missingLevels(best.info)
	for i := len(missing) - 1; i >= 0; i-- {
		g := &missing[i]
		q := &picture{r: p.r, slide: s, info: best.info, grid: g.Grid, level: i, plane: plane, bg: best.bg, scale: g.scale}
		if !q.suffices(v, best) {
			continue
		}
		b := p.state(setKey{best.info.Generation.ID, plane})
		q.built = b.set.Load()
		if q.built == nil {
			q.built = p.find(ctx, s, b, missing)
		}
		if q.built == nil {
			return best
		}
		return q
	}
	return best
}

// state returns the state of a slide's plane. Old ones are dropped; their files
// are closed when the last reader is done (by the garbage collector).
func (p *pyramids) state(k setKey) *build {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.sets[k]
	if b == nil {
		if len(p.sets) >= maxSets {
			for old, o := range p.sets {
				if !o.running.Load() {
					delete(p.sets, old)
					break
				}
			}
		}
		b = &build{key: k, opening: make(chan struct{}, 1)}
		p.sets[k] = b
	}
	return b
}

// find opens the file of an earlier run or, when there is none, starts to make
// it.
func (p *pyramids) find(ctx context.Context, s microtome.Slide, b *build, missing []builtGrid) *builtSet {
	select {
	case b.opening <- struct{}{}:
		defer func() { <-b.opening }()
	case <-ctx.Done():
		return nil
	}
	if set := b.set.Load(); set != nil || b.running.Load() || time.Now().Before(b.retry) {
		return set
	}
	name, err := p.fileName(ctx, s, b.key.plane)
	if err != nil {
		return nil // asked again with the next view
	}
	if !b.looked {
		b.looked = true
		if set, err := openBuilt(name, missing); err == nil {
			p.count.opened.Add(1)
			p.keep(b, set)
			return set
		} else if !errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(name) // broken: built anew
		}
	}
	if p.ctx.Err() != nil {
		return nil
	}
	b.running.Store(true)
	p.wait.Add(1)
	go p.build(s, hold(s), b, missing, name)
	return nil
}

// keep makes a set the slide's, until a broken tile is found in it.
func (p *pyramids) keep(b *build, set *builtSet) {
	set.broken = func() {
		if b.set.CompareAndSwap(set, nil) {
			_ = os.Remove(set.name)
		}
	}
	b.set.Store(set)
}

// fileName names the content, not the place, of what is in it.
func (p *pyramids) fileName(ctx context.Context, s microtome.Slide, plane int) (string, error) {
	id, err := s.ContentID(ctx)
	if err != nil {
		return "", err
	}
	info := s.Info()
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q %d %d %s\n", pyramidVersion, id, info.Generation.Size, plane, p.r.o.Decoder.Name())
	for _, l := range info.Levels {
		fmt.Fprintf(h, "%d %d\n", l.Width, l.Height)
	}
	return filepath.Join(p.dir, hex.EncodeToString(h.Sum(nil)[:16])+pyramidSuffix), nil
}

// build waits for its turn, builds, and notes the outcome.
func (p *pyramids) build(s microtome.Slide, release func(), b *build, missing []builtGrid, name string) {
	defer p.wait.Done()
	defer release()
	defer b.running.Store(false)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-p.ctx.Done():
		return
	}
	set, err := p.make(s, b, missing, name)
	if err != nil {
		p.count.failed.Add(1)
		b.opening <- struct{}{}
		b.pause = min(max(2*b.pause, retryAfter), retryAtMost)
		b.retry = time.Now().Add(b.pause)
		<-b.opening
		return
	}
	p.count.built.Add(1)
	p.keep(b, set)
	p.sweep()
}

// make writes a temporary file and gives it its name when it is whole.
func (p *pyramids) make(s microtome.Slide, b *build, missing []builtGrid, name string) (set *builtSet, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic while building: %v", x)
		}
	}()
	f, err := os.CreateTemp(p.dir, ".building-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // gone after the rename
	defer f.Close()
	w := newBuiltWriter(f, missing)
	if err := p.r.buildLevels(p.ctx, s, b, missing, w); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return nil, err
	}
	return openBuilt(name, missing)
}

// sweep removes what an interrupted run left, and the longest unused files
// above the budget.
func (p *pyramids) sweep() {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return
	}
	type file struct {
		name string
		size int64
		used time.Time
	}
	var files []file
	var total int64
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		name := filepath.Join(p.dir, e.Name())
		switch filepath.Ext(e.Name()) {
		case pyramidSuffix:
			files = append(files, file{name, fi.Size(), fi.ModTime()})
			total += fi.Size()
		default:
			if len(e.Name()) > 10 && e.Name()[:10] == ".building-" && time.Since(fi.ModTime()) > time.Hour {
				_ = os.Remove(name)
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= p.budget {
			break
		}
		if os.Remove(f.name) == nil {
			total -= f.size
			p.count.evicted.Add(1)
		}
	}
}

// Progress says how far the building of a slide's upper levels is, in rows of
// tiles. total is 0 when nothing is or was built since the start.
func (r *Reader) Progress(s microtome.Slide) (done, total int64, building bool) {
	if r.pyramid == nil {
		return 0, 0, false
	}
	id := s.Info().Generation.ID
	r.pyramid.mu.Lock()
	defer r.pyramid.mu.Unlock()
	for k, b := range r.pyramid.sets {
		if k.generation == id {
			done, total = done+b.done.Load(), total+b.total.Load()
			building = building || b.running.Load()
		}
	}
	return done, total, building
}
