// Package stdjpeg decodes and encodes JPEG by Go's image/jpeg, for builds
// without cgo: its pixels are not libjpeg-turbo's.
package stdjpeg

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
)

// Name says what decodes, and that it isn't exact.
const Name = "Go image/jpeg (not exact)"

// Decode writes part of a tile's stream into dst, rows of stride bytes, as
// channels samples a pixel. The tile's Color decides over the stream's markers.
func Decode(dst []byte, stride int, t microtome.Tile, f sof.Frame, part image.Rectangle, channels int) error {
	data := t.Data
	if f.Components == 3 {
		var err error
		if data, err = plain(data, t.Color == microtome.ColorRGB); err != nil {
			return err
		}
	}
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("JPEG: %v: %w", err, microtome.ErrCorrupt)
	}
	if m.Bounds() != image.Rect(0, 0, t.Width, t.StreamHeight) {
		return fmt.Errorf("JPEG decodes to %v: %w", m.Bounds(), microtome.ErrCorrupt)
	}
	return write(dst, stride, m, part, channels)
}

// plain rebuilds a stream's head so that Go's decoder can't guess: an APP14 that
// names the transform, no other APP14, and component ids 1, 2, 3 (Go takes ids
// R, G, B for RGB).
func plain(data []byte, rgb bool) ([]byte, error) {
	transform := byte(1)
	if rgb {
		transform = 0
	}
	out := make([]byte, 0, len(data)+16)
	out = append(out, 0xFF, 0xD8, 0xFF, 0xEE, 0, 14)
	out = append(out, "Adobe"...)
	out = append(out, 0, 100, 0, 0, 0, 0, transform)
	return sof.Rewrite(out, data)
}

func write(dst []byte, stride int, m image.Image, part image.Rectangle, channels int) error {
	switch m := m.(type) {
	case *image.Gray:
		writeGray(dst, stride, m, part, channels)
	case *image.YCbCr:
		for y := part.Min.Y; y < part.Max.Y; y++ {
			row := dst[(y-part.Min.Y)*stride:]
			for x := part.Min.X; x < part.Max.X; x++ {
				c := m.YCbCrAt(x, y)
				o := 3 * (x - part.Min.X)
				row[o], row[o+1], row[o+2] = color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
			}
		}
	case *image.RGBA:
		for y := part.Min.Y; y < part.Max.Y; y++ {
			row, from := dst[(y-part.Min.Y)*stride:], m.Pix[m.PixOffset(part.Min.X, y):]
			for x := range part.Dx() {
				copy(row[3*x:3*x+3], from[4*x:4*x+3])
			}
		}
	default:
		return &microtome.Unsupported{Tag: "SOF", Value: fmt.Sprintf("as %T", m)}
	}
	return nil
}

func writeGray(dst []byte, stride int, m *image.Gray, part image.Rectangle, channels int) {
	for y := part.Min.Y; y < part.Max.Y; y++ {
		row, from := dst[(y-part.Min.Y)*stride:], m.Pix[m.PixOffset(part.Min.X, y):]
		for x := range part.Dx() {
			for c := range channels {
				row[channels*x+c] = from[x]
			}
		}
	}
}

// Encode makes a baseline stream, 4:2:0. An ICC profile goes into APP2 segments.
func Encode(pix []byte, stride, w, h, channels, quality int, icc []byte) ([]byte, error) {
	var m image.Image
	r := image.Rect(0, 0, w, h)
	if channels == 1 {
		m = &image.Gray{Pix: pix, Stride: stride, Rect: r}
	} else {
		rgba := image.NewRGBA(r)
		for y := range h {
			for x := range w {
				o := rgba.PixOffset(x, y)
				copy(rgba.Pix[o:o+3], pix[y*stride+x*channels:])
				rgba.Pix[o+3] = 255
			}
		}
		m = rgba
	}
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, m, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	if len(icc) == 0 {
		return buf.Bytes(), nil
	}
	return withICC(buf.Bytes(), icc)
}

// withICC puts a profile behind SOI, in pieces (ICC.1 annex B.4).
func withICC(stream, icc []byte) ([]byte, error) {
	const room = 65533 - 14
	n := (len(icc) + room - 1) / room
	if n > 255 {
		return nil, fmt.Errorf("ICC profile of %d bytes: %w", len(icc), microtome.ErrLimit)
	}
	out := append(make([]byte, 0, len(stream)+len(icc)+18*n), stream[:2]...)
	for i := range n {
		piece := icc[i*room : min(len(icc), (i+1)*room)]
		size := len(piece) + 16
		out = append(out, 0xFF, 0xE2, byte(size>>8), byte(size))
		out = append(out, "ICC_PROFILE\x00"...)
		out = append(out, byte(i+1), byte(n))
		out = append(out, piece...)
	}
	return append(out, stream[2:]...), nil
}
