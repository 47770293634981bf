// Package bench measures how fast patches and tiles of a slide come, beside
// other readers and servers and the limit, in one run.
package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Row is what one engine did at one task.
type Row struct {
	Engine  string `json:"engine"`
	Version string `json:"version,omitempty"`
	Task    string `json:"task"`
	// Callers ask at once, on so many cores; 0 cores are all.
	Callers int `json:"callers"`
	Cores   int `json:"cores,omitempty"`
	// Unit is what is counted a second: "patches/s" or "tiles/s".
	Unit   string    `json:"unit"`
	Trials []float64 `json:"trials,omitempty"` // per second, in order
	Median float64   `json:"median,omitempty"`
	// Ratio is the median over that of the task's base, 0 without one.
	Ratio float64 `json:"ratio,omitempty"`
	// OfLimit is the median over the limit's at the same task and callers.
	OfLimit float64 `json:"of_limit,omitempty"`
	// Pixels is "equal" or what differs from ours, "" when not compared.
	Pixels string `json:"pixels,omitempty"`
	// Absent says why there is no figure.
	Absent string `json:"absent,omitempty"`
}

// Report is one run.
type Report struct {
	Machine  Machine  `json:"machine"`
	Slide    Facts    `json:"slide"`
	Protocol Protocol `json:"protocol"`
	Rows     []Row    `json:"rows"`
}

// Facts are what matters of the slide; its name is without a folder.
type Facts struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Format string `json:"format"`
	Width  int64  `json:"width"`
	Height int64  `json:"height"`
	Tile   [2]int `json:"tile"`
}

// Median of figures; 0 of none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// The engines that others are compared with.
const (
	Base  = "OpenSlide"
	Limit = "libjpeg-turbo, C loop"
	// StaticLimit is that of tiles sent as they are stored.
	StaticLimit = "nginx, static files"
)

// baseOf is the base's task that one is compared with: over HTTP, the same in
// process.
func baseOf(task string) string {
	switch task {
	case HTTPCold:
		return GridCold
	case HTTPWarm:
		return GridWarm
	}
	return task
}

// compare fills in the medians and the ratios: to the base's figure of the same
// task with one caller on one core, and to the limit's on as many cores.
func (r *Report) compare() {
	find := func(engine, task string, cores int) float64 {
		for i := range r.Rows {
			if x := &r.Rows[i]; x.Engine == engine && x.Task == task && x.Cores == cores {
				return x.Median
			}
		}
		return 0
	}
	for i := range r.Rows {
		r.Rows[i].Median = Median(r.Rows[i].Trials)
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		cores := 1
		if x.Cores == 0 {
			cores = 0
		}
		b := find(Base, baseOf(x.Task), cores)
		if b == 0 {
			b = find(Base, baseOf(x.Task), 1)
		}
		if b > 0 {
			x.Ratio = x.Median / b
		}
		limit := Limit
		if x.Task == ZoomStored {
			limit = StaticLimit
		}
		if l := find(limit, x.Task, x.Cores); l > 0 {
			x.OfLimit = x.Median / l
		}
	}
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %d x %d, tiles of %d x %d, %.0f MB\n%s\n%s\n\n", r.Slide.Name, r.Slide.Format, r.Slide.Width, r.Slide.Height,
		r.Slide.Tile[0], r.Slide.Tile[1], float64(r.Slide.Bytes)/1e6, r.Machine, r.Protocol)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "task\tengine\tcallers\tcores\tmedian\t\tx "+Base+" on 1 core\tof the limit\tpixels")
	for _, x := range r.Rows {
		if x.Absent != "" {
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t-\t%s\n", x.Task, x.Engine, x.Callers, cores(x.Cores), x.Absent)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%.0f\t%s\t%s\t%s\t%s\n", x.Task, x.Engine, x.Callers, cores(x.Cores), x.Median, x.Unit, ratio(x.Ratio), ratio(x.OfLimit), x.Pixels)
	}
	return t.Flush()
}

func cores(n int) string {
	if n == 0 {
		return "all"
	}
	return fmt.Sprint(n)
}

func ratio(f float64) string {
	if f == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", f)
}
