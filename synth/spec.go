// Package synth writes whole-slide images of made-up tissue, of any size and
// layout, in pure Go. The same Spec gives the same bytes on every machine.
package synth

import (
	"encoding/binary"
	"fmt"

	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/scene"
)

// Format is the kind of file.
type Format string

// The formats.
const (
	SVS  Format = "svs"      // Aperio: level 0, thumbnail, levels, label, macro
	TIFF Format = "tiff"     // generic pyramidal TIFF
	OME  Format = "ome-tiff" // OME-XML in the first directory, pyramids in SubIFDs
)

// Layout is where a generic TIFF's levels stand.
type Layout string

// The layouts. An empty one is Chain, for OME-TIFF SubIFDs.
const (
	Chain   Layout = "chain"   // one directory after another, reduced ones with NewSubfileType 1
	SubIFDs Layout = "subifds" // all below the first directory's tag 330
	COG     Layout = "cog"     // chained, all directories before the data, the smallest level's data first
)

// Codec is how pixels are stored.
type Codec string

// The codecs: TIFF compression and, where that matters, colour.
const (
	JPEG     Codec = "jpeg"     // 7, YCbCr
	JPEGRGB  Codec = "jpeg-rgb" // 7, RGB components, photometric 2
	J2KYCbCr Codec = "33003"    // JPEG 2000, components YCbCr
	J2KRGB   Codec = "33005"    // JPEG 2000, components RGB
	J2K      Codec = "34712"    // JPEG 2000, components RGB
	Raw      Codec = "none"
	Deflate  Codec = "deflate"
	LZW      Codec = "lzw"
	PackBits Codec = "packbits"
	Zstd     Codec = "zstd"
)

// Associated says how an SVS stores its thumbnail, label and macro.
type Associated int

const (
	// AsAperio is strips of 16 rows: thumbnail and macro JPEG with shared
	// tables, the label LZW with predictor.
	AsAperio Associated = iota
	// WholeJPEG is one strip each, a whole JPEG stream.
	WholeJPEG
	// NoAssociated leaves them out.
	NoAssociated
)

// Spec describes a slide. Only Width and Height must be set.
type Spec struct {
	Format        Format // empty: SVS
	Width, Height int    // of level 0, pixels
	Seed          uint32
	Tile          int // width and height of tiles, a multiple of 16; 0: 240 for SVS, else 256
	Levels        int // number of levels; 0: until the smallest is below 1024 pixels wide and high
	Step          int // downsample from level to level, a power of two; 0: 4 for SVS, else 2
	Layout        Layout
	Codec         Codec // empty: JPEG
	Quality       int   // of JPEG; 0: 75
	Sampling      jpegenc.Sampling
	// WholeStreams stores JPEG tiles with their tables, without tag 347.
	WholeStreams bool
	Restart      int  // JPEG restart interval, MCUs
	Predictor    bool // horizontal differencing, for LZW, deflate and zstd
	RowsPerStrip int  // strips of so many rows in place of tiles
	Planar       bool // each channel's samples in tiles of their own; not for JPEG and JPEG 2000
	Sparse       bool // tiles without tissue have offset and byte count 0
	Big          bool // BigTIFF
	BigEndian    bool
	MPP          float64 // microns per pixel; 0: absent
	AppMag       float64 // objective power; 0: absent
	ICC          []byte  // profile, stored as it is
	Associated   Associated
	// SizeC, SizeZ and SizeT above 0 make an OME-TIFF of 8-bit gray planes in
	// XYCZT order instead of RGB.
	SizeC, SizeZ, SizeT int
	Scene               scene.Options // Seed, Width and Height are set from above
	// aperio overrides what an SVS says about its scan.
	aperio aperioText
}

// Level is a level's size and its downsample.
type Level struct{ Width, Height, Downsample int }

// PyramidLevels lists the levels that the slide will have.
func (s Spec) PyramidLevels() []Level {
	s = s.withDefaults()
	var out []Level
	for d := 1; len(out) < s.Levels; d *= s.Step {
		l := Level{s.Width / d, s.Height / d, d}
		if l.Width < 1 || l.Height < 1 {
			break
		}
		out = append(out, l)
	}
	return out
}

// planes is the number of gray planes; 0 for an RGB slide.
func (s Spec) planes() int {
	if s.SizeC == 0 && s.SizeZ == 0 && s.SizeT == 0 {
		return 0
	}
	return max(s.SizeC, 1) * max(s.SizeZ, 1) * max(s.SizeT, 1)
}

func (s Spec) withDefaults() Spec {
	if s.Format == "" {
		s.Format = SVS
	}
	if s.Tile == 0 {
		s.Tile = 256
		if s.Format == SVS {
			s.Tile = 240
		}
	}
	if s.Step == 0 {
		s.Step = 2
		if s.Format == SVS {
			s.Step = 4
		}
	}
	if s.Codec == "" {
		s.Codec = JPEG
	}
	if s.Layout == "" {
		s.Layout = Chain
		if s.Format == OME {
			s.Layout = SubIFDs
		}
	}
	if s.Quality == 0 {
		s.Quality = 75
	}
	if s.Sampling == (jpegenc.Sampling{}) {
		s.Sampling = jpegenc.S420
		if s.Codec == JPEGRGB || s.planes() > 0 {
			s.Sampling = jpegenc.S444
		}
	}
	if s.Levels == 0 {
		s.Levels = 1
		for d := 1; s.Step > 1 && (s.Width/d >= 1024 || s.Height/d >= 1024); d *= s.Step {
			s.Levels++
		}
	}
	s.Scene.Seed, s.Scene.Width, s.Scene.Height = s.Seed, s.Width, s.Height
	return s
}

// order is the file's byte order.
func (s Spec) order() binary.ByteOrder {
	if s.BigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Check says why a slide can't be written, nil when it can.
func (s Spec) Check() error {
	s = s.withDefaults()
	jpeg := s.Codec == JPEG || s.Codec == JPEGRGB
	j2k := s.Codec == J2K || s.Codec == J2KRGB || s.Codec == J2KYCbCr
	switch {
	case s.Width < 1 || s.Height < 1 || s.Width > 1<<30 || s.Height > 1<<30:
		return fmt.Errorf("synth: size %dx%d", s.Width, s.Height)
	case s.Tile < 16 || s.Tile > 8192 || s.Tile%16 != 0:
		return fmt.Errorf("synth: tile size %d is no multiple of 16 up to 8192", s.Tile)
	case s.Step&(s.Step-1) != 0 || s.Step < 2:
		return fmt.Errorf("synth: step %d is no power of two", s.Step)
	case s.Format != SVS && s.Format != TIFF && s.Format != OME:
		return fmt.Errorf("synth: unknown format %q", s.Format)
	case s.Layout != Chain && s.Layout != SubIFDs && s.Layout != COG:
		return fmt.Errorf("synth: unknown layout %q", s.Layout)
	case s.Format == SVS && s.Layout != Chain:
		return fmt.Errorf("synth: an SVS has its levels in the chain, not in %q", s.Layout)
	case s.Codec.compression() == 0:
		return fmt.Errorf("synth: unknown codec %q", s.Codec)
	case (jpeg || j2k) && s.Planar:
		return fmt.Errorf("synth: %s is not written planar", s.Codec)
	case j2k && s.RowsPerStrip > 0:
		return fmt.Errorf("synth: %s is not written in strips", s.Codec)
	case s.planes() > 0 && (s.Format != OME || j2k && s.Codec == J2KYCbCr):
		return fmt.Errorf("synth: planes are for OME-TIFF")
	case s.planes() > 1<<16:
		return fmt.Errorf("synth: %d planes", s.planes())
	}
	return nil
}
