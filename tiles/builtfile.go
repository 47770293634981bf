package tiles

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/microtome/microtome"
)

// A file of built levels is: the magic; the tiles' JPEG streams in the order
// they were made; the index; the footer. The index has, for each level, width
// and height (8 bytes each) and for each tile, row by row, offset (8), length
// (4) and CRC-32 (4). The footer is the index's offset (8), length (8), CRC-32
// (4) and the magic again. All is little-endian.
const (
	builtMagic  = "mtpyr01\n"
	footerBytes = 8 + 8 + 4 + len(builtMagic)
	entryBytes  = 8 + 4 + 4
)

type builtTile struct {
	off    int64
	n, sum uint32
}

// builtWriter writes such a file.
type builtWriter struct {
	f     *os.File
	w     *bufio.Writer
	off   int64
	grids []builtGrid
	tiles [][]builtTile
	err   error
}

func newBuiltWriter(f *os.File, grids []builtGrid) *builtWriter {
	w := &builtWriter{f: f, w: bufio.NewWriterSize(f, 1<<20), grids: grids}
	for _, g := range grids {
		w.tiles = append(w.tiles, make([]builtTile, g.Cols*g.Rows))
	}
	w.write([]byte(builtMagic))
	return w
}

func (w *builtWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.w.Write(b)
	w.off += int64(len(b))
}

// tile appends one tile.
func (w *builtWriter) tile(level, col, row int, data []byte) {
	w.tiles[level][row*w.grids[level].Cols+col] = builtTile{w.off, uint32(len(data)), crc32.ChecksumIEEE(data)}
	w.write(data)
}

// finish writes the index and brings all to the disk.
func (w *builtWriter) finish() error {
	var index []byte
	for i, g := range w.grids {
		index = binary.LittleEndian.AppendUint64(index, uint64(g.Width))
		index = binary.LittleEndian.AppendUint64(index, uint64(g.Height))
		for _, t := range w.tiles[i] {
			index = binary.LittleEndian.AppendUint64(index, uint64(t.off))
			index = binary.LittleEndian.AppendUint32(index, t.n)
			index = binary.LittleEndian.AppendUint32(index, t.sum)
		}
	}
	at := w.off
	w.write(index)
	var foot []byte
	foot = binary.LittleEndian.AppendUint64(foot, uint64(at))
	foot = binary.LittleEndian.AppendUint64(foot, uint64(len(index)))
	foot = binary.LittleEndian.AppendUint32(foot, crc32.ChecksumIEEE(index))
	w.write(append(foot, builtMagic...))
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err == nil {
		w.err = w.f.Sync()
	}
	return w.err
}

// builtSet is an opened file of built levels.
type builtSet struct {
	name   string
	f      *os.File
	grids  []builtGrid
	tiles  [][]builtTile
	broken func() // called when a tile is not what was written
}

// openBuilt opens a file that must hold the given levels, and marks it as used.
func openBuilt(name string, grids []builtGrid) (set *builtSet, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	set = &builtSet{name: name, f: f, grids: grids}
	if err := set.readIndex(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // only the order of eviction suffers
	return set, nil
}

func (b *builtSet) readIndex() error {
	want := 0
	for _, g := range b.grids {
		want += 16 + g.Cols*g.Rows*entryBytes
	}
	fi, err := b.f.Stat()
	if err != nil {
		return err
	}
	at := fi.Size() - int64(footerBytes) - int64(want)
	if at < int64(len(builtMagic)) {
		return io.ErrUnexpectedEOF
	}
	buf := make([]byte, want+footerBytes)
	if _, err := b.f.ReadAt(buf, at); err != nil {
		return err
	}
	index, foot := buf[:want], buf[want:]
	le := binary.LittleEndian
	if le.Uint64(foot) != uint64(at) || le.Uint64(foot[8:]) != uint64(want) ||
		le.Uint32(foot[16:]) != crc32.ChecksumIEEE(index) || string(foot[20:]) != builtMagic {
		return microtome.ErrCorrupt
	}
	for _, g := range b.grids {
		if le.Uint64(index) != uint64(g.Width) || le.Uint64(index[8:]) != uint64(g.Height) {
			return microtome.ErrCorrupt
		}
		index = index[16:]
		tiles := make([]builtTile, g.Cols*g.Rows)
		for i := range tiles {
			tiles[i] = builtTile{int64(le.Uint64(index)), le.Uint32(index[8:]), le.Uint32(index[12:])}
			if t := tiles[i]; t.off < 0 || t.off > at || int64(t.n) > at-t.off {
				return microtome.ErrCorrupt
			}
			index = index[entryBytes:]
		}
		b.tiles = append(b.tiles, tiles)
	}
	return nil
}

// read returns one tile.
func (b *builtSet) read(level, col, row int) (microtome.Tile, error) {
	g := &b.grids[level]
	if col < 0 || row < 0 || col >= g.Cols || row >= g.Rows {
		return microtome.Tile{}, microtome.ErrNotFound
	}
	e := b.tiles[level][row*g.Cols+col]
	data := make([]byte, e.n)
	if _, err := b.f.ReadAt(data, e.off); err != nil {
		b.broken()
		return microtome.Tile{}, fmt.Errorf("%w: %w", microtome.ErrSource, err)
	}
	if crc32.ChecksumIEEE(data) != e.sum {
		b.broken()
		return microtome.Tile{}, fmt.Errorf("checksum: %w", microtome.ErrCorrupt)
	}
	size := g.TileRect(col, row).Size()
	return microtome.Tile{
		Data: data, Codec: microtome.CodecJPEG, Color: g.Color, Width: size.X, Height: size.Y,
		VisibleWidth: size.X, VisibleHeight: size.Y, StreamHeight: size.Y,
		Samples: g.Samples, Bits: 8, Predictor: 1, FillOrder: 1,
	}, nil
}
