package microtome

import (
	"fmt"
	"sync/atomic"
)

// HostPixels is 8-bit pixels in host memory, rows packed without padding.
type HostPixels struct {
	Pix           []byte
	width, height int
	channels      int
	refs          atomic.Int32
	free          func([]byte) // called once, when the last reference goes
}

// NewHostPixels wraps pix (at least w*h*channels bytes) in one reference. free,
// when not nil, gets pix back at the last Release.
func NewHostPixels(pix []byte, w, h, channels int, free func([]byte)) *HostPixels {
	n := w * h * channels
	if w <= 0 || h <= 0 || len(pix) < n {
		panic(fmt.Sprintf("microtome: %d bytes for %dx%dx%d pixels", len(pix), w, h, channels))
	}
	p := &HostPixels{Pix: pix[:n], width: w, height: h, channels: channels, free: free}
	p.refs.Store(1)
	return p
}

// Width is the number of columns.
func (p *HostPixels) Width() int { return p.width }

// Height is the number of rows.
func (p *HostPixels) Height() int { return p.height }

// Channels is the number of samples a pixel.
func (p *HostPixels) Channels() int { return p.channels }

// Type is always Uint8.
func (p *HostPixels) Type() DataType { return Uint8 }

// Device is always "cpu".
func (p *HostPixels) Device() string { return "cpu" }

// Bytes is the size of the memory behind the pixels.
func (p *HostPixels) Bytes() int64 { return int64(cap(p.Pix)) }

// Host returns the rows.
func (p *HostPixels) Host() ([]byte, int, bool) { return p.Pix, p.width * p.channels, true }

// Retain adds a reference.
func (p *HostPixels) Retain() {
	if p.refs.Add(1) <= 1 {
		panic("microtome: Retain of released pixels")
	}
}

// Release drops a reference; the last one gives the memory back.
func (p *HostPixels) Release() {
	switch n := p.refs.Add(-1); {
	case n < 0:
		panic("microtome: pixels released twice")
	case n == 0 && p.free != nil:
		p.free(p.Pix)
		p.Pix = nil
	}
}
