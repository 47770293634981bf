package decodetest

import (
	"bytes"
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/jpegenc"
)

// scene is a smooth picture with some noise: what JPEG keeps well.
func scene(w, h, channels int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	pix := make([]byte, w*h*channels)
	for i := range pix {
		x, y, c := i/channels%w, i/channels/w, i%channels
		pix[i] = byte(max(0, min(255, 40+60*c+(x+y)/2%100+int(seed)%50+rng.IntN(9))))
	}
	return pix
}

// stream encodes a scene.
func stream(t testing.TB, w, h int, o jpegenc.Options, seed uint64) []byte {
	t.Helper()
	enc, err := jpegenc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	n := o.Color.Components()
	data, err := enc.Encode(nil, scene(w, h, n, seed), w, h, w*n)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tile wraps a stream of w x h that shows all of itself.
func tile(data []byte, w, h int, c microtome.Color) microtome.Tile {
	samples := 3
	if c == microtome.ColorGray || c == microtome.ColorGrayWhite {
		samples = 1
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: c, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: samples, Bits: 8, Predictor: 1, FillOrder: 1}
}

func good(t testing.TB, seed uint64) microtome.Job {
	t.Helper()
	return microtome.Job{Tile: tile(stream(t, 64, 48, jpegenc.Options{Color: jpegenc.RGB}, seed), 64, 48, microtome.ColorRGB)}
}

// near fails when pixels are further than tol from want on the mean.
func near(t testing.TB, p microtome.Pixels, want []byte, tol int) {
	t.Helper()
	got := rows(t, p)
	if len(got) != len(want) {
		t.Fatalf("%d bytes, want %d", len(got), len(want))
	}
	sum := 0
	for i := range got {
		sum += max(int(got[i])-int(want[i]), int(want[i])-int(got[i]))
	}
	if sum > tol*len(got) {
		t.Errorf("mean difference %d.%02d, at most %d", sum/len(got), sum*100/len(got)%100, tol)
	}
}

// rows is a copy of pixels without padding.
func rows(t testing.TB, p microtome.Pixels) []byte {
	t.Helper()
	pix, stride, ok := p.Host()
	if !ok {
		t.Fatal("pixels are not in host memory")
	}
	n := p.Width() * p.Channels()
	out := make([]byte, 0, n*p.Height())
	for y := range p.Height() {
		out = append(out, pix[y*stride:y*stride+n]...)
	}
	return out
}

// toRGB is what three components are when they are Y, Cb, Cr.
func toRGB(pix []byte) []byte {
	out := make([]byte, len(pix))
	for i := 0; i < len(pix); i += 3 {
		out[i], out[i+1], out[i+2] = color.YCbCrToRGB(pix[i], pix[i+1], pix[i+2])
	}
	return out
}

func cut(pix []byte, width, channels int, r image.Rectangle) []byte {
	var b bytes.Buffer
	for y := r.Min.Y; y < r.Max.Y; y++ {
		b.Write(pix[(y*width+r.Min.X)*channels : (y*width+r.Max.X)*channels])
	}
	return b.Bytes()
}

// withSOF turns a stream's frame marker into another, and its precision.
func withSOF(data []byte, marker, precision byte) []byte {
	out := bytes.Clone(data)
	i := bytes.Index(out, []byte{0xFF, 0xC0, 0x00})
	out[i+1], out[i+4] = marker, precision
	return out
}
