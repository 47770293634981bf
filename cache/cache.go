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
	clock  atomic.Uint64 // counts uses
	shards [shards]shard[K, V]
	count  counters
}

type counters struct{ hits, misses, joined, loads, errors, cancelled, evicted, refused atomic.Int64 }

type entry[V any] struct {
	v    V
	size int64
	used uint64 // by the cache's clock, under the shard's lock
}

type shard[K comparable, V any] struct {
	mu      sync.Mutex
	lru     *simplelru.LRU[K, *entry[V]]
	flights map[K]*flight[V]
}

// New makes an empty cache.
func New[K comparable, V any](o Options[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{o: o}
	for i := range c.shards {
		// The entries are bounded in bytes, by us.
		lru, err := simplelru.NewLRU[K, *entry[V]](math.MaxInt, nil)
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
	e.used = c.clock.Add(1)
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

// keep puts v under k and returns what it took the place of, if anything. The
// shard is locked.
func (c *Cache[K, V]) keep(s *shard[K, V], k K, v V) (replaced entry[V]) {
	size := c.o.Size(v)
	if size > c.Largest() {
		c.count.refused.Add(1)
		return replaced
	}
	if old, ok := s.lru.Peek(k); ok { // Add on an existing key would lose it
		s.lru.Remove(k)
		c.bytes.Add(-old.size)
		replaced = *old
	}
	c.retain(v)
	s.lru.Add(k, &entry[V]{v: v, size: size, used: c.clock.Add(1)})
	c.bytes.Add(size)
	return replaced
}

// shrink gives values up until the budget holds: the least recently used of all
// shards, so that a cache of few large values is no worse for being in shards.
func (c *Cache[K, V]) shrink() {
	for c.bytes.Load() > c.o.MaxBytes && c.Evict() {
	}
}

// Evict gives up the least recently used value, false when there is none.
func (c *Cache[K, V]) Evict() bool {
	var oldest *shard[K, V]
	first := uint64(math.MaxUint64)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if _, e, ok := s.lru.GetOldest(); ok && e.used < first {
			oldest, first = s, e.used
		}
		s.mu.Unlock()
	}
	return oldest != nil && c.evict(oldest)
}

// evict gives up the least recently used value of a shard, false when there is
// none. The release is made outside the lock.
func (c *Cache[K, V]) evict(s *shard[K, V]) bool {
	s.mu.Lock()
	_, e, ok := s.lru.RemoveOldest()
	s.mu.Unlock()
	if !ok {
		return false
	}
	c.bytes.Add(-e.size)
	c.count.evicted.Add(1)
	c.release(e.v)
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
