package formats

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/source"
)

// dataFolder is a folder of real files: MICROTOME_DATA or ../shared/data seen
// from the repository's root.
func dataFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("MICROTOME_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		t.Skipf("no folder of real files: set MICROTOME_DATA (looked at %s)", folder)
	}
	return folder
}

// dataFiles lists the folder's files, and those that MICROTOME_SLIDES names.
func dataFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dataFolder(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(files, filepath.SplitList(os.Getenv("MICROTOME_SLIDES"))...)
}

// openPath opens a file as a slide. Every failure must be of a known kind.
func openPath(t *testing.T, path string) (microtome.Slide, error) {
	t.Helper()
	src, err := source.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), src, Options{})
	if err != nil {
		src.Close()
		if !errors.Is(err, microtome.ErrUnsupported) && !errors.Is(err, microtome.ErrCorrupt) && !errors.Is(err, microtome.ErrLimit) {
			t.Errorf("%s: an error of no kind: %v", path, err)
		}
	}
	return s, err
}

// askOpenSlide is run by a Python that has openslide-python with OpenSlide
// 4.0.1: it reads file names and answers with a line of JSON for each.
const askOpenSlide = `
import json, sys
import openslide
assert openslide.__library_version__ == "4.0.1", openslide.__library_version__
for line in sys.stdin:
    try:
        with openslide.OpenSlide(line.rstrip("\n")) as s:
            print(json.dumps(dict(s.properties)), flush=True)
    except Exception as e:
        print(json.dumps(None), flush=True)
`

// ask starts OpenSlide in a child and returns what it reports of each file, nil
// for those that it refuses.
func ask(t *testing.T, files []string) []map[string]string {
	t.Helper()
	python := os.Getenv("MICROTOME_OPENSLIDE_PYTHON")
	if python == "" {
		t.Skip("set MICROTOME_OPENSLIDE_PYTHON to a Python with OpenSlide 4.0.1 to compare with it")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", askOpenSlide)
	cmd.Stdin = strings.NewReader(strings.Join(files, "\n") + "\n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = nil
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var answers []map[string]string
	lines := bufio.NewReaderSize(out, 1<<20)
	for range files {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("OpenSlide's child ended after %d of %d files: %v", len(answers), len(files), err)
		}
		var p map[string]string
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return answers
}

// TestPropertiesEqualOpenSlide compares every key and value of every real file
// that both open.
func TestPropertiesEqualOpenSlide(t *testing.T) {
	files := dataFiles(t)
	theirs := ask(t, files)
	compared := 0
	for i, path := range files {
		vendor := theirs[i]["openslide.vendor"]
		if vendor != "aperio" && vendor != "generic-tiff" {
			continue
		}
		s, err := openPath(t, path)
		if err != nil {
			t.Logf("OpenSlide alone opens %s: %v", path, err)
			continue
		}
		compareProperties(t, path, s, theirs[i])
		compared++
		s.Close()
	}
	t.Logf("%d files compared", compared)
	if compared < 50 {
		t.Errorf("only %d files compared", compared)
	}
}

func compareProperties(t *testing.T, path string, s microtome.Slide, want map[string]string) {
	t.Helper()
	got, err := s.Properties(context.Background())
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	keys := map[string]bool{}
	for key := range got {
		keys[key] = true
	}
	for key := range want {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		g, okG := got[key]
		w, okW := want[key]
		if okG != okW || printable(g) != w {
			t.Errorf("%s: %s = %.200q (%v), OpenSlide says %.200q (%v)", path, key, g, okG, w, okW)
		}
	}
}

// printable replaces each invalid byte, as Python does.
func printable(s string) string { return string([]rune(s)) }
