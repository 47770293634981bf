package browsertest

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestViewStaysInTheAddress zooms by a button, reloads, and finds the same view.
func TestViewStaysInTheAddress(t *testing.T) {
	s := newSite(t, "/", nil)
	b := newTab(t, desktop(1))
	b.open(s.url + "view/demo.svs#x=2000&y=1500&d=4&r=90")
	b.settled()
	b.do(chromedp.Click("#powers button:nth-child(4)"))
	b.until(`document.getElementById("mag").textContent === "10×" && /d=2&r=90/.test(location.hash)`)
	before := eval[string](b, "location.hash")
	b.do(chromedp.Reload())
	b.settled()
	b.until(`document.getElementById("mag").textContent === "10×"`)
	if after := eval[string](b, "location.hash"); after != before {
		t.Errorf("the view was %s, after the reload %s", before, after)
	}
	b.clean()
}

// TestMeasure draws a line of 200 screen pixels at 2 slide pixels each: 200 µm.
func TestMeasure(t *testing.T) {
	s := newSite(t, "/", nil)
	b := newTab(t, desktop(1))
	b.open(s.url + "view/demo.svs#x=2000&y=1500&d=2")
	b.settled()
	b.do(chromedp.Click("#measure"))
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, 300, 300, chromedp.Button("left")))
	for x := 320.0; x <= 500; x += 20 {
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, 300, chromedp.Button("left")))
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, 500, 300, chromedp.Button("left")))
	b.until(`document.querySelector("#ink text")?.textContent === "200 µm"`)
	b.keep("measure")
	b.clean()
}
