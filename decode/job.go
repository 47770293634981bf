package decode

import (
	"fmt"
	"image"

	"github.com/microtome/microtome"
)

// plan is what a job comes to: which part of which stream, as how many channels.
type plan struct {
	// part is the rectangle wanted, in pixels of the whole stream after the
	// reduction.
	part     image.Rectangle
	channels int
	reduce   int  // halvings
	whole    bool // part is all that the tile shows
}

// plan checks a job against its tile and the limits. It allocates nothing.
func (d *CPU) plan(j *microtome.Job) (plan, error) {
	t := &j.Tile
	if err := d.checkTile(t); err != nil {
		return plan{}, err
	}
	visible := image.Rect(0, 0, t.VisibleWidth, t.VisibleHeight)
	p := plan{part: j.Crop, channels: channelsOf(t.Color), reduce: j.Reduce}
	switch {
	case j.Reduce < 0 || j.Reduce > 3:
		return p, fmt.Errorf("reduce %d: %w", j.Reduce, microtome.ErrMalformed)
	case j.Reduce > 0 && !j.Crop.Empty():
		return p, fmt.Errorf("reduce with a crop: %w", microtome.ErrMalformed)
	case j.Reduce > 0 && !d.CanReduce(t.Codec):
		return p, fmt.Errorf("codec %d can't be reduced: %w", t.Codec, microtome.ErrMalformed)
	case j.Crop.Empty():
		p.part, p.whole = visible, true
	case !j.Crop.In(visible):
		return p, fmt.Errorf("crop %v of a tile that shows %v: %w", j.Crop, visible, microtome.ErrMalformed)
	default:
		p.whole = j.Crop == visible
	}
	if j.Reduce > 0 && t.FirstRow != 0 {
		return p, fmt.Errorf("reduce of a band: %w", microtome.ErrMalformed)
	}
	p.part = p.part.Add(image.Pt(0, t.FirstRow))
	p.part.Max.X = halve(p.part.Max.X, j.Reduce)
	p.part.Max.Y = halve(p.part.Max.Y, j.Reduce)
	return p, nil
}

// checkTile refuses what no decoder should see.
func (d *CPU) checkTile(t *microtome.Tile) error {
	// Bands are cut out of strips of any height; only JPEG 2000 decodes the
	// whole stream.
	rows := t.Height
	if t.Codec == microtome.CodecJPEG2000 {
		rows = max(rows, t.StreamHeight)
	}
	switch {
	case t.Width <= 0 || t.Height <= 0 || t.StreamHeight <= 0 || t.FirstRow < 0:
		return fmt.Errorf("a tile of %dx%d: %w", t.Width, t.Height, microtome.ErrCorrupt)
	case int64(t.Width) > d.maxPixels/int64(rows):
		return fmt.Errorf("a tile of %dx%d pixels, at most %d: %w", t.Width, rows, d.maxPixels, microtome.ErrLimit)
	case t.VisibleWidth <= 0 || t.VisibleHeight <= 0 || t.VisibleWidth > t.Width || t.VisibleHeight > t.Height:
		return fmt.Errorf("a tile of %dx%d shows %dx%d: %w", t.Width, t.Height, t.VisibleWidth, t.VisibleHeight, microtome.ErrMalformed)
	case t.VisibleHeight > t.StreamHeight-t.FirstRow:
		return fmt.Errorf("rows %d to %d of a stream of %d: %w", t.FirstRow, t.FirstRow+t.VisibleHeight, t.StreamHeight, microtome.ErrMalformed)
	case t.Bits != 0 && t.Bits != 8:
		return &microtome.Unsupported{Tag: "BitsPerSample", Value: fmt.Sprint(t.Bits)}
	}
	return nil
}

// decode fills the job's own pixels, or pooled ones, and returns them.
func (d *CPU) decode(j *microtome.Job, p plan) (microtome.Pixels, error) {
	w, h := p.part.Dx(), p.part.Dy()
	if j.Dst == nil {
		out := d.pixels(w, h, p.channels)
		if err := d.into(out.Pix, w*p.channels, &j.Tile, p); err != nil {
			out.Release()
			return nil, err
		}
		return out, nil
	}
	pix, stride, ok := j.Dst.Host()
	if !ok || j.Dst.Width() != w || j.Dst.Height() != h || j.Dst.Channels() != p.channels || j.Dst.Type() != microtome.Uint8 {
		return nil, fmt.Errorf("destination is not host memory for %dx%dx%d: %w", w, h, p.channels, microtome.ErrMalformed)
	}
	if err := d.into(pix, stride, &j.Tile, p); err != nil {
		return nil, err
	}
	j.Dst.Retain()
	return j.Dst, nil
}

// uneven keeps pixels off the alignment at which libjpeg-turbo's colour
// conversion writes past the caches: they are read at once by whoever asked.
const uneven = 16

// pixels lends memory for w x h pixels.
func (d *CPU) pixels(w, h, channels int) *microtome.HostPixels {
	b := d.buffers.Take(w*h*channels + uneven)
	return microtome.NewHostPixels(b[uneven:], w, h, channels, func([]byte) { d.buffers.Give(b) })
}

// into decodes by the tile's codec. It writes every byte of the part, or fails.
func (d *CPU) into(dst []byte, stride int, t *microtome.Tile, p plan) error {
	switch t.Codec {
	case microtome.CodecJPEG:
		if err := decodeJPEG(dst, stride, t, p); err != nil {
			return err
		}
		if t.Color == microtome.ColorGrayWhite {
			invert(dst, stride, p.part.Dx(), p.part.Dy())
		}
		return nil
	case microtome.CodecJPEG2000:
		return d.decodeJPEG2000(dst, stride, t, p)
	}
	return d.raw.Decode(dst, stride, t, p.part, p.channels)
}

func channelsOf(c microtome.Color) int {
	if c == microtome.ColorGray || c == microtome.ColorGrayWhite {
		return 1
	}
	return 3
}

func invert(pix []byte, stride, w, h int) {
	for y := range h {
		row := pix[y*stride : y*stride+w]
		for x := range row {
			row[x] = ^row[x]
		}
	}
}

// halve divides by 2^times, rounding up.
func halve(n, times int) int { return (n + 1<<times - 1) >> times }
