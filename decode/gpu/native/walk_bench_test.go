//go:build cgo && linux

package native

import (
	"os"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/sof"
)

// BenchmarkWalk is what the check of a stream costs.
func BenchmarkWalk(b *testing.B) {
	for _, name := range []string{"rgb-444-240", "ycc-420-256"} {
		b.Run(name, func(b *testing.B) {
			data, err := os.ReadFile("../proof/" + name + ".jpg")
			if err != nil {
				b.Fatal(err)
			}
			f, err := sof.Read(data)
			if err != nil {
				b.Fatal(err)
			}
			t := microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: microtome.ColorYCbCr, Width: f.Width, Height: f.Height, StreamHeight: f.Height}
			var s canon.Stream
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := canon.Parse(&t, &s); err != nil {
					b.Fatal(err)
				}
				if n := Walk(&s); n != 0 {
					b.Fatal(WalkReasons[n])
				}
			}
		})
	}
}
