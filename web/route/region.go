package route

import (
	"fmt"

	"github.com/microtome/microtome"
)

// ScaleKind says how a region's scale was given.
type ScaleKind uint8

// The ways to give a scale.
const (
	ScaleLevel ScaleKind = iota // the default: level 0
	ScaleMPP
	ScaleMagnification
	ScaleDownsample
)

// Region is a parsed region query: the origin in level-0 pixels, the size in
// pixels of the answer.
type Region struct {
	L0X, L0Y      int64
	Width, Height int
	Scale         ScaleKind
	Value         float64 // level number, mpp, magnification or downsample
	Pixels        Pixels
}

// maxSide bounds one side of a region before its area is looked at.
const maxSide = 1 << 24

// ParseRegion reads the query of a region. Each parameter may be given once, at
// most one of level, mpp, magnification and downsample, and unknown ones are
// refused, so that a misspelt scale is not taken for level 0.
func ParseRegion(raw string) (Region, error) {
	var q Region
	var seen Once
	err := EachParam(raw, func(key, value string) error {
		if err := seen.See(key); err != nil {
			return err
		}
		return q.set(key, value)
	})
	if err != nil {
		return q, err
	}
	return q, q.complete(seen)
}

func (q *Region) set(key, value string) (err error) {
	switch key {
	case "x":
		q.L0X, err = integer(key, value)
	case "y":
		q.L0Y, err = integer(key, value)
	case "width":
		q.Width, err = bounded(key, value, 1, maxSide)
	case "height":
		q.Height, err = bounded(key, value, 1, maxSide)
	case "level":
		var n int
		n, err = Number(key, value)
		q.Scale, q.Value = ScaleLevel, float64(n)
	case "mpp":
		q.Scale = ScaleMPP
		q.Value, err = positive(key, value)
	case "magnification":
		q.Scale = ScaleMagnification
		q.Value, err = positive(key, value)
	case "downsample":
		q.Scale = ScaleDownsample
		q.Value, err = positive(key, value)
	default:
		known, perr := q.Pixels.Set(key, value)
		if err = perr; !known {
			err = ErrUnknown(key)
		}
	}
	return err
}

// complete checks what only the whole query shows.
func (q *Region) complete(seen []string) error {
	var have [4]bool
	scales := 0
	for _, k := range seen {
		switch k {
		case "x":
			have[0] = true
		case "y":
			have[1] = true
		case "width":
			have[2] = true
		case "height":
			have[3] = true
		case "level", "mpp", "magnification", "downsample":
			scales++
		}
	}
	if have != [4]bool{true, true, true, true} {
		return fmt.Errorf("x, y, width and height are needed: %w", microtome.ErrMalformed)
	}
	if scales > 1 {
		return fmt.Errorf("more than one of level, mpp, magnification, downsample: %w", microtome.ErrMalformed)
	}
	return nil
}
