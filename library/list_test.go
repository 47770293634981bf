package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/microtome/microtome"
)

// list reads the folders again and lists.
func list(t testing.TB, l *Library, q Query) Page {
	t.Helper()
	if err := l.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	page, err := l.List(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func names(p Page) string {
	var out []string
	for _, f := range p.Folders {
		out = append(out, f+"/")
	}
	for _, e := range p.Entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func TestListFolders(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	for _, n := range []string{"s10.svs", "s9.svs", "B/x.svs", "a/deep/er/y.TIF", "a/z.svs", "none/readme.txt", "A-1/q.svs"} {
		write(t, dir, n, n)
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{}, "r/ void/"},
		{Query{Folder: "r"}, "r/a/ r/A-1/ r/B/ s9.svs s10.svs"},
		{Query{Folder: "r/a"}, "r/a/deep/ z.svs"},
		{Query{Folder: "r/a/deep"}, "r/a/deep/er/"},
		{Query{Folder: "void"}, ""},
		{Query{Folder: "r/a", Recursive: true}, "y.TIF z.svs"},
		{Query{Recursive: true}, "y.TIF z.svs q.svs x.svs s9.svs s10.svs"},
		{Query{Recursive: true, Offset: 4, Limit: 1}, "s9.svs"},
		{Query{Folder: "r", Offset: 1}, "s10.svs"},
		{Query{Folder: "r", Offset: 9}, ""},
		{Query{Search: "S1"}, "s10.svs"},
		{Query{Search: "DEEP/ER"}, "y.TIF"},
		{Query{Folder: "r/B", Search: "s10"}, ""},
		{Query{Search: "readme"}, ""},
	} {
		l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Name: "r", Path: dir}, Root{Name: "void", Path: empty})
		if got := names(list(t, l, c.q)); got != c.want {
			t.Errorf("%+v lists %q, want %q", c.q, got, c.want)
		}
	}
}

func TestListRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/b.svs", "b")
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
	list(t, l, Query{})
	for _, c := range []struct {
		q    Query
		want error
	}{
		{Query{Folder: "none"}, microtome.ErrNotFound},
		{Query{Folder: "a/"}, microtome.ErrNotFound},
		{Query{Folder: ".."}, microtome.ErrNotFound},
		{Query{Folder: "a/b.svs"}, microtome.ErrNotFound},
		{Query{Offset: -1}, microtome.ErrMalformed},
		{Query{Limit: -1}, microtome.ErrMalformed},
	} {
		if _, err := l.List(context.Background(), c.q); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.q, err, c.want)
		}
	}
}

func TestListSaysWhyASlideIsUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bad.svs", "bad")
	write(t, dir, "good.svs", "good")
	write(t, dir, "latin\xfc.svs", "good")
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
		page := list(t, l, Query{})
		if page.Entries[0].Checked || page.Entries[0].Err != "" {
			t.Errorf("known before anybody looked: %+v", page.Entries[0])
		}
		synctest.Wait() // for the probes
		page = list(t, l, Query{})
		bad, good, latin := page.Entries[0], page.Entries[1], page.Entries[2]
		if !bad.Checked || bad.Err != "ifd 0: unsupported Compression 200" {
			t.Errorf("the bad one: %+v", bad)
		}
		if !good.Checked || good.Err != "" {
			t.Errorf("the good one: %+v", good)
		}
		if latin.Err == "" {
			t.Errorf("a name that JSON cannot carry: %+v", latin)
		}
		if l.Stats().Open != 0 {
			t.Error("probing kept slides open")
		}
		opened := o.opened.Load()
		for range 20 {
			list(t, l, Query{})
			synctest.Wait()
		}
		if n := o.opened.Load(); n != opened {
			t.Errorf("listing again opened %d more", n-opened)
		}
		replace(t, dir, "bad.svs", "cured")
		list(t, l, Query{})
		synctest.Wait()
		if e := list(t, l, Query{}).Entries[0]; !e.Checked || e.Err != "" {
			t.Errorf("after the file was cured: %+v", e)
		}
	})
}

// A failure of the disk, or of a file's rights, is looked into again although
// the file stays as it is.
func TestListForgetsFailuresThatPass(t *testing.T) {
	for _, c := range []struct {
		kind error
		want string // after it has passed
	}{{microtome.ErrSource, ""}, {microtome.ErrForbidden, ""}, {microtome.ErrCorrupt, "corrupt"}, {microtome.ErrLimit, "over a limit"}} {
		dir := t.TempDir()
		write(t, dir, "a.svs", "fine")
		synctest.Test(t, func(t *testing.T) {
			failing := true
			l := newLibrary(t, Options{Open: func(ctx context.Context, src microtome.Source) (microtome.Slide, error) {
				if failing {
					return nil, c.kind
				}
				return (&opener{}).open(ctx, src)
			}}, Root{Path: dir})
			look := func() Entry {
				list(t, l, Query{})
				synctest.Wait()
				return list(t, l, Query{}).Entries[0]
			}
			if e := look(); e.Err != c.kind.Error() {
				t.Errorf("%v: listed as %q", c.kind, e.Err)
			}
			failing = false
			time.Sleep(failureLasts)
			if e := look(); e.Err != c.want {
				t.Errorf("%v, past: listed as %q, want %q", c.kind, e.Err, c.want)
			}
		})
	}
}

func TestProbesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 600 {
		write(t, dir, fmt.Sprintf("%03d.svs", i), "x")
	}
	synctest.Test(t, func(t *testing.T) {
		o := &opener{hold: make(chan struct{})}
		l := newLibrary(t, Options{Open: o.open}, Root{Path: dir})
		for range 3 {
			list(t, l, Query{Limit: 600})
		}
		close(o.hold)
		synctest.Wait()
		if n := o.opened.Load(); n < 10 || n > maxProbes+1 {
			t.Errorf("probed %d files, want at most %d", n, maxProbes+1)
		}
	})
}

func TestCatalogueFollowsTheFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.svs", "a")
	synctest.Test(t, func(t *testing.T) {
		l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
		if got := names(list(t, l, Query{})); got != "a.svs" {
			t.Fatalf("at first: %q", got)
		}
		write(t, dir, "b/c.svs", "c")
		if err := os.Remove(filepath.Join(dir, "a.svs")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(l.cat.current().took*slowdown + freshFor + 1)
		if _, err := l.List(context.Background(), Query{}); err != nil { // asks for a new reading
			t.Fatal(err)
		}
		synctest.Wait()
		page, err := l.List(context.Background(), Query{})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(page); got != "b/" {
			t.Errorf("after the change: %q", got)
		}
	})
}

func TestTenThousandSlides(t *testing.T) {
	dir := t.TempDir()
	for i := range 10000 {
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("study %d", i/100)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("study %d", i/100), fmt.Sprintf("Case-%05d.svs", i))
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	l := newLibrary(t, Options{Open: (&opener{}).open}, Root{Path: dir})
	if _, err := l.List(context.Background(), Query{}); err != nil {
		t.Fatal(err)
	}
	first := time.Since(began)
	page := list(t, l, Query{})
	whole := time.Since(began)
	if len(page.Folders) != 100 || page.Folders[9] != "study 9" || page.Folders[10] != "study 10" {
		t.Errorf("%d folders: %q", len(page.Folders), page.Folders)
	}
	began = time.Now()
	page, err := l.List(context.Background(), Query{Search: "cAsE-0999"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first answer %v, all read twice %v, search %v", first, whole, time.Since(began))
	if page.Total != 10 || page.Entries[0].ID != "study 99/Case-09990.svs" {
		t.Errorf("found %d: %q", page.Total, names(page))
	}
	seen := map[string]bool{}
	for off := 0; off < 10000; off += 700 {
		page, err := l.List(context.Background(), Query{Recursive: true, Offset: off, Limit: 700})
		if err != nil || page.Total != 10000 {
			t.Fatalf("at %d: %d of all, %v", off, page.Total, err)
		}
		for _, e := range page.Entries {
			seen[e.ID] = true
		}
	}
	if len(seen) != 10000 {
		t.Errorf("paging showed %d of 10000", len(seen))
	}
}

func TestFirstReadingPublishesAsItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Library{ctx: context.Background()}
		l.cat.start()
		sc := &scanner{lib: l, first: true, shown: time.Now(), pause: publishEvery}
		show := func(id string, after time.Duration) Page {
			time.Sleep(after)
			sc.items = append(sc.items, newItem(id, 1, time.Now()))
			sc.publish()
			page, err := l.cat.current().list(Query{Recursive: true, Limit: 9})
			if err != nil || !page.Scanning {
				t.Errorf("while scanning: %+v, %v", page, err)
			}
			return page
		}
		for _, c := range []struct {
			id    string
			after time.Duration
			want  string
		}{
			{"b.svs", publishEvery - 1, ""},
			{"c.svs", 1, "b.svs c.svs"},
			{"a.svs", publishEvery, "b.svs c.svs"}, // the interval grows
			{"d.svs", publishEvery, "a.svs b.svs c.svs d.svs"},
		} {
			if got := names(show(c.id, c.after)); got != c.want {
				t.Errorf("after %s: %q, want %q", c.id, got, c.want)
			}
		}
		if page, err := l.cat.current().list(Query{Folder: "not/yet"}); err != nil || !page.Scanning {
			t.Errorf("a folder not reached yet: %+v, %v", page, err)
		}
	})
}
