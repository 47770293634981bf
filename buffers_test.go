package microtome_test

import (
	"testing"

	"github.com/microtome/microtome"
)

func TestBuffers(t *testing.T) {
	var p microtome.Buffers
	for _, n := range []int{0, 1, 4096, 4097, 6144, 6145, 172800, 196608, 196609, 1 << 26, 1<<26 + 1} {
		b := p.Take(n)
		if len(b) != n || n > 6144 && n <= 1<<26 && 3*cap(b) > 4*n+3*4096 && cap(b) > n+n/2 {
			t.Errorf("%d bytes: %d of %d", n, len(b), cap(b))
		}
		p.Give(b)
	}
	a := p.Take(1000)
	a[0] = 42
	p.Give(a)
	if b := p.Take(900); b[0] != 42 {
		t.Error("what was given back is not lent again")
	}
	if b := p.Take(900); b[0] == 42 {
		t.Error("one buffer is lent twice")
	}
	px := p.Pixels(10, 20, 3)
	px.Pix[0] = 7
	px.Release()
	if b := p.Take(600); b[0] != 7 {
		t.Error("released pixels do not come back")
	}
}

// TestBuffersAreBounded: what is given back is not all kept.
func TestBuffersAreBounded(t *testing.T) {
	var p microtome.Buffers
	const n = 1 << 24
	var lent [][]byte
	for range 6 {
		b := p.Take(n)
		b[0] = 42
		lent = append(lent, b)
	}
	for _, b := range lent {
		p.Give(b)
	}
	kept := 0
	for range 6 {
		if p.Take(n)[0] == 42 {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("%d of 6 buffers of 16 MiB were kept, want 4", kept)
	}
}
