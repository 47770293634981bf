package tiles

import (
	"fmt"
	"math"

	"github.com/microtome/microtome"
)

// levelScale is how many level-0 pixels lie under one pixel of a level, on each
// axis. A level whose size is W/k rounded either way, for a whole k, counts as
// exactly k: its last pixel is cut or padded, not stretched.
func levelScale(info *microtome.Info, level int) [2]float64 {
	l0, l := info.Levels[0], info.Levels[level]
	k := math.Round(l.Downsample)
	if k >= 1 && matches(l0.Width, l.Width, k) && matches(l0.Height, l.Height, k) {
		return [2]float64{k, k}
	}
	return [2]float64{float64(l0.Width) / float64(l.Width), float64(l0.Height) / float64(l.Height)}
}

// matches says that n is the floor, round or ceil of full/d.
func matches(full, n int64, d float64) bool {
	q := float64(full) / d
	return float64(n) == math.Floor(q) || float64(n) == math.Ceil(q)
}

// nearlyNative is how far below a level's downsample a wanted one may be for
// the level to be used.
const nearlyNative = 1.005

// chosen is the level a region is taken from, and how.
type chosen struct {
	level  int
	native bool       // its pixels as they are
	down   [2]float64 // wanted downsample, per axis
}

// choose resolves a Scale (see Reader.Region).
func choose(info *microtome.Info, s Scale) (chosen, error) {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || math.IsNaN(s.Tolerance) {
		return chosen{}, fmt.Errorf("scale %v: %w", s.Value, microtome.ErrMalformed)
	}
	if s.Kind == ByLevel {
		n := int(s.Value)
		switch {
		case float64(n) != s.Value:
			return chosen{}, fmt.Errorf("level %v: %w", s.Value, microtome.ErrMalformed)
		case n < 0 || n >= len(info.Levels):
			return chosen{}, fmt.Errorf("level %d: %w", n, microtome.ErrNotFound)
		}
		return native(info, n), nil
	}
	if s.Value <= 0 {
		return chosen{}, fmt.Errorf("scale %v: %w", s.Value, microtome.ErrMalformed)
	}
	switch s.Kind {
	case ByMPP:
		return chooseMPP(info, s)
	case ByMagnification:
		if info.ObjectivePower == nil {
			return chosen{}, fmt.Errorf("the objective power is unknown: %w", microtome.ErrUnanswerable)
		}
		return chooseDownsample(info, *info.ObjectivePower/s.Value), nil
	case ByDownsample:
		return chooseDownsample(info, s.Value), nil
	}
	return chosen{}, fmt.Errorf("scale kind %d: %w", s.Kind, microtome.ErrMalformed)
}

func native(info *microtome.Info, level int) chosen {
	d := info.Levels[level].Downsample
	return chosen{level: level, native: true, down: [2]float64{d, d}}
}

// chooseMPP takes the level whose mpp is nearest, when that is within the
// tolerance, as it is.
func chooseMPP(info *microtome.Info, s Scale) (chosen, error) {
	if info.MPP == nil {
		return chosen{}, fmt.Errorf("the microns per pixel are unknown: %w", microtome.ErrUnanswerable)
	}
	tolerance := s.Tolerance
	if tolerance == 0 {
		tolerance = 0.02
	}
	best, bestOff := -1, tolerance
	for i, l := range info.Levels {
		off := max(math.Abs(info.MPP.X*l.Downsample/s.Value-1), math.Abs(info.MPP.Y*l.Downsample/s.Value-1))
		if off <= bestOff {
			best, bestOff = i, off
		}
	}
	if best >= 0 {
		return native(info, best), nil
	}
	down := [2]float64{s.Value / info.MPP.X, s.Value / info.MPP.Y}
	c := chooseDownsample(info, min(down[0], down[1]))
	c.native, c.down = false, down
	return c, nil
}

// chooseDownsample takes the largest downsample that suffices for d. The level
// is used as it is when it is the level of d itself.
func chooseDownsample(info *microtome.Info, d float64) chosen {
	c := chosen{down: [2]float64{d, d}}
	l0 := info.Levels[0]
	for i, l := range info.Levels {
		same := matches(l0.Width, l.Width, d) && matches(l0.Height, l.Height, d)
		if (same || l.Downsample <= nearlyNative*d) && l.Downsample >= info.Levels[c.level].Downsample {
			c.level = i
			c.native = same || l.Downsample*nearlyNative >= d
		}
	}
	if c.native {
		return native(info, c.level)
	}
	return c
}
