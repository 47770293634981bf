package web

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// routeID names a route in the log and the metrics.
type routeID uint8

const (
	routeOther routeID = iota
	routeGallery
	routeView
	routeAsset
	routeDZI
	routeDeepZoom
	routeSlides
	routeSlide
	routeTile
	routeRegion
	routePatches
	routeAssociated
	routeThumbnail
	routeHealth
	routeReady
	routeMetrics
	routeOpenAPI
	routeCount
)

var routeNames = [routeCount]string{
	"other", "gallery", "view", "asset", "dzi", "deepzoom", "slides", "slide", "tile",
	"region", "patches", "associated", "thumbnail", "healthz", "readyz", "metrics", "openapi",
}

func (r routeID) String() string { return routeNames[r] }

// statuses are the label values of status; whatever else is "other".
var statuses = [...]int{200, 204, 303, 304, 308, 400, 401, 403, 404, 405, 413, 414, 415, 422, 499, 500, 502, 503}

// metrics holds the counters of web in a registry of its own, resolved once so
// that a request costs no look-up.
type metrics struct {
	registry *prometheus.Registry
	page     http.Handler
	inFlight prometheus.Gauge
	byLabel  *prometheus.CounterVec
	requests [routeCount][len(statuses) + 1]atomic.Pointer[prometheus.Counter]
	seconds  [routeCount]prometheus.Observer
	bytes    [routeCount]prometheus.Counter
	answers  [len(madeNames) * 2]prometheus.Counter
	items    [2]prometheus.Counter // of batches: those with pixels, those without
}

func newMetrics(o Options) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "microtome_http_requests_total", Help: "Requests by route and status."}, []string{"route", "status"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "microtome_http_request_seconds", Help: "Time to answer, by route.",
		Buckets: []float64{.0005, .002, .005, .02, .05, .2, .5, 2, 10}}, []string{"route"})
	sent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "microtome_http_sent_bytes_total", Help: "Bytes of answers' bodies, by route."}, []string{"route"})
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "microtome_pixel_answers_total", Help: "Pixel answers by how they were made."}, []string{"made", "cache"})
	items := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "microtome_patch_items_total", Help: "Patches of batches, by whether they have pixels."}, []string{"outcome"})
	m.registry.MustRegister(items)
	m.items = [2]prometheus.Counter{items.WithLabelValues("ok"), items.WithLabelValues("failed")}
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "microtome_http_requests_in_flight", Help: "Requests being answered."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "microtome_build_info", Help: "1; the build and what decodes JPEG in its labels.",
		ConstLabels: prometheus.Labels{"version": o.Version, "decoder": o.Decoder}})
	build.Set(1)
	m.registry.MustRegister(requests, seconds, sent, answers, m.inFlight, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newStatsCollector(o))
	for i := range routeCount {
		name := i.String()
		m.seconds[i] = seconds.WithLabelValues(name)
		m.bytes[i] = sent.WithLabelValues(name)
	}
	for i, name := range madeNames {
		m.answers[2*i] = answers.WithLabelValues(name, "miss")
		m.answers[2*i+1] = answers.WithLabelValues(name, "hit")
	}
	m.byLabel = requests
	m.page = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// done counts an answered request.
func (m *metrics) done(x *exchange, took time.Duration) {
	m.inFlight.Dec()
	m.request(x.route, x.status).Inc()
	m.seconds[x.route].Observe(took.Seconds())
	if x.sent > 0 {
		m.bytes[x.route].Add(float64(x.sent))
	}
	if x.made > 0 {
		m.answers[x.made-1].Inc()
	}
}

// patches counts the items of a batch.
func (m *metrics) patches(n, failed int) {
	m.items[0].Add(float64(n - failed))
	m.items[1].Add(float64(failed))
}

// request finds the counter of a route and a status; only pairs that occurred
// have one.
func (m *metrics) request(route routeID, status int) prometheus.Counter {
	i := statusIndex(status)
	cell := &m.requests[route][i]
	if c := cell.Load(); c != nil {
		return *c
	}
	label := "other"
	if i < len(statuses) {
		label = strconv.Itoa(status)
	}
	c := m.byLabel.WithLabelValues(route.String(), label)
	cell.Store(&c)
	return c
}

func statusIndex(status int) int {
	for i, s := range statuses {
		if s == status {
			return i
		}
	}
	return len(statuses)
}

// stat is one number that a package below counts.
type stat struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// statsCollector reads the counts of the packages below when asked.
type statsCollector struct {
	opt   Options
	stats map[string]stat
}

func newStatsCollector(o Options) *statsCollector {
	c := &statsCollector{opt: o, stats: map[string]stat{}}
	gauge := func(name, help string) { c.add(name, help, prometheus.GaugeValue) }
	counter := func(name, help string) { c.add(name, help, prometheus.CounterValue) }
	gauge("library_open_slides", "Slides kept open.")
	gauge("library_known_slides", "Slide files in the catalogue.")
	counter("library_opens_total", "Slides opened.")
	counter("library_open_failures_total", "Slides that could not be opened.")
	counter("library_checks_total", "Looks at an open slide's file.")
	counter("library_replaced_total", "Open slides given up because their file changed or went.")
	counter("library_evicted_total", "Open slides given up for others.")
	counter("library_scans_total", "Complete readings of all folders.")
	counter("tiles_decodes_total", "Tiles, or parts of them, given to the decoder.")
	counter("tiles_decode_errors_total", "Decodes that failed.")
	counter("tiles_encodes_total", "Pictures encoded.")
	counter("tiles_previews_total", "Previews given because upper levels were not there yet.")
	counter("pyramids_built_total", "Slides whose upper levels were built.")
	counter("pyramids_failed_total", "Slides whose upper levels could not be built.")
	counter("pyramids_evicted_total", "Built upper levels given up for others.")
	gauge("pyramids_building", "1 while upper levels are being built.")
	for _, cache := range cacheNames {
		counter("cache_"+cache+"_hits_total", "Look-ups that found the "+cache+".")
		counter("cache_"+cache+"_misses_total", "Look-ups that did not.")
		counter("cache_"+cache+"_evictions_total", "Entries given up for others.")
		gauge("cache_"+cache+"_bytes", "Bytes of "+cache+" kept.")
	}
	return c
}

// cacheNames are the caches of tiles: encoded answers for viewers, those of
// regions, viewers' decoded tiles, those of regions.
var cacheNames = [...]string{"answers", "regions", "pixels", "patches"}

func (c *statsCollector) add(name, help string, kind prometheus.ValueType) {
	c.stats[name] = stat{prometheus.NewDesc("microtome_"+name, help, nil, nil), kind}
}

// Describe implements prometheus.Collector.
func (c *statsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.stats {
		ch <- s.desc
	}
}

// Collect implements prometheus.Collector.
func (c *statsCollector) Collect(ch chan<- prometheus.Metric) {
	put := func(name string, v int64) {
		s := c.stats[name]
		ch <- prometheus.MustNewConstMetric(s.desc, s.kind, float64(v))
	}
	l := c.opt.Library.Stats()
	put("library_open_slides", int64(l.Open))
	put("library_known_slides", int64(l.Known))
	put("library_opens_total", l.Opens)
	put("library_open_failures_total", l.Failures)
	put("library_checks_total", l.Checks)
	put("library_replaced_total", l.Replaced)
	put("library_evicted_total", l.Evicted)
	put("library_scans_total", l.Scans)
	t := c.opt.Reader.Stats()
	put("tiles_decodes_total", t.Decodes)
	put("tiles_decode_errors_total", t.DecodeErrors)
	put("tiles_encodes_total", t.Encodes)
	put("tiles_previews_total", t.Previews)
	put("pyramids_built_total", t.Pyramids.Built)
	put("pyramids_failed_total", t.Pyramids.Failed)
	put("pyramids_evicted_total", t.Pyramids.Evicted)
	building := int64(0)
	if t.Pyramids.Building {
		building = 1
	}
	put("pyramids_building", building)
	kept := func(name string, hits, misses, evicted, bytes int64) {
		put("cache_"+name+"_hits_total", hits)
		put("cache_"+name+"_misses_total", misses)
		put("cache_"+name+"_evictions_total", evicted)
		put("cache_"+name+"_bytes", bytes)
	}
	kept("answers", t.Answers.Hits, t.Answers.Misses, t.Answers.Evicted, t.Answers.Bytes)
	kept("regions", t.Regions.Hits, t.Regions.Misses, t.Regions.Evicted, t.Regions.Bytes)
	kept("pixels", t.Pixels.Hits, t.Pixels.Misses, t.Pixels.Evicted, t.Pixels.Bytes)
	kept("patches", t.Patches.Hits, t.Patches.Misses, t.Patches.Evicted, t.Patches.Bytes)
}
