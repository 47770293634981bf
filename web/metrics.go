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
	routeStatus
	routeCount
)

var routeNames = [routeCount]string{
	"other", "gallery", "view", "asset", "dzi", "deepzoom", "slides", "slide", "tile",
	"region", "patches", "associated", "thumbnail", "healthz", "readyz", "metrics", "openapi",
	"status",
}

func (r routeID) String() string { return routeNames[r] }

// statuses are the label values of status; whatever else is "other".
var statuses = [...]int{200, 204, 303, 304, 308, 400, 401, 403, 404, 405, 413, 414, 415, 422, 499, 500, 502, 503}

// metrics holds the counters of web, and a registry of its own for /metrics.
type metrics struct {
	page     http.Handler
	inFlight atomic.Int64
	requests [routeCount][len(statuses) + 1]atomic.Int64
	sent     [routeCount]atomic.Int64 // bytes of bodies
	seconds  [routeCount]prometheus.Observer
	answers  [len(madeNames) * 2]atomic.Int64 // miss, hit of each
	made     [len(madeNames)]latency
	items    [2]atomic.Int64 // of batches: those with pixels, those without
}

func newMetrics(o Options) *metrics {
	m := &metrics{}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "microtome_http_request_seconds", Help: "Time to answer, by route.",
		Buckets: []float64{.0005, .002, .005, .02, .05, .2, .5, 2, 10}}, []string{"route"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "microtome_build_info", Help: "1; the build, what decodes JPEG, and whether exactly, in its labels.",
		ConstLabels: prometheus.Labels{"version": o.Version, "decoder": o.Decoder, "exact": strconv.FormatBool(o.Exact)}})
	build.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(seconds, build, webCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newStatsCollector(o))
	for i := range routeCount {
		m.seconds[i] = seconds.WithLabelValues(i.String())
	}
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// done counts an answered request.
func (m *metrics) done(x *exchange, took time.Duration) {
	m.inFlight.Add(-1)
	m.requests[x.route][statusIndex(x.status)].Add(1)
	m.seconds[x.route].Observe(took.Seconds())
	m.sent[x.route].Add(x.sent)
	if x.made > 0 {
		m.answers[x.made-1].Add(1)
		m.made[(x.made-1)/2].add(took)
	}
}

// patches counts the items of a batch.
func (m *metrics) patches(n, failed int) {
	m.items[0].Add(int64(n - failed))
	m.items[1].Add(int64(failed))
}

func statusIndex(status int) int {
	for i, s := range statuses {
		if s == status {
			return i
		}
	}
	return len(statuses)
}

// statusName is the label of an index of statuses.
func statusName(i int) string {
	if i < len(statuses) {
		return strconv.Itoa(statuses[i])
	}
	return "other"
}

// The numbers that web itself counts.
var (
	descRequests = prometheus.NewDesc("microtome_http_requests_total", "Requests by route and status.", []string{"route", "status"}, nil)
	descInFlight = prometheus.NewDesc("microtome_http_requests_in_flight", "Requests being answered.", nil, nil)
	descSent     = prometheus.NewDesc("microtome_http_sent_bytes_total", "Bytes of answers' bodies, by route.", []string{"route"}, nil)
	descAnswers  = prometheus.NewDesc("microtome_pixel_answers_total", "Pixel answers by how they were made.", []string{"made", "cache"}, nil)
	descItems    = prometheus.NewDesc("microtome_patch_items_total", "Patches of batches, by whether they have pixels.", []string{"outcome"}, nil)
	descMade     = prometheus.NewDesc("microtome_pixel_answer_seconds", "Time to a pixel answer, by how it was made.", []string{"made"}, nil)
)

// webCollector reads the counts of web itself when asked.
type webCollector struct{ m *metrics }

// Describe implements prometheus.Collector.
func (c webCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{descRequests, descInFlight, descSent, descAnswers, descItems, descMade} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Of routes and statuses only the pairs
// that occurred are told.
func (c webCollector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	m := c.m
	ch <- prometheus.MustNewConstMetric(descInFlight, prometheus.GaugeValue, float64(m.inFlight.Load()))
	for route := range routeCount {
		for i := range m.requests[route] {
			if n := m.requests[route][i].Load(); n > 0 {
				count(descRequests, n, route.String(), statusName(i))
			}
		}
		count(descSent, m.sent[route].Load(), route.String())
	}
	count(descItems, m.items[0].Load(), "ok")
	count(descItems, m.items[1].Load(), "failed")
	for i, name := range madeNames {
		count(descAnswers, m.answers[2*i].Load(), name, "miss")
		count(descAnswers, m.answers[2*i+1].Load(), name, "hit")
		ch <- m.made[i].metric(descMade, name)
	}
}
