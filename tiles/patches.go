package tiles

import (
	"context"
	"fmt"
	"sync"

	"github.com/microtome/microtome"
)

// Patch is one item of a batch: a region of a slide's plane, which must be held
// open by the caller until Patches returns.
type Patch struct {
	Slide   microtome.Slide
	Region  Region
	C, Z, T int
	// Background, when set, goes before the slide's and the Reader's.
	Background *microtome.RGB
}

// PatchOptions hold for all items of a batch.
type PatchOptions struct {
	// Channels is 1 or 3 samples a pixel for every item; 0 means 3, or 1 when
	// no item that can be answered has colours.
	Channels int
	Priority microtome.Priority
}

// PatchResult answers one Patch: exactly one of Pixels and Err is set.
type PatchResult struct {
	// Pixels are the caller's to release. They may be shared with others.
	Pixels microtome.Pixels
	// Answer tells how they were made; its Body is empty.
	Answer Answer
	Err    error
}

// Patches returns the pixels of many regions at once, in their order, and the
// number of samples that all of them have. An item fails alone, with what
// RegionPixels would say of it. The error is of the whole batch: ErrMalformed
// for options that make no sense, or ctx's when that ended first; no item has
// pixels then.
func (r *Reader) Patches(ctx context.Context, items []Patch, o PatchOptions) ([]PatchResult, int, error) {
	if o.Channels != 0 && o.Channels != 1 && o.Channels != 3 {
		return nil, 0, fmt.Errorf("%d channels: %w", o.Channels, microtome.ErrMalformed)
	}
	results := make([]PatchResult, len(items))
	plans := make([]*regionPlan, len(items))
	channels := 1
	for i := range items {
		it := &items[i]
		po := PixelOptions{C: it.C, Z: it.Z, T: it.T, Background: it.Background, Priority: o.Priority}
		plans[i], results[i].Err = r.planRegion(it.Slide, it.Region, &po)
		if results[i].Err == nil {
			channels = max(channels, plans[i].req.p.channels())
		}
	}
	if o.Channels != 0 {
		channels = o.Channels
	}
	var work sync.WaitGroup
	for i, plan := range plans {
		if plan == nil {
			continue
		}
		work.Go(func() {
			px, a, err := plan.pixels(ctx)
			if err != nil {
				results[i].Err = err
				return
			}
			results[i].Pixels, results[i].Answer = px, *a
		})
	}
	work.Wait()
	return results, channels, ctx.Err()
}
