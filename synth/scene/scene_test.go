package scene

import (
	"bytes"
	"testing"
)

func paintAll(t *testing.T, s *Scene, x, y, w, h, d int) []uint8 {
	t.Helper()
	p := make([]uint8, w*h*3)
	s.Paint(p, x, y, w, h, d)
	return p
}

// TestRectanglesAgree paints a picture whole and in odd pieces.
func TestRectanglesAgree(t *testing.T) {
	s, err := New(Options{Seed: 2, Width: 3000, Height: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []int{1, 4} {
		whole := paintAll(t, s, 300, 200, 150, 120, d)
		piece := paintAll(t, s, 333, 241, 61, 47, d)
		for y := range 47 {
			if !bytes.Equal(piece[y*61*3:(y+1)*61*3], whole[((y+41)*150+33)*3:][:61*3]) {
				t.Fatalf("downsample %d: row %d of a piece differs from the whole", d, y)
			}
		}
	}
}

func BenchmarkPaint(b *testing.B) {
	s, _ := New(Options{Seed: 1, Width: 12000, Height: 9000})
	p := make([]uint8, 256*256*3)
	b.SetBytes(256 * 256)
	for b.Loop() {
		s.Paint(p, 4000, 4000, 256, 256, 1)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		_, _ = New(Options{Seed: 1, Width: 12000, Height: 9000})
	}
}
