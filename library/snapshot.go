package library

import (
	"slices"
	"strings"
	"time"
)

// item is one slide file as the last reading of its folder found it.
type item struct {
	id      string
	folded  string // the id in lower case, for searching
	size    int64
	modTime time.Time
}

func newItem(id string, size int64, modTime time.Time) *item {
	return &item{id: id, folded: strings.ToLower(id), size: size, modTime: modTime}
}

func (it *item) name() string { return it.id[strings.LastIndexByte(it.id, '/')+1:] }

// folder is one folder of a snapshot.
type folder struct {
	first, last int      // its slides and those below it: items[first:last]
	own         []*item  // the slides right in it
	sub         []string // the folders right below that hold slides, in order
}

// snapshot is one reading of all folders. It never changes once published.
type snapshot struct {
	items    []*item // in order of their ids: a folder's are contiguous
	folders  map[string]*folder
	complete bool
	taken    time.Time
	took     time.Duration
}

// newSnapshot sorts the items (which it keeps) and finds the folders. tops are
// the roots' names, folders even when they hold nothing.
func newSnapshot(items []*item, tops []string) *snapshot {
	slices.SortFunc(items, func(a, b *item) int { return compareIDs(a.id, b.id) })
	s := &snapshot{items: items, folders: map[string]*folder{"": {last: len(items)}}}
	for _, top := range tops {
		s.enter(top, 0)
	}
	for i, it := range items {
		dir := strings.TrimSuffix(strings.TrimSuffix(it.id, it.name()), "/")
		f := s.enter(dir, i)
		f.own = append(f.own, it)
		s.extend(dir, i)
	}
	for _, f := range s.folders {
		slices.SortFunc(f.sub, compareIDs)
	}
	return s
}

// enter returns the folder, made with all those above it when it is new.
func (s *snapshot) enter(dir string, first int) *folder {
	f, ok := s.folders[dir]
	if ok {
		return f
	}
	f = &folder{first: first, last: first}
	s.folders[dir] = f
	up := parent(dir)
	above := s.enter(up, first)
	above.sub = append(above.sub, dir)
	return f
}

// extend makes item i the last so far of dir and of all folders above it.
func (s *snapshot) extend(dir string, i int) {
	for dir != "" {
		f := s.folders[dir]
		if f.last == f.first { // a root that was entered before its slides came
			f.first = i
		}
		f.last = i + 1
		dir = parent(dir)
	}
}

func parent(dir string) string {
	return dir[:max(0, strings.LastIndexByte(dir, '/'))]
}

// find returns the item of an id, nil when there is none.
func (s *snapshot) find(id string) *item {
	i, ok := slices.BinarySearchFunc(s.items, id, func(it *item, id string) int { return compareIDs(it.id, id) })
	if !ok {
		return nil
	}
	return s.items[i]
}
