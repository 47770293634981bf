package tiles_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/formats"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/synth/tiffw"
	"github.com/microtome/microtome/tiles"
)

// TestNothingIsDecodedForThoseWhoLeft: 500 callers, of whom 490 leave at once.
// What is decoded after that is what was under way, and what the others need.
func TestNothingIsDecodedForThoseWhoLeft(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64)) // so that a queue forms
	b := tiffw.NewBuffer()
	if err := synth.Write(b, synth.Spec{Format: synth.TIFF, Width: 12800, Height: 10240, Tile: 256, Levels: 1, Codec: synth.JPEG}); err != nil {
		t.Fatal(err)
	}
	s, err := formats.Open(t.Context(), &memory{bytes.NewReader(b.Bytes()), "leave"}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const callers, stay, workers, per = 500, 10, 2, 4
	cpu := decode.NewCPU(decode.Options{Workers: workers, Queue: 4 * callers})
	defer cpu.Close()
	r, err := tiles.New(tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	places := rand.New(rand.NewPCG(1, 1)).Perm(504)
	gone, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range callers {
		ctx, left := gone, true
		if i%(callers/stay) == 0 {
			ctx, left = t.Context(), false
		}
		all.Go(func() { // four tiles each
			at := places[i] // no scan
			q := tiles.Region{L0X: int64(at%24*512 + 128 + i%97), L0Y: int64(at/24*448 + 128), Width: 256, Height: 256}
			px, _, err := r.RegionPixels(ctx, s, q, tiles.PixelOptions{Priority: microtome.PrioritySampler})
			switch {
			case err == nil:
				px.Release()
			case !left || !errors.Is(err, context.Canceled):
				t.Error(err)
			}
		})
	}
	for end := time.Now().Add(10 * time.Second); cpu.Stats().Waiting < callers/2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only %d wait", cpu.Stats().Waiting)
		}
	}
	leave()
	before := cpu.Stats()
	all.Wait()
	after := cpu.Stats()
	if n := after.Full + after.Partial - before.Full - before.Partial; n > workers+stay*per {
		t.Errorf("%d tiles decoded after %d of %d callers left; %d were under way and the others need %d", n, callers-stay, callers, workers, stay*per)
	}
	if after.Running != 0 || after.Waiting != 0 {
		t.Errorf("%+v", after)
	}
}
