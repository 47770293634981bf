//go:build cgo && linux

package browsertest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
)

// fakeGPU is the engine over stand-ins for the vendor's libraries.
func fakeGPU(t *testing.T) *gpu.Engine {
	t.Helper()
	dir := t.TempDir()
	if err := fake.NVIDIA(dir); err != nil {
		t.Fatal(err)
	}
	cpu := decode.NewCPU(decode.Options{})
	e, err := gpu.Open(gpu.Options{Vendor: "nvidia", Libraries: dir, CPU: cpu, Arena: 64 << 20, Ring: 64 << 20, Lanes: 2, Batch: 8, Beside: -1, Sample: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cpu.Close() })
	return e
}

// rows are a table of the status page: its texts, by row and column.
const rows = `((h) => { const t = [...document.querySelectorAll("section")].find((s) => s.querySelector("h2").textContent === h)?.querySelector("table");
	return Object.fromEntries([...(t?.querySelectorAll("tbody tr") ?? [])].map((r) => [r.querySelector("th").textContent, r.querySelector("td").innerText.trim()])) })`

// TestStatusPageOfAGPU looks at what the status says of a GPU that has worked: the
// figures are the engine's.
func TestStatusPageOfAGPU(t *testing.T) {
	e := fakeGPU(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newSiteOf(t, "/", tiles.Options{Devices: []microtome.Device{e}}, func(dir string) {
		write(t, dir, "zip.tiff", synth.Spec{Format: synth.TIFF, Codec: synth.Deflate, Width: 600, Height: 500, Levels: 1})
	})
	proof := e.Stats().Decoded
	s.patches(t, `"items":[{"slide":"demo.svs","x":10,"y":10},{"slide":"demo.svs","x":230,"y":230},{"slide":"zip.tiff","x":0,"y":0},{"slide":"zip.tiff","x":300,"y":0}]`)
	b := newTab(t, desktop(1))
	b.open(s.url + "status")
	b.until(rows + `("GPUs")["Patches made"] === "4"`)
	gpus := eval[map[string]string](b, rows+`("GPUs")`)
	st := e.Stats()
	if st.Decoded-proof != 4 || st.Made != 4 {
		t.Fatalf("the GPU decoded %d tiles and made %d patches", st.Decoded-proof, st.Made)
	}
	for name, want := range map[string]string{
		"Decoder": st.Decoder, "State": "ready", "Tiles decoded": fmt.Sprint(st.Decoded),
		"… by the CPU beside it": "0", "… by the CPU in its place": "2", "Corrupt": "0", "Patches made": "4",
		"Tiles waiting now": "0", "Starts of the worker": "1", "Deaths of the worker": "0", "Device memory": "67 MB",
	} {
		if got, ok := gpus[name]; !ok || got != want {
			t.Errorf("GPUs, %s: %q, want %q", name, got, want)
		}
	}
	var byCPU int64
	for name, n := range eval[map[string]string](b, rows+`("Decoded by the CPU for a GPU, by reason")`) {
		var k int64
		if _, err := fmt.Sscan(n, &k); err != nil || !strings.HasPrefix(name, "nvidia:0: ") {
			t.Errorf("by the CPU, %s: %q", name, n)
		}
		byCPU += k
	}
	if byCPU != 2 {
		t.Errorf("%d tiles by the CPU, want 2", byCPU)
	}
	if across := eval[[]string](b, `[...document.querySelectorAll("th[scope=col]")].map((t) => t.textContent).filter((t) => t === "nvidia:0")`); len(across) != 2 {
		t.Errorf("%d columns are the GPU's, want its own and its cache's", len(across))
	}
	eval[bool](b, `[...document.querySelectorAll("h2")].find((h) => h.textContent === "GPUs").scrollIntoView() === undefined`)
	b.keep("status-gpu")
	// Other tiles: the page follows.
	s.patches(t, `"items":[{"slide":"demo.svs","x":2050,"y":2050},{"slide":"demo.svs","x":3010,"y":3010}]`)
	b.until(rows + `("GPUs")["Patches made"] === "6"`)
	if got, want := eval[string](b, rows+`("GPUs")["Tiles decoded"]`), fmt.Sprint(e.Stats().Decoded); got != want || e.Stats().Decoded == st.Decoded {
		t.Errorf("%s tiles, the engine says %s", got, want)
	}
	b.clean()
}

// TestStatusPageOfTwoGPUs looks at the status of two of which one is off: why stands
// in its column alone.
func TestStatusPageOfTwoGPUs(t *testing.T) {
	s := newSite(t, "/", nil)
	s.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/status.json") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"build":{"go":"go1"},"devices":{"nvidia:0":{"state":"ready","made":7},"nvidia:1":{"state":"off","why":"the worker died 3 times","made":9}}}`)
		return true
	})
	b := newTab(t, desktop(1))
	b.open(s.url + "status")
	b.until(`document.querySelectorAll("data").length === 6`)
	shown := eval[[]string](b, `[...document.querySelectorAll("section:last-of-type tbody tr")].map((r) => [...r.children].map((c) => c.textContent).join("|"))`)
	for _, want := range []string{"State|ready|off", "Patches made|7|9", "Why it is off||the worker died 3 times"} {
		if !slices.Contains(shown, want) {
			t.Errorf("no %q in %q", want, shown)
		}
	}
	if text := eval[string](b, `document.getElementById("state").textContent`); !strings.HasPrefix(text, "As of") {
		t.Errorf("the page says: %s", text)
	}
	b.clean()
}

// patches asks for a batch of 64 x 64 and does not look at it.
func (s *site) patches(t *testing.T, items string) {
	t.Helper()
	r, err := http.Post(s.url+"patches", "application/json", strings.NewReader(`{"width":64,"height":64,`+items+`}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", r.Status, err)
	}
}
