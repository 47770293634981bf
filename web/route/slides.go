package route

import (
	"fmt"
	"strings"

	"github.com/microtome/microtome"
)

// Part is what of a slide a path names.
type Part uint8

// The parts of a slide.
const (
	PartInfo       Part = iota // {id}
	PartTile                   // {id}/levels/{level}/tiles/{col}/{row}
	PartRegion                 // {id}/region
	PartThumbnail              // {id}/thumbnail
	PartAssociated             // {id}/associated/{name}
)

// Slide is a parsed path below /slides/.
type Slide struct {
	ID              string
	Part            Part
	Level, Col, Row int    // PartTile
	Name            string // PartAssociated
}

// ParseSlide reads the escaped path that follows "/slides/". It matches from
// the right, on the escaped text: a keyword counts only when it stands in plain
// letters between plain slashes, and the longest suffix wins. So a folder may
// have any name, and a slide whose own name is a keyword is reached by writing
// its '/' as %2F.
func ParseSlide(escaped string) (Slide, error) {
	rest, last := cutLast(escaped)
	if front, ok := trimSegment(rest, "associated"); ok {
		return parseAssociated(front, last)
	}
	if s, ok, err := parseTile(rest, last); ok {
		return s, err
	}
	var s Slide
	switch {
	case rest == "":
		rest = escaped
	case last == "region":
		s.Part = PartRegion
	case last == "thumbnail":
		s.Part = PartThumbnail
	default:
		rest = escaped
	}
	var err error
	s.ID, err = ID(rest)
	return s, err
}

func parseAssociated(front, escapedName string) (Slide, error) {
	s := Slide{Part: PartAssociated}
	var err error
	if s.Name, err = unescape(escapedName, false); err != nil {
		return s, err
	}
	if s.Name == "" {
		return s, fmt.Errorf("associated image without a name: %w", microtome.ErrNotFound)
	}
	s.ID, err = ID(front)
	return s, err
}

// parseTile matches front/levels/{level}/tiles/{col}/{row}; ok says whether the
// keywords are there.
func parseTile(rest, row string) (s Slide, ok bool, err error) {
	s.Part = PartTile
	rest, col := cutLast(rest)
	rest, ok = trimSegment(rest, "tiles")
	if !ok {
		return s, false, nil
	}
	rest, level := cutLast(rest)
	rest, ok = trimSegment(rest, "levels")
	if !ok {
		return s, false, nil
	}
	if s.ID, err = ID(rest); err != nil {
		return s, true, err
	}
	if s.Level, err = Number("level", level); err != nil {
		return s, true, err
	}
	if s.Col, err = Number("column", col); err != nil {
		return s, true, err
	}
	s.Row, err = Number("row", row)
	return s, true, err
}

// cutLast splits before the last slash; front is "" when there is none.
func cutLast(s string) (front, last string) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+1:]
}

// trimSegment removes "/name" from the end of s when something stands before.
func trimSegment(s, name string) (front string, ok bool) {
	front, last := cutLast(s)
	return front, last == name && front != ""
}
