//go:build cgo && linux

package gpu

import (
	"encoding/binary"
	"testing"

	"github.com/microtome/microtome"
)

// The kernels' floats are those of the host's table, bit for bit: all samples, as
// every type, in both layouts.
func TestMakeFloats(t *testing.T) { eachVendor(t, testMakeFloats) }

func testMakeFloats(t *testing.T, v *fakeVendor) {
	e := opened(t, testOptions(t, v, ""))
	const w, h = 3, 2
	b := microtome.DeviceBatch{Width: w, Height: h, Channels: 3, Patches: make([]microtome.DevicePatch, 256)}
	for x := range b.Patches {
		b.Patches[x].Fill = microtome.RGB{R: uint8(x), G: uint8(x + 85), B: uint8(x + 170)}
	}
	for name, m := range map[string][2][3]float64{
		"none":      {{}, {1, 1, 1}},
		"ImageNet":  {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
		"half":      {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
		"subnormal": {{0.1, 100 / 255.0, 0}, {3e4, 5e6, 1e8}},
		"large":     {{1, 0, -1}, {1.6e-5, 1.6e-5, 3.2e-5}},
	} {
		for typ := microtome.Float16; typ <= microtome.Float32; typ++ {
			lut, err := microtome.NewLUT(typ, m[0], m[1])
			if err != nil {
				t.Fatal(err)
			}
			b.Type, b.LUT = typ, lut
			for b.Layout = range microtome.NCHW + 1 {
				got := made(t, e, b)
				for i := range 256 * w * h * 3 {
					x, c := i/(w*h*3), i%3
					if b.Layout == microtome.NCHW {
						c = i / (w * h) % 3
					}
					var word [4]byte
					copy(word[:], got[i*typ.Bytes():][:typ.Bytes()])
					if want := lut[c][uint8(x+85*c)]; binary.LittleEndian.Uint32(word[:]) != want {
						t.Fatalf("%s, %s, layout %d: sample %d of channel %d is %x, want %#x", name, typ, b.Layout, uint8(x+85*c), c, word, want)
					}
				}
			}
		}
	}
}
