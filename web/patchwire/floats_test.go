package patchwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

func floatShape(t testing.TB, typ microtome.DataType, w, h, channels int, planar bool) Shape {
	t.Helper()
	lut, err := microtome.NewLUT(typ, [3]float64{0.485, 0.456, 0.406}, [3]float64{0.229, 0.224, 0.225})
	if err != nil {
		t.Fatal(err)
	}
	return Shape{N: 1, Height: h, Width: w, Channels: channels, Planar: planar, Fill: 7, Type: typ, LUT: lut}
}

// through is what the table makes of a patch, sample by sample.
func through(pix []byte, stride int, s Shape) []byte {
	var out []byte
	add := func(x, y, c int) {
		var word [4]byte
		binary.LittleEndian.PutUint32(word[:], s.LUT[c][pix[y*stride+x*s.Channels+c]])
		out = append(out, word[:s.Type.Bytes()]...)
	}
	if s.Planar {
		for c := range s.Channels {
			for i := range s.Width * s.Height {
				add(i%s.Width, i/s.Width, c)
			}
		}
		return out
	}
	for i := range s.Width * s.Height * s.Channels {
		add(i/s.Channels%s.Width, i/s.Channels/s.Width, i%s.Channels)
	}
	return out
}

// TestWriteFloats: all types and layouts, padded rows, and buffers that end
// anywhere.
func TestWriteFloats(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []microtome.DataType{microtome.Float16, microtome.BFloat16, microtome.Float32} {
		for k := range 24 {
			s := floatShape(t, typ, 1+rng.IntN(9), 1+rng.IntN(5), 1+k%2*2, k%4 < 2)
			n := s.Width * s.Channels
			stride := n + k/4%3
			pix := make([]byte, (s.Height-1)*stride+n) // the last row has no padding
			for i := range pix {
				pix[i] = byte(rng.Uint32())
			}
			want, fill := through(pix, stride, s), through(bytes.Repeat([]byte{s.Fill}, n*s.Height), n, s)
			for size := 12; size <= 60; size++ {
				var b bytes.Buffer
				if err := WriteItem(&b, make([]byte, size), pix, stride, s); err != nil || !bytes.Equal(b.Bytes(), want) || int64(b.Len()) != s.ItemBytes() {
					t.Fatalf("%s %+v, buffer of %d: %x, want %x, %v", typ, s, size, b.Bytes(), want, err)
				}
				b.Reset()
				if err := WriteFill(&b, make([]byte, size), s); err != nil || !bytes.Equal(b.Bytes(), fill) {
					t.Fatalf("%s, fill, buffer of %d: %x, want %x, %v", typ, size, b.Bytes(), fill, err)
				}
				if err := WriteItem(full{}, make([]byte, size), pix, stride, s); err != io.ErrShortWrite {
					t.Error(err)
				}
				if err := WriteFill(full{}, make([]byte, size), s); err != io.ErrShortWrite {
					t.Error(err)
				}
			}
		}
	}
}

func TestFloatHeaders(t *testing.T) {
	for typ, name := range map[microtome.DataType]string{microtome.Float16: "<f2", microtome.Float32: "<f4"} {
		s := floatShape(t, typ, 256, 128, 3, false)
		b := AppendNPY(nil, s)
		if len(b)%64 != 0 || !strings.Contains(string(b), "{'descr': '"+name+"', 'fortran_order': False, 'shape': (1, 128, 256, 3), }") {
			t.Errorf("%q", b)
		}
	}
	s := floatShape(t, microtome.BFloat16, 5, 3, 3, true)
	b := AppendHead(nil, s, 0, false)
	if b[28] != 2 || b[29] != 1 || b[30] != 7 || binary.LittleEndian.Uint64(b[56:]) != 90 || s.RawBytes() != 64+8+90 {
		t.Errorf("%x, %d bytes in all", b, s.RawBytes())
	}
}

// BenchmarkWriteItem is a patch on its way into an answer, by type and layout.
func BenchmarkWriteItem(b *testing.B) {
	pix, buf := make([]byte, 256*256*3), make([]byte, 256<<10)
	for i := range pix {
		pix[i] = byte(i * 2654435761 >> 13)
	}
	for _, planar := range []bool{false, true} {
		for typ := microtome.Uint8; typ <= microtome.Float32; typ++ {
			s := Shape{N: 1, Height: 256, Width: 256, Channels: 3, Planar: planar}
			if typ != microtome.Uint8 {
				s = floatShape(b, typ, 256, 256, 3, planar)
			}
			b.Run(fmt.Sprintf("%s planar %t", typ, planar), func(b *testing.B) {
				b.SetBytes(s.ItemBytes())
				for b.Loop() {
					if err := WriteItem(io.Discard, buf, pix, 256*3, s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
