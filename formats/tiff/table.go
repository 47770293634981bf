package tiff

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// A slide's tables of tile offsets and byte counts are long (12 bytes a tile
// and more), so they stay in the file; what was looked up last is kept.
const (
	chunkBytes = 4 << 10
	chunkSlots = 32 // each, for offsets and for byte counts
)

// chunkCache keeps a few aligned chunks of the file. A slot is replaced as a
// whole and a chunk never changes, so readers need no lock.
type chunkCache [2 * chunkSlots]atomic.Pointer[chunk]

type chunk struct {
	index int64
	data  []byte
}

// chunk returns the index-th 4 KB of the file. kind keeps offsets and byte
// counts, asked for in turn, from driving each other out.
func (f *File) chunk(ctx context.Context, index int64, kind int) ([]byte, error) {
	slot := &f.chunks[kind*chunkSlots+int(uint64(index)*0x9e3779b97f4a7c15>>59)]
	if c := slot.Load(); c != nil && c.index == index {
		return c.data, nil
	}
	off := index * chunkBytes
	c := &chunk{index: index, data: make([]byte, min(chunkBytes, f.src.Size()-off))}
	if err := f.readFull(ctx, c.data, off); err != nil {
		return nil, err
	}
	slot.Store(c)
	return c.data, nil
}

// element looks one value of a long array up.
func (d *Dir) element(ctx context.Context, e entry, i int64, kind int) (uint64, error) {
	if e.typ != Byte && e.typ != Short && e.typ != Long && e.typ != Long8 && e.typ != IFD && e.typ != IFD8 {
		return 0, corrupt("tag %d: type %d", e.tag, e.typ)
	}
	if i < 0 || i >= e.count {
		return 0, corrupt("tag %d: no value %d of %d", e.tag, i, e.count)
	}
	off, inline := d.place(e)
	if inline {
		return d.uint(e.typ, e.value, int(i)), nil
	}
	size := e.typ.size()
	at := int64(off) + i*size
	var p [8]byte
	for n := int64(0); n < size; { // a value may straddle two chunks
		c, err := d.file.chunk(ctx, (at+n)/chunkBytes, kind)
		if err != nil {
			return 0, fmt.Errorf("tag %d: %w", e.tag, err)
		}
		n += int64(copy(p[n:size], c[(at+n)%chunkBytes:]))
	}
	return d.uint(e.typ, p[:size], 0), nil
}

// TileRef is the offset and byte count of tile (or strip) i as the tables have
// them: nothing says that they lie within the file, and both are 0 where a tile
// is sparse. A table without such an entry is ErrCorrupt.
func (d *Dir) TileRef(ctx context.Context, i int64) (off, n int64, err error) {
	o, ok := d.find(TileOffsets)
	if !ok {
		o, ok = d.find(StripOffsets)
	}
	c, counted := d.find(TileByteCounts)
	if !counted {
		c, counted = d.find(StripByteCounts)
	}
	if !ok || !counted {
		return 0, 0, corrupt("%s: no offsets or byte counts", d.Name())
	}
	return d.tileRef(ctx, o, c, i)
}

func (d *Dir) tileRef(ctx context.Context, offsets, counts entry, i int64) (off, n int64, err error) {
	a, err := d.element(ctx, offsets, i, 0)
	if err != nil {
		return 0, 0, err
	}
	b, err := d.element(ctx, counts, i, 1)
	if err != nil {
		return 0, 0, err
	}
	if a > 1<<63-1 || b > 1<<63-1 {
		return 0, 0, corrupt("tile %d: offset %d, byte count %d", i, a, b)
	}
	return int64(a), int64(b), nil
}

// checkRange tells a sparse tile, and one that reaches beyond the file.
func (f *File) checkRange(off, n int64) error {
	if off == 0 || n == 0 {
		return microtome.ErrEmptyTile
	}
	if off > f.src.Size() || n > f.src.Size()-off {
		return corrupt("%d bytes at %d reach beyond the file", n, off)
	}
	return nil
}
