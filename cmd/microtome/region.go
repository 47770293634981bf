package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats"
	"github.com/microtome/microtome/formats/source"
	"github.com/microtome/microtome/tiles"
)

const regionLong = `Cut a rectangle out of a slide.

--x and --y are in pixels of level 0. --width and --height are the size of the
picture that comes out, at the scale asked for: one of --level (0 when none is
given), --mpp (microns per pixel), --magnification, or --downsample (relative to
level 0). What lies outside the slide is background.

The format is that of the output's name, or --format: jpeg, png, webp, raw (rows
of samples, no header) or npy. -o - writes to the standard output.`

// regionFlags are the flags of the region command.
type regionFlags struct {
	query      tiles.Region
	pixels     tiles.PixelOptions
	level      int
	format     string
	background string
	out        string
}

func newRegionCmd() *cobra.Command {
	f := &regionFlags{}
	cmd := &cobra.Command{
		Use:   "region SLIDE --x X --y Y --width W --height H -o FILE",
		Short: "Cut a rectangle out of a slide",
		Long:  regionLong,
		Example: `  microtome region CMU-1.svs --x 20000 --y 12000 --width 1024 --height 768 -o field.png
  microtome region CMU-1.svs --x 0 --y 0 --width 1000 --height 700 --mpp 8 -o overview.jpg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.settle(cmd.Flags(), cmd.OutOrStdout()); err != nil {
				return &usageError{err}
			}
			body, err := cutRegion(cmd.Context(), args[0], f)
			if err != nil {
				return err
			}
			return writeOutput(f.out, cmd.OutOrStdout(), body)
		},
	}
	f.define(cmd)
	return cmd
}

func (f *regionFlags) define(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.Int64Var(&f.query.L0X, "x", 0, "left edge, in pixels of level 0")
	fl.Int64Var(&f.query.L0Y, "y", 0, "upper edge, in pixels of level 0")
	fl.IntVar(&f.query.Width, "width", 0, "width of the picture")
	fl.IntVar(&f.query.Height, "height", 0, "height of the picture")
	fl.IntVar(&f.level, "level", 0, "level to take it from")
	fl.Float64("mpp", 0, "microns per pixel of the picture")
	fl.Float64("magnification", 0, "magnification of the picture, such as 20")
	fl.Float64("downsample", 0, "scale relative to level 0, such as 8")
	fl.Float64Var(&f.query.Scale.Tolerance, "mpp-tolerance", 0.02, "how far a level's own scale may be from --mpp to be used as it is")
	fl.IntVar(&f.pixels.C, "c", 0, "channel of a multichannel slide")
	fl.IntVar(&f.pixels.Z, "z", 0, "focal plane")
	fl.IntVar(&f.pixels.T, "t", 0, "time point")
	fl.StringVar(&f.format, "format", "", "jpeg, png, webp, raw or npy (default: by the output's name)")
	fl.IntVar(&f.pixels.Quality, "quality", 80, "quality of JPEG and WebP, 1 to 100")
	fl.StringVar(&f.background, "background", "", "`colour` of what is not stored (default: the slide's, else white)")
	fl.StringVar(&f.pixels.ICC, "icc", "", "embed: put the slide's colour profile into the picture")
	fl.StringVarP(&f.out, "output", "o", "", "`file` to write; - for the standard output")
	for _, name := range []string{"x", "y", "width", "height", "output"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that is not there
	}
	cmd.MarkFlagsMutuallyExclusive("level", "mpp", "magnification", "downsample")
}

// settle turns the flags into the query.
func (f *regionFlags) settle(fl *pflag.FlagSet, stdout io.Writer) error {
	if f.query.Width <= 0 || f.query.Height <= 0 {
		return fmt.Errorf("--width and --height must be above 0")
	}
	if f.pixels.Quality < 1 || f.pixels.Quality > 100 {
		return fmt.Errorf("--quality must be between 1 and 100")
	}
	f.query.Scale.Kind, f.query.Scale.Value = tiles.ByLevel, float64(f.level)
	for name, kind := range map[string]tiles.ScaleKind{
		"mpp": tiles.ByMPP, "magnification": tiles.ByMagnification, "downsample": tiles.ByDownsample,
	} {
		if !fl.Changed(name) {
			continue
		}
		v, _ := fl.GetFloat64(name) // defined above, as a float
		if !(v > 0) {
			return fmt.Errorf("--%s must be above 0", name)
		}
		f.query.Scale.Kind, f.query.Scale.Value = kind, v
	}
	if fl.Changed("background") {
		var colour hexColour
		if err := colour.UnmarshalText([]byte(f.background)); err != nil {
			return fmt.Errorf("--background: %w", err)
		}
		f.pixels.Background = (*microtome.RGB)(&colour)
	}
	if f.pixels.ICC != "" && f.pixels.ICC != "embed" {
		return fmt.Errorf("--icc: %q is not embed", f.pixels.ICC)
	}
	var err error
	if f.pixels.Format, err = outputFormat(f.format, f.out); err != nil {
		return err
	}
	if f.out == "-" && onTerminal(stdout) {
		return fmt.Errorf("-o -: not onto a terminal")
	}
	return nil
}

// outputFormat is the format by name, or by the output file's suffix.
func outputFormat(name, out string) (microtome.Format, error) {
	if name == "" {
		if out == "-" {
			return 0, fmt.Errorf("-o - needs a --format")
		}
		name = strings.TrimPrefix(filepath.Ext(out), ".")
	}
	switch strings.ToLower(name) {
	case "jpg", "jpeg":
		return microtome.FormatJPEG, nil
	case "png":
		return microtome.FormatPNG, nil
	case "webp":
		return microtome.FormatWebP, nil
	case "raw":
		return microtome.FormatRaw, nil
	case "npy":
		return microtome.FormatNPY, nil
	}
	return 0, fmt.Errorf("format %q is not jpeg, png, webp, raw or npy", name)
}

// cutRegion opens the slide and returns the encoded picture.
func cutRegion(ctx context.Context, path string, f *regionFlags) (body []byte, err error) {
	slide, err := openSlide(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, slide.Close()) }()
	e, err := newEngine(ctx, &config{Quality: f.pixels.Quality, MaxPixels: maxRegionPixels, PixelsMemory: 256 << 20}, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	answer, err := e.reader.Region(ctx, slide, f.query, f.pixels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return answer.Body, nil
}

// maxRegionPixels bounds a picture made on the command line, where nobody else
// needs the memory: 1 GPixel.
const maxRegionPixels = 1 << 30

// openSlide opens a slide file by its path.
func openSlide(ctx context.Context, path string) (microtome.Slide, error) {
	src, err := source.OpenFile(path)
	if err != nil {
		return nil, err
	}
	slide, err := formats.Open(ctx, src, formats.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, src.Close()))
	}
	return slide, nil
}

// writeOutput writes body to a file, whole or not at all, or to stdout for "-".
// What is not a regular file (a pipe, a device) is written as it is.
func writeOutput(out string, stdout io.Writer, body []byte) error {
	if out == "-" {
		_, err := stdout.Write(body)
		return err
	}
	if fi, err := os.Stat(out); err == nil && !fi.Mode().IsRegular() {
		return os.WriteFile(out, body, 0o666)
	}
	part, err := os.CreateTemp(filepath.Dir(out), ".microtome-*")
	if err != nil {
		return err
	}
	_, err = part.Write(body)
	if err == nil {
		err = part.Chmod(0o644)
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), out)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}
