package decode

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
)

// Encode makes a picture of host pixels. A fourth sample is alpha: PNG, WebP,
// raw and npy keep it, JPEG leaves it out.
func (d *CPU) Encode(ctx context.Context, p microtome.Pixels, o microtome.EncodeOptions) ([]byte, error) {
	pix, stride, ok := p.Host()
	if !ok || p.Type() != microtome.Uint8 {
		return nil, fmt.Errorf("pixels are not 8 bits in host memory: %w", microtome.ErrMalformed)
	}
	if o.Quality == 0 {
		o.Quality = 80
	}
	if o.Quality < 1 || o.Quality > 100 {
		return nil, fmt.Errorf("quality %d: %w", o.Quality, microtome.ErrMalformed)
	}
	w, h, ch := p.Width(), p.Height(), p.Channels()
	if ch != 1 && ch != 3 && ch != 4 {
		return nil, fmt.Errorf("%d channels: %w", ch, microtome.ErrMalformed)
	}
	b, err := d.encode(ctx, pix, stride, w, h, ch, o)
	if err != nil {
		return nil, d.counters.fail(err)
	}
	d.counters.encoded.Add(1)
	return b, nil
}

func (d *CPU) encode(ctx context.Context, pix []byte, stride, w, h, ch int, o microtome.EncodeOptions) ([]byte, error) {
	switch o.Format {
	case microtome.FormatRaw:
		return appendRows(make([]byte, 0, w*h*ch), pix, stride, w*ch, h), nil
	case microtome.FormatNPY:
		return encodeNPY(pix, stride, w, h, ch), nil
	case microtome.FormatWebP:
		if d.webp == nil {
			return nil, &microtome.Unsupported{Tag: "format", Value: "webp: microtome-vips-worker is not there"}
		}
		if stride != w*ch {
			pix = appendRows(make([]byte, 0, w*h*ch), pix, stride, w*ch, h)
		}
		return d.webp.EncodeWebP(ctx, pix[:w*h*ch], w, h, ch, o.Quality, o.ICC)
	}
	// An answer is a viewer's picture: it takes a slot like one.
	if err := d.gate.acquire(ctx, microtome.PriorityViewer); err != nil {
		return nil, err
	}
	defer d.gate.release()
	switch o.Format {
	case microtome.FormatJPEG:
		return encodeJPEG(pix, stride, w, h, ch, o)
	case microtome.FormatPNG:
		return encodePNG(pix, stride, w, h, ch, o.ICC)
	}
	return nil, fmt.Errorf("format %d: %w", o.Format, microtome.ErrMalformed)
}

// CropJPEG cuts a stored JPEG tile to its visible part without decoding it.
func (d *CPU) CropJPEG(ctx context.Context, t microtome.Tile) ([]byte, error) {
	b, err := d.cropJPEG(ctx, &t)
	if err != nil {
		return nil, d.counters.fail(err)
	}
	d.counters.cropped.Add(1)
	return b, nil
}

func (d *CPU) cropJPEG(ctx context.Context, t *microtome.Tile) ([]byte, error) {
	if err := d.checkTile(t); err != nil {
		return nil, err
	}
	if t.Codec != microtome.CodecJPEG || t.FirstRow != 0 {
		return nil, &microtome.Unsupported{Tag: "lossless crop", Value: fmt.Sprintf("of codec %d at row %d", t.Codec, t.FirstRow)}
	}
	if err := d.gate.acquire(ctx, microtome.PriorityViewer); err != nil {
		return nil, err
	}
	defer d.gate.release()
	return cropJPEG(t)
}

// appendRows appends h rows of n bytes, without what lies between them.
func appendRows(out, pix []byte, stride, n, h int) []byte {
	if stride == n {
		return append(out, pix[:n*h]...)
	}
	for y := range h {
		out = append(out, pix[y*stride:y*stride+n]...)
	}
	return out
}
