package tiles

import (
	"context"
	"errors"
	"fmt"
	"image"

	"github.com/microtome/microtome"
)

// Stored returns the stored tile as a picture that plays by itself.
//
// A JPEG tile leaves as it is stored: never decoded, its tables and a marker
// that says what its colours are spliced in. At the right and bottom edge it is
// cut, without decoding, to what lies inside the slide. What a browser can't
// play (JPEG 2000, Deflate, bands of strips, …) is decoded and leaves as JPEG,
// Made being Rendered. An empty tile is background (Empty), or painted from the
// next larger level where the slide says so (Rendered).
func (r *Reader) Stored(ctx context.Context, s microtome.Slide, level, plane, col, row int) (Answer, error) {
	if err := inGrid(s.Info(), level, plane, col, row); err != nil {
		return Answer{}, err
	}
	return r.stored(ctx, s, level, plane, col, row, r.background(s.Info(), &PixelOptions{}))
}

// inGrid says whether there is such a tile.
func inGrid(info *microtome.Info, level, plane, col, row int) error {
	if level < 0 || level >= len(info.Levels) {
		return fmt.Errorf("level %d: %w", level, microtome.ErrNotFound)
	}
	n := info.Planes
	if plane < 0 || plane >= max(n.C, 1)*max(n.Z, 1)*max(n.T, 1) {
		return fmt.Errorf("plane %d: %w", plane, microtome.ErrNotFound)
	}
	if g := &info.Levels[level]; col < 0 || row < 0 || col >= g.Cols || row >= g.Rows {
		return fmt.Errorf("level %d: tile %d,%d: %w", level, col, row, microtome.ErrNotFound)
	}
	return nil
}

// stored answers for a tile that is known to exist.
func (r *Reader) stored(ctx context.Context, s microtome.Slide, level, plane, col, row int, bg microtome.RGB) (Answer, error) {
	k := answerKey{
		generation: s.Info().Generation.ID, ask: askStored, background: bg,
		plane: int32(plane), level: int32(level), x: int64(col), y: int64(row),
	}
	if a, ok := r.answers.Lookup(k); ok {
		out := *a
		out.CacheHit = true
		return out, nil
	}
	return r.answered(ctx, s, k, cellCost(&s.Info().Levels[level].Grid), func(ctx context.Context) (*Answer, error) {
		return r.loadStored(ctx, s, level, plane, col, row, bg)
	})
}

func (r *Reader) loadStored(ctx context.Context, s microtome.Slide, level, plane, col, row int, bg microtome.RGB) (*Answer, error) {
	p := r.levelPicture(s, level, plane, bg)
	t, err := s.ReadTile(ctx, level, plane, col, row)
	if errors.Is(err, microtome.ErrEmptyTile) || err == nil && !playsItself(t) {
		return r.renderCell(ctx, p, col, row, &PixelOptions{Background: &bg}, access{cache: r.pixels})
	}
	if err != nil {
		return nil, p.at(col, row, err)
	}
	a := &Answer{Format: microtome.FormatJPEG, Engine: "none", Width: t.VisibleWidth, Height: t.VisibleHeight, Channels: p.channels()}
	p.describe(a)
	if t.VisibleWidth < t.Width || t.VisibleHeight < t.Height {
		a.Made = Cropped
		t.Data, err = r.o.Encoder.CropJPEG(ctx, t)
		if errors.Is(err, microtome.ErrUnsupported) {
			return r.renderCell(ctx, p, col, row, &PixelOptions{Background: &bg}, access{cache: r.pixels})
		}
		if err != nil {
			return nil, p.at(col, row, err)
		}
	}
	if a.Body, err = withColor(t.Data, t.Color, a.Width, a.Height); err != nil {
		return nil, p.at(col, row, err)
	}
	return a, nil
}

// cellCost is what a cell's picture takes.
func cellCost(g *microtome.Grid) int64 { return pixelCost(int64(g.TileWidth), int64(g.TileHeight)) }

// describe fills in an answer's scale: that of the picture.
func (p *picture) describe(a *Answer) {
	a.Level = max(p.level, 0)
	if p.level < 0 || p.built != nil {
		return
	}
	a.Downsample = p.info.Levels[p.level].Downsample
	if m := p.info.MPP; m != nil {
		a.MPP = &microtome.MPP{X: m.X * a.Downsample, Y: m.Y * a.Downsample}
	}
}

// playsItself says that a tile's bytes are a whole JPEG picture whose colours a
// marker can tell.
func playsItself(t microtome.Tile) bool {
	if t.Codec != microtome.CodecJPEG || t.FirstRow != 0 || t.StreamHeight != 0 && t.StreamHeight != t.Height {
		return false
	}
	switch t.Color {
	case microtome.ColorGray:
		return t.Samples == 1
	case microtome.ColorRGB, microtome.ColorYCbCr:
		return t.Samples == 3
	}
	return false
}

// StoredPixels returns the stored tile's visible part, decoded and encoded.
func (r *Reader) StoredPixels(ctx context.Context, s microtome.Slide, level, plane, col, row int, o PixelOptions) (Answer, error) {
	info := s.Info()
	if err := inGrid(info, level, plane, col, row); err != nil {
		return Answer{}, err
	}
	k := r.pixelKey(info, askTile, plane, &o)
	k.level, k.x, k.y = int32(level), int64(col), int64(row)
	return r.answered(ctx, s, k, cellCost(&s.Info().Levels[level].Grid), func(ctx context.Context) (*Answer, error) {
		p := r.levelPicture(s, level, plane, r.background(info, &o))
		return r.renderCell(ctx, p, col, row, &o, access{priority: o.Priority, cache: r.pixels})
	})
}

// renderCell encodes one cell's visible part.
func (r *Reader) renderCell(ctx context.Context, p *picture, col, row int, o *PixelOptions, acc access) (*Answer, error) {
	px, drawn, err := p.rectangle(ctx, p.cell(col, row), acc)
	if err != nil {
		return nil, err
	}
	defer px.Release()
	a := answerOf(px, drawn)
	p.describe(a)
	return r.encode(ctx, p.slide, px, a, o)
}

// rectangle is a part of the picture as pixels.
func (p *picture) rectangle(ctx context.Context, part image.Rectangle, acc access) (microtome.Pixels, int, error) {
	if int64(part.Dx()) > p.r.o.MaxPixels/int64(max(part.Dy(), 1)) {
		return nil, 0, fmt.Errorf("%dx%d pixels, at most %d: %w", part.Dx(), part.Dy(), p.r.o.MaxPixels, microtome.ErrLimit)
	}
	dst := newCanvas(part.Dx(), part.Dy(), p.channels())
	drawn, err := p.assemble(ctx, part, dst, 0, 0, acc)
	if err != nil {
		dst.free()
		return nil, 0, err
	}
	return dst.pixels(), drawn, nil
}

// inherited paints an empty tile from the next larger level, as OpenSlide does
// for Aperio: the part of that level under the tile, made smaller. (OpenSlide
// scales with cairo's filter; we with the area filter.) When that level is empty
// there as well, so is this tile.
func (p *picture) inherited(ctx context.Context, col, row int, crop image.Rectangle, pr microtome.Priority) (microtome.Pixels, error) {
	larger := p.r.levelPicture(p.slide, p.level-1, p.plane, p.bg)
	cell := p.cell(col, row)
	if !crop.Empty() {
		cell = crop.Add(cell.Min)
	}
	q := request{p: larger, x0: int64(cell.Min.X), y0: int64(cell.Min.Y), w: cell.Dx(), h: cell.Dy(), clamp: true,
		access: access{priority: pr, cache: p.r.pixels}}
	q.ax = axis{step: stepOf(p.scale[0] / larger.scale[0]), size: larger.grid.Width}
	q.ay = axis{step: stepOf(p.scale[1] / larger.scale[1]), size: larger.grid.Height}
	if tilesUnder(larger.grid, q.source(0, q.h)) > maxTiles {
		return nil, microtome.ErrEmptyTile
	}
	dst, drawn, err := q.scaled(ctx)
	if err != nil {
		return nil, err
	}
	if drawn == 0 {
		dst.free()
		return nil, microtome.ErrEmptyTile
	}
	return dst.pixels(), nil
}
