// Package raw decodes the tiles that hold plain samples: stored as they are, or
// by Deflate, LZW, PackBits or zstd, with TIFF's predictor, bit order and
// palette.
package raw

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/image/tiff/lzw"

	"github.com/microtome/microtome"
)

// Decoder decodes plain tiles; it keeps the state of finished decodes for the
// next ones. The zero value is ready, and safe for many goroutines.
type Decoder struct {
	zlibs, zstds sync.Pool
}

// maxWindow bounds the memory of a zstd stream: its header may ask for more
// than its tile could use.
const maxWindow = 64 << 20

// Decode writes part of a tile, in pixels of its stream, into dst: rows of
// stride bytes, channels samples a pixel.
//
// Rows are read up to the last one wanted and no byte more, so a stream never
// grows beyond its tile, and a short one (a partial last tile that a writer cut
// off below the image) is whole when the wanted rows are: otherwise it is
// ErrCorrupt.
func (d *Decoder) Decode(dst []byte, stride int, t *microtome.Tile, part image.Rectangle, channels int) error {
	if err := check(t, channels); err != nil {
		return err
	}
	data := t.Data
	if t.FillOrder == 2 {
		data = reversed(data)
	}
	rows, done, err := d.open(t, data)
	if err != nil {
		return err
	}
	defer done()
	n := t.Width * t.Samples
	if err := rows.skip(int64(part.Min.Y) * int64(n)); err != nil {
		return short(t, part.Min.Y, err)
	}
	buf := make([]byte, n)
	for y := part.Min.Y; y < part.Max.Y; y++ {
		row, err := rows.next(buf)
		if err != nil {
			return short(t, y, err)
		}
		if differenced(t) {
			undo(row, t.Samples)
		}
		write(dst[(y-part.Min.Y)*stride:], row[part.Min.X*t.Samples:part.Max.X*t.Samples], t, channels)
	}
	return nil
}

// check refuses what would not be read right.
func check(t *microtome.Tile, channels int) error {
	switch {
	case t.Color == microtome.ColorYCbCr:
		return &microtome.Unsupported{Tag: "PhotometricInterpretation", Value: "6 (YCbCr) without JPEG"}
	case t.Predictor > 2:
		return &microtome.Unsupported{Tag: "Predictor", Value: fmt.Sprint(t.Predictor)}
	case t.Color == microtome.ColorPalette && (t.Palette == nil || t.Samples != 1):
		return fmt.Errorf("palette tile of %d samples without its palette: %w", t.Samples, microtome.ErrCorrupt)
	case t.Color != microtome.ColorPalette && t.Samples < channels || t.Samples > 4:
		return &microtome.Unsupported{Tag: "SamplesPerPixel", Value: fmt.Sprint(t.Samples)}
	}
	return nil
}

func short(t *microtome.Tile, row int, err error) error {
	var u *microtome.Unsupported
	if errors.As(err, &u) {
		return err
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fmt.Errorf("zstd window: %w", microtome.ErrLimit)
	}
	return fmt.Errorf("row %d of %d: %v: %w", row, t.StreamHeight, err, microtome.ErrCorrupt)
}

// rows gives a stream's bytes in order: straight from memory, or by a reader.
type rows struct {
	data []byte
	r    io.Reader
}

func (s *rows) skip(n int64) error {
	if s.r != nil {
		_, err := io.CopyN(io.Discard, s.r, n)
		return err
	}
	if n > int64(len(s.data)) {
		return io.ErrUnexpectedEOF
	}
	s.data = s.data[n:]
	return nil
}

// next fills buf with the next row.
func (s *rows) next(buf []byte) ([]byte, error) {
	if s.r != nil {
		_, err := io.ReadFull(s.r, buf)
		return buf, err
	}
	if len(s.data) < len(buf) {
		return nil, io.ErrUnexpectedEOF
	}
	copy(buf, s.data)
	s.data = s.data[len(buf):]
	return buf, nil
}

// open starts a tile's decompression; done ends it.
func (d *Decoder) open(t *microtome.Tile, data []byte) (s rows, done func(), err error) {
	switch t.Codec {
	case microtome.CodecNone:
		return rows{data: data}, func() {}, nil
	case microtome.CodecPackBits:
		return rows{r: &packBits{data: data}}, func() {}, nil
	case microtome.CodecDeflate:
		return d.openZlib(data)
	case microtome.CodecZstd:
		return d.openZstd(data)
	case microtome.CodecLZW:
		// TIFF 6.0 §13 puts codes into bytes from the high bit down. A stream
		// of the older order begins with its Clear code, 256, low bits first.
		if len(data) >= 2 && data[0] == 0 && data[1]&1 == 1 {
			return s, nil, &microtome.Unsupported{Tag: "Compression", Value: "5 (LZW of the old bit order)"}
		}
		r := lzw.NewReader(bytes.NewReader(data), lzw.MSB, 8)
		return rows{r: r}, func() { _ = r.Close() }, nil
	}
	return s, nil, &microtome.Unsupported{Tag: "Compression", Value: fmt.Sprintf("codec %d", t.Codec)}
}

func (d *Decoder) openZlib(data []byte) (rows, func(), error) {
	in := bytes.NewReader(data)
	r, ok := d.zlibs.Get().(io.ReadCloser)
	var err error
	if ok {
		err = r.(zlib.Resetter).Reset(in, nil)
	} else {
		r, err = zlib.NewReader(in)
	}
	if err != nil {
		return rows{}, nil, fmt.Errorf("Deflate: %v: %w", err, microtome.ErrCorrupt)
	}
	return rows{r: r}, func() { d.zlibs.Put(r) }, nil
}

func (d *Decoder) openZstd(data []byte) (rows, func(), error) {
	r, ok := d.zstds.Get().(*zstd.Decoder)
	var err error
	if ok {
		err = r.Reset(bytes.NewReader(data))
	} else {
		r, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	if err != nil {
		return rows{}, nil, fmt.Errorf("zstd: %v: %w", err, microtome.ErrCorrupt)
	}
	return rows{r: r}, func() {
		if r.Reset(nil) == nil {
			d.zstds.Put(r)
		}
	}, nil
}

// differenced says whether rows hold differences. Only these codecs have a
// predictor: libtiff does not look at the tag beside the others.
func differenced(t *microtome.Tile) bool {
	switch t.Codec {
	case microtome.CodecDeflate, microtome.CodecLZW, microtome.CodecZstd:
		return t.Predictor == 2
	}
	return false
}

// undo reverses horizontal differencing (TIFF 6.0 §14).
func undo(row []byte, samples int) {
	for i := samples; i < len(row); i++ {
		row[i] += row[i-samples]
	}
}

// write turns a row of the tile's samples into channels a pixel.
func write(dst, row []byte, t *microtome.Tile, channels int) {
	switch {
	case t.Color == microtome.ColorPalette:
		for x, v := range row {
			c := t.Palette[v]
			dst[3*x], dst[3*x+1], dst[3*x+2] = c.R, c.G, c.B
		}
	case t.Samples == channels:
		copy(dst, row)
	default:
		for i, o := 0, 0; i+t.Samples <= len(row); i, o = i+t.Samples, o+channels {
			copy(dst[o:o+channels], row[i:])
		}
	}
	if t.Color == microtome.ColorGrayWhite {
		for i := range dst[:len(row)/t.Samples] {
			dst[i] = ^dst[i]
		}
	}
}

func reversed(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = bits.Reverse8(b)
	}
	return out
}
