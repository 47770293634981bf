package raw

import (
	"bytes"
	"errors"
	"image"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/tilecodec"
)

const width, height = 37, 23

func samples(n int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	pix := make([]byte, width*height*n)
	for i := range pix {
		pix[i] = byte(i/n%width*3 + i%n*50 + rng.IntN(3)/2)
	}
	return pix
}

func tileOf(c microtome.Codec, n int, data []byte) microtome.Tile {
	color := microtome.ColorRGB
	if n < 3 {
		color = microtome.ColorGray
	}
	return microtome.Tile{Data: data, Codec: c, Color: color, Width: width, Height: height, VisibleWidth: width,
		VisibleHeight: height, StreamHeight: height, Samples: n, Bits: 8, Predictor: 1, FillOrder: 1}
}

// pack compresses rows as a TIFF writer would.
func pack(t testing.TB, c microtome.Codec, pix []byte, n int, predict bool) []byte {
	t.Helper()
	if predict {
		pix = bytes.Clone(pix)
		for y := range len(pix) / (width * n) {
			row := pix[y*width*n : (y+1)*width*n]
			for i := len(row) - 1; i >= n; i-- {
				row[i] -= row[i-n]
			}
		}
	}
	switch c {
	case microtome.CodecDeflate:
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write(pix)
		_ = z.Close()
		return b.Bytes()
	case microtome.CodecZstd:
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return z.EncodeAll(pix, nil)
	case microtome.CodecLZW:
		return tilecodec.LZW(nil, pix)
	case microtome.CodecPackBits:
		return tilecodec.PackBits(nil, pix, width*n)
	}
	return pix
}

func codecs() []microtome.Codec {
	return []microtome.Codec{microtome.CodecNone, microtome.CodecDeflate, microtome.CodecLZW, microtome.CodecPackBits, microtome.CodecZstd}
}

func decodeTile(d *Decoder, tile microtome.Tile, part image.Rectangle, channels int) ([]byte, error) {
	dst := bytes.Repeat([]byte{0xA5}, part.Dx()*part.Dy()*channels)
	err := d.Decode(dst, part.Dx()*channels, &tile, part, channels)
	return dst, err
}

func want(pix []byte, n int, part image.Rectangle, channels int) []byte {
	var out []byte
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			out = append(out, pix[(y*width+x)*n:][:channels]...)
		}
	}
	return out
}

// TestEveryCodec: all samples counts, with and without the predictor, both bit
// orders, whole and in part; one Decoder for all, so that kept state shows.
func TestEveryCodec(t *testing.T) {
	d := new(Decoder)
	for _, c := range codecs() {
		for _, n := range []int{1, 2, 3, 4} {
			for _, predictor := range []int{1, 2} {
				for _, order := range []int{1, 2} {
					pix := samples(n)
					tile := tileOf(c, n, nil)
					tile.Predictor, tile.FillOrder = predictor, order
					tile.Data = pack(t, c, pix, n, differenced(&tile))
					if order == 2 {
						tile.Data = reversed(tile.Data)
					}
					channels := 1
					if n >= 3 {
						channels = 3
					}
					for _, part := range []image.Rectangle{image.Rect(0, 0, width, height), image.Rect(5, 7, 6, 8), image.Rect(30, 0, width, 3)} {
						got, err := decodeTile(d, tile, part, channels)
						if err != nil || !bytes.Equal(got, want(pix, n, part, channels)) {
							t.Fatalf("codec %d, %d samples, predictor %d, fill order %d, %v: wrong pixels, or %v", c, n, predictor, order, part, err)
						}
					}
				}
			}
		}
	}
}

func TestPaletteAndWhiteIsZero(t *testing.T) {
	d := new(Decoder)
	tile := tileOf(microtome.CodecNone, 1, samples(1))
	tile.Color = microtome.ColorGrayWhite
	got, err := decodeTile(d, tile, image.Rect(3, 0, 4, 1), 1)
	if err != nil || got[0] != 255-tile.Data[3] {
		t.Errorf("%v, %v", got, err)
	}
	tile.Color = microtome.ColorPalette
	if _, err := decodeTile(d, tile, image.Rect(3, 0, 4, 1), 3); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("no palette: %v", err)
	}
	tile.Palette = new([256]microtome.RGB)
	tile.Palette[tile.Data[3]] = microtome.RGB{R: 1, G: 2, B: 3}
	got, err = decodeTile(d, tile, image.Rect(3, 0, 4, 1), 3)
	if err != nil || !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestPartialTile (generic-tiff-lzw-partial-tile): rows that a writer left out
// below the image are not missed; rows that show are.
func TestPartialTile(t *testing.T) {
	d := new(Decoder)
	for _, c := range codecs() {
		pix := samples(3)
		tile := tileOf(c, 3, pack(t, c, pix[:10*width*3], 3, false))
		if got, err := decodeTile(d, tile, image.Rect(0, 0, width, 10), 3); err != nil || !bytes.Equal(got, pix[:10*width*3]) {
			t.Errorf("codec %d: 10 rows of 10: %v", c, err)
		}
		if _, err := decodeTile(d, tile, image.Rect(0, 0, width, 11), 3); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("codec %d: 11 rows of 10: %v", c, err)
		}
		if _, err := decodeTile(d, tile, image.Rect(0, 15, width, 16), 3); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("codec %d: row 15 of 10: %v", c, err)
		}
	}
}

// TestBombsStopAtTheTile: a stream that would grow to a gigabyte is read only as
// far as its tile reaches.
func TestBombsStopAtTheTile(t *testing.T) {
	d := new(Decoder)
	const bomb = 1 << 28
	for _, c := range []microtome.Codec{microtome.CodecDeflate, microtome.CodecZstd} {
		tile := tileOf(c, 3, pack(t, c, make([]byte, bomb), width*height, false))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if _, err := decodeTile(d, tile, image.Rect(0, 0, width, height), 3); err != nil {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		if grew := after.TotalAlloc - before.TotalAlloc; grew > bomb/8 {
			t.Errorf("codec %d: %d bytes allocated for %d", c, grew, width*height*3)
		}
	}
}

func TestRefused(t *testing.T) {
	d := new(Decoder)
	for name, c := range map[string]struct {
		change func(*microtome.Tile)
		want   error
	}{
		"YCbCr":         {func(t *microtome.Tile) { t.Color = microtome.ColorYCbCr }, microtome.ErrUnsupported},
		"predictor 3":   {func(t *microtome.Tile) { t.Predictor = 3 }, microtome.ErrUnsupported},
		"two samples":   {func(t *microtome.Tile) { t.Samples = 2 }, microtome.ErrUnsupported},
		"five samples":  {func(t *microtome.Tile) { t.Samples = 5 }, microtome.ErrUnsupported},
		"unknown codec": {func(t *microtome.Tile) { t.Codec = 99 }, microtome.ErrUnsupported},
		"old LZW":       {func(t *microtome.Tile) { t.Codec, t.Data = microtome.CodecLZW, []byte{0, 1, 2, 3} }, microtome.ErrUnsupported},
		"LZW of noise":  {func(t *microtome.Tile) { t.Codec, t.Data = microtome.CodecLZW, []byte{0xFF, 0xFF, 0xFF, 0xFF} }, microtome.ErrCorrupt},
		"no zlib":       {func(t *microtome.Tile) { t.Codec, t.Data = microtome.CodecDeflate, []byte("no zlib") }, microtome.ErrCorrupt},
		"no zstd":       {func(t *microtome.Tile) { t.Codec, t.Data = microtome.CodecZstd, []byte("no zstd!") }, microtome.ErrCorrupt},
		"short bits":    {func(t *microtome.Tile) { t.Codec, t.Data = microtome.CodecPackBits, []byte{5, 1, 2} }, microtome.ErrCorrupt},
		"nothing":       {func(t *microtome.Tile) { t.Data = nil }, microtome.ErrCorrupt},
	} {
		tile := tileOf(microtome.CodecNone, 3, samples(3))
		c.change(&tile)
		if _, err := decodeTile(d, tile, image.Rect(0, 0, width, height), 3); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// FuzzDecode: whatever the bytes, an error of a known kind or all the pixels.
func FuzzDecode(f *testing.F) {
	for _, c := range codecs() {
		f.Add(uint8(c), pack(f, c, samples(3), 3, false))
	}
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, c uint8, data []byte) {
		_, err := decodeTile(d, tileOf(microtome.Codec(c%8), 3, data), image.Rect(0, 0, width, height), 3)
		if err != nil && !errors.Is(err, microtome.ErrCorrupt) && !errors.Is(err, microtome.ErrUnsupported) && !errors.Is(err, microtome.ErrLimit) {
			t.Fatal(err)
		}
	})
}
