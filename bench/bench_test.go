package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(c.v); got != c.want {
			t.Errorf("%v: %v, want %v", c.v, got, c.want)
		}
	}
}

func TestGridLiesAroundTheMiddle(t *testing.T) {
	p := Protocol{Grid: 24, Patch: 256}
	all, err := p.gridOf(46000, 32914)
	if err != nil || len(all) != 576 || all[0] != (At{19712, 13312}) || all[1] != (At{19968, 13312}) || all[24] != (At{19712, 13568}) {
		t.Error(all[:2], err)
	}
	if _, err := p.gridOf(6143, 10000); err == nil {
		t.Error("a grid larger than the slide")
	}
	if all, err := p.gridOf(6144, 6144); err != nil || all[0] != (At{}) {
		t.Error(all, err)
	}
}

func TestRandomPatchesLieInside(t *testing.T) {
	p := Protocol{Patch: 100, Random: 500, Seed: 3}
	first, again, other := p.randomOf(300, 100, 0), p.randomOf(300, 100, 0), p.randomOf(300, 100, 1)
	same := true
	for i, at := range first {
		if at.X < 0 || at.X > 200 || at.Y != 0 || at != again[i] {
			t.Fatal(at, again[i])
		}
		same = same && at == other[i]
	}
	if same {
		t.Error("each trial has the same patches")
	}
}

// report is one with a base, a limit, ours and one that is absent.
func report() *Report {
	r := &Report{
		Machine: Machine{CPU: "a <fast> CPU", Cores: 2}, Slide: Facts{Name: "a&b.svs", Format: "aperio", Width: 10, Height: 20},
		Rows: []Row{
			{Engine: "microtome", Task: GridCold, Callers: 1, Cores: 1, Unit: "patches/s", Trials: []float64{400, 500, 450}, Pixels: "equal"},
			{Engine: "microtome", Task: GridCold, Callers: 2, Cores: 2, Unit: "patches/s", Trials: []float64{900}},
			{Engine: Limit, Task: GridCold, Callers: 1, Cores: 1, Unit: "patches/s", Trials: []float64{500}},
			{Engine: Base, Task: GridCold, Callers: 1, Cores: 1, Unit: "patches/s", Trials: []float64{100}},
			{Engine: "cuCIM", Task: GridCold, Callers: 1, Cores: 1, Absent: "no module"},
			{Engine: "microtome, one Python client", Task: HTTPCold, Callers: 1, Unit: "patches/s", Trials: []float64{350}},
		},
	}
	r.compare()
	return r
}

func TestCompare(t *testing.T) {
	r := report()
	for i, want := range [][3]float64{{450, 4.5, 0.9}, {900, 9, 0}, {500, 5, 1}, {100, 1, 0.2}, {}, {350, 3.5, 0}} {
		if x := r.Rows[i]; x.Median != want[0] || x.Ratio != want[1] || x.OfLimit != want[2] {
			t.Errorf("row %d: %+v, want %v", i, x, want)
		}
	}
	var table bytes.Buffer
	if err := r.Print(&table); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"4.50", "no module", "equal", "over HTTP"} {
		if !strings.Contains(table.String(), text) {
			t.Errorf("no %q in\n%s", text, table.String())
		}
	}
}

func TestChart(t *testing.T) {
	var svg bytes.Buffer
	if err := report().Chart(&svg); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "chart.svg")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, svg.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(svg.Bytes(), want) {
		t.Errorf("the chart is not that of %s (UPDATE_GOLDEN=1 writes it): %v", golden, err)
	}
}

// TestChild: a child answers, fails with words, and is ended.
func TestChild(t *testing.T) {
	script := `printf '{"version":"v1"}\n'; while read line; do case $line in *'"patch":1,'*) echo '{"seconds":2,"sum":"x"}';; *'"patch":2,'*) echo '{"error":"no such"}';; *) echo died >&2; exit 3;; esac; done`
	c, err := start(context.Background(), nil, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	if c.version != "v1" {
		t.Error(c.version)
	}
	if a, err := c.ask(Ask{Patch: 1, At: []At{{1, 2}}}); err != nil || a.Seconds != 2 || a.Sum != "x" {
		t.Error(a, err)
	}
	if _, err := c.ask(Ask{Patch: 2}); err == nil || err.Error() != "no such" {
		t.Error(err)
	}
	if _, err := c.ask(Ask{Patch: 3}); err == nil || !strings.Contains(err.Error(), "died") {
		t.Error(err)
	}
	if _, err := start(context.Background(), nil, "/bin/sh", "-c", `echo '{"error":"not installed"}'`); err == nil || err.Error() != "not installed" {
		t.Error(err)
	}
}

func TestAskIsWhatPeersRead(t *testing.T) {
	b, err := json.Marshal(Ask{Cold: true, Cache: 5, Callers: 2, Patch: 256, At: []At{{X: 1, Y: 2}}})
	if err != nil || string(b) != `{"cold":true,"cache":5,"callers":2,"patch":256,"sum":false,"at":[{"X":1,"Y":2}]}` {
		t.Errorf("%s %v", b, err)
	}
}

// TestLoad: every answer counts, and one that is no picture ends the round.
func TestLoad(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/none":
			http.NotFound(w, r)
		case "/empty":
		default:
			_, _ = w.Write([]byte("tile"))
		}
	}))
	defer s.Close()
	rate, err := load(t.Context(), []string{s.URL + "/a", s.URL + "/b"}, 3, 100*time.Millisecond)
	if err != nil || rate <= 0 || asked.Load() < int64(rate*0.05) {
		t.Error(rate, asked.Load(), err)
	}
	for _, bad := range []string{"/none", "/empty"} {
		if _, err := load(t.Context(), []string{s.URL + "/a", s.URL + bad}, 2, time.Minute); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestUp: a server that ends at once is not waited for.
func TestUp(t *testing.T) {
	start := time.Now()
	_, err := up(t.Context(), exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo no module >&2; exit 1"), 1, "/")
	if err == nil || !strings.Contains(err.Error(), "no module") || time.Since(start) > 10*time.Second {
		t.Error(err, time.Since(start))
	}
}

func TestZoomGrid(t *testing.T) {
	r := &run{o: Options{Slide: Facts{Width: 46000, Height: 32914, Tile: [2]int{240, 240}}}}
	if c, n := r.zoomGrid(0); c != 191 || n != 137 {
		t.Error(c, n)
	}
	if c, n := r.zoomGrid(1); c != 95 || n != 68 {
		t.Error(c, n)
	}
	if r.zoomLevel(0) != 16 || r.zoomLevel(1) != 15 {
		t.Error(r.zoomLevel(0), r.zoomLevel(1))
	}
}

// TestRunWithoutPeers: what is not installed is a row that says so.
func TestRunWithoutPeers(t *testing.T) {
	worker := filepath.Join(t.TempDir(), "worker")
	script := `#!/bin/sh
printf '{"version":"v1"}\n'
while read line; do case $line in *'"sum":true'*) echo '{"seconds":1,"sum":"[a b c d]"}';; *) echo '{"seconds":0.5}';; esac; done
`
	if err := os.WriteFile(worker, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Protocol: Protocol{Grid: 2, Patch: 8, Trials: 3, Random: 5, Cores: 2, ColdCache: 1 << 20, WarmCache: 1 << 20},
		Slide: Facts{Width: 100, Height: 100, Tile: [2]int{8, 8}}, Worker: []string{worker}, Limit: true, Python: "/no/such/python", Peers: []string{"openslide"}}
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	absent, measured := 0, 0
	for _, x := range report.Rows {
		switch {
		case x.Absent != "":
			absent++
			if x.Engine != Base || !strings.Contains(x.Absent, "python") {
				t.Errorf("%+v", x)
			}
		case len(x.Trials) == 3 && x.Median > 0:
			measured++
		default:
			t.Errorf("%+v", x)
		}
		if x.Engine == "microtome" && x.Task == GridCold && (x.Median != 8 || x.Pixels != "equal" || x.OfLimit != 1) {
			t.Errorf("%+v", x)
		}
	}
	if absent != 6 || measured < 10 {
		t.Errorf("%d absent, %d measured", absent, measured)
	}
	o.Worker = []string{"/no/such/worker"}
	if _, err := Run(t.Context(), o); err == nil {
		t.Error("ran without a worker")
	}
}

func TestElsewhere(t *testing.T) {
	p := Protocol{Grid: 2, Patch: 100, ColdCache: 100_000}
	f := Facts{Width: 1000, Height: 300, Tile: [2]int{50, 50}}
	if got, err := elsewhere(p, []At{{0, 0}, {100, 0}, {0, 100}, {100, 100}}, f); err != nil || got[0] != (At{250, 0}) || got[3] != (At{350, 100}) {
		t.Error(got, err)
	}
	if got, err := elsewhere(p, []At{{700, 0}, {800, 100}}, f); err != nil || got[0] != (At{450, 0}) {
		t.Error(got, err)
	}
	if _, err := elsewhere(p, []At{{200, 0}, {300, 0}}, Facts{Width: 450, Tile: f.Tile}); err == nil {
		t.Error("no room, and no error")
	}
	p.ColdCache = 1 << 30
	if _, err := elsewhere(p, []At{{0, 0}}, f); err == nil {
		t.Error("a cache larger than the grid stays warm")
	}
}
