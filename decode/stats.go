package decode

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// maxReasons bounds DecodeStats.Unsupported: a file can name as many reasons as it
// has tiles.
const maxReasons = 64

type counters struct {
	full, partial, reduced      atomic.Int64
	encoded, cropped            atomic.Int64
	corrupt, limit, busy, drops atomic.Int64

	mu          sync.Mutex
	unsupported map[string]int64
}

// fail counts an error by its kind and returns it.
func (c *counters) fail(err error) error {
	var u *microtome.Unsupported
	switch {
	case errors.As(err, &u):
		c.reason(fmt.Sprintf("%s %s", u.Tag, u.Value))
	case errors.Is(err, microtome.ErrCorrupt):
		c.corrupt.Add(1)
	case errors.Is(err, microtome.ErrLimit):
		c.limit.Add(1)
	case errors.Is(err, microtome.ErrBusy):
		c.busy.Add(1)
	}
	return err
}

func (c *counters) reason(r string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsupported == nil {
		c.unsupported = map[string]int64{}
	}
	if _, known := c.unsupported[r]; !known && len(c.unsupported) >= maxReasons {
		r = "other"
	}
	c.unsupported[r]++
}

// Stats returns the counters.
func (d *CPU) Stats() microtome.DecodeStats {
	c := &d.counters
	free, waiting := d.gate.idle()
	c.mu.Lock()
	defer c.mu.Unlock()
	return microtome.DecodeStats{
		Full: c.full.Load(), Partial: c.partial.Load(), Reduced: c.reduced.Load(),
		Encoded: c.encoded.Load(), Cropped: c.cropped.Load(),
		Corrupt: c.corrupt.Load(), Limited: c.limit.Load(), Busy: c.busy.Load(), Dropped: c.drops.Load(),
		Running: d.workers - free, Waiting: waiting,
		Unsupported: maps.Clone(c.unsupported),
	}
}
