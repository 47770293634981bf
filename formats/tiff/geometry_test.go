package tiff_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/synth/tiffw"
)

func read(t testing.TB, d *tiff.Dir, col, row int) microtome.Tile {
	t.Helper()
	tile, err := d.ReadCell(context.Background(), col, row, 0)
	if err != nil {
		t.Fatalf("cell %d,%d: %v", col, row, err)
	}
	return tile
}

// TestTileSizes: A8 (size no multiple of the tile), A9 (image inside one tile),
// A11 (tile no multiple of 16).
func TestTileSizes(t *testing.T) {
	for _, c := range []struct {
		trap                string
		w, h, tw, th        int
		cols, rows          int
		visibleW, visibleH  int // of the last cell
		samples, photometry int
	}{
		{"A8", 300, 300, 128, 128, 3, 3, 44, 44, 3, 2},
		{"A9", 50, 30, 256, 256, 1, 1, 50, 30, 3, 2},
		{"A11", 230, 60, 100, 52, 3, 2, 30, 8, 1, 1},
	} {
		t.Run(c.trap, func(t *testing.T) {
			var cells [][]byte
			for i := range c.cols * c.rows {
				cells = append(cells, filled(c.tw*c.th*c.samples, i+1))
			}
			d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
				w.Dir(tiles(w, picture(c.w, c.h, c.samples, c.photometry, 1), c.tw, c.th, cells...))
			})).Dirs[0]
			g, err := d.Grid()
			if err != nil || g.Cols != c.cols || g.Rows != c.rows || g.Width != int64(c.w) || g.Samples != c.samples {
				t.Fatalf("%+v %v", g, err)
			}
			for i := range cells {
				tile := read(t, d, i%c.cols, i/c.cols)
				if len(tile.Data) != len(cells[i]) || tile.Data[0] != byte(i+1) || tile.Width != c.tw || tile.Height != c.th {
					t.Errorf("cell %d: %d bytes of %d, %dx%d", i, len(tile.Data), tile.Data[0], tile.Width, tile.Height)
				}
			}
			last := read(t, d, c.cols-1, c.rows-1)
			if last.VisibleWidth != c.visibleW || last.VisibleHeight != c.visibleH {
				t.Errorf("visible %dx%d", last.VisibleWidth, last.VisibleHeight)
			}
			for _, at := range [][2]int{{c.cols, 0}, {0, c.rows}, {-1, 0}, {0, -1}} {
				if _, err := d.ReadCell(context.Background(), at[0], at[1], 0); !errors.Is(err, microtome.ErrNotFound) {
					t.Errorf("cell %v: %v", at, err)
				}
			}
		})
	}
}

// TestA21Unsupported: what is valid but not read is named by tag and value.
func TestA21Unsupported(t *testing.T) {
	set := func(tag uint16, v ...uint16) func(*tiffw.Dir) {
		return func(d *tiffw.Dir) { d.Delete(tag).Short(tag, v...) }
	}
	for _, c := range []struct {
		change     func(*tiffw.Dir)
		tag, value string
	}{
		{set(258, 12, 12, 12), "BitsPerSample", "12"},
		{set(258, 8, 8, 16), "BitsPerSample", "16"},
		{func(d *tiffw.Dir) { d.Delete(258) }, "BitsPerSample", "1"},
		{set(259, 200), "Compression", "200"},
		{set(259, 6), "Compression", "6"},
		{set(32997, 2), "ImageDepth", "2"},
		{set(339, 3, 3, 3), "SampleFormat", "3"},
		{set(284, 2), "PlanarConfiguration", "2"},
		{set(277, 5), "SamplesPerPixel", "5"},
		{set(262, 5), "PhotometricInterpretation", "5 (with 3 samples, Compression 1)"},
		{set(262, 6), "PhotometricInterpretation", "6 (with 3 samples, Compression 1)"},
		{func(d *tiffw.Dir) { set(259, 5)(d); set(317, 3)(d) }, "Predictor", "3"},
	} {
		d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
			d := tiles(w, picture(16, 16, 3, 2, 1), 16, 16, filled(768, 1))
			c.change(d)
			w.Dir(d)
		})).Dirs[0]
		_, err := d.Grid()
		var u *microtome.Unsupported
		if !errors.As(err, &u) || u.Tag != c.tag || u.Value != c.value {
			t.Errorf("want %s %s: %v", c.tag, c.value, err)
		}
	}
}

// TestBrokenGeometry: sizes that make no sense are corrupt or over the limit.
func TestBrokenGeometry(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*tiffw.Dir)
		want   error
	}{
		"no width":       {func(d *tiffw.Dir) { d.Delete(256) }, microtome.ErrCorrupt},
		"height 0":       {func(d *tiffw.Dir) { d.Delete(257).Short(257, 0) }, microtome.ErrCorrupt},
		"width 2^32-1":   {func(d *tiffw.Dir) { d.Delete(256).Long(256, 1<<32-1) }, microtome.ErrLimit},
		"no tile length": {func(d *tiffw.Dir) { d.Delete(323) }, microtome.ErrCorrupt},
		"tile width 0":   {func(d *tiffw.Dir) { d.Delete(322).Short(322, 0) }, microtome.ErrCorrupt},
		"huge tile":      {func(d *tiffw.Dir) { d.Delete(322).Long(322, 1<<31) }, microtome.ErrLimit},
		"no offsets":     {func(d *tiffw.Dir) { d.Delete(324) }, microtome.ErrCorrupt},
		"no cells":       {func(d *tiffw.Dir) { d.Delete(322).Delete(323).Delete(324) }, microtome.ErrCorrupt},
		"too many tiles": {func(d *tiffw.Dir) {
			d.Delete(256).Long(256, 1<<31-1).Delete(257).Long(257, 1<<31-1).Delete(322).Short(322, 1)
		}, microtome.ErrLimit},
		"huge strip": {func(d *tiffw.Dir) {
			d.Delete(322).Delete(323).Delete(324).Long(273, 8)
			d.Delete(256).Long(256, 1<<31-1).Delete(257).Long(257, 1<<31-1)
		}, microtome.ErrLimit},
		"no samples":   {func(d *tiffw.Dir) { d.Delete(277).Short(277, 0) }, microtome.ErrCorrupt},
		"no color map": {func(d *tiffw.Dir) { d.Delete(277).Short(277, 1).Delete(262).Short(262, 3) }, microtome.ErrCorrupt},
	} {
		d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
			d := tiles(w, picture(16, 16, 3, 2, 1), 16, 16, filled(768, 1))
			c.change(d)
			w.Dir(d)
		})).Dirs[0]
		if _, err := d.Geometry(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestA4Inline: tables of any type, in the entry or out of it, in every form.
func TestA4Inline(t *testing.T) {
	for _, form := range forms() {
		for _, typ := range []tiffw.Type{tiffw.Short, tiffw.Long, tiffw.Long8} {
			for _, n := range []int{1, 2, 700} {
				if typ == tiffw.Short && n > 100 {
					continue // offsets that no SHORT holds
				}
				checkTables(t, form, typ, n)
			}
		}
	}
}

func checkTables(t *testing.T, form form, typ tiffw.Type, n int) {
	t.Helper()
	const side = 4
	d := parse(t, write(t, form.o, func(w *tiffw.Writer) {
		var offsets, counts []byte
		for i := range n {
			offsets = appendAs(w.Order(), offsets, typ, uint64(w.Block(filled(side*side, i))))
			counts = appendAs(w.Order(), counts, typ, side*side)
		}
		d := picture(side*n, side, 1, 1, 1).Short(322, side).Short(323, side)
		w.Dir(d.Raw(324, typ, uint64(n), offsets).Raw(325, typ, uint64(n), counts))
	})).Dirs[0]
	for i := range n {
		if tile := read(t, d, i, 0); len(tile.Data) != side*side || tile.Data[0] != byte(i) {
			t.Fatalf("%s, type %d, %d tiles: tile %d holds %d", form.name, typ, n, i, tile.Data[0])
		}
	}
}

func appendAs(o binary.ByteOrder, p []byte, typ tiffw.Type, v uint64) []byte {
	var b [8]byte
	switch typ {
	case tiffw.Short:
		o.PutUint16(b[:], uint16(v))
		return append(p, b[:2]...)
	case tiffw.Long:
		o.PutUint32(b[:], uint32(v))
		return append(p, b[:4]...)
	}
	o.PutUint64(b[:], v)
	return append(p, b[:8]...)
}

// TestStrips: strips are tiles of full width; the last holds what is left.
func TestStrips(t *testing.T) {
	for name, c := range map[string]struct {
		rows  uint32 // 0: no tag
		strip int
		want  int // rows of the grid
	}{
		"three":   {10, 10, 3},
		"missing": {0, 25, 1},
		"huge":    {1<<32 - 1, 25, 1},
		"one":     {25, 25, 1},
	} {
		d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
			var cells [][]byte
			for y := 0; y < 25; y += c.strip {
				cells = append(cells, filled(30*3*min(c.strip, 25-y), y+1))
			}
			d := strips(w, picture(30, 25, 3, 2, 1), int(c.rows), cells...)
			if c.rows == 0 {
				d.Delete(278)
			}
			w.Dir(d)
		})).Dirs[0]
		g, err := d.Geometry()
		if err != nil || g.Tiled || g.Cols != 1 || g.Rows != c.want || g.TileWidth != 30 || g.TileHeight != c.strip {
			t.Fatalf("%s: %+v %v", name, g, err)
		}
		last := read(t, d, 0, c.want-1)
		left := 25 - (c.want-1)*c.strip
		if last.Height != left || last.StreamHeight != left || last.VisibleHeight != left || len(last.Data) != left*90 {
			t.Errorf("%s: the last strip is %+v", name, last)
		}
	}
}

// TestBands: a strip too large to be decoded whole is read in bands: of an
// uncompressed one their bytes only, of others the stream and where they begin.
func TestBands(t *testing.T) {
	const w, h = 4096, 3000 // 12 MB in grey
	for _, compression := range []int{1, 32773} {
		for _, rows := range []int{h, 1500} {
			size := w * rows
			if compression != 1 {
				size = 1000
			}
			src := &parts{size: 4 * w * h, at: map[int64][]byte{}}
			data := write(t, tiffw.Options{}, func(wr *tiffw.Writer) {
				d := picture(w, 4*h, 1, 1, compression).Long(278, uint32(rows*4))
				var offsets, counts []uint32
				for y := 0; y < 4*h; y += rows * 4 {
					offsets, counts = append(offsets, uint32(1<<20+y)), append(counts, uint32(size*4))
				}
				wr.Dir(d.Long(273, offsets...).Long(279, counts...))
			})
			src.size = 1<<20 + 8*w*h
			src.at[0] = data
			f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			checkBands(t, f.Dirs[0], src, compression)
		}
	}
}

func checkBands(t *testing.T, d *tiff.Dir, src *parts, compression int) {
	t.Helper()
	g, err := d.Geometry()
	if err != nil || g.Rows < 2 || g.StripRows%g.TileHeight != 0 {
		t.Fatalf("%+v %v", g, err)
	}
	y := 0
	for row := range g.Rows {
		before := src.bytes.Load()
		tile := read(t, d, 0, row)
		inStrip := y % g.StripRows
		switch {
		case compression == 1 && (tile.FirstRow != 0 || tile.StreamHeight != tile.Height || len(tile.Data) != tile.Height*tile.Width):
			t.Fatalf("band %d is %d rows of %d, %d bytes", row, tile.Height, tile.StreamHeight, len(tile.Data))
		case compression == 1 && src.bytes.Load()-before > int64(len(tile.Data))+2*4096:
			t.Errorf("band %d read %d bytes", row, src.bytes.Load()-before)
		case compression != 1 && (tile.FirstRow != inStrip || tile.StreamHeight < tile.FirstRow+tile.Height):
			t.Fatalf("band %d begins at %d of %d, want %d", row, tile.FirstRow, tile.StreamHeight, inStrip)
		}
		y += tile.Height
	}
	if int64(y) != g.Height {
		t.Errorf("bands of %d rows, the image has %d", y, g.Height)
	}
}

// TestPlanes: samples stored apart are planes of one sample.
func TestPlanes(t *testing.T) {
	d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		var cells [][]byte
		for i := range 6 {
			cells = append(cells, filled(256, i+1))
		}
		w.Dir(tiles(w, picture(32, 16, 3, 2, 1).Short(284, 2), 16, 16, cells...))
	})).Dirs[0]
	if g, err := d.Geometry(); err != nil || g.Planes != 3 || g.Samples != 1 || g.Color != microtome.ColorGray {
		t.Fatalf("%+v %v", g, err)
	}
	for plane := range 3 {
		tile, err := d.ReadCell(context.Background(), 1, 0, plane)
		if err != nil || tile.Data[0] != byte(2*plane+2) || tile.Samples != 1 {
			t.Errorf("plane %d: %v", plane, err)
		}
	}
	if _, err := d.ReadCell(context.Background(), 0, 0, 3); !errors.Is(err, microtome.ErrNotFound) {
		t.Errorf("plane 3: %v", err)
	}
}

// TestCodecs: compressions, and what colour they bring.
func TestCodecs(t *testing.T) {
	for _, c := range []struct {
		compression, photometric, samples int
		codec                             microtome.Codec
		color                             microtome.Color
	}{
		{1, 0, 1, microtome.CodecNone, microtome.ColorGrayWhite},
		{5, 2, 3, microtome.CodecLZW, microtome.ColorRGB},
		{8, 1, 1, microtome.CodecDeflate, microtome.ColorGray},
		{32946, 2, 3, microtome.CodecDeflate, microtome.ColorRGB},
		{32773, 2, 3, microtome.CodecPackBits, microtome.ColorRGB},
		{50000, 2, 3, microtome.CodecZstd, microtome.ColorRGB},
		{7, 6, 3, microtome.CodecJPEG, microtome.ColorYCbCr},
		{7, 2, 3, microtome.CodecJPEG, microtome.ColorRGB},
		{33003, 2, 3, microtome.CodecJPEG2000, microtome.ColorYCbCr},
		{33005, 6, 3, microtome.CodecJPEG2000, microtome.ColorRGB},
		{34712, 6, 3, microtome.CodecJPEG2000, microtome.ColorYCbCr},
		{34712, 2, 3, microtome.CodecJPEG2000, microtome.ColorRGB},
	} {
		d := onlyTile(t, picture(16, 16, c.samples, c.photometric, c.compression), 16, 16, filled(768, 1))
		if g, err := d.Grid(); err != nil || g.Codec != c.codec || g.Color != c.color {
			t.Errorf("%+v: %+v %v", c, g, err)
		}
	}
}
