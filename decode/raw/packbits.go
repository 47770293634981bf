package raw

import "io"

// packBits reads Apple's run lengths (TIFF 6.0 §9): a signed byte n, then n+1
// bytes as they are (n >= 0), or one byte to be repeated 1-n times (n < 0);
// -128 says nothing.
type packBits struct {
	data []byte
	left int  // bytes of the current run
	run  bool // they all are value
	val  byte
}

func (p *packBits) Read(out []byte) (int, error) {
	n := 0
	for n < len(out) {
		if p.left == 0 {
			if err := p.head(); err != nil {
				if n > 0 {
					return n, nil
				}
				return 0, err
			}
			continue
		}
		k := min(p.left, len(out)-n)
		if p.run {
			for i := range k {
				out[n+i] = p.val
			}
		} else {
			if k = min(k, len(p.data)); k == 0 {
				return n, io.ErrUnexpectedEOF
			}
			copy(out[n:n+k], p.data)
			p.data = p.data[k:]
		}
		n, p.left = n+k, p.left-k
	}
	return n, nil
}

// head reads the next run's length.
func (p *packBits) head() error {
	if len(p.data) == 0 {
		return io.EOF
	}
	h := int8(p.data[0])
	p.data = p.data[1:]
	switch {
	case h >= 0:
		p.left, p.run = int(h)+1, false
	case h != -128:
		if len(p.data) == 0 {
			return io.ErrUnexpectedEOF
		}
		p.left, p.run, p.val = 1-int(h), true, p.data[0]
		p.data = p.data[1:]
	}
	return nil
}
