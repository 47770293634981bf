package tiles

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
)

// encode fills in an answer's body. Pixels are not taken over.
func (r *Reader) encode(ctx context.Context, s microtome.Slide, px microtome.Pixels, a *Answer, o *PixelOptions) (*Answer, error) {
	a.Format = o.Format
	var err error
	switch o.Format {
	case microtome.FormatRaw, microtome.FormatNPY:
		a.Body, err = rows(px, o.Format)
	default:
		e := microtome.EncodeOptions{Format: o.Format, Quality: r.quality(o)}
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
	}
	if err != nil {
		return nil, err
	}
	r.count.encodes.Add(1)
	return a, nil
}

// rows copies packed rows, after NumPy's header when that is asked for.
func rows(px microtome.Pixels, f microtome.Format) ([]byte, error) {
	pix, stride, ok := px.Host()
	if !ok {
		return nil, errNotHost
	}
	w, h, ch := px.Width(), px.Height(), px.Channels()
	var head string
	if f == microtome.FormatNPY {
		head = npyHeader(h, w, ch)
	}
	body := make([]byte, 0, len(head)+h*w*ch)
	body = append(body, head...)
	for y := range h {
		body = append(body, pix[y*stride:][:w*ch]...)
	}
	return body, nil
}

// npyHeader is NumPy's format 1.0 for uint8 of shape (h, w, ch), (h, w) when
// grey: magic, version, length, a literal padded to a multiple of 64 bytes.
func npyHeader(h, w, ch int) string {
	shape := fmt.Sprintf("(%d, %d, %d)", h, w, ch)
	if ch == 1 {
		shape = fmt.Sprintf("(%d, %d)", h, w)
	}
	text := "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }"
	for (10+len(text)+1)%64 != 0 {
		text += " "
	}
	text += "\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
}
