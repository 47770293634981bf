package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options say what a run compares.
type Options struct {
	Protocol Protocol
	Machine  Machine
	Slide    Facts
	Path     string // of the slide
	// Worker is the command that serves asks about the slide (see Worker), to
	// which "--batch N" or "--limit" is added.
	Worker []string
	// Limit says that the build has the bare loop.
	// Otherwise NoLimit says why the limit can't be had.
	Limit   bool
	NoLimit string
	// Serve is the command that serves the slide over HTTP, to which --listen
	// and --pixels-memory are added; nil leaves HTTP out.
	Serve []string
	// Python runs the peers; "" leaves them out. Peers are their names, of
	// openslide, cucim, fastslide and tiffslide.
	Python   string
	Peers    []string
	Progress func(what string) // may be nil
	// StoredTiles hands out stored tiles of level 0, by column and row, as
	// pictures, for the static limit; nil leaves that out. ZoomSeconds is how long each round of the Deep
	// Zoom tasks takes; 0 leaves them out.
	StoredTiles func(ctx context.Context, at [][2]int, each func(col, row int, data []byte) error) error
	ZoomSeconds time.Duration
}

//go:embed peers.py
var peersProgram []byte

// engine is one way to read the slide, with so many callers on so many cores.
type engine struct {
	name           string
	callers, cores int
	tasks          []string
	argv           []string
	child          *child
	absent         string
	pixels         string
}

// batchSize is how many patches are asked for at once where that is possible.
const batchSize = 64

// peerNames are the peers as the report names them.
var peerNames = map[string]string{"openslide": Base, "cucim": "cuCIM", "fastslide": "fastslide", "tiffslide": "tiffslide"}

// Peers are the names that Options.Peers may have, in order.
var Peers = []string{"openslide", "cucim", "fastslide", "tiffslide"}

// Run measures. A peer that is not installed is a row that says so; the error is
// of what nothing can be measured without.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &run{o: o, report: &Report{Machine: o.Machine, Slide: o.Slide, Protocol: o.Protocol}}
	var err error
	if r.grid, err = o.Protocol.gridOf(o.Slide.Width, o.Slide.Height); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp("", "microtome-bench"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.dir)
	r.peers = filepath.Join(r.dir, "peers.py")
	if err := os.WriteFile(r.peers, peersProgram, 0o600); err != nil {
		return nil, err
	}
	defer r.stop()
	r.engines = r.list()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if err := r.all(ctx); err != nil {
		return nil, err
	}
	r.stop()
	if len(o.Serve) > 0 && o.Python != "" {
		r.overHTTP(ctx)
	}
	if len(o.Serve) > 0 && o.ZoomSeconds > 0 {
		r.overZoom(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.report.compare()
	return r.report, nil
}

// run is a run under way.
type run struct {
	o       Options
	report  *Report
	dir     string
	peers   string // the program
	grid    []At
	engines []*engine
	sums    []string // of the grid's patches
	// zoomPages are the tiles that the static server has, by their number.
	zoomPages []int
}

func (r *run) say(format string, args ...any) {
	if r.o.Progress != nil {
		r.o.Progress(fmt.Sprintf(format, args...))
	}
}

// list is the engines to be measured.
func (r *run) list() []*engine {
	n := r.o.Protocol.Cores
	all := []string{GridCold, GridWarm, RandomCold}
	cold := []string{GridCold, RandomCold}
	var list []*engine
	add := func(e engine, pairs ...[2]int) {
		for i, p := range pairs {
			if i > 0 && p == pairs[i-1] {
				continue // one core: nothing on several
			}
			e := e
			e.callers, e.cores = p[0], p[1]
			list = append(list, &e)
		}
	}
	one, many := [2]int{1, 1}, [2]int{n, n}
	single := with(r.o.Worker, "--batch", "1")
	add(engine{name: "microtome", tasks: all, argv: single}, one, many)
	if n > 1 {
		add(engine{name: "microtome, reading ahead", tasks: []string{GridCold}, argv: single}, [2]int{1, n})
	}
	add(engine{name: "microtome, batches of 64", tasks: all, argv: with(r.o.Worker, "--batch", strconv.Itoa(batchSize))}, one, [2]int{1, n})
	if r.o.Limit {
		add(engine{name: Limit, tasks: cold, argv: with(r.o.Worker, "--limit")}, one, many)
	}
	if r.o.Python == "" {
		return list
	}
	for _, key := range r.o.Peers {
		e := engine{name: peerNames[key], tasks: all, argv: []string{r.o.Python, r.peers, key, r.o.Path}}
		add(e, one, many)
	}
	return list
}

// start starts the children. One of ours that doesn't start ends the run.
func (r *run) start(ctx context.Context) error {
	for _, e := range r.engines {
		argv := e.argv
		env := []string{"GOMAXPROCS=" + strconv.Itoa(e.cores)}
		ours := e.argv[0] != r.o.Python
		switch taskset, err := exec.LookPath("taskset"); {
		case !ours:
			argv = with(argv, cpus(e.cores)) // the program binds itself
		case err == nil:
			argv = with([]string{taskset, "-c", cpus(e.cores)}, argv...)
		}
		c, err := start(ctx, env, argv...)
		if err != nil && ours {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if err != nil {
			e.absent = err.Error()
			continue
		}
		e.child = c
	}
	return nil
}

// with is a command with more arguments.
func with(argv []string, more ...string) []string { return slices.Concat(argv, more) }

// cpus names the first n processors. They are the same for all engines.
func cpus(n int) string {
	var b []string
	for i := range n {
		b = append(b, strconv.Itoa(i))
	}
	return strings.Join(b, ",")
}

func (r *run) stop() {
	for _, e := range r.engines {
		if e.child != nil {
			e.child.stop()
			e.child = nil
		}
	}
}

// all measures every task: the trials of all engines in turn, so that a slow
// moment of the machine meets all of them.
func (r *run) all(ctx context.Context) error {
	if err := r.comparePixels(); err != nil {
		return err
	}
	for _, task := range []string{GridCold, GridWarm, RandomCold} {
		rows := map[*engine]*Row{}
		for trial := range r.o.Protocol.Trials {
			for _, e := range r.engines {
				if err := ctx.Err(); err != nil {
					return err
				}
				if !slices.Contains(e.tasks, task) {
					continue
				}
				if rows[e] == nil {
					rows[e] = r.row(e, task)
				}
				r.say("%s, trial %d: %s", task, trial+1, e.name)
				r.trial(e, rows[e], task, trial)
			}
		}
		if !r.o.Limit && task != GridWarm {
			r.report.Rows = append(r.report.Rows, Row{Engine: Limit, Task: task, Callers: 1, Cores: 1, Absent: r.o.NoLimit})
		}
		for _, e := range r.engines {
			if rows[e] != nil {
				r.report.Rows = append(r.report.Rows, *rows[e])
			}
		}
	}
	return nil
}

func (r *run) row(e *engine, task string) *Row {
	x := &Row{Engine: e.name, Task: task, Callers: e.callers, Cores: e.cores, Unit: "patches/s", Absent: e.absent, Pixels: e.pixels}
	if e.child != nil {
		x.Version = e.child.version
	}
	return x
}

// trial measures a task once. A failure takes the figure away and says why.
func (r *run) trial(e *engine, x *Row, task string, trial int) {
	if x.Absent != "" {
		return
	}
	q := Ask{Callers: e.callers, Patch: r.o.Protocol.Patch, At: r.grid, Cold: true, Cache: r.o.Protocol.ColdCache}
	switch task {
	case RandomCold:
		q.At = r.o.Protocol.randomOf(r.o.Slide.Width, r.o.Slide.Height, trial)
	case GridWarm:
		q.Cache = r.o.Protocol.WarmCache
	}
	if trial == 0 { // not measured: it fills caches, and each process's memory
		if _, err := e.child.ask(q); err != nil {
			x.Absent = err.Error()
			return
		}
	}
	q.Cold = task != GridWarm
	a, err := e.child.ask(q)
	if err != nil {
		x.Absent, x.Trials = err.Error(), nil
		return
	}
	x.Trials = append(x.Trials, float64(len(q.At))/a.Seconds)
}

// comparePixels asks everybody for the grid's checksums; it also makes the file
// warm.
func (r *run) comparePixels() error {
	var ours []string
	for _, e := range r.engines {
		if e.child == nil || e.name == Limit {
			continue
		}
		r.say("pixels: %s", e.name)
		a, err := e.child.ask(Ask{Cold: true, Cache: r.o.Protocol.ColdCache, Callers: e.callers, Patch: r.o.Protocol.Patch, Sum: true, At: r.grid})
		if err != nil {
			if e.argv[0] != r.o.Python {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			e.absent = err.Error()
			e.child.stop()
			e.child = nil
			continue
		}
		sums := strings.Fields(strings.Trim(a.Sum, "[]"))
		if ours == nil {
			ours, r.sums = sums, sums
		}
		e.pixels = differing(ours, sums)
	}
	if ours == nil {
		return errors.New("bench: nothing was read")
	}
	return nil
}

// differing compares checksums by patch.
func differing(want, got []string) string {
	if len(got) != len(want) {
		return "not comparable"
	}
	n := 0
	for i := range got {
		if got[i] != want[i] {
			n++
		}
	}
	if n == 0 {
		return "equal"
	}
	return fmt.Sprintf("%d of %d patches differ", n, len(got))
}
