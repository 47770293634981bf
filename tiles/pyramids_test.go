package tiles

import (
	"context"
	"encoding/binary"
	"errors"
	"image"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/microtome/microtome"
)

// smooth repaints a slide's level 0 with a gradient, so that scales can be
// compared through JPEG.
func smooth(s *fakeSlide) {
	w := int(s.info.Levels[0].Width)
	for i := range s.pix[0] {
		x, y := i/s.ch%w, i/s.ch/w
		s.pix[0][i] = byte(40 + x/40 + y/60 + 20*(i%s.ch))
	}
}

func builtFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+pyramidSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// await waits until nothing is being built for the slide.
func await(t *testing.T, r *Reader, s microtome.Slide) {
	t.Helper()
	for range 2000 {
		if done, total, building := r.Progress(s); !building && total > 0 {
			if done != total {
				t.Fatalf("built %d of %d", done, total)
			}
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("still building")
}

func TestMissingLevels(t *testing.T) {
	for _, c := range []struct {
		sizes []image.Point
		want  []image.Point
	}{
		{[]image.Point{{2048, 100}}, nil},
		{[]image.Point{{8000, 8000}, {2000, 2000}}, nil},
		{[]image.Point{{2049, 100}}, []image.Point{{513, 25}, {257, 13}, {129, 7}}},
		{[]image.Point{{46000, 32914}}, []image.Point{{11500, 8229}, {5750, 4115}, {2875, 2058}, {1438, 1029}, {719, 515}, {360, 258}, {180, 129}}},
		{[]image.Point{{32000, 16000}, {1000, 500}}, []image.Point{{8000, 4000}, {4000, 2000}, {2000, 1000}}},
	} {
		s := &fakeSlide{info: &microtome.Info{}}
		for _, p := range c.sizes {
			s.info.Levels = append(s.info.Levels, microtome.Level{Grid: microtome.Grid{Width: int64(p.X), Height: int64(p.Y)},
				Downsample: float64(c.sizes[0].X) / float64(p.X)})
		}
		got := missingLevels(s.info)
		if len(got) != len(c.want) {
			t.Errorf("%v: %d levels, want %d", c.sizes, len(got), len(c.want))
			continue
		}
		for i, g := range got {
			if int(g.Width) != c.want[i].X || int(g.Height) != c.want[i].Y {
				t.Errorf("%v: level %d is %dx%d, want %v", c.sizes, i, g.Width, g.Height, c.want[i])
			}
		}
	}
}

// Trap B9: no pyramid at all. First a preview, then built levels down to 1x1;
// they survive a restart, and a broken file is noticed and built anew.
func TestB9FlatSlide(t *testing.T) {
	dir := t.TempDir()
	s := newFake("flat", 3, 96, 96, image.Pt(4003, 3001))
	smooth(s)
	s.bad[[3]int{0, 40, 30}] = true // one tile is corrupt
	open := func() (*Reader, *fakeEngine) {
		e := &fakeEngine{reduce: true}
		r, err := New(Options{Decoder: e, Encoder: e, AnswerBytes: 1 << 20, PixelBytes: 1 << 20, PyramidDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return r, e
	}
	r, e := open()
	a, err := r.View(context.Background(), s, zoomed(s, 5), raw)
	if err != nil || !a.Preview || a.Width != 126 || a.Height != 94 {
		t.Fatalf("%+v, %v", a, err)
	}
	if n := e.jobs.Load(); n > 2*previewTiles {
		t.Errorf("the preview decoded %d tiles", n)
	}
	want := naive(s, 0, 0, 0, 32, 32, 126, 94)
	compare(t, "preview", answerPixels(t, a), want, 12)
	await(t, r, s)
	for i := range want {
		if x, y := i/3%126, i/3/126; x >= 108 && y >= 80 {
			want[i] = math.NaN() // around the corrupt tile: anything
		}
	}
	check := func(r *Reader, what string) {
		t.Helper()
		for k := 4; k <= 13; k++ {
			if a, err = r.View(context.Background(), s, zoomed(s, k), raw); err != nil || a.Preview || a.Level != 0 {
				t.Fatalf("%s: 2^%d: %+v, %v", what, k, a, err)
			}
			if k == 5 {
				compare(t, what, answerPixels(t, a), want, 4)
			}
		}
	}
	check(r, "built")
	if st := r.Stats().Pyramids; st.Built != 1 || st.Failed != 0 || len(builtFiles(t, dir)) != 1 {
		t.Errorf("%+v", st)
	}
	_ = r.Close()

	r, _ = open()
	check(r, "after a restart")
	if st := r.Stats().Pyramids; st.Built != 0 || st.Opened != 1 {
		t.Errorf("after a restart: %+v", st)
	}
	_ = r.Close()

	breakFile(t, builtFiles(t, dir)[0])
	r, _ = open()
	_, err = r.View(context.Background(), s, zoomed(s, 5), raw)
	if !errors.Is(err, microtome.ErrCorrupt) {
		t.Fatalf("a broken tile: %v", err)
	}
	if a, err = r.View(context.Background(), s, zoomed(s, 5), raw); err != nil || !a.Preview {
		t.Fatalf("after it: %+v, %v", a, err)
	}
	await(t, r, s)
	check(r, "mended")
	_ = r.Close()
}

// breakFile changes the bytes of the tiles, not those of the index.
func breakFile(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tiles := int(binary.LittleEndian.Uint64(data[len(data)-footerBytes:]))
	for i := 100; i < tiles; i += 50 {
		data[i] ^= 0x55
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenIndexIsBuiltAnew(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"cut":    func(b []byte) []byte { return b[:len(b)-7] },
		"empty":  func([]byte) []byte { return nil },
		"footer": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"index":  func(b []byte) []byte { b[len(b)-footerBytes-3] ^= 1; return b },
	} {
		dir := t.TempDir()
		s := newFake("index"+name, 1, 256, 256, image.Pt(2100, 40))
		r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PyramidDir = dir })
		if _, err := r.View(context.Background(), s, zoomed(s, 4), raw); err != nil {
			t.Fatal(err)
		}
		await(t, r, s)
		file := builtFiles(t, dir)[0]
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, change(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := openBuilt(file, missingLevels(s.info)); err == nil {
			t.Errorf("%s: opened", name)
		}
		again := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PyramidDir = dir })
		if _, err := again.View(context.Background(), s, zoomed(s, 4), raw); err != nil {
			t.Fatal(err)
		}
		await(t, again, s)
		if st := again.Stats().Pyramids; st.Built != 1 || st.Opened != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// A decoder that is busy with viewers makes the building wait, not fail.
func TestBuildWaitsWhileBusy(t *testing.T) {
	s := newFake("busy", 3, 256, 256, image.Pt(2100, 600))
	e := &fakeEngine{}
	e.busy.Store(3)
	r := newTestReader(t, e, func(o *Options) { o.PyramidDir = t.TempDir() })
	_ = r.pyramid.finer(context.Background(), s, &View{Downsample: 8}, 0, r.levelPicture(s, 0, 0, microtome.RGB{}))
	await(t, r, s)
	if st := r.Stats().Pyramids; st.Built != 1 || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"old.pyramid": 3 * time.Hour, "mid.pyramid": 2 * time.Hour, "new.pyramid": 0,
		".building-1": 2 * time.Hour, ".building-2": 0, "README": 9 * time.Hour} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Repeat("x", 100)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	newTestReader(t, &fakeEngine{}, func(o *Options) { o.PyramidDir, o.PyramidBytes = dir, 250 })
	for name, want := range map[string]bool{"old.pyramid": false, "mid.pyramid": true, "new.pyramid": true, ".building-1": false, ".building-2": true, "README": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Regions never come from built levels, and large ones are refused.
func TestRegionIgnoresBuiltLevels(t *testing.T) {
	s := newFake("exact", 3, 256, 256, image.Pt(3000, 64))
	r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PyramidDir = t.TempDir() })
	if _, err := r.View(context.Background(), s, zoomed(s, 4), raw); err != nil {
		t.Fatal(err)
	}
	await(t, r, s)
	px, a, err := r.RegionPixels(context.Background(), s, Region{Width: 50, Height: 4, Scale: Scale{Kind: ByDownsample, Value: 16}}, PixelOptions{})
	if err != nil || a.Level != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	compare(t, "region", px, naive(s, 0, 0, 0, 16, 16, 50, 4), 0.51)
	px.Release()
}

// A header may claim any size: what a build would hold is bounded, and a slide
// above it has no levels built.
func TestBuildsAreBounded(t *testing.T) {
	for _, c := range []struct {
		w, h  int64
		built bool
	}{
		{100_000, 80_000, true}, {690_000, 300_000, true},
		{1 << 31, 5000, false}, {600_000, 1 << 31, false}, {5000, 1 << 29, true}, {5000, 1 << 31, false},
	} {
		g := microtome.Grid{Width: c.w, Height: c.h, TileWidth: 1 << 16, TileHeight: 1 << 16, Color: microtome.ColorRGB}
		got := missingLevels(&microtome.Info{Levels: []microtome.Level{{Grid: g, Downsample: 1}}})
		if (len(got) > 0) != c.built {
			t.Errorf("%dx%d: %d levels to build", c.w, c.h, len(got))
		}
		for _, l := range got {
			if l.Width*builtSide*3 > 256<<20 || int64(l.Cols)*int64(l.Rows)*entryBytes > 256<<20 {
				t.Errorf("%dx%d: a level of %dx%d", c.w, c.h, l.Width, l.Height)
			}
		}
	}
}

// A build that fails is tried again at growing intervals.
func TestFailedBuildsPause(t *testing.T) {
	r := newTestReader(t, &fakeEngine{}, func(o *Options) { o.PyramidDir = t.TempDir() })
	p, s := r.pyramid, newFake("failing", 3, 256, 256, image.Pt(2600, 2600))
	p.dir = filepath.Join(p.dir, "gone")
	b := p.state(setKey{"failing", 0})
	for _, want := range []time.Duration{retryAfter, 2 * retryAfter, 4 * retryAfter} {
		p.wait.Add(1)
		p.build(s, func() {}, b, missingLevels(s.info), filepath.Join(p.dir, "x"))
		if b.pause != want || time.Until(b.retry) > want || b.running.Load() {
			t.Errorf("pauses %v, want %v; retries in %v", b.pause, want, time.Until(b.retry))
		}
	}
	b.pause = retryAtMost
	p.wait.Add(1)
	p.build(s, func() {}, b, missingLevels(s.info), filepath.Join(p.dir, "x"))
	if b.pause != retryAtMost {
		t.Errorf("pauses %v", b.pause)
	}
}
