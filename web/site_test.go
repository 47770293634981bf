package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/tiles"
)

// fakeSlide is a slide of one kilobyte: its file's text names what it is.
type fakeSlide struct {
	src  microtome.Source
	text string
	info microtome.Info
	ids  *atomic.Int64 // counts ContentID calls
}

func openFake(ids *atomic.Int64) func(context.Context, microtome.Source) (microtome.Slide, error) {
	return func(ctx context.Context, src microtome.Source) (microtome.Slide, error) {
		b := make([]byte, src.Size())
		if _, err := src.ReadAt(ctx, b, 0); err != nil {
			return nil, err
		}
		switch text := string(b); {
		case strings.HasPrefix(text, "unsupported"):
			return nil, fmt.Errorf("ifd 0: %w", &microtome.Unsupported{Tag: "Compression", Value: "200"})
		case strings.HasPrefix(text, "corrupt"):
			return nil, fmt.Errorf("ifd 0: tag 256: %w", microtome.ErrCorrupt)
		}
		return &fakeSlide{src: src, text: string(b), info: fakeInfo(src), ids: ids}, nil
	}
}

func fakeInfo(src microtome.Source) microtome.Info {
	power := 20.0
	level := func(w, h int64, down float64) microtome.Level {
		g := microtome.Grid{Width: w, Height: h, TileWidth: 240, TileHeight: 240, Codec: microtome.CodecJPEG,
			Cols: int((w + 239) / 240), Rows: int((h + 239) / 240)}
		return microtome.Level{Grid: g, Downsample: down}
	}
	return microtome.Info{
		Format: "aperio", Generation: src.Generation(), ICCBytes: 12,
		Levels: []microtome.Level{level(1000, 700, 1), level(250, 175, 4)},
		Associated: []microtome.Associated{
			{Name: "thumbnail", Grid: microtome.Grid{Width: 100, Height: 70}},
			{Name: "label", Grid: microtome.Grid{Width: 40, Height: 40}},
			{Name: "macro", Grid: microtome.Grid{Width: 80, Height: 40}},
		},
		MPP: &microtome.MPP{X: .5, Y: .5}, ObjectivePower: &power,
		Bounds: &image.Rectangle{Min: image.Pt(100, 50), Max: image.Pt(900, 650)},
	}
}

func (s *fakeSlide) Info() *microtome.Info { return &s.info }
func (s *fakeSlide) ReadTile(context.Context, int, int, int, int) (microtome.Tile, error) {
	return microtome.Tile{}, microtome.ErrEmptyTile
}
func (s *fakeSlide) ReadAssociated(context.Context, string, int, int) (microtome.Tile, error) {
	return microtome.Tile{}, microtome.ErrNotFound
}
func (s *fakeSlide) Properties(context.Context) (map[string]string, error) {
	switch s.text {
	case "no properties":
		return nil, fmt.Errorf("level 1: tile 0,0: %w", microtome.ErrCorrupt)
	case "no source":
		return nil, fmt.Errorf("level 1: %w", microtome.ErrSource)
	}
	return map[string]string{
		"openslide.vendor": "aperio", "openslide.mpp-x": "0.5", "openslide.level[0].width": "1000",
		"aperio.AppMag": "20", "aperio.Filename": "Doe-John", "aperio.User": "smith", "aperio.Date": "01/02/09",
		"aperio.Barcode": "S-123", "openslide.comment": "Jane Roe", "tiff.ImageDescription": "Jane Roe",
		"tiff.DateTime": "2009:01:01", "aperio.MPP": "0.5 Jane", "aperio.Title": "x", "aperio.ImageID": "1004486",
		"openslide.associated.label.width": "40", "openslide.associated.Jane Roe.width": "40",
	}, nil
}
func (s *fakeSlide) ContentID(context.Context) (string, error) {
	s.ids.Add(1)
	return "content of " + s.text, nil
}

// ICCProfile tells the fakeReader which slide it was given.
func (s *fakeSlide) ICCProfile(context.Context, string) ([]byte, error) { return []byte(s.text), nil }
func (s *fakeSlide) Close() error                                       { return nil }

// call is what a fakeReader was asked; it is also the body that it answers.
type call struct {
	Slide, Op              string
	Level, Plane, Col, Row int
	Name                   string
	Size                   int
	View                   tiles.View
	Region                 tiles.Region
	Options                tiles.PixelOptions
}

// fakeReader answers with a description of the question.
type fakeReader struct {
	mu     sync.Mutex
	calls  []call
	fail   error // the next answer, once
	change func(*tiles.Answer)
	block  func(context.Context) error
	panics bool
	quiet  bool         // keeps no calls
	body   []byte       // instead of the description
	loses  bool         // a batch's items after the first
	lent   atomic.Int64 // pixels of batches, not yet released
	stats  tiles.Stats
}

func (f *fakeReader) answer(ctx context.Context, c call, s microtome.Slide) (tiles.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("reader /secret/path")
	}
	if err := f.fail; err != nil {
		f.fail = nil
		return tiles.Answer{}, err
	}
	if f.block != nil {
		if err := f.block(ctx); err != nil {
			return tiles.Answer{}, err
		}
	}
	body := f.body
	if body == nil {
		text, err := s.ICCProfile(ctx, "")
		if err != nil {
			return tiles.Answer{}, err
		}
		c.Slide = string(text)
		body, _ = json.Marshal(c)
	}
	if !f.quiet {
		f.calls = append(f.calls, c)
	}
	a := tiles.Answer{Body: body, Format: c.Options.Format, Made: tiles.Rendered, Engine: "cpu", Width: 3, Height: 2, Channels: 3,
		Level: 1, Downsample: 4, MPP: &microtome.MPP{X: 2, Y: 2}}
	if c.Op == "stored" {
		a.Made, a.Engine = tiles.Stored, "none"
	}
	if f.change != nil {
		f.change(&a)
	}
	return a, nil
}

func (f *fakeReader) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func (f *fakeReader) last(t *testing.T) call {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) == 0 {
		t.Fatal("the reader was not asked")
	}
	return f.calls[len(f.calls)-1]
}

func (f *fakeReader) Stored(ctx context.Context, s microtome.Slide, level, plane, col, row int) (tiles.Answer, error) {
	return f.answer(ctx, call{Op: "stored", Level: level, Plane: plane, Col: col, Row: row}, s)
}
func (f *fakeReader) StoredPixels(ctx context.Context, s microtome.Slide, level, plane, col, row int, o tiles.PixelOptions) (tiles.Answer, error) {
	return f.answer(ctx, call{Op: "pixels", Level: level, Plane: plane, Col: col, Row: row, Options: o}, s)
}
func (f *fakeReader) View(ctx context.Context, s microtome.Slide, v tiles.View, o tiles.PixelOptions) (tiles.Answer, error) {
	return f.answer(ctx, call{Op: "view", View: v, Options: o}, s)
}
func (f *fakeReader) Region(ctx context.Context, s microtome.Slide, q tiles.Region, o tiles.PixelOptions) (tiles.Answer, error) {
	return f.answer(ctx, call{Op: "region", Region: q, Options: o}, s)
}
func (f *fakeReader) Associated(ctx context.Context, s microtome.Slide, name string, o tiles.PixelOptions) (tiles.Answer, error) {
	return f.answer(ctx, call{Op: "associated", Name: name, Options: o}, s)
}
func (f *fakeReader) Thumbnail(ctx context.Context, s microtome.Slide, size int, o tiles.PixelOptions) (tiles.Answer, error) {
	return f.answer(ctx, call{Op: "thumbnail", Size: size, Options: o}, s)
}
func (f *fakeReader) Progress(microtome.Slide) (int64, int64, bool) { return 3, 9, true }
func (f *fakeReader) Stats() tiles.Stats                            { return f.stats }

// site is a handler over a folder of fake slides.
type site struct {
	http.Handler
	dir    string
	reader *fakeReader
	log    *bytes.Buffer
	ids    atomic.Int64
}

// newSite serves dir/a.svs, dir/b.svs and what is named; change may alter the
// options. The log is at Debug.
func newSite(t testing.TB, names []string, change func(*Options)) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), reader: &fakeReader{}, log: &bytes.Buffer{}}
	for _, name := range append([]string{"a.svs", "b.svs"}, names...) {
		s.put(t, name, "slide "+name)
	}
	lib, err := library.New([]library.Root{{Path: s.dir}}, library.Options{Open: openFake(&s.ids), CheckEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lib.Close() })
	o := Options{Library: lib, Reader: s.reader, Version: "test",
		Log: slog.New(slog.NewTextHandler(&lockedWriter{w: s.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&o)
	}
	if s.Handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return s
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// put writes a slide file, over an older one as a new file.
func (s *site) put(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// get asks as a browser on this machine would; header is "Name: value" lines.
func (s *site) get(target string, header ...string) *httptest.ResponseRecorder {
	return s.do(http.MethodGet, target, header...)
}

func (s *site) do(method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8080"
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// want fails unless an answer has a status and, for errors, a code.
func want(t *testing.T, what string, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("%s: status %d, want %d: %s", what, w.Code, status, w.Body)
	}
	if w.Header().Get("X-Request-Id") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: headers %v", what, w.Header())
	}
	if status < 400 {
		return
	}
	var e struct{ Code, Message string }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code != code || e.Message == "" {
		t.Errorf("%s: body %q (%v), want code %s", what, w.Body, err, code)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Etag") != "" {
		t.Errorf("%s: error headers %v", what, w.Header())
	}
}

// list asks for /slides until the folders have been read and the slides checked.
func (s *site) list(t *testing.T, query string) listJSON {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		w := s.get("/slides" + query)
		want(t, "list "+query, w, http.StatusOK, "")
		var l listJSON
		if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		open := l.Scanning
		for _, e := range l.Slides {
			open = open || !e.Checked
		}
		if !open {
			return l
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%s: never settled: %+v", query, l)
		}
	}
}
