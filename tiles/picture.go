package tiles

import (
	"context"
	"errors"
	"fmt"
	"image"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// picture is one image with a grid of tiles: a level's plane, an associated
// image, or a level that we built; also one of them at a reduced size, whose
// tiles are decoded at that size.
type picture struct {
	r     *Reader
	slide microtome.Slide
	info  *microtome.Info
	grid  microtome.Grid // reduced
	level int            // stored level; -1 for an associated image
	plane int
	name  string    // of an associated image
	built *builtSet // when not nil, level counts its levels
	// reduce says that tiles are decoded at 1/2^reduce.
	reduce int
	bg     microtome.RGB
	// scale is how many level-0 pixels lie under one pixel, on each axis. It is
	// 0 for an associated image.
	scale [2]float64
}

// builtLevel is added to a built level's number in keys.
const builtLevel = 1 << 16

// access is how a picture's tiles are fetched.
type access struct {
	priority microtome.Priority
	// cache keeps the tiles; nil: nothing is kept or looked for.
	cache *cache.Cache[tileKey, microtome.Pixels]
	// partly, of a picture with a cache and nothing held, lets a tile that is
	// touched for the first time be decoded only
	// where it is touched.
	partly bool
	// forgiving paints corrupt tiles as background.
	forgiving bool
	// held, when not nil, keeps large tiles from band to band.
	held *held
}

// levelPicture is a stored level.
func (r *Reader) levelPicture(s microtome.Slide, level, plane int, bg microtome.RGB) *picture {
	info := s.Info()
	p := &picture{r: r, slide: s, info: info, grid: info.Levels[level].Grid, level: level, plane: plane, bg: bg}
	p.scale = levelScale(info, level)
	return p
}

// reduced is the same picture with its tiles decoded at 1/2^n; nil when they
// would not abut.
func (p *picture) reduced(n int) *picture {
	side := 1 << n
	if n == 0 {
		return p
	}
	g := p.grid
	if g.TileWidth%side != 0 && g.Cols > 1 || g.TileHeight%side != 0 && g.Rows > 1 || !p.r.o.Decoder.CanReduce(g.Codec) {
		return nil
	}
	q := *p
	q.reduce = n
	q.grid.Width, q.grid.Height = shrink(g.Width, n), shrink(g.Height, n)
	q.grid.TileWidth, q.grid.TileHeight = int(shrink(int64(g.TileWidth), n)), int(shrink(int64(g.TileHeight), n))
	q.scale = [2]float64{p.scale[0] * float64(side), p.scale[1] * float64(side)}
	return &q
}

// shrink is ceil(n / 2^r).
func shrink(n int64, r int) int64 { return (n + 1<<r - 1) >> r }

// channels is 1 for grey pictures, else 3.
func (p *picture) channels() int {
	if p.grid.Color == microtome.ColorGray || p.grid.Color == microtome.ColorGrayWhite {
		return 1
	}
	return 3
}

func (p *picture) key(col, row int) tileKey {
	k := tileKey{
		generation: p.info.Generation.ID, name: p.name, level: int32(p.level), plane: int32(p.plane),
		col: int32(col), row: int32(row), reduce: int8(p.reduce),
	}
	if p.built != nil {
		k.level += builtLevel
	}
	if p.inherits() {
		k.background = p.bg
	}
	return k
}

// inherits says that an empty tile is painted from the next larger level.
func (p *picture) inherits() bool {
	return p.info.InheritEmpty && p.built == nil && p.level > 0
}

// read fetches a tile's bytes.
func (p *picture) read(ctx context.Context, col, row int) (microtome.Tile, error) {
	switch {
	case p.built != nil:
		return p.built.read(p.level, col, row)
	case p.level < 0:
		return p.slide.ReadAssociated(ctx, p.name, col, row)
	}
	return p.slide.ReadTile(ctx, p.level, p.plane, col, row)
}

// decoded turns a tile that was read, or could not be, into the pixels of a job.
func (p *picture) decoded(ctx context.Context, col, row int, j microtome.Job, err error) (microtome.Pixels, error) {
	if errors.Is(err, microtome.ErrEmptyTile) && p.inherits() {
		return p.inherited(ctx, col, row, j.Crop, j.Priority)
	}
	if err != nil {
		return nil, p.at(col, row, err)
	}
	if t := &j.Tile; t.VisibleWidth <= 0 || t.VisibleHeight <= 0 {
		return nil, p.at(col, row, fmt.Errorf("nothing of it is visible: %w", microtome.ErrCorrupt))
	}
	p.r.count.decodes.Add(1)
	res := p.r.o.Decoder.DecodeBatch(ctx, []microtome.Job{j})
	if len(res) != 1 {
		return nil, p.at(col, row, fmt.Errorf("the decoder gave %d answers to one job", len(res)))
	}
	if res[0].Err != nil {
		p.r.count.decodeErrors.Add(1)
		return nil, p.at(col, row, res[0].Err)
	}
	want := p.cell(col, row).Size()
	if !j.Crop.Empty() {
		want = j.Crop.Size()
	}
	if got := res[0].Pixels; got.Width() < want.X || got.Height() < want.Y {
		err := fmt.Errorf("decoded to %dx%d of %dx%d: %w", got.Width(), got.Height(), want.X, want.Y, microtome.ErrCorrupt)
		got.Release()
		return nil, p.at(col, row, err)
	}
	return res[0].Pixels, nil
}

// cell is the visible part of a tile, in the picture's pixels.
func (p *picture) cell(col, row int) image.Rectangle { return p.grid.TileRect(col, row) }

// at adds the place to an error. An empty tile is no failure and stays bare.
func (p *picture) at(col, row int, err error) error {
	switch {
	case errors.Is(err, microtome.ErrEmptyTile):
		return microtome.ErrEmptyTile
	case p.level < 0:
		return fmt.Errorf("associated image %q: tile %d,%d: %w", p.name, col, row, err)
	case p.built != nil:
		return fmt.Errorf("built level %d: tile %d,%d: %w", p.level, col, row, err)
	}
	return fmt.Errorf("level %d: tile %d,%d: %w", p.level, col, row, err)
}
