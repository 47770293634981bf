package formats

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

const aperioText = "Aperio Image Library v11.2.1\r\n64x64 (16x16) JPEG/RGB Q=30|AppMag = 20|MPP = 0.4990"

// aperio is a slide's first directory.
func aperio(more string) *dir { return tiled(64, 64).says(aperioText + more) }

// TestAperioLevelsAndImages: D1 (label and macro by subfile type), D2 (never a
// level), D13 (label blanked or gone).
func TestAperioLevelsAndImages(t *testing.T) {
	thumbnail := func() *dir { return striped(30, 30).says("Aperio\r\n64x64 -> 30x30 - |AppMag = 20") }
	for name, c := range map[string]struct {
		dirs []*dir
		want string
	}{
		"one level":           {[]*dir{aperio("")}, "64x64"},
		"levels":              {[]*dir{aperio(""), thumbnail(), tiled(32, 32), tiled(16, 16)}, "64x64 32x32 16x16 thumbnail:30x30"},
		"no thumbnail":        {[]*dir{aperio(""), tiled(32, 32), striped(9, 8).kind(1)}, "64x64 32x32 label:9x8"},
		"thumbnail untold":    {[]*dir{aperio(""), striped(30, 30)}, "64x64 thumbnail:30x30"},
		"by subfile type":     {[]*dir{aperio(""), thumbnail(), striped(9, 8).kind(1), striped(20, 8).kind(9)}, "64x64 thumbnail:30x30 label:9x8 macro:20x8"},
		"by description":      {[]*dir{aperio(""), thumbnail(), striped(9, 8).says("Aperio\r\nlabel 9x8"), striped(20, 8).says("Aperio\nmacro 20x8")}, "64x64 thumbnail:30x30 label:9x8 macro:20x8"},
		"neither":             {[]*dir{aperio(""), thumbnail(), striped(9, 8)}, "64x64 thumbnail:30x30"},
		"wrong subfile type":  {[]*dir{aperio(""), thumbnail(), striped(9, 8).kind(8)}, "64x64 thumbnail:30x30"},
		"label in 2nd place":  {[]*dir{aperio(""), striped(9, 18).kind(1)}, "64x64 label:9x18"},
		"told in 2nd place":   {[]*dir{aperio(""), striped(30, 30).says("Aperio\nlabel 30x30")}, "64x64 label:30x30"},
		"tiled macro":         {[]*dir{aperio(""), tiled(32, 32).kind(9)}, "64x64 macro:32x32"},
		"tiled label":         {[]*dir{aperio(""), tiled(32, 33).says("Aperio\nlabel 32x33").kind(1)}, "64x64 label:32x33"},
		"tiled label, untold": {[]*dir{aperio(""), tiled(32, 8).kind(1)}, "64x64 label:32x8"},
		"tiled, other shape":  {[]*dir{aperio(""), tiled(32, 8)}, "64x64"},
		"level marked 1":      {[]*dir{aperio(""), tiled(32, 32).kind(1)}, "64x64 32x32"},
		"levels out of order": {[]*dir{aperio(""), tiled(16, 16), tiled(32, 32)}, "64x64 32x32 16x16"},
		"label of one pixel":  {[]*dir{aperio(""), thumbnail(), striped(1, 1).kind(1)}, "64x64 thumbnail:30x30 label:1x1"},
		"two labels":          {[]*dir{aperio(""), striped(9, 18).kind(1), striped(10, 18).kind(1)}, "64x64 label:10x18"},
		"sparse label":        {[]*dir{aperio(""), thumbnail(), striped(9, 8).kind(1).without(0)}, "64x64 thumbnail:30x30 label:9x8"},
	} {
		s := opened(t, c.dirs...)
		if got := shape(s); got != c.want || s.Info().Format != "aperio" {
			t.Errorf("%s: %s %q, want %q; %q", name, s.Info().Format, got, c.want, s.Info().Warnings)
		}
	}
}

// TestAperioScale: D4 (decimal comma, joined headers) and D7 (unknown stays
// unknown).
func TestAperioScale(t *testing.T) {
	for header, want := range map[string]struct{ mpp, power float64 }{
		"Aperio v1|MPP = 0,2520|AppMag = 40":                                          {0.252, 40},
		"Aperio v11\r\n1x1 (240x240);Aperio v10\r\n(256x256)|MPP = 0.499|AppMag = 20": {0.499, 20},
		"Aperio v1|Title = Mag = 40X|MPP = 0.5":                                       {0.5, 0},
		"Aperio v1|MPP = |AppMag = ":                                                  {0, 0},
		"Aperio v1|MPP = 0|AppMag = 0":                                                {0, 0},
		"Aperio v1|MPP = inf|AppMag = -20":                                            {0, 0},
		"Aperio v1|MPP|AppMag":                                                        {0, 0},
		"Aperio v1":                                                                   {0, 0},
	} {
		info := opened(t, tiled(64, 64).says(header)).Info()
		mpp, power := 0.0, 0.0
		if info.MPP != nil {
			mpp = info.MPP.X
		}
		if info.ObjectivePower != nil {
			power = *info.ObjectivePower
		}
		if mpp != want.mpp || power != want.power {
			t.Errorf("%q: mpp %v, power %v, want %v", header, mpp, power, want)
		}
	}
}

// TestAperioBrokenDescription: D14, a description that can't be read leaves a
// plain TIFF.
func TestAperioBrokenDescription(t *testing.T) {
	d := aperio("")
	data := file(d)
	at := strings.Index(string(data), "\x0e\x01\x02\x00") // tag 270, ASCII
	copy(data[at+8:], "\xff\xff\xff\x7f")
	s, err := Open(context.Background(), &memory{data: data}, Options{})
	if err == nil && s.Info().Format == "aperio" {
		t.Error("taken as Aperio")
	}
	if err != nil && !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

// TestAperioRefused: what OpenSlide refuses at open is refused by tag and value.
func TestAperioRefused(t *testing.T) {
	for want, dirs := range map[string][]*dir{
		"Compression 200":  {aperio("").set(259, short(200))},
		"Compression 201":  {aperio(""), tiled(32, 32).set(259, short(201))},
		"ImageDepth 2":     {aperio("").set(32997, long(2))},
		"BitsPerSample 12": {aperio("").set(258, short(12, 12, 12))},
		"BitsPerSample 16": {aperio("").set(258, short(16, 16, 16))},
	} {
		_, err := Open(context.Background(), &memory{data: file(dirs...)}, Options{})
		if !errors.Is(err, microtome.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	s := opened(t, aperio(""), striped(30, 30).set(259, short(200)))
	if got := shape(s); got != "64x64" || len(s.Info().Warnings) == 0 {
		t.Errorf("a thumbnail that can't be read: %q, %q", got, s.Info().Warnings)
	}
}

func TestAperioTiles(t *testing.T) {
	s := opened(t, aperio(""), striped(9, 18).kind(1), tiled(32, 32).without(3))
	if !s.Info().InheritEmpty {
		t.Error("an empty tile is not painted from the level above")
	}
	ctx := context.Background()
	tile, err := s.ReadTile(ctx, 0, 0, 1, 2)
	if err != nil || tile.Data[0] != 10 || tile.Color != microtome.ColorRGB {
		t.Errorf("tile 1,2 = %d..., %v", tile.Data[:1], err)
	}
	if _, err := s.ReadTile(ctx, 1, 0, 1, 1); !errors.Is(err, microtome.ErrEmptyTile) {
		t.Errorf("sparse tile: %v", err)
	}
	for _, at := range [][4]int{{-1, 0, 0, 0}, {2, 0, 0, 0}, {0, 1, 0, 0}, {0, -1, 0, 0}, {0, 0, 4, 0}, {0, 0, 0, 4}, {0, 0, -1, 0}} {
		if _, err := s.ReadTile(ctx, at[0], at[1], at[2], at[3]); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("tile %v: %v, want not found", at, err)
		}
	}
	if label, err := s.ReadAssociated(ctx, "label", 0, 0); err != nil || label.VisibleWidth != 9 {
		t.Errorf("label: %d wide, %v", label.VisibleWidth, err)
	}
	if _, err := s.ReadAssociated(ctx, "macro", 0, 0); !errors.Is(err, microtome.ErrNotFound) {
		t.Errorf("macro: %v, want not found", err)
	}
}

// TestAperioICC: the slide's profile, an image's own, and the slide's for an
// image whose description names the same.
func TestAperioICC(t *testing.T) {
	ctx := context.Background()
	profile := undef(filled(200, 1))
	s := opened(t, aperio("|ICC Profile = sRGB").set(34675, profile),
		striped(30, 30).says("Aperio\nx|ICC Profile = sRGB"),
		striped(9, 8).kind(1), striped(20, 8).kind(9).set(34675, undef(filled(100, 2))))
	for name, want := range map[string]int{"": 200, "thumbnail": 200, "label": 0, "macro": 100} {
		got, err := s.ICCProfile(ctx, name)
		if err != nil || len(got) != want {
			t.Errorf("profile of %q: %d bytes, %v, want %d", name, len(got), err, want)
		}
	}
	if _, err := s.ICCProfile(ctx, "nosuch"); !errors.Is(err, microtome.ErrNotFound) {
		t.Errorf("profile of nosuch: %v", err)
	}
	if s.Info().ICCBytes != 200 || s.Info().Associated[2].ICCBytes != 100 {
		t.Errorf("ICC sizes: %+v", s.Info())
	}
}

// TestJPEG2000Color: D9. 33003 is YCbCr in Aperio's files; elsewhere
// PhotometricInterpretation decides.
func TestJPEG2000Color(t *testing.T) {
	for name, c := range map[string]struct {
		d    *dir
		want microtome.Color
	}{
		"aperio 33003":      {aperio("").set(259, short(33003)), microtome.ColorYCbCr},
		"aperio 33005":      {aperio("").set(259, short(33005)), microtome.ColorRGB},
		"plain 33003, RGB":  {tiled(64, 64).set(259, short(33003)), microtome.ColorRGB},
		"plain 33003":       {tiled(64, 64).set(259, short(33003)).set(262, short(6)), microtome.ColorYCbCr},
		"plain 34712":       {tiled(64, 64).set(259, short(34712)), microtome.ColorRGB},
		"plain 34712 YCbCr": {tiled(64, 64).set(259, short(34712)).set(262, short(6)), microtome.ColorYCbCr},
	} {
		s := opened(t, c.d)
		tile, err := s.ReadTile(context.Background(), 0, 0, 0, 0)
		if got := s.Info().Levels[0]; err != nil || got.Color != c.want || tile.Color != c.want || got.Codec != microtome.CodecJPEG2000 {
			t.Errorf("%s: colour %v, tile %v, %v, want %v", name, got.Color, tile.Color, err, c.want)
		}
	}
}
