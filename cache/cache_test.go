package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ref is a counted value.
type ref struct {
	n    int64
	refs atomic.Int64
}

func newRef(n int64) *ref {
	r := &ref{n: n}
	r.refs.Store(1)
	return r
}

func (r *ref) retain() {
	if r.refs.Add(1) <= 1 {
		panic("retained after the last release")
	}
}

func (r *ref) release() {
	if r.refs.Add(-1) < 0 {
		panic("released twice")
	}
}

func newRefs(max int64) *Cache[int, *ref] {
	return New(Options[int, *ref]{
		MaxBytes: max, Hash: func(k int) uint64 { return uint64(k) }, Size: func(r *ref) int64 { return r.n },
		Retain: (*ref).retain, Release: (*ref).release,
	})
}

// Trap H11: a hundred waiters, one load, and each has a reference of its own.
func TestH11OneLoadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRefs(100)
		var loads atomic.Int64
		v := newRef(1)
		for range 100 {
			go func() {
				got, _, err := c.Get(t.Context(), 7, func(context.Context) (*ref, error) {
					loads.Add(1)
					time.Sleep(time.Second)
					return v, nil
				})
				if err != nil || got != v {
					t.Errorf("%v, %v", got, err)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if loads.Load() != 1 || v.refs.Load() != 101 {
			t.Errorf("%d loads, %d references, want 1 and 101", loads.Load(), v.refs.Load())
		}
		if st := c.Stats(); st.Loads != 1 || st.Joined != 99 || st.Items != 1 || st.Bytes != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// The first asker leaves; the load goes on for the second, under a context that
// is alive.
func TestFirstWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRefs(100)
		first, leave := context.WithCancel(t.Context())
		load := func(ctx context.Context) (*ref, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
				return newRef(1), nil
			}
		}
		go func() {
			if _, _, err := c.Get(first, 1, load); !errors.Is(err, context.Canceled) {
				t.Errorf("first: %v", err)
			}
		}()
		synctest.Wait()
		go func() {
			if v, _, err := c.Get(t.Context(), 1, load); err != nil || v.n != 1 {
				t.Errorf("second: %v", err)
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if st := c.Stats(); st.Loads != 1 || st.Cancelled != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// All leave: the load is cancelled, and who comes later starts a new one, even
// while the old is still unwinding.
func TestLateJoinerGetsItsOwnLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRefs(100)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			_, _, _ = c.Get(ctx, 1, func(ctx context.Context) (*ref, error) {
				<-ctx.Done()
				time.Sleep(time.Hour) // slow to notice
				return nil, ctx.Err()
			})
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		v, hit, err := c.Get(t.Context(), 1, func(context.Context) (*ref, error) { return newRef(5), nil })
		if err != nil || hit || v.n != 5 {
			t.Fatalf("late joiner: %v, %v", hit, err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if v, ok := c.Lookup(1); !ok || v.n != 5 {
			t.Error("the cancelled load took the value with it")
		}
		if st := c.Stats(); st.Cancelled != 1 || st.Loads != 2 {
			t.Errorf("%+v", st)
		}
	})
}

func TestErrorsAndPanicsAreNotKept(t *testing.T) {
	c := newRefs(100)
	broken := errors.New("broken")
	if _, _, err := c.Get(t.Context(), 1, func(context.Context) (*ref, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, _, err := c.Get(t.Context(), 1, func(context.Context) (*ref, error) { panic("boom") }); err == nil {
		t.Error("a panic was swallowed")
	}
	if v, hit, err := c.Get(t.Context(), 1, func(context.Context) (*ref, error) { return newRef(1), nil }); err != nil || hit || v.n != 1 {
		t.Errorf("after failures: %v, %v", hit, err)
	}
	if st := c.Stats(); st.Errors != 2 {
		t.Errorf("%+v", st)
	}
}

func TestBudget(t *testing.T) {
	c := newRefs(1000)
	var all []*ref
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range 2000 {
		v := newRef(1 + rng.Int64N(240))
		all = append(all, v)
		got, _, err := c.Get(t.Context(), k, func(context.Context) (*ref, error) { return v, nil })
		if err != nil {
			t.Fatal(err)
		}
		got.release()
	}
	// The last load gives up what is over the budget after it has answered.
	held := func() (bytes int64) {
		for _, v := range all {
			if n := v.refs.Load(); n == 1 {
				bytes += v.n
			} else if n != 0 {
				return -1
			}
		}
		return bytes
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if st := c.Stats(); st.Bytes <= 1000 && held() == st.Bytes {
			break
		}
		time.Sleep(time.Millisecond)
	}
	st := c.Stats()
	if st.Bytes > 1000 || st.Bytes < 500 || held() != st.Bytes || st.Evicted != 2000-st.Items {
		t.Errorf("held %d, %+v", held(), st)
	}
	c.Purge()
	if st := c.Stats(); st.Bytes != 0 || st.Items != 0 || held() != 0 {
		t.Errorf("purged: held %d, %+v", held(), st)
	}
}

// Too large to keep, but answered; and a budget of 0 keeps nothing.
func TestRefused(t *testing.T) {
	for _, c := range []*Cache[int, *ref]{newRefs(100), newRefs(0)} {
		v, _, err := c.Get(t.Context(), 1, func(context.Context) (*ref, error) { return newRef(26), nil })
		if err != nil || v.n != 26 {
			t.Fatal(err)
		}
		if _, ok := c.Lookup(1); ok {
			t.Error("kept")
		}
		if st := c.Stats(); st.Refused != 1 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// What was used last stays.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	c := newRefs(160)
	put := func(k int) {
		v, _, _ := c.Get(t.Context(), k, func(context.Context) (*ref, error) { return newRef(40), nil })
		v.release()
	}
	for k := range 4 { // multiples of 16 share a shard
		put(16 * k)
	}
	v, _ := c.Lookup(0)
	v.release()
	put(16 * 4)
	for k, want := range map[int]bool{0: true, 16: false, 32: true, 48: true, 64: true} {
		if v, ok := c.Lookup(k); ok != want {
			t.Errorf("%d: kept %v", k, ok)
		} else if ok {
			v.release()
		}
	}
}

// Many at once over few keys, leaving at random: every reference is given back.
func TestReferencesUnderLoad(t *testing.T) {
	c := newRefs(50)
	var mu sync.Mutex
	var all []*ref
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 9))
			for range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(3) == 0 {
					cancel()
				}
				v, _, err := c.Get(ctx, rng.IntN(40), func(context.Context) (*ref, error) {
					if rand.IntN(10) == 0 {
						return nil, fmt.Errorf("no")
					}
					v := newRef(1 + rand.Int64N(10))
					mu.Lock()
					all = append(all, v)
					mu.Unlock()
					return v, nil
				})
				if err == nil {
					v.release()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	left := func() (n int64) {
		c.Purge()
		mu.Lock()
		defer mu.Unlock()
		for _, v := range all {
			n += v.refs.Load()
		}
		return n
	}
	for end := time.Now().Add(5 * time.Second); left() != 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := left(); n != 0 {
		t.Errorf("%d references are lost", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	seed := maphash.MakeSeed()
	c := New(Options[string, []byte]{MaxBytes: 1 << 20, Size: func(v []byte) int64 { return int64(len(v)) },
		Hash: func(k string) uint64 { return maphash.String(seed, k) }})
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
		_, _, _ = c.Get(b.Context(), keys[i], func(context.Context) ([]byte, error) { return make([]byte, 100), nil })
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, ok := c.Lookup(keys[i%len(keys)]); !ok {
				b.Error("missing")
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	c := newRefs(1000)
	b.ReportAllocs()
	for k := 0; b.Loop(); k++ {
		v, _, _ := c.Get(b.Context(), k, func(context.Context) (*ref, error) { return newRef(10), nil })
		v.release()
	}
}
