package tilecodec

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/image/tiff/lzw"
)

// samples are inputs that walk a coder's edges: nothing, one byte, long runs,
// alternation, noise that fills the LZW table several times.
func samples() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise, mixed := make([]byte, 40000), make([]byte, 30000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for i := range mixed {
		mixed[i] = byte(i / 500)
		if i%7 == 0 {
			mixed[i] = byte(r.Uint32N(9))
		}
	}
	return map[string][]byte{
		"one byte": {7}, "run": bytes.Repeat([]byte{9}, 5000), "alternation": bytes.Repeat([]byte{1, 2}, 300),
		"noise": noise, "mixed": mixed, "long noise": bytes.Repeat(noise[:977], 30),
	}
}

func TestRoundTrip(t *testing.T) {
	for name, src := range samples() {
		for _, c := range []struct {
			name   string
			code   int
			decode func([]byte) ([]byte, error)
		}{
			{"lzw", LZWCode, func(p []byte) ([]byte, error) {
				return io.ReadAll(lzw.NewReader(bytes.NewReader(p), lzw.MSB, 8))
			}},
			{"deflate", Deflate, func(p []byte) ([]byte, error) {
				r, err := zlib.NewReader(bytes.NewReader(p))
				if err != nil {
					return nil, err
				}
				return io.ReadAll(r)
			}},
			{"zstd", Zstd, func(p []byte) ([]byte, error) {
				r, err := zstd.NewReader(nil)
				if err != nil {
					return nil, err
				}
				defer r.Close()
				return r.DecodeAll(p, nil)
			}},
			{"packbits", PackBitsCode, unpack},
		} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				p, err := Encode(c.code, src, len(src), 1, false)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.decode(p)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, src) {
					t.Errorf("%d bytes differ from the source's %d", len(got), len(src))
				}
			})
		}
	}
}

// TestLZWEveryLength catches a code width raised one code early or late just at
// the end of the data.
func TestLZWEveryLength(t *testing.T) {
	noise := samples()["noise"]
	for n := range 8200 {
		if near := min(n%256, 256-n%256); near > 8 && n > 300 {
			continue // codes grow and the table is cleared next to multiples of 256
		}
		got, err := io.ReadAll(lzw.NewReader(bytes.NewReader(LZW(nil, noise[:n])), lzw.MSB, 8))
		if err != nil || !bytes.Equal(got, noise[:n]) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func unpack(p []byte) (out []byte, err error) {
	for len(p) > 1 {
		if n := int(int8(p[0])); n >= 0 {
			out = append(out, p[1:n+2]...)
			p = p[n+2:]
		} else {
			out = append(out, bytes.Repeat(p[1:2], 1-n)...)
			p = p[2:]
		}
	}
	return out, nil
}

func TestPredict(t *testing.T) {
	p := []byte{10, 20, 30, 11, 19, 33, 5, 5, 5, 4, 6, 5}
	Predict(p, 2, 3)
	if want := []byte{10, 20, 30, 1, 255, 3, 5, 5, 5, 255, 1, 0}; !bytes.Equal(p, want) {
		t.Errorf("got %v, want %v", p, want)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Encode(34892, []byte{1}, 1, 1, false); err == nil {
		t.Error("an unknown compression is accepted")
	}
}
