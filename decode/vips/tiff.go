package vips

import "encoding/binary"

// TIFF wraps a request's pixels as an uncompressed TIFF: libvips reads no bare
// pixels from memory, and this costs it a copy only.
func TIFF(r *Request) []byte {
	type entry struct {
		tag, kind uint16
		count     uint32
		value     uint32
	}
	const short, long, undefined = 3, 4, 7
	photometric := uint32(2)
	if r.Channels == 1 {
		photometric = 1
	}
	entries := []entry{
		{256, long, 1, uint32(r.Width)}, {257, long, 1, uint32(r.Height)},
		{258, short, uint32(r.Channels), 8}, // patched below when it doesn't fit
		{259, short, 1, 1}, {262, short, 1, photometric},
		{273, long, 1, 0}, {277, short, 1, uint32(r.Channels)},
		{278, long, 1, uint32(r.Height)}, {279, long, 1, uint32(len(r.Pix))},
	}
	if r.Channels == 4 {
		entries = append(entries, entry{338, short, 1, 2}) // alpha, not premultiplied
	}
	if len(r.ICC) > 0 {
		entries = append(entries, entry{34675, undefined, uint32(len(r.ICC)), 0})
	}
	bitsAt := 8 + 2 + 12*len(entries) + 4
	iccAt := bitsAt + 8
	pixAt := (iccAt + len(r.ICC) + 15) / 16 * 16
	le := binary.LittleEndian
	out := make([]byte, pixAt, pixAt+len(r.Pix))
	copy(out, "II*\x00\x08\x00\x00\x00")
	le.PutUint16(out[8:], uint16(len(entries)))
	for i, e := range entries {
		switch {
		case e.tag == 258 && e.count > 2:
			e.value = uint32(bitsAt)
		case e.tag == 273:
			e.value = uint32(pixAt)
		case e.tag == 34675:
			e.value = uint32(iccAt)
		}
		p := out[10+12*i:]
		le.PutUint16(p, e.tag)
		le.PutUint16(p[2:], e.kind)
		le.PutUint32(p[4:], e.count)
		le.PutUint32(p[8:], e.value)
	}
	for i := range 4 {
		le.PutUint16(out[bitsAt+2*i:], 8)
	}
	copy(out[iccAt:], r.ICC)
	return append(out, r.Pix...)
}
