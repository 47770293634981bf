// Package browsertest drives the viewer's pages, served by the real server, in
// a real headless Chromium.
package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// skip skips, unless the browser tests were asked for.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("MICROTOME_REQUIRE_BROWSER") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// tab is one page of a fresh browser, with what went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	trouble  []string // console errors and warnings, exceptions, failed requests
	requests map[network.RequestID]string
	images   int // answers that were images
}

// screen is what the page is shown on; ratio is device pixels per CSS pixel.
type screen struct {
	width, height int64
	ratio         float64
	touch         bool
}

func desktop(ratio float64) screen { return screen{width: 1100, height: 760, ratio: ratio} }

func newTab(t *testing.T, s screen) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		skip(t, "no Chromium here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, requests: map[network.RequestID]string{}}
	if err := chromedp.Listen(ctx, b.heard); err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	options := []chromedp.EmulateViewportOption{chromedp.EmulateScale(s.ratio)}
	if s.touch {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do(chromedp.EmulateViewport(s.width, s.height, options...))
	return b
}

func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note := func(format string, args ...any) { b.trouble = append(b.trouble, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			note("console %s: %s %s", e.Type, e.Args[0].Value, e.Args[0].Description)
		}
	case *runtime.EventExceptionThrown:
		note("exception: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelVerbose && e.Entry.Level != log.EntryLevelInfo {
			note("log: %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests[e.RequestID] = e.Request.URL
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			note("%d: %s", e.Response.Status, e.Response.URL)
		} else if e.Type == network.ResourceTypeImage || strings.HasPrefix(e.Response.MimeType, "image/") {
			b.images++
		}
	case *network.EventLoadingFailed:
		if !e.Canceled {
			note("failed: %s: %s", b.requests[e.RequestID], e.ErrorText)
		}
	}
}

// clean fails when anything went wrong in the page but what holds one of the
// texts allowed.
func (b *tab) clean(allowed ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.trouble {
		if !slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(line, a) }) {
			b.t.Errorf("in the page: %s", line)
		}
	}
	b.trouble = nil
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open goes to an address and waits for its scripts.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// settled waits until the slide is there in full at the present view.
func (b *tab) settled() {
	b.t.Helper()
	b.until(`document.body.dataset.ready === "true" && document.getElementById("slide").getAttribute("aria-busy") === "false"`)
}

// until waits for a condition in the page.
func (b *tab) until(condition string) {
	b.t.Helper()
	for began := time.Now(); ; time.Sleep(30 * time.Millisecond) {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
		if err == nil && ok {
			return
		}
		if time.Since(began) > 40*time.Second {
			b.keep("stuck")
			b.t.Fatalf("never true: %s (%v); trouble: %q", condition, err, b.trouble)
		}
	}
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// picture is the screen in device pixels.
func (b *tab) picture() image.Image {
	b.t.Helper()
	body, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	return img
}

// keep writes the screen to the folder that MICROTOME_SCREENSHOTS names, for
// people to look at.
func (b *tab) keep(name string) {
	dir := os.Getenv("MICROTOME_SCREENSHOTS")
	if dir == "" {
		return
	}
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), shot.Data, 0o644)
	}
	if err != nil {
		b.t.Logf("screenshot %s: %v", name, err)
	}
}
