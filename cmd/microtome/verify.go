package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/microtome/microtome/verify"
	"github.com/spf13/cobra"
)

const verifyLong = `Compare a slide as Microtome reads it with OpenSlide 4.0.1: every property,
random regions of level 0, whole levels above it, associated images. Prints the
histogram of differences of each; exits with 1 when anything differs.

OpenSlide runs in a child process, from a Python with the packages
openslide-python and openslide-bin. Other versions of it are refused.`

// pythonVariable names the Python of the reference in the environment.
const pythonVariable = "MICROTOME_OPENSLIDE_PYTHON"

// peerPython is the Python that runs OpenSlide and other peers unless a flag
// names one.
func peerPython() string { return cmp.Or(os.Getenv(pythonVariable), "python3") }

type verifyFlags struct {
	against string
	json    bool
	options verify.Options
}

func newVerifyCmd() *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify SLIDE --against openslide",
		Short: "Compare a slide's pixels and properties with OpenSlide's",
		Long:  verifyLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.against != "openslide" {
				return usagef("--against %s: the only reference is openslide", f.against)
			}
			if f.options.Regions <= 0 || f.options.Size <= 0 {
				return usagef("--regions and --size must be above 0")
			}
			f.options.Progress = progressOn(cmd.ErrOrStderr())
			report, err := verifySlide(cmd.Context(), args[0], f.options)
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), report, f.json)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.against, "against", "openslide", "the reference")
	fl.StringVar(&f.options.Python, "python", peerPython(), "Python that has openslide-python and openslide-bin (or "+pythonVariable+")")
	fl.IntVar(&f.options.Regions, "regions", 64, "random regions of level 0")
	fl.IntVar(&f.options.Size, "size", 512, "their side in pixels")
	fl.Uint64Var(&f.options.Seed, "seed", 1, "where they lie")
	fl.BoolVar(&f.options.SkipLevels, "skip-levels", false, "leave out the whole levels above 0")
	fl.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func verifySlide(ctx context.Context, path string, o verify.Options) (report *verify.Report, err error) {
	slide, err := openSlide(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, slide.Close()) }()
	e, err := newEngine(ctx, &config{MaxPixels: maxRegionPixels, PixelsMemory: 256 << 20}, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if !e.cpu.Exact() {
		return nil, fmt.Errorf("this build decodes with %s, which is not exact: verify needs a build with cgo", e.cpu.Name())
	}
	return verify.Run(ctx, path, slide, e.reader, o)
}

// progressOn reports to a terminal, and to nothing else.
func progressOn(w io.Writer) func(string, float64) {
	if !onTerminal(w) {
		return nil
	}
	return func(what string, done float64) { fmt.Fprintf(w, "\r\x1b[K%s %3.0f %%\r", what, done*100) }
}

func printReport(w io.Writer, r *verify.Report, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return err
		}
	} else {
		printText(w, r)
	}
	if !r.OK() {
		return errors.New("differs from OpenSlide " + r.Version)
	}
	return nil
}

func printText(w io.Writer, r *verify.Report) {
	fmt.Fprintf(w, "OpenSlide %s\n%d properties, %d differ\n", r.Version, r.Properties, len(r.Differ))
	show := func(s *string) string {
		if s == nil {
			return "(absent)"
		}
		return fmt.Sprintf("%.120q", *s)
	}
	for _, d := range r.Differ {
		fmt.Fprintf(w, "  %s: ours %s, OpenSlide %s\n", d.Key, show(d.Ours), show(d.Theirs))
	}
	for _, p := range r.Parts {
		if p.Error != "" {
			fmt.Fprintf(w, "%s: FAILED: %s\n", p.What, p.Error)
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", p.What, p.Diff.String())
	}
}
