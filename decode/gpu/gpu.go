//go:build cgo && linux

// Package gpu decodes tiles on a GPU: canonical streams go in, components come
// out of the vendor's decoder, and kernels of our own turn them into the pixels
// that libjpeg-turbo makes, in device memory.
//
// The way of a tile:
//
//	Load        canon.Parse and the walk find what hardware can't have
//	queue       tiles of all callers gather; lanes take them in batches
//	lane        writes a message into the ring; the worker executes it
//	pixels      the tile's slot in the arena, counted by references
//	Make        a message that lays slots together, and may copy the result back
//
// What hardware can't have is decoded by the CPU and copied to the device. The
// worker is a child process, whose death costs its session: the arena and the
// batches in flight.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// Options say which device is used, and how. CPU is needed; zero values of the
// rest are good ones.
type Options struct {
	Vendor    string // "nvidia"
	Index     int
	Libraries string // folder of the vendor's libraries; "": the system's
	// CPU decodes what the device does not.
	CPU microtome.Decoder
	// Worker is the command of the child process (see Work); nil runs the engine
	// in this process.
	Worker []string
	// Env is added to the child's.
	Env []string
	// Lanes decode at once, up to Batch tiles a call.
	Lanes, Batch int
	Arena, Ring  int64 // bytes
	// Wait bounds how long a tile waits for others to be decoded with, while the
	// device is at work.
	Wait time.Duration
	// Beside lets callers' cores decode when so many batches a lane wait already,
	// beside those that lanes have; negative: never.
	Beside int
	// Unchecked leaves out the walk over every stream.
	Unchecked bool
	// Sample has one in so many tiles decoded on the CPU too, and compared;
	// negative: none.
	Sample int
	// Timeout is how long a message may take before the worker is given up, Start
	// how long the worker may take until it is ready.
	Timeout, Start time.Duration
	// Quiet leaves out what the worker writes to standard error.
	Quiet bool
	// Spin is how many microseconds the two sides look for each other's answer
	// before they sleep.
	Spin int
	// Blocking has the worker's threads sleep while they wait for the device.
	Blocking bool
}

func (o *Options) fill() {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&o.Lanes, defaultLanes)
	set(&o.Batch, defaultBatch)
	set(&o.Beside, 1)
	set(&o.Sample, 1000)
	set(&o.Spin, 50)
	if o.Arena <= 0 {
		o.Arena = 4 << 30
	}
	if o.Ring <= 0 {
		o.Ring = defaultRing
	}
	if o.Wait <= 0 {
		o.Wait = time.Millisecond
	}
	if o.Timeout <= 0 {
		o.Timeout = 4 * time.Second
	}
	if o.Start <= 0 {
		o.Start = startTimeout
	}
}

// startTimeout is long: a driver that was idle may take tens of seconds.
const startTimeout = 60 * time.Second

const (
	// copyLanes only lay tiles together and copy.
	copyLanes = 2
	// lanesAhead is how many batches a lane is given before it has answered.
	lanesAhead = 2
)

// Engine is one device. It implements microtome.Device.
type Engine struct {
	o     Options
	name  string
	info  native.Info
	kinds [5]bool // samplings that the device decodes exactly
	count counters
	queue *queue

	mu      sync.Mutex
	session atomic.Pointer[session] // nil while there is none
	strikes []time.Time
	off     error
	closed  bool
	evict   func() bool
	lost    func()
	all     sync.WaitGroup
}

var _ microtome.Device = (*Engine)(nil)

type counters struct {
	decoded, beside, corrupt, batches, made, checked, starts, deaths atomic.Int64
	nanos                                                            [wire.Stages]atomic.Int64
	refusal                                                          atomic.Int32 // what the decoder said last of a batch that it refused

	mu         sync.Mutex
	ineligible map[string]int64
}

func (c *counters) reason(r string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ineligible == nil {
		c.ineligible = map[string]int64{}
	}
	c.ineligible[r]++
}

// Open starts the engine and holds it against libjpeg-turbo on embedded tiles. A
// device that can't be used, or differs, is an error that says why.
func Open(o Options) (*Engine, error) {
	o.fill()
	if o.CPU == nil {
		return nil, errors.New("gpu: a CPU decoder is needed")
	}
	e := &Engine{o: o, name: fmt.Sprintf("%s:%d", o.Vendor, o.Index), queue: newQueue(o)}
	for i := range e.kinds {
		e.kinds[i] = true
	}
	s, err := e.start()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	e.info = s.info
	e.session.Store(s)
	if err := e.prove(); err != nil {
		err = &proofError{err}
		if s.over() {
			err = fmt.Errorf("%w: %w", err, s.err)
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", e.name, err), e.Close())
	}
	return e, nil
}

// Name implements microtome.Device.
func (e *Engine) Name() string { return e.name }

// Info describes the device.
func (e *Engine) Info() Info { return e.info }

// Ready implements microtome.Device.
func (e *Engine) Ready() bool { return e.session.Load() != nil }

// Memory implements microtome.Device.
func (e *Engine) Memory() int64 { return tileBytes(e.o.Arena) }

// Watch implements microtome.Device.
func (e *Engine) Watch(evict func() bool, lost func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evict, e.lost = evict, lost
}

// A worker that died so often within the span stays off.
const (
	maxStrikes = 3
	strikeSpan = time.Hour
)

// fail ends a session: everything in its arena is lost. The worker is started
// again unless it has died too often.
func (e *Engine) fail(s *session, why error) {
	if !s.end(why) {
		return
	}
	e.count.deaths.Add(1)
	e.mu.Lock()
	e.session.CompareAndSwap(s, nil)
	lost := e.lost
	now := time.Now()
	e.strikes = append(e.strikes, now)
	for len(e.strikes) > 0 && now.Sub(e.strikes[0]) > strikeSpan {
		e.strikes = e.strikes[1:]
	}
	again := !e.closed && e.off == nil
	if again && len(e.strikes) >= maxStrikes {
		e.off = fmt.Errorf("the worker died %d times within an hour, last: %w", len(e.strikes), why)
		again = false
	}
	if again {
		e.all.Go(e.restart)
	}
	e.mu.Unlock()
	if lost != nil {
		lost()
	}
}

// restart starts another session.
func (e *Engine) restart() {
	s, err := e.start()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		e.off = err
	case e.closed || e.off != nil:
		e.all.Go(func() { s.end(errClosed) })
	default:
		e.session.Store(s)
	}
}

var errClosed = errors.New("the engine is closed")

// Reset turns an engine that was off on again.
func (e *Engine) Reset() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.strikes = nil
	if e.off != nil {
		e.off = nil
		e.all.Go(e.restart)
	}
	return nil
}

// turnOff ends the engine for good: its pixels can't be trusted.
func (e *Engine) turnOff(why error) {
	e.mu.Lock()
	if e.off == nil {
		e.off = why
	}
	e.mu.Unlock()
	if s := e.session.Load(); s != nil {
		e.fail(s, why)
	}
}

// Close implements microtome.Device.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.queue.close()
	s := e.session.Swap(nil)
	var leaked error
	if s != nil {
		leaked = s.leaks()
		s.end(errClosed)
	}
	e.all.Wait()
	return leaked
}

// start makes a session and its lanes.
func (e *Engine) start() (*session, error) {
	s, err := newSession(e)
	if err != nil {
		return nil, err
	}
	e.count.starts.Add(1)
	for i := range e.o.Lanes {
		// While a lane decodes one batch the next lies before it.
		for range lanesAhead {
			e.all.Go(func() { e.decodeLane(s, i) })
		}
	}
	for range copyLanes {
		e.all.Go(func() { e.stageLane(s) })
	}
	return s, nil
}

// Stats implements microtome.Device.
func (e *Engine) Stats() microtome.DeviceStats {
	c := &e.count
	st := microtome.DeviceStats{
		Name: e.name, Decoder: e.info.Decoder, State: "ready", ArenaBytes: e.o.Arena, Waiting: e.queue.len(),
		Decoded: c.decoded.Load(), Beside: c.beside.Load(), Corrupt: c.corrupt.Load(), Batches: c.batches.Load(),
		Made: c.made.Load(), Checked: c.checked.Load(), Starts: c.starts.Load(), Strikes: c.deaths.Load(),
		Nanos: map[string]int64{}, Ineligible: map[string]int64{},
	}
	for i, name := range wire.StageNames {
		if name != "" {
			st.Nanos[name] = c.nanos[i].Load()
		}
	}
	c.mu.Lock()
	for k, v := range c.ineligible {
		st.Ineligible[k] = v
	}
	c.mu.Unlock()
	if s := e.session.Load(); s != nil {
		st.UsedBytes, st.Slots = s.inUse()
		return st
	}
	st.State = "starting"
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.off != nil {
		st.State, st.Why = "off", e.off.Error()
	}
	return st
}

// room takes n bytes of the arena for a tile: it asks for pixels to be given up,
// and then waits for work in flight to end.
func (e *Engine) room(ctx context.Context, s *session, n int64) (int64, error) {
	e.mu.Lock()
	evict := e.evict
	e.mu.Unlock()
	return e.take(ctx, s, s.arena, n, evict)
}

// arrayRoom takes n bytes for what is made; it waits until others are given back.
func (e *Engine) arrayRoom(ctx context.Context, s *session, n int64) (int64, error) {
	return e.take(ctx, s, s.arrays, n, nil)
}

func (e *Engine) take(ctx context.Context, s *session, from *slots, n int64, evict func() bool) (int64, error) {
	if at, ok := from.get(n); ok {
		return at, nil
	}
	deadline := time.NewTimer(roomWait)
	defer deadline.Stop()
	for {
		changed := from.changed()
		from.reclaim()
		if at, ok := from.get(n); ok {
			return at, nil
		}
		if evict != nil && evict() {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.gone:
			return 0, microtome.ErrDeviceLost
		case <-deadline.C:
			return 0, fmt.Errorf("%s has no memory for %d bytes: %w", e.name, n, microtome.ErrBusy)
		}
	}
}

// roomWait is how long work waits for device memory.
const roomWait = 10 * time.Second
