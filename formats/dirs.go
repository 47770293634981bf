package formats

import (
	"context"
	"math"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// What formats ask of a directory. A value that is broken counts as absent; a
// source that fails is told by the watch around it.

// number is an integer tag, or what it is by default.
func number(d *tiff.Dir, tag uint16, otherwise uint64) uint64 {
	if n, ok, err := d.Uint(tag); ok && err == nil {
		return n
	}
	return otherwise
}

func subfile(d *tiff.Dir) uint64 { return number(d, tiff.NewSubfileType, 0) }

func isTiled(d *tiff.Dir) bool { return d.Has(tiff.TileWidth) }

func samplesOf(d *tiff.Dir) int {
	return int(min(number(d, tiff.SamplesPerPixel, 1), math.MaxUint16))
}

// isPlanar says that the samples of a pixel are stored apart.
func isPlanar(d *tiff.Dir) bool {
	return number(d, tiff.PlanarConfiguration, 1) == 2 && samplesOf(d) > 1
}

func sizeOf(d *tiff.Dir) (w, h int64) {
	return side(d, tiff.ImageWidth), side(d, tiff.ImageLength)
}

func side(d *tiff.Dir, tag uint16) int64 { return int64(min(number(d, tag, 0), math.MaxInt32)) }

func tileSizeOf(d *tiff.Dir) (w, h int64) {
	return side(d, tiff.TileWidth), side(d, tiff.TileLength)
}

func description(d *tiff.Dir) string {
	text, _ := textValue(d, tiff.ImageDescription)
	return text
}

func textValue(d *tiff.Dir, tag uint16) (string, bool) {
	text, ok, err := d.ASCII(tag)
	return text, ok && err == nil
}

// realValue is a fraction or floating-point tag; integers are none to
// OpenSlide, nor is a fraction over zero.
func realValue(d *tiff.Dir, tag uint16) (float64, bool) {
	e, _ := d.RawEntry(tag)
	fraction := e.Type == tiff.Rational || e.Type == tiff.SRational
	if !fraction && e.Type != tiff.Float && e.Type != tiff.Double {
		return 0, false
	}
	x, ok, err := d.Float(tag)
	if fraction && (math.IsInf(x, 0) || math.IsNaN(x)) {
		return 0, false
	}
	return x, ok && err == nil
}

// gridOf describes an image whose samples lie together, or says by tag and value
// why it can't be shown.
func gridOf(d *tiff.Dir) (microtome.Grid, error) { return d.Grid() }

// planeGridOf describes one plane of an image: of each sample, where samples
// are stored apart.
func planeGridOf(d *tiff.Dir) (microtome.Grid, error) {
	g, err := d.Geometry()
	return g.Grid, err
}

// cellCount is how many tiles or strips the directory lists.
func cellCount(d *tiff.Dir) int64 {
	return max(d.Count(tiff.TileOffsets), d.Count(tiff.StripOffsets))
}

func iccProfile(ctx context.Context, d *tiff.Dir) ([]byte, error) {
	if d == nil {
		return nil, nil
	}
	return d.BytesContext(ctx, tiff.ICCProfile)
}
