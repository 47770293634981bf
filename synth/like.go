package synth

import (
	"fmt"

	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/scene"
)

// Names lists what Like knows.
func Names() []string { return []string{"cmu-1", "cmu-1-tiff"} }

// Like is the slide of a benchmark: "cmu-1" has the size, layout and tile sizes
// of the public Aperio slide CMU-1, "cmu-1-tiff" is the pyramidal TIFF that
// libvips makes of it.
func Like(name string) (Spec, error) {
	s := Spec{Width: 46000, Height: 32914, Seed: 1, MPP: 0.499}
	switch name {
	case "cmu-1":
		s.Format, s.Codec, s.Quality, s.Levels, s.AppMag = SVS, JPEGRGB, 30, 3, 20
		s.Associated = WholeJPEG
		s.aperio = aperioText{scanW: 46920, scanH: 33014, x: 0, y: 100, scanner: "STANDIN"}
		s.Scene = scene.Options{Repeat: true, PeriodX: 15360, PeriodY: 15360, Coverage: likeCoverage, Detail: cmuDetail()}
		return s, nil
	case "cmu-1-tiff":
		s.Format, s.Codec, s.Sampling, s.Levels = TIFF, JPEG, jpegenc.S420, 9
		s.Scene = scene.Options{Repeat: true, PeriodX: 16384, PeriodY: 16384, Coverage: likeCoverage, Detail: cmuTIFFDetail()}
		return s, nil
	}
	return Spec{}, fmt.Errorf("synth: no slide named %q", name)
}

// Demo is a small pretty slide that is written within seconds.
func Demo() Spec {
	return Spec{Width: 12000, Height: 9000, Seed: 1, Codec: JPEG, Sampling: jpegenc.S420, Quality: 80, Levels: 3, MPP: 0.499, AppMag: 20}
}
