//go:build cgo && linux

package qualify

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/jpegenc"
)

// picture is a tile and what libjpeg-turbo makes of it: packed rows.
type picture struct {
	name     string
	tile     microtome.Tile
	want     []byte
	channels int
}

// sampling is one that an engine may claim, by the engine's name of it.
type sampling struct {
	name string
	of   jpegenc.Sampling
	gray bool
}

func samplings() []sampling {
	return []sampling{
		{"4:4:4", jpegenc.S444, false}, {"4:2:2", jpegenc.S422, false}, {"4:2:0", jpegenc.S420, false},
		{"4:4:0", jpegenc.S440, false}, {"grey", jpegenc.S444, true},
	}
}

// form is how a picture is stored.
type form struct {
	sampling
	color    microtome.Color
	quality  int
	restart  int
	asStored bool // the samples are the stream's, whatever color says
}

// scene is samples that are hard on a decoder: ramps, edges in full colours, flat
// parts and noise, other ones for each seed.
func scene(w, h, ch int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0x51))
	pix := make([]byte, w*h*ch)
	tilt := int(seed % 5)
	for y := range h {
		for x := range w {
			cell := (x/24 + 3*(y/20) + int(seed)) % 7
			for c := range ch {
				v := x*(c+1) + y*(tilt+c)
				switch cell {
				case 0:
					v = 255 * ((x>>1 + y>>c) & 1)
				case 2:
					v = rng.IntN(256)
				case 3:
					v = 37 * (c + 1 + int(seed%3))
				case 5:
					v = 255 * ((x + c*y) / 5 & 1)
				}
				pix[(y*w+x)*ch+c] = byte(v)
			}
		}
	}
	return pix
}

// encoded is a tile of samples.
func encoded(pix []byte, w, h int, f form) (microtome.Tile, error) {
	ch, o := 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: f.of, Quality: f.quality, Restart: f.restart}
	switch {
	case f.gray:
		ch, o.Color = 1, jpegenc.Gray
	case f.asStored && f.of == jpegenc.S444:
		o.Color = jpegenc.RGB
	}
	t := microtome.Tile{Codec: microtome.CodecJPEG, Color: f.color, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: ch, Bits: 8, Predictor: 1, FillOrder: 1}
	enc, err := jpegenc.New(o)
	if err == nil {
		t.Data, err = enc.Encode(nil, pix, w, h, w*ch)
	}
	return t, err
}

// drawn is a picture of a scene, and libjpeg-turbo's pixels of it.
func (b *battery) drawn(w, h int, seed uint64, f form) (*picture, error) {
	ch := 3
	if f.gray {
		ch = 1
	}
	t, err := encoded(scene(w, h, ch, seed), w, h, f)
	if err != nil {
		return nil, err
	}
	p := &picture{name: fmt.Sprintf("%s of %dx%d", f.name, w, h), tile: t, channels: ch}
	p.want, err = b.onCPU(&t)
	return p, err
}

// onCPU is libjpeg-turbo's pixels of a tile.
func (b *battery) onCPU(t *microtome.Tile) ([]byte, error) {
	r := b.o.Engine.CPU.DecodeBatch(b.ctx, []microtome.Job{{Tile: *t, Priority: microtome.PriorityBackground}})[0]
	if r.Err != nil {
		return nil, fmt.Errorf("the CPU: %w", r.Err)
	}
	defer r.Pixels.Release()
	pix, stride, ok := r.Pixels.Host()
	if !ok {
		return nil, errors.New("the CPU's pixels are of another kind")
	}
	row := r.Pixels.Width() * r.Pixels.Channels()
	out := make([]byte, 0, row*r.Pixels.Height())
	for y := range r.Pixels.Height() {
		out = append(out, pix[y*stride:][:row]...)
	}
	return out, nil
}

// differs says where samples are not libjpeg-turbo's, nil when they are. Channels
// first to last are looked at.
func (p *picture) differs(got []byte, first, last int) error {
	if len(got) != len(p.want) {
		return fmt.Errorf("%s: %d bytes, not %d", p.name, len(got), len(p.want))
	}
	n, most, at := 0, 0, -1
	for i, v := range p.want {
		if c := i % p.channels; v == got[i] || c < first || c > last {
			continue
		}
		if n++; at < 0 {
			at = i
		}
		most = max(most, int(v)-int(got[i]), int(got[i])-int(v))
	}
	if n == 0 {
		return nil
	}
	w := p.tile.VisibleWidth
	px := at / p.channels
	return fmt.Errorf("%s: %d of %d samples differ, by up to %d, first at column %d, row %d, channel %d: %d, not %d",
		p.name, n, len(got), most, px%w, px/w, at%p.channels, got[at], p.want[at])
}
