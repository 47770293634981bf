package microtome_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/microtome/microtome"

// mayImport lists, for each layer, the layers of ours that it may import (its
// own folder and those below it are always allowed). A layer that is not listed
// is an error: a new package is a decision.
var mayImport = map[string][]string{
	".":                  {},
	"cache":              {},
	"formats":            {"."},
	"decode":             {"."},
	"decode/decodetest":  {".", "synth"},           // a suite needs streams
	"decode/gpu/qualify": {".", "decode", "synth"}, // it draws what it decodes
	"tiles":              {".", "cache"},
	"library":            {".", "formats"},
	"web":                {".", "tiles", "library"},
	"synth":              {},
	"verify":             {".", "tiles"},
	"bench":              {".", "tiles"},
	"cmd":                {"*"},
	"internal/test":      {"*"},
	"scripts":            {}, // modules of their own, for checks
}

// cgoAllowed are the only folders where import "C" may stand.
var cgoAllowed = []string{"decode"}

// httpAllowed are the only folders that may speak HTTP.
var httpAllowed = []string{"web", "cmd", "bench", "internal/test"}

// logAllowed are the only folders that may log.
var logAllowed = []string{"web", "cmd", "internal/test"}

func TestLayers(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		seen++
		checkFile(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 3 {
		t.Fatalf("read only %d files: the walk is broken", seen)
	}
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	layer := layerOf(filepath.ToSlash(filepath.Dir(path)))
	if layer == "" {
		t.Errorf("%s: no layer lists this folder", path)
		return
	}
	for _, spec := range f.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		if why := forbidden(layer, name); why != "" {
			t.Errorf("%s imports %q: %s", path, name, why)
		}
	}
}

func forbidden(layer, name string) string {
	switch {
	case name == "C" && !allowed(layer, cgoAllowed):
		return "cgo stands under decode only"
	case (name == "net/http" || name == "net/http/httptest") && !allowed(layer, httpAllowed):
		return "no HTTP below web"
	case (name == "log" || name == "log/slog") && !allowed(layer, logAllowed):
		return "no log below cmd and web"
	case layer == "." && strings.Contains(name, "."):
		return "the root imports the standard library only"
	}
	if name != module && !strings.HasPrefix(name, module+"/") {
		return ""
	}
	to := layerOf(strings.TrimPrefix(strings.TrimPrefix(name, module), "/"))
	if to == layer && layer != "." || allowed(to, mayImport[layer]) {
		return ""
	}
	return layer + " may not import " + to
}

// layerOf maps a folder to the longest listed layer that holds it.
func layerOf(dir string) string {
	if dir == "" || dir == "." {
		return "."
	}
	for ; dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
		if _, ok := mayImport[dir]; ok {
			return dir
		}
	}
	return ""
}

func allowed(layer string, list []string) bool {
	for _, l := range list {
		if l == layer || l == "*" {
			return true
		}
	}
	return false
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		layer, name string
		bad         bool
	}{
		{"tiles", module + "/formats", true},
		{"tiles", module + "/cache", false},
		{"formats", module, false},
		{"cache", module, true},
		{"web", "C", true},
		{"decode", "C", false},
		{"tiles", "net/http", true},
		{"formats", "log/slog", true},
		{".", "golang.org/x/sync", true},
		{"web", module + "/decode", true},
	} {
		if got := forbidden(c.layer, c.name) != ""; got != c.bad {
			t.Errorf("forbidden(%s, %s) = %v, want %v", c.layer, c.name, got, c.bad)
		}
	}
}
