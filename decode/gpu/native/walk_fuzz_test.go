//go:build cgo && linux

package native

import (
	"bytes"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/sof"
	"github.com/microtome/microtome/decode/turbojpeg"
	"github.com/microtome/microtome/synth/jpegenc"
)

// walkSeeds are small streams of each sampling, with short codes and long ones.
func walkSeeds(tb testing.TB) [][]byte {
	tb.Helper()
	var out [][]byte
	for _, o := range []jpegenc.Options{
		{Sampling: jpegenc.S444, Quality: 20}, {Sampling: jpegenc.S422, Quality: 75}, {Sampling: jpegenc.S420, Quality: 95},
		{Sampling: jpegenc.S440, Quality: 50}, {Sampling: jpegenc.S420, Restart: 3}, {Color: jpegenc.RGB, Quality: 100},
		{Color: jpegenc.Gray, Restart: 1}, {Color: jpegenc.Gray, Quality: 10, JFIF: true},
		{Sampling: jpegenc.S420, Quality: 30, Adobe: true, Transform: 1},
	} {
		enc, err := jpegenc.New(o)
		if err != nil {
			tb.Fatal(err)
		}
		n := o.Color.Components()
		pix := make([]byte, 64*64*n)
		for i := range pix {
			pix[i] = byte((i/n%64)*3 + (i/n/64)*5 + i%n*70 + i*i%13 + 255*(i/n>>3&1))
		}
		data, err := enc.Encode(nil, pix, 64, 64, 64*n)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// walked says whether a device would get the data; its error is why the CPU then
// would refuse them.
func walked(data []byte) (taken bool, err error) {
	f, err := sof.Read(data)
	if err != nil {
		return false, nil
	}
	t := microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: microtome.ColorYCbCr, Width: f.Width, Height: f.Height,
		VisibleWidth: f.Width, VisibleHeight: f.Height, StreamHeight: f.Height, Samples: 3, Bits: 8}
	if f.Components == 1 {
		t.Color, t.Samples = microtome.ColorGray, 1
	}
	var s canon.Stream
	if canon.Parse(&t, &s) != nil || Walk(&s) != 0 {
		return false, nil
	}
	if f, err = sof.Check(t); err != nil {
		return true, err
	}
	stride := t.Width * t.Samples
	dst := make([]byte, stride*t.Height)
	return true, turbojpeg.Decode(dst, stride, t, f, image.Rect(0, 0, t.Width, t.Height), t.Samples, 1)
}

// FuzzWalk: what the walk finds whole, the CPU decodes without a warning.
func FuzzWalk(f *testing.F) {
	for _, data := range walkSeeds(f) {
		if taken, err := walked(data); !taken || err != nil {
			f.Fatalf("a seed is refused: %v, %v", taken, err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := walked(data); err != nil {
			t.Errorf("the walk took what the CPU refuses: %v", err)
		}
	})
}

// Broken scans of good headers, more of them than a fuzzer finds: one or two wrong
// bits, a byte lost, doubled or of another value.
func TestWalkOfBrokenScans(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	taken, refused := 0, 0
	for _, good := range walkSeeds(t) {
		sos := bytes.Index(good, []byte{0xFF, 0xDA})
		scan := sos + 2 + int(good[sos+3])
		for range 1500 {
			data := bytes.Clone(good)
			at := scan + rng.IntN(len(data)-2-scan)
			switch rng.IntN(5) {
			case 0:
				data[at] = byte(rng.IntN(256))
			case 1:
				data = append(data[:at], data[at+1:]...)
			case 2:
				data = append(data[:at+1], good[at:]...)
			case 3:
				data[at] ^= 1 << rng.IntN(8)
				data[scan+rng.IntN(len(data)-2-scan)] ^= 1 << rng.IntN(8)
			default:
				data[at] ^= 1 << rng.IntN(8)
			}
			ok, err := walked(data)
			if err != nil {
				t.Fatalf("the walk took what the CPU refuses: %v\n% x", err, data)
			}
			if ok {
				taken++
			} else {
				refused++
			}
		}
	}
	if taken < 300 || refused < 300 {
		t.Errorf("%d taken, %d refused: too one-sided to tell", taken, refused)
	}
}
