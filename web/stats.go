package web

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/tiles"
)

// cacheNames are the caches of tiles: encoded answers for viewers, those of
// regions, viewers' decoded tiles, those of regions.
var cacheNames = [...]string{"answers", "regions", "pixels", "patches"}

// counts are what the packages below have counted, read at about one time.
type counts struct {
	library library.Stats
	tiles   tiles.Stats
	decode  microtome.DecodeStats
	caches  [len(cacheNames)]tiles.CacheStats // in the order of cacheNames
}

func readCounts(o Options) *counts {
	c := &counts{library: o.Library.Stats(), tiles: o.Reader.Stats()}
	if o.Decodes != nil {
		c.decode = o.Decodes()
	}
	t := &c.tiles
	c.caches = [...]tiles.CacheStats{t.Answers, t.Regions, t.Pixels, t.Patches}
	return c
}

// figure is one number of /metrics that a package below counts.
type figure struct {
	name, help   string // without microtome_
	label, value string // "": no label
	read         func(*counts) int64
}

// kind follows Prometheus's custom: what only grows is called a total.
func (f *figure) kind() prometheus.ValueType {
	if strings.HasSuffix(f.name, "_total") {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

var libraryFigures = []figure{
	{name: "library_open_slides", help: "Slides kept open.", read: func(c *counts) int64 { return int64(c.library.Open) }},
	{name: "library_known_slides", help: "Slide files in the catalogue.", read: func(c *counts) int64 { return int64(c.library.Known) }},
	{name: "library_scanning", help: "1 while the folders are read for the first time.", read: func(c *counts) int64 { return one(c.library.Scanning) }},
	{name: "library_opens_total", help: "Slides opened.", read: func(c *counts) int64 { return c.library.Opens }},
	{name: "library_open_failures_total", help: "Slides that could not be opened.", read: func(c *counts) int64 { return c.library.Failures }},
	{name: "library_checks_total", help: "Looks at an open slide's file.", read: func(c *counts) int64 { return c.library.Checks }},
	{name: "library_replaced_total", help: "Open slides given up because their file changed or went.", read: func(c *counts) int64 { return c.library.Replaced }},
	{name: "library_evicted_total", help: "Open slides given up for others.", read: func(c *counts) int64 { return c.library.Evicted }},
	{name: "library_scans_total", help: "Complete readings of all folders.", read: func(c *counts) int64 { return c.library.Scans }},
}

var tilesFigures = []figure{
	{name: "tiles_decodes_total", help: "Tiles, or parts of them, given to the decoder.", read: func(c *counts) int64 { return c.tiles.Decodes }},
	{name: "tiles_decode_errors_total", help: "Decodes that failed.", read: func(c *counts) int64 { return c.tiles.DecodeErrors }},
	{name: "tiles_encodes_total", help: "Pictures encoded.", read: func(c *counts) int64 { return c.tiles.Encodes }},
	{name: "tiles_previews_total", help: "Previews given because upper levels were not there yet.", read: func(c *counts) int64 { return c.tiles.Previews }},
	{name: "read_tiles_total", help: "Stored tiles read to be decoded.", read: func(c *counts) int64 { return c.tiles.Read.Tiles }},
	{name: "reads_total", help: "Reads of them: fewer where several lie near each other.", read: func(c *counts) int64 { return c.tiles.Read.Reads }},
	{name: "read_tile_bytes_total", help: "Bytes of those tiles.", read: func(c *counts) int64 { return c.tiles.Read.TileBytes }},
	{name: "read_bytes_total", help: "Bytes read for them, at most a tenth more.", read: func(c *counts) int64 { return c.tiles.Read.ReadBytes }},
	{name: "ahead_sent_total", help: "Regions loaded before they were asked for.", read: func(c *counts) int64 { return c.tiles.AheadSent }},
	{name: "ahead_used_total", help: "Of them, those that were asked for.", read: func(c *counts) int64 { return c.tiles.AheadUsed }},
	{name: "batches_making", help: "Batches of patches being made.", read: func(c *counts) int64 { return c.tiles.Batches }},
	{name: "batches_waiting", help: "Batches that wait for others.", read: func(c *counts) int64 { return c.tiles.BatchesWaiting }},
	{name: "making_bytes", help: "Memory of batches and large answers being made.", read: func(c *counts) int64 { return c.tiles.Making }},
	{name: "making_refused_total", help: "Batches and large answers refused since too many waited.", read: func(c *counts) int64 { return c.tiles.Busy }},
	{name: "pyramids_built_total", help: "Slides whose upper levels were built.", read: func(c *counts) int64 { return c.tiles.Pyramids.Built }},
	{name: "pyramids_failed_total", help: "Slides whose upper levels could not be built.", read: func(c *counts) int64 { return c.tiles.Pyramids.Failed }},
	{name: "pyramids_opened_total", help: "Built upper levels of an earlier run that were taken.", read: func(c *counts) int64 { return c.tiles.Pyramids.Opened }},
	{name: "pyramids_evicted_total", help: "Built upper levels given up for others.", read: func(c *counts) int64 { return c.tiles.Pyramids.Evicted }},
	{name: "pyramids_building", help: "1 while upper levels are being built.", read: func(c *counts) int64 { return one(c.tiles.Pyramids.Building) }},
}

var decodeFigures = []figure{
	{name: "decode_tiles_total", help: "Stored tiles decoded, by how much of them.", label: "how", value: "whole", read: func(c *counts) int64 { return c.decode.Full }},
	{name: "decode_tiles_total", label: "how", value: "partial", read: func(c *counts) int64 { return c.decode.Partial }},
	{name: "decode_tiles_total", label: "how", value: "reduced", read: func(c *counts) int64 { return c.decode.Reduced }},
	{name: "decode_crops_total", help: "Stored tiles cropped without decoding.", read: func(c *counts) int64 { return c.decode.Cropped }},
	{name: "decode_encodes_total", help: "Pictures encoded.", read: func(c *counts) int64 { return c.decode.Encoded }},
	{name: "decode_failures_total", help: "Tiles that could not be decoded, by why.", label: "why", value: "corrupt", read: func(c *counts) int64 { return c.decode.Corrupt }},
	{name: "decode_failures_total", label: "why", value: "limit", read: func(c *counts) int64 { return c.decode.Limited }},
	{name: "decode_refused_total", help: "Samplers' decodes refused because the queue was full.", read: func(c *counts) int64 { return c.decode.Busy }},
	{name: "decode_dropped_total", help: "Queued decodes dropped because nobody waited for them any more.", read: func(c *counts) int64 { return c.decode.Dropped }},
	{name: "decode_running", help: "Decodes and encodes that run.", read: func(c *counts) int64 { return int64(c.decode.Running) }},
	{name: "decode_waiting", help: "Length of the queue of decodes.", read: func(c *counts) int64 { return int64(c.decode.Waiting) }},
}

// cacheFigures are the same numbers of each cache.
func cacheFigures() []figure {
	var all []figure
	for i, name := range cacheNames {
		add := func(suffix, help string, read func(*tiles.CacheStats) int64) {
			all = append(all, figure{name: "cache_" + name + suffix, help: help, read: func(c *counts) int64 { return read(&c.caches[i]) }})
		}
		add("_hits_total", "Look-ups that found the "+name+".", func(s *tiles.CacheStats) int64 { return s.Hits })
		add("_misses_total", "Look-ups that did not.", func(s *tiles.CacheStats) int64 { return s.Misses })
		add("_joined_total", "Misses that waited for another's load.", func(s *tiles.CacheStats) int64 { return s.Joined })
		add("_loads_total", "Loads begun.", func(s *tiles.CacheStats) int64 { return s.Loads })
		add("_load_errors_total", "Loads that failed.", func(s *tiles.CacheStats) int64 { return s.Errors })
		add("_cancelled_total", "Loads that all waiters left.", func(s *tiles.CacheStats) int64 { return s.Cancelled })
		add("_evictions_total", "Entries given up for others.", func(s *tiles.CacheStats) int64 { return s.Evicted })
		add("_refused_total", "Entries too large to be kept.", func(s *tiles.CacheStats) int64 { return s.Refused })
		add("_bytes", "Bytes of "+name+" kept.", func(s *tiles.CacheStats) int64 { return s.Bytes })
		add("_budget_bytes", "Bytes of "+name+" that may be kept.", func(s *tiles.CacheStats) int64 { return s.MaxBytes })
		add("_items", "Entries kept.", func(s *tiles.CacheStats) int64 { return s.Items })
	}
	return all
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// statsCollector reads the counts of the packages below when asked.
type statsCollector struct {
	opt         Options
	figures     []figure
	descs       map[string]*prometheus.Desc // by figure.name
	unsupported *prometheus.Desc
	devices     deviceDescs
}

func newStatsCollector(o Options) *statsCollector {
	c := &statsCollector{opt: o, descs: map[string]*prometheus.Desc{}, devices: newDeviceDescs(), unsupported: prometheus.NewDesc(
		"microtome_decode_unsupported_total", "Tiles of a kind that is not decoded, by what they are.", []string{"reason"}, nil)}
	for _, list := range [...][]figure{libraryFigures, tilesFigures, decodeFigures, cacheFigures()} {
		c.figures = append(c.figures, list...)
	}
	for _, f := range c.figures {
		if c.descs[f.name] != nil {
			continue // another value of its label
		}
		var labels []string
		if f.label != "" {
			labels = []string{f.label}
		}
		c.descs[f.name] = prometheus.NewDesc("microtome_"+f.name, f.help, labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *statsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
	ch <- c.unsupported
	c.devices.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *statsCollector) Collect(ch chan<- prometheus.Metric) {
	now := readCounts(c.opt)
	for i := range c.figures {
		f := &c.figures[i]
		var values []string
		if f.label != "" {
			values = []string{f.value}
		}
		ch <- prometheus.MustNewConstMetric(c.descs[f.name], f.kind(), float64(f.read(now)), values...)
	}
	for i := range now.tiles.Devices {
		c.devices.collect(ch, &now.tiles.Devices[i])
	}
	for reason, n := range reasons(now.decode.Unsupported) {
		ch <- prometheus.MustNewConstMetric(c.unsupported, prometheus.CounterValue, float64(n), reason)
	}
}

// maxReason bounds a reason in bytes. The decoder bounds how many there are.
const maxReason = 80

// reasons makes of the decoder's reasons what may stand in a label and on a page.
func reasons(counted map[string]int64) map[string]int64 {
	out := make(map[string]int64, len(counted))
	for reason, n := range counted {
		out[strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "?")] += n
	}
	return out
}
