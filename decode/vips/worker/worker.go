//go:build vips && cgo

// Package worker is the child's side of decode/vips: the only place that links
// libvips, and with it a hundred shared objects.
package worker

import (
	"errors"
	"fmt"
	"io"

	"github.com/davidbyttow/govips/v2/vips"

	wire "github.com/microtome/microtome/decode/vips"
)

// Serve encodes pictures until in ends.
func Serve(in io.Reader, out io.Writer) error {
	vips.LoggingSettings(func(string, vips.LogLevel, string) {}, vips.LogLevelCritical)
	// Nothing is asked for twice, so libvips keeps nothing: the zeros are meant.
	vips.Startup(&vips.Config{ConcurrencyLevel: 1})
	defer vips.Shutdown()
	for {
		r, err := wire.ReadRequest(in)
		if errors.Is(err, io.EOF) && !errors.Is(err, wire.ErrMessage) {
			return nil
		}
		if err != nil {
			return err
		}
		picture, failure := encode(r)
		if err := wire.WriteAnswer(out, picture, failure); err != nil {
			return err
		}
	}
}

// encode makes one picture. libvips' error texts cross goroutines and hold stack
// traces: only that there is one says anything.
func encode(r *wire.Request) ([]byte, error) {
	image, err := vips.LoadImageFromBuffer(wire.TIFF(r), nil)
	if err != nil {
		return nil, errors.New("the pixels were not taken")
	}
	defer image.Close()
	var b []byte
	strip := len(r.ICC) == 0
	switch r.Format {
	case wire.WebP:
		b, _, err = image.ExportWebp(&vips.WebpExportParams{Quality: r.Quality, Lossless: r.Lossless, StripMetadata: strip})
	case wire.PNG:
		b, _, err = image.ExportPng(&vips.PngExportParams{Compression: 1, StripMetadata: strip})
	case wire.AVIF:
		b, _, err = image.ExportAvif(&vips.AvifExportParams{Quality: r.Quality, Lossless: r.Lossless, Effort: 2, StripMetadata: strip})
	default:
		return nil, fmt.Errorf("format %d is unknown", r.Format)
	}
	if err != nil {
		return nil, errors.New("the picture could not be written")
	}
	return b, nil
}
