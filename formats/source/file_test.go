package source_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/source"
)

var _ microtome.Source = (*source.File)(nil)

func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadAt(t *testing.T) {
	path := written(t, t.TempDir(), "a.svs", "0123456789")
	f, err := source.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	p := make([]byte, 4)
	if n, err := f.ReadAt(ctx, p, 3); n != 4 || err != nil || string(p) != "3456" || f.Size() != 10 {
		t.Errorf("%d %v %q", n, err, p)
	}
	if n, err := f.ReadAt(ctx, p, 8); n != 2 || err != io.EOF {
		t.Errorf("at the end: %d %v", n, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.ReadAt(cancelled, p, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			b := make([]byte, 1)
			if _, err := f.ReadAt(ctx, b, i); err != nil || b[0] != byte('0'+i) {
				t.Errorf("at %d: %q %v", i, b, err)
			}
		})
	}
	all.Wait()
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	if n, err := f.ReadAt(ctx, p, 3); n != 2 || !errors.Is(err, microtome.ErrSource) {
		t.Errorf("shrunk: %d %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(ctx, p, 0); !errors.Is(err, microtome.ErrSource) {
		t.Errorf("closed: %v", err)
	}
}

// TestGeneration: any other file, size or time is another generation; the same
// state is the same one.
func TestGeneration(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]string{}
	at := time.Unix(1700000000, 5)
	state := func(what, path string, mtime time.Time) {
		t.Helper()
		if err := os.Chtimes(path, mtime, mtime); err != nil {
			t.Fatal(err)
		}
		f, err := source.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		g := f.Generation()
		if other, ok := seen[g.ID]; ok {
			t.Errorf("%s is the generation of %s", what, other)
		}
		seen[g.ID] = what
		fi, err := os.Stat(path)
		if err != nil || source.Stat(fi) != g {
			t.Errorf("%s: %+v, by stat %+v, %v", what, g, source.Stat(fi), err)
		}
		if g.ID == "" || strings.Trim(g.ID, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("ID %q", g.ID)
		}
	}
	path := written(t, dir, "a", "one")
	state("a", path, at)
	state("touched", path, at.Add(time.Nanosecond))
	written(t, dir, "a", "longer")
	state("longer", path, at)
	other := written(t, dir, "b", "one")
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	state("replaced", path, at)
}

// TestRefuses: what is no regular file is refused at once.
func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "pipe.svs")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for path, want := range map[string]error{
		fifo: microtome.ErrUnsupported, dir: microtome.ErrUnsupported, "/dev/null": microtome.ErrUnsupported,
		filepath.Join(dir, "none"): microtome.ErrNotFound, filepath.Join(fifo, "below"): microtome.ErrNotFound,
		"a\x00b": microtome.ErrNotFound,
	} {
		if _, err := source.OpenFile(path); !errors.Is(err, want) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := source.OpenAt(root, "pipe.svs"); !errors.Is(err, microtome.ErrUnsupported) {
		t.Errorf("pipe below a root: %v", err)
	}
}

// TestOpenAtStaysInside: links are followed inside the root and nowhere else.
func TestOpenAtStaysInside(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "root/sub/a.svs", "inside")
	written(t, dir, "secret", "outside")
	for link, target := range map[string]string{
		"in": "sub/a.svs", "out": "../secret", "absolute": filepath.Join(dir, "secret"), "up": "..", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, "root", link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"sub/a.svs", "in", "sub/../in"} {
		f, err := source.OpenAt(root, name)
		if err != nil || f.Size() != 6 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.Close()
	}
	for _, name := range []string{"out", "absolute", "up/secret", "../secret", "/etc/passwd", "loop", "none", ""} {
		if _, err := source.OpenAt(root, name); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
