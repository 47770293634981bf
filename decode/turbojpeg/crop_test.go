//go:build cgo

package turbojpeg_test

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
	"github.com/microtome/microtome/decode/turbojpeg"
	"github.com/microtome/microtome/synth/jpegenc"
)

// edges is a picture of hard colour edges, where the chroma filter shows every
// sample that it reads wrong.
func edges(w, h, channels int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(w*h)))
	pix := make([]byte, w*h*channels)
	for i := range pix {
		if pix[i] = byte(rng.IntN(256)); (i/channels/7)%3 == 0 {
			pix[i] = byte(255 * (i % 2))
		}
	}
	return pix
}

func tileOf(t testing.TB, w, h int, o jpegenc.Options) microtome.Tile {
	t.Helper()
	enc, err := jpegenc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	channels, color := 3, microtome.ColorYCbCr
	switch o.Color {
	case jpegenc.RGB:
		color = microtome.ColorRGB
	case jpegenc.Gray:
		channels, color = 1, microtome.ColorGray
	}
	data, err := enc.Encode(nil, edges(w, h, channels), w, h, w*channels)
	if err != nil {
		t.Fatal(err)
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: color, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: channels, Bits: 8, FillOrder: 1, Predictor: 1}
}

func decode(t testing.TB, tile microtome.Tile, part image.Rectangle, denom int) []byte {
	t.Helper()
	f, err := sof.Check(tile)
	if err != nil {
		t.Fatal(err)
	}
	dst := bytes.Repeat([]byte{0xA5}, part.Dx()*part.Dy()*tile.Samples)
	if err := turbojpeg.Decode(dst, part.Dx()*tile.Samples, tile, f, part, tile.Samples, denom); err != nil {
		t.Fatalf("%v: %v", part, err)
	}
	return dst
}

func layouts() map[string]jpegenc.Options {
	all := map[string]jpegenc.Options{"gray": {Color: jpegenc.Gray}, "rgb": {Color: jpegenc.RGB}}
	for name, s := range map[string]jpegenc.Sampling{"444": jpegenc.S444, "422": jpegenc.S422, "420": jpegenc.S420, "440": jpegenc.S440, "411": jpegenc.S411} {
		all[name] = jpegenc.Options{Sampling: s}
	}
	all["420 restarts"] = jpegenc.Options{Sampling: jpegenc.S420, Restart: 3}
	return all
}

// TestCropEqualsTheWhole: the pixels of a crop are those of the whole decode,
// bit for bit, for every subsampling and wherever the crop lies.
func TestCropEqualsTheWhole(t *testing.T) {
	for name, o := range layouts() {
		for _, size := range []image.Point{{240, 240}, {100, 52}, {131, 77}, {33, 200}, {8, 8}, {17, 3}} {
			t.Run(fmt.Sprintf("%s %v", name, size), func(t *testing.T) {
				tile := tileOf(t, size.X, size.Y, o)
				bounds := image.Rectangle{Max: size}
				whole := decode(t, tile, bounds, 1)
				for _, part := range parts(size) {
					if !bytes.Equal(decode(t, tile, part, 1), cut(whole, size.X, tile.Samples, part)) {
						t.Fatalf("%v differs from the whole", part)
					}
				}
			})
		}
	}
}

// parts are crops at and around every kind of border, and at random.
func parts(size image.Point) []image.Rectangle {
	rng := rand.New(rand.NewPCG(2, uint64(size.X)))
	bounds := image.Rectangle{Max: size}
	var out []image.Rectangle
	for _, c := range []int{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 120, 128} {
		for _, n := range []int{1, 8, 33} {
			out = append(out, image.Rect(c, 0, c+n, size.Y), image.Rect(0, c, size.X, c+n), image.Rect(c, c, c+n, c+n),
				image.Rect(c, size.Y-n, c+n, size.Y), image.Rect(size.X-n, c, size.X, c+n))
		}
	}
	for range 100 {
		x, y := rng.IntN(size.X), rng.IntN(size.Y)
		out = append(out, image.Rect(x, y, x+1+rng.IntN(size.X-x), y+1+rng.IntN(size.Y-y)))
	}
	kept := out[:0]
	for _, r := range out {
		if r = r.Intersect(bounds); !r.Empty() {
			kept = append(kept, r)
		}
	}
	return kept
}

func cut(pix []byte, width, channels int, part image.Rectangle) []byte {
	var out []byte
	for y := part.Min.Y; y < part.Max.Y; y++ {
		out = append(out, pix[(y*width+part.Min.X)*channels:(y*width+part.Max.X)*channels]...)
	}
	return out
}
