package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/microtome/microtome"
)

// fakeSlide is a slide whose only content is its file's bytes.
type fakeSlide struct {
	microtome.Slide // what the tests do not use
	src             microtome.Source
	info            microtome.Info
	closed          *atomic.Int64
}

func (s *fakeSlide) Info() *microtome.Info { return &s.info }

func (s *fakeSlide) Close() error {
	s.closed.Add(1)
	return s.src.Close()
}

// text reads the slide's file through the open source.
func (s *fakeSlide) text() (string, error) {
	b := make([]byte, s.src.Size())
	if _, err := s.src.ReadAt(context.Background(), b, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(b), nil
}

// opener opens fake slides, refuses those that begin with "bad", and counts.
type opener struct {
	opened, closed atomic.Int64
	hold           chan struct{} // when set, opens wait for it
	failWith       error
}

func (o *opener) open(ctx context.Context, src microtome.Source) (microtome.Slide, error) {
	o.opened.Add(1)
	if o.hold != nil {
		<-o.hold
	}
	s := &fakeSlide{src: src, closed: &o.closed}
	s.info.Generation = src.Generation()
	text, err := s.text()
	switch {
	case err != nil:
		return nil, err
	case text == "panic":
		panic("index out of range")
	case len(text) >= 3 && text[:3] == "bad":
		if o.failWith != nil {
			return nil, o.failWith
		}
		return nil, fmt.Errorf("ifd 0: %w", &microtome.Unsupported{Tag: "Compression", Value: "200"})
	}
	return s, nil
}

// write makes a file and the folders above it.
func write(t testing.TB, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newLibrary(t testing.TB, o Options, roots ...Root) *Library {
	t.Helper()
	l, err := New(roots, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// textOf acquires a slide, reads its file and releases it.
func textOf(l *Library, id string) (string, error) {
	h, err := l.Acquire(context.Background(), id)
	if err != nil {
		return "", err
	}
	defer h.Release()
	if h.ID() != id {
		return "", fmt.Errorf("handle of %q says %q", id, h.ID())
	}
	return h.slide.Slide.(*fakeSlide).text()
}

func TestRootsAndIDs(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, one, "a.svs", "one/a")
	write(t, one, "dir/b.svs", "one/dir/b")
	write(t, two, "a.svs", "two/a")
	write(t, two, "lone.dat", "lone")
	o := &opener{}
	for _, c := range []struct {
		name  string
		roots []Root
		want  map[string]string
	}{
		{"one unnamed", []Root{{Path: one}}, map[string]string{"a.svs": "one/a", "dir/b.svs": "one/dir/b"}},
		{"one named", []Root{{Name: "n", Path: one}}, map[string]string{"n/a.svs": "one/a", "n/dir/b.svs": "one/dir/b"}},
		{"two", []Root{{Name: "x", Path: one}, {Path: two}},
			map[string]string{"x/dir/b.svs": "one/dir/b", filepath.Base(two) + "/a.svs": "two/a"}},
		{"a file of any name", []Root{{Path: filepath.Join(two, "lone.dat")}}, map[string]string{"lone.dat": "lone"}},
		{"a named file beside a folder", []Root{{Name: "f", Path: filepath.Join(two, "a.svs")}, {Name: "x", Path: one}},
			map[string]string{"f/a.svs": "two/a", "x/a.svs": "one/a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLibrary(t, Options{Open: o.open}, c.roots...)
			for id, want := range c.want {
				if got, err := textOf(l, id); err != nil || got != want {
					t.Errorf("Acquire(%q) = %q, %v; want %q", id, got, err, want)
				}
			}
			if _, err := textOf(l, "lone.da"); !errors.Is(err, microtome.ErrNotFound) {
				t.Errorf("unknown id: %v", err)
			}
		})
	}
}

func TestFileRootServesOnlyThatFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	write(t, dir, "b.svs", "b")
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: filepath.Join(dir, "a.svs")})
	if _, err := textOf(l, "b.svs"); !errors.Is(err, microtome.ErrNotFound) {
		t.Errorf("the file beside it: %v, want not found", err)
	}
}

func TestFileRootThroughLinkOutOfItsFolder(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	write(t, far, "v2.bin", "far")
	if err := os.Symlink(filepath.Join(far, "v2.bin"), filepath.Join(dir, "current.svs")); err != nil {
		t.Fatal(err)
	}
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: filepath.Join(dir, "current.svs")})
	if got, err := textOf(l, "current.svs"); err != nil || got != "far" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x/a.svs", "a")
	write(t, dir, "y/a.svs", "a")
	for _, c := range []struct {
		name  string
		roots []Root
	}{
		{"a path that is not there", []Root{{Path: filepath.Join(dir, "none")}}},
		{"a name twice", []Root{{Name: "n", Path: filepath.Join(dir, "x")}, {Name: "n", Path: filepath.Join(dir, "y")}}},
		{"a file twice", []Root{{Path: filepath.Join(dir, "x/a.svs")}, {Path: filepath.Join(dir, "y/a.svs")}}},
		{"a name with a slash", []Root{{Name: "n/m", Path: dir}}},
		{"a hidden name", []Root{{Name: ".n", Path: dir}}},
		{"a link that is not there", []Root{{Path: dir, Links: []string{"z"}}}},
		{"a link above the root", []Root{{Path: dir, Links: []string{"../x"}}}},
		{"links of a file", []Root{{Path: filepath.Join(dir, "x/a.svs"), Links: []string{"x"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if l, err := New(c.roots, Options{}); err == nil {
				l.Close()
				t.Error("accepted")
			}
		})
	}
}
