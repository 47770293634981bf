package decode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/synth/jpegenc"
)

func encode(t *testing.T, p microtome.Pixels, o microtome.EncodeOptions) []byte {
	t.Helper()
	d := decode.NewCPU(decode.Options{})
	defer d.Close()
	b, err := d.Encode(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPNGIsExact(t *testing.T) {
	for _, channels := range []int{1, 3, 4} {
		p := noise(33, 21, channels)
		icc := bytes.Repeat([]byte("profile"), 500)
		b := encode(t, p, microtome.EncodeOptions{Format: microtome.FormatPNG, ICC: icc})
		m, err := png.Decode(bytes.NewReader(b))
		if err != nil || m.Bounds() != image.Rect(0, 0, 33, 21) {
			t.Fatal(channels, err)
		}
		at := (7*33 + 5) * channels
		switch m := m.(type) {
		case *image.Gray:
			if m.Pix[7*m.Stride+5] != p.Pix[at] {
				t.Error("grey differs")
			}
		case *image.NRGBA:
			if !bytes.Equal(m.Pix, p.Pix) {
				t.Error("RGBA differs")
			}
		case *image.RGBA:
			if channels != 3 || !bytes.Equal(m.Pix[7*m.Stride+20:][:3], p.Pix[at:at+3]) {
				t.Error("RGB differs")
			}
		default:
			t.Errorf("%T", m)
		}
		if bytes.Index(b, []byte("iCCP")) != 8+25+4 {
			t.Error("iCCP does not follow IHDR")
		}
	}
}

func TestRawAndNPY(t *testing.T) {
	p := noise(7, 5, 3)
	if b := encode(t, p, microtome.EncodeOptions{Format: microtome.FormatRaw}); !bytes.Equal(b, p.Pix) {
		t.Error("raw differs")
	}
	b := encode(t, p, microtome.EncodeOptions{Format: microtome.FormatNPY})
	head, data := b[:len(b)-len(p.Pix)], b[len(b)-len(p.Pix):]
	if !bytes.Equal(data, p.Pix) || len(head)%64 != 0 || !bytes.HasPrefix(head, []byte("\x93NUMPY\x01\x00")) ||
		int(head[8])+int(head[9])<<8 != len(head)-10 || head[len(head)-1] != '\n' || !strings.Contains(string(head), "'shape': (5, 7, 3)") {
		t.Errorf("%q", head)
	}
}

// TestICCInSeveralSegments (H6): a profile of a megabyte leaves a valid picture.
func TestICCInSeveralSegments(t *testing.T) {
	icc := make([]byte, 1<<20)
	for i := range icc {
		icc[i] = byte(i * 7)
	}
	b := encode(t, noise(16, 16, 3), microtome.EncodeOptions{ICC: icc})
	if _, err := jpeg.Decode(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for i := 2; b[i+1] != 0xDA; {
		n := int(b[i+2])<<8 | int(b[i+3])
		if b[i+1] == 0xE2 {
			got = append(got, b[i+4+14:i+2+n]...)
		}
		i += 2 + n
	}
	if !bytes.Equal(got, icc) {
		t.Errorf("%d bytes of profile, want %d", len(got), len(icc))
	}
}

func TestEncodeRefuses(t *testing.T) {
	d := decode.NewCPU(decode.Options{})
	for want, o := range map[error]microtome.EncodeOptions{
		microtome.ErrUnsupported: {Format: microtome.FormatWebP},
		microtome.ErrMalformed:   {Quality: 101},
	} {
		if _, err := d.Encode(context.Background(), noise(4, 4, 3), o); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", o, err, want)
		}
	}
	if _, err := d.Encode(context.Background(), noise(4, 4, 3), microtome.EncodeOptions{Format: 77}); !errors.Is(err, microtome.ErrMalformed) {
		t.Error(err)
	}
	if n := d.Stats().Unsupported["format webp: microtome-vips-worker is not there"]; n != 1 {
		t.Errorf("%+v", d.Stats())
	}
}

func jpegTile(t *testing.T, w, h int, o jpegenc.Options, color microtome.Color) microtome.Tile {
	t.Helper()
	enc, err := jpegenc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	n := o.Color.Components()
	data, err := enc.Encode(nil, noise(w, h, n).Pix, w, h, w*n)
	if err != nil {
		t.Fatal(err)
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: color, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: n, Bits: 8, Predictor: 1, FillOrder: 1}
}

// TestCropJPEG: whole MCUs of a losslessly cropped tile keep their pixels, its
// colour is plain to a decoder that knows no TIFF, and its size is the visible.
func TestCropJPEG(t *testing.T) {
	d := decode.NewCPU(decode.Options{})
	if !d.Exact() {
		_, err := d.CropJPEG(context.Background(), jpegTile(t, 64, 64, jpegenc.Options{}, microtome.ColorYCbCr))
		if !errors.Is(err, microtome.ErrUnsupported) {
			t.Error(err)
		}
		return
	}
	for name, tile := range map[string]microtome.Tile{
		"444":        jpegTile(t, 64, 64, jpegenc.Options{}, microtome.ColorYCbCr),
		"420":        jpegTile(t, 64, 64, jpegenc.Options{Sampling: jpegenc.S420}, microtome.ColorYCbCr),
		"420 as RGB": jpegTile(t, 64, 64, jpegenc.Options{Sampling: jpegenc.S420, IDs: []byte("RGB")}, microtome.ColorYCbCr),
		"RGB":        jpegTile(t, 64, 64, jpegenc.Options{Color: jpegenc.RGB}, microtome.ColorRGB),
		"gray":       jpegTile(t, 64, 64, jpegenc.Options{Color: jpegenc.Gray}, microtome.ColorGray),
		"restarts":   jpegTile(t, 64, 64, jpegenc.Options{Restart: 2}, microtome.ColorYCbCr),
	} {
		t.Run(name, func(t *testing.T) { checkCrop(t, d, tile) })
	}
	raw := microtome.Tile{Codec: microtome.CodecNone, Width: 4, Height: 4, VisibleWidth: 4, VisibleHeight: 4, StreamHeight: 4}
	if _, err := d.CropJPEG(context.Background(), raw); !errors.Is(err, microtome.ErrUnsupported) {
		t.Error(err)
	}
}

func checkCrop(t *testing.T, d *decode.CPU, tile microtome.Tile) {
	tile.VisibleWidth, tile.VisibleHeight = 37, 50
	b, err := d.CropJPEG(context.Background(), tile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil || m.Bounds() != image.Rect(0, 0, 37, 50) {
		t.Fatal(m, err)
	}
	// Two MCUs wide and three high are whole; the chroma filter reads one more
	// sample at their border.
	tile.VisibleWidth, tile.VisibleHeight = 64, 64
	cropped := tile
	cropped.Data, cropped.Width, cropped.Height, cropped.StreamHeight = b, 37, 50, 50
	cropped.VisibleWidth, cropped.VisibleHeight = 37, 50
	inner := image.Rect(0, 0, 31, 47)
	r := d.DecodeBatch(context.Background(), []microtome.Job{{Tile: tile, Crop: inner}, {Tile: cropped, Crop: inner}})
	if r[0].Err != nil || r[1].Err != nil {
		t.Fatal(r[0].Err, r[1].Err)
	}
	whole, _, _ := r[0].Pixels.Host()
	part, _, _ := r[1].Pixels.Host()
	if !bytes.Equal(whole, part) {
		t.Error("inner pixels differ")
	}
	if diff := colourDistance(m, whole, tile.Samples); diff > 24 {
		t.Errorf("a decoder without TIFF shows colours %d off", diff)
	}
}

// colourDistance is the mean difference at inner pixels.
func colourDistance(m image.Image, pix []byte, channels int) int {
	sum, n := 0, 0
	for y := 0; y < 40; y += 3 {
		for x := 0; x < 30; x += 3 {
			r, g, b, _ := m.At(x, y).RGBA()
			for c, v := range [3]uint32{r, g, b} {
				diff := int(v>>8) - int(pix[(y*31+x)*channels+c%channels])
				sum, n = sum+max(diff, -diff), n+1
			}
		}
	}
	return sum / n
}

func TestTileOverTheLimit(t *testing.T) {
	d := decode.NewCPU(decode.Options{MaxPixels: 64 * 63})
	tile := jpegTile(t, 64, 64, jpegenc.Options{}, microtome.ColorYCbCr)
	if r := d.DecodeBatch(context.Background(), []microtome.Job{{Tile: tile}})[0]; !errors.Is(r.Err, microtome.ErrLimit) {
		t.Error(r.Err)
	}
	if s := d.Stats(); s.Limited != 1 {
		t.Errorf("%+v", s)
	}
}

func ExampleCPU_DecodeBatch() {
	d := decode.NewCPU(decode.Options{})
	defer d.Close()
	tile := microtome.Tile{Data: []byte{10, 20, 30, 40, 50, 60}, Codec: microtome.CodecNone, Color: microtome.ColorRGB,
		Width: 2, Height: 1, VisibleWidth: 2, VisibleHeight: 1, StreamHeight: 1, Samples: 3, Bits: 8}
	r := d.DecodeBatch(context.Background(), []microtome.Job{{Tile: tile, Crop: image.Rect(1, 0, 2, 1)}})
	pix, _, _ := r[0].Pixels.Host()
	fmt.Println(pix)
	r[0].Pixels.Release()
	// Output: [40 50 60]
}
