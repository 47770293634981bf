//go:build cgo && linux

package gpu

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// Bare measures the limit: the vendor's decoder in a C loop, on as many lanes, over
// the same tiles, with nothing done before or after. It returns tiles a second.
func Bare(o Options, tiles []microtome.Tile, span time.Duration) (float64, error) {
	o.fill()
	o.Worker = nil
	e := &Engine{o: o, name: "bare", queue: newQueue(o)}
	s, err := newSession(e)
	if err != nil {
		return 0, err
	}
	defer s.end(errClosed) // and the device with it
	l, ok := s.run.(*local)
	if !ok || len(tiles) == 0 {
		return 0, fmt.Errorf("nothing to decode")
	}
	var all sync.WaitGroup
	var decoded atomic.Int64
	var failed atomic.Int64
	messages := make([]int64, o.Lanes)
	for i := range messages {
		if messages[i], err = s.bareMessage(&o, tiles, i*o.Batch); err != nil {
			return 0, err
		}
		l.d.Bare(i, uint64(messages[i]), 0.1) // the first calls make what they need
	}
	start := time.Now()
	for i, at := range messages {
		all.Go(func() {
			n, rc := l.d.Bare(i, uint64(at), span.Seconds())
			decoded.Add(n)
			if rc != wire.OK {
				failed.Store(int64(rc))
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	if rc := failed.Load(); rc != 0 {
		return 0, fmt.Errorf("the decoder failed: result %d", rc)
	}
	return float64(decoded.Load()) / took.Seconds(), nil
}

// bareMessage lays a batch of tiles into the ring.
func (s *session) bareMessage(o *Options, tiles []microtome.Tile, from int) (int64, error) {
	var b wire.Batch
	for i := range o.Batch {
		t := &tiles[(from+i)%len(tiles)]
		var c canon.Stream
		if err := canon.Parse(t, &c); err != nil {
			return 0, err
		}
		n := c.Size()
		at, ok := s.rings.get(int64(n))
		if !ok {
			return 0, errNoRing
		}
		c.Append(s.ring[at : at : int(at)+n])
		b.Tiles = append(b.Tiles, wire.Tile{Src: uint64(at), SrcLen: uint32(n - canon.Slack), W: uint16(c.Width), H: uint16(c.Height),
			CSS: uint8(c.Sampling), Channels: uint8(channelsOf(t.Color))})
	}
	at, ok := s.rings.get(int64(b.Size()))
	if !ok {
		return 0, errNoRing
	}
	b.Write(s.ring[at:])
	return at, nil
}
