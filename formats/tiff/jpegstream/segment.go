// Package jpegstream reads and rewrites the markers of JPEG streams without
// decoding them: tables, colour, size.
package jpegstream

import (
	"bytes"
	"fmt"

	"github.com/microtome/microtome"
)

// Markers (T.81 table B.1), without their 0xFF.
const (
	markerTEM   = 0x01
	markerSOF0  = 0xC0
	markerSOF1  = 0xC1
	markerSOF2  = 0xC2
	markerDHT   = 0xC4
	markerJPG   = 0xC8
	markerDAC   = 0xCC
	markerSOF15 = 0xCF
	markerRST0  = 0xD0
	markerRST7  = 0xD7
	markerSOI   = 0xD8
	markerEOI   = 0xD9
	markerSOS   = 0xDA
	markerDQT   = 0xDB
	markerDRI   = 0xDD
	markerAPP0  = 0xE0
	markerAPP14 = 0xEE
)

// segment is one marker segment (T.81 B.1.1.4): p[start:end] with its marker,
// body without marker and length.
type segment struct {
	marker     byte
	start, end int
	body       []byte
}

// alone says that no length follows a marker.
func alone(marker byte) bool {
	return marker == markerTEM || marker >= markerRST0 && marker <= markerEOI
}

// isSOF says that a marker starts a frame; C4, C8 and CC lie between but don't.
func isSOF(marker byte) bool {
	return marker >= markerSOF0 && marker <= markerSOF15 && marker != markerDHT && marker != markerJPG && marker != markerDAC
}

// readSegment reads the segment at p[at:], fill bytes before it skipped.
func readSegment(p []byte, at int) (segment, error) {
	s := segment{start: at}
	if at >= len(p) || p[at] != 0xFF {
		return s, corrupt("no marker at byte %d of %d", at, len(p))
	}
	for at < len(p) && p[at] == 0xFF {
		at++
	}
	if at >= len(p) || p[at] == 0 {
		return s, corrupt("no marker at byte %d of %d", at, len(p))
	}
	s.marker, s.end = p[at], at+1
	if alone(s.marker) {
		return s, nil
	}
	if len(p)-s.end < 2 {
		return s, corrupt("marker FF%02X at the end", s.marker)
	}
	n := int(p[s.end])<<8 | int(p[s.end+1])
	if n < 2 || n > len(p)-s.end {
		return s, corrupt("marker FF%02X of length %d, %d bytes are left", s.marker, n, len(p)-s.end)
	}
	s.body = p[s.end+2 : s.end+n]
	s.end += n
	return s, nil
}

// scanEnd is where the entropy-coded data that starts at p[at:] ends: at the
// first marker that is no restart and no stuffed byte (T.81 B.1.1.5), or at the
// end of p.
func scanEnd(p []byte, at int) int {
	for at < len(p) {
		i := bytes.IndexByte(p[at:], 0xFF)
		if i < 0 || at+i+1 >= len(p) {
			return len(p)
		}
		at += i
		switch m := p[at+1]; {
		case m == 0xFF:
			at++
		case m == 0 || m >= markerRST0 && m <= markerRST7:
			at += 2
		default:
			return at
		}
	}
	return len(p)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("JPEG: "+format+": %w", append(args, microtome.ErrCorrupt)...)
}
