package decode_test

import (
	"bytes"
	"context"
	"image/jpeg"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
)

// noise is a picture that no codec can compress to nothing, but smooth enough
// that lossy ones stay near.
func noise(w, h, channels int) *microtome.HostPixels {
	pix := make([]byte, w*h*channels)
	for i := range pix {
		x, y, c := i/channels%w, i/channels/w, i%channels
		pix[i] = byte(x*3 + y*5 + c*70 + (x*y)%11)
	}
	return microtome.NewHostPixels(pix, w, h, channels, nil)
}

func TestEncodedJPEGDecodesAgain(t *testing.T) {
	d := decode.NewCPU(decode.Options{})
	defer d.Close()
	for _, channels := range []int{1, 3, 4} {
		b, err := d.Encode(context.Background(), noise(70, 50, channels), microtome.EncodeOptions{ICC: make([]byte, 100000)})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(b)); err != nil || c.Width != 70 || c.Height != 50 {
			t.Fatalf("%d channels: %+v, %v", channels, c, err)
		}
		tile := microtome.Tile{Data: b, Codec: microtome.CodecJPEG, Color: microtome.ColorYCbCr, Width: 70, Height: 50,
			VisibleWidth: 70, VisibleHeight: 50, StreamHeight: 50, Samples: 3, Bits: 8}
		if channels == 1 {
			tile.Color = microtome.ColorGray
		}
		r := d.DecodeBatch(context.Background(), []microtome.Job{{Tile: tile}})[0]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if r.Pixels.Width() != 70 || r.Pixels.Height() != 50 {
			t.Fatalf("%dx%d", r.Pixels.Width(), r.Pixels.Height())
		}
		r.Pixels.Release()
	}
	if s := d.Stats(); s.Full != 3 || s.Encoded != 3 || s.Running != 0 {
		t.Errorf("%+v", s)
	}
}
