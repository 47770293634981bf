package formats

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/synth/tiffw"
)

// TestSynthSlides opens every kind of slide that synth writes, and reads all of
// its tiles.
func TestSynthSlides(t *testing.T) {
	for name, c := range map[string]struct {
		spec   synth.Spec
		format string
		codec  microtome.Codec
		color  microtome.Color
	}{
		"SVS, RGB":          {synth.Spec{Codec: synth.JPEGRGB, MPP: 0.5, AppMag: 20}, "aperio", microtome.CodecJPEG, microtome.ColorRGB},
		"SVS, YCbCr":        {synth.Spec{Codec: synth.JPEG, MPP: 0.5}, "aperio", microtome.CodecJPEG, microtome.ColorYCbCr},
		"SVS, 33003":        {synth.Spec{Codec: synth.J2KYCbCr, MPP: 0.5}, "aperio", microtome.CodecJPEG2000, microtome.ColorYCbCr},
		"SVS, 33005":        {synth.Spec{Codec: synth.J2KRGB, MPP: 0.5}, "aperio", microtome.CodecJPEG2000, microtome.ColorRGB},
		"SVS, sparse":       {synth.Spec{Codec: synth.JPEG, MPP: 0.5, Sparse: true, Big: true}, "aperio", microtome.CodecJPEG, microtome.ColorYCbCr},
		"TIFF, SubIFDs":     {synth.Spec{Format: synth.TIFF, Layout: synth.SubIFDs, MPP: 0.5}, "generic-tiff", microtome.CodecJPEG, microtome.ColorYCbCr},
		"TIFF, COG":         {synth.Spec{Format: synth.TIFF, Layout: synth.COG, Codec: synth.Deflate, Predictor: true, MPP: 0.5}, "generic-tiff", microtome.CodecDeflate, microtome.ColorRGB},
		"TIFF, big-endian":  {synth.Spec{Format: synth.TIFF, Big: true, BigEndian: true, Codec: synth.Zstd, MPP: 0.5}, "generic-tiff", microtome.CodecZstd, microtome.ColorRGB},
		"TIFF, strips":      {synth.Spec{Format: synth.TIFF, RowsPerStrip: 16, Codec: synth.PackBits, MPP: 0.5}, "generic-tiff", microtome.CodecPackBits, microtome.ColorRGB},
		"TIFF, raw":         {synth.Spec{Format: synth.TIFF, Codec: synth.Raw, MPP: 0.5}, "generic-tiff", microtome.CodecNone, microtome.ColorRGB},
		"OME-TIFF":          {synth.Spec{Format: synth.OME, MPP: 0.5}, "ome-tiff", microtome.CodecJPEG, microtome.ColorYCbCr},
		"OME-TIFF, planes":  {synth.Spec{Format: synth.OME, SizeC: 3, SizeZ: 2, SizeT: 2, Codec: synth.LZW, MPP: 0.5}, "ome-tiff", microtome.CodecLZW, microtome.ColorGray},
		"OME-TIFF, BigTIFF": {synth.Spec{Format: synth.OME, Big: true, BigEndian: true, MPP: 0.5}, "ome-tiff", microtome.CodecJPEG, microtome.ColorYCbCr},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Width, c.spec.Height, c.spec.Levels = 300, 260, 2
			b := tiffw.NewBuffer()
			if err := synth.Write(b, c.spec); err != nil {
				t.Fatal(err)
			}
			s, err := Open(context.Background(), &memory{data: b.Bytes()}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			info := s.Info()
			if info.Format != c.format || len(info.Warnings) > 0 {
				t.Errorf("opened as %s, warnings %q", info.Format, info.Warnings)
			}
			if info.MPP == nil || fmt.Sprintf("%.4f", info.MPP.X) != "0.5000" {
				t.Errorf("mpp %v, want 0.5", info.MPP)
			}
			sizes := ""
			for _, level := range info.Levels {
				sizes += fmt.Sprintf("%dx%d ", level.Width, level.Height)
				if level.Codec != c.codec || level.Color != c.color {
					t.Errorf("codec %v, colour %v", level.Codec, level.Color)
				}
			}
			want := ""
			for _, level := range c.spec.PyramidLevels() {
				want += fmt.Sprintf("%dx%d ", level.Width, level.Height)
			}
			if sizes != want {
				t.Errorf("levels %s, want %s", sizes, want)
			}
			readAll(t, s, max(c.spec.SizeC, 1)*max(c.spec.SizeZ, 1)*max(c.spec.SizeT, 1))
		})
	}
}

// readAll reads every tile of every plane.
func readAll(t *testing.T, s microtome.Slide, planes int) {
	t.Helper()
	p := s.Info().Planes
	if p.C*p.Z*p.T != planes {
		t.Errorf("%+v, want %d planes", p, planes)
	}
	ctx := context.Background()
	for k, level := range s.Info().Levels {
		for i := range planes * level.Cols * level.Rows {
			plane, cell := i/(level.Cols*level.Rows), i%(level.Cols*level.Rows)
			_, err := s.ReadTile(ctx, k, plane, cell%level.Cols, cell/level.Cols)
			if err != nil && !errors.Is(err, microtome.ErrEmptyTile) {
				t.Errorf("level %d, plane %d, cell %d: %v", k, plane, cell, err)
			}
		}
	}
	for _, a := range s.Info().Associated {
		for i := range a.Cols * a.Rows {
			if _, err := s.ReadAssociated(ctx, a.Name, i%a.Cols, i/a.Cols); err != nil {
				t.Errorf("%s: %v", a.Name, err)
			}
		}
	}
}
