package tiff_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"sync/atomic"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/synth/tiffw"
)

// parts is a Source of which only some stretches hold anything; the rest reads
// as zeros. reads counts calls and bytes.
type parts struct {
	size   int64
	at     map[int64][]byte
	reads  atomic.Int64
	bytes  atomic.Int64
	failed bool
}

func memory(p []byte) *parts {
	return &parts{size: int64(len(p)), at: map[int64][]byte{0: p}}
}

func (s *parts) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	s.reads.Add(1)
	s.bytes.Add(int64(len(p)))
	if s.failed {
		return 0, microtome.ErrSource
	}
	if off < 0 || len(p) == 0 {
		return 0, microtome.ErrMalformed // a request that no server would take
	}
	n := int(min(int64(len(p)), max(0, s.size-off)))
	clear(p[:n])
	for at, data := range s.at {
		if at < off+int64(n) && off < at+int64(len(data)) {
			if at >= off {
				copy(p[at-off:n], data)
			} else {
				copy(p[:n], data[off-at:])
			}
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *parts) Size() int64                      { return s.size }
func (s *parts) Generation() microtome.Generation { return microtome.Generation{ID: "t", Size: s.size} }
func (s *parts) Close() error                     { return nil }

// form is one of the four kinds of TIFF.
type form struct {
	name string
	o    tiffw.Options
}

func forms() []form {
	return []form{
		{"little", tiffw.Options{}},
		{"big-endian", tiffw.Options{Order: binary.BigEndian}},
		{"BigTIFF", tiffw.Options{Big: true}},
		{"big-endian BigTIFF", tiffw.Options{Big: true, Order: binary.BigEndian}},
	}
}

// write makes a file by build.
func write(t testing.TB, o tiffw.Options, build func(w *tiffw.Writer)) []byte {
	t.Helper()
	b := tiffw.NewBuffer()
	w := tiffw.New(b, o)
	build(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func parse(t testing.TB, p []byte) *tiff.File {
	t.Helper()
	f, err := tiff.Parse(context.Background(), memory(p), tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// picture is a directory of an 8-bit image without cells.
func picture(w, h, samples, photometric, compression int) *tiffw.Dir {
	bits := []uint16{8, 8, 8, 8}[:samples]
	return new(tiffw.Dir).Long(256, uint32(w)).Long(257, uint32(h)).Short(258, bits...).
		Short(259, uint16(compression)).Short(262, uint16(photometric)).Short(277, uint16(samples))
}

// tiles completes d with tiles of tw x th whose bytes are cells; nil is sparse.
func tiles(w *tiffw.Writer, d *tiffw.Dir, tw, th int, cells ...[]byte) *tiffw.Dir {
	offsets, counts := place(w, cells)
	return d.Short(322, uint16(tw)).Short(323, uint16(th)).Long(324, offsets...).Long(325, counts...)
}

// strips completes d with strips of that many rows.
func strips(w *tiffw.Writer, d *tiffw.Dir, rows int, cells ...[]byte) *tiffw.Dir {
	offsets, counts := place(w, cells)
	return d.Long(278, uint32(rows)).Long(273, offsets...).Long(279, counts...)
}

func place(w *tiffw.Writer, cells [][]byte) (offsets, counts []uint32) {
	offsets, counts = make([]uint32, len(cells)), make([]uint32, len(cells))
	for i, c := range cells {
		if c != nil {
			offsets[i], counts[i] = uint32(w.Block(c)), uint32(len(c))
		}
	}
	return offsets, counts
}

func filled(n, v int) []byte { return bytes.Repeat([]byte{byte(v)}, n) }

// photo is a baseline JPEG of one colour: components 1, 2, 3 at 4:2:0, without
// JFIF or Adobe marker; gray has one component.
func photo(t testing.TB, w, h int, c color.Color) []byte {
	t.Helper()
	var img image.Image = image.NewGray(image.Rect(0, 0, w, h))
	if c != nil {
		rgba := image.NewRGBA(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				rgba.Set(x, y, c)
			}
		}
		img = rgba
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// onlyTile is a file of one tile.
func onlyTile(t testing.TB, d *tiffw.Dir, tw, th int, data []byte) *tiff.Dir {
	t.Helper()
	return parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) { w.Dir(tiles(w, d, tw, th, data)) })).Dirs[0]
}
