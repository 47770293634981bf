//go:build cgo && linux

package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/native"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// loading is a tile on its way to the device.
type loading struct {
	s     *session
	ctx   context.Context
	job   *microtome.Job
	px    *pixels
	src   int64 // its canonical stream in the ring
	len   int
	css   canon.Sampling
	color uint8
	since time.Time
	then  func(microtome.Result)
}

// prepare does the CPU's part of a load. It returns nil when the tile is dealt
// with: it goes another way, or failed.
func (e *Engine) prepare(ctx context.Context, s *session, j *microtome.Job, done func(microtome.Result)) *loading {
	if err := ctx.Err(); err != nil {
		done(microtome.Result{Err: err})
		return nil
	}
	t := &j.Tile
	if e.o.Beside > 0 && e.queue.full() {
		e.byCPU(ctx, s, j, "", done)
		return nil
	}
	var stream canon.Stream
	if err := e.eligible(t, &stream); err != nil {
		e.byCPU(ctx, s, j, err.Error(), done)
		return nil
	}
	at, err := e.room(ctx, s, int64(stream.Width)*int64(stream.Height)*int64(channelsOf(t.Color)))
	if err != nil {
		done(microtome.Result{Err: err})
		return nil
	}
	l := &loading{s: s, ctx: ctx, job: j, px: newPixels(s, at, t), css: stream.Sampling, color: colorOf(t.Color), then: done}
	if err := l.place(&stream); err != nil {
		l.px.Release()
		e.byCPU(ctx, s, j, "the ring is full", done)
		return nil
	}
	return l
}

// eligible says why the device can't have a tile.
func (e *Engine) eligible(t *microtome.Tile, s *canon.Stream) error {
	if err := canon.Parse(t, s); err != nil {
		return err
	}
	if err := e.exact(s.Sampling); err != nil {
		return err
	}
	if small, large := e.sides(); min(s.Width, s.Height) < small || max(s.Width, s.Height) > large {
		return fmt.Errorf("not %d to %d pixels a side", small, large)
	}
	if e.o.Unchecked {
		return nil
	}
	e.cores <- struct{}{}
	n := native.Walk(s)
	<-e.cores
	if n != 0 {
		return errors.New(native.WalkReasons[n])
	}
	return nil
}

// exact says why the device's pixels of a sampling are not used.
func (e *Engine) exact(s canon.Sampling) error {
	if e.kinds[s] {
		return nil
	}
	return errors.New(s.String() + cmp.Or(e.whys[s], " is not exact on this device"))
}

// place writes the canonical stream into the ring.
func (l *loading) place(stream *canon.Stream) error {
	n := stream.Size()
	at, ok := l.s.rings.get(int64(n))
	if !ok {
		return errNoRing
	}
	if !l.s.hold() {
		l.s.rings.put(at)
		return microtome.ErrDeviceLost
	}
	stream.Append(l.s.ring[at : at : int(at)+n])
	l.src, l.len = at, n-canon.Slack
	return nil
}

var errNoRing = errors.New("the ring is full")

// unplace gives the stream's place back.
func (l *loading) unplace() {
	l.s.rings.put(l.src)
	l.s.drop()
}

func newPixels(s *session, at int64, t *microtome.Tile) *pixels {
	p := &pixels{s: s, at: at, w: t.Width, h: t.Height, visible: [2]int{t.VisibleWidth, t.VisibleHeight}, ch: channelsOf(t.Color)}
	p.refs.Store(1)
	return p
}

func channelsOf(c microtome.Color) int {
	if c == microtome.ColorGray || c == microtome.ColorGrayWhite {
		return 1
	}
	return 3
}

func colorOf(c microtome.Color) uint8 {
	switch c {
	case microtome.ColorYCbCr:
		return wire.ColorYCC
	case microtome.ColorGrayWhite:
		return wire.ColorInvert
	}
	return wire.ColorCopy
}

// lose ends a tile that was not decoded.
func (e *Engine) lose(l *loading, err error) {
	l.unplace()
	l.px.Release()
	l.then(microtome.Result{Err: err})
}

// flush ends the tiles of a session that wait: it is over.
func (e *Engine) flush(s *session) {
	for _, l := range e.queue.drain(s) {
		e.lose(l, microtome.ErrDeviceLost)
	}
}

// decodeLane decodes batches until its session ends.
func (e *Engine) decodeLane(s *session, lane int) {
	var (
		batch []*loading
		msg   wire.Batch
	)
	for {
		batch = e.queue.take(batch, s.gone)
		if batch == nil {
			e.flush(s)
			return
		}
		live := batch[:0]
		for _, l := range batch {
			switch {
			case l.s != s:
				e.lose(l, microtome.ErrDeviceLost)
			case l.ctx.Err() != nil:
				e.lose(l, l.ctx.Err())
			default:
				live = append(live, l)
			}
		}
		goes := len(live) == 0 || e.decodeBatch(s, lane, live, &msg)
		e.queue.done()
		if !goes {
			e.flush(s)
			return
		}
	}
}

// decodeBatch has the device decode tiles. Those that it refuses are decoded by
// the CPU, one by one. It returns false when the session has ended.
func (e *Engine) decodeBatch(s *session, lane int, live []*loading, msg *wire.Batch) bool {
	msg.Reset()
	for _, l := range live {
		msg.Tiles = append(msg.Tiles, wire.Tile{
			Src: uint64(l.src), Dst: uint64(l.px.at), SrcLen: uint32(l.len), W: uint16(l.px.w), H: uint16(l.px.h),
			CSS: uint8(l.css), Color: l.color, Channels: uint8(l.px.ch),
		})
	}
	status := make([]int32, len(live))
	for i := range status {
		status[i] = wire.TileNotDecoded
	}
	_, err := s.send(lane, msg, func(m *wire.Message, tiles []wire.Tile) {
		for i := range tiles {
			status[i] = tiles[i].Status
		}
		e.count.batches.Add(int64(m.VendorCalls))
		if m.VendorCode != 0 {
			e.count.refusal.Store(m.VendorCode)
		}
		e.spent(m)
	})
	if err != nil {
		e.fail(s, err) // first: who hears of the loss finds the session ended
		for _, l := range live {
			e.lose(l, microtome.ErrDeviceLost)
		}
		return false
	}
	for i, l := range live {
		l.unplace()
		if status[i] != wire.TileDone {
			l.px.Release()
			go e.byCPU(l.ctx, s, l.job, "the device refused the batch", l.then)
			continue
		}
		n := e.count.decoded.Add(1)
		if e.o.Sample > 0 && n%int64(e.o.Sample) == 0 {
			e.sample(l)
		}
		l.then(microtome.Result{Pixels: l.px})
	}
	return true
}

func (e *Engine) spent(m *wire.Message) {
	for i, n := range m.Nanos {
		e.count.nanos[i].Add(int64(n))
	}
}

// staged is a tile that the CPU has decoded, on its way to the device.
type staged struct {
	px   *pixels
	src  int64
	then func(microtome.Result)
}

// byCPU decodes a tile on the CPU, into the ring, and has it copied to the device.
// reason is why, "" when the device has too much to do.
func (e *Engine) byCPU(ctx context.Context, s *session, j *microtome.Job, reason string, done func(microtome.Result)) {
	if reason == "" {
		e.count.beside.Add(1)
	} else {
		e.count.reason(reason)
	}
	px, err := e.onCPU(ctx, s, j)
	if err != nil {
		if errors.Is(err, microtome.ErrCorrupt) {
			e.count.corrupt.Add(1)
		}
		done(microtome.Result{Err: err})
		return
	}
	px.then = done
	select {
	case s.stage <- px:
		if s.over() { // whoever would take it may have gone
			e.unstage(s)
		}
	case <-s.gone:
		s.lose(px)
	}
}

// onCPU decodes a tile into the ring. What it returns has a slot in the arena.
func (e *Engine) onCPU(ctx context.Context, s *session, j *microtome.Job) (*staged, error) {
	t := &j.Tile
	w, h, ch := t.VisibleWidth, t.VisibleHeight, channelsOf(t.Color)
	if w <= 0 || h <= 0 || int64(w)*int64(h) > e.o.Ring/16 {
		return nil, fmt.Errorf("a tile of %dx%d for a device: %w", w, h, microtome.ErrLimit)
	}
	n := w * h * ch
	src, ok := s.rings.get(int64(n))
	if !ok {
		return nil, fmt.Errorf("the ring is full: %w", microtome.ErrBusy)
	}
	if !s.hold() {
		s.rings.put(src)
		return nil, microtome.ErrDeviceLost
	}
	fail := func(err error) (*staged, error) {
		s.rings.put(src)
		s.drop()
		return nil, err
	}
	at, err := e.room(ctx, s, int64(n))
	if err != nil {
		return fail(err)
	}
	job := *j
	job.Dst = microtome.NewHostPixels(s.ring[src:int(src)+n], w, h, ch, nil)
	e.cores <- struct{}{}
	res := e.o.CPU.DecodeBatch(ctx, []microtome.Job{job})[0]
	<-e.cores
	if res.Err != nil {
		s.arena.put(at)
		return fail(res.Err)
	}
	res.Pixels.Release()
	p := &pixels{s: s, at: at, w: w, h: h, visible: [2]int{w, h}, ch: ch, byCPU: true}
	p.refs.Store(1)
	return &staged{px: p, src: src}, nil
}

func (s *session) lose(t *staged) {
	s.rings.put(t.src)
	t.px.Release()
	s.drop()
	t.then(microtome.Result{Err: microtome.ErrDeviceLost})
}

// unstage ends what waits to be copied: the session is over.
func (e *Engine) unstage(s *session) {
	for {
		select {
		case t := <-s.stage:
			s.lose(t)
		default:
			return
		}
	}
}

// maxStaged bounds the tiles that are copied by one message.
const maxStaged = 32

// stageLane copies tiles that the CPU decoded, until its session ends.
func (e *Engine) stageLane(s *session) {
	var msg wire.Batch
	for {
		var batch [maxStaged]*staged
		n := 0
		select {
		case batch[0] = <-s.stage:
			n = 1
		case <-s.gone:
			e.unstage(s)
			return
		}
	more:
		for n < maxStaged {
			select {
			case batch[n] = <-s.stage:
				n++
			default:
				break more
			}
		}
		e.copyStaged(s, batch[:n], &msg)
	}
}

func (e *Engine) copyStaged(s *session, batch []*staged, msg *wire.Batch) {
	msg.Reset()
	for _, t := range batch {
		msg.Uploads = append(msg.Uploads, wire.Upload{Src: uint64(t.src), Dst: uint64(t.px.at), Bytes: uint64(t.px.w * t.px.h * t.px.ch)})
	}
	lane := <-s.copiers
	rc, err := s.send(lane, msg, func(m *wire.Message, _ []wire.Tile) { e.spent(m) })
	s.copiers <- lane
	if err == nil && rc != wire.OK {
		err = fmt.Errorf("a copy to the device failed: result %d", rc)
	}
	if err != nil {
		e.fail(s, err)
	}
	for _, t := range batch {
		if err != nil {
			s.lose(t)
			continue
		}
		s.rings.put(t.src)
		s.drop()
		t.then(microtome.Result{Pixels: t.px})
	}
}
