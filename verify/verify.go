// Package verify compares a slide as Microtome reads it with OpenSlide 4.0.1:
// properties, random regions of level 0, whole levels above it, associated
// images.
package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

// Options choose what is compared. The zero value is a good one, but for
// Python.
type Options struct {
	Python  string // an interpreter with openslide-python and openslide-bin
	Regions int    // random regions of level 0; 0 means 64
	Size    int    // their side in pixels; 0 means 512
	Seed    uint64 // where they lie
	// SkipLevels leaves out the whole levels, which take the longest.
	SkipLevels bool
	// Progress is told what is being compared, 0 to 1 of the whole.
	Progress func(what string, done float64)
}

// Part is the comparison of one thing.
type Part struct {
	What  string    `json:"what"`
	Diff  Histogram `json:"difference"`
	Error string    `json:"error,omitempty"`
}

// PropertyDiff is a property on which the two do not agree; a missing value is
// nil.
type PropertyDiff struct {
	Key    string  `json:"key"`
	Ours   *string `json:"ours"`
	Theirs *string `json:"openslide"`
}

// Report is what a comparison found.
type Report struct {
	Version    string         `json:"openslideVersion"`
	Properties int            `json:"propertiesCompared"`
	Differ     []PropertyDiff `json:"propertiesThatDiffer"`
	Parts      []Part         `json:"parts"`
}

// OK says that every property is equal and no pixel differs.
func (r *Report) OK() bool {
	for _, p := range r.Parts {
		if p.Error != "" || p.Diff.Max > 0 || p.Diff.Values == 0 {
			return false
		}
	}
	return len(r.Differ) == 0 && r.Properties > 0 && len(r.Parts) > 0
}

// Run compares. It fails when the reference is not OpenSlide 4.0.1, can't open
// the file, or shows nothing that could be compared; what differs is in the
// Report and no error.
func Run(ctx context.Context, path string, s microtome.Slide, r *tiles.Reader, o Options) (rep *Report, err error) {
	if o.Regions == 0 {
		o.Regions = 64
	}
	if o.Size == 0 {
		o.Size = 512
	}
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	ref, err := startReference(ctx, o.Python, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ref.close()) }()
	c := &comparison{ref: ref, slide: s, reader: r, o: o, report: &Report{Version: ref.Version}}
	if err := c.shape(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{c.properties, c.regions, c.levels, c.associated} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c.report, nil
}

type comparison struct {
	ref    *reference
	slide  microtome.Slide
	reader *tiles.Reader
	o      Options
	report *Report
	theirs []int // OpenSlide's number of each of our levels, -1: it has none
}

// shape pairs our levels with OpenSlide's by their size. It refuses a reference
// with nothing in it; a level that only one side has is a difference.
func (c *comparison) shape() error {
	if len(c.ref.Levels) == 0 {
		return errors.New("OpenSlide shows no level: nothing to compare")
	}
	levels := c.slide.Info().Levels
	c.theirs = make([]int, len(levels))
	next := 0
	for i, l := range levels {
		if l.Width <= 0 || l.Height <= 0 {
			return fmt.Errorf("level %d is empty", i)
		}
		c.theirs[i] = -1
		for j := next; j < len(c.ref.Levels); j++ {
			if c.ref.Levels[j] == [2]int64{l.Width, l.Height} {
				c.theirs[i], next = j, j+1
				break
			}
		}
	}
	if c.theirs[0] != 0 {
		return fmt.Errorf("level 0 is %dx%d here, %dx%d in OpenSlide",
			levels[0].Width, levels[0].Height, c.ref.Levels[0][0], c.ref.Levels[0][1])
	}
	if len(levels) != len(c.ref.Levels) {
		c.add(Part{What: "levels", Error: fmt.Sprintf("we serve %d, OpenSlide shows %d", len(levels), len(c.ref.Levels))})
	}
	return nil
}

func (c *comparison) properties(ctx context.Context) error {
	ours, err := c.slide.Properties(ctx)
	if err != nil {
		return fmt.Errorf("our properties: %w", err)
	}
	keys := map[string]bool{}
	for k := range ours {
		keys[k] = true
	}
	for k := range c.ref.Properties {
		keys[k] = true
	}
	c.report.Properties = len(keys)
	for k := range keys {
		a, inA := ours[k]
		b, inB := c.ref.Properties[k]
		if inA && inB && a == b {
			continue
		}
		d := PropertyDiff{Key: k}
		if inA {
			d.Ours = &a
		}
		if inB {
			d.Theirs = &b
		}
		c.report.Differ = append(c.report.Differ, d)
	}
	sort.Slice(c.report.Differ, func(i, j int) bool { return c.report.Differ[i].Key < c.report.Differ[j].Key })
	return nil
}

// regions compares random places of level 0, where every origin is exact.
func (c *comparison) regions(ctx context.Context) error {
	l := c.slide.Info().Levels[0]
	w, h := min(c.o.Size, int(l.Width)), min(c.o.Size, int(l.Height))
	rng := rand.New(rand.NewPCG(c.o.Seed, 1))
	part := Part{What: fmt.Sprintf("%d random regions of %dx%d at level 0", c.o.Regions, w, h)}
	for i := range c.o.Regions {
		c.o.Progress("regions", float64(i)/float64(c.o.Regions))
		x, y := rng.Int64N(l.Width-int64(w)+1), rng.Int64N(l.Height-int64(h)+1)
		_, theirs, err := c.ref.ask(request{Op: "region", X: x, Y: y, Width: w, Height: h})
		if err == nil {
			err = c.compare(ctx, &part.Diff, tiles.Region{L0X: x, L0Y: y, Width: w, Height: h}, theirs)
		}
		if err != nil {
			part.Error = fmt.Sprintf("at %d,%d: %v", x, y, err)
			break
		}
	}
	c.add(part)
	return ctx.Err()
}

// compare reads one region of ours and adds its difference to theirs.
func (c *comparison) compare(ctx context.Context, h *Histogram, q tiles.Region, theirs []byte) error {
	p, _, err := c.reader.RegionPixels(ctx, c.slide, q, tiles.PixelOptions{})
	if err != nil {
		return err
	}
	defer p.Release()
	return addPixels(h, p, theirs, c.background())
}

// addPixels compares whole images of one size.
func addPixels(h *Histogram, p microtome.Pixels, theirs []byte, bg microtome.RGB) error {
	pix, stride, ok := p.Host()
	if !ok {
		return errors.New("the pixels are not in host memory")
	}
	if len(theirs) != p.Width()*p.Height()*4 {
		return fmt.Errorf("we have %dx%d pixels, OpenSlide %d", p.Width(), p.Height(), len(theirs)/4)
	}
	row := p.Width() * 4
	for y := range p.Height() {
		h.add(pix[y*stride:y*stride+p.Width()*p.Channels()], p.Channels(), theirs[y*row:(y+1)*row], bg)
	}
	return nil
}

// background is the colour on which both sides are compared.
func (c *comparison) background() microtome.RGB {
	if bg := c.slide.Info().Background; bg != nil {
		return *bg
	}
	return microtome.RGB{R: 255, G: 255, B: 255}
}

func (c *comparison) add(p Part) {
	p.Diff.finish()
	c.report.Parts = append(c.report.Parts, p)
}
