//go:build cgo && linux

package gpu

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"image"
	"strings"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/sof"
)

// The proof's tiles, drawn and encoded by our own synth (see prove_test.go, which
// makes them): a name is the sampling and the colour model.
//
//go:embed proof/*.jpg
var proofTiles embed.FS

// needed are the samplings without which the engine refuses to start.
var needed = map[canon.Sampling]bool{canon.S444: true, canon.S420: true}

// proofError is why the proof was not passed.
type proofError struct{ error }

func (e *proofError) Unwrap() error { return e.error }

// prove decodes the embedded tiles on the device and holds the pixels against
// libjpeg-turbo's. A sampling that differs is left to the CPU, or, when most
// slides need it, is the reason not to start.
func (e *Engine) prove() error {
	for s := range needed {
		if !e.kinds[s] && e.o.trial == 0 {
			return errors.New(s.String() + e.whys[s])
		}
	}
	files, err := proofTiles.ReadDir("proof")
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, f := range files {
		data, err := proofTiles.ReadFile("proof/" + f.Name())
		if err != nil {
			return err
		}
		t, err := proofTile(f.Name(), data)
		if err != nil {
			return err
		}
		var stream canon.Stream
		if err := canon.Parse(&t, &stream); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		if !e.kinds[stream.Sampling] {
			continue
		}
		diff, err := e.difference(ctx, &t)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		if diff == 0 {
			continue
		}
		if needed[stream.Sampling] || e.o.trial != 0 {
			return fmt.Errorf("%s: pixels are up to %d off libjpeg-turbo's", f.Name(), diff)
		}
		e.kinds[stream.Sampling] = false
	}
	return nil
}

// proofTile names what a file of the proof is.
func proofTile(name string, data []byte) (microtome.Tile, error) {
	t := microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: microtome.ColorYCbCr, Samples: 3, Bits: 8, Predictor: 1, FillOrder: 1}
	switch {
	case strings.Contains(name, "rgb"):
		t.Color = microtome.ColorRGB
	case strings.Contains(name, "gray"):
		t.Color, t.Samples = microtome.ColorGray, 1
	}
	f, err := sof.Read(data)
	t.Width, t.Height = f.Width, f.Height
	t.VisibleWidth, t.VisibleHeight, t.StreamHeight = f.Width, f.Height, f.Height
	return t, err
}

// difference is how far the device's pixels of a tile are off the CPU's, at most.
// It is an error when the device did not decode it.
func (e *Engine) difference(ctx context.Context, t *microtome.Tile) (int, error) {
	before := e.count.decoded.Load()
	got := make(chan microtome.Result, 1)
	e.Load(ctx, []microtome.Job{{Tile: *t}}, func(_ int, r microtome.Result) { got <- r })
	r := <-got
	if r.Err != nil {
		return 0, r.Err
	}
	defer r.Pixels.Release()
	if e.count.decoded.Load() == before {
		return 0, fmt.Errorf("the device did not decode it (the decoder's code: %d)", e.count.refusal.Load())
	}
	return e.compare(ctx, t, r.Pixels)
}

// compare decodes a tile on the CPU, and reads its device pixels back.
func (e *Engine) compare(ctx context.Context, t *microtome.Tile, px microtome.Pixels) (int, error) {
	w, h, ch := t.VisibleWidth, t.VisibleHeight, px.Channels()
	a, err := e.lay(ctx, &microtome.DeviceBatch{
		Width: w, Height: h, Channels: ch, Host: true,
		Patches: []microtome.DevicePatch{{Covered: true, Pieces: []microtome.DevicePiece{{Pixels: px, From: image.Rect(0, 0, w, h)}}}},
	})
	if err != nil {
		return 0, err
	}
	defer a.Release()
	want := e.o.CPU.DecodeBatch(ctx, []microtome.Job{{Tile: *t, Priority: microtome.PriorityBackground}})[0]
	if want.Err != nil {
		return 0, want.Err
	}
	defer want.Pixels.Release()
	pix, stride, ok := want.Pixels.Host()
	if !ok || want.Pixels.Channels() != ch {
		return 0, errors.New("the CPU's pixels are of another kind")
	}
	diff := 0
	for y := range h {
		for i, v := range pix[y*stride:][:w*ch] {
			d := int(v) - int(a.Host()[y*w*ch+i])
			diff = max(diff, d, -d)
		}
	}
	return diff, nil
}

// sample has a tile that the device decoded compared, in the background. A
// difference turns the engine off.
func (e *Engine) sample(l *loading) {
	tile := l.job.Tile
	l.px.Retain()
	e.all.Go(func() {
		defer l.px.Release()
		diff, err := e.compare(context.Background(), &tile, l.px)
		switch {
		case errors.Is(err, microtome.ErrCorrupt):
			e.turnOff(fmt.Errorf("a tile that libjpeg-turbo calls corrupt was decoded: %w", err))
		case err != nil: // lost meanwhile, or no memory: the next sample will do
		case diff != 0:
			e.turnOff(fmt.Errorf("a decoded tile is up to %d off libjpeg-turbo's", diff))
		default:
			e.count.checked.Add(1)
		}
	})
}
