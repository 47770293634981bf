package web

import (
	"testing"
	"time"
)

func TestLatencyPercentiles(t *testing.T) {
	for _, c := range []struct {
		name     string
		times    []time.Duration
		p50, p99 float64
	}{
		{"one bucket", repeat(100, 300*time.Microsecond), .25, .495},
		{"the edge belongs to the lower bucket", repeat(10, time.Millisecond), .75, .995},
		{"half and half", append(repeat(50, 300*time.Microsecond), repeat(50, 15*time.Millisecond)...), .5, 19.8},
		{"a slow hundredth is not yet p99", append(repeat(99, 300*time.Microsecond), 4*time.Second), .253, .5},
		{"two slow hundredths are", append(repeat(98, 300*time.Microsecond), repeat(2, 4*time.Second)...), .255, 3500},
		{"beyond the last bucket", repeat(3, time.Minute), 10000, 10000},
	} {
		var l latency
		for _, took := range c.times {
			l.add(took)
		}
		if p50, p99 := *l.millis(.5), *l.millis(.99); p50 != c.p50 || p99 != c.p99 {
			t.Errorf("%s: p50 %v, p99 %v ms; want %v, %v", c.name, p50, p99, c.p50, c.p99)
		}
	}
	if got := new(latency).millis(.5); got != nil {
		t.Errorf("of nothing: %v", *got)
	}
}

func repeat(n int, d time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = d
	}
	return out
}
