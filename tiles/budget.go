package tiles

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/microtome/microtome"
)

// Budget bounds what all callers together have under way, in bytes or in number.
// Who comes when it is used up waits its turn; when too many wait, the next is
// refused. Its methods may be called at once.
type Budget struct {
	all     *semaphore.Weighted
	total   int64
	waiting atomic.Int64
	most    int64 // that may wait
	refused atomic.Int64
	used    atomic.Int64
}

// NewBudget has a total, for which at most so many wait.
func NewBudget(total, most int64) *Budget {
	return &Budget{all: semaphore.NewWeighted(total), total: total, most: most}
}

// Take waits for n of the budget; more than all of it counts as all. The caller
// calls Give with the same n. The error is ErrBusy, or ctx's.
func (b *Budget) Take(ctx context.Context, n int64) error {
	return b.acquire(ctx, n, b.most)
}

// more is Take for who has begun already: it is never refused.
func (b *Budget) more(ctx context.Context, n int64) error {
	return b.acquire(ctx, n, math.MaxInt64)
}

func (b *Budget) acquire(ctx context.Context, n, most int64) error {
	n = min(n, b.total)
	if b.all.TryAcquire(n) {
		b.used.Add(n)
		return nil
	}
	if b.waiting.Add(1) > most {
		b.waiting.Add(-1)
		b.refused.Add(1)
		return fmt.Errorf("%d wait already: %w", most, microtome.ErrBusy)
	}
	defer b.waiting.Add(-1)
	if err := b.all.Acquire(ctx, n); err != nil {
		return err
	}
	b.used.Add(n)
	return nil
}

// Used is what is taken now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Waiting is how many wait now.
func (b *Budget) Waiting() int64 { return b.waiting.Load() }

// Give gives back what was taken by one Take.
func (b *Budget) Give(n int64) {
	n = min(n, b.total)
	b.used.Add(-n)
	b.all.Release(n)
}
