// Package deepzoom is the Deep Zoom protocol: its URL grammar, the arithmetic
// of its virtual pyramid, and the DZI descriptor.
package deepzoom

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/web/route"
)

// Path is a parsed path below /deepzoom/: a descriptor or a tile.
type Path struct {
	ID              string
	Descriptor      bool
	Level, Col, Row int    // of a tile
	Format          string // of a tile: jpeg, png or webp
}

// ParsePath reads the escaped path that follows "/deepzoom/": {id}.dzi or
// {id}_files/{level}/{col}_{row}.{jpg|jpeg|png|webp}. It matches from the
// right, so the id may hold slashes and end in "_files" itself.
func ParsePath(escaped string) (Path, error) {
	if id, ok := strings.CutSuffix(escaped, ".dzi"); ok {
		p := Path{Descriptor: true}
		var err error
		p.ID, err = route.ID(id)
		return p, err
	}
	front, name, ok := cutLast(escaped)
	if !ok {
		return Path{}, errNoRoute()
	}
	front, level, ok := cutLast(front)
	if !ok {
		return Path{}, errNoRoute()
	}
	id, ok := strings.CutSuffix(front, "_files")
	if !ok {
		return Path{}, errNoRoute()
	}
	return parseTile(id, level, name)
}

func parseTile(id, level, name string) (Path, error) {
	var p Path
	var err error
	if p.ID, err = route.ID(id); err != nil {
		return p, err
	}
	if p.Level, err = route.Number("level", level); err != nil {
		return p, err
	}
	place, ext, ok := strings.Cut(name, ".")
	col, row, both := strings.Cut(place, "_")
	if !ok || !both {
		return p, fmt.Errorf("tile name is not {col}_{row}.{format}: %w", microtome.ErrMalformed)
	}
	if p.Col, err = route.Number("column", col); err != nil {
		return p, err
	}
	if p.Row, err = route.Number("row", row); err != nil {
		return p, err
	}
	p.Format, err = tileFormat(ext)
	return p, err
}

func tileFormat(ext string) (string, error) {
	switch ext {
	case "jpg", "jpeg":
		return "jpeg", nil
	case "png":
		return "png", nil
	case "webp":
		return "webp", nil
	}
	if len(ext) > 16 {
		ext = ext[:16]
	}
	return "", &microtome.Unsupported{Tag: "format", Value: strconv.Quote(ext)}
}

func errNoRoute() error {
	return fmt.Errorf("no Deep Zoom address: %w", microtome.ErrNotFound)
}

func cutLast(s string) (front, last string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}
