package formats

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// layout is what a format makes of a file's directories.
type layout struct {
	format       string
	levels       [][]picture // by level and plane; a picture without dir is missing
	associated   []associated
	planes       microtome.Planes
	mpp          *microtome.MPP
	power        *float64
	icc          *tiff.Dir
	inheritEmpty bool
	warnings     []string
	unsaid       int // warnings beyond maxWarnings
	reported     report
}

// maxWarnings is how many oddities are told one by one: a file of a thousand
// pages must not hold a thousand lines.
const maxWarnings = 16

func onePlane() microtome.Planes { return microtome.Planes{C: 1, Z: 1, T: 1} }

// associated is an image beside the slide; icc is the directory that holds its
// profile, nil for none.
type associated struct {
	name     string
	dir, icc *tiff.Dir
}

func (l *layout) warn(format string, args ...any) {
	if len(l.warnings) == maxWarnings {
		l.unsaid++
		return
	}
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// associate adds an image; of equal names the last wins, as in OpenSlide.
func (l *layout) associate(name string, dir, icc *tiff.Dir) {
	a := associated{name: name, dir: dir, icc: icc}
	for i := range l.associated {
		if l.associated[i].name == name {
			l.warn("%s: a second %s; it hides the first", dir.Name(), name)
			l.associated[i] = a
			return
		}
	}
	l.associated = append(l.associated, a)
}

// slide reads any layout: formats describe, it reads.
type slide struct {
	src        *watch
	info       microtome.Info
	levels     [][]picture
	associated []associated
	icc        *tiff.Dir
	reported   report
	lazy       lazy
}

// newSlide turns a layout into a slide. It reads at most the tables that tell
// which tiles are stored.
func newSlide(ctx context.Context, src *watch, file *tiff.File, l *layout) (*slide, error) {
	s := &slide{
		src: src, levels: l.levels, associated: l.associated, icc: l.icc,
		reported: l.reported, lazy: lazy{busy: make(chan struct{}, 1)},
	}
	s.info = microtome.Info{
		Format:         l.format,
		Generation:     src.Generation(),
		Planes:         l.planes,
		MPP:            l.mpp,
		ObjectivePower: l.power,
		InheritEmpty:   l.inheritEmpty,
		Warnings:       append(file.Warnings, l.warnings...),
	}
	if l.unsaid > 0 {
		s.info.Warnings = append(s.info.Warnings, fmt.Sprintf("and %d more", l.unsaid))
	}
	if err := s.addImages(); err != nil {
		return nil, err
	}
	if l.icc != nil {
		s.info.ICCBytes = l.icc.Count(tiff.ICCProfile)
	}
	if !l.inheritEmpty && len(l.levels[0]) == 1 {
		box, err := storedBox(ctx, l.levels[0][0].dir)
		if err != nil {
			return nil, err
		}
		if box != nil && !box.Empty() {
			s.info.Bounds = box
		}
	}
	if len(s.reported.levels) == 0 {
		s.reported = reportServed(l)
	}
	return s, nil
}

// addImages describes the levels and associated images.
func (s *slide) addImages() error {
	for k, planes := range s.levels {
		g, err := planeGridOf(planes[0].dir)
		if err != nil {
			return fmt.Errorf("level %d: %w", k, err)
		}
		s.matchPlanes(k, g)
		g.Color = s.colorOf(planes[0].dir, g)
		level := microtome.Level{Grid: g, Downsample: 1}
		if k > 0 {
			zero := s.info.Levels[0]
			level.Downsample = downsample(zero.Width, zero.Height, g.Width, g.Height)
		}
		s.info.Levels = append(s.info.Levels, level)
	}
	for _, a := range s.associated {
		g, err := gridOf(a.dir)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		g.Color = s.colorOf(a.dir, g)
		image := microtome.Associated{Name: a.name, Grid: g}
		if a.icc != nil {
			image.ICCBytes = a.icc.Count(tiff.ICCProfile)
		}
		s.info.Associated = append(s.info.Associated, image)
	}
	return nil
}

// colorOf is what an image's samples mean. Compression 33003 stands for YCbCr in
// Aperio's files, whatever PhotometricInterpretation says; other writers took
// the number for JPEG 2000 of any kind, and there PhotometricInterpretation
// counts.
func (s *slide) colorOf(d *tiff.Dir, g microtome.Grid) microtome.Color {
	if g.Codec == microtome.CodecJPEG2000 && s.info.Format != "aperio" && g.Samples == 3 &&
		number(d, tiff.PhotometricInterpretation, photometricYCbCr) == photometricRGB {
		return microtome.ColorRGB
	}
	return g.Color
}

// PhotometricInterpretation (TIFF 6.0 p. 37).
const (
	photometricRGB   = 2
	photometricYCbCr = 6
)

// matchPlanes drops planes of another geometry than the first: a level has one.
func (s *slide) matchPlanes(k int, want microtome.Grid) {
	var last *tiff.Dir // samples stored apart share a directory
	dropped := 0
	for i, p := range s.levels[k] {
		if p.dir == nil || p.dir == last {
			continue
		}
		if g, err := planeGridOf(p.dir); err != nil || g != want {
			s.levels[k][i].dir = nil
			dropped++
			continue
		}
		last = p.dir
	}
	if dropped > 0 {
		s.info.Warnings = append(s.info.Warnings, fmt.Sprintf("level %d: %d planes are of another size or kind than the first", k, dropped))
	}
}

// Info implements microtome.Slide.
func (s *slide) Info() *microtome.Info { return &s.info }

// ReadAssociated implements microtome.Slide.
func (s *slide) ReadAssociated(ctx context.Context, name string, col, row int) (microtome.Tile, error) {
	for i, a := range s.associated {
		if a.name != name {
			continue
		}
		t, err := a.dir.ReadCell(ctx, col, row, 0)
		if err != nil {
			return microtome.Tile{}, fmt.Errorf("%s: tile %d,%d: %w", name, col, row, err)
		}
		if t.Codec == microtome.CodecJPEG2000 {
			t.Color = s.info.Associated[i].Color
		}
		return t, nil
	}
	return microtome.Tile{}, fmt.Errorf("associated image %q: %w", name, microtome.ErrNotFound)
}

// ICCProfile implements microtome.Slide.
func (s *slide) ICCProfile(ctx context.Context, name string) ([]byte, error) {
	dir := s.icc
	if name != "" {
		found := false
		for _, a := range s.associated {
			if a.name == name {
				dir, found = a.icc, true
			}
		}
		if !found {
			return nil, fmt.Errorf("associated image %q: %w", name, microtome.ErrNotFound)
		}
	}
	return iccProfile(ctx, dir)
}

// Close implements microtome.Slide.
func (s *slide) Close() error { return s.src.Close() }

// reportServed reports a slide that OpenSlide refuses as it is served here.
func reportServed(l *layout) report {
	r := report{vendor: l.format, main: l.levels[0][0].dir, aperio: l.format == "aperio", ours: true}
	for _, planes := range l.levels {
		r.levels = append(r.levels, planes[0].dir)
	}
	for _, a := range l.associated {
		r.associated = append(r.associated, reportedImage{name: a.name, dir: a.dir, icc: a.icc == r.main && a.icc != nil})
	}
	return r
}
