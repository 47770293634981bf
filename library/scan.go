package library

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// publishEvery is how often the first reading shows what it has found: the
	// first answer may not wait for ten thousand files.
	publishEvery = 100 * time.Millisecond
	// freshFor is how long a listing is taken as fresh: one that is asked for
	// later has the folders read again.
	freshFor = 2 * time.Second
	// slowdown is the least ratio of rest to reading.
	slowdown = 20
	// maxDepth bounds how deep folders are read.
	maxDepth = 64
	// readBatch is how many names of a folder are read at a time.
	readBatch = 1024
)

// catalogue holds the newest snapshot of the folders.
type catalogue struct {
	now    atomic.Pointer[snapshot]
	wanted chan struct{} // a reading is asked for

	mu    sync.Mutex
	after []chan struct{} // closed when a reading that began later is done
}

func (c *catalogue) start() {
	c.wanted = make(chan struct{}, 1)
	c.now.Store(newSnapshot(nil, nil))
}

func (c *catalogue) current() *snapshot { return c.now.Load() }

func (c *catalogue) size() (known int, scanning bool) {
	s := c.current()
	return len(s.items), !s.complete
}

func (c *catalogue) want() {
	select {
	case c.wanted <- struct{}{}:
	default:
	}
}

// waiters takes those who wait for the reading that begins now.
func (c *catalogue) waiters() []chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.after
	c.after = nil
	return w
}

// Refresh reads the folders again and returns when what was there at the time
// of the call is listed.
func (l *Library) Refresh(ctx context.Context) error {
	done := make(chan struct{})
	l.cat.mu.Lock()
	l.cat.after = append(l.cat.after, done)
	l.cat.mu.Unlock()
	l.cat.want()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

// refreshSoon has the folders read again when the snapshot is no longer fresh.
func (l *Library) refreshSoon(s *snapshot) {
	if s.complete && time.Since(s.taken) > max(freshFor, slowdown*s.took) {
		l.cat.want()
	}
}

// keepScanning reads the folders at the start, when asked, and from time to
// time.
func (l *Library) keepScanning() {
	for {
		waiters := l.cat.waiters()
		s := l.scan()
		if l.ctx.Err() != nil {
			return
		}
		l.cat.now.Store(s)
		l.count.scans.Add(1)
		l.verdicts.keep(func(id string) bool { return s.find(id) != nil })
		for _, w := range waiters {
			close(w)
		}
		rest := time.NewTimer(max(l.opt.RescanEvery, slowdown*s.took))
		select {
		case <-rest.C:
		case <-l.cat.wanted:
		case <-l.ctx.Done():
			rest.Stop()
			return
		}
		rest.Stop()
	}
}

// scanner is one reading of all folders.
type scanner struct {
	lib     *Library
	first   bool // the first reading: it publishes as it goes
	tops    []string
	items   []*item
	shown   time.Time
	pause   time.Duration
	mounted map[string]bool // prefixes of links: read as mounts, not as folders
}

// dirAt is a folder still to be read.
type dirAt struct {
	root  *os.Root
	path  string // below the root; "." is itself
	id    string
	depth int
}

func (l *Library) scan() *snapshot {
	began := time.Now()
	sc := &scanner{
		lib: l, first: !l.cat.current().complete,
		shown: began, pause: publishEvery, mounted: map[string]bool{},
	}
	var queue []dirAt
	for _, m := range slices.Backward(l.mounts) { // roots before their links
		m.refresh(l.now(), int64(l.opt.CheckEvery))
		if m.as != "" {
			sc.addFile(m)
			continue
		}
		sc.mounted[m.prefix] = true
		queue = append(queue, dirAt{root: m.at.Load().dir, path: ".", id: m.prefix})
		if m.prefix != "" && !strings.Contains(m.prefix, "/") {
			sc.tops = append(sc.tops, m.prefix)
		}
	}
	// Breadth first: what a gallery shows first is found first.
	for len(queue) > 0 && l.ctx.Err() == nil {
		d := queue[0]
		queue = append(queue[1:], sc.read(d)...)
	}
	s := newSnapshot(sc.items, sc.tops)
	s.complete, s.taken, s.took = true, time.Now(), time.Since(began)
	return s
}

func (sc *scanner) addFile(m *mount) {
	if fi, err := (place{mount: m}).stat(); err == nil {
		sc.items = append(sc.items, newItem(join(m.prefix, m.as), fi.Size(), fi.ModTime()))
	}
}

// read adds a folder's slides and returns the folders below it. A folder that
// cannot be read has none.
func (sc *scanner) read(d dirAt) []dirAt {
	f, err := d.root.Open(d.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var below []dirAt
	for {
		entries, err := f.ReadDir(readBatch)
		for _, e := range entries {
			if hidden(e.Name()) {
				continue
			}
			if e.IsDir() {
				below = sc.descend(below, d, e.Name())
			} else if isSlideName(e.Name()) {
				sc.add(d, e)
			}
		}
		sc.publish()
		if err != nil || len(entries) == 0 || sc.lib.ctx.Err() != nil {
			return below
		}
	}
}

func (sc *scanner) descend(below []dirAt, d dirAt, name string) []dirAt {
	id := join(d.id, name)
	if d.depth >= maxDepth || sc.mounted[id] {
		return below
	}
	return append(below, dirAt{root: d.root, path: path.Join(d.path, name), id: id, depth: d.depth + 1})
}

// add takes a file. A link to a file counts when it stays inside the root.
func (sc *scanner) add(d dirAt, e fs.DirEntry) {
	var fi fs.FileInfo
	var err error
	if e.Type()&fs.ModeSymlink != 0 {
		fi, err = d.root.Stat(path.Join(d.path, e.Name()))
	} else {
		fi, err = e.Info()
	}
	if err != nil || !fi.Mode().IsRegular() {
		return
	}
	sc.items = append(sc.items, newItem(join(d.id, e.Name()), fi.Size(), fi.ModTime()))
}

// publish shows what the first reading has found so far, at growing intervals:
// sorting must not take longer than reading.
func (sc *scanner) publish() {
	if !sc.first || time.Since(sc.shown) < sc.pause {
		return
	}
	sc.lib.cat.now.Store(newSnapshot(slices.Clone(sc.items), sc.tops))
	sc.pause *= 2
	sc.shown = time.Now()
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
