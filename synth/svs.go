package synth

import (
	"fmt"
	"strings"
)

// aperioText is what an SVS says about the scan that it was cropped from, and
// about the scanner.
type aperioText struct {
	scanW, scanH int // of the whole scan; 0: the slide's size
	x, y         int // of the slide in it
	scanner      string
}

const aperioHead = "Aperio Image Library v10.0.51\r\n"

// svs writes the directories in Aperio's order: level 0, thumbnail, the other
// levels, label, macro.
func (wr *writer) svs() error {
	for i, l := range wr.levels {
		offsets, counts, err := wr.cells(l, -1)
		if err != nil {
			return err
		}
		wr.w.Dir(wr.levelDir(l, offsets, counts).ASCII(tagDescription, wr.aperioLevel(l)))
		if i == 0 && wr.s.Associated != NoAssociated {
			if err := wr.thumbnail(); err != nil {
				return err
			}
		}
	}
	if wr.s.Associated == NoAssociated {
		return nil
	}
	if err := wr.label(); err != nil {
		return err
	}
	return wr.macro()
}

// scan is the size of the whole scan.
func (wr *writer) scan() (w, h int) {
	if a := wr.s.aperio; a.scanW > 0 {
		return a.scanW, a.scanH
	}
	return wr.s.Width, wr.s.Height
}

// aperioLevel is a level's ImageDescription.
func (wr *writer) aperioLevel(l Level) string {
	s, a := wr.s, wr.s.aperio
	w, h := wr.scan()
	text := fmt.Sprintf("%s%dx%d [%d,%d %dx%d] (%dx%d)", aperioHead, w, h, a.x, a.y, s.Width, s.Height, s.Tile, s.Tile)
	if l.Downsample > 1 {
		text += fmt.Sprintf(" -> %dx%d", l.Width, l.Height)
	}
	switch s.Codec {
	case JPEGRGB:
		text += fmt.Sprintf(" JPEG/RGB Q=%d", s.Quality)
	case JPEG:
		text += fmt.Sprintf(" JPEG/YCC Q=%d", s.Quality)
	case J2K, J2KRGB, J2KYCbCr:
		text += " J2K/KDU Q=100"
	default:
		text += " " + strings.ToUpper(string(s.Codec))
	}
	return text + wr.aperioKeys()
}

// aperioKeys is the list of properties behind the first "|".
func (wr *writer) aperioKeys() string {
	s := wr.s
	scanner := s.aperio.scanner
	if scanner == "" {
		scanner = "SYNTHETIC"
	}
	var b strings.Builder
	if s.AppMag > 0 {
		fmt.Fprintf(&b, "|AppMag = %g", s.AppMag)
	}
	fmt.Fprintf(&b, "|StripeWidth = 2040|ScanScope ID = %s|Filename = %s|Date = 12/29/09|Time = 09:59:15", scanner, scanner)
	if s.MPP > 0 {
		fmt.Fprintf(&b, "|MPP = %.4f", s.MPP)
	}
	_, h := wr.scan()
	fmt.Fprintf(&b, "|Left = 25.691574|Top = 23.449873|OriginalWidth = %d|OriginalHeight = %d", s.Width, h)
	return b.String()
}
