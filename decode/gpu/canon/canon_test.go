package canon_test

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
	"github.com/microtome/microtome/synth/jpegenc"
)

// stream is a row of the table: a tile, and why hardware can't have it, or else
// what it is.
type stream struct {
	name     string
	tile     microtome.Tile
	why      string
	sampling canon.Sampling
	mcus     int
}

func scene(w, h, channels int) []byte {
	pix := make([]byte, w*h*channels)
	for i := range pix {
		x, y, c := i/channels%w, i/channels/w, i%channels
		pix[i] = byte(x*3 + y*5 + c*70 + (x*y)%11)
	}
	return pix
}

func tileOf(tb testing.TB, w, h int, o jpegenc.Options) microtome.Tile {
	tb.Helper()
	enc, err := jpegenc.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	n := o.Color.Components()
	data, err := enc.Encode(nil, scene(w, h, n), w, h, w*n)
	if err != nil {
		tb.Fatal(err)
	}
	if o.Abbreviated {
		if data, err = jpegstream.Splice(enc.Tables(), data); err != nil {
			tb.Fatal(err)
		}
	}
	color := map[jpegenc.Color]microtome.Color{jpegenc.Gray: microtome.ColorGray, jpegenc.RGB: microtome.ColorRGB}[o.Color]
	if o.Color == jpegenc.YCbCr {
		color = microtome.ColorYCbCr
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: color, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: n, Bits: 8, FillOrder: 1, Predictor: 1}
}

// place is where the first segment of a marker begins.
func place(d []byte, marker byte) int {
	for i := 2; i+4 <= len(d); i += 2 + int(d[i+2])<<8 + int(d[i+3]) {
		if d[i+1] == marker {
			return i
		}
	}
	panic("the stream has no such segment")
}

// without leaves out the first segment of a marker.
func without(d []byte, marker byte) []byte {
	at := place(d, marker)
	return slices.Delete(d, at, at+2+int(d[at+2])<<8+int(d[at+3]))
}

// before puts bytes in front of the first segment of a marker.
func before(d []byte, marker byte, b ...byte) []byte {
	return slices.Insert(d, place(d, marker), b...)
}

// poke sets bytes of a segment, counted from behind its length.
func poke(marker byte, at int, b ...byte) func([]byte) []byte {
	return func(d []byte) []byte {
		copy(d[place(d, marker)+4+at:], b)
		return d
	}
}

// with is a tile whose data are a good one's, changed.
func with(t microtome.Tile, change func([]byte) []byte) microtome.Tile {
	t.Data = change(bytes.Clone(t.Data))
	return t
}

const (
	sof, dht, sos, dqt, dri = 0xC0, 0xC4, 0xDA, 0xDB, 0xDD
)

// table is every stream there is a word about.
func table(tb testing.TB) []stream {
	return slices.Concat(eligible(tb), refusedTiles(tb), refusedHeaders(tb), refusedFrames(tb), refusedTables(tb), refusedScans(tb))
}

func eligible(tb testing.TB) []stream {
	ycc := func(s jpegenc.Sampling) jpegenc.Options { return jpegenc.Options{Sampling: s} }
	grey := tileOf(tb, 64, 64, jpegenc.Options{Color: jpegenc.Gray})
	white := grey
	white.Color = microtome.ColorGrayWhite
	padded := tileOf(tb, 64, 64, ycc(jpegenc.S420))
	padded.Data = append(padded.Data, make([]byte, 7)...)
	s420 := tileOf(tb, 64, 64, ycc(jpegenc.S420))
	part := s420
	part.VisibleWidth, part.VisibleHeight = 3, 5
	return []stream{
		{"4:4:4", tileOf(tb, 72, 64, ycc(jpegenc.S444)), "", canon.S444, 72},
		{"4:2:2", tileOf(tb, 80, 64, ycc(jpegenc.S422)), "", canon.S422, 40},
		{"4:2:0", tileOf(tb, 80, 96, ycc(jpegenc.S420)), "", canon.S420, 30},
		{"4:4:0", tileOf(tb, 64, 80, ycc(jpegenc.S440)), "", canon.S440, 40},
		{"grey", grey, "", canon.Gray, 64},
		{"white is zero", white, "", canon.Gray, 64},
		{"rgb", tileOf(tb, 64, 64, jpegenc.Options{Color: jpegenc.RGB}), "", canon.S444, 64},
		{"rgb by its ids", tileOf(tb, 64, 64, jpegenc.Options{Color: jpegenc.RGB, IDs: []byte("RGB"), Adobe: true}), "", canon.S444, 64},
		{"no whole MCUs", tileOf(tb, 70, 66, ycc(jpegenc.S420)), "", canon.S420, 25},
		{"odd size", tileOf(tb, 65, 67, ycc(jpegenc.S444)), "", canon.S444, 81},
		{"smallest and largest side", tileOf(tb, 2048, 64, ycc(jpegenc.S420)), "", canon.S420, 512},
		{"restarts", tileOf(tb, 128, 64, jpegenc.Options{Sampling: jpegenc.S420, Restart: 3}), "", canon.S420, 32},
		{"restarts for each MCU", tileOf(tb, 64, 64, jpegenc.Options{Restart: 1}), "", canon.S444, 64},
		{"best quality", tileOf(tb, 64, 64, jpegenc.Options{Quality: 100}), "", canon.S444, 64},
		{"APP0 and APP14", tileOf(tb, 64, 64, jpegenc.Options{JFIF: true, Adobe: true, Transform: 1}), "", canon.S444, 64},
		{"tables of their own", tileOf(tb, 64, 64, jpegenc.Options{Sampling: jpegenc.S422, Abbreviated: true}), "", canon.S422, 32},
		{"grey with tables of its own", tileOf(tb, 64, 64, jpegenc.Options{Color: jpegenc.Gray, Abbreviated: true}), "", canon.Gray, 64},
		{"a comment", with(s420, func(d []byte) []byte { return before(d, sof, 0xFF, 0xFE, 0, 4, 'h', 'i') }), "", canon.S420, 16},
		{"an empty table segment", with(s420, func(d []byte) []byte { return before(d, sof, 0xFF, dht, 0, 2) }), "", canon.S420, 16},
		{"7 zeros behind the EOI", padded, "", canon.S420, 16},
		{"cell at the image's edge", part, "", canon.S420, 16},
	}
}

func refusedTiles(tb testing.TB) []stream {
	good := tileOf(tb, 64, 64, jpegenc.Options{})
	of := func(change func(*microtome.Tile)) microtome.Tile {
		t := good
		change(&t)
		return t
	}
	return []stream{
		{name: "another codec", why: "not JPEG", tile: of(func(t *microtome.Tile) { t.Codec = microtome.CodecDeflate })},
		{name: "a band below the first row", why: "a band of a strip", tile: of(func(t *microtome.Tile) { t.FirstRow = 8 })},
		{name: "a band at the first row", why: "a band of a strip", tile: of(func(t *microtome.Tile) { t.Height = 32 })},
		{name: "no bytes", why: "no SOI", tile: of(func(t *microtome.Tile) { t.Data = nil })},
		{name: "3 bytes", why: "no SOI", tile: of(func(t *microtome.Tile) { t.Data = t.Data[:3] })},
		{name: "begins in the tables", why: "no SOI", tile: of(func(t *microtome.Tile) { t.Data = t.Data[2:] })},
		{name: "tile wider than its stream", why: "another size than the tile", tile: of(func(t *microtome.Tile) { t.Width = 72 })},
		{name: "tile lower than its stream", why: "another size than the tile", tile: of(func(t *microtome.Tile) { t.Height, t.StreamHeight = 56, 56 })},
		{name: "palette", why: "another colour than the tile", tile: of(func(t *microtome.Tile) { t.Color = microtome.ColorPalette })},
		{name: "three components of grey", why: "another colour than the tile", tile: of(func(t *microtome.Tile) { t.Color = microtome.ColorGray })},
		{name: "three components, white is zero", why: "another colour than the tile", tile: of(func(t *microtome.Tile) { t.Color = microtome.ColorGrayWhite })},
	}
}

func refusedHeaders(tb testing.TB) []stream {
	good := tileOf(tb, 64, 64, jpegenc.Options{Restart: 2})
	const broken, other = "broken header", "not baseline"
	marker := func(m byte) func([]byte) []byte {
		return func(d []byte) []byte { d[place(d, sof)+1] = m; return d }
	}
	put := func(b ...byte) func([]byte) []byte {
		return func(d []byte) []byte { return before(d, sof, b...) }
	}
	var out []stream
	for _, c := range []struct {
		name, why string
		change    func([]byte) []byte
	}{
		{"cut in a table", broken, func(d []byte) []byte { return d[:60] }},
		{"cut in a marker", broken, func(d []byte) []byte { return d[:place(d, sof)+3] }},
		{"cut behind SOI", broken, func(d []byte) []byte { return append(d[:2], 0xFF, 0xD9) }},
		{"cut in SOS", broken, func(d []byte) []byte { return d[:place(d, sos)+8] }},
		{"no marker after a segment", broken, put(0)},
		{"a fill byte", broken, put(0xFF)},
		{"TEM", broken, put(0xFF, 0x01, 0, 2)},
		{"RST before the scan", broken, put(0xFF, 0xD0, 0, 2)},
		{"RST7 before the scan", broken, put(0xFF, 0xD7, 0, 2)},
		{"SOI in the header", broken, put(0xFF, 0xD8, 0, 2)},
		{"EOI in the header", broken, put(0xFF, 0xD9, 0, 2)},
		{"segment shorter than its length", broken, put(0xFF, 0xE1, 0, 1)},
		{"segment beyond the end", broken, put(0xFF, 0xE1, 0xFF, 0xFF)},
		{"DRI of 3 bytes", broken, put(0xFF, dri, 0, 5, 0, 0, 1)},
		{"JFIF of version 2", "an unknown JFIF or Adobe marker", put(append([]byte{0xFF, 0xE0, 0, 16}, "JFIF\x00\x02\x01\x00\x00\x01\x00\x01\x00\x00"...)...)},
		{"Adobe, transform 2", "an unknown JFIF or Adobe marker", put(append([]byte{0xFF, 0xEE, 0, 14}, "Adobe\x00\x64\x00\x00\x00\x00\x02"...)...)},
		{"extended", other, marker(0xC1)},
		{"progressive", other, marker(0xC2)},
		{"lossless", other, marker(0xC3)},
		{"differential", other, marker(0xC5)},
		{"JPG", other, marker(0xC8)},
		{"arithmetic", other, marker(0xC9)},
		{"progressive and arithmetic", other, marker(0xCA)},
		{"JPEG-LS", other, marker(0xF7)},
		{"arithmetic conditioning", other, put(0xFF, 0xCC, 0, 4, 0, 0)},
		{"number of lines", other, put(0xFF, 0xDC, 0, 4, 0, 64)},
		{"hierarchical", other, put(0xFF, 0xDE, 0, 2)},
	} {
		out = append(out, stream{name: c.name, why: c.why, tile: with(good, c.change)})
	}
	return out
}

func refusedFrames(tb testing.TB) []stream {
	const broken, odd, size = "broken header", "odd sampling factors", "not 64 to 2048 pixels a side"
	good := tileOf(tb, 64, 64, jpegenc.Options{})
	grey := tileOf(tb, 64, 64, jpegenc.Options{Color: jpegenc.Gray})
	frame := func(n byte) func([]byte) []byte { // of n components
		return func(d []byte) []byte {
			b := append([]byte{0xFF, sof, 0, 8 + 3*n, 8, 0, 64, 0, 64, n}, bytes.Repeat([]byte{1, 0x11, 0}, int(n))...)
			return before(without(d, sof), sos, b...)
		}
	}
	again := func(d []byte) []byte {
		at := place(d, sof)
		return before(d, sof, bytes.Clone(d[at:at+19])...)
	}
	return []stream{
		{name: "12 bits", why: broken, tile: with(good, poke(sof, 0, 12))},
		{name: "frame longer than its components", why: broken, tile: with(good, poke(sof, 5, 2))},
		{name: "frame of 5 bytes", why: broken, tile: with(good, func(d []byte) []byte { return before(d, sof, 0xFF, sof, 0, 7, 8, 0, 64, 0, 64) })},
		{name: "quantization table 4 in the frame", why: broken, tile: with(good, poke(sof, 8, 4))},
		{name: "two frames", why: "several frames", tile: with(good, again)},
		{name: "none", why: "0 components", tile: with(good, frame(0))},
		{name: "two", why: "2 components", tile: with(good, frame(2))},
		{name: "CMYK", why: "4 components", tile: tileOf(tb, 64, 64, jpegenc.Options{Color: jpegenc.CMYK})},
		{name: "nine", why: "5 components", tile: with(good, frame(9))},
		{name: "narrow", why: size, tile: tileOf(tb, 63, 64, jpegenc.Options{})},
		{name: "low", why: size, tile: tileOf(tb, 64, 63, jpegenc.Options{})},
		{name: "wide", why: size, tile: tileOf(tb, 2049, 64, jpegenc.Options{})},
		{name: "height told by DNL", why: size, tile: with(good, poke(sof, 1, 0, 0))},
		{name: "grey of 2x2", why: "grey with sampling factors", tile: with(grey, poke(sof, 7, 0x22))},
		{name: "4:1:1", why: odd, tile: tileOf(tb, 64, 64, jpegenc.Options{Sampling: jpegenc.S411})},
		{name: "4:4:4 as 2x2", why: odd, tile: with(with(with(good, poke(sof, 7, 0x22)), poke(sof, 10, 0x22)), poke(sof, 13, 0x22))},
		{name: "chroma finer than luma", why: odd, tile: with(good, poke(sof, 10, 0x21))},
		{name: "factors of 0", why: odd, tile: with(good, poke(sof, 7, 0))},
		{name: "4:2:2 of odd width", why: "half a chroma sample at the edge", tile: tileOf(tb, 65, 64, jpegenc.Options{Sampling: jpegenc.S422})},
		{name: "4:4:0 of odd height", why: "half a chroma sample at the edge", tile: tileOf(tb, 64, 65, jpegenc.Options{Sampling: jpegenc.S440})},
	}
}

func refusedTables(tb testing.TB) []stream {
	const sixteen, kind, missing = "quantization table of 16 bits", "Huffman table of another kind", "tables are missing"
	good := tileOf(tb, 64, 64, jpegenc.Options{})
	many := append([]byte{0xFF, dht, 2, 17, 0x10, 0, 0, 0, 0, 0, 0, 0, 255, 255}, make([]byte, 7+510)...)
	drop := func(marker byte) func([]byte) []byte {
		return func(d []byte) []byte { return without(d, marker) }
	}
	bare := func(d []byte) []byte {
		for range 2 {
			d = without(d, dqt)
		}
		for range 4 {
			d = without(d, dht)
		}
		return d
	}
	return []stream{
		{name: "quantizers of 16 bits", why: sixteen, tile: with(good, poke(dqt, 0, 0x10))},
		{name: "quantization table 4", why: sixteen, tile: with(good, poke(dqt, 0, 4))},
		{name: "63 quantizers", why: sixteen, tile: with(good, func(d []byte) []byte {
			return before(d, sof, append([]byte{0xFF, dqt, 0, 66, 0}, make([]byte, 63)...)...)
		})},
		{name: "a quantizer is 0", why: "a quantizer of 0", tile: with(good, poke(dqt, 1+63, 0))},
		{name: "Huffman table 2", why: kind, tile: with(good, poke(dht, 0, 2))},
		{name: "Huffman class 2", why: kind, tile: with(good, poke(dht, 0, 0x20))},
		{name: "more codes than bytes", why: kind, tile: with(good, poke(dht, 1+8, 200))},
		{name: "510 codes", why: kind, tile: with(good, func(d []byte) []byte { return before(d, sof, many...) })},
		{name: "DHT of 16 bytes", why: "broken header", tile: with(good, func(d []byte) []byte {
			return before(d, sof, append([]byte{0xFF, dht, 0, 18}, make([]byte, 16)...)...)
		})},
		{name: "a quantization table is missing", why: missing, tile: with(good, drop(dqt))},
		{name: "a Huffman table is missing", why: missing, tile: with(good, drop(dht))},
		{name: "abbreviated", why: missing, tile: with(good, bare)},
		{name: "quantization table 3 of none", why: missing, tile: with(good, poke(sof, 14, 3))},
	}
}

func refusedScans(tb testing.TB) []stream {
	const order, end, kind, other = "not one interleaved scan", "no EOI at the end", "Huffman table of another kind", "not baseline"
	good := tileOf(tb, 64, 64, jpegenc.Options{})
	tail := func(b ...byte) func([]byte) []byte {
		return func(d []byte) []byte { return append(d, b...) }
	}
	late := func(d []byte) []byte { // the frame behind SOS
		at := place(d, sof)
		b := bytes.Clone(d[at : at+19])
		d = without(d, sof)
		return slices.Insert(d, place(d, sos)+14, b...)
	}
	var out []stream
	for _, c := range []struct {
		name, why string
		change    func([]byte) []byte
	}{
		{"a scan a component", order, func(d []byte) []byte {
			return before(d, sos, 0xFF, sos, 0, 8, 1, 1, 0, 0, 63, 0)
		}},
		{"components in another order", order, poke(sos, 1, 2, 0x11, 1, 0)},
		{"a component that no frame has", order, poke(sos, 5, 9)},
		{"scan before the frame", order, late},
		{"fewer components than bytes", order, poke(sos, 0, 2)},
		{"empty SOS", order, func(d []byte) []byte { return before(d, sos, 0xFF, sos, 0, 2) }},
		{"DC table 2", kind, poke(sos, 2, 0x20)},
		{"AC table 2", kind, poke(sos, 2, 0x02)},
		{"begins at coefficient 1", other, poke(sos, 7, 1)},
		{"ends at coefficient 62", other, poke(sos, 8, 62)},
		{"successive approximation", other, poke(sos, 9, 0x01)},
		{"missing EOI", end, func(d []byte) []byte { return d[:len(d)-2] }},
		{"half an EOI", end, func(d []byte) []byte { return d[:len(d)-1] }},
		{"cut short", end, func(d []byte) []byte { return d[:len(d)-200] }},
		{"cut behind SOS", end, func(d []byte) []byte { return d[:place(d, sos)+14] }},
		{"8 zeros behind the EOI", end, tail(make([]byte, 8)...)},
		{"a byte behind the EOI", end, tail(1)},
		{"a byte in the padding", end, tail(0, 1, 0)},
		{"nothing but an EOI", "no data", func(d []byte) []byte { return append(d[:place(d, sos)+14], 0xFF, 0xD9) }},
	} {
		out = append(out, stream{name: c.name, why: c.why, tile: with(good, c.change)})
	}
	return out
}

func TestParse(t *testing.T) {
	for _, c := range table(t) {
		t.Run(c.name, func(t *testing.T) {
			var s canon.Stream
			err := canon.Parse(&c.tile, &s)
			if c.why != "" {
				if err == nil || err.Error() != c.why || !errors.Is(err, microtome.ErrUnsupported) {
					t.Fatalf("error %v, want %q", err, c.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Sampling != c.sampling || s.MCUs != c.mcus || s.Width != c.tile.Width || s.Height != c.tile.Height {
				t.Errorf("%dx%d, %v, %d MCUs; want %v, %d", s.Width, s.Height, s.Sampling, s.MCUs, c.sampling, c.mcus)
			}
			again := rebuilt(t, &s, c.tile)
			if want, got := pixels(t, c.tile), pixels(t, again); !bytes.Equal(want, got) {
				t.Error("the canonical stream has other pixels")
			}
		})
	}
}

// rebuilt is the tile with its canonical stream, Slack left out.
func rebuilt(tb testing.TB, s *canon.Stream, tile microtome.Tile) microtome.Tile {
	tb.Helper()
	out := s.Append([]byte("before"))
	if len(out) != 6+s.Size() || string(out[:6]) != "before" {
		tb.Fatalf("%d bytes appended, Size says %d", len(out)-6, s.Size())
	}
	end := len(out) - canon.Slack
	if !bytes.Equal(out[end:], make([]byte, canon.Slack)) || out[end-2] != 0xFF || out[end-1] != 0xD9 {
		tb.Fatalf("ends with % x", out[end-2:])
	}
	tile.Data = out[6:end]
	return tile
}

func pixels(t *testing.T, tile microtome.Tile) []byte {
	t.Helper()
	d := decode.NewCPU(decode.Options{Workers: 1})
	defer d.Close()
	tile.VisibleWidth, tile.VisibleHeight = tile.Width, tile.Height
	r := d.DecodeBatch(t.Context(), []microtome.Job{{Tile: tile}})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	defer r.Pixels.Release()
	pix, stride, _ := r.Pixels.Host()
	var out []byte
	for y := range r.Pixels.Height() {
		out = append(out, pix[y*stride:][:r.Pixels.Width()*r.Pixels.Channels()]...)
	}
	return out
}

// What a decoder needs not is gone: streams that differ in it alone become one.
func TestAppendLeavesOut(t *testing.T) {
	plain := tileOf(t, 64, 64, jpegenc.Options{Color: jpegenc.Gray})
	unused := append([]byte{0xFF, dqt, 0, 67, 3}, bytes.Repeat([]byte{1}, 64)...)
	earlier := bytes.Clone(unused)
	earlier[4] = 0
	var s canon.Stream
	if err := canon.Parse(&plain, &s); err != nil {
		t.Fatal(err)
	}
	want := s.Append(nil)
	for name, tile := range map[string]microtome.Tile{
		"markers":          tileOf(t, 64, 64, jpegenc.Options{Color: jpegenc.Gray, JFIF: true, Adobe: true}),
		"ids":              tileOf(t, 64, 64, jpegenc.Options{Color: jpegenc.Gray, IDs: []byte{77}}),
		"tables elsewhere": tileOf(t, 64, 64, jpegenc.Options{Color: jpegenc.Gray, Abbreviated: true}),
		"unused tables":    with(plain, func(d []byte) []byte { return before(d, sof, unused...) }),
		"a table twice":    with(plain, func(d []byte) []byte { return before(d, dqt, earlier...) }),
		"no restarts":      with(plain, func(d []byte) []byte { return before(d, sos, 0xFF, dri, 0, 4, 0, 0) }),
		"padding":          with(plain, func(d []byte) []byte { return append(d, 0, 0) }),
	} {
		if err := canon.Parse(&tile, &s); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(s.Append(nil), want) {
			t.Errorf("%s are left in", name)
		}
	}
}

// reasons are what canon.go can say, as patterns.
func reasons(tb testing.TB) []*regexp.Regexp {
	tb.Helper()
	src, err := os.ReadFile("canon.go")
	if err != nil {
		tb.Fatal(err)
	}
	var out []*regexp.Regexp
	for _, m := range regexp.MustCompile(`ineligible\((?:fmt\.Sprintf\()?"([^"]+)"`).FindAllSubmatch(src, -1) {
		out = append(out, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(string(m[1])), "%d", `\d+`)+"$"))
	}
	return out
}

// The table has a stream for each reason.
func TestReasons(t *testing.T) {
	all, list := table(t), reasons(t)
	if len(list) < 10 {
		t.Fatalf("%d reasons found in canon.go", len(list))
	}
	for _, r := range list {
		if !slices.ContainsFunc(all, func(c stream) bool { return r.MatchString(c.why) }) {
			t.Errorf("no stream is refused with %v", r)
		}
	}
}
