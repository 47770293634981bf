package decode

import (
	"encoding/binary"
	"fmt"
)

// encodeNPY writes NumPy's format 1.0: an array of uint8 in C order, of shape
// (h, w, channels). The header is padded so that the data begins at a multiple
// of 64 bytes.
func encodeNPY(pix []byte, stride, w, h, channels int) []byte {
	dict := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, %d), }", h, w, channels)
	const prefix = 10
	n := (prefix+len(dict)+1+63)/64*64 - prefix
	out := make([]byte, 0, prefix+n+w*h*channels)
	out = append(out, "\x93NUMPY\x01\x00"...)
	out = binary.LittleEndian.AppendUint16(out, uint16(n))
	out = append(out, dict...)
	for len(out) < prefix+n-1 {
		out = append(out, ' ')
	}
	out = append(out, '\n')
	return appendRows(out, pix, stride, w*channels, h)
}
