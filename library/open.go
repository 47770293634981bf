package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/source"
)

// failureLasts is how long a failed open answers for the same state of the
// file: long enough that a gallery does not hammer a broken slide, short enough
// that a cured disk is noticed.
const failureLasts = 5 * time.Second

// openPlace opens a file as a slide, with no reference yet, and remembers the
// outcome for the catalogue.
func (l *Library) openPlace(ctx context.Context, id string, p place) (*openSlide, error) {
	looked := l.now()
	fi, err := p.stat()
	if err != nil {
		return nil, err
	}
	gen := source.Stat(fi)
	if v, ok := l.verdicts.get(id); ok && v.err != nil && v.gen.ID == gen.ID && looked-v.at < int64(failureLasts) {
		return nil, v.err
	}
	slide, gen, err := l.openSource(ctx, p, gen)
	if ctx.Err() != nil && err != nil {
		return nil, err // the library closes: that is no verdict on the file
	}
	l.verdicts.put(id, verdict{gen: gen, err: err, at: looked})
	if err != nil {
		l.count.failures.Add(1)
		return nil, err
	}
	l.count.opens.Add(1)
	s := &openSlide{id: id, place: p, gen: gen.ID, Slide: slide}
	s.checked.Store(looked)
	s.used.Store(looked)
	return s, nil
}

// openSource opens the bytes, then the slide. The generation is that of the
// opened file: it may have been replaced since the look at its name.
func (l *Library) openSource(ctx context.Context, p place, gen microtome.Generation) (microtome.Slide, microtome.Generation, error) {
	src, err := source.OpenAt(p.anchored())
	if err != nil {
		return nil, gen, openError(err)
	}
	gen = src.Generation()
	slide, err := l.parse(ctx, src)
	if err != nil {
		return nil, gen, errors.Join(err, src.Close())
	}
	return slide, gen, nil
}

// parse runs Options.Open. It runs outside any request, so a panic over a
// hostile file would end the whole server: here it ends as that file's error.
func (l *Library) parse(ctx context.Context, src microtome.Source) (s microtome.Slide, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("%w: reading it broke the reader: %v", microtome.ErrCorrupt, r)
		}
	}()
	return l.opt.Open(ctx, src)
}

// openError drops the paths that the file system puts into its errors, and
// keeps what our own packages say.
func openError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return placeError(err)
	}
	return err
}
