package jpegstream_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
)

// photo is a baseline 4:2:0 stream with a gradient; gray has one component.
func photo(t testing.TB, w, h int, gray bool) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, color.RGBA{uint8(x * 5), uint8(y * 7), uint8(x * y), 255})
		}
	}
	var in image.Image = img
	if gray {
		g := image.NewGray(img.Rect)
		for i := range g.Pix {
			g.Pix[i] = img.Pix[4*i]
		}
		in = g
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, in, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pixels(t testing.TB, p []byte) []byte {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	switch img := img.(type) {
	case *image.YCbCr:
		return append(append(bytes.Clone(img.Y), img.Cb...), img.Cr...)
	case *image.Gray:
		return img.Pix
	}
	t.Fatalf("decoded as %T", img)
	return nil
}

// with inserts segments behind SOI.
func with(p []byte, segments ...string) []byte {
	out := []byte{0xFF, 0xD8}
	for _, s := range segments {
		out = append(out, s...)
	}
	return append(out, p[2:]...)
}

const (
	segmentJFIF    = "\xFF\xE0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
	segmentAdobe0  = "\xFF\xEE\x00\x0EAdobe\x00\x64\x00\x00\x00\x00\x00"
	segmentAdobe1  = "\xFF\xEE\x00\x0EAdobe\x00\x64\x00\x00\x00\x00\x01"
	segmentComment = "\xFF\xFE\x00\x07hello"
	segmentDRI     = "\xFF\xDD\x00\x04\x00\x00"
)

func TestDescribe(t *testing.T) {
	whole := photo(t, 240, 240, false)
	sof := bytes.Index(whole, []byte{0xFF, 0xC0})
	change := func(at int, b byte) []byte {
		p := bytes.Clone(whole)
		p[sof+at] = b
		return p
	}
	for want, p := range map[string][]byte{
		"baseline 8-bit 4:2:0 3 components 240x240":                             whole,
		"baseline 8-bit 1 component 20x10":                                      photo(t, 20, 10, true),
		"progressive 8-bit 4:2:0 3 components 240x240":                          change(1, 0xC2),
		"extended sequential 12-bit 4:2:0 3 components 240x240":                 func() []byte { p := change(1, 0xC1); p[sof+4] = 12; return p }(),
		"arithmetic-coded extended sequential 8-bit 4:2:0 3 components 240x240": change(1, 0xC9),
		"lossless 8-bit 4:2:0 3 components 240x240":                             change(1, 0xC3),
		"baseline 8-bit 4:2:2 3 components 240x240":                             change(11, 0x21),
		"baseline 8-bit 4:4:4 3 components 240x240":                             change(11, 0x11),
		"baseline 8-bit 4:1:1 3 components 240x240":                             change(11, 0x41),
		"baseline 8-bit factors 2x2,1x2,1x1 3 components 240x240":               change(14, 0x12),
	} {
		h, err := jpegstream.Parse(p)
		if got := h.Describe(); got != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	p := append(with(photo(t, 16, 16, false), segmentJFIF, segmentComment, segmentAdobe1), "behind"...)
	h, err := jpegstream.Parse(p)
	if err != nil || !h.JFIF || !h.Adobe || h.Transform != 1 || !h.EOI || h.Trailing != 6 || h.Scans != 1 ||
		h.QuantTables != 3 || h.DCTables != 3 || h.ACTables != 3 || p[h.ScanStart+1] != 0xDA || p[h.DataEnd+1] != 0xD9 {
		t.Errorf("%+v %v", h, err)
	}
	cut := p[:h.DataEnd-3]
	if h, err := jpegstream.Parse(cut); err != nil || h.EOI || h.End != len(cut) {
		t.Errorf("no EOI: %+v %v", h, err)
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "SOI": p[:2], "no SOI": p[1:], "no scan": p[:h.ScanStart], "EOI at once": []byte("\xFF\xD8\xFF\xD9"),
		"long segment": []byte("\xFF\xD8\xFF\xFE\xFF\xFF12"), "length 1": []byte("\xFF\xD8\xFF\xFE\x00\x0112"),
		"two frames":     with(p, "\xFF\xC0\x00\x0B\x08\x00\x10\x00\x10\x01\x01\x11\x00"),
		"too many codes": with(p, "\xFF\xC4\x00\x16\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abc"),
	} {
		if _, err := jpegstream.Parse(bad); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpliceOwnTablesWin: tables of the stream itself come later than the
// directory's, so they count.
func TestSpliceOwnTablesWin(t *testing.T) {
	fine, coarse := photo(t, 64, 48, false), new(bytes.Buffer)
	img, _ := jpeg.Decode(bytes.NewReader(fine))
	if err := jpeg.Encode(coarse, img, &jpeg.Options{Quality: 20}); err != nil {
		t.Fatal(err)
	}
	h, _ := jpegstream.Parse(coarse.Bytes())
	tables := append(bytes.Clone(coarse.Bytes()[:h.ScanStart]), 0xFF, 0xD9)
	p, err := jpegstream.Splice(tables, fine)
	if err != nil || !bytes.Equal(pixels(t, p), pixels(t, fine)) {
		t.Errorf("other pixels, %v", err)
	}
	if p, err := jpegstream.Splice(nil, fine); err != nil || !bytes.Equal(p, fine) {
		t.Errorf("no tables: %v", err)
	}
}

func TestWithAPP14(t *testing.T) {
	plain := photo(t, 32, 32, false)
	for name, p := range map[string][]byte{
		"plain": plain, "JFIF": with(plain, segmentJFIF), "Adobe 1": with(plain, segmentAdobe1),
		"both": with(plain, segmentJFIF, segmentComment, segmentAdobe1), "no EOI": plain[:len(plain)-2],
		"already": with(plain, segmentAdobe0),
	} {
		before := bytes.Clone(p)
		out, err := jpegstream.WithAPP14(p, 0)
		h, errParse := jpegstream.Parse(out)
		if err != nil || errParse != nil || !h.Adobe || h.Transform != 0 || h.JFIF || !h.EOI || bytes.Count(out, []byte("Adobe")) != 1 {
			t.Errorf("%s: %+v %v %v", name, h, err, errParse)
		}
		if !bytes.Equal(p, before) {
			t.Errorf("%s: the input was changed", name)
		}
		if bytes.Contains(p, []byte("hello")) != bytes.Contains(out, []byte("hello")) {
			t.Errorf("%s: the comment is gone", name)
		}
	}
	gray := photo(t, 16, 16, true)
	if out, err := jpegstream.WithAPP14(gray, 0); err != nil || !bytes.Equal(out, gray) {
		t.Errorf("grey: %v", err)
	}
}

func TestPatchSize(t *testing.T) {
	p := photo(t, 32, 32, false)
	if err := jpegstream.PatchSize(p, 300, 200); err != nil {
		t.Fatal(err)
	}
	if h, err := jpegstream.Parse(p); err != nil || h.Width != 300 || h.Height != 200 {
		t.Errorf("%+v %v", h, err)
	}
	if err := jpegstream.PatchSize(p, 70000, 1); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("70000: %v", err)
	}
	if err := jpegstream.PatchSize([]byte("\xFF\xD8\xFF\xD9"), 1, 1); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("no frame: %v", err)
	}
}

// TestCanonical: same pixels, nothing else left, and the same again.
func TestCanonical(t *testing.T) {
	for _, gray := range []bool{false, true} {
		plain := photo(t, 70, 50, gray)
		dressed := append(with(plain, segmentJFIF, segmentComment, segmentDRI), "behind"...)
		want, _, err := jpegstream.Canonical(plain)
		if err != nil {
			t.Fatal(err)
		}
		got, h, err := jpegstream.Canonical(dressed)
		if err != nil || !bytes.Equal(got, want) || h.JFIF || !h.EOI || h.Trailing != 0 {
			t.Errorf("grey %v: %v, %d and %d bytes", gray, err, len(got), len(want))
		}
		if !bytes.Equal(pixels(t, got), pixels(t, plain)) {
			t.Errorf("grey %v: other pixels", gray)
		}
		if again, _, err := jpegstream.Canonical(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("grey %v: not stable: %v", gray, err)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	plain := photo(t, 32, 32, false)
	sof, dqt := bytes.Index(plain, []byte{0xFF, 0xC0}), bytes.Index(plain, []byte{0xFF, 0xDB})
	change := func(at int, b byte) []byte {
		p := bytes.Clone(plain)
		p[at] = b
		return p
	}
	for name, c := range map[string]struct {
		p    []byte
		want error
	}{
		"progressive":  {change(sof+1, 0xC2), microtome.ErrUnsupported},
		"arithmetic":   {change(sof+1, 0xC9), microtome.ErrUnsupported},
		"12-bit":       {change(sof+4, 12), microtome.ErrUnsupported},
		"height 0":     {change(sof+6, 0), microtome.ErrCorrupt},
		"table 3":      {change(sof+12, 3), microtome.ErrCorrupt},
		"no DQT":       {append(bytes.Clone(plain[:dqt]), plain[sof:]...), microtome.ErrCorrupt},
		"many blocks":  {change(sof+11, 0x44), microtome.ErrCorrupt},
		"not a stream": {[]byte("II*"), microtome.ErrCorrupt},
	} {
		if _, _, err := jpegstream.Canonical(c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParseAllocatesNothing: a header is read for every tile that is served.
func TestParseAllocatesNothing(t *testing.T) {
	p := photo(t, 64, 64, false)
	if n := testing.AllocsPerRun(100, func() { jpegstream.Parse(p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
