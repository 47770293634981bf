// Package cache keeps values under a budget in bytes and loads each missing
// key once, however many ask for it.
//
// A miss takes the key's place in flight; whoever asks meanwhile waits for the
// same load. Each waiter may leave on its own; when the last has left, the
// load is cancelled and the key is free again. Nothing is ever invalidated:
// keys name the generation of what they stand for.
package cache

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const shards = 16

// Options describe a cache. Hash and Size are needed.
type Options[K comparable, V any] struct {
	// MaxBytes is the budget. Values above a quarter of it are answered, but
	// not kept; 0 keeps nothing (keys are still loaded once at a time).
	MaxBytes int64
	Hash     func(K) uint64
	// Size is what a value costs in bytes.
	Size func(V) int64
	// Retain and Release, when set, count the references of values: the cache
	// owns one while it keeps a value, and each getter gets one of its own.
	Retain, Release func(V)
}

// Cache is a least-recently-used cache. Its methods may be called at once.
type Cache[K comparable, V any] struct {
	o      Options[K, V]
	bytes  atomic.Int64
	shards [shards]shard[K, V]
	count  counters
}

type counters struct{ hits, misses, joined, loads, errors, cancelled, evicted, refused atomic.Int64 }

type entry[V any] struct {
	v    V
	size int64
}

type shard[K comparable, V any] struct {
	mu      sync.Mutex
	lru     *simplelru.LRU[K, entry[V]]
	flights map[K]*flight[V]
}

// flight is one load. All fields but done and cancel are under the shard's lock.
type flight[V any] struct {
	done     chan struct{} // closed when v, err are set
	cancel   context.CancelFunc
	waiters  int
	finished bool
	v        V
	err      error
}

// New makes an empty cache.
func New[K comparable, V any](o Options[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{o: o}
	for i := range c.shards {
		// The entries are bounded in bytes, by us.
		lru, err := simplelru.NewLRU[K, entry[V]](math.MaxInt, nil)
		if err != nil {
			panic(err) // only for a size below 1
		}
		c.shards[i].lru = lru
		c.shards[i].flights = map[K]*flight[V]{}
	}
	return c
}

// Largest is the size in bytes above which no value is kept.
func (c *Cache[K, V]) Largest() int64 { return c.o.MaxBytes / 4 }

func (c *Cache[K, V]) shard(k K) *shard[K, V] { return &c.shards[c.o.Hash(k)%shards] }

// Lookup returns the value when it is kept. It never waits and allocates
// nothing.
func (c *Cache[K, V]) Lookup(k K) (v V, ok bool) {
	s := c.shard(k)
	s.mu.Lock()
	v, ok = c.kept(s, k)
	s.mu.Unlock()
	return v, ok
}

// kept returns k's value, retained. The shard is locked.
func (c *Cache[K, V]) kept(s *shard[K, V], k K) (v V, ok bool) {
	e, ok := s.lru.Get(k)
	if !ok {
		return v, false
	}
	c.count.hits.Add(1)
	c.retain(e.v)
	return e.v, true
}

// Get returns the value of k, loading it when it is missing. hit says that it
// was kept. load runs in a goroutine of its own under a context that has the
// values of the first asker's and ends when the last waiter has left; its error
// goes to all who wait and is not remembered. Get ends early with ctx's error.
func (c *Cache[K, V]) Get(ctx context.Context, k K, load func(context.Context) (V, error)) (v V, hit bool, err error) {
	return c.Begin(ctx, k, load).Wait(ctx)
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

// Begin is the first half of Get: it starts or joins the load and does not
// wait. Many can be begun before the first is waited for.
func (c *Cache[K, V]) Begin(ctx context.Context, k K, load func(context.Context) (V, error)) Ticket[K, V] {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := c.kept(s, k); ok {
		return Ticket[K, V]{v: v}
	}
	c.count.misses.Add(1)
	f := s.flights[k]
	if f != nil {
		f.waiters++
		c.count.joined.Add(1)
		return Ticket[K, V]{c: c, k: k, flight: f}
	}
	lctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f = &flight[V]{done: make(chan struct{}), cancel: cancel, waiters: 1}
	s.flights[k] = f
	c.count.loads.Add(1)
	go c.run(lctx, k, f, load)
	return Ticket[K, V]{c: c, k: k, flight: f, starts: true}
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
	f.cancel()
	s := c.shard(k)
	s.mu.Lock()
	f.finished, f.v, f.err = true, v, err
	if s.flights[k] == f {
		delete(s.flights, k)
	}
	var out []V
	if err != nil {
		c.count.errors.Add(1)
	} else {
		for range f.waiters {
			c.retain(v)
		}
		out = c.keep(s, k, v)
	}
	close(f.done)
	s.mu.Unlock()
	for _, old := range out {
		c.release(old)
	}
	if err == nil {
		c.release(v) // the load's own reference
		c.shrink(s)
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

// keep puts v under k and returns what left the shard for it. The shard is
// locked.
func (c *Cache[K, V]) keep(s *shard[K, V], k K, v V) (out []V) {
	size := c.o.Size(v)
	if size > c.Largest() {
		c.count.refused.Add(1)
		return nil
	}
	if old, ok := s.lru.Peek(k); ok { // Add on an existing key would lose it
		s.lru.Remove(k)
		c.bytes.Add(-old.size)
		out = append(out, old.v)
	}
	c.retain(v)
	s.lru.Add(k, entry[V]{v, size})
	c.bytes.Add(size)
	for c.bytes.Load() > c.o.MaxBytes && s.lru.Len() > 1 {
		out = append(out, c.oldest(s))
	}
	return out
}

// oldest takes the least recently used value out of a locked, filled shard.
func (c *Cache[K, V]) oldest(s *shard[K, V]) V {
	_, e, _ := s.lru.RemoveOldest()
	c.bytes.Add(-e.size)
	c.count.evicted.Add(1)
	return e.v
}

// shrink evicts from the other shards when one value alone filled its own.
func (c *Cache[K, V]) shrink(own *shard[K, V]) {
	for i := range c.shards {
		s := &c.shards[i]
		if s == own {
			continue
		}
		for c.bytes.Load() > c.o.MaxBytes && c.evict(s) {
		}
	}
}

// evict gives up the least recently used value of a shard, false when there is
// none. The release is made outside the lock.
func (c *Cache[K, V]) evict(s *shard[K, V]) bool {
	s.mu.Lock()
	if s.lru.Len() == 0 {
		s.mu.Unlock()
		return false
	}
	v := c.oldest(s)
	s.mu.Unlock()
	c.release(v)
	return true
}

// Purge drops all that is kept.
func (c *Cache[K, V]) Purge() {
	for i := range c.shards {
		for c.evict(&c.shards[i]) {
		}
	}
}

func (c *Cache[K, V]) retain(v V) {
	if c.o.Retain != nil {
		c.o.Retain(v)
	}
}

func (c *Cache[K, V]) release(v V) {
	if c.o.Release != nil {
		c.o.Release(v)
	}
}

// Stats are counts since the start, and what is held now.
type Stats struct {
	Bytes, MaxBytes, Items int64
	// Hits were kept; Misses were not, Joined of them waited for another's load.
	Hits, Misses, Joined int64
	// Loads were begun; Errors of them failed and Cancelled were left by all.
	Loads, Errors, Cancelled int64
	// Evicted values were given up for others; Refused ones were too large.
	Evicted, Refused int64
}

// Stats reads the counts. They are not of one instant.
func (c *Cache[K, V]) Stats() Stats {
	n := &c.count
	st := Stats{
		Bytes: c.bytes.Load(), MaxBytes: c.o.MaxBytes,
		Hits: n.hits.Load(), Misses: n.misses.Load(), Joined: n.joined.Load(),
		Loads: n.loads.Load(), Errors: n.errors.Load(), Cancelled: n.cancelled.Load(),
		Evicted: n.evicted.Load(), Refused: n.refused.Load(),
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		st.Items += int64(s.lru.Len())
		s.mu.Unlock()
	}
	return st
}
