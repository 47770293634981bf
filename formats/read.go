package formats

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// ReadTile implements microtome.Slide.
func (s *slide) ReadTile(ctx context.Context, level, plane, col, row int) (microtome.Tile, error) {
	p, err := s.plane(level, plane)
	if err != nil {
		return microtome.Tile{}, err
	}
	t, err := p.dir.ReadCell(ctx, col, row, p.sample)
	if err == nil {
		err = s.recolor(&t, level)
	}
	if err != nil {
		return microtome.Tile{}, fmt.Errorf("level %d: tile %d,%d: %w", level, col, row, err)
	}
	return t, nil
}

// ReadTiles implements microtome.BatchReader: neighbouring refs of one plane
// are read together.
func (s *slide) ReadTiles(ctx context.Context, refs []microtome.TileRef, out []microtome.TileResult) microtome.ReadCount {
	var total microtome.ReadCount
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].Level == refs[0].Level && refs[n].Plane == refs[0].Plane {
			n++
		}
		total.Add(s.readPlane(ctx, refs[:n], out[:n]))
		refs, out = refs[n:], out[n:]
	}
	return total
}

// readPlane reads refs that are all of one level and plane.
func (s *slide) readPlane(ctx context.Context, refs []microtome.TileRef, out []microtome.TileResult) microtome.ReadCount {
	clear(out)
	level := refs[0].Level
	p, err := s.plane(level, refs[0].Plane)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return microtome.ReadCount{}
	}
	cells := make([]tiff.Cell, len(refs))
	for i, r := range refs {
		cells[i] = tiff.Cell{Col: r.Col, Row: r.Row, Plane: p.sample}
	}
	count := p.dir.ReadCells(ctx, cells, out)
	for i := range out {
		if out[i].Err == nil {
			out[i].Err = s.recolor(&out[i].Tile, level)
		}
		if out[i].Err != nil {
			out[i] = microtome.TileResult{Err: fmt.Errorf("level %d: tile %d,%d: %w", level, refs[i].Col, refs[i].Row, out[i].Err)}
		}
	}
	return count
}

// plane is where a level's plane is stored.
func (s *slide) plane(level, plane int) (picture, error) {
	if level < 0 || level >= len(s.levels) || plane < 0 || plane >= len(s.levels[level]) {
		return picture{}, fmt.Errorf("level %d, plane %d: %w", level, plane, microtome.ErrNotFound)
	}
	p := s.levels[level][plane]
	if p.dir == nil {
		return picture{}, fmt.Errorf("level %d: plane %d: no directory holds it: %w", level, plane, microtome.ErrCorrupt)
	}
	return p, nil
}

// recolor settles what a tile's samples mean where its directory doesn't.
func (s *slide) recolor(t *microtome.Tile, level int) error {
	switch {
	case t.Codec == microtome.CodecJPEG2000:
		t.Color = s.info.Levels[level].Color
	case t.Codec == microtome.CodecJPEG && t.Color == microtome.ColorRGB && s.info.Format == formatOME:
		return subsampledIsYCbCr(t)
	}
	return nil
}
