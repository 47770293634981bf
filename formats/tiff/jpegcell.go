package tiff

import (
	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
)

// completeJPEG makes a JPEG tile complete: the directory's tables in front
// (TIFF TechNote 2; the tile's own come later and win), colour markers that say
// what PhotometricInterpretation says, its size, an EOI.
//
// The tile lies in buf behind room for what goes in front, so that the common
// case copies nothing.
func completeJPEG(c *cells, t *microtome.Tile, buf []byte) error {
	color := jpegstream.AsIs
	switch c.Color {
	case microtome.ColorRGB:
		color = jpegstream.TransformNone
	case microtome.ColorYCbCr:
		color = jpegstream.TransformYCbCr
	}
	stream, h, err := c.tables.Complete(buf, color)
	if err != nil {
		return err
	}
	switch {
	case h.NumComponents == 4:
		return unsupported("JPEG components", "4")
	case h.NumComponents != t.Samples && h.NumComponents != 1:
		return corrupt("JPEG of %d components for %d samples", h.NumComponents, t.Samples)
	}
	t.Data = stream
	return sizeJPEG(c, t, h)
}

// sizeJPEG settles a stream whose size is not the tile's. Size 0 becomes the
// tile's; another one stands as the stored size as long as it covers what is
// visible, and is no larger than a tile (or for the last strip a whole strip).
func sizeJPEG(c *cells, t *microtome.Tile, h jpegstream.Header) error {
	w, ht := h.Width, h.Height
	if w == 0 {
		w = t.Width
	}
	if ht == 0 {
		ht = t.StreamHeight
	}
	if w != h.Width || ht != h.Height {
		if err := jpegstream.PatchSize(t.Data, w, ht); err != nil {
			return err
		}
	}
	most := max(t.StreamHeight, c.StripRows)
	if w > t.Width || ht > most || w < t.VisibleWidth || ht < t.FirstRow+t.VisibleHeight {
		return corrupt("JPEG of %dx%d for a tile of %dx%d", w, ht, t.Width, t.StreamHeight)
	}
	if c.Tiled {
		t.Height = ht
	}
	t.Width, t.StreamHeight = w, ht
	return nil
}
