//go:build cgo && linux

package gpu

import (
	"sync/atomic"

	"github.com/microtome/microtome"
)

// pixels is a decoded tile in the arena of one session: packed rows of 8-bit
// samples.
type pixels struct {
	s       *session
	at      int64
	w, h    int
	visible [2]int // the tile's part inside the image
	ch      int
	byCPU   bool
	refs    atomic.Int32
}

var _ microtome.DevicePixels = (*pixels)(nil)

func (p *pixels) Width() int               { return p.visible[0] }
func (p *pixels) Height() int              { return p.visible[1] }
func (p *pixels) Channels() int            { return p.ch }
func (p *pixels) Type() microtome.DataType { return microtome.Uint8 }
func (p *pixels) Device() string           { return p.s.name }
func (p *pixels) Bytes() int64             { return slotSize(int64(p.w) * int64(p.h) * int64(p.ch)) }

// ByCPU implements microtome.DevicePixels.
func (p *pixels) ByCPU() bool { return p.byCPU }

// Host says that the rows lie in device memory.
func (p *pixels) Host() ([]byte, int, bool) { return nil, 0, false }

func (p *pixels) Retain() {
	if p.refs.Add(1) <= 1 {
		panic("gpu: Retain of released pixels")
	}
}

func (p *pixels) Release() {
	switch n := p.refs.Add(-1); {
	case n < 0:
		panic("gpu: pixels released twice")
	case n == 0:
		p.s.free(p.at, p.Bytes())
	}
}

// array is a batch that was made, in the arena or in the ring.
type array struct {
	s     *session
	at    int64 // in the arena
	ring  int64 // in the ring, -1: not there
	bytes int64
	freed atomic.Bool
}

func (a *array) Bytes() int64 { return a.bytes }

func (a *array) Host() []byte {
	if a.ring < 0 {
		return nil
	}
	return a.s.ring[a.ring : a.ring+a.bytes]
}

func (a *array) Release() {
	if a.freed.Swap(true) {
		panic("gpu: an array released twice")
	}
	if a.ring >= 0 {
		a.s.rings.put(a.ring)
		a.s.drop()
		return
	}
	a.s.free(a.at, a.bytes)
	a.s.drop()
}
