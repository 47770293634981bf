package browsertest

import (
	"image"
	"image/png"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestKeys works the page without a mouse, from its opening on.
func TestKeys(t *testing.T) {
	s := newSite(t, "/", nil)
	b := newTab(t, desktop(1))
	b.open(s.url + "view/demo.svs#x=2000&y=1500&d=2")
	b.settled()
	for _, step := range []struct{ key, then string }{
		{"+", `parseFloat(/d=([0-9.]+)/.exec(location.hash)[1]) < 1.9`},
		{"r", `/r=90$/.test(location.hash)`},
		{"R", `!/r=/.test(location.hash)`},
		{"i", `!document.getElementById("info").hidden`},
		{"i", `document.getElementById("info").hidden`},
		{"r", `/r=90$/.test(location.hash)`},
		{"m", `document.getElementById("measure").ariaPressed === "true"`},
		{"0", `parseFloat(/d=([0-9.]+)/.exec(location.hash)[1]) > 6 && Math.abs(parseFloat(location.hash.slice(3)) - 3000) < 7`},
	} {
		b.do(chromedp.KeyEvent(step.key))
		b.until(step.then)
	}
	b.clean()
}

// TestPinchZooms spreads two fingers on a telephone to four times their distance.
func TestPinchZooms(t *testing.T) {
	s := newSite(t, "/", nil)
	b := newTab(t, screen{width: 390, height: 780, ratio: 2, touch: true})
	b.open(s.url + "view/demo.svs#x=3000&y=2200&d=8")
	b.settled()
	touch := func(kind input.DispatchTouchEventType, fingers ...float64) {
		p := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
		for i, x := range fingers {
			p.TouchPoints = append(p.TouchPoints, &input.TouchPoint{X: x, Y: 450, ID: new(float64(i + 1))})
		}
		if _, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, p); err != nil {
			t.Fatal(err)
		}
	}
	touch(input.DispatchTouchEventTypeTouchStart, 165, 225)
	for d := 35.0; d <= 120; d += 5 {
		touch(input.DispatchTouchEventTypeTouchMove, 195-d, 195+d)
	}
	touch(input.DispatchTouchEventTypeTouchEnd)
	b.until(`(() => { const d = parseFloat(/d=([0-9.]+)/.exec(location.hash)[1]); return d > 1.6 && d < 2.6 })()`)
	b.settled()
	b.clean()
}

// TestSavedViewIsTheView follows the link to the shown part of the slide.
func TestSavedViewIsTheView(t *testing.T) {
	s := newSite(t, "/", nil)
	b := newTab(t, desktop(1))
	b.open(s.url + "view/demo.svs#x=2000&y=1500&d=2")
	b.settled()
	b.do(chromedp.KeyEvent("i"), chromedp.Focus("#info .save"))
	link := eval[string](b, `document.querySelector("#info .save").href`)
	b.do(chromedp.KeyEvent("i"))
	b.until(`document.getElementById("info").hidden`)
	r, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	img, err := png.Decode(r.Body)
	if err != nil {
		t.Fatalf("status %d: %v", r.StatusCode, err)
	}
	if got := img.Bounds().Size(); got.X != 1100 || got.Y != 712 {
		t.Fatalf("the saved view has %v pixels, the stage 1100 x 712", got)
	}
	screen, off, far := b.picture(), image.Pt(0, 760-712), 0
	for y := 200; y < 500; y++ {
		for x := 400; x < 700; x++ {
			if p := image.Pt(x, y); difference(img, screen, p, p.Add(off)) > 8 {
				far++
			}
		}
	}
	if far > 300*300/20 {
		t.Errorf("%d of 90000 saved pixels are further than 8 from the screen's", far)
	}
	b.clean()
}
