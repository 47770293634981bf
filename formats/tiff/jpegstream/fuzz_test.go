package jpegstream_test

import (
	"bytes"
	"testing"

	"github.com/microtome/microtome/formats/tiff/jpegstream"
)

// seeds are whole, abbreviated, dressed and cut streams.
func seeds(f *testing.F) [][]byte {
	color, gray := photo(f, 24, 17, false), photo(f, 9, 9, true)
	h, err := jpegstream.Parse(color)
	if err != nil {
		f.Fatal(err)
	}
	sof := bytes.Index(color, []byte{0xFF, 0xC0})
	progressive := bytes.Clone(color)
	progressive[sof+1] = 0xC2
	return [][]byte{
		color, gray, progressive, color[:h.ScanStart], color[:h.DataStart+5],
		with(color, segmentJFIF, segmentAdobe0, segmentComment), with(color, segmentAdobe1, segmentDRI),
		append(with(color[:len(color)-2], segmentJFIF, segmentAdobe1), segmentAdobe0+"\xFF\xD9"...),
		append(bytes.Clone(gray[:len(gray)-2]), "\xFF\xDB\x00\x45\x03"+string(make([]byte, 64))+"\x21\x00"...),
		append(with(color[sof-2:]), "\xFF\xFF\xD9\xFF\xD8"...), []byte("\xFF\xD8\xFF\xD9"), nil,
	}
}

func FuzzJPEGHeader(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := jpegstream.Parse(p)
		h.Describe()
		if err != nil {
			return
		}
		if h.End < 0 || h.End > len(p) || h.End+h.Trailing != len(p) || h.ScanStart >= h.DataStart || h.DataStart > h.DataEnd || h.DataEnd > h.End {
			t.Fatalf("offsets of %d bytes: %+v", len(p), h)
		}
	})
}

func FuzzSplice(f *testing.F) {
	s := seeds(f)
	for i, p := range s {
		f.Add(s[(i+3)%len(s)], p)
	}
	f.Fuzz(func(t *testing.T, tables, p []byte) {
		before := bytes.Clone(p)
		out, err := jpegstream.Splice(tables, p)
		if !bytes.Equal(before, p) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		if len(out) > len(tables)+len(p)+2 {
			t.Fatalf("%d bytes of %d and %d", len(out), len(tables), len(p))
		}
		if h, err := jpegstream.Parse(out); err != nil || !h.EOI || h.Trailing != 0 {
			t.Fatalf("incomplete: %+v %v", h, err)
		}
		checkComplete(t, tables, p)
		for _, transform := range []uint8{0, 1} {
			out, err := jpegstream.WithAPP14(p, transform)
			h, errParse := jpegstream.Parse(out)
			if err != nil || errParse != nil || h.NumComponents == 3 && (!h.Adobe || h.Transform != transform) {
				t.Fatalf("APP14: %+v %v %v", h, err, errParse)
			}
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		out, h, err := jpegstream.Canonical(p)
		if err != nil {
			return
		}
		again, h2, err := jpegstream.Canonical(out)
		if err != nil || !bytes.Equal(out, again) || h != h2 {
			t.Fatalf("not stable: %v\n%x\n%x", err, out, again)
		}
		if len(out) > len(p)+1<<10 {
			t.Fatalf("%d bytes became %d", len(p), len(out))
		}
	})
}

// checkComplete compares the header that Complete returns with what its stream
// says, for every colour.
func checkComplete(t *testing.T, tables, p []byte) {
	t.Helper()
	var parsed jpegstream.Tables
	if len(tables) > 0 {
		var err error
		if parsed, err = jpegstream.ParseTables(tables); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []jpegstream.Color{jpegstream.AsIs, jpegstream.TransformNone, jpegstream.TransformYCbCr} {
		out, h, err := parsed.Complete(append(make([]byte, parsed.Room()), p...), c)
		want, errParse := jpegstream.Parse(out)
		if err != nil || errParse != nil || h != want {
			t.Fatalf("color %d: %v %v\n%+v\n%+v", c, err, errParse, h, want)
		}
		if h.NumComponents == 3 && (c == jpegstream.TransformNone && (h.JFIF || !h.Adobe || h.Transform != 0) ||
			c == jpegstream.TransformYCbCr && h.Adobe && h.Transform != 1) {
			t.Fatalf("color %d: %+v", c, h)
		}
	}
}
