package deepzoom

import (
	"fmt"
	"strconv"

	"github.com/microtome/microtome"
)

// Namespace is that of the DZI schema of 2008.
const Namespace = "http://schemas.microsoft.com/deepzoom/2008"

// DZI writes the descriptor of a pyramid whose tiles are of format (the
// extension in their names).
func DZI(p Pyramid, format string) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<Image xmlns="`+Namespace+`" Format="`...)
	b = append(b, format...)
	b = append(b, `" Overlap="`...)
	b = strconv.AppendInt(b, int64(p.Overlap), 10)
	b = append(b, `" TileSize="`...)
	b = strconv.AppendInt(b, int64(p.Tile), 10)
	b = append(b, `"><Size Width="`...)
	b = strconv.AppendInt(b, p.Width, 10)
	b = append(b, `" Height="`...)
	b = strconv.AppendInt(b, p.Height, 10)
	return append(b, `"/></Image>`+"\n"...)
}

// The tile size when a slide's own does not suit a viewer, and the range of
// those that do.
const (
	defaultTile  = 256
	minNativeTo  = 128
	maxNativeTo  = 1024
	maxTileParam = 1 << 20
)

// Default is the tiling of a slide when the query gives none: the stored square
// tiles of level 0 without overlap, so that they leave as they are stored; 256
// for strips, oblong tiles and extreme sizes.
func Default(g microtome.Grid) (tile, overlap int) {
	if g.TileWidth == g.TileHeight && g.TileWidth >= minNativeTo && g.TileWidth <= maxNativeTo {
		return g.TileWidth, 0
	}
	return defaultTile, 0
}

// Param reads the value of tile= (at least 1) or overlap= (at least 0).
func Param(key, value string) (int, error) {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || key == "tile" && n == 0 {
		return 0, fmt.Errorf("%s is not a fitting number: %w", key, microtome.ErrMalformed)
	}
	if n > maxTileParam {
		return 0, fmt.Errorf("%s above %d: %w", key, maxTileParam, microtome.ErrLimit)
	}
	return int(n), nil
}
