package decode

import "github.com/microtome/microtome"

// encodeNPY writes NumPy's format 1.0: an array of uint8 in C order, of shape
// (h, w, channels).
func encodeNPY(pix []byte, stride, w, h, channels int) []byte {
	head := microtome.AppendNPYHeader(nil, microtome.Uint8, h, w, channels)
	out := append(make([]byte, 0, len(head)+w*h*channels), head...)
	return appendRows(out, pix, stride, w*channels, h)
}
