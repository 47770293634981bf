package formats

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/tiffw"
)

// shapes are small files that OpenSlide 4.0.1 opens, each odd in one way: they
// seed the fuzzer, and their properties must equal OpenSlide's.
func shapes() map[string][]byte {
	resolution := func(x, y tiffw.Entry, unit uint16) []byte {
		return file(tiled(64, 64).set(282, x).set(283, y).set(296, short(unit)))
	}
	all := tiled(64, 64)
	for tag, s := range map[uint16]string{269: "name", 271: "make", 272: "model", 305: "soft", 306: "2020:01:01 00:00:00", 315: " artist ", 316: "host", 33432: "©", 270: "text"} {
		all.set(tag, text(s))
	}
	big := tiled(64, 64)
	for i := range big.cells {
		big.cells[i] = filled(330<<10, i)
	}
	return map[string][]byte{
		"flat":                file(tiled(64, 64)),
		"big-endian BigTIFF":  fileAs(tiffw.Options{Big: true, Order: binary.BigEndian}, tiled(60, 55), tiled(30, 27).kind(1)),
		"levels":              file(tiled(101, 75), tiled(50, 37).kind(1), tiled(25, 18).kind(1)),
		"levels shuffled":     file(tiled(64, 64), tiled(16, 16).kind(1), tiled(32, 32).kind(1)),
		"smallest first":      file(tiled(32, 32).says("small").set(34675, undef(filled(9, 1))), tiled(64, 64).kind(1).set(34675, undef(filled(7, 1)))),
		"unmarked":            file(tiled(64, 64), tiled(32, 32)),
		"masks":               file(tiled(64, 64), tiled(64, 64).kind(4), tiled(32, 32).kind(1), tiled(32, 32).kind(5)),
		"other shape":         file(tiled(64, 64), tiled(32, 8).kind(1)),
		"strip beside":        file(tiled(64, 64), striped(32, 32).kind(1)),
		"SubIFDs":             file(tiled(64, 64).below(tiled(32, 32).kind(1))),
		"texts":               file(all),
		"texts broken":        file(tiled(64, 64).set(271, text("")).set(272, text("a\x00b")).set(315, entry(tiffw.ASCII, 5, "nonul")).set(316, text("\xe9\xff"))),
		"ICC":                 file(tiled(64, 64).set(34675, undef(filled(200, 1)))),
		"sparse":              file(tiled(64, 64).without(3, 9)),
		"ring missing":        file(tiled(64, 64).only(5, 6)),
		"none stored":         file(tiled(60, 55).only()),
		"too much to hash":    file(big),
		"inch":                resolution(ratio(1000, 1), ratio(2000, 3), 2),
		"centimeter":          resolution(ratio(1000, 1), ratio(2000, 3), 3),
		"no unit":             resolution(ratio(1000, 1), ratio(2000, 3), 1),
		"unknown unit":        resolution(ratio(1000, 1), ratio(2000, 3), 9),
		"zero":                resolution(ratio(0, 1), ratio(2000, 3), 2),
		"zero denominator":    resolution(ratio(1, 0), ratio(2000, 3), 2),
		"negative resolution": resolution(entry(tiffw.SRational, 1, []int32{-3, 1}), ratio(3, 1), 2),
		"float resolution":    resolution(entry(tiffw.Float, 1, []float32{1000.5}), entry(tiffw.Double, 1, []float64{1e-300}), 3),
		"resolution as SHORT": resolution(short(300), ratio(3, 1), 2),
		"position":            file(tiled(64, 64).set(286, ratio(3, 1)).set(287, ratio(3, 7))),
		"OME-TIFF":            file(ome(tiled(64, 64), `SizeC="3"`, `<TiffData IFD="0"/>`)),

		"aperio":               file(aperio("")),
		"aperio levels":        file(aperio(""), striped(30, 30), tiled(32, 32), tiled(16, 16), striped(9, 18).kind(1), striped(20, 8).kind(9)),
		"aperio label 2nd":     file(aperio(""), striped(9, 18).kind(1)),
		"aperio label untold":  file(aperio(""), striped(30, 30), striped(9, 18).says("Aperio\nlabel 9x18")),
		"aperio label twice":   file(aperio(""), striped(30, 30), striped(9, 18).kind(1), striped(10, 18).kind(1)),
		"aperio label wrong":   file(aperio(""), striped(30, 30), striped(9, 18).kind(8)),
		"aperio label tiled":   file(aperio(""), striped(30, 30), tiled(32, 8).kind(1)),
		"aperio label blank":   file(aperio(""), striped(30, 30), striped(1, 1).kind(1)),
		"aperio comma":         file(tiled(64, 64).says("Aperio v1|MPP = 0,2520|AppMag = 20,5")),
		"aperio numbers":       file(tiled(64, 64).says("Aperio v1|MPP = 0x1p-2|AppMag = inf")),
		"aperio no numbers":    file(tiled(64, 64).says("Aperio v1|MPP = 0.5 um|AppMag = 40X")),
		"aperio odd keys":      file(tiled(64, 64).says("Aperio v1|Title = Mag = 40X|Empty = |No|=none|K = 1|K = 2||\tT =\tv\r\nw")),
		"aperio joined":        file(tiled(64, 64).says("Aperio v11\r\n1x1 (240x240) Q=30;Aperio v10\r\n(256x256)|AppMag = 20|MPP = 0.4990")),
		"aperio text only":     file(tiled(64, 64).says("Aperio")),
		"aperio sparse":        file(aperio("").only(5)),
		"aperio level missing": file(aperio(""), tiled(32, 32).without(3)),
		"aperio same profile":  file(aperio("|ICC Profile = s").set(34675, undef(filled(200, 1))), striped(30, 30).says("x|ICC Profile=s"), striped(9, 18).kind(1).says("x|ICC Profile = s")),
		"aperio other profile": file(aperio("|ICC Profile = s").set(34675, undef(filled(200, 1))), striped(30, 30).set(34675, undef(filled(100, 1)))),
		"not aperio":           file(tiled(64, 64).says(" Aperio v1|a = b")),
	}
}

// TestShapesEqualOpenSlide compares every property of every shape.
func TestShapesEqualOpenSlide(t *testing.T) {
	folder, all := t.TempDir(), shapes()
	names, files := slices.Sorted(maps.Keys(all)), []string{}
	for _, name := range names {
		files = append(files, filepath.Join(folder, name+".tif"))
		if err := os.WriteFile(files[len(files)-1], all[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, theirs := range ask(t, files) {
		if theirs == nil {
			t.Errorf("OpenSlide refuses %s", names[i])
			continue
		}
		s, err := openPath(t, files[i])
		if err != nil {
			t.Errorf("%s: %v", names[i], err)
			continue
		}
		compareProperties(t, names[i], s, theirs)
		s.Close()
	}
}

// ofAKind says whether an error is one that a caller can tell apart.
func ofAKind(err error) bool {
	for _, kind := range []error{microtome.ErrCorrupt, microtome.ErrUnsupported, microtome.ErrLimit, microtome.ErrEmptyTile, microtome.ErrNotFound} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return err == nil
}

// seeds are small shapes of every kind: the engine takes long to shrink large
// ones.
func seeds() [][]byte {
	small := func() *dir { return tiled(16, 16).gray() }
	form := tiffw.Options{Big: true, Order: binary.BigEndian}
	return [][]byte{
		file(small().set(282, ratio(1000, 1)).set(283, ratio(3, 0)).set(296, short(3)).set(34675, undef(filled(9, 1)))),
		file(tiled(32, 16).gray().without(0), small().kind(1), small().kind(5)),
		file(small().below(tiled(8, 8).gray().kind(1))),
		file(striped(16, 16).gray(), striped(8, 8).gray().kind(1)),
		file(small().says(aperioText), striped(9, 9).gray(), tiled(8, 8).gray(), striped(3, 6).gray().kind(1), striped(6, 2).gray().kind(9)),
		file(ome(small().below(tiled(8, 8).gray()), `SizeC="2"`, `<Channel Name="a"/><TiffData/>`), small().below(tiled(8, 8).gray())),
		file(ome(small(), `SizeZ="2"`, `<TiffData IFD="0" PlaneCount="2"/>`), tiled(8, 8).gray().kind(1), small(), tiled(8, 8).gray().kind(1)),
		file(ome(planar(16, 16), `SizeC="3"`, `<TiffData IFD="0"/>`)),
		fileAs(form, small(), tiled(8, 8).gray().kind(1)),
		fileAs(form, small().says(aperioText+"|ICC Profile = s").set(34675, undef(filled(9, 1))), striped(9, 9).gray().says("x|ICC Profile = s")),
	}
}

// FuzzOpen opens whole files and asks them for everything.
func FuzzOpen(f *testing.F) {
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := context.Background()
		s, err := Open(ctx, &memory{data: data}, Options{})
		if err != nil {
			if !ofAKind(err) {
				t.Fatalf("open: an error of no kind: %v", err)
			}
			return
		}
		info := s.Info()
		if len(info.Levels) == 0 {
			t.Fatal("a slide without levels")
		}
		for i, level := range info.Levels {
			if level.Width <= 0 || level.Height <= 0 || level.Cols <= 0 || level.Rows <= 0 || !(level.Downsample >= 1) {
				t.Fatalf("level %d: %+v", i, level)
			}
			for _, at := range [][2]int{{0, 0}, {level.Cols - 1, level.Rows - 1}} {
				if _, err := s.ReadTile(ctx, i, 0, at[0], at[1]); !ofAKind(err) {
					t.Fatalf("tile: an error of no kind: %v", err)
				}
			}
		}
		for _, a := range info.Associated {
			if _, err := s.ReadAssociated(ctx, a.Name, 0, 0); !ofAKind(err) {
				t.Fatalf("associated: an error of no kind: %v", err)
			}
		}
		if _, err := s.Properties(ctx); !ofAKind(err) {
			t.Fatalf("properties: an error of no kind: %v", err)
		}
		if id, err := s.ContentID(ctx); !ofAKind(err) || err == nil && id == "" {
			t.Fatalf("content id %q: %v", id, err)
		}
		if _, err := s.ICCProfile(ctx, ""); !ofAKind(err) {
			t.Fatalf("profile: an error of no kind: %v", err)
		}
	})
}
