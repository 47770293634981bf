package tilecodec

// LZW as TIFF 6.0 §13 has it: codes from 9 to 12 bits, most significant bit
// first, the width raised when the writer's next code needs it (one early for the
// reader, whose table lags by one), ClearCode 256 and EndOfInformation 257.
const (
	lzwClear = 256
	lzwEOI   = 257
	lzwFirst = 258
	lzwFull  = 4094 // the table is cleared before this code is given out
)

// lzwBits packs codes.
type lzwBits struct {
	dst []byte
	acc uint32
	n   uint
}

func (b *lzwBits) put(code uint32, width uint) {
	b.acc = b.acc<<width | code
	for b.n += width; b.n >= 8; {
		b.n -= 8
		b.dst = append(b.dst, byte(b.acc>>b.n))
	}
}

// LZW appends the compressed src to dst.
func LZW(dst, src []byte) []byte {
	b := lzwBits{dst: dst}
	table := map[uint32]uint32{} // prefix<<8 | byte
	next, width := uint32(lzwFirst), uint(9)
	b.put(lzwClear, width)
	if len(src) > 0 {
		prefix := uint32(src[0])
		for _, c := range src[1:] {
			if code, ok := table[prefix<<8|uint32(c)]; ok {
				prefix = code
				continue
			}
			b.put(prefix, width)
			table[prefix<<8|uint32(c)] = next
			next++
			if next == 1<<width && width < 12 {
				width++
			}
			if next >= lzwFull {
				b.put(lzwClear, width)
				clear(table)
				next, width = lzwFirst, 9
			}
			prefix = uint32(c)
		}
		b.put(prefix, width)
		if next++; next == 1<<width && width < 12 {
			width++
		}
	}
	b.put(lzwEOI, width)
	if b.n > 0 {
		b.put(0, 8-b.n)
	}
	return b.dst
}
