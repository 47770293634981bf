package jpegstream

// Color says what a stream's components must be taken for by whoever plays it.
type Color uint8

// The colours. They touch streams of three components only.
const (
	AsIs           Color = iota
	TransformNone        // RGB, stored as it is
	TransformYCbCr       // YCbCr
)

// markerBytes is the length of the longer of the two segments below.
const markerBytes = 18

// adobe is the APP14 segment of a transform (T.872 6.5.3).
func adobe(transform uint8) []byte {
	return []byte{0xFF, markerAPP14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform}
}

// jfif is JFIF's APP0 segment (T.871 10.1): version 1.1, square pixels.
func jfif() []byte {
	return []byte{0xFF, markerAPP0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0}
}

// markers says what a stream needs for players to see color: a segment to add,
// and whether its present APP0 and APP14 must go. Players let JFIF mean YCbCr,
// over Adobe's marker and over component ids R, G, B; of the last two some heed
// the one and some the other first.
func (c Color) markers(h Header) (marker []byte, drop bool) {
	if h.NumComponents != 3 {
		return nil, false
	}
	wrong := h.Adobe && h.Transform != 1
	switch {
	case c == TransformNone && (h.JFIF || !h.Adobe || h.Transform != 0):
		return adobe(0), h.JFIF || h.Adobe
	case c == TransformYCbCr && (wrong || !h.JFIF && h.named("RGB")):
		return jfif(), wrong
	}
	return nil, false
}

func (h *Header) named(ids string) bool {
	for i := range len(ids) {
		if h.Components[i].ID != ids[i] {
			return false
		}
	}
	return true
}

// dropColor removes JFIF's APP0 and Adobe's APP14 before the first scan by
// moving the header to the right. It returns where the stream begins now; the
// two bytes there are SOI.
func dropColor(p []byte, h Header) int {
	head := append(make([]byte, 0, h.ScanStart), 0xFF, markerSOI)
	for at := 2; at < h.ScanStart; {
		s, err := readSegment(p, at)
		if err != nil {
			break // Parse has read it: can't be
		}
		if !isJFIF(s) && !isAdobe(s) {
			head = append(head, p[s.start:s.end]...)
		}
		at = s.end
	}
	start := h.ScanStart - len(head)
	copy(p[start:], head)
	return start
}

// WithAPP14 returns a copy of a stream of three components whose Adobe marker
// says the transform: 0 RGB, 1 YCbCr. JFIF's APP0 goes with the old one, since
// players let it win. Other streams come back as they are, complete.
func WithAPP14(stream []byte, transform uint8) ([]byte, error) {
	h, err := Parse(stream)
	if err != nil {
		return nil, err
	}
	if h.NumComponents != 3 || h.Adobe && h.Transform == transform && !h.JFIF {
		return Splice(nil, stream)
	}
	p := append(make([]byte, 0, len(stream)+2), stream...)
	start := dropColor(p, h)
	out := make([]byte, 0, len(p)-start+markerBytes+2)
	out = append(out, 0xFF, markerSOI)
	out = append(out, adobe(transform)...)
	out = append(out, p[start+2:h.End]...)
	if !h.EOI {
		out = append(out, 0xFF, markerEOI)
	}
	return out, nil
}

// PatchSize writes width and height, 1 to 65,535, into a stream's frame header.
func PatchSize(stream []byte, width, height int) error {
	if width < 1 || width > 0xFFFF || height < 1 || height > 0xFFFF {
		return corrupt("size %dx%d", width, height)
	}
	for at := 2; at < len(stream); {
		s, err := readSegment(stream, at)
		if err != nil {
			return err
		}
		if isSOF(s.marker) && len(s.body) >= 5 {
			s.body[1], s.body[2] = byte(height>>8), byte(height)
			s.body[3], s.body[4] = byte(width>>8), byte(width)
			return nil
		}
		if s.marker == markerSOS {
			break
		}
		at = s.end
	}
	return corrupt("no frame")
}
