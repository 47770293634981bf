package deepzoom

import (
	"fmt"
	"image"
	"math/bits"

	"github.com/microtome/microtome"
)

// Pyramid is the virtual pyramid of an image: each level is half the next, with
// both sides rounded up, from 1x1 to the whole image.
type Pyramid struct {
	Width, Height int64 // of the image, at least 1
	Tile          int   // side of a tile without its overlap, at least 1
	Overlap       int   // pixels that a tile reaches into each neighbour
}

// MaxLevel is the level of the whole image: ceil(log2(longer side)).
func (p Pyramid) MaxLevel() int {
	return bits.Len64(uint64(max(p.Width, p.Height) - 1))
}

// Levels counts the levels.
func (p Pyramid) Levels() int { return p.MaxLevel() + 1 }

// Size is a level's size: the image's, halved and rounded up once a level,
// which equals one rounding up of the quotient.
func (p Pyramid) Size(level int) (zw, zh int64) {
	k := uint(p.MaxLevel() - level)
	return ceilShift(p.Width, k), ceilShift(p.Height, k)
}

// Grid counts a level's columns and rows.
func (p Pyramid) Grid(level int) (cols, rows int64) {
	zw, zh := p.Size(level)
	t := int64(p.Tile)
	return (zw + t - 1) / t, (zh + t - 1) / t
}

// Cell is one tile: a rectangle of a level of size Width x Height, which shows
// the image at 1/Downsample.
type Cell struct {
	Downsample    float64
	Width, Height int64
	Rect          image.Rectangle
}

// Cell finds a tile, its overlap included. Outside the grid is ErrNotFound.
func (p Pyramid) Cell(level, col, row int) (Cell, error) {
	if level < 0 || level > p.MaxLevel() {
		return Cell{}, fmt.Errorf("Deep Zoom level %d: %w", level, microtome.ErrNotFound)
	}
	cols, rows := p.Grid(level)
	if col < 0 || row < 0 || int64(col) >= cols || int64(row) >= rows {
		return Cell{}, fmt.Errorf("Deep Zoom tile %d,%d of level %d: %w", col, row, level, microtome.ErrNotFound)
	}
	zw, zh := p.Size(level)
	x0, x1 := p.span(int64(col), zw)
	y0, y1 := p.span(int64(row), zh)
	return Cell{
		Downsample: float64(int64(1) << uint(p.MaxLevel()-level)),
		Width:      zw,
		Height:     zh,
		Rect:       image.Rect(int(x0), int(y0), int(x1), int(y1)),
	}, nil
}

// span is a tile's extent on one axis of length size.
func (p Pyramid) span(i, size int64) (lo, hi int64) {
	t, o := int64(p.Tile), int64(p.Overlap)
	return max(i*t-o, 0), min((i+1)*t+o, size)
}

// ceilShift is ceil(n / 2^k) for n >= 1.
func ceilShift(n int64, k uint) int64 {
	return (n-1)>>k + 1
}
