package tiles

import (
	"sync/atomic"

	"github.com/microtome/microtome/cache"
)

type counters struct{ decodes, decodeErrors, encodes, previews atomic.Int64 }

// Stats are counts since the start.
type Stats struct {
	// Answers are encoded pictures for viewers, Regions those of regions; Pixels
	// are the decoded tiles of viewers, Patches those of regions.
	Answers, Regions, Pixels, Patches cache.Stats
	// Decodes are tiles (or parts of them) given to the decoder.
	Decodes, DecodeErrors, Encodes int64
	// Previews were given because a slide's upper levels were not there yet.
	Previews int64
	Pyramids PyramidStats
}

// PyramidStats are counts of built upper levels.
type PyramidStats struct {
	Built, Failed, Opened, Evicted int64
	Building                       bool
}

// Stats reads the counts. They are not of one instant.
func (r *Reader) Stats() Stats {
	st := Stats{
		Answers: r.answers.Stats(), Regions: r.regions.Stats(), Pixels: r.pixels.Stats(), Patches: r.patches.Stats(),
		Decodes: r.count.decodes.Load(), DecodeErrors: r.count.decodeErrors.Load(),
		Encodes: r.count.encodes.Load(), Previews: r.count.previews.Load(),
	}
	if r.pyramid != nil {
		st.Pyramids = r.pyramid.stats()
	}
	return st
}
