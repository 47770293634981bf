package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

// DeviceSettings are how a device is opened for a row of the table.
type DeviceSettings struct {
	Lanes     int  `json:"lanes"`
	Batch     int  `json:"batch"`
	Beside    bool `json:"beside"`    // cores decode too
	Unchecked bool `json:"unchecked"` // without the walk over every stream
	InProcess bool `json:"in_process"`
	Blocking  bool `json:"blocking"` // the worker's threads sleep while they wait
	Cores     int  `json:"cores"`    // of callers, at once; 0: the default
	Profile   bool `json:"profile"`  // each stage ends before the next begins
}

func (s DeviceSettings) String() string {
	text := "defaults"
	if s.Lanes > 0 {
		text = fmt.Sprintf("%d lanes of %d", s.Lanes, s.Batch)
	}
	if s.Beside {
		text += ", cores beside"
	}
	if s.Cores > 0 {
		text += fmt.Sprintf(", %d cores", s.Cores)
	}
	if s.Unchecked {
		text += ", unchecked"
	}
	if s.Blocking {
		text += ", blocking"
	}
	if s.InProcess {
		text += ", in process"
	}
	if s.Profile {
		text += ", profiled"
	}
	return text
}

// DeviceOptions say what RunDevice measures.
type DeviceOptions struct {
	Protocol Protocol
	Machine  Machine
	Slides   []microtome.Slide // the first is the grid's; patches at random come from all
	Names    []string
	CPU      microtome.Decoder
	Encoder  microtome.Encoder
	// Open opens the device; a row's settings are 0 where the default is meant.
	Open func(DeviceSettings) (microtome.Device, error)
	// Bare is the vendor's decoder in a C loop, in tiles a second.
	Bare     func(s DeviceSettings, tiles []microtome.Tile, span time.Duration) (float64, error)
	Settings []DeviceSettings // of the grid's sweep
	Random   int              // patches
	Exact    int              // tiles that are held against the CPU's; negative: all
	// Python runs the peers over the slide at Path; "" leaves them out.
	Python, Path string
	Progress     func(string)
}

// DeviceRow is one figure.
type DeviceRow struct {
	Task     string    `json:"task"`
	Settings string    `json:"settings"`
	Rates    []float64 `json:"rates"` // a second, each trial's
	Unit     string    `json:"unit"`
	Device   int64     `json:"by_device"` // tiles decoded, all trials
	CPU      int64     `json:"by_cpu"`
	Note     string    `json:"note,omitempty"`
	// Nanos is where the time of the worker's messages went, by stage.
	Nanos map[string]int64 `json:"nanos,omitempty"`

	ahead bool
}

// DeviceReport is a run.
type DeviceReport struct {
	Machine Machine     `json:"machine"`
	Device  string      `json:"device"`
	Slides  []string    `json:"slides"`
	Rows    []DeviceRow `json:"rows"`
}

type deviceRun struct {
	o      DeviceOptions
	report *DeviceReport
	grid   []tiles.Patch
}

// RunDevice measures a device over slides. The error is of what nothing can be
// measured without; a row that failed says so.
func RunDevice(ctx context.Context, o DeviceOptions) (*DeviceReport, error) {
	r := &deviceRun{o: o, report: &DeviceReport{Machine: o.Machine, Slides: o.Names}}
	l0 := o.Slides[0].Info().Levels[0]
	at, err := o.Protocol.gridOf(l0.Width, l0.Height)
	if err != nil {
		return nil, err
	}
	for _, a := range at {
		r.grid = append(r.grid, patchAt(o.Slides[0], a.X, a.Y, o.Protocol.Patch))
	}
	if err := r.peers(ctx); err != nil {
		return nil, err
	}
	bare, err := r.bare(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range o.Settings {
		if err := r.sweep(ctx, s); err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
	}
	if err := r.rest(ctx); err != nil {
		return nil, err
	}
	r.limit(bare)
	return r.report, nil
}

func patchAt(s microtome.Slide, x, y int64, side int) tiles.Patch {
	return tiles.Patch{Slide: s, Region: tiles.Region{L0X: x, L0Y: y, Width: side, Height: side}}
}

func (r *deviceRun) say(format string, args ...any) {
	if r.o.Progress != nil {
		r.o.Progress(fmt.Sprintf(format, args...))
	}
}

// bare is the limit's rows, by settings.
func (r *deviceRun) bare(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	if r.o.Bare == nil {
		return out, nil
	}
	var list []microtome.Tile
	s, side := r.o.Slides[0], r.o.Protocol.Patch
	g := s.Info().Levels[0]
	for i := range 24 * 24 {
		p := r.grid[i*len(r.grid)/(24*24)].Region
		t, err := s.ReadTile(ctx, 0, 0, (int(p.L0X)+side/2)/g.TileWidth, (int(p.L0Y)+side/2)/g.TileHeight)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	for _, set := range r.o.Settings {
		key := fmt.Sprint(set.Lanes, set.Batch)
		if _, done := out[key]; done {
			continue
		}
		row := DeviceRow{Task: "bare decoder, C loop", Settings: DeviceSettings{Lanes: set.Lanes, Batch: set.Batch}.String(), Unit: "tiles"}
		for range 3 {
			rate, err := r.o.Bare(set, list, 300*time.Millisecond)
			if err != nil {
				return nil, err
			}
			row.Rates = append(row.Rates, rate)
		}
		out[key] = Median(row.Rates)
		r.report.Rows = append(r.report.Rows, row)
	}
	return out, nil
}

// limit notes what share of the bare decoder the best of the grid's rows has.
func (r *deviceRun) limit(bare map[string]float64) {
	best := 0.0
	for _, v := range bare {
		best = max(best, v)
	}
	for i := range r.report.Rows {
		row := &r.report.Rows[i]
		if best > 0 && row.Device > 0 && row.CPU == 0 && len(row.Rates) > 0 && row.Unit == "patches" {
			perPatch := float64(row.Device) / float64(len(row.Rates)*r.o.Protocol.Grid*r.o.Protocol.Grid)
			if row.Task[:4] == "grid" {
				row.Note = fmt.Sprintf("%.2f tiles a patch, %.2f of the bare decoder", perPatch, Median(row.Rates)*perPatch/best)
			}
		}
	}
}

// reader is a new reader over a device: nothing is kept yet.
func (r *deviceRun) reader(d microtome.Device) (*tiles.Reader, error) {
	o := tiles.Options{Decoder: r.o.CPU, Encoder: r.o.Encoder, PixelBytes: 64 << 20}
	if d != nil {
		o.Devices = []microtome.Device{d}
	}
	return tiles.New(o)
}

// asked makes patches in batches by callers at once, as arrays on the device.
func asked(ctx context.Context, rd *tiles.Reader, list []tiles.Patch, batch, callers int, ahead bool) error {
	var next atomic.Int64
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for errs[i] == nil {
				to := int(next.Add(int64(batch)))
				if to-batch >= len(list) {
					return
				}
				a, res, _, err := rd.DevicePatches(ctx, list[to-batch:min(to, len(list))], tiles.DeviceOptions{PatchOptions: tiles.PatchOptions{Channels: 3, Priority: microtome.PrioritySampler}, NoAhead: !ahead})
				if err != nil {
					errs[i] = err
					return
				}
				a.Release()
				for k := range res {
					if res[k].Err != nil {
						errs[i] = res[k].Err
					}
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func outsideDevice(st microtome.DeviceStats) (n int64) {
	n = st.Beside
	for _, v := range st.Ineligible {
		n += v
	}
	return n
}

// trials runs one task over and over with an empty arena, after a round that
// isn't counted.
func (r *deviceRun) trials(ctx context.Context, d microtome.Device, row DeviceRow, list []tiles.Patch, batch, callers int) error {
	var before microtome.DeviceStats
	for t := range r.o.Protocol.Trials + 1 {
		rd, err := r.reader(d)
		if err != nil {
			return err
		}
		if t == 1 {
			before = d.Stats()
		}
		runtime.GC()
		start := time.Now()
		err = asked(ctx, rd, list, batch, callers, row.ahead)
		took := time.Since(start)
		if err = errors.Join(err, rd.Close()); err != nil {
			return fmt.Errorf("%s: %w", row.Task, err)
		}
		if t > 0 {
			row.Rates = append(row.Rates, float64(len(list))/took.Seconds())
		}
	}
	after := d.Stats()
	row.Unit = "patches"
	row.Device, row.CPU = after.Decoded-before.Decoded, outsideDevice(after)-outsideDevice(before)
	row.Nanos = map[string]int64{}
	for stage, n := range after.Nanos {
		row.Nanos[stage] = n - before.Nanos[stage]
	}
	r.report.Rows = append(r.report.Rows, row)
	return nil
}

// sweep measures the grid with one of the settings.
func (r *deviceRun) sweep(ctx context.Context, s DeviceSettings) error {
	r.say("grid, %v", s)
	d, err := r.o.Open(s)
	if err != nil {
		return err
	}
	r.report.Device = d.Stats().Name + ", " + d.Stats().Decoder
	for _, c := range [][2]int{{64, 9}, {32, 18}, {144, 4}, {576, 1}} {
		row := DeviceRow{Task: fmt.Sprintf("grid, cold, batches of %d by %d callers", c[0], c[1]), Settings: s.String()}
		if err := r.trials(ctx, d, row, r.grid, c[0], c[1]); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	return d.Close()
}

// rest measures what has one setting: the defaults.
func (r *deviceRun) rest(ctx context.Context) error {
	for _, s := range []DeviceSettings{{}, {Beside: true}} {
		d, err := r.o.Open(s)
		if err != nil {
			return err
		}
		err = r.random(ctx, d, s)
		if err == nil && !s.Beside {
			err = errors.Join(r.single(ctx, d, s), r.warm(ctx, d, s), r.exact(ctx, d))
		}
		if err = errors.Join(err, d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// single asks for one patch after the other.
func (r *deviceRun) single(ctx context.Context, d microtome.Device, s DeviceSettings) error {
	r.say("one patch a call")
	row := DeviceRow{Task: "grid, cold, one patch a call, one caller, nothing read ahead", Settings: s.String()}
	if err := r.trials(ctx, d, row, r.grid, 1, 1); err != nil {
		return err
	}
	row.Task, row.ahead = "grid, cold, one patch a call, one caller, reading ahead", true
	return r.trials(ctx, d, row, r.grid, 1, 1)
}

// warm asks for patches whose tiles are in the arena.
func (r *deviceRun) warm(ctx context.Context, d microtome.Device, s DeviceSettings) error {
	r.say("warm")
	rd, err := r.reader(d)
	if err != nil {
		return err
	}
	if err := asked(ctx, rd, r.grid, 64, 4, false); err != nil {
		return errors.Join(err, rd.Close())
	}
	rng := rand.New(rand.NewPCG(r.o.Protocol.Seed, 3))
	var list []tiles.Patch
	for range 400 * 256 {
		list = append(list, r.grid[rng.IntN(len(r.grid))])
	}
	for _, callers := range []int{1, 4} {
		row := DeviceRow{Task: fmt.Sprintf("grid, warm, batches of 256 by %d callers", callers), Settings: s.String(), Unit: "patches"}
		for range r.o.Protocol.Trials {
			start := time.Now()
			err := asked(ctx, rd, list, 256, callers, false)
			if errors.Is(err, microtome.ErrLimit) { // a device with little memory
				row.Note, _, _ = strings.Cut(err.Error(), "\n")
				break
			}
			if err != nil {
				return errors.Join(err, rd.Close())
			}
			row.Rates = append(row.Rates, float64(len(list))/time.Since(start).Seconds())
		}
		r.report.Rows = append(r.report.Rows, row)
	}
	return rd.Close()
}

// random asks for patches anywhere on all slides, none seen before.
func (r *deviceRun) random(ctx context.Context, d microtome.Device, s DeviceSettings) error {
	r.say("at random")
	rng := rand.New(rand.NewPCG(r.o.Protocol.Seed, 4))
	side := r.o.Protocol.Patch
	list := make([]tiles.Patch, r.o.Random)
	for i := range list {
		slide := r.o.Slides[rng.IntN(len(r.o.Slides))]
		l0 := slide.Info().Levels[0]
		list[i] = patchAt(slide, rng.Int64N(l0.Width-int64(side)), rng.Int64N(l0.Height-int64(side)), side)
	}
	row := DeviceRow{Task: fmt.Sprintf("random over %d slides, cold, batches of 256 by 4 callers", len(r.o.Slides)), Settings: s.String()}
	return r.trials(ctx, d, row, list, 256, 4)
}

// exact holds tiles of the first slide's levels against the CPU's pixels.
func (r *deviceRun) exact(ctx context.Context, d microtome.Device) (err error) {
	s := r.o.Slides[0]
	plain, err := r.reader(nil)
	if err != nil {
		return err
	}
	rd, err := r.reader(d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.Close(), rd.Close()) }()
	before := d.Stats()
	done, differ := 0, 0
	g := s.Info().Levels[0]
	total := g.Cols * g.Rows
	step := 1
	if r.o.Exact > 0 {
		step = max(1, total/r.o.Exact)
	}
	var batch []tiles.Patch
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		n, err := compareBatch(ctx, plain, rd, batch)
		done, differ, batch = done+len(batch), differ+n, batch[:0]
		r.say("exact: %d of %d", done, total/step)
		return err
	}
	for i := 0; i < total; i += step {
		at := g.TileRect(i%g.Cols, i/g.Cols)
		p := tiles.Patch{Slide: s, Region: tiles.Region{L0X: int64(at.Min.X), L0Y: int64(at.Min.Y), Width: g.TileWidth, Height: g.TileHeight}}
		if batch = append(batch, p); len(batch) == 256 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	after := d.Stats()
	r.report.Rows = append(r.report.Rows, DeviceRow{
		Task: "exact: tiles of level 0 that differ from libjpeg-turbo", Unit: "tiles", Rates: []float64{float64(differ)},
		Device: after.Decoded - before.Decoded, CPU: outsideDevice(after) - outsideDevice(before), Note: fmt.Sprintf("of %d", done),
	})
	return nil
}

// compareBatch returns how many patches of a device differ from the CPU's.
func compareBatch(ctx context.Context, plain, rd *tiles.Reader, batch []tiles.Patch) (differ int, err error) {
	a, res, _, err := rd.DevicePatches(ctx, batch, tiles.DeviceOptions{PatchOptions: tiles.PatchOptions{Channels: 3}, Host: true})
	if err != nil {
		return 0, err
	}
	defer a.Release()
	want, _, err := plain.Patches(ctx, batch, tiles.PatchOptions{Channels: 3})
	if err != nil {
		return 0, err
	}
	each := int(a.Bytes()) / len(batch)
	for i := range want {
		if err := errors.Join(want[i].Err, res[i].Err); err != nil {
			return 0, err
		}
		pix, _, _ := want[i].Pixels.Host()
		if !bytes.Equal(pix[:each], a.Host()[i*each:][:each]) {
			differ++
		}
		want[i].Pixels.Release()
	}
	return differ, nil
}

// Print writes the report as a table.
func (r *DeviceReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s, %d slides\n\n", r.Device, r.Machine.CPU, len(r.Slides))
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "task\tsettings\tmedian a second\tlow to high\ttiles by device\tby CPU\t")
	for _, row := range r.Rows {
		if len(row.Rates) == 0 {
			fmt.Fprintf(t, "%s\t%s\tabsent\t\t\t\t%s\n", row.Task, row.Settings, row.Note)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%.0f %s\t%.0f to %.0f\t%d\t%d\t%s\n", row.Task, row.Settings, Median(row.Rates), row.Unit,
			slices.Min(row.Rates), slices.Max(row.Rates), row.Device, row.CPU, row.Note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.printStages(w)
}

// printStages says where a lane's time went, for rows whose stages did not overlap.
func (r *DeviceReport) printStages(w io.Writer) error {
	for _, row := range r.Rows {
		if !strings.Contains(row.Settings, "profiled") || row.Device == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s, %s: us a tile of the worker's time", row.Task, row.Settings)
		for _, stage := range slices.Sorted(maps.Keys(row.Nanos)) {
			fmt.Fprintf(w, ", %s %.1f", stage, float64(row.Nanos[stage])/1e3/float64(row.Device))
		}
		fmt.Fprintln(w)
	}
	return nil
}
