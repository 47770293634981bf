package formats

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/tiffw"
)

// memory is a Source of bytes in memory. broken makes every read fail.
type memory struct {
	data   []byte
	broken bool
	reads  int
	closed bool
}

func (m *memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	m.reads++
	if m.broken {
		return 0, microtome.ErrSource
	}
	return bytes.NewReader(m.data).ReadAt(p, off)
}

func (m *memory) Size() int64 { return int64(len(m.data)) }
func (m *memory) Generation() microtome.Generation {
	return microtome.Generation{ID: "test", Size: m.Size()}
}
func (m *memory) Close() error { m.closed = true; return nil }

// The values of tags, to be set on a directory.
func short(v ...uint16) tiffw.Entry { return entry(tiffw.Short, len(v), v) }
func long(v ...uint32) tiffw.Entry  { return entry(tiffw.Long, len(v), v) }
func text(s string) tiffw.Entry     { return entry(tiffw.ASCII, len(s)+1, s+"\x00") }
func undef(b []byte) tiffw.Entry    { return entry(tiffw.Undefined, len(b), b) }
func ratio(n, d uint32) tiffw.Entry { return entry(tiffw.Rational, 1, []uint32{n, d}) }
func entry(t tiffw.Type, n int, v any) tiffw.Entry {
	return tiffw.Entry{Type: t, Count: uint64(n), Value: v}
}

func filled(n, v int) []byte { return bytes.Repeat([]byte{byte(v)}, n) }

// dir is a directory to be written: its cells are tiles when it has a
// TileWidth, else strips; a nil cell is sparse.
type dir struct {
	tags  tiffw.Dir
	tile  bool
	cells [][]byte
	subs  []*dir
}

// tiled is an uncompressed 8-bit RGB image of w x h in tiles of 16 x 16.
func tiled(w, h int) *dir {
	d := striped(w, h).set(322, long(16)).set(323, long(16))
	d.tags.Delete(278)
	d.tile, d.cells = true, nil
	for i := range ((w + 15) / 16) * ((h + 15) / 16) {
		d.cells = append(d.cells, filled(16*16*3, i+1))
	}
	return d
}

// striped is the same in one strip.
func striped(w, h int) *dir {
	d := &dir{cells: [][]byte{filled(w*h*3, 7)}}
	d.tags.Long(256, uint32(w)).Long(257, uint32(h)).Short(258, 8, 8, 8).Short(259, 1).
		Short(262, 2).Short(277, 3).Long(278, uint32(h)).Short(284, 1)
	return d
}

func (d *dir) set(id uint16, e tiffw.Entry) *dir {
	e.Tag = id
	d.tags.Set(e)
	return d
}

func (d *dir) kind(subfile uint32) *dir     { return d.set(254, long(subfile)) }
func (d *dir) says(description string) *dir { return d.set(270, text(description)) }
func (d *dir) below(subs ...*dir) *dir      { d.subs = subs; return d }

func (d *dir) without(cells ...int) *dir {
	return d.keep(func(i int) bool { return !slices.Contains(cells, i) })
}

func (d *dir) only(cells ...int) *dir {
	return d.keep(func(i int) bool { return slices.Contains(cells, i) })
}

func (d *dir) keep(stored func(i int) bool) *dir {
	for i := range d.cells {
		if !stored(i) {
			d.cells[i] = nil
		}
	}
	return d
}

// gray makes an image of one sample.
func (d *dir) gray() *dir {
	for i := range d.cells {
		d.cells[i] = d.cells[i][:len(d.cells[i])/3]
	}
	return d.set(258, short(8)).set(262, short(1)).set(277, short(1))
}

// file writes a classic little-endian TIFF with the directories in a chain.
func file(dirs ...*dir) []byte { return fileAs(tiffw.Options{}, dirs...) }

// fileAs writes it in another form.
func fileAs(o tiffw.Options, dirs ...*dir) []byte {
	b := tiffw.NewBuffer()
	w := tiffw.New(b, o)
	for _, d := range dirs {
		w.Dir(d.place(w))
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// place writes a directory's cells and SubIFDs and completes its entries.
func (d *dir) place(w *tiffw.Writer) *tiffw.Dir {
	offsets, counts := make([]uint32, len(d.cells)), make([]uint32, len(d.cells))
	for i, cell := range d.cells {
		if cell != nil {
			offsets[i], counts[i] = uint32(w.Block(cell)), uint32(len(cell))
		}
	}
	tags := d.tags
	tags.Entries = slices.Clone(tags.Entries)
	if d.tile {
		tags.Long(324, offsets...).Long(325, counts...)
	} else {
		tags.Long(273, offsets...).Long(279, counts...)
	}
	var at []uint32
	for _, sub := range d.subs {
		at = append(at, uint32(w.SubDir(sub.place(w)).Offset))
	}
	if len(at) > 0 {
		tags.Long(330, at...)
	}
	return &tags
}

// opened opens a file in memory.
func opened(t testing.TB, dirs ...*dir) microtome.Slide {
	t.Helper()
	s, err := Open(context.Background(), &memory{data: file(dirs...)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shape writes a slide down in one line: levels, then associated images.
func shape(s microtome.Slide) string {
	var b strings.Builder
	for _, l := range s.Info().Levels {
		io.WriteString(&b, decimal(l.Width)+"x"+decimal(l.Height)+" ")
	}
	for _, a := range s.Info().Associated {
		io.WriteString(&b, a.Name+":"+decimal(a.Width)+"x"+decimal(a.Height)+" ")
	}
	return strings.TrimSpace(b.String())
}
