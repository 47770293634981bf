package formats

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// watch is a source that remembers its last failure. Directories are asked for
// many small values where a broken one counts as absent; so that a source that
// fails for a moment doesn't pass for a file without them, whoever asks
// compares failures before and after.
type watch struct {
	microtome.Source
	failures atomic.Int64
	last     atomic.Pointer[error]
}

// ReadAt implements microtome.Source.
func (w *watch) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := w.Source.ReadAt(ctx, p, off)
	if errors.Is(err, microtome.ErrSource) {
		w.last.Store(&err)
		w.failures.Add(1)
	}
	return n, err
}

// since is the failure that came after the count was taken, nil for none.
func (w *watch) since(count int64) error {
	if w.failures.Load() == count {
		return nil
	}
	return *w.last.Load()
}
