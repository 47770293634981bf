package formats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/tiffw"
)

// ome makes d the first directory of an OME-TIFF.
func ome(d *dir, pixels, inside string) *dir {
	return d.says(omeText(`DimensionOrder="XYCZT" Type="uint8" SizeX="64" SizeY="64" `+pixels, inside))
}

func gray(w, h int) *dir { return tiled(w, h).gray() }

// TestOMEPlanes: B2 (pyramids in SubIFDs or in the chain), B4 (directories that
// no TiffData names), B6 (RGB or three planes).
func TestOMEPlanes(t *testing.T) {
	const three = `SizeC="3"`
	const threeData = `<TiffData IFD="0"/><TiffData IFD="1" FirstC="1"/><TiffData IFD="2" FirstC="2"/>`
	for name, c := range map[string]struct {
		dirs []*dir
		want string
		c, z int
	}{
		"RGB by the XML":        {[]*dir{ome(tiled(64, 64), three, `<Channel SamplesPerPixel="3"/><TiffData IFD="0"/>`)}, "64x64", 1, 1},
		"RGB by the directory":  {[]*dir{ome(tiled(64, 64), three, `<TiffData/>`)}, "64x64", 1, 1},
		"three planes":          {[]*dir{ome(gray(64, 64), three, threeData), gray(64, 64), gray(64, 64)}, "64x64", 3, 1},
		"samples stored apart":  {[]*dir{ome(planar(64, 64), three, `<TiffData IFD="0"/>`)}, "64x64", 3, 1},
		"focal planes":          {[]*dir{ome(gray(64, 64), `SizeZ="2"`, `<TiffData/>`), gray(64, 64)}, "64x64", 1, 2},
		"SubIFDs of each plane": {[]*dir{ome(gray(64, 64).below(gray(32, 32), gray(16, 16)), three, threeData), gray(64, 64).below(gray(32, 32), gray(16, 16)), gray(64, 64).below(gray(32, 32), gray(16, 16))}, "64x64 32x32 16x16", 3, 1},
		"chain, level by level": {[]*dir{ome(gray(64, 64), three, threeData), gray(64, 64), gray(64, 64), gray(32, 32).kind(1), gray(32, 32).kind(1), gray(32, 32).kind(1)}, "64x64 32x32", 3, 1},
		"chain, plane by plane": {[]*dir{ome(gray(64, 64), three, `<TiffData/>`), gray(32, 32).kind(1), gray(64, 64), gray(32, 32).kind(1), gray(64, 64), gray(32, 32).kind(1)}, "64x64 32x32", 3, 1},
		"RGB, chain":            {[]*dir{ome(tiled(64, 64), three, `<TiffData IFD="0" PlaneCount="1"/>`), tiled(32, 32).kind(1), tiled(16, 16).kind(1)}, "64x64 32x32 16x16", 1, 1},
		"junk in the chain":     {[]*dir{ome(tiled(64, 64), three, `<TiffData IFD="0"/>`), striped(9, 8), tiled(64, 64)}, "64x64", 1, 1},
		"strips":                {[]*dir{ome(striped(64, 64).gray(), `SizeC="1"`, `<TiffData/>`)}, "64x64", 1, 1},
	} {
		s := opened(t, c.dirs...)
		info := s.Info()
		if got := shape(s); got != c.want || info.Format != "ome-tiff" || info.Planes.C != c.c || info.Planes.Z != c.z || info.Planes.T != 1 {
			t.Errorf("%s: %s %q %+v, want %q %d %d; %q", name, info.Format, got, info.Planes, c.want, c.c, c.z, info.Warnings)
		}
	}
}

// planar stores the three samples of a pixel in tiles of their own.
func planar(w, h int) *dir {
	d := gray(w, h)
	for s := range 2 {
		for i := range gray(w, h).cells {
			d.cells = append(d.cells, filled(16*16, 100*(s+1)+i))
		}
	}
	return d.set(258, short(8, 8, 8)).set(277, short(3)).set(262, short(2)).set(284, short(2))
}

// TestOMEReadsThePlane: every plane of every level comes from its directory.
func TestOMEReadsThePlane(t *testing.T) {
	mark := func(d *dir, v int) *dir { d.cells[0] = filled(256, v); return d }
	const data = `<TiffData IFD="2"/><TiffData IFD="1" FirstC="1"/><TiffData IFD="0" FirstC="2"/>`
	chain := []*dir{
		ome(mark(gray(64, 64), 10), `SizeC="3"`, data), mark(gray(64, 64), 11), mark(gray(64, 64), 12),
		mark(gray(32, 32).kind(1), 20), mark(gray(32, 32).kind(1), 21), mark(gray(32, 32).kind(1), 22),
	}
	sub := []*dir{
		ome(mark(gray(64, 64), 10).below(mark(gray(32, 32), 20)), `SizeC="3"`, data),
		mark(gray(64, 64), 11).below(mark(gray(32, 32), 21)), mark(gray(64, 64), 12).below(mark(gray(32, 32), 22)),
	}
	apart := []*dir{ome(planar(64, 64), `SizeC="3"`, `<TiffData IFD="0"/>`)}
	for name, c := range map[string]struct {
		dirs []*dir
		want string
	}{
		"chain":   {chain, "12 11 10 22 21 20"},
		"SubIFDs": {sub, "12 11 10 22 21 20"},
		"apart":   {apart, "1 100 200"},
	} {
		s := opened(t, c.dirs...)
		got := []string{}
		for level := range s.Info().Levels {
			for plane := range 3 {
				tile, err := s.ReadTile(context.Background(), level, plane, 0, 0)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if tile.Samples != 1 {
					t.Errorf("%s: %d samples", name, tile.Samples)
				}
				got = append(got, fmt.Sprint(tile.Data[0]))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: planes hold %v, want %s", name, got, c.want)
		}
	}
}

func TestOMEDescribes(t *testing.T) {
	s := opened(t, ome(gray(64, 64), `SizeC="2" PhysicalSizeX="500" PhysicalSizeXUnit="nm" PhysicalSizeY="0.5"`,
		`<Channel Name="DAPI" Color="65535"/><Channel Name="FITC"/><TiffData/>`), gray(64, 64))
	info := s.Info()
	if info.MPP == nil || info.MPP.X != 0.5 || info.MPP.Y != 0.5 || info.ObjectivePower == nil || *info.ObjectivePower != 20 {
		t.Errorf("mpp %v, power %v", info.MPP, info.ObjectivePower)
	}
	if c := info.Planes.Channels; len(c) != 2 || c[0].Name != "DAPI" || *c[0].Color != (microtome.RGB{B: 255}) || c[1].Color != nil {
		t.Errorf("channels %+v", c)
	}
	p, err := s.Properties(context.Background())
	if err != nil || p["openslide.vendor"] != "generic-tiff" || p["openslide.level-count"] != "1" {
		t.Errorf("properties %v, %v", p, err)
	}
}

// TestOMEAssociated: B4, an Image that is named label is offered as one.
func TestOMEAssociated(t *testing.T) {
	first := tiled(64, 64)
	text := omeText(`Type="uint8" SizeX="64" SizeY="64" SizeC="3"`, `<TiffData IFD="0"/>`)
	more := `<Image Name="label image"><Pixels SizeX="9" SizeY="8" SizeC="3"><TiffData IFD="1"/></Pixels></Image>` +
		`<Image Name="second scene"><Pixels SizeX="64" SizeY="64" SizeC="3"><TiffData IFD="2"/></Pixels></Image></OME>`
	s := opened(t, first.says(strings.Replace(text, "</OME>", more, 1)), striped(9, 8), tiled(64, 64))
	if got := shape(s); got != "64x64 label:9x8" || len(s.Info().Warnings) == 0 {
		t.Errorf("%q, %q", got, s.Info().Warnings)
	}
}

func TestOMERefused(t *testing.T) {
	for want, dirs := range map[string][]*dir{
		"BitsPerSample 16":                  {ome(gray(64, 64).set(258, short(16)), `SizeC="1"`, ``)},
		`TiffData FileName of another file`: {ome(gray(64, 64), `SizeZ="2"`, `<TiffData IFD="0"><UUID FileName="a">urn:uuid:1</UUID></TiffData><TiffData FirstZ="1" IFD="0"><UUID FileName="b.tif">urn:uuid:2</UUID></TiffData>`)},
		`BinaryOnly MetadataFile`:           {gray(64, 64).says(`<OME><BinaryOnly MetadataFile="companion.ome" UUID="x"/></OME>`)},
	} {
		_, err := Open(context.Background(), &memory{data: file(dirs...)}, Options{})
		if !errors.Is(err, microtome.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
		// Names of files, in a file's own text, may be those of patients.
		if err != nil && (strings.Contains(err.Error(), "b.tif") || strings.Contains(err.Error(), "companion")) {
			t.Errorf("the reason tells a name: %v", err)
		}
	}
	_, err := Open(context.Background(), &memory{data: file(ome(gray(64, 64), `SizeC="1"`, ``))}, Options{Limits: Limits{XMLBytes: 100}})
	if !errors.Is(err, microtome.ErrLimit) {
		t.Errorf("a long block: %v", err)
	}
}

// TestOMEBroken: a block that can't be read leaves a plain TIFF, with a word.
func TestOMEBroken(t *testing.T) {
	s := opened(t, tiled(64, 64).says(`<?xml version="1.0"?><OME><Image>`))
	if s.Info().Format != "generic-tiff" || len(s.Info().Warnings) != 1 {
		t.Errorf("%s, %q", s.Info().Format, s.Info().Warnings)
	}
}

// TestOMEMissingPlane: a plane that no directory holds fails alone.
func TestOMEMissingPlane(t *testing.T) {
	s := opened(t, ome(gray(64, 64), `SizeC="2"`, `<TiffData IFD="0"/>`))
	if _, err := s.ReadTile(context.Background(), 0, 0, 0, 0); err != nil {
		t.Error(err)
	}
	if _, err := s.ReadTile(context.Background(), 0, 1, 0, 0); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

// TestOMEInEveryForm: B1 and B10, SubIFDs in BigTIFF and big-endian.
func TestOMEInEveryForm(t *testing.T) {
	for _, form := range []tiffw.Options{{}, {Order: binary.BigEndian}, {Big: true}, {Big: true, Order: binary.BigEndian}} {
		data := fileAs(form, ome(tiled(64, 64).below(tiled(32, 32)), `SizeC="3"`, `<TiffData IFD="0"/>`))
		s, err := Open(context.Background(), &memory{data: data}, Options{})
		if err != nil {
			t.Fatalf("%+v: %v", form, err)
		}
		tile, err := s.ReadTile(context.Background(), 1, 0, 1, 0)
		if got := shape(s); got != "64x64 32x32" || err != nil || tile.Data[0] != 2 {
			t.Errorf("%+v: %q, %v", form, got, err)
		}
	}
}

// TestOMESubsampledRGB: JPEG tiles of subsampled YCbCr under a directory that
// says RGB are YCbCr in an OME-TIFF; everywhere else PhotometricInterpretation
// decides (C4).
func TestOMESubsampledRGB(t *testing.T) {
	for _, c := range []struct {
		sampling jpegenc.Sampling
		ome      bool
		want     microtome.Color
	}{
		{jpegenc.Sampling{H: 2, V: 2}, true, microtome.ColorYCbCr},
		{jpegenc.Sampling{H: 2, V: 1}, true, microtome.ColorYCbCr},
		{jpegenc.Sampling{H: 1, V: 1}, true, microtome.ColorRGB},
		{jpegenc.Sampling{H: 2, V: 2}, false, microtome.ColorRGB},
	} {
		e, err := jpegenc.New(jpegenc.Options{Color: jpegenc.YCbCr, Sampling: c.sampling, JFIF: true})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := e.Encode(nil, filled(16*16*3, 90), 16, 16, 16*3)
		if err != nil {
			t.Fatal(err)
		}
		d := tiled(16, 16).set(259, short(7))
		d.cells = [][]byte{stream}
		if c.ome {
			d = ome(d, `SizeC="3"`, `<TiffData IFD="0"/>`)
		}
		tile, err := opened(t, d).ReadTile(context.Background(), 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		h, err := jpegstream.Parse(tile.Data)
		transform := map[microtome.Color]uint8{microtome.ColorYCbCr: 1}[c.want]
		if err != nil || tile.Color != c.want || !h.Adobe || h.JFIF || h.Transform != transform {
			t.Errorf("%+v: colour %v, stream %+v, %v", c, tile.Color, h, err)
		}
	}
}
