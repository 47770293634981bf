package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/bench"
)

const benchLong = `Measure how fast patches of a slide are read, beside OpenSlide 4.0.1, cuCIM,
fastslide and tiffslide where the Python has them, and the limit: a bare C loop
of libjpeg-turbo over the same tiles. All in one run, the engines in turn.

The grid of patches lies around the middle of level 0; the file is warm; the
cache of decoded tiles is emptied before each cold trial. docs/benchmark.md has
the protocol. A busy machine gives other figures, and other ratios.`

type benchFlags struct {
	protocol        bench.Protocol
	peers, python   string
	http, asJSON    bool
	jsonFile, chart string
	seconds         time.Duration
	coldCache       int64 // MiB
	// Of --device.
	device, libraries, settings string
	exact                       int
	soak                        int64
	soakFor                     time.Duration
	soakDamaged                 int
}

func newBenchCmd() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench SLIDE [SLIDE ...]",
		Short: "Measure patches a second beside OpenSlide and the decoder's limit",
		Long:  benchLong,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.device != "cpu" {
				return f.runDevice(cmd, args)
			}
			if len(args) > 1 {
				return usagef("several slides are measured with --device only")
			}
			return f.run(cmd, args[0])
		},
	}
	f.flags(cmd.Flags())
	return cmd
}

func (f *benchFlags) flags(fl *pflag.FlagSet) {
	fl.SortFlags = false
	fl.IntVar(&f.protocol.Grid, "grid", 24, "patches on each side of the grid")
	fl.IntVar(&f.protocol.Patch, "patch", 256, "side of a patch, in pixels")
	fl.IntVar(&f.protocol.Trials, "trials", 5, "trials of each; the median counts")
	fl.IntVar(&f.protocol.Random, "random", 600, "random patches, anywhere on level 0")
	fl.IntVar(&f.protocol.Cores, "cores", min(runtime.NumCPU(), 2), "cores of the trials on several")
	fl.Uint64Var(&f.protocol.Seed, "seed", 1, "of the random patches")
	fl.Int64Var(&f.coldCache, "cache-mib", 32, "cache of decoded tiles in MiB, emptied before each cold trial")
	fl.StringVar(&f.peers, "peers", "auto", "auto, none, or a list of "+strings.Join(bench.Peers, ","))
	fl.StringVar(&f.python, "python", peerPython(), "Python that has the peers (or "+pythonVariable+")")
	fl.BoolVar(&f.http, "http", false, "also over HTTP: batches to one Python client, Deep Zoom tiles beside other servers")
	fl.DurationVar(&f.seconds, "seconds", 6*time.Second, "how long each round of Deep Zoom takes, with --http")
	fl.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	fl.StringVar(&f.jsonFile, "json-file", "", "also write the report as JSON to a file")
	fl.StringVar(&f.chart, "chart", "", "also draw it, as SVG, to a file")
	fl.StringVar(&f.device, "device", "cpu", "measure a GPU instead: nvidia, nvidia:1 or amd; random patches are taken from all slides")
	fl.StringVar(&f.libraries, "device-libraries", "", "`folder` of the GPU's libraries (default: the system's)")
	fl.StringVar(&f.settings, "sweep", "4x32", "of a GPU: lanes x tiles a call, with +beside, +unchecked, +blocking, +profile or +inprocess, and commas between")
	fl.IntVar(&f.exact, "exact", 2000, "of a GPU: tiles that are held against the CPU's; -1 for all")
	fl.Int64Var(&f.soak, "soak", 0, "of a GPU: ask instead for so many tiles, some damaged, each held against the CPU's")
	fl.IntVar(&f.soakDamaged, "soak-damaged", 1000, "of the soak: one tile in so many is damaged")
	fl.DurationVar(&f.soakFor, "soak-for", time.Hour, "end the soak after that time, whatever it has reached")
}

// options checks the flags and describes the run.
func (f *benchFlags) options(ctx context.Context, path string) (o bench.Options, err error) {
	p := &f.protocol
	if min(p.Grid, p.Patch, p.Trials, p.Random, p.Cores, int(f.coldCache)) <= 0 || p.Grid > 256 || p.Patch > 4096 || p.Random > 1e6 {
		return o, usagef("--grid, --patch, --trials, --random, --cores and --cache-mib must be above 0, and not huge")
	}
	if p.Cores > runtime.NumCPU() {
		return o, usagef("--cores %d: there are %d", p.Cores, runtime.NumCPU())
	}
	p.ColdCache = f.coldCache << 20
	p.WarmCache = 4 * int64(p.Grid*p.Patch) * int64(p.Grid*p.Patch) * 2
	slide, err := openSlide(ctx, path)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, slide.Close()) }()
	exe, err := os.Executable()
	if err != nil {
		return o, err
	}
	info := slide.Info()
	g := info.Levels[0].Grid
	o = bench.Options{
		Protocol: *p, Machine: bench.ThisMachine(buildVersion()), Path: path,
		Slide:  bench.Facts{Name: filepath.Base(path), Bytes: info.Generation.Size, Format: info.Format, Width: g.Width, Height: g.Height, Tile: [2]int{g.TileWidth, g.TileHeight}},
		Worker: []string{exe, "bench-worker", path}, Limit: bareLoop != nil && g.Codec == microtome.CodecJPEG && g.Samples == 3,
	}
	if bareLoop == nil {
		o.NoLimit = "not in this build: it is without cgo"
	} else if !o.Limit {
		o.NoLimit = "not for these tiles: the loop decodes JPEG of three components"
	}
	if f.peers != "none" || f.http {
		o.Python = f.python
		if strings.ContainsRune(f.python, filepath.Separator) { // children run elsewhere
			if o.Python, err = filepath.Abs(f.python); err != nil {
				return o, err
			}
		}
	}
	if f.http {
		o.Serve = []string{exe, "serve", path}
		o.ZoomSeconds, o.StoredTiles = f.seconds, storedTiles(path)
	}
	switch f.peers {
	case "none":
		return o, nil
	case "auto":
		o.Peers = bench.Peers
	default:
		o.Peers = strings.Split(f.peers, ",")
		for _, p := range o.Peers {
			if !slices.Contains(bench.Peers, p) {
				return o, usagef("--peers %s: there are %s", p, strings.Join(bench.Peers, ", "))
			}
		}
	}
	return o, nil
}

// storedTiles reads a slide's stored tiles as pictures that play by themselves.
func storedTiles(path string) func(context.Context, [][2]int, func(col, row int, data []byte) error) error {
	return func(ctx context.Context, at [][2]int, each func(col, row int, data []byte) error) (err error) {
		slide, err := openSlide(ctx, path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, slide.Close()) }()
		for _, a := range at {
			t, err := slide.ReadTile(ctx, 0, 0, a[0], a[1])
			if err == nil {
				err = each(a[0], a[1], t.Data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (f *benchFlags) run(cmd *cobra.Command, path string) error {
	o, err := f.options(cmd.Context(), path)
	if err != nil {
		return err
	}
	if w := cmd.ErrOrStderr(); onTerminal(w) {
		o.Progress = func(what string) { fmt.Fprintf(w, "\r\x1b[K%s\r", what) }
	}
	report, err := bench.Run(cmd.Context(), o)
	if err != nil {
		return err
	}
	var text, chart bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", " ")
	if err := errors.Join(enc.Encode(report), report.Chart(&chart)); err != nil {
		return err
	}
	for name, body := range map[string][]byte{f.jsonFile: text.Bytes(), f.chart: chart.Bytes()} {
		if name == "" {
			continue
		}
		if err := writeOutput(name, cmd.OutOrStdout(), body); err != nil {
			return err
		}
	}
	if f.asJSON {
		_, err := io.Copy(cmd.OutOrStdout(), &text)
		return err
	}
	return report.Print(cmd.OutOrStdout())
}

// newBenchWorkerCmd is the child of a bench that reads by our own code.
func newBenchWorkerCmd() *cobra.Command {
	var limit bool
	w := &bench.Worker{}
	cmd := &cobra.Command{
		Use:    "bench-worker SLIDE",
		Short:  "Answer the questions of microtome bench on standard input",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if w.Slide, err = openSlide(cmd.Context(), args[0]); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.Slide.Close()) }()
			workers, _ := strconv.Atoi(os.Getenv("GOMAXPROCS"))
			e, err := newEngine(cmd.Context(), &config{MaxPixels: maxRegionPixels, Workers: workers}, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.close()) }()
			w.Decoder, w.Encoder = e.cpu, e.cpu
			if limit {
				if w.Loop = bareLoop; w.Loop == nil {
					return errors.New("this build has no bare loop: it is without cgo")
				}
			}
			return w.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&w.Batch, "batch", 1, "patches asked for at once")
	cmd.Flags().BoolVar(&limit, "limit", false, "decode the bare tiles by a C loop")
	return cmd
}
