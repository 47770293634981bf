//go:build cgo

package turbojpeg_test

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
	"github.com/microtome/microtome/decode/turbojpeg"
)

// both decodes a part by our entropy decoder and by libjpeg-turbo's own and says
// how they differ: they must give the same pixels or refuse the same streams.
// Two exceptions: of bytes between the data and its end, libjpeg reads up to 8
// ahead and forgets them; and a code that no table has it takes for a zero,
// without a word where it is in a hurry.
func both(tile microtome.Tile, part image.Rectangle, denom int) error {
	f, err := sof.Check(tile)
	if err != nil {
		return nil
	}
	stride := part.Dx() * tile.Samples
	got, want := make([]byte, stride*part.Dy()), make([]byte, stride*part.Dy())
	ours := turbojpeg.Decode(got, stride, tile, f, part, tile.Samples, denom)
	plain := turbojpeg.Plain(want, stride, tile, f, part, tile.Samples, denom)
	switch {
	case (ours == nil) != (plain == nil):
		for _, err := range []error{ours, plain} {
			if err != nil && strings.Contains(err.Error(), "extraneous bytes") {
				return nil
			}
		}
		if ours != nil && strings.Contains(ours.Error(), "bad Huffman code") {
			return nil
		}
		return fmt.Errorf("ours says %v, libjpeg %v", ours, plain)
	case ours == nil && !bytes.Equal(got, want):
		return fmt.Errorf("%v at 1/%d: other pixels than libjpeg's", part, denom)
	}
	return nil
}

// TestEntropyDecoder: every quality has other codes, the best of them the longest.
func TestEntropyDecoder(t *testing.T) {
	for name, o := range layouts() {
		for _, o.Quality = range []int{1, 30, 75, 95, 100} {
			tile := tileOf(t, 131, 77, o)
			for _, denom := range []int{1, 2, 4, 8} {
				w, h := (131+denom-1)/denom, (77+denom-1)/denom
				if err := both(tile, image.Rect(0, 0, w, h), denom); err != nil {
					t.Errorf("%s, quality %d: %v", name, o.Quality, err)
				}
			}
			for _, part := range []image.Rectangle{image.Rect(0, 0, 9, 9), image.Rect(40, 50, 60, 77), image.Rect(110, 3, 131, 40), image.Rect(64, 16, 65, 17)} {
				if err := both(tile, part, 1); err != nil {
					t.Errorf("%s, quality %d: %v", name, o.Quality, err)
				}
			}
		}
	}
}

// TestBrokenScans: one wrong bit or a lost end, anywhere.
func TestBrokenScans(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	refused, taken := 0, 0
	for name, o := range layouts() {
		good := tileOf(t, 96, 64, o)
		for range 300 {
			tile := good
			tile.Data = bytes.Clone(good.Data)
			if rng.IntN(4) == 0 {
				tile.Data = tile.Data[:len(tile.Data)-rng.IntN(len(tile.Data)/4)]
			} else {
				at := len(tile.Data)/4 + rng.IntN(3*len(tile.Data)/4)
				tile.Data[at] ^= 1 << rng.IntN(8)
			}
			for _, part := range []image.Rectangle{image.Rect(0, 0, 96, 64), image.Rect(17, 20, 40, 50)} {
				if err := both(tile, part, 1); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if f, err := sof.Check(tile); err == nil {
				dst := make([]byte, 96*64*tile.Samples)
				if turbojpeg.Decode(dst, 96*tile.Samples, tile, f, image.Rect(0, 0, 96, 64), tile.Samples, 1) == nil {
					taken++
				} else {
					refused++
				}
			}
		}
	}
	if refused < 100 || taken < 100 {
		t.Errorf("%d streams refused and %d taken: too one-sided to tell", refused, taken)
	}
}

// FuzzEntropy holds our entropy decoder to libjpeg-turbo's on any stream.
func FuzzEntropy(f *testing.F) {
	for _, o := range layouts() {
		for _, o.Quality = range []int{20, 95} {
			tile := tileOf(f, 40, 24, o)
			f.Add(tile.Data, byte(tile.Color), byte(3), byte(5), byte(20), byte(10), byte(0))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, color, x, y, w, h, reduce byte) {
		head, err := sof.Read(data)
		if err != nil || head.Width > 256 || head.Height > 256 || head.Width == 0 || head.Height == 0 {
			return
		}
		tile := microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: microtome.ColorYCbCr, Width: head.Width, Height: head.Height,
			VisibleWidth: head.Width, VisibleHeight: head.Height, StreamHeight: head.Height, Samples: 3, Bits: 8}
		if color%3 == 1 {
			tile.Color = microtome.ColorRGB
		}
		if head.Components == 1 {
			tile.Color, tile.Samples = microtome.ColorGray, 1
		}
		denom := 1 << (reduce % 4)
		all := image.Rect(0, 0, (head.Width+denom-1)/denom, (head.Height+denom-1)/denom)
		part := all
		if denom == 1 {
			part = image.Rect(int(x), int(y), int(x)+int(w), int(y)+int(h)).Intersect(all)
		}
		if part.Empty() {
			return
		}
		if err := both(tile, part, denom); err != nil {
			t.Error(err)
		}
	})
}
