package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// fetch asks the server beside the page.
func fetch(t *testing.T, url string) []byte {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, r.Status)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// leaves are all values of a status, by their path.
func leaves(at string, node map[string]any, out map[string]any) {
	for key, value := range node {
		path := strings.TrimPrefix(at+"."+key, ".")
		if inner, ok := value.(map[string]any); ok {
			leaves(path, inner, out)
			continue
		}
		out[path] = value
	}
}

// told is what the server tells of itself now.
func (s *site) told(t *testing.T) map[string]any {
	t.Helper()
	var status map[string]any
	d := json.NewDecoder(bytes.NewReader(fetch(t, s.url+"status.json")))
	d.UseNumber()
	if err := d.Decode(&status); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	leaves("", status, out)
	return out
}

// TestStatusPage looks at the status of a server that has worked: every number
// that it tells is on the page, is kept up to date, and is called old when the
// server does not answer.
func TestStatusPage(t *testing.T) {
	s := newSite(t, "/base/", nil)
	tile := s.url + "slides/demo.svs/levels/0/tiles/"
	fetch(t, tile+"0/0")
	fetch(t, s.url+"slides/demo.svs/region?x=100&y=100&width=300&height=200&mpp=1")
	b := newTab(t, desktop(1))
	b.open(s.url + "status")
	b.until(`document.querySelectorAll("data").length > 80 && [...document.querySelectorAll("data")].every((d) => d.textContent)`)
	told := s.told(t)
	paths, err := json.Marshal(slices.Collect(maps.Keys(told)))
	if err != nil {
		t.Fatal(err)
	}
	// What was told after the page asked is on it when it has asked again.
	b.until(string(paths) + `.every((p) => [...document.querySelectorAll("data")].some((d) => d.dataset.key === p))`)
	shown := eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll("data")].map((d) => [d.dataset.key, d.value]))`)
	for path, value := range told {
		section, _, _ := strings.Cut(path, ".")
		switch got := shown[path]; {
		case section == "requests" || section == "requests_by_status" || path == "build.uptime_seconds":
			// What the page itself changes.
		case fmt.Sprint(value) != got && !(value == nil && got == "null"):
			t.Errorf("%s is %v, the page says %q", path, value, got)
		}
	}
	zero := json.Number("0")
	if told["answers.stored.miss"] != json.Number("1") || told["decodes.whole"] == zero && told["decodes.partial"] == zero {
		t.Errorf("the server did not work: %v", told)
	}
	if text := eval[string](b, `document.body.innerText`); strings.Contains(text, "undefined") || strings.Contains(text, "NaN") || strings.Contains(text, "demo.svs") {
		t.Errorf("the page says: %s", text)
	}
	b.keep("status")
	fetch(t, tile+"1/0")
	b.until(`document.querySelector('[data-key="answers.stored.miss"]').textContent === "2"`)
	b.clean()
	s.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/status.json") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	b.until(`document.querySelector("#state.bad")?.textContent.includes("old") && document.querySelector("main.stale") !== null`)
	b.keep("status-stale")
	s.setFault(nil)
	b.until(`document.querySelector("#state.bad") === null && document.querySelector("main.stale") === null`)
	b.clean("503")
}

// TestStatusPageFits looks at it on a telephone, in light and in dark.
func TestStatusPageFits(t *testing.T) {
	s := newSite(t, "/", nil)
	b := newTab(t, screen{width: 390, height: 780, ratio: 2, touch: true})
	var papers []string
	for _, scheme := range []string{"light", "dark"} {
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
			t.Fatal(err)
		}
		b.open(s.url + "status")
		b.until(`document.querySelectorAll("data").length > 80`)
		if wide := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: %v px stand beyond the right edge", scheme, wide)
		}
		papers = append(papers, eval[string](b, `getComputedStyle(document.body).backgroundColor`))
		b.keep("status-" + scheme)
	}
	if papers[0] == papers[1] {
		t.Errorf("light and dark are both %s", papers[0])
	}
	b.clean()
}
