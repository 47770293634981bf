package microtome

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// npyTypes are NumPy's names of the sample types, little endian. It has none for
// bfloat16, and reads it as two bytes each that mean nothing.
var npyTypes = [...]string{"|u1", "<f2", "|V2", "<f4"}

// AppendNPYHeader appends NumPy's format 1.0 up to the first byte of an array of
// t in C order. What is appended is padded to a multiple of 64 bytes.
func AppendNPYHeader(b []byte, t DataType, shape ...int) []byte {
	var dims strings.Builder
	for i, n := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		dims.WriteString(strconv.Itoa(n))
	}
	dict := "{'descr': '" + npyTypes[t] + "', 'fortran_order': False, 'shape': (" + dims.String() + "), }"
	const prefix = 10
	n := (prefix+len(dict)+1+63)/64*64 - prefix
	b = append(b, "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(n))
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", n-len(dict)-1)...)
	return append(b, '\n')
}
