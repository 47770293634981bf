package bench

import (
	"fmt"
	"math/rand/v2"
)

// Protocol is what is measured.
type Protocol struct {
	Grid   int    `json:"grid"`   // patches on each side, around the slide's middle
	Patch  int    `json:"patch"`  // side of a patch, in level-0 pixels
	Trials int    `json:"trials"` // of each, all engines in turn
	Random int    `json:"random"` // patches anywhere on level 0
	Cores  int    `json:"cores"`  // of the trials on several
	Seed   uint64 `json:"seed"`
	// ColdCache is the decoded-tile cache of cold trials in bytes: OpenSlide's
	// default, emptied before each. WarmCache holds the whole grid.
	ColdCache int64 `json:"cold_cache"`
	WarmCache int64 `json:"warm_cache"`
}

func (p Protocol) String() string {
	return fmt.Sprintf("%d x %d grid and %d random patches of %d x %d at level 0; warm files; %d trials, engines in turn; cold cache %d MiB, warm %d MiB",
		p.Grid, p.Grid, p.Random, p.Patch, p.Patch, p.Trials, p.ColdCache>>20, p.WarmCache>>20)
}

// The tasks.
const (
	GridCold   = "grid, cold"
	GridWarm   = "grid, warm"
	RandomCold = "random, cold"
	ZoomStored = "deep zoom, stored level"
	ZoomMade   = "deep zoom, half size"
	HTTPCold   = "grid over HTTP, cold"
	HTTPWarm   = "grid over HTTP, warm"
)

// At is the upper left corner of a patch, in level-0 pixels.
type At struct{ X, Y int64 }

// gridOf is the grid of patches around the middle of a slide, row by row,
// aligned to the patch size.
func (p Protocol) gridOf(width, height int64) ([]At, error) {
	side := int64(p.Grid) * int64(p.Patch)
	if side > width || side > height {
		return nil, fmt.Errorf("bench: a grid of %d x %d pixels on a slide of %d x %d", side, side, width, height)
	}
	align := func(n int64) int64 { return max(0, (n-side)/2) / int64(p.Patch) * int64(p.Patch) }
	x0, y0 := align(width), align(height)
	all := make([]At, 0, p.Grid*p.Grid)
	for y := range int64(p.Grid) {
		for x := range int64(p.Grid) {
			all = append(all, At{x0 + x*int64(p.Patch), y0 + y*int64(p.Patch)})
		}
	}
	return all, nil
}

// randomOf is patches anywhere; each trial has others.
func (p Protocol) randomOf(width, height int64, trial int) []At {
	rnd := rand.New(rand.NewPCG(p.Seed, uint64(trial)))
	all := make([]At, p.Random)
	for i := range all {
		all[i] = At{rnd.Int64N(max(width-int64(p.Patch), 0) + 1), rnd.Int64N(max(height-int64(p.Patch), 0) + 1)}
	}
	return all
}
