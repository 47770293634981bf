// Package sof reads a JPEG stream's frame header, so that what can't be decoded
// is told by name before anything is allocated for it.
package sof

import (
	"fmt"

	"github.com/microtome/microtome"
)

// Frame is what a stream's first SOFn says (T.81 B.2.2).
type Frame struct {
	Marker        byte // 0xC0 to 0xCF
	Precision     int  // bits a sample
	Width, Height int
	Components    int
	H, V          [4]int // sampling factors of the first components
	IDs           [4]byte
	// Adobe is APP14's transform flag when the stream has one before its
	// frame, else -1.
	Adobe int
}

// MaxH and MaxV are the largest sampling factors: an MCU of an interleaved scan
// is 8*MaxH x 8*MaxV pixels.
func (f Frame) MaxH() int { return largest(f.H, f.Components) }

// MaxV is MaxH's vertical twin.
func (f Frame) MaxV() int { return largest(f.V, f.Components) }

func largest(v [4]int, n int) int {
	m := 1
	for i := 0; i < n && i < len(v); i++ {
		m = max(m, v[i])
	}
	return m
}

// Read walks the markers up to the first frame header.
func Read(data []byte) (Frame, error) {
	f := Frame{Adobe: -1}
	if len(data) < 4 || data[0] != 0xFF || data[1] != 0xD8 {
		return f, fmt.Errorf("no JPEG stream: no SOI: %w", microtome.ErrCorrupt)
	}
	for i := 2; ; {
		m, seg, next, err := segment(data, i)
		if err != nil {
			return f, err
		}
		switch {
		case m >= 0xC0 && m <= 0xCF && m != 0xC4 && m != 0xC8 && m != 0xCC:
			f.Marker = m
			return f, f.parse(seg)
		case m == 0xDA || m == 0xD9:
			return f, fmt.Errorf("JPEG marker %#x before any frame: %w", m, microtome.ErrCorrupt)
		case m == 0xEE && len(seg) >= 12 && string(seg[:5]) == "Adobe":
			f.Adobe = int(seg[11])
		}
		i = next
	}
}

// segment returns the marker at or after data[i] (fill bytes are skipped,
// T.81 B.1.1.2), what follows its length, and where the next one begins.
func segment(data []byte, i int) (m byte, seg []byte, next int, err error) {
	if i >= len(data) || data[i] != 0xFF {
		return 0, nil, 0, fmt.Errorf("JPEG header: no marker at byte %d: %w", i, microtome.ErrCorrupt)
	}
	for i < len(data) && data[i] == 0xFF {
		i++
	}
	if i >= len(data) {
		return 0, nil, 0, fmt.Errorf("JPEG header ends early: %w", microtome.ErrCorrupt)
	}
	m = data[i]
	i++
	if m == 0xD9 || m == 0x01 || m >= 0xD0 && m <= 0xD8 {
		return m, nil, i, nil
	}
	if i+2 > len(data) {
		return 0, nil, 0, fmt.Errorf("JPEG header ends early: %w", microtome.ErrCorrupt)
	}
	n := int(data[i])<<8 | int(data[i+1])
	if n < 2 || i+n > len(data) {
		return 0, nil, 0, fmt.Errorf("JPEG marker %#x: length %d: %w", m, n, microtome.ErrCorrupt)
	}
	return m, data[i+2 : i+n], i + n, nil
}

func (f *Frame) parse(seg []byte) error {
	if len(seg) < 6 {
		return fmt.Errorf("JPEG frame header of %d bytes: %w", len(seg), microtome.ErrCorrupt)
	}
	f.Precision = int(seg[0])
	f.Height = int(seg[1])<<8 | int(seg[2])
	f.Width = int(seg[3])<<8 | int(seg[4])
	f.Components = int(seg[5])
	if f.Components == 0 || len(seg) != 6+3*f.Components {
		return fmt.Errorf("JPEG frame header: %d components in %d bytes: %w", f.Components, len(seg), microtome.ErrCorrupt)
	}
	for c := 0; c < f.Components && c < 4; c++ {
		p := seg[6+3*c:]
		f.IDs[c], f.H[c], f.V[c] = p[0], int(p[1]>>4), int(p[1]&15)
		if f.H[c] < 1 || f.H[c] > 4 || f.V[c] < 1 || f.V[c] > 4 {
			return fmt.Errorf("JPEG sampling factors %dx%d: %w", f.H[c], f.V[c], microtome.ErrCorrupt)
		}
	}
	return nil
}

// Check reads the frame of a JPEG tile and holds it against what the tile says
// of itself. Baseline and extended sequential 8-bit Huffman streams of 1 or 3
// components pass.
func Check(t microtome.Tile) (Frame, error) {
	f, err := Read(t.Data)
	if err != nil {
		return f, err
	}
	if name := process(f.Marker); name != "" {
		return f, &microtome.Unsupported{Tag: "SOF", Value: fmt.Sprintf("%s (SOF%d)", name, f.Marker-0xC0)}
	}
	if f.Precision != 8 {
		return f, &microtome.Unsupported{Tag: "SOF", Value: fmt.Sprintf("%d bits a sample", f.Precision)}
	}
	if f.Components != 1 && f.Components != 3 {
		return f, &microtome.Unsupported{Tag: "SOF", Value: fmt.Sprintf("%d components", f.Components)}
	}
	if f.Width != t.Width || f.Height != t.StreamHeight {
		return f, fmt.Errorf("JPEG stream is %dx%d, the tile %dx%d: %w", f.Width, f.Height, t.Width, t.StreamHeight, microtome.ErrCorrupt)
	}
	switch t.Color {
	case microtome.ColorPalette:
		return f, &microtome.Unsupported{Tag: "PhotometricInterpretation", Value: "3 (palette) with JPEG"}
	case microtome.ColorGray, microtome.ColorGrayWhite:
		if f.Components != 1 {
			return f, fmt.Errorf("JPEG stream has %d components, the tile is grey: %w", f.Components, microtome.ErrCorrupt)
		}
	}
	return f, nil
}

// process names a coding process that isn't decoded, "" for those that are.
func process(m byte) string {
	switch m {
	case 0xC0, 0xC1:
		return ""
	case 0xC2:
		return "progressive"
	case 0xC3:
		return "lossless"
	case 0xC5, 0xC6, 0xC7:
		return "differential"
	}
	return "arithmetic"
}

// Rewrite appends a three-component stream's rest to out, which holds its SOI
// and new segments: component ids become 1, 2, 3 in frame and scans, and APP0
// and APP14 are left out.
func Rewrite(out, data []byte) ([]byte, error) {
	f, err := Read(data)
	if err != nil {
		return nil, err
	}
	id := func(old byte) byte {
		for c := range 3 {
			if f.IDs[c] == old {
				return byte(c + 1)
			}
		}
		return old
	}
	for i := 2; i < len(data); {
		m, seg, next, err := segment(data, i)
		if err != nil {
			return nil, err
		}
		at := len(out)
		if m != 0xEE && m != 0xE0 {
			out = append(out, data[i:next]...)
		}
		body := out[max(at, len(out)-len(seg)):]
		switch {
		case m == f.Marker && len(body) >= 15:
			body[6], body[9], body[12] = 1, 2, 3
		case m == 0xDA && len(body) > 0 && len(body) > 2*int(body[0]):
			for c := range int(body[0]) {
				body[1+2*c] = id(body[1+2*c])
			}
			end := scanEnd(data, next)
			out = append(out, data[next:end]...)
			next = end
		case m == 0xD9:
			return out, nil
		}
		i = next
	}
	return append(out, 0xFF, 0xD9), nil
}

// scanEnd is where the entropy-coded data that begins at i ends: at the next
// marker that is no restart (T.81 B.1.1.5).
func scanEnd(data []byte, i int) int {
	for ; i+1 < len(data); i++ {
		if data[i] == 0xFF && data[i+1] != 0 && (data[i+1] < 0xD0 || data[i+1] > 0xD7) && data[i+1] != 0xFF {
			return i
		}
	}
	return len(data)
}
