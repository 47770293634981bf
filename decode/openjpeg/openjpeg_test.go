//go:build cgo

package openjpeg

import (
	"errors"
	"image"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/microtome/microtome"
)

type heap struct{}

func (heap) Take(n int) []byte { return make([]byte, n) }
func (heap) Give([]byte)       {}

func tileOf(t testing.TB, name string, c microtome.Color) microtome.Tile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	samples := 3
	if c == microtome.ColorGray {
		samples = 1
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG2000, Color: c, Width: 80, Height: 64,
		VisibleWidth: 80, VisibleHeight: 64, StreamHeight: 64, Samples: samples, Bits: 8}
}

// sample is what the streams of testdata hold, losslessly.
func sample(x, y, c int) byte {
	return byte([]int{x*3 + y, y * 4, x*2 + y*2}[c])
}

func decodeAll(t testing.TB, tile microtome.Tile, part image.Rectangle, reduce int) ([]byte, error) {
	t.Helper()
	dst := make([]byte, part.Dx()*part.Dy()*tile.Samples)
	err := Decode(dst, part.Dx()*tile.Samples, &tile, part, tile.Samples, reduce, heap{})
	return dst, err
}

func TestLossless(t *testing.T) {
	for name, color := range map[string]microtome.Color{"rgb_mct.j2k": microtome.ColorRGB, "plain.j2k": microtome.ColorRGB,
		"rgb.jp2": microtome.ColorRGB, "gray.j2k": microtome.ColorGray} {
		for _, part := range []image.Rectangle{image.Rect(0, 0, 80, 64), image.Rect(7, 9, 31, 10)} {
			tile := tileOf(t, name, color)
			pix, err := decodeAll(t, tile, part, 0)
			if err != nil {
				t.Fatal(name, err)
			}
			for i, v := range pix {
				p := i / tile.Samples
				if want := sample(part.Min.X+p%part.Dx(), part.Min.Y+p/part.Dx(), i%tile.Samples); v != want {
					t.Fatalf("%s %v: byte %d is %d, want %d", name, part, i, v, want)
				}
			}
		}
	}
}

// TestYCbCrIsNeverShownAsRGB (D9): a 33003 tile is converted, by the equations
// in decimal with green's two products rounded as one, as OpenSlide does.
func TestYCbCrIsNeverShownAsRGB(t *testing.T) {
	tile := tileOf(t, "plain.j2k", microtome.ColorYCbCr)
	pix, err := decodeAll(t, tile, image.Rect(0, 0, 80, 64), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pix); i += 3 {
		x, y := i/3%80, i/3/80
		want := equations(sample(x, y, 0), sample(x, y, 1), sample(x, y, 2))
		if got := [3]byte(pix[i : i+3]); got != want {
			t.Fatalf("(%d,%d) is %v, want %v", x, y, got, want)
		}
	}
}

func equations(y, cb, cr byte) [3]byte {
	b, r := int(cb)-128, int(cr)-128
	green := math.Floor(float64(-34414*b-71414*r+50000) / 100000)
	to := func(v float64) byte { return byte(max(0, min(255, float64(y)+v))) }
	return [3]byte{to(math.Floor(1.402*float64(r) + 0.5)), to(green), to(math.Floor(1.772*float64(b) + 0.5))}
}

func TestTableIsTheEquations(t *testing.T) {
	table := newTable()
	for c := range 1 << 16 {
		row := []byte{128, byte(c), byte(c >> 8)}
		table.convert(row)
		if want := equations(128, byte(c), byte(c>>8)); [3]byte(row) != want {
			t.Fatalf("Cb %d Cr %d: %v, want %v", byte(c), c>>8, row, want)
		}
	}
}

func TestReducedSizes(t *testing.T) {
	for reduce := 1; reduce <= 3; reduce++ {
		tile := tileOf(t, "gray.j2k", microtome.ColorGray)
		part := image.Rect(0, 0, ceilShift(80, reduce), ceilShift(64, reduce))
		pix, err := decodeAll(t, tile, part, reduce)
		if err != nil {
			t.Fatal(err)
		}
		at := pix[part.Dx()+1]
		if got, want := int(at), int(sample(1<<reduce, 1<<reduce, 0)); got < want-12 || got > want+12 {
			t.Errorf("reduce %d: pixel 1,1 is %d, want about %d", reduce, got, want)
		}
	}
}

func TestHalvedOddSizes(t *testing.T) {
	p := picture{w: 3, h: 3, n: 1}
	p.planes[0] = plane{pix: []byte{0, 4, 8, 4, 8, 12, 100, 100, 200}, w: 3, h: 3, subX: 1, subY: 1}
	got := p.halved(1)[:4]
	if want := [4]byte{4, 10, 100, 200}; [4]byte(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSubsampledChroma: a sample of a smaller plane covers all of its pixels.
func TestSubsampledChroma(t *testing.T) {
	p := picture{w: 5, h: 2, n: 3}
	p.planes[0] = plane{pix: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, w: 5, h: 2, subX: 1, subY: 1}
	p.planes[1] = plane{pix: []byte{10, 20, 30}, w: 3, h: 1, subX: 2, subY: 2}
	p.planes[2] = plane{pix: []byte{11, 21, 31}, w: 3, h: 1, subX: 2, subY: 2}
	row := make([]byte, 9)
	p.write(row, 9, image.Rect(2, 1, 5, 2))
	if want := [9]byte{8, 20, 21, 9, 20, 21, 10, 30, 31}; [9]byte(row) != want {
		t.Errorf("%v, want %v", row, want)
	}
}

func TestBadStreams(t *testing.T) {
	whole := tileOf(t, "rgb_mct.j2k", microtome.ColorRGB)
	change := func(f func(*microtome.Tile)) microtome.Tile {
		tile := whole
		tile.Data = append([]byte(nil), whole.Data...)
		f(&tile)
		return tile
	}
	for name, c := range map[string]struct {
		tile microtome.Tile
		want error
	}{
		"wrong width (bad-width)":   {change(func(t *microtome.Tile) { t.Width = 96 }), microtome.ErrCorrupt},
		"one component for three":   {tileOf(t, "gray.j2k", microtome.ColorRGB), microtome.ErrCorrupt},
		"12 bits":                   {tileOf(t, "gray12.j2k", microtome.ColorGray), microtome.ErrUnsupported},
		"no codestream (bad-image)": {change(func(t *microtome.Tile) { t.Data = []byte("not an image at all") }), microtome.ErrCorrupt},
		"empty":                     {change(func(t *microtome.Tile) { t.Data = nil }), microtome.ErrCorrupt},
		"half":                      {change(func(t *microtome.Tile) { t.Data = t.Data[:len(t.Data)/2] }), microtome.ErrCorrupt},
		"all but 20 bytes":          {change(func(t *microtome.Tile) { t.Data = t.Data[:len(t.Data)-20] }), microtome.ErrCorrupt},
		"giant":                     {change(func(t *microtome.Tile) { t.Data[8], t.Data[12] = 0x7F, 0x7F }), microtome.ErrLimit},
		"a million tiles":           {change(func(t *microtome.Tile) { t.Data[27], t.Data[31] = 1, 1 }), microtome.ErrLimit},
	} {
		if _, err := decodeAll(t, c.tile, image.Rect(0, 0, 80, 64), 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestDamagedEndMarkerIsLetPass: the pixels are whole without it.
func TestDamagedEndMarkerIsLetPass(t *testing.T) {
	for _, cut := range []int{0, 2} {
		tile := tileOf(t, "rgb_mct.j2k", microtome.ColorRGB)
		n := len(tile.Data)
		tile.Data[n-1], tile.Data[n-2] = 0, 0
		tile.Data = tile.Data[:n-cut]
		if _, err := decodeAll(t, tile, image.Rect(0, 0, 80, 64), 0); err != nil {
			t.Errorf("%d bytes cut: %v", cut, err)
		}
	}
}

// FuzzDecode: whatever the bytes, an error or pixels, and soon.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"rgb_mct.j2k", "plain.j2k", "rgb.jp2", "gray.j2k"} {
		f.Add(tileOf(f, name, microtome.ColorRGB).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tile := tileOf(t, "gray.j2k", microtome.ColorRGB)
		tile.Data = data
		begin := time.Now()
		_, err := decodeAll(t, tile, image.Rect(0, 0, 80, 64), 0)
		if err != nil && !errors.Is(err, microtome.ErrCorrupt) && !errors.Is(err, microtome.ErrUnsupported) && !errors.Is(err, microtome.ErrLimit) {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}
