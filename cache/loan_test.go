package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestLoanGoesToAllWhoJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRefs(100)
		_, loan := c.Reserve(t.Context(), 1, "tag")
		if loan == nil {
			t.Fatal("nothing to load")
		}
		v := newRef(1)
		for range 3 {
			go func() {
				ticket, other := c.Reserve(t.Context(), 1, "tag")
				if ticket.Tag() != "tag" {
					t.Errorf("tag %v", ticket.Tag())
				}
				if other != nil {
					t.Error("a second loan of one key")
					return
				}
				got, hit, err := ticket.Wait(t.Context())
				if got != v || hit || err != nil {
					t.Error(got, hit, err)
					return
				}
				got.release()
			}()
		}
		synctest.Wait()
		got, err := loan.Fulfil(v, nil)
		if got != v || err != nil {
			t.Fatal(got, err)
		}
		got.release()
		synctest.Wait()
		if n := v.refs.Load(); n != 1 {
			t.Errorf("%d references, want the cache's", n)
		}
		if _, loan := c.Reserve(t.Context(), 1, "tag"); loan != nil {
			t.Error("lent what is kept")
		} else {
			v.release()
		}
	})
}

// The borrower leaves, a joiner stays: the load goes on for the joiner.
func TestBorrowerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, joins := range []bool{true, false} {
			c := newRefs(100)
			ctx, cancel := context.WithCancel(t.Context())
			_, loan := c.Reserve(ctx, 1, "tag")
			var joined Ticket[int, *ref]
			if joins {
				joined, _ = c.Reserve(t.Context(), 1, "tag")
			}
			if !loan.Wanted() {
				t.Error("not wanted before anybody left")
			}
			cancel()
			if loan.Wanted() != joins {
				t.Errorf("joined %v: wanted %v", joins, !joins)
			}
			synctest.Wait()
			if over := loan.Context().Err() != nil; over == joins {
				t.Errorf("joined %v: the load's context is over: %v", joins, over)
			}
			v := newRef(1)
			if _, err := loan.Fulfil(v, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("the borrower that left got %v", err)
			}
			if joins {
				got, _, err := joined.Wait(t.Context())
				if got != v || err != nil {
					t.Fatal(got, err)
				}
				got.release()
			}
			if n := v.refs.Load(); n != 1 {
				t.Errorf("joined %v: %d references, want the cache's", joins, n)
			}
		}
	})
}

func TestLoanFails(t *testing.T) {
	c := newRefs(100)
	_, loan := c.Reserve(t.Context(), 1, "tag")
	bad := errors.New("bad")
	if _, err := loan.Fulfil(nil, bad); !errors.Is(err, bad) {
		t.Error(err)
	}
	if _, loan = c.Reserve(t.Context(), 1, "tag"); loan == nil {
		t.Error("a failure was kept")
	} else {
		_, _ = loan.Fulfil(nil, bad)
	}
}
