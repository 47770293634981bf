package jpegenc

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"testing"
)

// scene is w by h pixels of n channels with smooth and sharp parts.
func scene(w, h, n int) []byte {
	p := make([]byte, 0, w*h*n)
	for y := range h {
		for x := range w {
			for c := range n {
				v := 128 + 100*math.Sin(float64(x)/17+float64(c))*math.Cos(float64(y)/(11+float64(c)))
				if (x/23+y/31)%5 == 0 {
					v = 255 - v
				}
				p = append(p, byte(v))
			}
		}
	}
	return p
}

// meanDiff is the mean absolute difference of a decoded picture to the source.
func meanDiff(m image.Image, src []byte, n int, rgbStored bool) float64 {
	b := m.Bounds()
	sum, count := 0.0, 0
	for y := range b.Dy() {
		for x := range b.Dx() {
			var got [4]int
			switch m := m.(type) {
			case *image.YCbCr:
				c := m.YCbCrAt(x, y)
				r, g, bl, _ := c.RGBA()
				got = [4]int{int(r >> 8), int(g >> 8), int(bl >> 8)}
				if rgbStored {
					got = [4]int{int(c.Y), int(c.Cb), int(c.Cr)}
				}
			case *image.Gray:
				got[0] = int(m.GrayAt(x, y).Y)
			default:
				r, g, bl, _ := m.At(x, y).RGBA()
				got = [4]int{int(r >> 8), int(g >> 8), int(bl >> 8)}
			}
			for c := range n {
				sum += math.Abs(float64(got[c] - int(src[(y*b.Dx()+x)*n+c])))
				count++
			}
		}
	}
	return sum / float64(count)
}

// TestDecodes checks every form against the standard library's decoder.
func TestDecodes(t *testing.T) {
	forms := []Options{
		{Quality: 95}, {Color: RGB, Quality: 95}, {Color: Gray, Quality: 95}, {JFIF: true, Quality: 95},
		{Color: RGB, Quality: 95, IDs: []byte("RGB")},
		{Color: RGB, Quality: 95, Adobe: true},
		{Quality: 95, Adobe: true, Transform: 1, Restart: 3},
		{Color: RGB, Quality: 95, Restart: 1},
		{Quality: 95, Sampling: S420, Restart: 7}, {Quality: 30, Sampling: S444}, {Quality: 100},
	}
	for _, s := range []Sampling{S422, S420, S440, S411} {
		forms = append(forms, Options{Quality: 95, Sampling: s})
	}
	for _, o := range forms {
		for _, size := range [][2]int{{240, 240}, {61, 37}, {1, 1}, {16, 33}} {
			t.Run(fmt.Sprintf("%+v %v", o, size), func(t *testing.T) {
				n := o.Color.Components()
				src := scene(size[0], size[1], n)
				e, err := New(o)
				if err != nil {
					t.Fatal(err)
				}
				got, err := e.Encode(nil, src, size[0], size[1], size[0]*n)
				if err != nil {
					t.Fatal(err)
				}
				m, err := jpeg.Decode(bytes.NewReader(got))
				if err != nil {
					t.Fatal(err)
				}
				if m.Bounds() != image.Rect(0, 0, size[0], size[1]) {
					t.Fatalf("size %v", m.Bounds())
				}
				limit := 2.5
				if o.Sampling.H*o.Sampling.V > 1 {
					limit = 25 // the scene's colour changes within pixels
				} else if o.Quality < 90 {
					limit = 10
				}
				if d := meanDiff(m, src, n, o.Color == RGB); d > limit {
					t.Errorf("mean difference %.2f, at most %.1f", d, limit)
				}
			})
		}
	}
}

// TestAbbreviated checks that tables and an abbreviated stream make the whole
// stream, byte for byte.
func TestAbbreviated(t *testing.T) {
	src := scene(64, 48, 3)
	encode := func(o Options) (*Encoder, []byte) {
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Encode(nil, src, 64, 48, 192)
		if err != nil {
			t.Fatal(err)
		}
		return e, p
	}
	for _, c := range []Color{RGB, YCbCr} {
		_, whole := encode(Options{Color: c})
		e, short := encode(Options{Color: c, Abbreviated: true})
		tables := e.Tables()
		spliced := append(append([]byte{}, tables[:len(tables)-2]...), short[2:]...)
		if !bytes.Equal(spliced, whole) {
			t.Errorf("colour %d: spliced stream differs from the whole one", c)
		}
		if _, err := jpeg.Decode(bytes.NewReader(short)); err == nil {
			t.Errorf("colour %d: the abbreviated stream decodes by itself", c)
		}
	}
}

// TestSampledFlat checks subsampled colour where no detail can hide an error.
func TestSampledFlat(t *testing.T) {
	src := bytes.Repeat([]byte{200, 90, 160}, 50*30)
	for _, s := range []Sampling{S444, S422, S420, S440, S411} {
		e, err := New(Options{Sampling: s, Quality: 100})
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Encode(nil, src, 50, 30, 150)
		if err != nil {
			t.Fatal(err)
		}
		m, err := jpeg.Decode(bytes.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		if d := meanDiff(m, src, 3, false); d > 1.5 {
			t.Errorf("%v: mean difference %.2f", s, d)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, o := range []Options{{Quality: 101}, {Color: 9}, {Sampling: Sampling{5, 1}}, {IDs: []byte{1}}, {Restart: 1 << 16}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ w, h, stride int }{{0, 1, 3}, {70000, 1, 210000}, {4, 4, 11}, {4, 5, 12}} {
		if _, err := e.Encode(nil, make([]byte, 48), c.w, c.h, c.stride); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	src := scene(240, 240, 3)
	e, _ := New(Options{Color: RGB, Quality: 30})
	b.SetBytes(240 * 240 * 3)
	var dst []byte
	for b.Loop() {
		dst, _ = e.Encode(dst[:0], src, 240, 240, 720)
	}
}
