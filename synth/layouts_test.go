package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/tiffw"
)

// layouts is a small slide of every form. Sizes are no multiple of a tile.
func layouts() map[string]Spec {
	base := Spec{Width: 1100, Height: 730, Seed: 3, MPP: 0.499, AppMag: 20, Levels: 2}
	with := func(f Format, c Codec, change func(*Spec)) Spec {
		s := base
		s.Format, s.Codec, s.Quality = f, c, 90
		if change != nil {
			change(&s)
		}
		return s
	}
	m := map[string]Spec{
		"svs RGB":         with(SVS, JPEGRGB, nil),
		"svs 420":         with(SVS, JPEG, nil),
		"svs 422":         with(SVS, JPEG, func(s *Spec) { s.Sampling = jpegenc.S422 }),
		"svs 33003":       with(SVS, J2KYCbCr, nil),
		"svs 33005":       with(SVS, J2KRGB, nil),
		"svs whole":       with(SVS, JPEG, func(s *Spec) { s.WholeStreams = true }),
		"svs whole jpeg":  with(SVS, JPEGRGB, func(s *Spec) { s.Associated = WholeJPEG }),
		"svs bare":        with(SVS, JPEGRGB, func(s *Spec) { s.Associated = NoAssociated }),
		"svs bigtiff":     with(SVS, JPEGRGB, func(s *Spec) { s.Big = true }),
		"svs bigendian":   with(SVS, JPEGRGB, func(s *Spec) { s.BigEndian = true }),
		"svs icc":         with(SVS, JPEGRGB, func(s *Spec) { s.ICC = make([]byte, 200) }),
		"tiff 420":        with(TIFF, JPEG, nil),
		"tiff 444":        with(TIFF, JPEG, func(s *Spec) { s.Sampling = jpegenc.S444 }),
		"tiff RGB":        with(TIFF, JPEGRGB, nil),
		"tiff restart":    with(TIFF, JPEG, func(s *Spec) { s.Restart = 5 }),
		"tiff 34712":      with(TIFF, J2K, nil),
		"tiff flat":       with(TIFF, JPEG, func(s *Spec) { s.Levels = 1 }),
		"tiff subifds":    with(TIFF, JPEG, func(s *Spec) { s.Layout = SubIFDs }),
		"tiff cog":        with(TIFF, JPEG, func(s *Spec) { s.Layout, s.Levels = COG, 3 }),
		"tiff cog big":    with(TIFF, Deflate, func(s *Spec) { s.Layout, s.Big, s.BigEndian = COG, true, true }),
		"tiff sparse":     with(TIFF, Raw, func(s *Spec) { s.Sparse, s.Tile = true, 64 }),
		"tiff strips":     with(TIFF, LZW, func(s *Spec) { s.RowsPerStrip, s.Predictor = 37, true }),
		"tiff jpeg strip": with(TIFF, JPEG, func(s *Spec) { s.RowsPerStrip = 16 }),
		"tiff planar":     with(TIFF, Deflate, func(s *Spec) { s.Planar = true }),
		"ome RGB":         with(OME, JPEG, nil),
		"ome deflate":     with(OME, Deflate, func(s *Spec) { s.Predictor, s.Big = true, true }),
		"ome planes":      with(OME, LZW, func(s *Spec) { s.SizeC, s.SizeZ, s.SizeT = 3, 2, 2 }),
		"ome jpeg planes": with(OME, JPEG, func(s *Spec) { s.SizeC = 4 }),
	}
	for _, c := range []Codec{Raw, Deflate, LZW, PackBits, Zstd} {
		for _, big := range []bool{false, true} {
			m[fmt.Sprintf("tiff %s big=%v", c, big)] = with(TIFF, c, func(s *Spec) {
				s.Big, s.BigEndian = big, !big
				s.Predictor = c != Raw && c != PackBits
			})
		}
	}
	return m
}

// checkCase is what check.py is told of a slide.
type checkCase struct {
	Name       string   `json:"name"`
	Path       string   `json:"path"`
	Raw        string   `json:"raw"` // level 0 as painted
	Width      int      `json:"width"`
	Height     int      `json:"height"`
	Planes     int      `json:"planes"`
	Levels     int      `json:"levels"`
	SVS        bool     `json:"svs"`
	Planar     bool     `json:"planar"`
	Sparse     bool     `json:"sparse"`
	YCC        bool     `json:"ycc"`
	OpenSlide  bool     `json:"openslide"`
	Tolerance  float64  `json:"tolerance"` // mean difference
	Associated []string `json:"associated"`
}

// TestAgainstReaders lets tifffile decode every layout and OpenSlide open those
// that it knows, in the Python that MICROTOME_OPENSLIDE_PYTHON names.
func TestAgainstReaders(t *testing.T) {
	python := os.Getenv("MICROTOME_OPENSLIDE_PYTHON")
	if python == "" {
		t.Skip("MICROTOME_OPENSLIDE_PYTHON names no Python with openslide and tifffile")
	}
	dir := t.TempDir()
	var cases []checkCase
	rgb := painted(t, layouts()["svs RGB"])
	for name, s := range layouts() {
		c := checkCase{
			Name: name, Path: filepath.Join(dir, fmt.Sprintf("%d.tif", len(cases))), Raw: filepath.Join(dir, fmt.Sprintf("%d.raw", len(cases))),
			Width: s.Width, Height: s.Height, Planes: s.planes(), Levels: len(s.PyramidLevels()), SVS: s.Format == SVS,
			Planar: s.Planar, Sparse: s.Sparse, YCC: s.Codec == J2KYCbCr, Associated: []string{},
			// OpenSlide 4.0.1 reads no SubIFDs, strips, planar images, 34712, zstd or
			// gray, and no big-endian TIFF unless it is BigTIFF.
			OpenSlide: (s.Big || !s.BigEndian) && s.Layout != SubIFDs && s.Format != OME && s.RowsPerStrip == 0 && !s.Planar && s.Codec != J2K && s.Codec != Zstd,
			Tolerance: tolerance(s),
		}
		if c.SVS && s.Associated != NoAssociated {
			c.Associated = []string{"label", "macro", "thumbnail"}
		}
		if err := WriteFile(c.Path, s, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := os.WriteFile(c.Raw, stored(s, rgb), 0o600); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	list, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cases.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "testdata/check.py", filepath.Join(dir, "cases.json")).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// tolerance is the mean difference that the codec may make.
func tolerance(s Spec) float64 {
	switch s.Codec {
	case JPEG:
		return 3.5
	case JPEGRGB:
		return 2.5
	case J2KYCbCr:
		return 1
	}
	return 0
}

// painted is level 0 as the scene has it.
func painted(t *testing.T, s Spec) []byte {
	t.Helper()
	wr := &writer{s: s.withDefaults()}
	if err := wr.prepare(); err != nil {
		t.Fatal(err)
	}
	rgb := make([]byte, s.Width*s.Height*3)
	wr.scene.Paint(rgb, 0, 0, s.Width, s.Height, 1)
	return rgb
}

// stored is what a lossless slide's level 0 holds, plane after plane.
func stored(s Spec, rgb []byte) (out []byte) {
	wr := &writer{s: s.withDefaults()}
	if s.planes() == 0 {
		return rgb
	}
	for p := range s.planes() {
		out = append(out, wr.gray(rgb, p)...)
	}
	return out
}

// TestDeterministic writes a slide twice, on one processor and on all.
func TestDeterministic(t *testing.T) {
	var first []byte
	for _, procs := range []int{1, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		b := tiffw.NewBuffer()
		if err := Write(b, Spec{Width: 900, Height: 700, Seed: 9}); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Error("the bytes depend on the number of processors")
		}
	}
}

// TestRefused checks that what can't be written is said, not written wrong.
func TestRefused(t *testing.T) {
	for _, s := range []Spec{
		{}, {Width: 10, Height: 10, Tile: 100}, {Width: 10, Height: 10, Step: 3}, {Width: 10, Height: 10, Codec: "gif"},
		{Width: 10, Height: 10, Format: "dicom"}, {Width: 10, Height: 10, Layout: COG}, {Width: 10, Height: 10, Planar: true},
		{Width: 10, Height: 10, SizeC: 3}, {Width: 10, Height: 10, Quality: 500},
	} {
		if err := Write(tiffw.NewBuffer(), s); err == nil {
			t.Errorf("%+v is written", s)
		}
	}
}
