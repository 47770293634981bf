package microtome

import (
	"math/bits"
	"sync"
)

// Buffers lends memory for pixels by size class (powers of two and the halves
// between them, so at most a third is idle), and keeps a bounded amount of what
// is given back: the collector would drop it at every cycle, and new memory
// costs more than the pixels that are written to it. The zero value is ready;
// all methods may be called at once.
type Buffers struct {
	mu      sync.Mutex
	classes [2*maxClassBits + 1][][]byte
	idle    int64
}

const (
	minClassBits = 12
	maxClassBits = 26
	// maxIdle bounds the bytes that are kept.
	maxIdle = 64 << 20
)

// classOf is the class that holds n bytes, and its size.
func classOf(n int) (class, size int) {
	b := max(bits.Len(uint(max(n, 1)-1)), minClassBits)
	if half := 3 << (b - 2); b > minClassBits && n <= half {
		return 2*b - 1, half
	}
	return 2 * b, 1 << b
}

// Take lends n bytes of undefined content: whoever takes them writes every byte
// that it hands on.
func (p *Buffers) Take(n int) []byte {
	class, size := classOf(n)
	if class >= len(p.classes) {
		return make([]byte, n)
	}
	p.mu.Lock()
	free := &p.classes[class]
	if k := len(*free); k > 0 {
		b := (*free)[k-1]
		(*free)[k-1] = nil
		*free = (*free)[:k-1]
		p.idle -= int64(size)
		p.mu.Unlock()
		return b[:n]
	}
	p.mu.Unlock()
	return make([]byte, size)[:n]
}

// Give takes a buffer of Take's back. What is over the bound goes to the
// collector.
func (p *Buffers) Give(b []byte) {
	class, size := classOf(cap(b))
	if class >= len(p.classes) || size != cap(b) {
		return
	}
	p.mu.Lock()
	if p.idle+int64(size) <= maxIdle {
		p.idle += int64(size)
		p.classes[class] = append(p.classes[class], b)
	}
	p.mu.Unlock()
}

// Pixels lends a buffer as pixels of w x h x channels, in one reference; it
// comes back with the last.
func (p *Buffers) Pixels(w, h, channels int) *HostPixels {
	return NewHostPixels(p.Take(w*h*channels), w, h, channels, p.Give)
}
