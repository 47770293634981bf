//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"
	"sync"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// What an engine is examined by: batches whose tiles, order and lane the caller
// decides.

// Once decodes tiles by one call of the vendor's decoder, on a lane, and waits for
// all of them. Those of a call that the decoder refused are decoded by the CPU, as
// DevicePixels.ByCPU says. A tile that no device can have is an error, and nothing
// is decoded then.
func (e *Engine) Once(ctx context.Context, lane int, jobs []microtome.Job) ([]microtome.Result, error) {
	s := e.session.Load()
	switch {
	case s == nil:
		return nil, microtome.ErrDeviceLost
	case lane < 0 || lane >= e.o.Lanes || len(jobs) == 0 || len(jobs) > e.o.Batch:
		return nil, fmt.Errorf("%d tiles on lane %d: %w", len(jobs), lane, microtome.ErrMalformed)
	}
	out := make([]microtome.Result, len(jobs))
	var (
		wait sync.WaitGroup
		live []*loading
	)
	for i := range jobs {
		l, err := e.place(ctx, s, &jobs[i])
		if err != nil {
			for _, l := range live {
				e.lose(l, err)
			}
			return nil, fmt.Errorf("tile %d of %d: %w", i+1, len(jobs), err)
		}
		wait.Add(1)
		l.then = func(r microtome.Result) {
			out[i] = r
			wait.Done()
		}
		live = append(live, l)
	}
	e.decodeBatch(s, lane, live, new(wire.Batch))
	wait.Wait()
	return out, nil
}

// place gives a tile its slot and puts its stream into the ring.
func (e *Engine) place(ctx context.Context, s *session, j *microtome.Job) (*loading, error) {
	var stream canon.Stream
	t := &j.Tile
	if err := e.eligible(t, &stream); err != nil {
		return nil, err
	}
	at, err := e.room(ctx, s, int64(stream.Width)*int64(stream.Height)*int64(channelsOf(t.Color)))
	if err != nil {
		return nil, err
	}
	l := &loading{s: s, ctx: ctx, job: j, px: newPixels(s, at, t), css: stream.Sampling, color: colorOf(t.Color)}
	if err := l.place(&stream); err != nil {
		l.px.Release()
		return nil, err
	}
	return l, nil
}

// Limits says which tiles the device decodes.
func (e *Engine) Limits() Limits { return limits(e.exact) }

// WorkerPID is the process that owns the device now, 0 when there is none or it is
// this one.
func (e *Engine) WorkerPID() int {
	s := e.session.Load()
	if s == nil {
		return 0
	}
	if c, ok := s.run.(*child); ok {
		return c.cmd.Process.Pid
	}
	return 0
}
