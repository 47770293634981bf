//go:build cgo && linux

package qualify

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu"
)

// damaged are broken forms of a picture: cut short, a byte less, bits turned over,
// and a marker inside.
func damaged(p *picture) []microtome.Tile {
	var out []microtome.Tile
	for i, at := range []int{2, 3, 5, 7} { // tenths of the stream, behind its tables
		d := bytes.Clone(p.tile.Data)
		k := max(700, len(d)*at/10)
		switch i {
		case 0:
			d = append(d[:k], 0xFF, 0xD9)
		case 1:
			d = append(d[:k], d[k+1:]...)
		case 2:
			for n := range 9 {
				d[k+n] ^= 0x6D
			}
		case 3:
			d[k], d[k+1] = 0xFF, 0xC3
		}
		t := p.tile
		t.Data = d
		out = append(out, t)
	}
	return out
}

// mixture is good pictures with damaged tiles between them; bad has those.
func (b *battery) mixture() (list []*picture, bad []bool, err error) {
	good, err := b.crowd(12, 27_000)
	if err != nil {
		return nil, nil, err
	}
	for i, p := range good {
		list, bad = append(list, p), append(bad, false)
		if i%3 != 0 {
			continue
		}
		// Of the same size and sampling: an engine may make a call of each.
		t := damaged(p)[i/3]
		list, bad = append(list, &picture{name: fmt.Sprintf("damaged tile %d", i/3), tile: t, channels: p.channels}), append(bad, true)
	}
	return list, bad, nil
}

// badInput has damaged tiles loaded between good ones, as a server does: each is the
// CPU's error, or has the CPU's pixels; the good ones have theirs.
func (b *battery) badInput() error {
	list, bad, err := b.mixture()
	if err != nil {
		return err
	}
	for range 8 {
		var jobs []microtome.Job
		for _, p := range list {
			jobs = append(jobs, microtome.Job{Tile: p.tile})
		}
		results := b.load(jobs)
		for i, p := range list {
			if e := b.oneOf(p, bad[i], results[i]); err == nil {
				err = e
			}
		}
		if err != nil {
			return err
		}
	}
	return b.nextIsGood(b.e)
}

// oneOf holds a result of a mixture.
func (b *battery) oneOf(p *picture, bad bool, r microtome.Result) error {
	want := p.want
	if bad {
		var err error
		if want, err = b.onCPU(&p.tile); err != nil {
			if r.Err == nil {
				r.Pixels.Release()
				return fmt.Errorf("%s: it was decoded, and is corrupt", p.name)
			}
			if !errors.Is(r.Err, microtome.ErrCorrupt) {
				return fmt.Errorf("%s: %w", p.name, r.Err)
			}
			return nil
		}
	}
	px, err := decoded([]*picture{p}, []microtome.Result{r}, !bad)
	if err != nil {
		return err
	}
	defer release(px)
	got, err := read(b.ctx, b.e, px)
	if err != nil {
		return err
	}
	q := *p
	q.want = want
	return q.differs(got[0], 0, 2)
}

// nextIsGood decodes a good batch on each lane.
func (b *battery) nextIsGood(e *gpu.Engine) error {
	list, err := b.crowd(9, 29_000)
	if err != nil {
		return err
	}
	if err := exact(b.ctx, e, 0, list); err != nil {
		return fmt.Errorf("the batch behind the bad ones: %w", err)
	}
	return nil
}

// unwalked gives damaged streams to the decoder itself, one a call, which no server
// does: it returns, the good tiles of the call are right, by whomever, and so is the
// next call.
func (b *battery) unwalked() (err error) {
	e, err := b.engine(func(o *gpu.Options) { o.Lanes, o.Batch, o.Unchecked = 1, 32, true })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	list, bad, err := b.mixture()
	if err != nil {
		return err
	}
	for k := range list {
		if !bad[k] {
			continue
		}
		var call []*picture
		var jobs []microtome.Job
		for i, p := range list {
			if !bad[i] || i == k {
				call, jobs = append(call, p), append(jobs, microtome.Job{Tile: p.tile})
			}
		}
		results, err := e.Once(b.ctx, 0, jobs)
		if err != nil {
			return err
		}
		if err := b.goodOnes(e, call, list[k], results); err != nil {
			return err
		}
		if err := b.nextIsGood(e); err != nil {
			return err
		}
	}
	return nil
}

// goodOnes holds the good tiles of a call that had a bad one.
func (b *battery) goodOnes(e *gpu.Engine, list []*picture, bad *picture, results []microtome.Result) error {
	var good []*picture
	var of []microtome.Result
	for i, r := range results {
		switch {
		case list[i] != bad:
			good, of = append(good, list[i]), append(of, r)
		case r.Err == nil:
			r.Pixels.Release()
		case errors.Is(r.Err, microtome.ErrDeviceLost):
			return fmt.Errorf("%s: %w", list[i].name, r.Err)
		}
	}
	px, err := decoded(good, of, false)
	if err != nil {
		return err
	}
	defer release(px)
	got, err := readAll(b.ctx, e, px)
	if err != nil {
		return err
	}
	return equal(good, got)
}
