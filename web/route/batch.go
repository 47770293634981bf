package route

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/microtome/microtome"
)

// Batch is a parsed request for many patches of one size.
type Batch struct {
	Width, Height int
	Format        string // raw, npy, jpeg or png
	Planar        bool   // NCHW
	Last          bool   // raw: the statuses stand behind the pixels
	Channels      int    // 1 or 3; 0: as the slides are
	Quality       int    // 0: the server's
	Fill          uint8  // the value of a failed item's samples, before LUT
	Type          microtome.DataType
	LUT           *microtome.LUT // makes Type of 8-bit samples; nil for uint8
	Bounds        bool           // origin=bounds
	Tolerance     float64
	Items         []BatchItem
}

// BatchItem is one patch: its corner in level-0 pixels.
type BatchItem struct {
	Slide      string
	L0X, L0Y   int64
	Scale      ScaleKind
	Value      float64
	C, Z, T    int
	Background *microtome.RGB
}

// MaxItems bounds the patches of one batch.
const MaxItems = 8192

// place is what may stand both at the batch and at an item, which goes before.
type place struct {
	Slide         *string  `json:"slide"`
	Level         *int64   `json:"level"`
	MPP           *float64 `json:"mpp"`
	Magnification *float64 `json:"magnification"`
	Downsample    *float64 `json:"downsample"`
	C             *int64   `json:"c"`
	Z             *int64   `json:"z"`
	T             *int64   `json:"t"`
	Background    *string  `json:"background"`
}

type batchJSON struct {
	place
	Width     int64             `json:"width"`
	Height    int64             `json:"height"`
	Format    string            `json:"format"`
	Layout    string            `json:"layout"`
	Type      string            `json:"dtype"`
	Mean      []*float64        `json:"mean"`
	Std       []*float64        `json:"std"`
	Channels  int64             `json:"channels"`
	Quality   int64             `json:"quality"`
	Fill      int64             `json:"fill"`
	Origin    string            `json:"origin"`
	Statuses  string            `json:"statuses"`
	Tolerance *float64          `json:"mpp_tolerance"`
	Items     []json.RawMessage `json:"items"`
}

type itemJSON struct {
	place
	X *int64 `json:"x"`
	Y *int64 `json:"y"`
}

// ParseBatch reads the body of a batch. Unknown names are refused, so that a
// misspelt scale is not taken for level 0, and so are names given twice. An
// error names the item. null is as if the name were not there.
func ParseBatch(body []byte) (Batch, error) {
	var in batchJSON
	if err := strict(body, &in); err != nil {
		return Batch{}, err
	}
	b, err := in.settings()
	if err != nil {
		return Batch{}, err
	}
	base, err := in.place.over(BatchItem{})
	if err != nil {
		return Batch{}, err
	}
	switch {
	case len(in.Items) == 0:
		return Batch{}, malformed("no items")
	case len(in.Items) > MaxItems:
		return Batch{}, fmt.Errorf("%d items, at most %d: %w", len(in.Items), MaxItems, microtome.ErrLimit)
	}
	b.Items = make([]BatchItem, len(in.Items))
	for i, raw := range in.Items {
		if b.Items[i], err = parseItem(raw, base); err != nil {
			return Batch{}, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return b, nil
}

func parseItem(raw []byte, base BatchItem) (BatchItem, error) {
	var in itemJSON
	if err := strict(raw, &in); err != nil {
		return base, err
	}
	it, err := in.place.over(base)
	switch {
	case err != nil:
		return it, err
	case in.X == nil || in.Y == nil:
		return it, malformed("x and y are needed")
	case it.Slide == "":
		return it, malformed("no slide, here or at the batch")
	}
	it.L0X, it.L0Y = *in.X, *in.Y
	if max(it.L0X, -it.L0X, it.L0Y, -it.L0Y) > 1<<53 {
		return it, malformed("x or y is beyond 2^53")
	}
	return it, nil
}

// settings are what holds for the whole batch.
func (in *batchJSON) settings() (Batch, error) {
	b := Batch{Format: in.Format, Channels: int(in.Channels), Quality: int(in.Quality), Fill: uint8(in.Fill)}
	switch {
	case in.Width < 1 || in.Height < 1 || in.Width > maxSide || in.Height > maxSide:
		return b, malformed("width and height are needed, each 1 to %d", maxSide)
	case in.Channels != 0 && in.Channels != 1 && in.Channels != 3:
		return b, malformed("channels is neither 1 nor 3")
	case in.Quality < 0 || in.Quality > 100:
		return b, malformed("quality is not in 1 to 100")
	case in.Fill < 0 || in.Fill > 255:
		return b, malformed("fill is not in 0 to 255")
	case in.Tolerance != nil && !(*in.Tolerance > 0 && *in.Tolerance < 1):
		return b, malformed("mpp_tolerance is not above 0 and below 1")
	}
	b.Width, b.Height = int(in.Width), int(in.Height)
	if in.Tolerance != nil {
		b.Tolerance = *in.Tolerance
	}
	switch in.Layout {
	case "", "NHWC":
	case "NCHW":
		b.Planar = true
	default:
		return b, malformed("layout is neither NHWC nor NCHW")
	}
	switch in.Origin {
	case "", "slide":
	case "bounds":
		b.Bounds = true
	default:
		return b, malformed("origin is neither slide nor bounds")
	}
	switch in.Statuses {
	case "", "first":
	case "last":
		b.Last = true
	default:
		return b, malformed("statuses is neither first nor last")
	}
	switch b.Format {
	case "":
		b.Format = "raw"
	case "jpg":
		b.Format = "jpeg"
	case "raw", "npy", "jpeg", "png":
	default:
		return b, &microtome.Unsupported{Tag: "format", Value: strconv.Quote(shorten(b.Format))}
	}
	if b.Last && b.Format != "raw" {
		return b, malformed("statuses last is for raw, not for %s", b.Format)
	}
	if b.Planar && (b.Format == "jpeg" || b.Format == "png") {
		return b, malformed("layout NCHW is for arrays, not for %s", b.Format)
	}
	return b, in.floats(&b)
}

// over is base with what p says instead.
func (p *place) over(base BatchItem) (BatchItem, error) {
	it, scales := base, 0
	if p.Slide != nil {
		it.Slide = *p.Slide
	}
	if p.Level != nil {
		it.Scale, it.Value = ScaleLevel, float64(*p.Level)
		if *p.Level < 0 {
			return it, malformed("level is below 0")
		}
		scales++
	}
	for _, s := range []struct {
		kind ScaleKind
		name string
		v    *float64
	}{{ScaleMPP, "mpp", p.MPP}, {ScaleMagnification, "magnification", p.Magnification}, {ScaleDownsample, "downsample", p.Downsample}} {
		if s.v == nil {
			continue
		}
		if !(*s.v > 0) || math.IsInf(*s.v, 0) {
			return it, malformed("%s is not a number above 0", s.name)
		}
		it.Scale, it.Value = s.kind, *s.v
		scales++
	}
	if scales > 1 {
		return it, malformed("more than one of level, mpp, magnification, downsample")
	}
	for _, n := range []struct {
		to   *int
		from *int64
		name string
	}{{&it.C, p.C, "c"}, {&it.Z, p.Z, "z"}, {&it.T, p.T, "t"}} {
		if n.from == nil {
			continue
		}
		if *n.from < 0 || *n.from > math.MaxInt32 {
			return it, malformed("%s is not in 0 to 2^31", n.name)
		}
		*n.to = int(*n.from)
	}
	if p.Background != nil {
		var err error
		if it.Background, err = parseColor(*p.Background); err != nil {
			return it, err
		}
	}
	return it, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, microtome.ErrMalformed)...)
}
