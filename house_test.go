package microtome_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The house limits of CONTRIBUTING.md.
const (
	maxFunctionLines = 60
	maxFileLines     = 500
)

var bannedPackages = []string{"util", "utils", "common", "helpers", "types", "manager", "misc"}

// TestHouseLimits keeps files one thing, functions short enough to see whole,
// packages described, and state out of package scope.
func TestHouseLimits(t *testing.T) {
	described := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".go") {
			checkHouse(t, path, described)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range described {
		if !ok {
			t.Errorf("%s: the package has no comment", dir)
		}
	}
}

func checkHouse(t *testing.T, path string, described map[string]bool) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if n := fset.File(f.Pos()).LineCount(); n > maxFileLines {
		t.Errorf("%s has %d lines, at most %d", path, n, maxFileLines)
	}
	if strings.HasSuffix(path, "_test.go") {
		return
	}
	dir := filepath.Dir(path)
	described[dir] = described[dir] || f.Doc != nil
	if slices.Contains(bannedPackages, f.Name.Name) {
		t.Errorf("%s: a package named %s says nothing", path, f.Name.Name)
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
			t.Errorf("%s: %s has %d lines, at most %d", path, fn.Name.Name, n, maxFunctionLines)
		}
		if fn.Name.Name == "init" && fn.Recv == nil {
			t.Errorf("%s: init runs behind the reader's back", path)
		}
	}
}
