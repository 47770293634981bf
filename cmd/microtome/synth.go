package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/synth/jpegenc"
)

const synthLong = `Write a slide of made-up tissue, of any size and layout. The same flags give the
same bytes everywhere. --like writes one of the benchmark slides, whose layout
and sizes are set; the other flags describe any other slide.`

// synthFlags is what the command line says of the slide.
type synthFlags struct {
	spec                synth.Spec
	like, format, codec string
	sampling, icc       string
	seed                uint32
	subifds, cog, force bool
	noAssociated        bool
}

func newSynthCmd() *cobra.Command {
	var f synthFlags
	cmd := &cobra.Command{
		Use:   "synth OUT",
		Short: "Write a synthetic slide",
		Long:  synthLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := f.slide(cmd)
			if err != nil {
				return err
			}
			return writeSynth(cmd.ErrOrStderr(), args[0], spec, f.force)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.like, "like", "", "a benchmark slide: "+strings.Join(synth.Names(), " or "))
	fl.IntVar(&f.spec.Width, "width", 12000, "width of level 0, pixels")
	fl.IntVar(&f.spec.Height, "height", 9000, "height of level 0, pixels")
	fl.StringVar(&f.format, "format", "svs", "svs, tiff or ome-tiff")
	fl.StringVar(&f.codec, "codec", "jpeg", "jpeg, jpeg-rgb, 33003, 33005, 34712, none, deflate, lzw, packbits or zstd")
	fl.Uint32Var(&f.seed, "seed", 1, "another number, another tissue")
	fl.IntVar(&f.spec.Tile, "tile", 0, "tile size, a multiple of 16 (default 240 for svs, else 256)")
	fl.IntVar(&f.spec.Levels, "levels", 0, "number of levels (default: until under 1024 pixels)")
	fl.IntVar(&f.spec.Step, "step", 0, "downsample from level to level (default 4 for svs, else 2)")
	fl.IntVar(&f.spec.Quality, "quality", 0, "JPEG quality, 1 to 100 (default 75)")
	fl.StringVar(&f.sampling, "sampling", "", "JPEG chroma sampling: 444, 422, 420, 440 or 411")
	fl.IntVar(&f.spec.Restart, "restart", 0, "JPEG restart interval, MCUs")
	fl.BoolVar(&f.spec.WholeStreams, "whole-streams", false, "JPEG tiles with tables of their own")
	fl.BoolVar(&f.spec.Big, "bigtiff", false, "BigTIFF")
	fl.BoolVar(&f.spec.BigEndian, "big-endian", false, "big-endian numbers")
	fl.BoolVar(&f.subifds, "subifds", false, "reduced levels in SubIFDs")
	fl.BoolVar(&f.cog, "cog", false, "directories first, as a cloud-optimized TIFF")
	fl.BoolVar(&f.spec.Sparse, "sparse", false, "leave tiles without tissue out")
	fl.BoolVar(&f.spec.Planar, "planar", false, "each channel in tiles of its own")
	fl.BoolVar(&f.spec.Predictor, "predictor", false, "horizontal differencing")
	fl.IntVar(&f.spec.RowsPerStrip, "strip", 0, "strips of so many rows in place of tiles")
	fl.IntVar(&f.spec.SizeC, "channels", 0, "ome-tiff: gray planes, so many channels")
	fl.IntVar(&f.spec.SizeZ, "z", 0, "ome-tiff: gray planes, so many focal planes")
	fl.IntVar(&f.spec.SizeT, "t", 0, "ome-tiff: gray planes, so many points in time")
	fl.Float64Var(&f.spec.MPP, "mpp", 0.499, "microns per pixel; 0: unknown")
	fl.Float64Var(&f.spec.AppMag, "magnification", 20, "objective power; 0: unknown")
	fl.StringVar(&f.icc, "icc", "", "ICC profile to embed, a file")
	fl.BoolVar(&f.noAssociated, "no-associated", false, "svs: no thumbnail, label and macro")
	fl.BoolVar(&f.force, "force", false, "overwrite OUT")
	return cmd
}

// slide is the Spec that the flags describe.
func (f *synthFlags) slide(cmd *cobra.Command) (synth.Spec, error) {
	if f.like != "" {
		spec, err := synth.Like(f.like)
		if err != nil {
			return spec, usagef("--like %s: know %s", f.like, strings.Join(synth.Names(), ", "))
		}
		if cmd.Flags().Changed("seed") {
			spec.Seed = f.seed
		}
		return spec, nil
	}
	s := f.spec
	s.Format, s.Codec, s.Seed = synth.Format(f.format), synth.Codec(f.codec), f.seed
	switch {
	case f.subifds && f.cog:
		return s, usagef("--subifds and --cog exclude each other")
	case f.subifds:
		s.Layout = synth.SubIFDs
	case f.cog:
		s.Layout = synth.COG
	}
	if f.sampling != "" {
		var ok bool
		if s.Sampling, ok = samplings()[f.sampling]; !ok {
			return s, usagef("--sampling %s: 444, 422, 420, 440 or 411", f.sampling)
		}
	}
	if f.noAssociated {
		s.Associated = synth.NoAssociated
	}
	if f.icc != "" {
		var err error
		if s.ICC, err = os.ReadFile(f.icc); err != nil {
			return s, err
		}
	}
	if err := s.Check(); err != nil {
		return s, &usageError{err}
	}
	return s, nil
}

func samplings() map[string]jpegenc.Sampling {
	return map[string]jpegenc.Sampling{"444": jpegenc.S444, "422": jpegenc.S422, "420": jpegenc.S420, "440": jpegenc.S440, "411": jpegenc.S411}
}

// writeSynth writes the slide, with progress when out is a terminal.
func writeSynth(out io.Writer, path string, spec synth.Spec, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s exists: --force overwrites it", path)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var progress func(done, total int64)
	if onTerminal(out) {
		var last time.Time
		progress = func(done, total int64) {
			if now := time.Now(); done == total || now.Sub(last) > 100*time.Millisecond {
				last = now
				fmt.Fprintf(out, "\r%3d %% of %d tiles", 100*done/max(total, 1), total)
			}
		}
	}
	err := synth.WriteFile(path, spec, progress)
	if progress != nil {
		fmt.Fprintln(out)
	}
	return err
}
