package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// leave sends many requests for tiles that must be decoded, all at once, and
// drops most of them a moment later. What is decoded for nobody may not be more
// than the decodes that were under way.
func leave(ctx context.Context, c *client, s settings) error {
	slides, err := c.slides(ctx, s.ids)
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(s.seed, 5))
	before, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	gone, drop := context.WithCancel(ctx)
	defer drop()
	var stay, left sync.WaitGroup
	var answered, failed atomic.Int64
	for i := range s.callers {
		sl := slides[i%len(slides)]
		path := fmt.Sprintf("/slides/%s/region?x=%d&y=%d&width=256&height=256&format=png", sl.id,
			rnd.Int64N(max(sl.width-256, 1)), rnd.Int64N(max(sl.height-256, 1)))
		use, group := ctx, &stay
		if i < s.leave {
			use, group = gone, &left
		}
		group.Go(func() {
			a, err := c.do(use, http.MethodGet, path, nil, false)
			switch {
			case err == nil && a.status == http.StatusOK:
				answered.Add(1)
			case use == ctx:
				failed.Add(1)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	drop()
	left.Wait() // their connections are closed
	dropped, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	stay.Wait()
	time.Sleep(500 * time.Millisecond)
	after, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	const name = "microtome_tiles_decodes_total"
	fmt.Printf("%d callers, %d left after 0.1 s; %d were answered, %d of those that stayed failed\n", s.callers, s.leave, answered.Load(), failed.Load())
	fmt.Printf("decodes: %.0f until then, %.0f after (those that stayed need at most %d)\n",
		dropped[name]-before[name], after[name]-dropped[name], 6*(s.callers-s.leave))
	if failed.Load() > 0 {
		return fmt.Errorf("%d of those that stayed failed", failed.Load())
	}
	return nil
}

// same asks for one cold picture from many connections at once: it is to be
// decoded once.
func same(ctx context.Context, c *client, s settings) error {
	slides, err := c.slides(ctx, s.ids)
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(s.seed, uint64(time.Now().UnixNano()))) // cold in each run
	sl := slides[0]
	path := fmt.Sprintf("/slides/%s/region?x=%d&y=%d&width=256&height=256&format=png", sl.id, rnd.Int64N(max(sl.width-256, 1)), rnd.Int64N(max(sl.height-256, 1)))
	before, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var answered atomic.Int64
	for range s.callers {
		all.Go(func() {
			if a, err := c.do(ctx, http.MethodGet, path, nil, false); err == nil && a.status == http.StatusOK {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	after, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	encodes := after["microtome_tiles_encodes_total"] - before["microtome_tiles_encodes_total"]
	decodes := after["microtome_tiles_decodes_total"] - before["microtome_tiles_decodes_total"]
	fmt.Printf("%d callers for one picture: %d answered, %.0f pictures made of %.0f tiles\n", s.callers, answered.Load(), encodes, decodes)
	if encodes != 1 || answered.Load() != int64(s.callers) {
		return fmt.Errorf("%d answered, %.0f pictures made", answered.Load(), encodes)
	}
	return nil
}
