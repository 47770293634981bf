package tiff

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
)

// cells is what every cell of a directory needs; found at the first and kept.
type cells struct {
	Geometry
	offsets, counts entry
	counted         bool
	palette         *[256]microtome.RGB
	tables          jpegstream.Tables
}

// Geometry errors name the directory's tags, so they need no more place than
// its name.
func (d *Dir) prepared(ctx context.Context) (*cells, error) {
	if c := d.cells.Load(); c != nil {
		return c, nil
	}
	g, err := d.Geometry()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(), err)
	}
	c := &cells{Geometry: g}
	if g.Color == microtome.ColorPalette {
		if c.palette, err = d.palette(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(), err)
		}
	}
	if g.Codec == microtome.CodecJPEG && d.Has(JPEGTables) {
		p, err := d.BytesContext(ctx, JPEGTables)
		if err == nil {
			c.tables, err = jpegstream.ParseTables(p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: tag %d: %w", d.Name(), JPEGTables, err)
		}
	}
	var ok bool
	if c.offsets, ok = d.find(TileOffsets); !ok {
		c.offsets, _ = d.find(StripOffsets)
	}
	if c.counts, c.counted = d.find(TileByteCounts); !c.counted {
		c.counts, c.counted = d.find(StripByteCounts)
	}
	d.cells.Store(c)
	return c, nil
}

// ReadCell reads the cell at (col, row) of the directory's grid as a tile that
// is playable by itself. plane is the sample when samples are stored apart,
// else 0.
//
// It fails with ErrEmptyTile for a sparse cell, ErrNotFound outside the grid,
// ErrCorrupt for a cell whose entry or stream is broken, and what Geometry
// fails with.
func (d *Dir) ReadCell(ctx context.Context, col, row, plane int) (microtome.Tile, error) {
	c, err := d.prepared(ctx)
	if err != nil {
		return microtome.Tile{}, err
	}
	if col < 0 || row < 0 || plane < 0 || col >= c.Cols || row >= c.Rows || plane >= c.Planes {
		return microtome.Tile{}, fmt.Errorf("%s: cell %d,%d of %dx%d: %w", d.Name(), col, row, c.Cols, c.Rows, microtome.ErrNotFound)
	}
	t := c.tile(col, row)
	index := c.index(col, row) + int64(plane)*c.perPlane()
	off, n, err := d.stored(ctx, c, t, index)
	if err == nil {
		err = d.fill(ctx, c, &t, off, n)
	}
	if err != nil {
		return microtome.Tile{}, fmt.Errorf("%s: tile %d: %w", d.Name(), index, err)
	}
	return t, nil
}

// index is the place of a cell's tile or strip in the tables, within a plane.
func (c *cells) index(col, row int) int64 {
	if c.Tiled {
		return int64(row)*int64(c.Cols) + int64(col)
	}
	return int64(row) * int64(c.TileHeight) / int64(c.StripRows)
}

func (c *cells) perPlane() int64 {
	if c.Tiled {
		return int64(c.Cols) * int64(c.Rows)
	}
	return (c.Height + int64(c.StripRows) - 1) / int64(c.StripRows)
}

// tile is everything about a cell but its bytes.
func (c *cells) tile(col, row int) microtome.Tile {
	visible := c.TileRect(col, row)
	t := microtome.Tile{
		Codec: c.Codec, Color: c.Color,
		Width: c.TileWidth, Height: c.TileHeight,
		VisibleWidth: visible.Dx(), VisibleHeight: visible.Dy(),
		StreamHeight: c.TileHeight,
		Samples:      c.Samples, Bits: c.Bits,
		Predictor: c.Predictor, FillOrder: c.FillOrder, Palette: c.palette,
	}
	if c.Tiled {
		return t
	}
	// The last strip holds the rows that are left, without padding.
	first := int64(row) * int64(c.TileHeight)
	strip := first / int64(c.StripRows) * int64(c.StripRows)
	t.Height = t.VisibleHeight
	t.FirstRow = int(first - strip)
	t.StreamHeight = int(min(int64(c.StripRows), c.Height-strip))
	return t
}

func rawBytes(t microtome.Tile) int64 {
	return int64(t.Width) * int64(t.StreamHeight) * int64(t.Samples)
}

// stored is where a cell's tile or strip lies, checked against the file and
// against what such a tile may need.
func (d *Dir) stored(ctx context.Context, c *cells, t microtome.Tile, index int64) (off, n int64, err error) {
	raw := rawBytes(t)
	switch {
	case c.counted:
		off, n, err = d.tileRef(ctx, c.offsets, c.counts, index)
	case c.Codec == microtome.CodecNone: // then the size says it all
		off, _, err = d.tileRef(ctx, c.offsets, c.offsets, index)
		n = raw
	default:
		err = corrupt("no byte counts")
	}
	if err != nil {
		return 0, 0, err
	}
	if err := d.file.checkRange(off, n); err != nil {
		return 0, 0, err
	}
	if c.Codec == microtome.CodecNone {
		if n < raw {
			return 0, 0, corrupt("byte count %d, the pixels are %d", n, raw)
		}
		return off, n, nil
	}
	if n > 4*raw+64<<10 {
		return 0, 0, corrupt("byte count %d for %d bytes of pixels", n, raw)
	}
	if n > d.file.limits.CellBytes {
		return 0, 0, overLimit("byte count %d", n)
	}
	return off, n, nil
}

// fill reads a cell's bytes: of an uncompressed strip only the band's.
func (d *Dir) fill(ctx context.Context, c *cells, t *microtome.Tile, off, n int64) error {
	switch c.Codec {
	case microtome.CodecJPEG:
		return d.fillJPEG(ctx, c, t, off, n)
	case microtome.CodecNone:
		rowBytes := int64(t.Width) * int64(t.Samples)
		off += int64(t.FirstRow) * rowBytes
		n = int64(t.Height) * rowBytes
		t.FirstRow, t.StreamHeight = 0, t.Height
		if n > d.file.limits.CellBytes {
			return overLimit("%d bytes", n)
		}
	}
	t.Data = make([]byte, n)
	return d.file.readFull(ctx, t.Data, off)
}
