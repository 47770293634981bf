package tiles

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
)

// EncodePixels makes a picture of pixels, which stay the caller's. quality is
// that of JPEG and WebP, 1 to 100; 0 means the Reader's own.
func (r *Reader) EncodePixels(ctx context.Context, px microtome.Pixels, f microtome.Format, quality int) ([]byte, error) {
	o := PixelOptions{Format: f, Quality: quality}
	b, err := r.o.Encoder.Encode(ctx, px, microtome.EncodeOptions{Format: f, Quality: r.quality(&o)})
	if err == nil {
		r.count.encodes.Add(1)
	}
	return b, err
}

// encode fills in an answer's body. Pixels are not taken over.
func (r *Reader) encode(ctx context.Context, s microtome.Slide, px microtome.Pixels, a *Answer, o *PixelOptions) (*Answer, error) {
	a.Format = o.Format
	e := microtome.EncodeOptions{Format: o.Format, Quality: r.quality(o)}
	var err error
	switch o.ICC {
	case "":
	case "embed":
		if e.ICC, err = s.ICCProfile(ctx, ""); err != nil {
			return nil, fmt.Errorf("ICC profile: %w", err)
		}
	default:
		return nil, fmt.Errorf("icc=%q: %w", o.ICC, microtome.ErrMalformed)
	}
	a.Body, err = r.o.Encoder.Encode(ctx, px, e)
	if err != nil {
		return nil, err
	}
	r.count.encodes.Add(1)
	return a, nil
}
