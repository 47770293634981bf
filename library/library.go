// Package library is the catalogue: it maps ids to the slides below the served
// folders, keeps the recently used ones open, and notices when a file changes.
package library

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats"
)

// Root is one served folder, or one served file.
type Root struct {
	// Name is the first element of the ids below this root. The only root may
	// go without one; of several folders, each unnamed one takes its own base
	// name. A single file without a name is served as its base name.
	Name string
	// Path is the folder or file. It may itself be a symlink: it was named.
	Path string
	// Links are symlinked folders that may be followed although they lead out
	// of the root, as slash-separated paths below it ("studies/2024"). Every
	// other link is followed only as far as it stays inside the root.
	Links []string
}

// Options tune a Library. The zero value is a good one.
type Options struct {
	// MaxOpen bounds the slides kept open while nobody uses them; 0 means 256.
	MaxOpen int
	// CheckEvery is how long an open slide is trusted before its file is
	// looked at again; 0 means 1 s.
	CheckEvery time.Duration
	// RescanEvery is how often the folders are read again when nobody asks;
	// 0 means 1 min. Slow folders are read less often, so that reading them
	// takes at most a twentieth of the time.
	RescanEvery time.Duration
	// Open turns bytes into a slide; nil means formats.Open. When it fails the
	// library closes the source.
	Open func(context.Context, microtome.Source) (microtome.Slide, error)
}

func (o Options) withDefaults() Options {
	if o.MaxOpen <= 0 {
		o.MaxOpen = 256
	}
	if o.CheckEvery <= 0 {
		o.CheckEvery = time.Second
	}
	if o.RescanEvery <= 0 {
		o.RescanEvery = time.Minute
	}
	if o.Open == nil {
		o.Open = func(ctx context.Context, src microtome.Source) (microtome.Slide, error) {
			return formats.Open(ctx, src, formats.Options{})
		}
	}
	return o
}

// Library is the catalogue and the open slides of some roots. All methods may
// be called at once from many goroutines.
type Library struct {
	opt    Options
	mounts mounts
	began  time.Time

	// slides holds *openSlide by id. Reads take no lock; writes hold mu.
	slides  sync.Map
	mu      sync.Mutex
	open    int                // entries of slides
	flights map[string]*flight // opens under way
	closed  bool

	opening  chan struct{} // bounds the opens under way
	verdicts verdicts
	cat      catalogue
	count    counters

	ctx  context.Context // ends with the library
	stop context.CancelFunc
	work sync.WaitGroup
}

// maxOpening bounds how many files are opened at once: enough to hide a slow
// disk, few enough that a gallery does not take all memory.
const maxOpening = 8

// New opens the roots and starts to read their folders in the background. It
// fails when a root or a link it names is not there, or when two roots would
// share a name.
func New(roots []Root, o Options) (*Library, error) {
	ms, err := openMounts(roots)
	if err != nil {
		return nil, err
	}
	l := &Library{
		opt:     o.withDefaults(),
		mounts:  ms,
		began:   time.Now(),
		flights: map[string]*flight{},
		opening: make(chan struct{}, maxOpening),
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.verdicts.start()
	l.cat.start()
	l.work.Go(l.keepScanning)
	l.work.Go(l.keepProbing)
	return l, nil
}

// Close stops the background work and closes every slide that nobody uses.
// Slides in use stay readable and close with their last Release; later Acquire
// calls fail with ErrNotFound.
func (l *Library) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.work.Wait()
	l.mu.Lock()
	var idle []*openSlide
	l.slides.Range(func(_, v any) bool {
		idle = append(idle, v.(*openSlide))
		return true
	})
	for _, s := range idle {
		l.forget(s)
	}
	l.mu.Unlock()
	for _, s := range idle {
		s.retire()
	}
	return l.mounts.close()
}

// now is the time since the library began, in nanoseconds: monotonic, and
// cheap to keep in an atomic.
func (l *Library) now() int64 { return int64(time.Since(l.began)) }

type counters struct {
	opens, failures, checks, replaced, evicted, scans atomic.Int64
}

// Stats are counts since the library began, and what it holds now.
type Stats struct {
	Open     int   // slides open now and ready to be handed out
	Known    int   // slide files in the catalogue
	Scanning bool  // the folders are being read for the first time
	Opens    int64 // slides opened
	Failures int64 // opens that failed
	Checks   int64 // looks at an open slide's file
	Replaced int64 // open slides given up because their file changed or went
	Evicted  int64 // open slides given up for others (MaxOpen)
	Scans    int64 // complete readings of all folders
}

// Stats returns the counts of now.
func (l *Library) Stats() Stats {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	known, scanning := l.cat.size()
	return Stats{
		Open: open, Known: known, Scanning: scanning,
		Opens: l.count.opens.Load(), Failures: l.count.failures.Load(),
		Checks: l.count.checks.Load(), Replaced: l.count.replaced.Load(),
		Evicted: l.count.evicted.Load(), Scans: l.count.scans.Load(),
	}
}
