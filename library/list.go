package library

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/microtome/microtome"
)

// Query asks for a part of the catalogue.
type Query struct {
	// Folder is the folder to list, as Page.Folders names it; "" is the top.
	Folder string
	// Search keeps the slides whose id holds it, in any case, anywhere below
	// Folder.
	Search string
	// Offset and Limit choose the page of entries. Limit 0 means 100; at most
	// 1,000 are given.
	Offset, Limit int
	// Recursive lists the slides of all folders below Folder.
	Recursive bool
}

// Page is an answer to a Query. Its order is stable: folder by folder, by name
// as people sort (numbers by value).
type Page struct {
	// Folders are the folders right below the one asked for that hold slides,
	// as full paths to ask for next. They stand on the first page only, and
	// not in an answer to a search or a recursive query.
	Folders []string
	Entries []Entry
	// Total counts the entries of all pages.
	Total int
	// Scanning says that the folders are being read for the first time: more
	// will come.
	Scanning bool
}

// Entry is one slide file of the catalogue.
type Entry struct {
	ID, Name string
	Size     int64 // bytes
	ModTime  time.Time
	// Err says why the slide cannot be read, when that is known.
	Err string
	// Checked says that it is known whether the slide can be read: without Err,
	// it can. Listing an unchecked entry has it checked in the background.
	Checked bool
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// List answers from what is known now, without waiting for the disk; it has
// the folders read again when that was some time ago. It fails with ErrNotFound
// for a folder that holds no slide (while Scanning: that is not known to), and
// with ErrMalformed for a negative offset or limit.
func (l *Library) List(ctx context.Context, q Query) (Page, error) {
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	if q.Offset < 0 || q.Limit < 0 {
		return Page{}, fmt.Errorf("%w: negative offset or limit", microtome.ErrMalformed)
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, maxLimit)
	s := l.cat.current()
	l.refreshSoon(s)
	page, err := s.list(q)
	if err != nil {
		return Page{}, err
	}
	now := l.now()
	for i := range page.Entries {
		l.verdicts.describe(&page.Entries[i], now)
	}
	return page, nil
}

func (s *snapshot) list(q Query) (Page, error) {
	page := Page{Scanning: !s.complete}
	f, ok := s.folders[q.Folder]
	if !ok {
		if q.Folder == "" || page.Scanning && validPath(q.Folder) {
			return page, nil
		}
		return Page{}, fmt.Errorf("folder: %w", microtome.ErrNotFound)
	}
	switch {
	case q.Search != "":
		page.fill(q, s.search(f, strings.ToLower(q.Search)))
	case q.Recursive:
		page.fill(q, s.items[f.first:f.last])
	default:
		page.fill(q, f.own)
		if q.Offset == 0 {
			page.Folders = f.sub
		}
	}
	return page, nil
}

func (s *snapshot) search(f *folder, text string) []*item {
	var out []*item
	for _, it := range s.items[f.first:f.last] {
		if strings.Contains(it.folded, text) {
			out = append(out, it)
		}
	}
	return out
}

func (p *Page) fill(q Query, found []*item) {
	p.Total = len(found)
	from := min(q.Offset, len(found))
	to := min(from+q.Limit, len(found))
	p.Entries = make([]Entry, 0, to-from)
	for _, it := range found[from:to] {
		p.Entries = append(p.Entries, Entry{ID: it.id, Name: it.name(), Size: it.size, ModTime: it.modTime})
	}
}
