package jpegstream

import (
	"fmt"
	"strings"
)

// MaxComponents is the most components that a Header describes.
const MaxComponents = 4

// Component is one component of a frame (T.81 B.2.2) with the tables of the
// scan that holds it.
type Component struct {
	ID, H, V   uint8
	Quant      uint8 // DQT's id
	DC, AC     uint8 // DHT's ids
	inSomeScan bool
}

// Header is what a stream's markers say. Offsets are bytes from the start.
type Header struct {
	SOF           byte // the marker: 0xC0 baseline, 0xC2 progressive, …
	Precision     int  // bits a sample
	Width, Height int  // 0 where the stream leaves it open
	// NumComponents may be more than Components holds.
	NumComponents   int
	Components      [MaxComponents]Component
	RestartInterval int
	// Tables that the stream itself defines, a bit for each id.
	QuantTables, DCTables, ACTables uint8
	JFIF                            bool // has APP0 "JFIF"
	Adobe                           bool // has APP14 "Adobe"
	Transform                       uint8
	Scans                           int
	ScanComponents                  int // of the first scan
	ScanStart                       int // the first SOS marker
	DataStart                       int // the first scan's entropy-coded data
	DataEnd                         int // its end
	// End is the end of the stream, behind EOI where there is one. Bytes behind
	// it are no part of the picture.
	End      int
	EOI      bool
	Trailing int
}

// Parse reads the markers of a stream to its end. It fails with ErrCorrupt when
// there is no frame or no scan; what comes after the first scan may be broken:
// the stream then ends there. It allocates nothing.
func Parse(p []byte) (Header, error) {
	var h Header
	if len(p) < 4 || p[0] != 0xFF || p[1] != markerSOI {
		return h, corrupt("%d bytes without SOI in front", len(p))
	}
	for at := 2; ; {
		s, err := readSegment(p, at)
		if err == nil && s.marker == markerEOI && h.Scans > 0 {
			h.End, h.EOI = s.end, true
			break
		}
		before := h
		if err == nil {
			err = h.add(s)
		}
		if err != nil && before.Scans > 0 {
			h = before // what a broken segment said is cut off with it
			h.End = at
			break
		}
		if err != nil {
			return h, err
		}
		at = s.end
		if s.marker == markerSOS {
			at = scanEnd(p, s.end)
			if h.Scans == 1 {
				h.ScanStart, h.DataStart, h.DataEnd = s.start, s.end, at
			}
		}
	}
	h.Trailing = len(p) - h.End
	return h, nil
}

// add takes one segment in.
func (h *Header) add(s segment) error {
	switch {
	case s.marker == markerSOI || s.marker == markerEOI:
		return corrupt("marker FF%02X out of place", s.marker)
	case isSOF(s.marker):
		return h.addFrame(s)
	case s.marker == markerSOS:
		return h.addScan(s.body)
	case s.marker == markerDQT:
		return eachQuant(s.body, func(id uint8, _ []byte) { h.QuantTables |= 1 << id })
	case s.marker == markerDHT:
		return eachHuffman(s.body, func(class, id uint8, _ []byte) {
			if class == 0 {
				h.DCTables |= 1 << id
			} else {
				h.ACTables |= 1 << id
			}
		})
	case s.marker == markerDRI:
		if len(s.body) != 2 {
			return corrupt("DRI of %d bytes", len(s.body))
		}
		h.RestartInterval = int(s.body[0])<<8 | int(s.body[1])
	case h.Scans > 0: // players settle the colour before the first scan
	case isJFIF(s):
		h.JFIF = true
	case isAdobe(s):
		h.Adobe, h.Transform = true, s.body[11]
	}
	return nil
}

func isJFIF(s segment) bool {
	return s.marker == markerAPP0 && len(s.body) >= 5 && string(s.body[:5]) == "JFIF\x00"
}

func isAdobe(s segment) bool {
	return s.marker == markerAPP14 && len(s.body) >= 12 && string(s.body[:5]) == "Adobe"
}

// addFrame reads a frame header (T.81 B.2.2).
func (h *Header) addFrame(s segment) error {
	if h.SOF != 0 {
		return corrupt("a second frame")
	}
	if len(s.body) < 6 || len(s.body) != 6+3*int(s.body[5]) || s.body[5] == 0 {
		return corrupt("frame header of %d bytes", len(s.body))
	}
	h.SOF, h.Precision, h.NumComponents = s.marker, int(s.body[0]), int(s.body[5])
	h.Height = int(s.body[1])<<8 | int(s.body[2])
	h.Width = int(s.body[3])<<8 | int(s.body[4])
	for i := range h.kept() {
		b := s.body[6+3*i:]
		c := Component{ID: b[0], H: b[1] >> 4, V: b[1] & 15, Quant: b[2]}
		if c.H < 1 || c.H > 4 || c.V < 1 || c.V > 4 || c.Quant > 3 {
			return corrupt("component %d: factors %dx%d, table %d", c.ID, c.H, c.V, c.Quant)
		}
		h.Components[i] = c
	}
	return nil
}

func (h *Header) kept() int { return min(h.NumComponents, MaxComponents) }

// addScan reads a scan header (T.81 B.2.3).
func (h *Header) addScan(b []byte) error {
	if h.SOF == 0 {
		return corrupt("a scan without a frame")
	}
	if len(b) < 1 || b[0] < 1 || b[0] > MaxComponents || len(b) != 4+2*int(b[0]) {
		return corrupt("scan header of %d bytes", len(b))
	}
	for i := range int(b[0]) {
		id, tables := b[1+2*i], b[2+2*i]
		known := h.NumComponents > MaxComponents
		for k := range h.kept() {
			c := &h.Components[k]
			if c.ID != id || c.inSomeScan && h.Scans == 0 {
				continue
			}
			known = true
			if !c.inSomeScan {
				c.DC, c.AC, c.inSomeScan = tables>>4, tables&15, true
			}
			break
		}
		if !known {
			return corrupt("scan of unknown component %d", id)
		}
	}
	if h.Scans == 0 {
		h.ScanComponents = int(b[0])
	}
	h.Scans++
	return nil
}

// Describe says what a stream is: "baseline 8-bit 4:2:0 3 components 240x240".
func (h Header) Describe() string {
	parts := []string{h.Process(), fmt.Sprintf("%d-bit", h.Precision)}
	switch {
	case h.NumComponents == 1:
		parts = append(parts, "1 component")
	default:
		parts = append(parts, h.Subsampling(), fmt.Sprintf("%d components", h.NumComponents))
	}
	return strings.Join(append(parts, fmt.Sprintf("%dx%d", h.Width, h.Height)), " ")
}

// Process names the coding process of the frame.
func (h Header) Process() string {
	name := [...]string{"sequential", "extended sequential", "progressive", "lossless"}[h.SOF&3]
	switch {
	case h.SOF == markerSOF0:
		return "baseline"
	case h.SOF&4 != 0:
		name = "hierarchical " + name
	}
	if h.SOF&8 != 0 {
		name = "arithmetic-coded " + name
	}
	return name
}

// Subsampling is the chroma subsampling in J:a:b form where the factors have
// one, else the factors.
func (h Header) Subsampling() string {
	c := h.Components
	plain := h.NumComponents >= 3
	for i := 1; i < h.kept(); i++ {
		plain = plain && (c[i].H == 1 && c[i].V == 1 || i == 3 && c[3].H == c[0].H && c[3].V == c[0].V)
	}
	names := map[[2]uint8]string{
		{1, 1}: "4:4:4", {2, 1}: "4:2:2", {2, 2}: "4:2:0", {1, 2}: "4:4:0", {4, 1}: "4:1:1", {4, 2}: "4:1:0",
	}
	if name := names[[2]uint8{c[0].H, c[0].V}]; plain && name != "" {
		return name
	}
	var factors []string
	for i := range h.kept() {
		factors = append(factors, fmt.Sprintf("%dx%d", c[i].H, c[i].V))
	}
	return "factors " + strings.Join(factors, ",")
}
