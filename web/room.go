package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/microtome/microtome"
)

// room bounds the bytes of all batches' answers together, from the first pixel
// to the last byte written: a slow client holds its answer all that time.
type room struct {
	all     *semaphore.Weighted
	total   int64
	waiting atomic.Int64
}

func newRoom(total int64) *room { return &room{all: semaphore.NewWeighted(total), total: total} }

// take waits for room for n bytes; more than all of it counts as all. The error
// is ErrBusy when too many wait, or ctx's.
func (r *room) take(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, r.total)
	if !r.all.TryAcquire(n) {
		if r.waiting.Add(1) > maxBatchWaiting {
			r.waiting.Add(-1)
			return nil, fmt.Errorf("%d batches wait already: %w", maxBatchWaiting, microtome.ErrBusy)
		}
		err := r.all.Acquire(ctx, n)
		r.waiting.Add(-1)
		if err != nil {
			return nil, err
		}
	}
	return func() { r.all.Release(n) }, nil
}

// isTooLarge says that a body went over its bound.
func isTooLarge(err error) bool {
	var over *http.MaxBytesError
	return errors.As(err, &over)
}
