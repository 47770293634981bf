package browsertest

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web"
	"github.com/microtome/microtome/web/viewer"
)

// The site's slide: its size, scale and power are what the tests count on.
const (
	slideWidth, slideHeight = 6000, 4400
	slideMPP, slidePower    = 0.5, 20
)

// site is the real server over a folder of slides.
type site struct {
	url string
	dir string

	mu sync.Mutex
	// fault, when set, may answer a request in the server's stead.
	fault func(w http.ResponseWriter, r *http.Request) (handled bool)
}

// newSite serves dir/demo.svs, below base, with levels 1, 2, 4 and 8 stored. more
// writes further slides into dir.
func newSite(t *testing.T, base string, more func(dir string)) *site {
	t.Helper()
	return newSiteAt(t, base, 0, more)
}

// newSiteAt is newSite with rendered tiles encoded at a quality (0: the default).
func newSiteAt(t *testing.T, base string, quality int, more func(dir string)) *site {
	t.Helper()
	return newSiteOf(t, base, tiles.Options{Quality: quality}, more)
}

// newSiteOf is newSite with a reader's quality and devices.
func newSiteOf(t *testing.T, base string, o tiles.Options, more func(dir string)) *site {
	t.Helper()
	if !viewer.Bundled() {
		skip(t, "the viewer's pages are not in this build: run make viewer")
	}
	s := &site{dir: t.TempDir()}
	write(t, s.dir, "demo.svs", synth.Spec{Width: slideWidth, Height: slideHeight, Seed: 5, MPP: slideMPP, AppMag: slidePower, Quality: 85, Step: 2})
	if more != nil {
		more(s.dir)
	}
	lib, err := library.New([]library.Root{{Path: s.dir}}, library.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cpu := decode.NewCPU(decode.Options{})
	o.Decoder, o.Encoder, o.AnswerBytes, o.PixelBytes, o.PyramidDir = cpu, cpu, 32<<20, 64<<20, t.TempDir()
	reader, err := tiles.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h, err := web.New(web.Options{Library: lib, Reader: reader, Version: "test", Loopback: true, BasePath: base,
		Decoder: cpu.Name(), Exact: cpu.Exact(), Decodes: cpu.Stats,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.faulty(h))
	t.Cleanup(func() {
		srv.Close()
		if err := errors.Join(reader.Close(), cpu.Close(), lib.Close()); err != nil {
			t.Error(err)
		}
	})
	s.url = srv.URL + base
	return s
}

func (s *site) faulty(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		fault := s.fault
		s.mu.Unlock()
		if fault != nil && fault(w, r) {
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (s *site) setFault(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func write(t *testing.T, dir, name string, spec synth.Spec) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := synth.WriteFile(path, spec, nil); err != nil {
		t.Fatal(err)
	}
}

// testWriter puts the server's log into the test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("server: %s", p)
	return len(p), nil
}
