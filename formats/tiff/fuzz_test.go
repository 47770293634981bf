package tiff_test

import (
	"bytes"
	"context"
	"image/color"
	"testing"

	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/synth/tiffw"
)

// FuzzParse opens what it is given and asks for everything: nothing panics,
// hangs, or reads more than the limits allow.
func FuzzParse(f *testing.F) {
	photo := photo(f, 32, 32, color.White)
	tables, abbreviated := split(f, photo)
	for _, form := range forms() {
		f.Add(write(f, form.o, func(w *tiffw.Writer) {
			sub := w.SubDir(tiles(w, picture(16, 16, 3, 2, 1), 16, 16, filled(768, 3)))
			w.Dir(tiles(w, picture(40, 30, 3, 6, 7).Undefined(347, tables).ASCII(270, "described here"), 32, 32, abbreviated, nil).
				Add(tiffw.Entry{Tag: 330, Type: tiffw.IFD, Count: 1, Value: []uint32{uint32(sub.Offset)}}))
			w.Dir(strips(w, picture(9, 7, 1, 3, 1).Short(320, make([]uint16, 768)...), 3, filled(27, 1), filled(27, 2), filled(9, 3)))
			w.Dir(tiles(w, picture(16, 16, 3, 2, 5).Short(284, 2).Rational(282, 1, 0), 16, 16, filled(99, 3), filled(99, 4), filled(99, 5)))
		}))
	}
	self := new(tiffw.Dir).Short(256, 1)
	self.Next = tiffw.U(8)
	f.Add(write(f, tiffw.Options{}, func(w *tiffw.Writer) { w.Dir(self) }))
	f.Add([]byte("II+\x00\x08\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		src := memory(p)
		file, err := tiff.Parse(context.Background(), src, tiff.Limits{})
		if n := src.bytes.Load(); n > 17<<20 {
			t.Fatalf("opening %d bytes read %d", len(p), n)
		}
		if err != nil {
			return
		}
		left := 64
		for _, d := range file.Dirs {
			exercise(t, d, &left)
		}
	})
}

// exercise asks a directory for all it has, for at most left cells.
func exercise(t testing.TB, d *tiff.Dir, left *int) {
	t.Helper()
	for tag := range uint16(1024) {
		if !d.Has(tag) {
			continue
		}
		d.Uint(tag)
		d.Uints(tag, 1000)
		d.ASCII(tag)
		d.Bytes(tag)
		d.Rational(tag)
		d.Float(tag)
	}
	if g, err := d.Geometry(); err == nil {
		for i := 0; i < g.Cols*g.Rows && *left > 0; i++ {
			*left--
			tile, err := d.ReadCell(context.Background(), i%g.Cols, i/g.Cols, g.Planes-1)
			if err != nil {
				continue
			}
			if tile.VisibleWidth > tile.Width || tile.VisibleHeight > tile.Height || tile.VisibleHeight < 1 || tile.VisibleWidth < 1 ||
				tile.FirstRow+tile.VisibleHeight > tile.StreamHeight || len(tile.Data) == 0 {
				t.Fatalf("tile %d of %+v: %dx%d, %d of %d, visible %dx%d, %d bytes", i, g, tile.Width, tile.Height,
					tile.FirstRow, tile.StreamHeight, tile.VisibleWidth, tile.VisibleHeight, len(tile.Data))
			}
		}
	}
	for _, sub := range d.SubDirs {
		exercise(t, sub, left)
	}
}

// TestReadSame: reading twice is reading the same, also at once.
func TestReadSame(t *testing.T) {
	tables, abbreviated := split(t, photo(t, 32, 32, color.White))
	d := onlyTile(t, picture(32, 32, 3, 2, 7).Undefined(347, tables), 32, 32, abbreviated)
	first := read(t, d, 0, 0)
	done := make(chan []byte)
	for range 8 {
		go func() {
			tile, _ := d.ReadCell(context.Background(), 0, 0, 0)
			done <- tile.Data
		}()
	}
	for range 8 {
		if !bytes.Equal(<-done, first.Data) {
			t.Error("another answer")
		}
	}
}
