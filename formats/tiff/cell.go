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
	p := c.located(ctx, d, col, row, plane)
	if p.err == nil {
		p.buf = c.buffer(p.n)
		p.err = d.file.readFull(ctx, p.bytes(), p.off)
	}
	return p.finish(c, d)
}

// place is a cell on its way: what it is, where its bytes lie and, once read,
// the bytes.
type place struct {
	tile   microtome.Tile
	index  int64 // in the tables
	off, n int64
	buf    []byte // room for JPEG tables, then the n bytes
	err    error
}

// bytes is the part of the buffer that the file fills.
func (p *place) bytes() []byte { return p.buf[int64(len(p.buf))-p.n:] }

// located finds the bytes of a cell that is in the grid. Of an uncompressed
// strip they are only the band's.
func (c *cells) located(ctx context.Context, d *Dir, col, row, plane int) place {
	p := place{tile: c.tile(col, row), index: c.index(col, row) + int64(plane)*c.perPlane()}
	p.off, p.n, p.err = d.stored(ctx, c, p.tile, p.index)
	if p.err != nil || c.Codec != microtome.CodecNone {
		return p
	}
	t := &p.tile
	rowBytes := int64(t.Width) * int64(t.Samples)
	p.off += int64(t.FirstRow) * rowBytes
	p.n = int64(t.Height) * rowBytes
	t.FirstRow, t.StreamHeight = 0, t.Height
	if p.n > d.file.limits.CellBytes {
		p.err = overLimit("%d bytes", p.n)
	}
	return p
}

// buffer has room for what Complete puts before and behind n bytes.
func (c *cells) buffer(n int64) []byte {
	room := int64(0)
	if c.Codec == microtome.CodecJPEG {
		room = int64(c.tables.Room())
	}
	return make([]byte, room+n, room+n+2)
}

// finish makes the tile of the bytes read.
func (p *place) finish(c *cells, d *Dir) (microtome.Tile, error) {
	switch {
	case p.err != nil:
	case c.Codec == microtome.CodecJPEG:
		p.err = completeJPEG(c, &p.tile, p.buf)
	default:
		p.tile.Data = p.buf
	}
	if p.err != nil {
		return microtome.Tile{}, fmt.Errorf("%s: tile %d: %w", d.Name(), p.index, p.err)
	}
	return p.tile, nil
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
