package browsertest

import (
	"net/http"
	"strings"
	"sync/atomic"
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

// TestFailedTileIsAskedForAgain refuses the first request for a tile: the page
// says so, asks again, and shows the tile.
func TestFailedTileIsAskedForAgain(t *testing.T) {
	s := newSite(t, "/", nil)
	var asked atomic.Int32
	s.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "_files/13/8_6.") || asked.Add(1) > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	b := newTab(t, desktop(1))
	b.open(s.url + "view/demo.svs#x=2040&y=1560&d=1")
	b.until(`/trying again/.test(document.getElementById("notice").textContent)`)
	b.until(`document.getElementById("notice").hidden`)
	if n := asked.Load(); n != 2 {
		t.Errorf("the failed tile was asked for %d times", n)
	}
	b.clean("503", "failed to load")
}

// TestLostTileComesBack refuses a tile longer than OpenSeadragon retries: the
// page gives the reason, and shows the tile once the server does.
func TestLostTileComesBack(t *testing.T) {
	s := newSite(t, "/", nil)
	var broken atomic.Bool
	broken.Store(true)
	s.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "_files/13/8_6.") || !broken.Load() {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"code":"corrupt","message":"tile 8,6 is corrupt"}`))
		return true
	})
	b := newTab(t, desktop(1))
	b.open(s.url + "view/demo.svs#x=2040&y=1560&d=1")
	b.until(`/cannot be loaded: tile 8,6 is corrupt/.test(document.getElementById("notice").textContent)`)
	broken.Store(false)
	b.until(`document.getElementById("notice").hidden`)
	b.clean("422", "failed to load")
}
