package tiles

import (
	"sync/atomic"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

type counters struct {
	decodes, decodeErrors, encodes, previews atomic.Int64
	readTiles, reads, tileBytes, readBytes   atomic.Int64
}

func (c *counters) read(n microtome.ReadCount) {
	c.readTiles.Add(n.Tiles)
	c.reads.Add(n.Reads)
	c.tileBytes.Add(n.TileBytes)
	c.readBytes.Add(n.ReadBytes)
}

// CacheStats are the counts of one cache.
type CacheStats = cache.Stats

// Stats are counts since the start.
type Stats struct {
	// Answers are encoded pictures for viewers, Regions those of regions; Pixels
	// are the decoded tiles of viewers, Patches those of regions.
	Answers, Regions, Pixels, Patches CacheStats
	// Decodes are tiles (or parts of them) given to the decoder.
	Decodes, DecodeErrors, Encodes int64
	// Previews were given because a slide's upper levels were not there yet.
	Previews int64
	// Read says how stored tiles were read to be decoded. Reads below Tiles are
	// reads of several at once; ReadBytes is never above 1.1 TileBytes.
	Read microtome.ReadCount
	// AheadSent are regions whose tiles were loaded before they were asked for,
	// since a caller seemed to scan; AheadUsed of them were asked for.
	AheadSent, AheadUsed int64
	// Batches are being made now, BatchesWaiting wait for others; Making is the
	// memory that batches and large answers take now, in bytes. Busy were
	// refused since too many waited.
	Batches, BatchesWaiting, Making, Busy int64
	Pyramids                              PyramidStats
	Devices                               []DeviceStats
}

// DeviceStats are the counts of a device, and of the tiles that it keeps.
type DeviceStats struct {
	microtome.DeviceStats
	Kept CacheStats
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
		Read: microtome.ReadCount{
			Tiles: r.count.readTiles.Load(), Reads: r.count.reads.Load(),
			TileBytes: r.count.tileBytes.Load(), ReadBytes: r.count.readBytes.Load(),
		},
		Batches: r.batches.Used(), BatchesWaiting: r.batches.Waiting(),
		Making:    r.making.Used(),
		Busy:      r.batches.refused.Load() + r.making.refused.Load(),
		AheadSent: r.ahead.sent.Load(), AheadUsed: r.ahead.used.Load(),
		Encodes: r.count.encodes.Load(), Previews: r.count.previews.Load(),
	}
	for _, d := range r.devices {
		st.Devices = append(st.Devices, DeviceStats{d.Stats(), d.kept.Stats()})
	}
	if r.pyramid != nil {
		st.Pyramids = r.pyramid.stats()
	}
	return st
}
