package openjpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/microtome/microtome"
)

// The limits of what is decoded: OpenJPEG can't be interrupted, and a few bytes
// of header make it work for seconds.
const (
	maxPixels     = 1 << 24
	maxTiles      = 1 << 10
	maxPrecincts  = 1 << 16
	maxCodeBlocks = 1 << 20
	maxLayers     = 256
	maxTileParts  = 1 << 12
)

// header is what SIZ and COD say (T.800 A.5.1, A.6.1).
type header struct {
	width, height int
	tileW, tileH  int
	components    int
	subX, subY    [4]int
	levels        int
	layers        int
	mct           bool
	blockW        int // exponents
	blockH        int
	end           int    // where the last tile-part ends
	precincts     []byte // one a resolution, PPx in the low half; nil: 2^15
}

// codestream finds the codestream: data itself, or the jp2c box of a JP2 file
// (T.800 I.5.4).
func codestream(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("\x00\x00\x00\x0cjP  ")) {
		return data, nil
	}
	for rest := data; len(rest) >= 8; {
		n, body := uint64(binary.BigEndian.Uint32(rest)), uint64(8)
		switch {
		case n == 1 && len(rest) >= 16:
			n, body = binary.BigEndian.Uint64(rest[8:]), 16
		case n == 0:
			n = uint64(len(rest))
		}
		if n < body || n > uint64(len(rest)) {
			break
		}
		if string(rest[4:8]) == "jp2c" {
			return rest[body:n], nil
		}
		rest = rest[n:]
	}
	return nil, fmt.Errorf("JP2 without a codestream: %w", microtome.ErrCorrupt)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("JPEG 2000: "+format+": %w", append(args, microtome.ErrCorrupt)...)
}

func unsupported(format string, args ...any) error {
	return &microtome.Unsupported{Tag: "JPEG 2000", Value: fmt.Sprintf(format, args...)}
}

func tooMuch(format string, args ...any) error {
	return fmt.Errorf("JPEG 2000: "+format+": %w", append(args, microtome.ErrLimit)...)
}

// parse reads the main header and walks the tile-parts: their lengths must lie
// within the data, so that a truncated stream is told before it is decoded. The
// end marker itself may be missing.
func parse(data []byte) (header, error) {
	var h header
	if len(data) < 4 || data[0] != 0xFF || data[1] != 0x4F {
		return h, corrupt("no SOC")
	}
	seen := 0
	for i := 2; ; {
		if i+4 > len(data) || data[i] != 0xFF {
			return h, corrupt("the header ends at byte %d", i)
		}
		m, n := data[i+1], int(binary.BigEndian.Uint16(data[i+2:]))
		if m == 0x90 { // SOT
			if seen != 3 {
				return h, corrupt("no SIZ or no COD before the first tile")
			}
			var err error
			h.end, err = walk(data, i)
			return h, err
		}
		if n < 2 || i+2+n > len(data) {
			return h, corrupt("marker %#x of %d bytes", m, n)
		}
		seg := data[i+4 : i+2+n]
		var err error
		switch m {
		case 0x51:
			seen |= 1
			err = h.siz(seg)
		case 0x52:
			seen |= 2
			err = h.cod(seg)
		}
		if err != nil {
			return h, err
		}
		i += 2 + n
	}
}

func (h *header) siz(seg []byte) error {
	if len(seg) < 36 {
		return corrupt("SIZ of %d bytes", len(seg))
	}
	u := func(i int) uint64 { return uint64(binary.BigEndian.Uint32(seg[i:])) }
	x, y, tw, th := u(2), u(6), u(18), u(22)
	if u(10) != 0 || u(14) != 0 || u(26) != 0 || u(30) != 0 {
		return unsupported("image or tile offset")
	}
	if x == 0 || y == 0 || tw == 0 || th == 0 {
		return corrupt("a size of 0")
	}
	if x > maxPixels || y > maxPixels || x*y > maxPixels {
		return tooMuch("%dx%d pixels", x, y)
	}
	tw, th = min(tw, x), min(th, y)
	if n := ((x + tw - 1) / tw) * ((y + th - 1) / th); n > maxTiles {
		return tooMuch("%d tiles", n)
	}
	h.width, h.height, h.tileW, h.tileH = int(x), int(y), int(tw), int(th)
	h.components = int(binary.BigEndian.Uint16(seg[34:]))
	if len(seg) < 36+3*h.components {
		return corrupt("SIZ of %d components", h.components)
	}
	if h.components != 1 && h.components != 3 {
		return unsupported("%d components", h.components)
	}
	for c := range h.components {
		p := seg[36+3*c:]
		if p[0] != 7 {
			return unsupported("component of %d bits, signed %t", p[0]&0x7F+1, p[0]&0x80 != 0)
		}
		h.subX[c], h.subY[c] = int(p[1]), int(p[2])
		if p[1] < 1 || p[1] > 4 || p[2] < 1 || p[2] > 4 {
			return unsupported("sampling %dx%d", p[1], p[2])
		}
	}
	return nil
}

func (h *header) cod(seg []byte) error {
	if len(seg) < 10 || h.width == 0 {
		return corrupt("COD of %d bytes", len(seg))
	}
	h.layers = int(binary.BigEndian.Uint16(seg[2:]))
	h.mct, h.levels = seg[4] == 1, int(seg[5])
	h.blockW, h.blockH = int(seg[6]&15)+2, int(seg[7]&15)+2
	switch {
	case h.levels > 32:
		return corrupt("%d decompositions", h.levels)
	case h.blockW > 10 || h.blockH > 10 || h.blockW+h.blockH > 12:
		return corrupt("code blocks of 2^%d x 2^%d", h.blockW, h.blockH)
	case h.layers < 1 || h.layers > maxLayers:
		return tooMuch("%d layers", h.layers)
	}
	if seg[0]&1 != 0 {
		if len(seg) < 10+h.levels+1 {
			return corrupt("COD without its precincts")
		}
		h.precincts = seg[10 : 10+h.levels+1]
	}
	return h.work()
}

// work bounds how many precincts and code blocks a tile has.
func (h *header) work() error {
	precincts, blocks := 0, 0
	for r := 0; r <= h.levels; r++ {
		w, ht := ceilShift(h.tileW, h.levels-r), ceilShift(h.tileH, h.levels-r)
		px, py := 15, 15
		if h.precincts != nil {
			px, py = int(h.precincts[r]&15), int(h.precincts[r]>>4)
		}
		precincts += ceilShift(w, px) * ceilShift(ht, py)
		blocks += ceilShift(w, min(h.blockW, max(px-1, 0))) * ceilShift(ht, min(h.blockH, max(py-1, 0)))
	}
	tiles := ((h.width + h.tileW - 1) / h.tileW) * ((h.height + h.tileH - 1) / h.tileH)
	if precincts*tiles > maxPrecincts || blocks*tiles > maxCodeBlocks {
		return tooMuch("%d precincts, %d code blocks", precincts*tiles, blocks*tiles)
	}
	return nil
}

func ceilShift(n, by int) int {
	if by >= 31 {
		return 1
	}
	return (n + 1<<by - 1) >> by
}

// walk follows the tile-parts by their lengths (T.800 A.4.2) and returns where
// they end.
func walk(data []byte, i int) (int, error) {
	for parts := 0; ; parts++ {
		switch {
		case parts > 0 && (i+2 > len(data) || data[i] != 0xFF || data[i+1] != 0x90):
			return i, nil
		case parts >= maxTileParts:
			return i, tooMuch("%d tile-parts", parts)
		case i+12 > len(data):
			return i, corrupt("the stream ends in a tile-part's head")
		}
		n := uint64(binary.BigEndian.Uint32(data[i+6:]))
		if n == 0 { // up to EOC
			return max(i, len(data)-2), nil
		}
		if n < 14 || n > uint64(len(data)-i) {
			return i, corrupt("a tile-part of %d bytes, %d are there", n, len(data)-i)
		}
		i += int(n)
	}
}

// ended is the stream up to its last tile-part, with EOC behind it: a damaged or
// missing one takes no pixels away, but OpenJPEG warns of it as of lost data.
func (h header) ended(data []byte) []byte {
	if h.end+2 <= len(data) && data[h.end] == 0xFF && data[h.end+1] == 0xD9 {
		return data[:h.end+2]
	}
	return append(data[:h.end:h.end], 0xFF, 0xD9)
}
