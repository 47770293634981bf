package cache

import (
	"context"
	"fmt"
	"sync"
)

// flight is one load. All fields but done, cancel and tag are under the shard's lock.
type flight[V any] struct {
	done     chan struct{} // closed when v, err are set
	cancel   context.CancelFunc
	waiters  int
	tag      any // of who loads, for those who join
	finished bool
	v        V
	err      error
}

// Ticket is a value that is kept or on its way. Wait must be called once.
type Ticket[K comparable, V any] struct {
	c      *Cache[K, V]
	k      K
	flight *flight[V] // nil: v is the value
	v      V
	starts bool
}

// Starts says that Begin started the load: it found neither value nor load.
func (t Ticket[K, V]) Starts() bool { return t.starts }

// Tag is what the one who loads gave Reserve; nil when nobody does.
func (t Ticket[K, V]) Tag() any {
	if t.flight == nil {
		return nil
	}
	return t.flight.tag
}

// Begin is the first half of Get: it starts or joins the load and does not
// wait. Many can be begun before the first is waited for.
func (c *Cache[K, V]) Begin(ctx context.Context, k K, load func(context.Context) (V, error)) Ticket[K, V] {
	t, lctx := c.join(ctx, k, nil)
	if t.starts {
		go c.run(lctx, k, t.flight, load)
	}
	return t
}

// join finds the value or its flight, or enters a new one: its context is
// returned then.
func (c *Cache[K, V]) join(ctx context.Context, k K, tag any) (Ticket[K, V], context.Context) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := c.kept(s, k); ok {
		return Ticket[K, V]{v: v}, nil
	}
	c.count.misses.Add(1)
	f := s.flights[k]
	if f != nil {
		f.waiters++
		c.count.joined.Add(1)
		return Ticket[K, V]{c: c, k: k, flight: f}, nil
	}
	lctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f = &flight[V]{done: make(chan struct{}), cancel: cancel, waiters: 1, tag: tag}
	s.flights[k] = f
	c.count.loads.Add(1)
	return Ticket[K, V]{c: c, k: k, flight: f, starts: true}, lctx
}

// Loan is a load that its caller makes, for itself and for whoever joins.
type Loan[K comparable, V any] struct {
	c      *Cache[K, V]
	k      K
	flight *flight[V]
	asker  context.Context
	ctx    context.Context
	stop   func() bool // the watch over asker; nil when it never ends
	once   sync.Once
	left   bool // once is done
}

// Reserve is Begin for a caller that loads on its own goroutine. With a loan,
// the caller must load under the loan's context and call Fulfil, once;
// otherwise it waits for the ticket. Those who join find tag on theirs.
func (c *Cache[K, V]) Reserve(ctx context.Context, k K, tag any) (Ticket[K, V], *Loan[K, V]) {
	t, lctx := c.join(ctx, k, tag)
	if !t.starts {
		return t, nil
	}
	l := &Loan[K, V]{c: c, k: k, flight: t.flight, asker: ctx, ctx: lctx}
	if ctx.Done() != nil {
		l.stop = context.AfterFunc(ctx, func() { l.once.Do(l.leave) })
	}
	return t, l
}

// leave takes the borrower, who has gone, off those that wait.
func (l *Loan[K, V]) leave() {
	l.left = true
	if v, _, err := l.c.leave(l.asker, l.k, l.flight); err == nil {
		l.c.release(v)
	}
}

// Wanted says that somebody still waits for the value. It looks at once, where
// Context may end a moment late.
func (l *Loan[K, V]) Wanted() bool {
	if l.stop != nil && l.asker.Err() != nil {
		l.once.Do(l.leave)
	}
	return l.ctx.Err() == nil
}

// Context ends when nobody waits for the value any more.
func (l *Loan[K, V]) Context() context.Context { return loanContext[K, V]{l.ctx, l} }

// loanContext is a loan's context whose Err is never late.
type loanContext[K comparable, V any] struct {
	context.Context
	loan *Loan[K, V]
}

// Err implements context.Context.
func (c loanContext[K, V]) Err() error {
	c.loan.Wanted()
	return c.Context.Err()
}

// Fulfil takes over the loaded value, or the reason why there is none, and
// returns what Wait would have: the value with a reference of the caller's own.
func (l *Loan[K, V]) Fulfil(v V, err error) (V, error) {
	l.c.settle(l.k, l.flight, v, err)
	if l.stop != nil && !l.stop() {
		l.once.Do(l.leave)
	}
	if l.left {
		var none V
		return none, l.asker.Err()
	}
	return l.flight.v, l.flight.err
}

// Wait returns the value, or ctx's error when that ends first.
func (t Ticket[K, V]) Wait(ctx context.Context) (v V, hit bool, err error) {
	if t.flight == nil {
		return t.v, true, nil
	}
	select {
	case <-t.flight.done:
		return t.flight.v, false, t.flight.err
	case <-ctx.Done():
		return t.c.leave(ctx, t.k, t.flight)
	}
}

// leave takes one waiter off a flight. The count and the removal stand under
// one lock, so that nobody joins a flight that is being cancelled.
func (c *Cache[K, V]) leave(ctx context.Context, k K, f *flight[V]) (v V, hit bool, err error) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.finished { // it came in the same moment: this waiter owns its reference
		return f.v, false, f.err
	}
	if f.waiters--; f.waiters == 0 {
		if s.flights[k] == f {
			delete(s.flights, k)
		}
		c.count.cancelled.Add(1)
		f.cancel()
	}
	return v, false, ctx.Err()
}

// run loads and hands the value to the cache and to those who still wait.
func (c *Cache[K, V]) run(ctx context.Context, k K, f *flight[V], load func(context.Context) (V, error)) {
	v, err := guarded(ctx, load)
	c.settle(k, f, v, err)
}

// settle ends a flight.
func (c *Cache[K, V]) settle(k K, f *flight[V], v V, err error) {
	f.cancel()
	s := c.shard(k)
	s.mu.Lock()
	f.finished, f.v, f.err = true, v, err
	if s.flights[k] == f {
		delete(s.flights, k)
	}
	var replaced entry[V]
	if err != nil {
		c.count.errors.Add(1)
	} else {
		for range f.waiters {
			c.retain(v)
		}
		replaced = c.keep(s, k, v)
	}
	close(f.done)
	s.mu.Unlock()
	if replaced.size > 0 {
		c.release(replaced.v)
	}
	if err == nil {
		c.release(v) // the load's own reference
		c.shrink()
	}
}

// guarded turns a panic of load into an error: waiters must never hang.
func guarded[V any](ctx context.Context, load func(context.Context) (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while loading: %v", p)
		}
	}()
	return load(ctx)
}
