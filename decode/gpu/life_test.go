//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/wire"
	"github.com/microtome/microtome/synth/jpegenc"
)

// An engine whose pixels were wrong is off for good: nobody can ask it on again.
func TestWrongPixelsStayOff(t *testing.T) { eachVendor(t, testWrongPixelsStayOff) }

func testWrongPixelsStayOff(t *testing.T, v *fakeVendor) {
	o := testOptions(t, v, "@decode:15+:flip")
	o.Sample = 1
	e := opened(t, o)
	tile := tileOf(t, 256, 256, 9, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420})
	for i := 0; e.Ready(); i++ {
		if i == 400 {
			t.Fatal("a wrong pixel was not seen")
		}
		if r := loadAll(e, []microtome.Job{{Tile: tile}})[0]; r.Err == nil {
			r.Pixels.Release()
		}
		time.Sleep(time.Millisecond)
	}
	if err := e.Reset(); err == nil || !strings.Contains(err.Error(), "off libjpeg-turbo's") {
		t.Errorf("Reset says %v", err)
	}
	time.Sleep(50 * time.Millisecond)
	if st := e.Stats(); st.State != "off" || st.Starts != 1 {
		t.Errorf("it is %s after %d starts", st.State, st.Starts)
	}
}

// Three deaths turn the engine off, and Reset on again, with three more to come.
func TestThreeStrikes(t *testing.T) { eachVendor(t, testThreeStrikes) }

func testThreeStrikes(t *testing.T, v *fakeVendor) {
	e := opened(t, testOptions(t, v, ""))
	for round := range 2 {
		for range maxStrikes {
			waitReady(t, e)
			_ = e.session.Load().run.(*child).cmd.Process.Kill()
			for e.Ready() { // a death is seen by whoever sends something
				_, _ = e.session.Load().send(e.o.Lanes, &wire.Batch{}, nil)
				tile := tileOf(t, 64, 64, 1, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.RGB})
				if r := loadAll(e, []microtome.Job{{Tile: tile}})[0]; r.Err == nil {
					r.Pixels.Release()
				}
			}
		}
		st := e.Stats()
		if st.State != "off" || !strings.Contains(st.Why, "died 3 times") || st.Strikes != int64(maxStrikes*(round+1)) {
			t.Errorf("it is %s (%s) after %d strikes", st.State, st.Why, st.Strikes)
		}
		if err := e.Reset(); err != nil {
			t.Fatal(err)
		}
		waitReady(t, e)
	}
}

// Many batches that filter, in a small arena, wait for each other and not for ever.
func TestMakersShareASmallArena(t *testing.T) { eachVendor(t, testMakersShareASmallArena) }

func testMakersShareASmallArena(t *testing.T, v *fakeVendor) {
	o := testOptions(t, v, "")
	o.Arena, o.Worker = leastArena, nil
	e := opened(t, o)
	tile := tileOf(t, 240, 240, 1, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.RGB})
	px := loadAll(e, []microtome.Job{{Tile: tile}})[0].Pixels
	defer px.Release()
	start := time.Now()
	var makers sync.WaitGroup
	for k := range 12 {
		makers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 1))
			for range 12 {
				if err := makeFiltered(e, px, rng); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	if d := time.Since(start); d > roomWait {
		t.Errorf("that took %v", d)
	}
	if bytes, n := e.session.Load().arrays.inUse(); n != 0 {
		t.Errorf("%d pieces of %d bytes are still in use", n, bytes)
	}
}

// makeFiltered makes a batch whose answer and sources are of any size.
func makeFiltered(e *Engine, px microtome.Pixels, rng *rand.Rand) error {
	b := microtome.DeviceBatch{Width: 1 + rng.IntN(300), Height: 1 + rng.IntN(300), Channels: 3, Host: true}
	for range 1 + rng.IntN(5) {
		w, h := 1+rng.IntN(240), 1+rng.IntN(240)
		taps := func(n, of int) []microtome.Tap {
			out := make([]microtome.Tap, n)
			for i := range out {
				out[i] = microtome.Tap{First: i * of / n, Weights: []uint32{1 << 14}}
			}
			return out
		}
		b.Patches = append(b.Patches, microtome.DevicePatch{
			Covered: true, Pieces: []microtome.DevicePiece{{Pixels: px, From: image.Rect(0, 0, w, h)}},
			Filter: &microtome.DeviceFilter{Width: w, Height: h, Channels: 3, Across: taps(b.Width, w), Down: taps(b.Height, h)},
		})
	}
	a, err := e.Make(context.Background(), &b)
	if err != nil {
		return fmt.Errorf("%d patches of %dx%d: %w", len(b.Patches), b.Width, b.Height, err)
	}
	a.Release()
	return nil
}
