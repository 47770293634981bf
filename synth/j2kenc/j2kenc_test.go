package j2kenc

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"
)

// picture is w by h pixels of n components with edges, ramps and noise.
func picture(w, h, n int) []byte {
	r := rand.New(rand.NewPCG(5, 6))
	p := make([]byte, w*h*n)
	for i := range p {
		x, y := i/n%w, i/n/w
		p[i] = byte(x*3 + y*(i%n))
		if (x/9+y/5)%4 == 0 {
			p[i] = byte(r.Uint32())
		}
	}
	return p
}

// TestStreams pins streams that OpenJPEG 2.5 decoded to the very pixels when they
// were recorded; layouts_test.go asks it again where there is a Python.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		w, h, n int
		o       Options
		sum     string
	}{
		{240, 240, 3, Options{}, "394ee467117049e4"},
		{240, 240, 3, Options{Transform: true}, "55672ff7da151754"},
		{61, 37, 1, Options{Levels: 2}, "2a3dc9fe2b469f8d"},
		{1, 1, 1, Options{Levels: -1}, "003471844067dce4"},
		{300, 17, 4, Options{}, "cc1a5c37487b0ab9"},
	} {
		p, err := Encode(picture(c.w, c.h, c.n), c.w, c.h, c.n, c.o)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(p)
		if got := hex.EncodeToString(sum[:8]); got != c.sum {
			t.Errorf("%dx%d, %d components, %+v: %s, want %s", c.w, c.h, c.n, c.o, got, c.sum)
		}
	}
}

// synthesize undoes analyze.
func synthesize(line []int32) {
	n := len(line)
	if n < 2 {
		return
	}
	low, out := (n+1)/2, make([]int32, n)
	for i := range line {
		out[i] = line[i&1*low+i>>1]
	}
	at := func(i int) int32 {
		if i < 0 {
			i = -i
		}
		if i >= n {
			i = 2*(n-1) - i
		}
		return out[i]
	}
	for i := 0; i < n; i += 2 {
		out[i] -= (at(i-1) + at(i+1) + 2) >> 2
	}
	for i := 1; i < n; i += 2 {
		out[i] += (at(i-1) + at(i+1)) >> 1
	}
	copy(line, out)
}

func TestWaveletIsReversible(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n < 70; n++ {
		line := make([]int32, n)
		for i := range line {
			line[i] = int32(r.Uint32N(512)) - 256
		}
		got := slices.Clone(line)
		analyze(got, make([]int32, n))
		synthesize(got)
		if !slices.Equal(got, line) {
			t.Fatalf("%d samples come back changed", n)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range [][3]int{{0, 1, 1}, {4, 4, 5}, {4, 4, 0}, {5, 4, 3}, {1 << 16, 1, 1}} {
		if _, err := Encode(make([]byte, 48), c[0], c[1], c[2], Options{}); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
	if _, err := Encode(make([]byte, 48), 4, 4, 3, Options{Levels: 33}); err == nil {
		t.Error("33 levels are accepted")
	}
}
