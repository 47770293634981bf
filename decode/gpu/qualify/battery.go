//go:build cgo && linux

package qualify

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu"
)

const (
	// A decoder has room for a call of the largest tiles it has seen: one of many
	// tiles is an engine's own, which sees small ones.
	lanes, tiles, mostTiles = 2, 16, 257
	arenaBytes              = 256 << 20
	ringBytes               = 128 << 20
	stepTime                = 2 * time.Minute
)

// battery is one run. e is its engine, on which all but a few steps are run; many
// decodes the largest batches by one call, nil until the first.
type battery struct {
	o       Options
	ctx     context.Context
	e, many *gpu.Engine
	result  Result
	lost    bool
}

// step is a name and what it does.
type step struct {
	name string
	run  func() error
}

// errUnclaimed ends a step that the engine makes no claim for.
var errUnclaimed = errors.New("the engine leaves it to the CPU")

// Run puts a device to the proof. It ends after a bounded time whatever the device
// does: an engine gives up a worker that does not answer, and after a loss no step
// is run.
func Run(ctx context.Context, o Options) Result {
	if o.Step <= 0 {
		o.Step = stepTime
	}
	b := &battery{o: o, ctx: ctx}
	for _, s := range b.steps() {
		b.take(ctx, s)
	}
	for _, e := range []*gpu.Engine{b.e, b.many} {
		if e == nil {
			continue
		}
		if err := e.Close(); err != nil {
			b.result.Steps = append(b.result.Steps, Step{Name: "close", Verdict: Failed, Reason: err.Error()})
		}
	}
	return b.result
}

// steps are in an order in which each stands on those before it.
func (b *battery) steps() []step {
	list := []step{
		{"open and proof", b.open},
		{"host copy", b.hostCopy},
		{"layouts and types", b.layouts},
		{"fill", b.fill},
		{"area filter", b.areaFilter},
	}
	for _, s := range samplings() {
		list = append(list, step{"decode " + s.name, func() error { return b.decode(s) }})
	}
	for _, s := range samplings()[1:4] {
		list = append(list, step{"upsampling " + s.name, func() error { return b.upsampling(s) }})
	}
	list = append(list, step{"colour", b.colour}, step{"streams", b.streams}, step{"left to the CPU", b.left})
	for _, n := range []int{1, 16, 17, 255, 256, 257} {
		list = append(list, step{fmt.Sprintf("batch of %d", n), func() error { return b.batch(n) }})
	}
	return append(list,
		step{"64 repeats", b.repeats},
		step{"state A, B, A", b.state},
		step{"memory", b.memory},
		step{"two lanes at once", b.twoLanes},
		step{"bad input", b.badInput},
		step{"two engines at once", b.twoEngines},
		step{"bad input, not walked", b.unwalked},
	)
}

// take runs a step and enters its verdict.
func (b *battery) take(ctx context.Context, s step) {
	v := Step{Name: s.name, Verdict: Passed}
	if b.lost {
		v.Verdict = NotRun
		b.result.Steps = append(b.result.Steps, v)
		return
	}
	var end context.CancelFunc
	b.ctx, end = context.WithTimeout(ctx, b.o.Step)
	defer end()
	switch err := s.run(); {
	case errors.Is(err, errUnclaimed):
		v.Verdict, v.Reason = NotClaimed, err.Error()
	case err != nil:
		v.Verdict, v.Reason = Failed, err.Error()
		if b.e == nil || errors.Is(err, microtome.ErrDeviceLost) || !b.e.Ready() || b.ctx.Err() != nil || b.o.Brief {
			b.lost = true
		}
	}
	b.result.Steps = append(b.result.Steps, v)
}

// engine opens one more engine on the device.
func (b *battery) engine(change func(*gpu.Options)) (*gpu.Engine, error) {
	from := &b.o.Engine
	o := gpu.Options{
		Vendor: from.Vendor, Index: from.Index, Libraries: from.Libraries, CPU: from.CPU, Worker: from.Worker, Env: from.Env,
		Start: from.Start, Timeout: from.Timeout, Quiet: true,
		Lanes: lanes, Batch: tiles, Arena: arenaBytes, Ring: ringBytes, Beside: -1, Sample: -1,
	}
	if change != nil {
		change(&o)
	}
	if len(o.Worker) == 0 {
		return nil, errors.New("an engine is examined in a child")
	}
	return gpu.Open(o)
}

func (b *battery) open() (err error) {
	if b.e, err = b.engine(nil); err != nil {
		b.e = nil
		return err
	}
	b.result.Limits = b.e.Limits()
	return nil
}

// claims says whether the engine claims a sampling.
func (b *battery) claims(s sampling) error {
	for _, l := range b.result.Limits.Samplings {
		if l.Name == s.name {
			if l.Why != nil {
				return fmt.Errorf("%w: %w", errUnclaimed, l.Why)
			}
			return nil
		}
	}
	return fmt.Errorf("the engine does not know %s", s.name)
}

// once decodes pictures by one call, and returns their pixels, which the device
// decoded.
func once(ctx context.Context, e *gpu.Engine, lane int, list []*picture) ([]microtome.Pixels, error) {
	jobs := make([]microtome.Job, len(list))
	for i, p := range list {
		jobs[i].Tile = p.tile
	}
	got, err := e.Once(ctx, lane, jobs)
	if err != nil {
		return nil, err
	}
	return decoded(list, got, true)
}

// decoded are the pixels of results, none of which may be an error or, with
// byDevice, the CPU's.
func decoded(list []*picture, got []microtome.Result, byDevice bool) ([]microtome.Pixels, error) {
	var out []microtome.Pixels
	var wrong error
	for i, r := range got {
		switch {
		case r.Err != nil:
			if wrong == nil {
				wrong = fmt.Errorf("%s: %w", list[i].name, r.Err)
			}
			continue
		case byDevice && wrong == nil && cpuMade(r.Pixels):
			wrong = fmt.Errorf("%s: the device refused the batch of %d", list[i].name, len(list))
		}
		out = append(out, r.Pixels)
	}
	if wrong != nil {
		release(out)
		return nil, wrong
	}
	return out, nil
}

func cpuMade(p microtome.Pixels) bool {
	d, ok := p.(microtome.DevicePixels)
	return !ok || d.ByCPU()
}

func release(list []microtome.Pixels) {
	for _, p := range list {
		p.Release()
	}
}

// read returns the samples of pixels of one number of channels, packed rows each.
func read(ctx context.Context, e *gpu.Engine, list []microtome.Pixels) ([][]byte, error) {
	batch := microtome.DeviceBatch{Channels: list[0].Channels(), Host: true}
	for _, p := range list {
		batch.Width, batch.Height = max(batch.Width, p.Width()), max(batch.Height, p.Height())
	}
	for _, p := range list {
		batch.Patches = append(batch.Patches, microtome.DevicePatch{
			Covered: p.Width() == batch.Width && p.Height() == batch.Height,
			Pieces:  []microtome.DevicePiece{{Pixels: p, From: image.Rect(0, 0, p.Width(), p.Height())}},
		})
	}
	a, err := e.Make(ctx, &batch)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	out := make([][]byte, len(list))
	stride := batch.Width * batch.Channels
	for i, p := range list {
		row := p.Width() * batch.Channels
		for y := range p.Height() {
			out[i] = append(out[i], a.Host()[(i*batch.Height+y)*stride:][:row]...)
		}
	}
	return out, nil
}

// readAll is read of pixels whose channels differ.
func readAll(ctx context.Context, e *gpu.Engine, list []microtome.Pixels) ([][]byte, error) {
	out := make([][]byte, len(list))
	for _, ch := range []int{1, 3} {
		var some []microtome.Pixels
		var at []int
		for i, p := range list {
			if p.Channels() == ch {
				some, at = append(some, p), append(at, i)
			}
		}
		if len(some) == 0 {
			continue
		}
		got, err := read(ctx, e, some)
		if err != nil {
			return nil, err
		}
		for k, i := range at {
			out[i] = got[k]
		}
	}
	return out, nil
}

// samplesOf decodes pictures by one call and reads them.
func samplesOf(ctx context.Context, e *gpu.Engine, lane int, list []*picture) ([][]byte, error) {
	px, err := once(ctx, e, lane, list)
	if err != nil {
		return nil, err
	}
	defer release(px)
	return readAll(ctx, e, px)
}

// exact decodes pictures by one call and holds all of them against libjpeg-turbo's.
func exact(ctx context.Context, e *gpu.Engine, lane int, list []*picture) error {
	got, err := samplesOf(ctx, e, lane, list)
	if err != nil {
		return err
	}
	return equal(list, got)
}

// equal holds samples against libjpeg-turbo's.
func equal(list []*picture, got [][]byte) error {
	for i, p := range list {
		if err := p.differs(got[i], 0, 2); err != nil {
			return fmt.Errorf("tile %d of %d: %w", i+1, len(list), err)
		}
	}
	return nil
}
