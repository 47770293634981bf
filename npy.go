package microtome

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// AppendNPYHeader appends NumPy's format 1.0 up to the first byte of an array of
// uint8 in C order. What is appended is padded to a multiple of 64 bytes.
func AppendNPYHeader(b []byte, shape ...int) []byte {
	var dims strings.Builder
	for i, n := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		dims.WriteString(strconv.Itoa(n))
	}
	dict := "{'descr': '|u1', 'fortran_order': False, 'shape': (" + dims.String() + "), }"
	const prefix = 10
	n := (prefix+len(dict)+1+63)/64*64 - prefix
	b = append(b, "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(n))
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", n-len(dict)-1)...)
	return append(b, '\n')
}
