package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

// fakePython writes a program that answers the first request with one line and
// then ends, whatever it is started with.
func fakePython(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	script := fmt.Sprintf("#!/bin/sh\nread -r request\ncat <<'END'\n%s\nEND\n", line)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReferenceIsRefused(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"another version", `{"version":"3.4.1","levels":[[10,10]]}`, `this is "3.4.1"`},
		{"no version", `{"levels":[[10,10]]}`, `this is ""`},
		{"its error", `{"error":"OpenSlideUnsupportedFormatError: no"}`, "no"},
		{"no JSON", `Traceback (most recent call last):`, "said"},
		{"hostile size", `{"version":"4.0.1","bytes":99999999999}`, "announced"},
		{"short body", `{"version":"4.0.1","bytes":100}`, "pixels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := startReference(context.Background(), fakePython(t, c.line), "x.svs")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := startReference(context.Background(), "/no/such/python", "x.svs"); err == nil {
		t.Error("a Python that isn't there was accepted")
	}
}

type shapeOnly struct {
	microtome.Slide
	info microtome.Info
}

func (s shapeOnly) Info() *microtome.Info { return &s.info }

func TestShapesThatCannotBeCompared(t *testing.T) {
	level := func(w, h int64) microtome.Level { return microtome.Level{Grid: microtome.Grid{Width: w, Height: h}} }
	for _, c := range []struct {
		name   string
		ours   []microtome.Level
		theirs [][2]int64
		want   string
	}{
		{"empty reference", []microtome.Level{level(9, 9)}, nil, "no level"},
		{"other size", []microtome.Level{level(9, 9)}, [][2]int64{{9, 8}}, "9x8"},
		{"empty level", []microtome.Level{level(9, 9), level(0, 0)}, [][2]int64{{9, 9}, {0, 0}}, "empty"},
	} {
		cmp := &comparison{ref: &reference{Levels: c.theirs}, slide: shapeOnly{info: microtome.Info{Levels: c.ours}}, report: &Report{}}
		if err := cmp.shape(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLevelsThatOnlyOneSideHas(t *testing.T) {
	level := func(w, h int64) microtome.Level { return microtome.Level{Grid: microtome.Grid{Width: w, Height: h}} }
	cmp := &comparison{
		ref:    &reference{Levels: [][2]int64{{9, 9}, {5, 5}, {2, 2}}},
		slide:  shapeOnly{info: microtome.Info{Levels: []microtome.Level{level(9, 9), level(4, 4), level(2, 2), level(1, 1)}}},
		report: &Report{},
	}
	if err := cmp.shape(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cmp.theirs, []int{0, -1, 2, -1}) {
		t.Errorf("paired as %v", cmp.theirs)
	}
	if len(cmp.report.Parts) != 1 || cmp.report.OK() {
		t.Errorf("another number of levels is no difference: %+v", cmp.report.Parts)
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	white := microtome.RGB{R: 255, G: 255, B: 255}
	h.add([]byte{10, 20, 30, 255, 255, 255, 127, 0, 0}, 3,
		[]byte{10, 22, 30, 255, 9, 9, 9, 0, 0, 0, 0, 128}, white)
	h.finish()
	// 10-10, 20-22, 30-30; transparent is the background; half black over
	// white is 127.
	if h.Values != 9 || h.Max != 127 || h.Counts[0] != 6 || h.Counts[2] != 1 || h.Counts[127] != 2 {
		t.Errorf("got %s", h.String())
	}
	h = Histogram{}
	h.add([]byte{7}, 1, []byte{7, 8, 7, 255}, white)
	if h.Counts[0] != 2 || h.Counts[1] != 1 {
		t.Errorf("grey: got %s", h.String())
	}
}

func TestReportOKNeedsSomethingCompared(t *testing.T) {
	part := Part{What: "x", Diff: Histogram{Values: 3}}
	if !(&Report{Properties: 1, Parts: []Part{part}}).OK() {
		t.Error("equal is not OK")
	}
	off := part
	off.Diff.Max = 1
	for name, r := range map[string]Report{
		"nothing":       {},
		"no pixels":     {Properties: 1, Parts: []Part{{What: "x"}}},
		"no properties": {Parts: []Part{part}},
		"off by one":    {Properties: 1, Parts: []Part{off}},
		"failed":        {Properties: 1, Parts: []Part{{What: "x", Diff: part.Diff, Error: "e"}}},
		"property":      {Properties: 1, Parts: []Part{part}, Differ: []PropertyDiff{{Key: "k"}}},
	} {
		if r.OK() {
			t.Errorf("%s is called OK", name)
		}
	}
}

// Every row of a level can be asked for: the level-0 origin found for it lands
// on it by the position rule.
func TestL0OfLandsOnItsRow(t *testing.T) {
	for _, c := range [][2]int64{{8228, 32914}, {2057, 32914}, {1, 32914}, {300, 300}, {64, 127}} {
		for l := range c[0] {
			l0 := l0Of(l, c[0], c[1])
			if got := (2*l0*c[0] + c[1]) / (2 * c[1]); got != l || l0 < 0 || l0 >= c[1] {
				t.Fatalf("row %d of %d (of %d): l0 %d lands on %d", l, c[0], c[1], l0, got)
			}
		}
	}
}
