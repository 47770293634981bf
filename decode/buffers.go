package decode

import (
	"math/bits"
	"sync"

	"github.com/microtome/microtome"
)

// buffers lends memory for pixels by size class (powers of two and the halves
// between them, so at most a third is idle). It comes with old content: whoever
// decodes into it writes every byte or clears it.
type buffers struct {
	classes [2 * maxClassBits]sync.Pool
}

// maxClassBits bounds what is kept: larger buffers go back to the collector.
const (
	minClassBits = 12
	maxClassBits = 26
)

// classOf is the class that holds n bytes, and its size.
func classOf(n int) (class, size int) {
	b := max(bits.Len(uint(n-1)), minClassBits)
	if half := 3 << (b - 2); b > minClassBits && n <= half {
		return 2*b - 1, half
	}
	return 2 * b, 1 << b
}

// Take lends n bytes.
func (p *buffers) Take(n int) []byte {
	class, size := classOf(n)
	if class >= len(p.classes) {
		return make([]byte, n)
	}
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, size)[:n]
}

// Give takes a buffer of Take's back.
func (p *buffers) Give(b []byte) {
	class, size := classOf(cap(b))
	if class >= len(p.classes) || size != cap(b) {
		return
	}
	p.classes[class].Put(&b)
}

// pixels lends a buffer as pixels of w x h x channels.
func (p *buffers) pixels(w, h, channels int) *microtome.HostPixels {
	return microtome.NewHostPixels(p.Take(w*h*channels), w, h, channels, p.Give)
}
