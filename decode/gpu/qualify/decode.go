//go:build cgo && linux

package qualify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"sync"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/synth/jpegenc"
)

// loadBy is an engine's Load, until all tiles have come.
func loadBy(ctx context.Context, e *gpu.Engine, jobs []microtome.Job) []microtome.Result {
	out := make([]microtome.Result, len(jobs))
	var wait sync.WaitGroup
	wait.Add(len(jobs))
	e.Load(ctx, jobs, func(i int, r microtome.Result) {
		out[i] = r
		wait.Done()
	})
	wait.Wait()
	return out
}

// sizes are those of a sampling that the device has and whose streams have whole
// chroma samples.
func (b *battery) sizes(s sampling) []image.Point {
	list := []image.Point{{64, 64}, {65, 67}, {127, 129}, {240, 240}, {255, 241}, {256, 256}, {512, 96}, {1023, 65}, {64, 2048}, {2047, 64}, {1024, 1024}, {2048, 2048}}
	for i := range list {
		list[i].X += list[i].X % s.of.H
		list[i].Y += list[i].Y % s.of.V
	}
	l := b.result.Limits
	return slices.DeleteFunc(list, func(p image.Point) bool { return min(p.X, p.Y) < l.MinSide || max(p.X, p.Y) > l.MaxSide })
}

// asStored decodes the sizes of a sampling, without colour, and looks at channels
// first to last.
func (b *battery) asStored(s sampling, list []image.Point, first, last int) error {
	if err := b.claims(s); err != nil {
		return err
	}
	for i, size := range list {
		f := form{sampling: s, color: microtome.ColorRGB, quality: 75, asStored: true}
		if s.gray {
			f.color = microtome.ColorGray
		}
		p, err := b.drawn(size.X, size.Y, uint64(100+i), f)
		if err != nil {
			return err
		}
		got, err := samplesOf(b.ctx, b.e, 0, []*picture{p})
		if err == nil {
			err = p.differs(got[0], first, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decode holds what comes of the decoder: the first component, and where none is
// upsampled all of them.
func (b *battery) decode(s sampling) error {
	last := 0
	if s.of == jpegenc.S444 {
		last = 2
	}
	return b.asStored(s, b.sizes(s), 0, last)
}

// upsampling holds the others.
func (b *battery) upsampling(s sampling) error {
	list := slices.DeleteFunc(b.sizes(s), func(p image.Point) bool { return p.X*p.Y > 1<<18 })
	return b.asStored(s, list, 1, 2)
}

// colour holds colours: nearly all of the Cb and Cr there are, at three of Y, scenes
// of every sampling, and grey of which white is 0.
func (b *battery) colour() error {
	pix := make([]byte, 256*256*3)
	for _, y := range []byte{0, 128, 255} {
		for i := range 256 * 256 {
			pix[3*i], pix[3*i+1], pix[3*i+2] = y, byte(i), byte(i>>8)
		}
		t, err := encoded(pix, 256, 256, form{sampling: samplings()[0], quality: 100, color: microtome.ColorYCbCr, asStored: true})
		if err != nil {
			return err
		}
		p := &picture{name: fmt.Sprintf("all of Cb and Cr at Y %d", y), tile: t, channels: 3}
		if p.want, err = b.onCPU(&t); err != nil {
			return err
		}
		if err := exact(b.ctx, b.e, 0, []*picture{p}); err != nil {
			return err
		}
	}
	for i, s := range samplings() {
		if b.claims(s) != nil {
			continue
		}
		for k, size := range []image.Point{{240, 240}, {254, 130}, {66, 512}} {
			f := form{sampling: s, color: microtome.ColorYCbCr, quality: 80}
			if s.gray {
				f.color = microtome.ColorGrayWhite
			}
			p, err := b.drawn(size.X, size.Y, uint64(200+10*i+k), f)
			if err == nil {
				err = exact(b.ctx, b.e, 0, []*picture{p})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// streams holds what streams may have: restarts, the coarsest and the finest tables.
func (b *battery) streams() error {
	for i, s := range samplings() {
		if b.claims(s) != nil {
			continue
		}
		for k, f := range []form{{quality: 1}, {quality: 100}, {quality: 50, restart: 1}, {quality: 85, restart: 7}} {
			f.sampling, f.color = s, microtome.ColorYCbCr
			if s.gray {
				f.color = microtome.ColorGray
			}
			p, err := b.drawn(192, 130, uint64(300+10*i+k), f)
			if err == nil {
				p.name += fmt.Sprintf(", quality %d, restarts %d", f.quality, f.restart)
				err = exact(b.ctx, b.e, 0, []*picture{p})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// left holds tiles that no device has: the CPU decodes them, and they are copied.
func (b *battery) left() error {
	ycc := func(of jpegenc.Sampling, name string) form {
		return form{sampling: sampling{name: name, of: of}, color: microtome.ColorYCbCr, quality: 75}
	}
	for i, c := range []struct {
		w, h int
		f    form
	}{
		{63, 64, ycc(jpegenc.S444, "4:4:4")}, {255, 255, ycc(jpegenc.S420, "4:2:0")}, {129, 80, ycc(jpegenc.S422, "4:2:2")},
		{80, 129, ycc(jpegenc.S440, "4:4:0")}, {256, 256, ycc(jpegenc.S411, "4:1:1")}, {2049, 64, ycc(jpegenc.S444, "4:4:4")},
	} {
		p, err := b.drawn(c.w, c.h, uint64(400+i), c.f)
		if err != nil {
			return err
		}
		r := b.load([]microtome.Job{{Tile: p.tile}})
		px, err := decoded([]*picture{p}, r, false)
		if err != nil {
			return err
		}
		if !cpuMade(px[0]) {
			err = fmt.Errorf("%s: the device decoded it", p.name)
		}
		var got [][]byte
		if err == nil {
			got, err = read(b.ctx, b.e, px)
		}
		release(px)
		if err == nil {
			err = p.differs(got[0], 0, 2)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crowd is n different pictures: four of each sampling and colour in turn, most of one
// size.
func (b *battery) crowd(n int, seed uint64) ([]*picture, error) {
	var claimed []sampling
	for _, s := range samplings() {
		if b.claims(s) == nil {
			claimed = append(claimed, s)
		}
	}
	shapes := []image.Point{{64, 64}, {64, 64}, {64, 64}, {96, 80}, {64, 64}, {64, 64}, {128, 64}}
	for i := range shapes {
		shapes[i].X, shapes[i].Y = max(shapes[i].X, b.result.Limits.MinSide), max(shapes[i].Y, b.result.Limits.MinSide)
	}
	var out []*picture
	for i := range n {
		f := form{sampling: claimed[i/4%len(claimed)], color: microtome.ColorYCbCr, quality: 70 + i%20}
		if f.gray {
			f.color = microtome.ColorGray
		}
		p, err := b.drawn(shapes[i%len(shapes)].X, shapes[i%len(shapes)].Y, seed+uint64(i), f)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// batch decodes n pictures by one call: each is what it is alone, and
// libjpeg-turbo's.
func (b *battery) batch(n int) error {
	list, err := b.crowd(n, uint64(1000*n))
	if err == nil && b.many == nil {
		b.many, err = b.engine(func(o *gpu.Options) { o.Lanes, o.Batch = 1, mostTiles })
	}
	if err != nil {
		return err
	}
	together, err := samplesOf(b.ctx, b.many, 0, list)
	if err != nil {
		return err
	}
	for i, p := range list {
		alone, err := samplesOf(b.ctx, b.many, 0, []*picture{p})
		if err != nil {
			return err
		}
		if !bytes.Equal(alone[0], together[i]) {
			return fmt.Errorf("tile %d of %d is not what it is alone: %w", i+1, n, errors.Join(p.differs(together[i], 0, 2), p.differs(alone[0], 0, 2)))
		}
	}
	return equal(list, together)
}
