package formats

import (
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// layoutGeneric takes any TIFF that holds a picture: level 0 is the first
// directory that is no mask, the rest is chosen by subfile type and shape.
//
//   - Reduced-resolution directories (NewSubfileType 1) are levels when their
//     shape agrees; so are SubIFDs of level 0.
//   - Others are levels only when they are tiled like level 0, agree in shape
//     and are no page of a document (NewSubfileType 2).
//   - Masks are skipped, everything else is left out with a warning.
//   - Strips make one level (OpenSlide refuses such files).
func layoutGeneric(in *input) (*layout, error) {
	base := firstPicture(in.Dirs)
	if base == nil {
		return nil, fmt.Errorf("no directory holds a picture: %w", microtome.ErrCorrupt)
	}
	if _, err := gridOf(base); err != nil {
		return nil, fmt.Errorf("%s: %w", base.Name(), err)
	}
	l := &layout{format: "generic-tiff", planes: onePlane()}
	candidates := append([]*tiff.Dir{}, base.SubDirs...)
	for _, d := range in.Dirs {
		switch kind := subfile(d); {
		case d == base || kind&subfileMask != 0:
		case kind&subfileReduced != 0, kind&subfilePage == 0 && isTiled(d) && isTiled(base):
			candidates = append(candidates, d)
		default:
			l.warn("%s left out: a page of its own", d.Name())
		}
	}
	for _, d := range pyramid(base, candidates, gridOf, l.warn) {
		l.levels = append(l.levels, []picture{{dir: d}})
	}
	l.icc = l.levels[0][0].dir
	l.mpp = resolutionMPP(l.levels[0][0].dir)
	l.reported = reportGeneric(in.File)
	return l, nil
}

func firstPicture(dirs []*tiff.Dir) *tiff.Dir {
	for _, d := range dirs {
		if subfile(d)&subfileMask == 0 {
			return d
		}
	}
	return nil
}

// reportGeneric is what OpenSlide makes of the file: the first directory and
// every reduced-resolution one that is tiled, masks among them. It refuses a
// file whose first directory is not tiled.
func reportGeneric(f *tiff.File) report {
	if !isTiled(f.Dirs[0]) {
		return report{}
	}
	r := report{vendor: "generic-tiff", main: f.Dirs[0]}
	for i, d := range f.Dirs {
		if isTiled(d) && (i == 0 || subfile(d)&subfileReduced != 0) {
			r.levels = append(r.levels, d)
		}
	}
	bySize(r.levels)
	if !orderly(r.levels) {
		return report{}
	}
	return r
}

// resolutionMPP reads microns per pixel from XResolution, YResolution and
// ResolutionUnit; nil when they don't say (no unit, zero, zero denominator).
func resolutionMPP(d *tiff.Dir) *microtome.MPP {
	x, y, ok := resolutionMicrons(d)
	if !ok || !(x > 0 && x <= maxPositive && y > 0 && y <= maxPositive) {
		return nil
	}
	return &microtome.MPP{X: x, Y: y}
}

// resolutionMicrons computes what OpenSlide computes, nonsense included: ok is
// false where it reports nothing.
func resolutionMicrons(d *tiff.Dir) (x, y float64, ok bool) {
	microns := 0.0
	switch resolutionUnit(d) {
	case unitInch:
		microns = 25400
	case unitCentimeter:
		microns = 10000
	default:
		return 0, 0, false
	}
	perX, okX := realValue(d, tiff.XResolution)
	perY, okY := realValue(d, tiff.YResolution)
	if !okX || !okY || perX == 0 || perY == 0 {
		return 0, 0, false
	}
	return microns / perX, microns / perY, true
}

// ResolutionUnit (TIFF 6.0 p. 38).
const (
	unitNone       = 1
	unitInch       = 2
	unitCentimeter = 3
)

// resolutionUnit is inch when the tag is absent.
func resolutionUnit(d *tiff.Dir) uint64 { return number(d, tiff.ResolutionUnit, unitInch) }
