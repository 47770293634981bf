//go:build cgo && linux

package tiles_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
)

// A device's arrays of floats are the CPU's pixels through the same table.
func TestDeviceFloatsEqualTheCPUs(t *testing.T) { eachVendor(t, testDeviceFloatsEqualTheCPUs) }

func testDeviceFloatsEqualTheCPUs(t *testing.T, vendor string) {
	s := openedSlide(t, "floats", synth.Spec{Codec: synth.JPEG, Width: 700, Height: 530, Levels: 2})
	cpu := decode.NewCPU(decode.Options{})
	defer cpu.Close()
	d := fakeDevice(t, vendor, cpu, nil)
	o := tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 8 << 20, Background: microtome.RGB{R: 255, G: 250, B: 240}}
	plain := newReader(t, o)
	o.Devices = devices(d)
	r := newReader(t, o)
	rng := rand.New(rand.NewPCG(3, 4))
	for typ := microtome.Float16; typ <= microtome.Float32; typ++ {
		lut, err := microtome.NewLUT(typ, [3]float64{0.485, 0.456, 0.406}, [3]float64{0.229, 0.224, 0.225})
		if err != nil {
			t.Fatal(err)
		}
		for layout := range microtome.NCHW + 1 {
			batch := randomBatch(s, rng, 7)
			want, ch, err := plain.Patches(t.Context(), batch, tiles.PatchOptions{Channels: 3})
			if err != nil {
				t.Fatal(err)
			}
			a, results, _, err := r.DevicePatches(t.Context(), batch, tiles.DeviceOptions{
				PatchOptions: tiles.PatchOptions{Channels: 3}, Layout: layout, Type: typ, LUT: lut, Host: true})
			if err != nil {
				t.Fatal(err)
			}
			each := int(a.Bytes()) / len(batch)
			for i := range batch {
				if want[i].Err != nil || results[i].Err != nil {
					t.Fatal(want[i].Err, results[i].Err)
				}
				if got := a.Host()[i*each:][:each]; !bytes.Equal(got, throughLUT(rowsOf(want[i].Pixels), ch, layout, typ, lut)) {
					t.Errorf("%s, layout %d, item %d: other floats than the CPU's", typ, layout, i)
				}
				want[i].Pixels.Release()
			}
			a.Release()
		}
	}
	r.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// throughLUT is what a table makes of rows of samples.
func throughLUT(pix []byte, ch int, layout microtome.Layout, typ microtome.DataType, lut *microtome.LUT) (out []byte) {
	for i := range pix {
		c, at := i%ch, i
		if layout == microtome.NCHW {
			c = i / (len(pix) / ch)
			at = i%(len(pix)/ch)*ch + c
		}
		word := binary.LittleEndian.AppendUint32(nil, lut[c][pix[at]])
		out = append(out, word[:typ.Bytes()]...)
	}
	return out
}
