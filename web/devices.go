package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/microtome/microtome/tiles"
)

// deviceJSON tells of a GPU on the status page. The name of its key is the
// device's.
type deviceJSON struct {
	Decoder string `json:"decoder"`
	State   string `json:"state"`
	Why     string `json:"why,omitempty"`
	Decoded int64  `json:"decoded"`
	Beside  int64  `json:"beside"`
	ByCPU   int64  `json:"by_cpu"`
	Corrupt int64  `json:"corrupt"`
	Batches int64  `json:"batches"`
	Made    int64  `json:"made"`
	Checked int64  `json:"checked"`
	Waiting int    `json:"waiting"`
	Starts  int64  `json:"starts"`
	Strikes int64  `json:"strikes"`
	Arena   int64  `json:"arena_bytes"`
	Used    int64  `json:"used_bytes"`
	Slots   int64  `json:"slots"`
}

func statusOfDevice(d *tiles.DeviceStats) deviceJSON {
	return deviceJSON{
		Decoder: d.Decoder, State: d.State, Why: d.Why, Decoded: d.Decoded, Beside: d.Beside,
		ByCPU: total(d.Ineligible), Corrupt: d.Corrupt, Batches: d.Batches, Made: d.Made,
		Checked: d.Checked, Waiting: d.Waiting, Starts: d.Starts, Strikes: d.Strikes,
		Arena: d.ArenaBytes, Used: d.UsedBytes, Slots: d.Slots,
	}
}

// devices fills in the part of the status that tells of GPUs: nothing without one.
func (st *statusJSON) devices(list []tiles.DeviceStats) {
	if len(list) == 0 {
		return
	}
	st.Devices, st.ByCPU, st.Stages = map[string]deviceJSON{}, map[string]int64{}, map[string]int64{}
	for i := range list {
		d := &list[i]
		st.Devices[d.Name] = statusOfDevice(d)
		st.Caches[d.Name] = statusOfCache(&d.Kept)
		for stage, n := range d.Nanos {
			st.Stages[d.Name+": "+stage] = n
		}
		for reason, n := range reasons(d.Ineligible) {
			st.ByCPU[d.Name+": "+reason] = n
		}
	}
}

func total(counts map[string]int64) (n int64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// deviceFigure is one number of /metrics about each device.
type deviceFigure struct {
	name, help string
	read       func(*tiles.DeviceStats) int64
}

var deviceFigures = []deviceFigure{
	{"device_ready", "1 while the device works.", func(d *tiles.DeviceStats) int64 { return one(d.State == "ready") }},
	{"device_decoded_total", "Tiles that the device decoded.", func(d *tiles.DeviceStats) int64 { return d.Decoded }},
	{"device_beside_total", "Tiles that the CPU decoded for the device since it had much to do.", func(d *tiles.DeviceStats) int64 { return d.Beside }},
	{"device_corrupt_total", "Of the tiles that the CPU was given, those that are broken.", func(d *tiles.DeviceStats) int64 { return d.Corrupt }},
	{"device_batches_total", "Calls of the device's decoder.", func(d *tiles.DeviceStats) int64 { return d.Batches }},
	{"device_patches_total", "Patches that the device made.", func(d *tiles.DeviceStats) int64 { return d.Made }},
	{"device_checked_total", "Tiles decoded on the CPU too, and found equal.", func(d *tiles.DeviceStats) int64 { return d.Checked }},
	{"device_starts_total", "How often the device's worker was started.", func(d *tiles.DeviceStats) int64 { return d.Starts }},
	{"device_strikes_total", "How often it died.", func(d *tiles.DeviceStats) int64 { return d.Strikes }},
	{"device_waiting", "Tiles that wait for the device's decoder.", func(d *tiles.DeviceStats) int64 { return int64(d.Waiting) }},
	{"device_arena_bytes", "Device memory for tiles and batches.", func(d *tiles.DeviceStats) int64 { return d.ArenaBytes }},
	{"device_used_bytes", "What is taken of it, work in flight included.", func(d *tiles.DeviceStats) int64 { return d.UsedBytes }},
	{"device_slots", "Pieces of it that are taken.", func(d *tiles.DeviceStats) int64 { return d.Slots }},
	{"device_cache_hits_total", "Look-ups that found a tile on the device.", func(d *tiles.DeviceStats) int64 { return d.Kept.Hits }},
	{"device_cache_misses_total", "Look-ups that did not.", func(d *tiles.DeviceStats) int64 { return d.Kept.Misses }},
	{"device_cache_joined_total", "Misses that waited for another's load.", func(d *tiles.DeviceStats) int64 { return d.Kept.Joined }},
	{"device_cache_loads_total", "Loads begun.", func(d *tiles.DeviceStats) int64 { return d.Kept.Loads }},
	{"device_cache_load_errors_total", "Loads that failed.", func(d *tiles.DeviceStats) int64 { return d.Kept.Errors }},
	{"device_cache_cancelled_total", "Loads that all waiters left.", func(d *tiles.DeviceStats) int64 { return d.Kept.Cancelled }},
	{"device_cache_evictions_total", "Tiles of the device given up for others.", func(d *tiles.DeviceStats) int64 { return d.Kept.Evicted }},
	{"device_cache_refused_total", "Tiles too large to be kept.", func(d *tiles.DeviceStats) int64 { return d.Kept.Refused }},
	{"device_cache_bytes", "Bytes of tiles kept on the device.", func(d *tiles.DeviceStats) int64 { return d.Kept.Bytes }},
	{"device_cache_budget_bytes", "Bytes that may be kept.", func(d *tiles.DeviceStats) int64 { return d.Kept.MaxBytes }},
	{"device_cache_items", "Tiles kept.", func(d *tiles.DeviceStats) int64 { return d.Kept.Items }},
}

// deviceDescs describe the figures of devices, labelled with the device.
type deviceDescs struct {
	figures         []*prometheus.Desc
	byCPU, stageSum *prometheus.Desc
}

func newDeviceDescs() deviceDescs {
	var d deviceDescs
	for _, f := range deviceFigures {
		d.figures = append(d.figures, prometheus.NewDesc("microtome_"+f.name, f.help, []string{"device"}, nil))
	}
	d.byCPU = prometheus.NewDesc("microtome_device_by_cpu_total", "Tiles that the CPU decoded in the device's place, by reason.", []string{"device", "reason"}, nil)
	d.stageSum = prometheus.NewDesc("microtome_device_stage_nanoseconds_total", "Time of the worker's messages, by stage.", []string{"device", "stage"}, nil)
	return d
}

func (d deviceDescs) describe(ch chan<- *prometheus.Desc) {
	for _, f := range d.figures {
		ch <- f
	}
	ch <- d.byCPU
	ch <- d.stageSum
}

func (d deviceDescs) collect(ch chan<- prometheus.Metric, st *tiles.DeviceStats) {
	for i := range deviceFigures {
		f := figure{name: deviceFigures[i].name}
		ch <- prometheus.MustNewConstMetric(d.figures[i], f.kind(), float64(deviceFigures[i].read(st)), st.Name)
	}
	for reason, n := range reasons(st.Ineligible) {
		ch <- prometheus.MustNewConstMetric(d.byCPU, prometheus.CounterValue, float64(n), st.Name, reason)
	}
	for stage, n := range st.Nanos {
		ch <- prometheus.MustNewConstMetric(d.stageSum, prometheus.CounterValue, float64(n), st.Name, stage)
	}
}
