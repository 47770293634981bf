package formats

import (
	"context"
	"errors"
	"image"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// maxScanned is the most tiles whose places are read to find the box of stored
// ones; above it the box is unknown.
const maxScanned = 1 << 22

// storedBox is the box of a directory's stored tiles in its own pixels: nil
// when every edge has one (then there is nothing to tell), empty when none is
// stored at all. Only edges are looked at unless one is bare, so that a slide
// without gaps costs four look-ups.
func storedBox(ctx context.Context, d *tiff.Dir) (*image.Rectangle, error) {
	if !isTiled(d) {
		return nil, nil
	}
	g, err := planeGridOf(d)
	if err != nil || int64(g.Cols)*int64(g.Rows) > maxScanned {
		return nil, nil // what can't be shown has no box
	}
	s := tileScan{ctx: ctx, dir: d, cols: g.Cols}
	all := image.Rect(0, 0, g.Cols, g.Rows)
	for _, edge := range []image.Rectangle{
		image.Rect(0, 0, g.Cols, 1), image.Rect(0, 0, 1, g.Rows),
		image.Rect(0, g.Rows-1, g.Cols, g.Rows), image.Rect(g.Cols-1, 0, g.Cols, g.Rows),
	} {
		if s.any(edge) {
			continue
		}
		box := s.box(all)
		if s.err != nil {
			return nil, s.err
		}
		pixels := image.Rect(box.Min.X*g.TileWidth, box.Min.Y*g.TileHeight, box.Max.X*g.TileWidth, box.Max.Y*g.TileHeight).
			Intersect(image.Rect(0, 0, int(g.Width), int(g.Height)))
		return &pixels, nil
	}
	return nil, s.err
}

// tileScan looks up which tiles are stored and keeps the first failure of the
// source.
type tileScan struct {
	ctx  context.Context
	dir  *tiff.Dir
	cols int
	err  error
}

// stored says whether a tile has bytes. One whose entry is broken counts as
// stored: reading it will fail, and tell.
func (s *tileScan) stored(col, row int) bool {
	if s.err != nil {
		return false
	}
	_, n, err := s.dir.TileRef(s.ctx, int64(row)*int64(s.cols)+int64(col))
	if errors.Is(err, microtome.ErrEmptyTile) {
		return false
	}
	if err != nil {
		s.err = notCorrupt(err)
		return s.err == nil
	}
	return n > 0
}

// any says whether a rectangle of tiles has a stored one.
func (s *tileScan) any(r image.Rectangle) bool {
	for row := r.Min.Y; row < r.Max.Y; row++ {
		for col := r.Min.X; col < r.Max.X; col++ {
			if s.stored(col, row) {
				return true
			}
		}
	}
	return false
}

// box is the box of stored tiles, in tiles.
func (s *tileScan) box(r image.Rectangle) image.Rectangle {
	box := image.Rectangle{}
	for row := r.Min.Y; row < r.Max.Y; row++ {
		for col := r.Min.X; col < r.Max.X; col++ {
			if s.stored(col, row) {
				box = box.Union(image.Rect(col, row, col+1, row+1))
			}
		}
	}
	return box
}
