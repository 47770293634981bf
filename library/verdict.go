package library

import (
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/microtome/microtome"
)

// verdict is what opening a file came to, for one state of it.
type verdict struct {
	gen microtome.Generation
	err error // nil: it is a slide
	at  int64 // Library.now before it was opened
}

// verdicts remember what the catalogue's files came to, and queue those that
// nobody has opened yet.
type verdicts struct {
	mu    sync.Mutex
	byID  map[string]verdict
	asked map[string]bool // in the queue
	queue chan string
}

// maxProbes bounds the queue of files to look into; what finds it full is
// queued when it is listed again.
const maxProbes = 256

func (v *verdicts) start() {
	v.byID = map[string]verdict{}
	v.asked = map[string]bool{}
	v.queue = make(chan string, maxProbes)
}

func (v *verdicts) get(id string) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.byID[id]
	return found, ok
}

func (v *verdicts) put(id string, x verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byID[id] = x
}

// keep drops the verdicts on files that are no longer known.
func (v *verdicts) keep(known func(id string) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.byID {
		if !known(id) {
			delete(v.byID, id)
		}
	}
}

// lasts says whether the verdict holds until the file changes: what is in a file
// stays there, but a disk or a file's rights may get well by themselves.
func (x verdict) lasts() bool {
	return x.err == nil || errors.Is(x.err, microtome.ErrCorrupt) ||
		errors.Is(x.err, microtome.ErrUnsupported) || errors.Is(x.err, microtome.ErrLimit)
}

// describe fills what is known of an entry, and queues it when that is nothing,
// or may be so no longer.
func (v *verdicts) describe(e *Entry, now int64) {
	if !utf8.ValidString(e.ID) {
		e.Err, e.Checked = "its name is not valid UTF-8", true
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	x, ok := v.byID[e.ID]
	if ok && x.gen.Size == e.Size && x.gen.ModTime.Equal(e.ModTime) {
		e.Checked = true
		if x.err != nil {
			e.Err = x.err.Error()
		}
		if x.lasts() || now-x.at < int64(failureLasts) {
			return
		}
	}
	if v.asked[e.ID] {
		return
	}
	select {
	case v.queue <- e.ID:
		v.asked[e.ID] = true
	default:
	}
}

// keepProbing opens, one at a time, the listed files of which nothing is known,
// so that the catalogue can say why one is not readable.
func (l *Library) keepProbing() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case id := <-l.verdicts.queue:
			l.probe(id)
		}
	}
}

// probe opens a slide and closes it again: it must not push out the slides that
// viewers use.
func (l *Library) probe(id string) {
	defer func() {
		l.verdicts.mu.Lock()
		delete(l.verdicts.asked, id)
		l.verdicts.mu.Unlock()
	}()
	p, err := l.mounts.find(id)
	if err != nil {
		return
	}
	if s, err := l.openPlace(l.ctx, id, p); err == nil {
		_ = s.Slide.Close()
	}
}
