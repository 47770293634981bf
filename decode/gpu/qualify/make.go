//go:build cgo && linux

package qualify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"github.com/microtome/microtome"
)

// raw has samples copied to the device: the decoder has no part in them.
func (b *battery) raw(pix []byte, w, h, ch int) (microtome.Pixels, error) {
	t := microtome.Tile{Data: pix, Codec: microtome.CodecNone, Color: microtome.ColorRGB, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: ch, Bits: 8, Predictor: 1, FillOrder: 1}
	if ch == 1 {
		t.Color = microtome.ColorGray
	}
	r := b.load([]microtome.Job{{Tile: t}})[0]
	return r.Pixels, r.Err
}

// load is the device's, until all tiles have come.
func (b *battery) load(jobs []microtome.Job) []microtome.Result {
	return loadBy(b.ctx, b.e, jobs)
}

// making is a batch and what the host makes of it.
type making struct {
	microtome.DeviceBatch
	sources [][]byte // of each patch's pieces, in their order
}

// pixel is a patch's at (x, y), by the host's arithmetic.
func (m *making) pixel(patch, x, y int, sources [][]byte) [3]int {
	p := &m.Patches[patch]
	out := [3]int{int(p.Fill.R), int(p.Fill.G), int(p.Fill.B)}
	if m.Channels == 1 {
		out[0] = luma(out)
	}
	for i, piece := range p.Pieces {
		sx, sy := x-piece.X+piece.From.Min.X, y-piece.Y+piece.From.Min.Y
		if !image.Pt(sx, sy).In(piece.From) {
			continue
		}
		w, ch := piece.Pixels.Width(), piece.Pixels.Channels()
		s := sources[i][(sy*w+sx)*ch:]
		out = [3]int{int(s[0]), int(s[0]), int(s[0])}
		if ch == 3 {
			out = [3]int{int(s[0]), int(s[1]), int(s[2])}
			if m.Channels == 1 {
				out[0] = luma(out)
			}
		}
	}
	return out
}

// luma is ITU-R BT.601's, in 16-bit fixed point.
func luma(v [3]int) int { return (19595*v[0] + 38470*v[1] + 7471*v[2] + 1<<15) >> 16 }

// want is the array that the host makes.
func (m *making) want() []byte {
	size, ch, w, h := m.Type.Bytes(), m.Channels, m.Width, m.Height
	out := make([]byte, len(m.Patches)*w*h*ch*size)
	for p := range m.Patches {
		for y := range h {
			for x := range w {
				px := m.pixel(p, x, y, m.sources)
				for c := range ch {
					i := ((p*h+y)*w+x)*ch + c
					if m.Layout == microtome.NCHW {
						i = ((p*ch+c)*h+y)*w + x
					}
					m.store(out[i*size:], c, px[c])
				}
			}
		}
	}
	return out
}

// store writes a sample in the batch's type.
func (m *making) store(to []byte, c, v int) {
	switch word := uint32(v); {
	case m.LUT == nil:
		to[0] = byte(word)
	case m.Type.Bytes() == 4:
		binary.NativeEndian.PutUint32(to, m.LUT[c][v])
	default:
		binary.NativeEndian.PutUint16(to, uint16(m.LUT[c][v]))
	}
}

// check has the device make the batch, and says whether it is the host's.
func (b *battery) check(m *making, what string) error {
	m.Host = true
	a, err := b.e.Make(b.ctx, &m.DeviceBatch)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer a.Release()
	return sameBytes(what, a.Host(), m.want())
}

func sameBytes(what string, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes, not %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %#02x, not %#02x", what, i, len(want), got[i], want[i])
		}
	}
	return nil
}

// layouts makes patches that cross the borders of two sources, grey and RGB, in
// every layout and type.
func (b *battery) layouts() error {
	const w, h = 61, 47
	color, gray := scene(97, 83, 3, 11), scene(97, 83, 1, 12)
	px, err := b.raw(color, 97, 83, 3)
	if err != nil {
		return err
	}
	defer px.Release()
	py, err := b.raw(gray, 97, 83, 1)
	if err != nil {
		return err
	}
	defer py.Release()
	pieces := []microtome.DevicePiece{
		{Pixels: px, From: image.Rect(5, 7, 5+w, 7+h)},
		{Pixels: py, From: image.Rect(60, 50, 90, 80), X: 20, Y: 13},
	}
	types := []microtome.DataType{microtome.Uint8, microtome.Float16, microtome.BFloat16, microtome.Float32}
	for _, layout := range []microtome.Layout{microtome.NHWC, microtome.NCHW} {
		for _, ch := range []int{3, 1} {
			for _, kind := range types {
				m := making{DeviceBatch: microtome.DeviceBatch{Width: w, Height: h, Channels: ch, Layout: layout, Type: kind}}
				if kind != microtome.Uint8 {
					if m.LUT, err = microtome.NewLUT(kind, [3]float64{0.485, 0.456, 0.406}, [3]float64{0.229, 0.224, 0.225}); err != nil {
						return err
					}
				}
				m.sources = [][]byte{color, gray}
				m.Patches = []microtome.DevicePatch{{Covered: true, Pieces: pieces}, {Covered: true, Pieces: pieces[:1]}}
				name := map[microtome.Layout]string{microtome.NHWC: "NHWC", microtome.NCHW: "NCHW"}[layout]
				if err := b.check(&m, fmt.Sprintf("%s, %v, %d channels", name, kind, ch)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fill makes patches of which pieces cover nothing, or a part.
func (b *battery) fill() error {
	const w, h = 53, 38
	pix := scene(40, 30, 3, 13)
	px, err := b.raw(pix, 40, 30, 3)
	if err != nil {
		return err
	}
	defer px.Release()
	for _, ch := range []int{3, 1} {
		for _, layout := range []microtome.Layout{microtome.NHWC, microtome.NCHW} {
			m := making{sources: [][]byte{pix}}
			m.DeviceBatch = microtome.DeviceBatch{Width: w, Height: h, Channels: ch, Layout: layout, Patches: []microtome.DevicePatch{
				{Fill: microtome.RGB{R: 255, G: 254, B: 1}},
				{Fill: microtome.RGB{R: 3, G: 99, B: 200}, Pieces: []microtome.DevicePiece{{Pixels: px, From: image.Rect(1, 2, 40, 30), X: 14, Y: 10}}},
			}}
			if err := b.check(&m, fmt.Sprintf("%d channels", ch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// areaFilter makes smaller and larger pictures of one, some columns and rows of
// which are background.
func (b *battery) areaFilter() error {
	const sw, sh = 157, 131
	for _, ch := range []int{3, 1} {
		pix := scene(sw, sh, ch, uint64(20+ch))
		px, err := b.raw(pix, sw, sh, ch)
		if err != nil {
			return err
		}
		for _, to := range []image.Point{{157, 131}, {78, 65}, {61, 44}, {33, 131}, {7, 5}, {1, 1}, {200, 140}} {
			if err = b.filtered(px, pix, ch, to); err != nil {
				break
			}
		}
		px.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *battery) filtered(px microtome.Pixels, pix []byte, ch int, to image.Point) error {
	w, h := px.Width(), px.Height()
	fill := microtome.RGB{R: 240, G: 17, B: 130}
	f := &microtome.DeviceFilter{Width: w, Height: h, Channels: ch, Across: taps(w, to.X), Down: taps(h, to.Y)}
	if to.X > 60 {
		f.Across[to.X-1].Weights = nil
		f.Down[3].Weights = nil
	}
	a, err := b.e.Make(b.ctx, &microtome.DeviceBatch{Width: to.X, Height: to.Y, Channels: 3, Host: true, Patches: []microtome.DevicePatch{
		{Covered: true, Fill: fill, Filter: f, Pieces: []microtome.DevicePiece{{Pixels: px, From: image.Rect(0, 0, w, h)}}},
	}})
	what := fmt.Sprintf("%dx%dx%d to %dx%d", w, h, ch, to.X, to.Y)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer a.Release()
	return sameBytes(what, a.Host(), filter(pix, f, fill))
}

// taps share n pixels among m, by area: weights of 14 bits, which sum to 2^14.
func taps(n, m int) []microtome.Tap {
	out := make([]microtome.Tap, m)
	for i := range out {
		// In units of 1/m of a source pixel, the target pixel is [i*n, (i+1)*n).
		from, to := i*n, (i+1)*n
		out[i].First = from / m
		left := 1 << 14
		for k := from / m; k*m < to; k++ {
			part := (min(to, (k+1)*m) - max(from, k*m)) << 14 / n
			if (k+1)*m >= to {
				part = left
			}
			left -= part
			out[i].Weights = append(out[i].Weights, uint32(part))
		}
	}
	return out
}

// filter is the host's: across into 8.8 fixed point, then down.
func filter(pix []byte, f *microtome.DeviceFilter, fill microtome.RGB) []byte {
	back := [3]int{int(fill.R), int(fill.G), int(fill.B)}
	if f.Channels == 1 {
		back[0] = luma(back)
	}
	ch, w := f.Channels, len(f.Across)
	lines := make([]uint16, f.Height*w*ch)
	for y := range f.Height {
		for x, tap := range f.Across {
			for c := range ch {
				v := uint32(back[c]) << 14
				for i, k := range tap.Weights {
					if i == 0 {
						v = 0
					}
					v += k * uint32(pix[(y*f.Width+tap.First+i)*ch+c])
				}
				lines[(y*w+x)*ch+c] = uint16((v + 1<<5) >> 6)
			}
		}
	}
	var out bytes.Buffer
	for _, tap := range f.Down {
		for x := range w {
			v := back
			for c := range ch {
				sum := uint32(1 << 21)
				for i, k := range tap.Weights {
					sum += k * uint32(lines[((tap.First+i)*w+x)*ch+c])
				}
				if len(tap.Weights) > 0 {
					v[c] = int(sum >> 22)
				}
			}
			if ch == 1 {
				v[1], v[2] = v[0], v[0]
			}
			out.Write([]byte{byte(v[0]), byte(v[1]), byte(v[2])})
		}
	}
	return out.Bytes()
}

// hostCopy has arrays of many sizes copied to the host, each after one whose every
// byte differs, beside one that must stay as it is.
func (b *battery) hostCopy() error {
	flat := func(w, h int, v byte) (microtome.DeviceArray, error) {
		return b.e.Make(b.ctx, &microtome.DeviceBatch{Width: w, Height: h, Channels: 1, Host: true,
			Patches: []microtome.DevicePatch{{Fill: microtome.RGB{R: v, G: v, B: v}}}})
	}
	for _, size := range []image.Point{{1, 1}, {3, 5}, {64, 64}, {257, 255}, {1021, 509}, {2048, 2048}} {
		held, err := flat(size.X, size.Y, 0x5A)
		if err != nil {
			return err
		}
		for _, v := range []byte{0x00, 0xFF, 0x01} {
			a, err := flat(size.X, size.Y, v)
			if err == nil {
				err = onlyHas(a.Host(), size, v)
				a.Release()
			}
			if err == nil {
				err = onlyHas(held.Host(), size, 0x5A)
			}
			if err != nil {
				held.Release()
				return err
			}
		}
		held.Release()
	}
	// The device's own array has no rows on the host.
	a, err := b.e.Make(b.ctx, &microtome.DeviceBatch{Width: 8, Height: 8, Channels: 3, Patches: []microtome.DevicePatch{{}}})
	if err != nil {
		return err
	}
	defer a.Release()
	if a.Host() != nil || a.Bytes() != 8*8*3 {
		return errors.New("an array of the device's own is another's")
	}
	return nil
}

func onlyHas(got []byte, size image.Point, v byte) error {
	if n := size.X * size.Y; len(got) != n {
		return fmt.Errorf("%d bytes, not %d", len(got), n)
	}
	if n := bytes.Count(got, []byte{v}); n != len(got) {
		return fmt.Errorf("%d of %d bytes are not %#02x", len(got)-n, len(got), v)
	}
	return nil
}
