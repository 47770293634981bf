//go:build cgo

package decode_test

import (
	"context"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/turbojpeg/cloop"
	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/scene"
)

// tissue is a piece of a synthetic slide.
func tissue(size int) []byte {
	s, err := scene.New(scene.Options{Width: 4096, Height: 4096})
	if err != nil {
		panic(err)
	}
	pix := make([]byte, size*size*3)
	s.Paint(pix, 2048, 2048, size, size, 1)
	return pix
}

// slideTile is a tile as the benchmark slides store them.
func slideTile(b *testing.B, size int, o jpegenc.Options, color microtome.Color) microtome.Tile {
	b.Helper()
	enc, err := jpegenc.New(o)
	if err != nil {
		b.Fatal(err)
	}
	pix := tissue(size)
	data, err := enc.Encode(nil, pix, size, size, size*3)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(pix)))
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: color, Width: size, Height: size,
		VisibleWidth: size, VisibleHeight: size, StreamHeight: size, Samples: 3, Bits: 8, Predictor: 1, FillOrder: 1}
}

func kinds() map[string]func(*testing.B) microtome.Tile {
	return map[string]func(*testing.B) microtome.Tile{
		"svs": func(b *testing.B) microtome.Tile {
			return slideTile(b, 240, jpegenc.Options{Color: jpegenc.RGB, Quality: 30}, microtome.ColorRGB)
		},
		"tiff": func(b *testing.B) microtome.Tile {
			return slideTile(b, 256, jpegenc.Options{Sampling: jpegenc.S420}, microtome.ColorYCbCr)
		},
	}
}

// BenchmarkDecode: DecodeBatch of one job is to reach 0.95 of BenchmarkCLoop.
func BenchmarkDecode(b *testing.B) {
	for name, make := range kinds() {
		b.Run(name, func(b *testing.B) {
			d := decode.NewCPU(decode.Options{Workers: 1})
			jobs := []microtome.Job{{Tile: make(b)}}
			for b.Loop() {
				d.DecodeBatch(context.Background(), jobs)[0].Pixels.Release()
			}
		})
	}
}

// BenchmarkDecodeBatch decodes 64 tiles a call, on all cores.
func BenchmarkDecodeBatch(b *testing.B) {
	for name, make := range kinds() {
		b.Run(name, func(b *testing.B) {
			d := decode.NewCPU(decode.Options{})
			jobs := []microtome.Job{{Tile: make(b)}}
			for len(jobs) < 64 {
				jobs = append(jobs, jobs[0])
			}
			b.ResetTimer()
			for n := 0; n < b.N; n += len(jobs) {
				for _, r := range d.DecodeBatch(context.Background(), jobs) {
					r.Pixels.Release()
				}
			}
		})
	}
}

// BenchmarkCLoop is the limit.
func BenchmarkCLoop(b *testing.B) {
	for name, make := range kinds() {
		b.Run(name, func(b *testing.B) {
			tile := make(b)
			dst := append([]byte(nil), tissue(tile.Width)...)
			b.ResetTimer()
			cloop.Run(tile.Data, tile.Color == microtome.ColorRGB, dst, b.N)
		})
	}
}

func BenchmarkEncodeJPEG(b *testing.B) {
	d := decode.NewCPU(decode.Options{})
	p := microtome.NewHostPixels(tissue(256), 256, 256, 3, nil)
	for b.Loop() {
		if _, err := d.Encode(context.Background(), p, microtome.EncodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
