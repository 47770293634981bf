package tiles

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/microtome/microtome"
)

// budget bounds what all callers together have in the making. Who comes when it
// is used up waits its turn; when too many wait, the next is refused.
type budget struct {
	all     *semaphore.Weighted
	total   int64
	waiting atomic.Int64
	most    int64 // that may wait
	refused atomic.Int64
	used    atomic.Int64
}

func newBudget(total, most int64) *budget {
	return &budget{all: semaphore.NewWeighted(total), total: total, most: most}
}

// take waits for n of the budget; more than all of it counts as all. The caller
// calls give with the same n. The error is ErrBusy, or ctx's.
func (b *budget) take(ctx context.Context, n int64) error {
	return b.acquire(ctx, n, b.most)
}

// more is take for who has begun already: it is never refused.
func (b *budget) more(ctx context.Context, n int64) error {
	return b.acquire(ctx, n, math.MaxInt64)
}

func (b *budget) acquire(ctx context.Context, n, most int64) error {
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

func (b *budget) give(n int64) {
	n = min(n, b.total)
	b.used.Add(-n)
	b.all.Release(n)
}
