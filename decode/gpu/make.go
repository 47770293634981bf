//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// maker puts a DeviceBatch into a message.
type maker struct {
	e    *Engine
	s    *session
	b    *microtome.DeviceBatch
	msg  wire.Batch
	lut  uint32
	size int   // bytes of a sample
	at   int64 // of the answer
	temp int64 // of what filters need meanwhile
	need int64 // of the arena's end, while it is made
}

// Make implements microtome.Device.
func (e *Engine) Make(ctx context.Context, b *microtome.DeviceBatch) (microtome.DeviceArray, error) {
	a, err := e.lay(ctx, b)
	if err != nil {
		return nil, err
	}
	e.count.made.Add(int64(len(b.Patches)))
	return a, nil
}

// lay is Make, for the engine's own use too: it is not counted.
func (e *Engine) lay(ctx context.Context, b *microtome.DeviceBatch) (*array, error) {
	s := e.session.Load()
	if s == nil || !s.hold() {
		return nil, microtome.ErrDeviceLost
	}
	m := &maker{e: e, s: s, b: b}
	a, err := m.make(ctx)
	if m.need > 0 {
		s.makers.Release(m.need)
	}
	if err != nil {
		s.drop()
		return nil, err
	}
	return a, nil
}

func (m *maker) make(ctx context.Context) (*array, error) {
	b := m.b
	m.size = b.Type.Bytes()
	each := int64(b.Width) * int64(b.Height) * int64(b.Channels) * int64(m.size)
	total := each * int64(len(b.Patches))
	if b.Width <= 0 || b.Height <= 0 || b.Channels != 1 && b.Channels != 3 || total == 0 || b.LUT == nil && m.size > 1 {
		return nil, fmt.Errorf("a batch of %d times %dx%dx%d: %w", len(b.Patches), b.Width, b.Height, b.Channels, microtome.ErrMalformed)
	}
	if b.Host && total > m.e.o.Ring/4 {
		return nil, fmt.Errorf("a batch of %d bytes: %w", total, microtome.ErrLimit)
	}
	var scratch int64
	for i := range b.Patches {
		if f := b.Patches[i].Filter; f != nil {
			source, line := m.scratch(f)
			scratch += source + line
		}
	}
	need := slotSize(total) + slotSize(scratch)
	if need > m.s.making {
		return nil, fmt.Errorf("a batch that takes %d bytes: %w", need, microtome.ErrLimit)
	}
	if err := m.s.makers.Acquire(ctx, need); err != nil {
		return nil, err
	}
	m.need = need
	m.words()
	var err error
	if m.at, m.temp, err = m.e.arrayRoom(ctx, m.s, total, scratch); err != nil {
		return nil, err
	}
	if scratch > 0 {
		defer m.s.free(m.temp, scratch)
	}
	a := &array{s: m.s, at: m.at, ring: -1, bytes: total}
	if err = m.patches(each); err == nil {
		err = m.run(ctx, a)
	}
	if err != nil {
		m.s.free(m.at, total)
		return nil, err
	}
	return a, nil
}

// words enters the look-up table.
func (m *maker) words() {
	m.lut = wire.NoLUT
	if m.b.LUT == nil {
		return
	}
	m.lut = 0
	for c := range m.b.Channels {
		m.msg.Words = append(m.msg.Words, m.b.LUT[c][:]...)
	}
}

func (m *maker) patches(each int64) error {
	b := m.b
	for i := range b.Patches {
		p := &b.Patches[i]
		out := wire.Out{
			Dst: uint64(m.at + int64(i)*each), W: uint32(b.Width), H: uint32(b.Height), Channels: uint8(b.Channels),
			Layout: uint8(b.Layout), Bytes: uint8(m.size), RGB: [4]uint8{p.Fill.R, p.Fill.G, p.Fill.B}, LUT: m.lut,
		}
		if p.Filter == nil {
			if !p.Covered {
				out.Fill = 1
			}
			m.msg.Outs = append(m.msg.Outs, out)
			if err := m.pieces(p, uint32(len(m.msg.Outs)-1)); err != nil {
				return err
			}
			continue
		}
		if err := m.filtered(p, out); err != nil {
			return err
		}
	}
	return nil
}

// filtered lays the source of a patch beside the answer, and filters it.
func (m *maker) filtered(p *microtome.DevicePatch, out wire.Out) error {
	f := p.Filter
	bytes, line := m.scratch(f)
	at := [2]int64{m.temp, m.temp + bytes}
	m.temp += bytes + line
	source := wire.Out{
		Dst: uint64(at[0]), W: uint32(f.Width), H: uint32(f.Height), Channels: uint8(f.Channels), Bytes: 1,
		RGB: out.RGB, LUT: wire.NoLUT,
	}
	if !p.Covered {
		source.Fill = 1
	}
	m.msg.Outs = append(m.msg.Outs, source, out)
	to := uint32(len(m.msg.Outs) - 1)
	m.msg.Scales = append(m.msg.Scales, wire.Scale{From: to - 1, To: to, Across: m.taps(f.Across), Down: m.taps(f.Down), Line: uint64(at[1])})
	return m.pieces(p, to-1)
}

// scratch is what a filter's source and its lines take.
func (m *maker) scratch(f *microtome.DeviceFilter) (source, line int64) {
	const align = 256
	rows := int64(f.Height) * int64(f.Channels)
	source, line = rows*int64(f.Width), 2*rows*int64(m.b.Width)
	return (source + align - 1) &^ (align - 1), (line + align - 1) &^ (align - 1)
}

// taps enters the weights of an axis.
func (m *maker) taps(taps []microtome.Tap) uint32 {
	at := len(m.msg.Words)
	next := uint32(at + 3*len(taps))
	for i := range taps {
		n := uint32(len(taps[i].Weights))
		m.msg.Words = append(m.msg.Words, uint32(taps[i].First), n, next)
		next += n
	}
	for i := range taps {
		m.msg.Words = append(m.msg.Words, taps[i].Weights...)
	}
	return uint32(at)
}

func (m *maker) pieces(p *microtome.DevicePatch, out uint32) error {
	for i := range p.Pieces {
		c := &p.Pieces[i]
		px, ok := c.Pixels.(*pixels)
		if !ok {
			return fmt.Errorf("pixels of %s on %s: %w", c.Pixels.Device(), m.e.name, microtome.ErrMalformed)
		}
		if px.s != m.s {
			return microtome.ErrDeviceLost
		}
		r := c.From
		if r.Empty() || r.Min.X < 0 || r.Min.Y < 0 || r.Max.X > px.w || r.Max.Y > px.h || c.X < 0 || c.Y < 0 {
			return fmt.Errorf("part %v of %dx%d at %d,%d: %w", r, px.w, px.h, c.X, c.Y, microtome.ErrMalformed)
		}
		m.msg.Pieces = append(m.msg.Pieces, wire.Piece{
			Src: uint64(px.at), Pitch: uint32(px.w * px.ch), Out: out, Channels: uint16(px.ch),
			W: uint16(r.Dx()), H: uint16(r.Dy()), SX: uint16(r.Min.X), SY: uint16(r.Min.Y), DX: uint32(c.X), DY: uint32(c.Y),
		})
	}
	return nil
}

// run sends the message, and moves the answer to the ring when the host wants it.
func (m *maker) run(ctx context.Context, a *array) error {
	s := m.s
	if m.b.Host {
		ring, ok := s.rings.get(a.bytes)
		if !ok {
			return fmt.Errorf("the ring is full: %w", microtome.ErrBusy)
		}
		a.ring = ring
		m.msg.CopySrc, m.msg.CopyDst, m.msg.CopyBytes = uint64(a.at), uint64(ring), uint64(a.bytes)
	}
	var lane int
	select {
	case lane = <-s.copiers:
	case <-ctx.Done():
		return m.undo(a, ctx.Err())
	case <-s.gone:
		return m.undo(a, microtome.ErrDeviceLost)
	}
	rc, err := s.send(lane, &m.msg, func(msg *wire.Message, _ []wire.Tile) { m.e.spent(msg) })
	s.copiers <- lane
	if err == nil && rc == wire.Memory {
		return m.undo(a, fmt.Errorf("%s has no memory for the batch: %w", m.e.name, microtome.ErrBusy))
	}
	if err == nil && rc != wire.OK {
		err = fmt.Errorf("a batch was not made: result %d", rc)
	}
	if err != nil {
		m.e.fail(s, err)
		return m.undo(a, microtome.ErrDeviceLost)
	}
	if m.b.Host {
		s.free(a.at, a.bytes)
	}
	return nil
}

func (m *maker) undo(a *array, err error) error {
	if a.ring >= 0 {
		m.s.rings.put(a.ring)
		a.ring = -1
	}
	return err
}
