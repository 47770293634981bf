package library

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/microtome/microtome"
)

// H1: ids take any name; they are used as they are, and listed as they are.
func TestTrapH1AnyName(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		"a+b.svs", "a b.svs", "a%20b.svs", "a%2Fb.svs", "ünï.svs", "x_files.svs", "dir/sub.svs", "123/4.svs",
		"view/deepzoom/slides.svs", "x.dzi/0_0.jpeg/levels.svs", "a?b&c=d#e.svs", "'\"<b>.svs", "back\\slash.svs", "new\nline.svs", "日本/病理.TIFF",
	}
	for _, n := range names {
		write(t, dir, n, n)
	}
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
	for _, n := range names {
		if got, err := textOf(l, n); err != nil || got != n {
			t.Errorf("Acquire(%q) = %q, %v", n, got, err)
		}
	}
	page := list(t, l, Query{Recursive: true})
	var ids []string
	for _, e := range page.Entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	slices.Sort(names)
	if !slices.Equal(ids, names) {
		t.Errorf("listed %q, want %q", ids, names)
	}
}

// H2: nothing outside a root is reachable, nor anything hidden, nor any file
// that is not a slide; all of it is as if it were not there.
func TestTrapH2NothingOutside(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	secret := filepath.Join(top, "secret.svs")
	write(t, top, "secret.svs", "secret")
	write(t, top, "out/secret.svs", "secret")
	write(t, dir, "in/a.svs", "a")
	write(t, dir, ".hidden.svs", "secret")
	write(t, dir, ".git/a.svs", "secret")
	write(t, dir, "notes.txt", "secret")
	for link, target := range map[string]string{
		"abs.svs": secret, "rel.svs": "../secret.svs", "twice.svs": "rel.svs", "outdir": "../out", "absdir": filepath.Join(top, "out"),
		"inlink.svs": "in/a.svs", "loop.svs": "loop.svs", "null.svs": "/dev/null",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.svs"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := &opener{}
	l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
	for _, id := range []string{
		"", ".", "..", "/", "../secret.svs", "in/../../secret.svs", "in/../in/a.svs", "./in/a.svs", "in//a.svs", "/in/a.svs", "in/a.svs/",
		secret, "%2e%2e%2fsecret.svs", "..\\secret.svs", "in/a.svs\x00", "\x00", "in/a.svs\x00.svs",
		"abs.svs", "rel.svs", "twice.svs", "outdir/secret.svs", "absdir/secret.svs", "loop.svs", "null.svs",
		".hidden.svs", ".git/a.svs", "notes.txt", "folder.svs", "in", "in/a.svs/b.svs", "none.svs",
	} {
		if text, err := textOf(l, id); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("Acquire(%q) = %q, %v; want not found", id, text, err)
		}
	}
	if n := o.opened.Load(); n != 0 {
		t.Errorf("%d of these were opened", n)
	}
	if text, err := textOf(l, "inlink.svs"); err != nil || text != "a" {
		t.Errorf("a link that stays inside: %q, %v", text, err)
	}
	var ids []string
	for _, e := range list(t, l, Query{Recursive: true}).Entries {
		ids = append(ids, e.ID)
	}
	if want := []string{"in/a.svs", "inlink.svs"}; !slices.Equal(ids, want) {
		t.Errorf("listed %q, want %q", ids, want)
	}
}

// A study folder behind a link is served when the config names it; what leads
// on from there is not.
func TestNamedLinksAreFollowed(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	write(t, top, "archive/2024/a.svs", "archived")
	write(t, top, "secret/s.svs", "secret")
	write(t, dir, "studies/b.svs", "b")
	for link, target := range map[string]string{
		"root/studies/2024": filepath.Join(top, "archive/2024"), "root/other": "../secret", "archive/2024/on": "../../secret",
	} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "n"} {
		t.Run("root named "+name, func(t *testing.T) {
			l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Name: name, Path: dir, Links: []string{"studies/2024"}})
			if text, err := textOf(l, join(name, "studies/2024/a.svs")); err != nil || text != "archived" {
				t.Errorf("through the named link: %q, %v", text, err)
			}
			for _, id := range []string{"other/s.svs", "studies/2024/on/s.svs", "studies/2024/../b.svs", "studies/2024/../../secret/s.svs"} {
				if text, err := textOf(l, join(name, id)); !errors.Is(err, microtome.ErrNotFound) {
					t.Errorf("%s: %q, %v", id, text, err)
				}
			}
			page := list(t, l, Query{Folder: join(name, "studies")})
			if want := []string{join(name, "studies/2024")}; !slices.Equal(page.Folders, want) || page.Total != 1 {
				t.Errorf("studies holds %q and %d slides", page.Folders, page.Total)
			}
		})
	}
}
