package formats

import (
	"context"
	"errors"
	"image"
	"math"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/tiffw"
)

// TestGenericLevels: E1 (levels told by shape where nothing marks them), masks,
// pages, strips (A18), SubIFDs.
func TestGenericLevels(t *testing.T) {
	for name, c := range map[string]struct {
		dirs []*dir
		want string
		warn bool
	}{
		"flat":                    {[]*dir{tiled(64, 64)}, "64x64", false},
		"marked":                  {[]*dir{tiled(64, 64), tiled(32, 32).kind(1), tiled(16, 16).kind(1)}, "64x64 32x32 16x16", false},
		"unmarked":                {[]*dir{tiled(64, 64), tiled(32, 32), tiled(16, 16)}, "64x64 32x32 16x16", false},
		"unmarked, out of order":  {[]*dir{tiled(64, 64), tiled(16, 16), tiled(32, 32)}, "64x64 32x32 16x16", false},
		"smallest first":          {[]*dir{tiled(32, 32), tiled(64, 64).kind(1)}, "64x64 32x32", false},
		"unmarked, other shape":   {[]*dir{tiled(64, 64), tiled(48, 16)}, "64x64", true},
		"marked, other shape":     {[]*dir{tiled(64, 64), tiled(32, 8).kind(1)}, "64x64", true},
		"same size twice":         {[]*dir{tiled(64, 64), tiled(64, 64)}, "64x64", true},
		"odd sizes, floor":        {[]*dir{tiled(101, 75), tiled(50, 37).kind(1), tiled(25, 18).kind(1), tiled(12, 9).kind(1)}, "101x75 50x37 25x18 12x9", false},
		"odd sizes, ceil":         {[]*dir{tiled(101, 75), tiled(51, 38).kind(1), tiled(26, 19).kind(1), tiled(13, 10).kind(1)}, "101x75 51x38 26x19 13x10", false},
		"a line":                  {[]*dir{tiled(256, 1), tiled(128, 1).kind(1), tiled(64, 1).kind(1)}, "256x1 128x1 64x1", false},
		"mask":                    {[]*dir{tiled(64, 64), tiled(64, 64).kind(4), tiled(32, 32).kind(1), tiled(32, 32).kind(5)}, "64x64 32x32", false},
		"mask first":              {[]*dir{tiled(64, 64).kind(4), tiled(64, 64)}, "64x64", false},
		"page":                    {[]*dir{tiled(64, 64), tiled(32, 32).kind(2)}, "64x64", true},
		"page marked reduced":     {[]*dir{tiled(64, 64), tiled(32, 32).kind(3)}, "64x64 32x32", false},
		"strips":                  {[]*dir{striped(64, 64)}, "64x64", false},
		"strips of many pages":    {[]*dir{striped(64, 64), striped(64, 64), striped(64, 64)}, "64x64", true},
		"strip beside tiles":      {[]*dir{tiled(64, 64), striped(32, 32)}, "64x64", true},
		"marked strip":            {[]*dir{tiled(64, 64), striped(32, 32).kind(1)}, "64x64 32x32", false},
		"gray beside colour":      {[]*dir{tiled(64, 64), tiled(32, 32).gray().kind(1)}, "64x64", true},
		"SubIFDs":                 {[]*dir{tiled(64, 64).below(tiled(32, 32).kind(1), tiled(16, 16).kind(1))}, "64x64 32x32 16x16", false},
		"SubIFDs and a 2nd page":  {[]*dir{tiled(64, 64).below(tiled(32, 32)), tiled(64, 64).below(tiled(32, 32))}, "64x64 32x32", true},
		"a level we can't decode": {[]*dir{tiled(64, 64), tiled(32, 32).kind(1).set(259, short(50001))}, "64x64", true},
	} {
		s := opened(t, c.dirs...)
		warnings := s.Info().Warnings
		if got := shape(s); got != c.want || (len(warnings) > 0) != c.warn || s.Info().Format != "generic-tiff" {
			t.Errorf("%s: %s %q, want %q; warnings %q", name, s.Info().Format, got, c.want, warnings)
		}
	}
}

// TestResolution: E2 and A17.
func TestResolution(t *testing.T) {
	for name, c := range map[string]struct {
		x, y tiffw.Entry
		unit uint16
		want float64
	}{
		"centimeter":       {ratio(20000, 1), ratio(20000, 1), 3, 0.5},
		"inch":             {ratio(50800, 1), ratio(50800, 1), 2, 0.5},
		"no unit":          {ratio(20000, 1), ratio(20000, 1), 1, 0},
		"unknown unit":     {ratio(20000, 1), ratio(20000, 1), 7, 0},
		"zero":             {ratio(0, 1), ratio(20000, 1), 3, 0},
		"zero denominator": {ratio(1, 0), ratio(20000, 1), 3, 0},
		"0/0":              {ratio(0, 0), ratio(0, 0), 3, 0},
		"no number":        {text("300"), ratio(20000, 1), 3, 0},
		"negative":         {entry(tiffw.SRational, 1, []int32{-3, 1}), ratio(20000, 1), 3, 0},
		"not a number":     {entry(tiffw.Float, 1, []float32{float32(math.NaN())}), ratio(20000, 1), 3, 0},
	} {
		info := opened(t, tiled(64, 64).set(282, c.x).set(283, c.y).set(296, short(c.unit))).Info()
		got := 0.0
		if info.MPP != nil {
			got = info.MPP.X
		}
		if math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: mpp %v, want %v", name, got, c.want)
		}
	}
}

// TestBounds: A24.
func TestBounds(t *testing.T) {
	box := func(x, y, w, h int) *image.Rectangle { r := image.Rect(x, y, x+w, y+h); return &r }
	for name, c := range map[string]struct {
		d        *dir
		want     *image.Rectangle
		reported string // openslide.bounds-width
	}{
		"all stored":        {tiled(64, 64), nil, ""},
		"an inner gap":      {tiled(64, 64).without(5), nil, ""},
		"a corner missing":  {tiled(64, 64).without(0), nil, ""},
		"the ring missing":  {tiled(64, 64).only(5, 6, 9, 10), box(16, 16, 32, 32), "32"},
		"one tile":          {tiled(64, 64).only(3), box(48, 0, 16, 16), "16"},
		"to the odd edge":   {tiled(60, 55).only(5, 15), box(16, 16, 44, 39), "44"},
		"none":              {tiled(64, 64).only(), nil, "0"},
		"strips, none":      {striped(64, 64).without(0), nil, ""},
		"a column missing":  {tiled(64, 64).without(0, 4, 8, 12), box(16, 0, 48, 64), "48"},
		"the bottom only":   {tiled(64, 64).only(12, 13, 14, 15), box(0, 48, 64, 16), "64"},
		"Aperio tells none": {aperio("").only(5), nil, ""},
	} {
		s := opened(t, c.d)
		got := s.Info().Bounds
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		p, err := s.Properties(context.Background())
		if err != nil || p["openslide.bounds-width"] != c.reported {
			t.Errorf("%s: bounds-width %q, %v, want %q", name, p["openslide.bounds-width"], err, c.reported)
		}
	}
}

// TestRefused: what is not opened is named by tag and value, or is corrupt.
func TestRefused(t *testing.T) {
	for want, data := range map[string][]byte{
		"Compression 200":           file(tiled(64, 64).set(259, short(200))),
		"BitsPerSample 12":          file(tiled(64, 64).set(258, short(12, 12, 12))),
		"BitsPerSample 16":          file(tiled(64, 64).set(258, short(16, 16, 16))),
		"ImageDepth 2":              file(tiled(64, 64).set(32997, long(2))),
		"SampleFormat 3":            file(tiled(64, 64).set(339, short(3, 3, 3))),
		"PlanarConfiguration 2":     file(tiled(64, 64).set(284, short(2))),
		"65420 (Hamamatsu NDPI)":    file(striped(64, 64).set(tagNDPI, long(1))),
		`Software "Philips DP v1.0`: file(tiled(64, 64).set(305, text("Philips DP v1.0"))),
		"(Leica SCN)":               file(tiled(64, 64).says(`<scn xmlns="` + leicaSchema + `2010/10/01">`)),
		"(Ventana BIF)":             file(tiled(64, 64).set(700, undef([]byte("<iScan/>")))),
		"(PNG)":                     []byte("\x89PNG\r\n\x1a\n0000"),
		"(JPEG)":                    []byte("\xff\xd8\xff\xe0"),
		"(DICOM)":                   append(make([]byte, 128), "DICM0000"...),
		"(no TIFF)":                 []byte("hello, world"),
	} {
		_, err := Open(context.Background(), &memory{data: data}, Options{})
		if !errors.Is(err, microtome.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	for name, data := range map[string][]byte{
		"empty":        {},
		"one byte":     {'I'},
		"a magic only": []byte("II*\x00"),
		"no directory": []byte("II*\x00\x00\x00\x00\x00"),
		"only a mask":  file(tiled(64, 64).kind(4)),
		"no size":      file(tiled(64, 64).set(256, long(0))),
	} {
		s, err := Open(context.Background(), &memory{data: data}, Options{})
		if err == nil {
			t.Errorf("%s: opened as %s", name, shape(s))
		} else if !errors.Is(err, microtome.ErrCorrupt) && !errors.Is(err, microtome.ErrUnsupported) {
			t.Errorf("%s: an error of no kind: %v", name, err)
		}
	}
}

func TestSourceFails(t *testing.T) {
	src := &memory{data: file(tiled(64, 64)), broken: true}
	if _, err := Open(context.Background(), src, Options{}); !errors.Is(err, microtome.ErrSource) {
		t.Errorf("error %v, want the source's", err)
	}
	if src.closed {
		t.Error("a failed Open closed the source")
	}
	src.broken = false
	s, err := Open(context.Background(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	src.broken = true
	if _, err := s.Properties(context.Background()); !errors.Is(err, microtome.ErrSource) {
		t.Errorf("properties of a broken source: %v", err)
	}
	src.broken = false
	if p, err := s.Properties(context.Background()); err != nil || p[quickhashKey] == "" {
		t.Errorf("an error was remembered: %v", err)
	}
	if err := s.Close(); err != nil || !src.closed {
		t.Errorf("close: %v, %v", err, src.closed)
	}
}

// TestOpenReadsNoTile: opening touches neither tiles nor their hash.
func TestOpenReadsNoTile(t *testing.T) {
	src := &memory{data: file(tiled(64, 64), tiled(32, 32).kind(1))}
	s, err := Open(context.Background(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := src.reads
	if before > 16 {
		t.Errorf("opening took %d reads", before)
	}
	id, err := s.ContentID(context.Background())
	if err != nil || len(id) != 64 || src.reads == before {
		t.Errorf("content id %q, %v", id, err)
	}
	before = src.reads
	again, _ := s.ContentID(context.Background())
	p, _ := s.Properties(context.Background())
	if again != id || p[quickhashKey] != id || src.reads != before {
		t.Errorf("the second call read %d times", src.reads-before)
	}
	p["openslide.vendor"] = "changed"
	if q, _ := s.Properties(context.Background()); q["openslide.vendor"] != "generic-tiff" {
		t.Error("a caller can change what others see")
	}
}

// TestContentID: a slide without a quickhash has an id all the same, told by
// its content.
func TestContentID(t *testing.T) {
	id := func(d *dir) string {
		s := opened(t, d)
		id, err := s.ContentID(context.Background())
		if err != nil || len(id) != 64 {
			t.Fatalf("content id %q, %v", id, err)
		}
		if p, _ := s.Properties(context.Background()); p[quickhashKey] != "" {
			t.Fatal("a stripped file has a quickhash, OpenSlide gives it none")
		}
		return id
	}
	one := id(striped(64, 64))
	if id(striped(64, 64)) != one {
		t.Error("equal files, different ids")
	}
	other := striped(64, 64)
	other.cells[0][77]++
	if id(other) == one || id(striped(64, 64).says("x")) == one || id(striped(64, 32)) == one {
		t.Error("different files, equal ids")
	}
}

func TestWaitingEndsWithTheCaller(t *testing.T) {
	s := opened(t, tiled(64, 64)).(*slide)
	s.lazy.busy <- struct{}{}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Properties(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := s.ContentID(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestTruncated: A7. A file cut inside its last tile opens; that tile fails,
// its neighbours don't, and the slide has an id though OpenSlide refuses it.
func TestTruncated(t *testing.T) {
	b := tiffw.NewBuffer()
	w := tiffw.New(b, tiffw.Options{})
	d := tiled(32, 16)
	last := d.cells[1]
	d.cells[1] = nil
	tags := d.place(w)
	end := uint32(1 << 12) // where the last tile will be, behind all else
	w.Dir(tags.Set(tiffw.Entry{Tag: 324, Type: tiffw.Long, Count: 2, Value: []uint32{8, end}}).
		Set(tiffw.Entry{Tag: 325, Type: tiffw.Long, Count: 2, Value: []uint32{768, 768}}))
	w.Block(make([]byte, int64(end)-w.Pos()))
	w.Block(last[:700])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), &memory{data: b.Bytes()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for range 2 {
		if _, err := s.ReadTile(ctx, 0, 0, 1, 0); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("the cut tile: %v", err)
		}
		if tile, err := s.ReadTile(ctx, 0, 0, 0, 0); err != nil || tile.Data[0] != 1 {
			t.Errorf("its neighbour: %v", err)
		}
	}
	if p, err := s.Properties(ctx); err != nil || p[quickhashKey] != "" {
		t.Errorf("quickhash %q, %v", p[quickhashKey], err)
	}
	if id, err := s.ContentID(ctx); err != nil || len(id) != 64 {
		t.Errorf("content id %q, %v", id, err)
	}
}
