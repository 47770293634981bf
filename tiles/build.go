package tiles

import (
	"context"
	"errors"
	"image"
	"time"

	"github.com/microtome/microtome"
)

const (
	builtQuality = 90
	// chunkWidth is how many columns of the finest built level are made at once:
	// with its 256 rows, 4 Mpixels of the level below.
	chunkWidth = 1024
	busyPause  = 50 * time.Millisecond
)

// buildLevels makes all missing levels. Each chain of halvings is streamed: a
// level holds one row of its tiles, so that memory is bounded by the width.
// Tiles of the slide that are corrupt become background there.
func (r *Reader) buildLevels(ctx context.Context, s microtome.Slide, b *build, missing []builtGrid, w *builtWriter) error {
	var total int64
	for i := range missing {
		if isFirst(missing, i) {
			total += int64(missing[i].Rows)
		}
	}
	b.done.Store(0)
	b.total.Store(total)
	for i := range missing {
		if !isFirst(missing, i) {
			continue
		}
		last := i
		for last+1 < len(missing) && missing[last+1].base == missing[i].base {
			last++
		}
		c := &chain{r: r, s: s, b: b, w: w, levels: missing[i : last+1], first: i}
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func isFirst(missing []builtGrid, i int) bool {
	return i == 0 || missing[i-1].base != missing[i].base
}

// chain makes the levels above one stored level.
type chain struct {
	r      *Reader
	s      microtome.Slide
	b      *build
	w      *builtWriter
	levels []builtGrid
	first  int // number of levels[0] in the file
	bands  []band
}

// band is a row of tiles of a level that is being made.
type band struct {
	pix    *canvas
	filled int // rows
	row    int // of tiles
}

func (c *chain) run(ctx context.Context) error {
	base := c.r.levelPicture(c.s, c.levels[0].base, c.b.key.plane, c.r.background(c.s.Info(), &PixelOptions{}))
	for _, g := range c.levels {
		c.bands = append(c.bands, band{pix: newCanvas(int(g.Width), min(builtSide, int(g.Height)), base.channels())})
	}
	defer func() {
		for _, b := range c.bands {
			b.pix.free()
		}
	}()
	for y := 0; y < int(c.levels[0].Height); y += builtSide {
		h := min(builtSide, int(c.levels[0].Height)-y)
		for x := 0; x < int(c.levels[0].Width); x += chunkWidth {
			part := image.Rect(x, y, min(x+chunkWidth, int(c.levels[0].Width)), y+h)
			if err := c.chunk(ctx, base, part); err != nil {
				return err
			}
		}
		c.bands[0].filled = h
		if err := c.emit(ctx, 0); err != nil {
			return err
		}
		c.b.done.Add(1)
	}
	return nil
}

// chunk makes a part of the finest level's band, again and again while the
// decoder is busy with what is more urgent.
func (c *chain) chunk(ctx context.Context, base *picture, part image.Rectangle) error {
	p := base
	if small := base.reduced(2); small != nil {
		p = small
	}
	q := request{p: p, x0: int64(part.Min.X), y0: int64(part.Min.Y), w: part.Dx(), h: part.Dy(), clamp: true,
		access: access{priority: microtome.PriorityBackground, cache: c.r.once, forgiving: true}}
	q.ax = axis{step: stepOf(c.levels[0].scale[0] / p.scale[0]), size: p.grid.Width}
	q.ay = axis{step: stepOf(c.levels[0].scale[1] / p.scale[1]), size: p.grid.Height}
	for {
		got, _, err := q.scaled(ctx)
		if err == nil {
			c.bands[0].pix.draw(part.Min.X, 0, block{pix: got.pix, stride: got.w * got.ch, w: got.w, h: got.h, ch: got.ch}, p.bg)
			got.free()
			return nil
		}
		if !errors.Is(err, microtome.ErrBusy) {
			return err
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// emit writes the tiles of a filled band and hands its half to the next level.
func (c *chain) emit(ctx context.Context, n int) error {
	b, g := &c.bands[n], &c.levels[n]
	for col := range g.Cols {
		cell := g.TileRect(col, b.row)
		tile := newCanvas(cell.Dx(), cell.Dy(), b.pix.ch)
		tile.draw(0, 0, block{pix: b.pix.pix[cell.Min.X*b.pix.ch:], stride: b.pix.w * b.pix.ch, w: cell.Dx(), h: cell.Dy(), ch: b.pix.ch}, microtome.RGB{})
		px := tile.pixels()
		data, err := c.r.o.Encoder.Encode(ctx, px, microtome.EncodeOptions{Quality: builtQuality})
		px.Release()
		if err != nil {
			return err
		}
		c.w.tile(c.first+n, col, b.row, data)
	}
	if err := errors.Join(c.w.err, ctx.Err()); err != nil {
		return err
	}
	last := b.row == g.Rows-1
	if n+1 < len(c.levels) {
		if err := c.halve(ctx, n, last); err != nil {
			return err
		}
	}
	b.row, b.filled = b.row+1, 0
	return nil
}

// halve adds half a band to the next level's, and writes that when it is full.
func (c *chain) halve(ctx context.Context, n int, last bool) error {
	from, to := &c.bands[n], &c.bands[n+1]
	w, h := to.pix.w, (from.filled+1)/2
	f := newFilter(axis{step: 2 * one, size: int64(from.pix.w)}, axis{step: 2 * one, size: int64(from.filled)}, 0, w, true, from.pix.ch, microtome.RGB{})
	half := newCanvas(w, h, from.pix.ch)
	f.rows(half, 0, h, 0, from.pix, image.Rect(0, 0, from.pix.w, from.filled))
	to.pix.draw(0, to.filled, block{pix: half.pix, stride: w * half.ch, w: w, h: h, ch: half.ch}, microtome.RGB{})
	half.free()
	to.filled += h
	if to.filled == builtSide || last {
		return c.emit(ctx, n+1)
	}
	return nil
}
