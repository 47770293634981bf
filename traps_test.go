package microtome_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/traps.md names no test that is not there.
func TestTrapsHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "traps.md"))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			have[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 60 {
		t.Errorf("%d names only", len(names))
	}
	for _, m := range names {
		if !have[m[1]] {
			t.Errorf("no test %s", m[1])
		}
	}
}
