package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/microtome/microtome"
)

func TestOneOpenForAllWaiters(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	synctest.Test(t, func(t *testing.T) {
		o := &opener{hold: make(chan struct{})}
		l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
		impatient, leave := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx := context.Background()
				if i%2 == 1 {
					ctx = impatient
				}
				h, err := l.Acquire(ctx, "a.svs")
				if i%2 == 1 {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("one who left got %v", err)
					}
					return
				}
				if err != nil {
					t.Errorf("one who waited got %v", err)
					return
				}
				h.Release()
				h.Release() // a second one must not take another's reference
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(o.hold)
		wg.Wait()
		if n := o.opened.Load(); n != 1 {
			t.Errorf("opened %d times", n)
		}
		if n := o.closed.Load(); n != 0 {
			t.Errorf("closed %d times while the library holds it", n)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if n := o.closed.Load(); n != 1 {
			t.Errorf("closed %d times by the library's end", n)
		}
	})
}

func TestMaxOpenEvictsLeastRecentlyUsed(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		write(t, dir, fmt.Sprintf("%d.svs", i), fmt.Sprint(i))
	}
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		l := newLibrary(t, Options{Open: o.open, MaxOpen: 3, CheckEvery: time.Hour}, Root{Path: dir})
		get := func(id string) *Handle {
			t.Helper()
			time.Sleep(time.Millisecond)
			h, err := l.Acquire(context.Background(), id)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		held := get("0.svs")
		for _, id := range []string{"1.svs", "2.svs", "1.svs", "3.svs"} {
			get(id).Release()
		}
		if n := l.Stats().Open; n != 3 {
			t.Errorf("%d open, want 3", n)
		}
		before := o.opened.Load()
		get("0.svs").Release() // older than 2.svs, but in use
		get("1.svs").Release()
		if o.opened.Load() != before {
			t.Error("a slide in use or recently used was closed")
		}
		get("2.svs").Release()
		if o.opened.Load() != before+1 {
			t.Error("the least recently used slide was kept")
		}
		if text, err := held.slide.Slide.(*fakeSlide).text(); err != nil || text != "0" {
			t.Errorf("the held slide reads %q, %v", text, err)
		}
		held.Release()
	})
}

func TestInUseSlidesSurviveEviction(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		l := newLibrary(t, Options{Open: o.open, MaxOpen: 1}, Root{Path: dir})
		var held []*Handle
		for i := range 4 {
			id := fmt.Sprintf("%d.svs", i)
			write(t, dir, id, id)
			h, err := l.Acquire(context.Background(), id)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, h)
		}
		synctest.Wait() // an evicted slide is retired after the one that evicts it is handed out
		for _, h := range held {
			if text, err := h.slide.Slide.(*fakeSlide).text(); err != nil || text != h.ID() {
				t.Errorf("%s reads %q, %v", h.ID(), text, err)
			}
			h.Release()
		}
		if n := o.closed.Load(); n != 3 {
			t.Errorf("%d of 4 closed with one to be kept", n)
		}
	})
}

// H3: a replaced file is noticed within the interval, by size, by time and by
// inode; whoever holds the old one reads on.
func TestTrapH3FileReplaced(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
		write(t, dir, "a.svs", "first")
		old, err := l.Acquire(context.Background(), "a.svs")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{old.Slide().Info().Generation.ID: true}
		for _, next := range []string{"another size", "same size as", "renamed over"} {
			replace(t, dir, "a.svs", next)
			time.Sleep(time.Second)
			h, err := l.Acquire(context.Background(), "a.svs")
			if err != nil {
				t.Fatal(err)
			}
			if text, err := h.slide.Slide.(*fakeSlide).text(); err != nil || text != next {
				t.Errorf("a second after %q was written: %q, %v", next, text, err)
			}
			if gen := h.Slide().Info().Generation.ID; seen[gen] {
				t.Errorf("%q has a generation that was used before", next)
			} else {
				seen[gen] = true
			}
			h.Release()
		}
		if text, err := old.slide.Slide.(*fakeSlide).text(); err != nil || text != "first" {
			t.Errorf("the old handle reads %q, %v", text, err)
		}
		closed := o.closed.Load()
		old.Release()
		if o.closed.Load() != closed+1 {
			t.Error("the old slide is not closed by its last release")
		}
		if err := os.Remove(filepath.Join(dir, "a.svs")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := l.Acquire(context.Background(), "a.svs"); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("a deleted file: %v", err)
		}
	})
}

// A whole folder swapped for another, and a link that now leads elsewhere, are
// followed like a replaced file.
func TestSwappedFolder(t *testing.T) {
	top := t.TempDir()
	write(t, top, "v1/a.svs", "one")
	write(t, top, "v2/a.svs", "two")
	write(t, top, "v3/a.svs", "three")
	link := filepath.Join(top, "current")
	point := func(to string) {
		if err := os.Symlink(to, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	point("v1")
	synctest.Test(t, func(t *testing.T) {
		folder := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: link})
		file := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: filepath.Join(link, "a.svs")})
		for i, want := range []string{"one", "two", "three"} {
			point(fmt.Sprintf("v%d", i+1))
			time.Sleep(time.Second)
			for name, l := range map[string]*Library{"folder": folder, "file": file} {
				if got, err := textOf(l, "a.svs"); err != nil || got != want {
					t.Errorf("%s: %q, %v; want %q", name, got, err, want)
				}
			}
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got, err := textOf(folder, "a.svs"); err != nil || got != "three" {
			t.Errorf("while the path leads nowhere: %q, %v", got, err)
		}
	})
}

// replace puts a new file in the place of another, as a copy tool does it.
func replace(t *testing.T, dir, name, text string) {
	t.Helper()
	write(t, dir, name+".part", text)
	if err := os.Rename(filepath.Join(dir, name+".part"), filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestOneLookAtAFileASecond(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
		for range 30 { // 3 s
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, err := textOf(l, "a.svs"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if n := l.Stats().Checks; n != 2 {
			t.Errorf("looked %d times in 2.9 s of use, want 2", n)
		}
		if n := l.Stats().Opens; n != 1 {
			t.Errorf("opened %d times", n)
		}
	})
}

func TestFailedOpenIsRememberedBriefly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "bad")
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
		try := func(wantOpens int64) {
			t.Helper()
			if _, err := textOf(l, "a.svs"); !errors.Is(err, microtome.ErrUnsupported) {
				t.Errorf("got %v", err)
			}
			if n := o.opened.Load(); n != wantOpens {
				t.Errorf("opened %d times, want %d", n, wantOpens)
			}
		}
		for range 10 {
			try(1)
		}
		time.Sleep(failureLasts)
		try(2)
		replace(t, dir, "a.svs", "good")
		if text, err := textOf(l, "a.svs"); err != nil || text != "good" {
			t.Errorf("right after the file was cured: %q, %v", text, err)
		}
	})
}

func TestPanicOfAReaderIsThatFilesError(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "panic")
	write(t, dir, "b.svs", "fine")
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
	if _, err := textOf(l, "a.svs"); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if text, err := textOf(l, "b.svs"); err != nil || text != "fine" {
		t.Errorf("the next slide: %q, %v", text, err)
	}
}

// H10: a file that may not be read is forbidden, not missing and not a crash.
func TestTrapH10UnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	if err := os.Chmod(filepath.Join(dir, "a.svs"), 0); err != nil {
		t.Fatal(err)
	}
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
	if _, err := textOf(l, "a.svs"); !errors.Is(err, microtome.ErrForbidden) {
		t.Errorf("got %v", err)
	}
}

func TestClosedLibrary(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
	h, err := l.Acquire(context.Background(), "a.svs")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := h.slide.Slide.(*fakeSlide).text(); err != nil || text != "a" {
		t.Errorf("a slide in use reads %q, %v after Close", text, err)
	}
	h.Release()
	if _, err := l.Acquire(context.Background(), "a.svs"); !errors.Is(err, microtome.ErrNotFound) {
		t.Errorf("Acquire after Close: %v", err)
	}
}

func TestManyAtOnceWhileFilesChange(t *testing.T) {
	dir := t.TempDir()
	o := &opener{}
	l := newLibrary(t, Options{Open: o.open, MaxOpen: 2, CheckEvery: time.Nanosecond}, Root{Path: dir})
	for i := range 4 {
		write(t, dir, fmt.Sprintf("%d.svs", i), "0")
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				id := fmt.Sprintf("%d.svs", (g+i)%4)
				if g == 0 {
					replace(t, dir, id, fmt.Sprint(i))
					continue
				}
				if _, err := textOf(l, id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if o.opened.Load() != o.closed.Load() {
		t.Errorf("opened %d, closed %d", o.opened.Load(), o.closed.Load())
	}
}

func BenchmarkAcquire(b *testing.B) {
	dir := b.TempDir()
	write(b, dir, "dir/a.svs", "a")
	l := newLibrary(b, Options{Open: (&opener{}).open}, Root{Path: dir})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h, err := l.Acquire(context.Background(), "dir/a.svs")
			if err != nil {
				b.Fatal(err)
			}
			h.Release()
		}
	})
}

// Hold keeps a slide open beyond its handle, and beyond the library.
func TestHeldSlideStaysOpen(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	o := &opener{}
	l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
	h, err := l.Acquire(context.Background(), "a.svs")
	if err != nil {
		t.Fatal(err)
	}
	release := h.Slide().(microtome.Holder).Hold()
	h.Release()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := o.closed.Load(); n != 0 {
		t.Errorf("closed %d times while it was held", n)
	}
	release()
	if n := o.closed.Load(); n != 1 {
		t.Errorf("closed %d times, want once", n)
	}
}
