package browsertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/microtome/microtome/synth"
)

// TestGallery goes through folders, search and a slide that cannot be read,
// below a base path.
func TestGallery(t *testing.T) {
	s := newSite(t, "/base/", func(dir string) {
		write(t, dir, "study/inner.svs", synth.Spec{Width: 700, Height: 500, Seed: 2})
		if err := os.WriteFile(filepath.Join(dir, "broken.svs"), []byte("II*\x00 not a slide"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	b := newTab(t, desktop(1))
	b.open(s.url)
	b.until(`document.querySelectorAll("#slides li").length === 2 && document.querySelector(".picture img")?.naturalWidth > 0`)
	b.until(`document.querySelector(".failed .reason")?.textContent.length > 5`)
	b.keep("gallery")
	b.do(chromedp.Click("#folders a"))
	b.until(`document.querySelector("#slides .name")?.textContent === "inner.svs" && location.search === "?folder=study"`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#crumbs a").click()`))
	b.until(`document.querySelectorAll("#slides li").length === 2`)
	b.do(chromedp.SendKeys("#search", "INNER"))
	b.until(`document.querySelectorAll("#slides li").length === 1 && document.querySelector("#slides .name").textContent === "inner.svs"`)
	b.clean("broken.svs", "status of 4")
}
