package tiff_test

import (
	"bytes"
	"context"
	"errors"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
	"github.com/microtome/microtome/synth/tiffw"
)

// TestA6Sparse: offset or byte count 0 is an empty tile, and nothing is read
// for it.
func TestA6Sparse(t *testing.T) {
	p := write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		at := uint32(w.Block(filled(256, 7)))
		w.Dir(picture(64, 16, 1, 1, 1).Short(322, 16).Short(323, 16).
			Long(324, 0, at, 0, at).Long(325, 0, 0, 256, 256))
	})
	src := memory(p)
	f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	read(t, f.Dirs[0], 3, 0)
	before := src.reads.Load()
	for col := range 3 {
		if _, err := f.Dirs[0].ReadCell(context.Background(), col, 0, 0); !errors.Is(err, microtome.ErrEmptyTile) {
			t.Errorf("tile %d: %v", col, err)
		}
	}
	if src.reads.Load() != before {
		t.Errorf("%d reads for empty tiles", src.reads.Load()-before)
	}
}

// TestHostileCells: a cell that breaks the rules fails alone.
func TestHostileCells(t *testing.T) {
	d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		at := uint32(w.Block(filled(1<<17, 7)))
		w.Dir(picture(96, 16, 1, 1, 8).Short(322, 16).Short(323, 16).
			Long(324, at, at, 1<<31, at, at).Long(325, 100, 1<<17, 100, 1<<32-1, 4*256+64<<10))
	})).Dirs[0]
	for col, want := range []error{nil, microtome.ErrCorrupt, microtome.ErrCorrupt, microtome.ErrCorrupt, nil, microtome.ErrCorrupt} {
		if _, err := d.ReadCell(context.Background(), col, 0, 0); !errors.Is(err, want) {
			t.Errorf("tile %d: %v", col, err)
		}
	}
	short := onlyTile(t, picture(16, 16, 1, 1, 1), 16, 16, filled(255, 1))
	if _, err := short.ReadCell(context.Background(), 0, 0, 0); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("255 of 256 bytes: %v", err)
	}
	uncounted := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		w.Dir(strips(w, picture(16, 16, 1, 1, 1), 16, filled(256, 9)).Delete(279))
	})).Dirs[0]
	if tile := read(t, uncounted, 0, 0); len(tile.Data) != 256 || tile.Data[0] != 9 {
		t.Errorf("no byte counts: %d bytes", len(tile.Data))
	}
}

// split takes the tables out of a stream, as a TIFF writer does.
func split(t testing.TB, p []byte) (tables, tile []byte) {
	t.Helper()
	tables, tile = []byte{0xFF, 0xD8}, []byte{0xFF, 0xD8}
	for at := 2; ; {
		n := 2 + int(p[at+2])<<8 + int(p[at+3])
		switch marker := p[at+1]; marker {
		case 0xDA:
			return append(tables, 0xFF, 0xD9), append(tile, p[at:]...)
		case 0xDB, 0xC4:
			tables = append(tables, p[at:at+n]...)
		default:
			tile = append(tile, p[at:at+n]...)
		}
		at += n
	}
}

// shown is the colour that a player which obeys markers shows in the middle.
func shown(t testing.TB, p []byte) (r, g, b int) {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	x, y := img.Bounds().Dx()/2, img.Bounds().Dy()/2
	c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
	return int(c.R), int(c.G), int(c.B)
}

func near(a, b int) bool { return a-b < 4 && b-a < 4 }

// TestC1Splice: an abbreviated tile leaves complete; TestC2: one without tables
// in the directory gets none.
func TestC1Splice(t *testing.T) {
	whole := photo(t, 32, 32, color.RGBA{200, 30, 90, 255})
	tables, abbreviated := split(t, whole)
	d := onlyTile(t, picture(32, 32, 3, 6, 7).Undefined(347, tables), 32, 32, abbreviated)
	tile := read(t, d, 0, 0)
	if r, g, b := shown(t, tile.Data); !near(r, 200) || !near(g, 30) || !near(b, 90) {
		t.Errorf("%d %d %d", r, g, b)
	}
	if tile.Color != microtome.ColorYCbCr || tile.Codec != microtome.CodecJPEG || tile.Width != 32 || tile.StreamHeight != 32 {
		t.Errorf("%+v", tile)
	}
	again := read(t, d, 0, 0)
	again.Data[10] ^= 0xFF // the caller's own
	if third := read(t, d, 0, 0); !bytes.Equal(third.Data, tile.Data) {
		t.Error("a caller's write is seen by the next")
	}
	broken := onlyTile(t, picture(32, 32, 3, 6, 7).Undefined(347, tables[:20]), 32, 32, abbreviated)
	if _, err := broken.ReadCell(context.Background(), 0, 0, 0); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("cut tables: %v", err)
	}
}

func TestC2NoTables(t *testing.T) {
	whole := photo(t, 32, 32, color.RGBA{200, 30, 90, 255})
	if tile := read(t, onlyTile(t, picture(32, 32, 3, 6, 7), 32, 32, whole), 0, 0); !bytes.Equal(tile.Data, whole) {
		t.Errorf("%d bytes became %d", len(whole), len(tile.Data))
	}
}

// marked renames a stream's components and gives it an Adobe marker (transform
// below 0: none) and JFIF's.
func marked(p []byte, ids string, transform int, jfif bool) []byte {
	out := []byte{0xFF, 0xD8}
	if jfif {
		out = append(out, "\xFF\xE0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"...)
	}
	if transform >= 0 {
		out = append(out, "\xFF\xEE\x00\x0EAdobe\x00\x64\x00\x00\x00\x00"...)
		out = append(out, byte(transform))
	}
	head := len(out) - 2
	out = append(out, p[2:]...)
	h, err := jpegstream.Parse(out)
	if err != nil {
		panic(err)
	}
	sof := bytes.Index(out[head:], []byte{0xFF, 0xC0}) + head
	for i := range 3 {
		out[sof+10+3*i] = ids[i]
		out[h.ScanStart+5+2*i] = ids[i]
	}
	return out
}

// TestC4Color: whatever a stream says of its colour, a player sees what
// PhotometricInterpretation says (and TestC5: RGB leaves with APP14 for it).
func TestC4Color(t *testing.T) {
	whole := photo(t, 32, 32, color.RGBA{200, 30, 90, 255})
	y, cb, cr := color.RGBToYCbCr(200, 30, 90)
	for _, ids := range []string{"\x01\x02\x03", "RGB", "\x00\x01\x02"} {
		for _, transform := range []int{-1, 0, 1} {
			for _, jfif := range []bool{false, true} {
				stream := marked(whole, ids, transform, jfif)
				for photometric, want := range map[int][3]int{6: {200, 30, 90}, 2: {int(y), int(cb), int(cr)}} {
					tile := read(t, onlyTile(t, picture(32, 32, 3, photometric, 7), 32, 32, stream), 0, 0)
					h, err := jpegstream.Parse(tile.Data)
					if photometric == 2 && (err != nil || !h.Adobe || h.Transform != 0 || h.JFIF) {
						t.Errorf("C5: %q %d %v: %+v %v", ids, transform, jfif, h, err)
					}
					// Go's decoder refuses subsampled RGB, as browsers do not:
					// there the markers above are the answer.
					if photometric == 2 {
						continue
					}
					if r, g, b := shown(t, tile.Data); !near(r, want[0]) || !near(g, want[1]) || !near(b, want[2]) {
						t.Errorf("%q %d %v as %d: %d %d %d, want %v", ids, transform, jfif, photometric, r, g, b, want)
					}
				}
			}
		}
	}
}

// TestC6Subsampling: the stream's factors count, whatever tag 530 says.
func TestC6Subsampling(t *testing.T) {
	whole := photo(t, 32, 32, color.RGBA{200, 30, 90, 255}) // 4:2:0
	for _, d := range []*tiffw.Dir{picture(32, 32, 3, 6, 7), picture(32, 32, 3, 6, 7).Short(530, 1, 1)} {
		tile := read(t, onlyTile(t, d, 32, 32, whole), 0, 0)
		if h, err := jpegstream.Parse(tile.Data); err != nil || h.Subsampling() != "4:2:0" {
			t.Errorf("%s %v", h.Describe(), err)
		}
	}
}

// TestC8Components: grey passes for RGB (the decoder expands it), four
// components are unsupported, others corrupt.
func TestC8Components(t *testing.T) {
	gray, rgb := photo(t, 32, 32, nil), photo(t, 32, 32, color.White)
	if tile := read(t, onlyTile(t, picture(32, 32, 3, 2, 7), 32, 32, gray), 0, 0); !bytes.Equal(tile.Data, gray) {
		t.Error("grey in RGB was changed")
	}
	if _, err := onlyTile(t, picture(32, 32, 1, 1, 7), 32, 32, rgb).ReadCell(context.Background(), 0, 0, 0); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("colour in grey: %v", err)
	}
	sof := bytes.Index(rgb, []byte{0xFF, 0xC0})
	four := bytes.Clone(rgb[:sof])
	four = append(four, "\xFF\xC0\x00\x14\x08\x00\x20\x00\x20\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00"...)
	four = append(four, rgb[sof+19:]...)
	if _, err := onlyTile(t, picture(32, 32, 3, 2, 7), 32, 32, four).ReadCell(context.Background(), 0, 0, 0); !errors.Is(err, microtome.ErrUnsupported) {
		t.Errorf("four components: %v", err)
	}
}

// TestC9Streams: size 0 is patched from the directory, a wrong one is corrupt,
// a missing EOI is added, bytes behind it are dropped.
func TestC9Streams(t *testing.T) {
	whole := photo(t, 32, 32, color.RGBA{200, 30, 90, 255})
	sized := func(w, h byte) []byte {
		p := bytes.Clone(whole)
		sof := bytes.Index(p, []byte{0xFF, 0xC0})
		p[sof+6], p[sof+8] = h, w
		return p
	}
	for name, c := range map[string]struct {
		stream []byte
		ok     bool
	}{
		"size 0":         {sized(0, 0), true},
		"height 0":       {sized(32, 0), true},
		"no EOI":         {whole[:len(whole)-2], true},
		"trailing bytes": {append(bytes.Clone(whole), "zeros and more"...), true},
		"wider":          {sized(40, 32), false},
		"lower":          {sized(32, 16), false},
	} {
		tile, err := onlyTile(t, picture(32, 32, 3, 6, 7), 32, 32, c.stream).ReadCell(context.Background(), 0, 0, 0)
		switch {
		case c.ok && (err != nil || !bytes.Equal(tile.Data, whole)):
			t.Errorf("%s: %v, %d bytes", name, err, len(tile.Data))
		case !c.ok && !errors.Is(err, microtome.ErrCorrupt):
			t.Errorf("%s: %v", name, err)
		}
	}
	// A tile that was cut to what is visible stands as it is.
	tile := read(t, onlyTile(t, picture(20, 30, 3, 6, 7), 64, 64, whole), 0, 0)
	if tile.Width != 32 || tile.Height != 32 || tile.StreamHeight != 32 || tile.VisibleWidth != 20 {
		t.Errorf("a cut tile: %+v", tile)
	}
}

// TestC11Garbage: what is no JPEG is corrupt, and the next tile is read.
func TestC11Garbage(t *testing.T) {
	whole := photo(t, 32, 32, color.RGBA{200, 30, 90, 255})
	overwritten := bytes.Clone(whole)
	overwritten[0] = 0x11
	d := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		w.Dir(tiles(w, picture(96, 32, 3, 6, 7), 32, 32, overwritten, filled(500, 0x55), whole))
	})).Dirs[0]
	for col := range 2 {
		if _, err := d.ReadCell(context.Background(), col, 0, 0); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("tile %d: %v", col, err)
		}
	}
	if tile := read(t, d, 2, 0); !bytes.Equal(tile.Data, whole) {
		t.Error("the good tile was changed")
	}
}
