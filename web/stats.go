package web

import "github.com/prometheus/client_golang/prometheus"

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
	return c
}

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
}
