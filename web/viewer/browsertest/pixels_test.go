package browsertest

import (
	"fmt"
	"image"
	"image/png"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/microtome/microtome/synth"
)

// TestScreenShowsTheSlidesPixels compares what is on the screen with regions of
// the slide, pixel by pixel, where one device pixel is one pixel of a level.
func TestScreenShowsTheSlidesPixels(t *testing.T) {
	s := newSite(t, "/", nil)
	for _, ratio := range []float64{1, 2} {
		t.Run(fmt.Sprintf("ratio%g", ratio), func(t *testing.T) {
			b := newTab(t, desktop(ratio))
			for _, downsample := range []float64{1, 2, 4} {
				compare(t, s, b, "demo.svs", ratio, downsample)
			}
			if b.images < 12 {
				t.Errorf("only %d images arrived", b.images)
			}
		})
	}
}

// TestRenderedLevelLiesWhereItShould does the same for a level that no slide
// stores. Its tiles are encoded well here: the loss of the default quality alone
// takes a fifth of this slide's pixels further than 8, and would hide a shift.
func TestRenderedLevelLiesWhereItShould(t *testing.T) {
	s := newSiteAt(t, "/", 97, func(dir string) {
		write(t, dir, "gap.svs", synth.Spec{Width: slideWidth, Height: slideHeight, Seed: 5, Quality: 85})
	})
	for _, ratio := range []float64{1, 2} {
		compare(t, s, newTab(t, desktop(ratio)), "gap.svs", ratio, 2)
	}
}

// compare opens a slide at a scale and holds the middle of the screen against
// /region.
func compare(t *testing.T, s *site, b *tab, slide string, ratio, downsample float64) {
	t.Helper()
	b.open("about:blank")
	b.open(fmt.Sprintf("%sview/%s#x=3001.3&y=2207.8&d=%g", s.url, slide, downsample*ratio))
	b.settled()
	b.keep(fmt.Sprintf("pixels-%s-%g-%g", slide, ratio, downsample))
	defer b.clean()
	stage := eval[struct{ X, Y, Width, Height float64 }](b, `document.getElementById("slide").getBoundingClientRect().toJSON()`)
	b.until("location.hash.length > 1")
	view, err := url.ParseQuery(eval[string](b, "location.hash.slice(1)"))
	if err != nil {
		t.Fatal(err)
	}
	centreX, _ := strconv.ParseFloat(view.Get("x"), 64)
	centreY, _ := strconv.ParseFloat(view.Get("y"), 64)
	// The whole device pixel at the stage's middle, and the level's pixel there.
	const half = 240
	midX, midY := int((stage.X+stage.Width/2)*ratio), int((stage.Y+stage.Height/2)*ratio)
	offX, offY := (stage.X+stage.Width/2)*ratio-float64(midX), (stage.Y+stage.Height/2)*ratio-float64(midY)
	lx := int(math.Round(centreX/downsample-offX)) - half
	ly := int(math.Round(centreY/downsample-offY)) - half
	want := region(t, s, slide, lx*int(downsample), ly*int(downsample), 2*half, downsample)
	got := b.picture()
	near, worst := 0, 0
	for y := range 2 * half {
		for x := range 2 * half {
			d := difference(want, got, image.Pt(x, y), image.Pt(midX-half+x, midY-half+y))
			if d <= 8 {
				near++
			}
			worst = max(worst, d)
		}
	}
	share := float64(near) / (4 * half * half)
	t.Logf("ratio %g, downsample %g: %.2f %% within 8, worst %d", ratio, downsample, share*100, worst)
	if share < 0.95 {
		t.Errorf("ratio %g, downsample %g: only %.1f %% of the pixels are within 8", ratio, downsample, share*100)
	}
}

func region(t *testing.T, s *site, slide string, l0x, l0y, side int, downsample float64) image.Image {
	t.Helper()
	r, err := http.Get(fmt.Sprintf("%sslides/%s/region?x=%d&y=%d&width=%d&height=%d&downsample=%g&format=png", s.url, slide, l0x, l0y, side, side, downsample))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	img, err := png.Decode(r.Body)
	if err != nil {
		t.Fatalf("region: status %d: %v", r.StatusCode, err)
	}
	return img
}

// difference is the largest of the three channels'.
func difference(a, b image.Image, pa, pb image.Point) int {
	ar, ag, ab, _ := a.At(pa.X, pa.Y).RGBA()
	br, bg, bb, _ := b.At(pb.X, pb.Y).RGBA()
	abs := func(p, q uint32) int { return int(math.Abs(float64(p>>8) - float64(q>>8))) }
	return max(abs(ar, br), abs(ag, bg), abs(ab, bb))
}
