//go:build cgo && linux

package tiles_test

import (
	"context"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/tiles"
)

// frail is a device over host memory, which may lose it.
type frail struct {
	cpu   microtome.Decoder
	life  int
	lost  func()
	loses bool // while the next tiles are on their way
	made  int
}

// frailPixels lie in the memory of one life.
type frailPixels struct {
	microtome.Pixels
	life int
}

func (d *frail) Name() string                      { return "frail:0" }
func (d *frail) Ready() bool                       { return true }
func (d *frail) Memory() int64                     { return 64 << 20 }
func (d *frail) Watch(_ func() bool, lost func())  { d.lost = lost }
func (d *frail) Stats() (st microtome.DeviceStats) { return st }
func (d *frail) Reset() error                      { return nil }
func (d *frail) Close() error                      { return nil }
func (p *frailPixels) Host() ([]byte, int, bool)   { return nil, 0, false }
func (d *frail) Load(ctx context.Context, jobs []microtome.Job, then func(int, microtome.Result)) {
	all := d.cpu.DecodeBatch(ctx, jobs)
	life := d.life
	if d.loses {
		d.life, d.loses = d.life+1, false
		d.lost()
	}
	for i, r := range all {
		if r.Err == nil {
			r.Pixels = &frailPixels{r.Pixels, life}
		}
		then(i, r)
	}
}

// frailArray is an answer that nobody looks at.
type frailArray []byte

func (a frailArray) Host() []byte { return a }
func (a frailArray) Bytes() int64 { return int64(len(a)) }
func (a frailArray) Release()     {}

func (d *frail) Make(_ context.Context, b *microtome.DeviceBatch) (microtome.DeviceArray, error) {
	for _, p := range b.Patches {
		for _, c := range p.Pieces {
			if c.Pixels.(*frailPixels).life != d.life {
				return nil, microtome.ErrDeviceLost
			}
		}
	}
	d.made += len(b.Patches)
	return make(frailArray, len(b.Patches)*b.Width*b.Height*b.Channels), nil
}

// Tiles that were decoded before a device lost its memory and arrive after it are
// not kept for the batches that follow.
func TestTilesOfALostDeviceAreForgotten(t *testing.T) {
	s := openedSlide(t, "frail", synth.Spec{Format: synth.TIFF, Codec: synth.Deflate, Width: 600, Height: 500, Levels: 1})
	cpu := decode.NewCPU(decode.Options{})
	defer cpu.Close()
	d := &frail{cpu: cpu, loses: true}
	r := newReader(t, tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 8 << 20, Devices: devices(d)})
	defer r.Close()
	var batch []tiles.Patch
	for i := range 4 {
		batch = append(batch, tiles.Patch{Slide: s, Region: tiles.Region{L0X: int64(100 * i), Width: 64, Height: 64}})
	}
	for k, want := range []int{0, len(batch), 2 * len(batch)} {
		results, _, err := r.Patches(t.Context(), batch, tiles.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			if res.Err != nil {
				t.Error(res.Err)
				continue
			}
			res.Pixels.Release()
		}
		if d.made != want {
			t.Errorf("batch %d: %d patches were made by the device so far, want %d", k, d.made, want)
		}
	}
}
