package formats

import (
	"math"
	"slices"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// NewSubfileType bits (TIFF 6.0 p. 36). Aperio marks labels with 1 and macros
// with 9.
const (
	subfileReduced = 1
	subfilePage    = 2
	subfileMask    = 4
	subfileMacro   = 9
)

// Names of associated images.
const (
	nameLabel     = "label"
	nameMacro     = "macro"
	nameThumbnail = "thumbnail"
)

// picture is one image of a file: a directory, or one sample plane of a
// directory whose planes are stored apart (TIFF 6.0, PlanarConfiguration 2).
type picture struct {
	dir    *tiff.Dir
	sample int
}

// sameShape says whether w x h can be a reduction of the larger W x H: the
// downsamples of both axes agree when each size may be off by one pixel
// (floor, round or ceil at every halving) and by 1 % (a writer that cuts a
// level to whole tiles).
func sameShape(largeW, largeH, w, h int64) bool {
	lowX, highX := downsampleRange(largeW, w)
	lowY, highY := downsampleRange(largeH, h)
	return lowX <= highY*1.01 && lowY <= highX*1.01
}

func downsampleRange(large, small int64) (low, high float64) {
	low = float64(large) / float64(small+1)
	if small <= 1 {
		return low, math.Inf(1)
	}
	return low, float64(large) / float64(small-1)
}

// downsample is relative to level 0: the mean of the two axes' ratios.
func downsample(w0, h0, w, h int64) float64 {
	return (float64(w0)/float64(w) + float64(h0)/float64(h)) / 2
}

// bySize orders directories from the widest down, equals as they came.
func bySize(dirs []*tiff.Dir) {
	slices.SortStableFunc(dirs, func(a, b *tiff.Dir) int {
		wa, _ := sizeOf(a)
		wb, _ := sizeOf(b)
		switch {
		case wa > wb:
			return -1
		case wa < wb:
			return 1
		}
		return 0
	})
}

// gridFunc is gridOf or planeGridOf.
type gridFunc func(*tiff.Dir) (microtome.Grid, error)

// pyramid picks from the candidates those that are reductions of base, each
// smaller than the last, and says which were left out and why. Masks are left
// out without a word: they are no pictures.
func pyramid(base *tiff.Dir, candidates []*tiff.Dir, gridOf gridFunc, warn func(string, ...any)) []*tiff.Dir {
	grid, err := gridOf(base)
	if err != nil {
		return []*tiff.Dir{base}
	}
	levels := []*tiff.Dir{base}
	for _, d := range candidates {
		switch g, err := gridOf(d); {
		case subfile(d)&subfileMask != 0:
		case err != nil:
			warn("%s left out: %v", d.Name(), err)
		case g.Samples != grid.Samples:
			warn("%s left out: %d samples a pixel beside %d", d.Name(), g.Samples, grid.Samples)
		case !fits(grid, g):
			warn("%s left out: %dx%d is no reduction of %dx%d", d.Name(), g.Width, g.Height, grid.Width, grid.Height)
		default:
			levels = append(levels, d)
		}
	}
	bySize(levels)
	return falling(levels, warn)
}

// fits is sameShape for two grids, whichever is larger.
func fits(a, b microtome.Grid) bool {
	if a.Width*a.Height < b.Width*b.Height {
		a, b = b, a
	}
	return sameShape(a.Width, a.Height, b.Width, b.Height)
}

// falling drops what is not smaller than the level before it.
func falling(levels []*tiff.Dir, warn func(string, ...any)) []*tiff.Dir {
	kept := levels[:1]
	for _, d := range levels[1:] {
		w, h := sizeOf(d)
		lastW, lastH := sizeOf(kept[len(kept)-1])
		if w > lastW || h > lastH || w == lastW && h == lastH {
			warn("%s left out: %dx%d is not smaller than the level before", d.Name(), w, h)
			continue
		}
		kept = append(kept, d)
	}
	return kept
}
