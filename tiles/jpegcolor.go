package tiles

import (
	"fmt"

	"github.com/microtome/microtome"
)

// adobe is an APP14 segment (Adobe technical note 5116) whose last byte, the
// transform, is to be set: 0 RGB, 1 YCbCr.
const adobe = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"

const (
	soi   = 0xd8
	eoi   = 0xd9
	sos   = 0xda
	app0  = 0xe0
	app14 = 0xee
)

// withColor checks that data begins as a JPEG picture of w x h pixels and makes
// its markers say that the samples are c, so that every player shows what TIFF's
// Photometric means: an RGB picture gets Adobe's transform 0 and loses its JFIF
// marker (which says YCbCr), a YCbCr one loses nothing but a marker that denies
// it. data may be changed.
func withColor(data []byte, c microtome.Color, w, h int) ([]byte, error) {
	m, err := scanJPEG(data)
	if err != nil {
		return nil, err
	}
	if m.width != w || m.height != h {
		return nil, fmt.Errorf("a JPEG of %dx%d for %dx%d pixels: %w", m.width, m.height, w, h, microtome.ErrCorrupt)
	}
	transform := byte(1)
	switch {
	case c == microtome.ColorRGB:
		transform = 0
	case c != microtome.ColorYCbCr:
		return data, nil
	}
	if m.adobe > 0 {
		data[m.adobe] = transform
		if transform == 1 || m.jfif == 0 {
			return data, nil
		}
	} else if transform == 1 && (m.jfif > 0 || m.ids == [3]byte{1, 2, 3}) {
		return data, nil
	}
	out := make([]byte, 0, len(data)+len(adobe)+1)
	out = append(out, data[:2]...)
	if m.adobe == 0 {
		out = append(append(out, adobe...), transform)
	}
	if m.jfif > 0 && transform == 0 {
		out = append(out, data[2:m.jfif]...)
		return append(out, data[m.jfifEnd:]...), nil
	}
	return append(out, data[2:]...), nil
}

// marks is where a JPEG stream says what its colours are. Offsets are 0 where
// there is no such marker.
type marks struct {
	jfif, jfifEnd int
	adobe         int // of the transform byte
	width, height int
	ids           [3]byte
}

// scanJPEG walks the segments up to the first scan (T.81 B.1.1).
func scanJPEG(data []byte) (m marks, err error) {
	bad := func(what string) (marks, error) {
		return m, fmt.Errorf("JPEG: %s: %w", what, microtome.ErrCorrupt)
	}
	if len(data) < 4 || data[0] != 0xff || data[1] != soi {
		return bad("no start of image")
	}
	for i := 2; ; {
		if i+4 > len(data) || data[i] != 0xff {
			return bad("no scan")
		}
		marker := data[i+1]
		if marker == 0xff { // fill byte (T.81 B.1.1.2)
			i++
			continue
		}
		n := int(data[i+2])<<8 | int(data[i+3])
		end := i + 2 + n
		if marker < 0xc0 || marker >= 0xd0 && marker <= eoi || n < 2 || end > len(data) {
			return bad("broken segment")
		}
		body := data[i+4 : end]
		switch {
		case marker == sos:
			if m.width == 0 || m.height == 0 {
				return bad("no frame before the scan")
			}
			return m, nil
		case marker == app0 && len(body) >= 5 && string(body[:5]) == "JFIF\x00":
			m.jfif, m.jfifEnd = i, end
		case marker == app14 && len(body) >= 12 && string(body[:5]) == "Adobe":
			m.adobe = i + 4 + 11
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if !m.frame(body) {
				return bad("broken frame header")
			}
		}
		i = end
	}
}

// frame reads a frame header's size and component ids (T.81 B.2.2).
func (m *marks) frame(body []byte) bool {
	if len(body) < 6 || len(body) < 6+3*int(body[5]) {
		return false
	}
	m.height, m.width = int(body[1])<<8|int(body[2]), int(body[3])<<8|int(body[4])
	for n := range min(3, int(body[5])) {
		m.ids[n] = body[6+3*n]
	}
	return true
}
