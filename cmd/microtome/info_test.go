package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/microtome/microtome/synth"
)

var updateGolden = flag.Bool("update", false, "write what info says now to testdata/info")

// infoSlides are the slides whose description is kept in testdata/info.
func infoSlides() map[string]synth.Spec {
	return map[string]synth.Spec{
		"svs":      {Width: 1300, Height: 900, Codec: synth.JPEGRGB, MPP: 0.499, AppMag: 20, Levels: 2},
		"ome-tiff": {Format: synth.OME, Width: 600, Height: 400, SizeC: 2, SizeZ: 3, Codec: synth.Deflate, MPP: 0.25, Levels: 2},
		"tiff":     {Format: synth.TIFF, Width: 600, Height: 400, Codec: synth.LZW, Predictor: true, Layout: synth.SubIFDs, Big: true, Levels: 2},
	}
}

// normal replaces what depends on the build and on the bytes that synth writes.
func normal(text string) string {
	for pattern, with := range map[string]string{
		`(?m)^decoder .*$`:    "decoder            (of this build)",
		`(?m)^content id .*$`: "content id         (of these bytes)",
		`\d+ bytes a tile`:    "N bytes a tile",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	return text
}

func TestInfoGolden(t *testing.T) {
	for name, spec := range infoSlides() {
		path := writeInfoSlide(t, spec)
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"info", path}, &out, &errs); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", name, code, errs.String())
		}
		got := normal(out.String())
		golden := filepath.Join("testdata", "info", name+".golden")
		if *updateGolden {
			if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: info says\n%s\nwant\n%s", name, got, want)
		}
	}
}

func writeInfoSlide(t *testing.T, spec synth.Spec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slide."+string(spec.Format))
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := synth.Write(f, spec); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInfoJSON(t *testing.T) {
	path := writeInfoSlide(t, infoSlides()["svs"])
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"info", "--json", path}, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var facts infoFacts
	if err := json.Unmarshal(out.Bytes(), &facts); err != nil {
		t.Fatal(err)
	}
	if facts.Format != "aperio" || len(facts.Levels) != 2 || facts.MPP.X != 0.499 || *facts.ObjectivePower != 20 ||
		facts.Properties["openslide.quickhash-1"] != facts.ContentID || facts.Warnings == nil || facts.Decoder.Name == "" {
		t.Errorf("%s", out.String())
	}
}

// TestInfoRefuses: the reason goes to the error output, by tag and value, and
// the exit code is 1.
func TestInfoRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "picture.png")
	if err := os.WriteFile(path, []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		text string
	}{
		path:                  {exitFailed, "unsupported file signature"},
		path + "-not-there":   {exitFailed, "not found"},
		"":                    {exitUsage, "accepts 1 arg"},
		path + " --json=what": {exitUsage, "--json"},
	} {
		var out, errs bytes.Buffer
		code := run(context.Background(), append([]string{"info"}, strings.Fields(args)...), &out, &errs)
		if code != want.code || !strings.Contains(errs.String(), want.text) || out.Len() > 0 {
			t.Errorf("info %s: exit code %d, %q, %q; want %d, %q", args, code, out.String(), errs.String(), want.code, want.text)
		}
	}
}
