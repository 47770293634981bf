package web

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// latencyBounds are the upper ends of a latency's buckets, in seconds; what took
// longer is in a bucket beyond. They lie closer than those of the routes: the
// status page reads percentiles off them.
var latencyBounds = [...]float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}

// latency is a histogram of times. Adding to it costs two atomic operations.
type latency struct {
	buckets [len(latencyBounds) + 1]atomic.Uint64
	nanos   atomic.Int64
}

func (l *latency) add(took time.Duration) {
	i, s := 0, took.Seconds()
	for i < len(latencyBounds) && s > latencyBounds[i] {
		i++
	}
	l.buckets[i].Add(1)
	l.nanos.Add(int64(took))
}

// metric is the histogram for /metrics.
func (l *latency) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	upTo, sum := make(map[float64]uint64, len(latencyBounds)), uint64(0)
	for i, bound := range latencyBounds {
		sum += l.buckets[i].Load()
		upTo[bound] = sum
	}
	sum += l.buckets[len(latencyBounds)].Load()
	return prometheus.MustNewConstHistogram(desc, sum, time.Duration(l.nanos.Load()).Seconds(), upTo, labels...)
}

// millis estimates the time, in ms, below which the share q (0 to 1) of all
// times lies: linear within a bucket, and the last bound for what lies beyond
// it. nil: nothing was timed yet.
func (l *latency) millis(q float64) *float64 {
	var counts [len(latencyBounds) + 1]uint64
	total := uint64(0)
	for i := range counts {
		counts[i] = l.buckets[i].Load()
		total += counts[i]
	}
	if total == 0 {
		return nil
	}
	rank, below, low := q*float64(total), 0.0, 0.0
	for i, bound := range latencyBounds {
		n := float64(counts[i])
		if n > 0 && below+n >= rank {
			return rounded(1000 * (low + (bound-low)*(rank-below)/n))
		}
		below, low = below+n, bound
	}
	return rounded(1000 * low)
}

// rounded keeps three significant digits.
func rounded(v float64) *float64 {
	if v > 0 {
		unit := math.Pow(10, math.Floor(math.Log10(v))-2)
		v = math.Round(v/unit) * unit
		v = math.Round(v*1e6) / 1e6
	}
	return &v
}
