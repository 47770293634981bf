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
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// Options say which device is used, and how. CPU is needed; zero values of the
// rest are good ones.
type Options struct {
	Vendor    string // "nvidia", "amd"
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
	// Cores is how many callers walk and decode at once. The worker's lanes need
	// cores too, and one that waits for its turn has the decoder wait.
	Cores int
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
	// Profile has the device end each stage of a message before the next begins:
	// slower, but then a stage's time is its own.
	Profile bool
	// trial is set in an engine that only tries samplings: those of the mask.
	trial uint32
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
	procs := runtime.GOMAXPROCS(0)
	set(&o.Cores, max(1, procs/2, procs-o.Lanes))
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
	kinds [canon.Gray + 1]bool   // samplings that the device decodes exactly
	whys  [canon.Gray + 1]string // why it does not, "": they were found inexact
	count counters
	queue *queue
	cores chan struct{} // a place for each caller that walks or decodes

	mu      sync.Mutex
	session atomic.Pointer[session] // nil while there is none
	strikes []time.Time
	off     error
	wrong   bool // off for good
	closed  bool
	past    []*session // all that were, in builds that look for leaks
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
	e := &Engine{o: o, name: fmt.Sprintf("%s:%d", o.Vendor, o.Index), queue: newQueue(o), cores: make(chan struct{}, o.Cores)}
	s, err := e.start()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	e.info = s.info
	e.session.Store(s)
	e.claims()
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
	if !e.end(s, why) {
		return
	}
	e.mu.Lock()
	e.session.CompareAndSwap(s, nil)
	lost := e.lost
	e.mu.Unlock()
	if lost != nil {
		lost() // before there is another session
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.strike(why)
}

// end ends a session once, and says whether this call did.
func (e *Engine) end(s *session, why error) bool {
	if !s.end(why) {
		return false
	}
	e.queue.wake() // lanes that wait for tiles end with it
	return true
}

// strike counts a death of the worker, before it was ready or after, and has it
// started again unless there were too many. The engine is locked.
func (e *Engine) strike(why error) {
	e.count.deaths.Add(1)
	now := time.Now()
	e.strikes = append(e.strikes, now)
	for now.Sub(e.strikes[0]) > strikeSpan {
		e.strikes = e.strikes[1:]
	}
	switch {
	case e.closed || e.off != nil:
	case len(e.strikes) >= maxStrikes:
		e.off = fmt.Errorf("the worker died %d times within an hour, last: %w", len(e.strikes), why)
	default:
		e.all.Go(e.restart)
	}
}

// restart starts another session.
func (e *Engine) restart() {
	s, err := e.start()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		e.strike(err)
	case e.closed || e.off != nil:
		e.end(s, errClosed)
	default:
		e.session.Store(s)
	}
}

var errClosed = errors.New("the engine is closed")

// Reset implements microtome.Device. It forgives the deaths of the worker; an engine
// whose pixels were wrong stays off.
func (e *Engine) Reset() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return errClosed
	case e.wrong:
		return fmt.Errorf("%s stays off until the next start: %w", e.name, e.off)
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
	if !e.wrong {
		e.wrong, e.off = true, why
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
	if s := e.session.Swap(nil); s != nil {
		s.end(errClosed)
	}
	e.all.Wait()
	return e.leaks()
}

// leaks tells of what sessions still hold when the engine is closed, in builds
// that look for it.
func (e *Engine) leaks() error {
	var errs []error
	for _, s := range e.past {
		errs = append(errs, s.leaks())
	}
	return errors.Join(errs...)
}

// start makes a session and its lanes.
func (e *Engine) start() (*session, error) {
	s, err := newSession(e)
	if err != nil {
		return nil, err
	}
	e.count.starts.Add(1)
	if poisonFreed {
		e.mu.Lock()
		e.past = append(e.past, s)
		e.mu.Unlock()
	}
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
	at, ok := s.arena.get(n)
	if ok {
		return at, nil
	}
	err := e.await(ctx, s, s.arena, n, evict, func() bool {
		at, ok = s.arena.get(n)
		return ok
	})
	return at, err
}

// arrayRoom takes n bytes for what is made, and scratch bytes for the making. It
// waits until others are given back, and holds nothing meanwhile: two that wait for
// each other's pieces would wait for ever.
func (e *Engine) arrayRoom(ctx context.Context, s *session, n, scratch int64) (at, temp int64, err error) {
	err = e.await(ctx, s, s.arrays, n+scratch, nil, func() (ok bool) {
		at, temp, ok = s.arrays.getBoth(n, scratch)
		return ok
	})
	return at, temp, err
}

// await waits until got is true, which takes some of n bytes.
func (e *Engine) await(ctx context.Context, s *session, from *slots, n int64, evict, got func() bool) error {
	if got() {
		return nil
	}
	deadline := time.NewTimer(roomWait)
	defer deadline.Stop()
	for {
		changed := from.changed()
		if got() {
			return nil
		}
		if evict != nil && evict() {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gone:
			return microtome.ErrDeviceLost
		case <-deadline.C:
			return fmt.Errorf("%s has no memory for %d bytes: %w", e.name, n, microtome.ErrBusy)
		}
	}
}

// roomWait is how long work waits for device memory.
const roomWait = 10 * time.Second
