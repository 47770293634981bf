//go:build cgo && linux

package qualify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu"
)

// repeats decodes one batch 64 times.
func (b *battery) repeats() error {
	list, err := b.crowd(16, 20_000)
	if err != nil {
		return err
	}
	var before [][]byte
	for i := range 64 {
		got, err := samplesOf(b.ctx, b.e, 0, list)
		if err != nil {
			return err
		}
		for k := range got {
			if before != nil && !bytes.Equal(before[k], got[k]) {
				return fmt.Errorf("repeat %d, tile %d of %d is not what it was", i+1, k+1, len(list))
			}
		}
		before = got
	}
	return equal(list, before)
}

// state decodes A, B and A again, of other sizes, samplings and counts, on one lane.
// The first A is kept meanwhile: nothing writes to it.
func (b *battery) state() error {
	var a []*picture
	for i := range 6 {
		p, err := b.drawn(512, 384, uint64(21_000+i), form{sampling: samplings()[2], color: microtome.ColorYCbCr, quality: 85})
		if err != nil {
			return err
		}
		a = append(a, p)
	}
	c, err := b.crowd(11, 22_000)
	if err != nil {
		return err
	}
	kept, err := once(b.ctx, b.e, 1, a)
	if err != nil {
		return err
	}
	defer release(kept)
	for _, list := range [][]*picture{c, a, c[3:5], a[:1], c, a} {
		if err := exact(b.ctx, b.e, 1, list); err != nil {
			return err
		}
	}
	got, err := readAll(b.ctx, b.e, kept)
	if err != nil {
		return err
	}
	if err := equal(a, got); err != nil {
		return fmt.Errorf("pixels that were kept: %w", err)
	}
	return nil
}

// How often a batch is decoded before its memory is taken, how often after, and by
// how much memory may grow meanwhile: a page lost with each batch is too much.
const (
	warmRounds, rounds = 64, 512
	growth             = 2 << 20
)

// memory decodes and makes batches again and again. The worker's own memory and the
// device's stay what they were.
func (b *battery) memory() error {
	list, err := b.crowd(8, 23_000)
	if err != nil {
		return err
	}
	do := func(n int) error {
		for range n {
			if err := exact(b.ctx, b.e, 0, list); err != nil {
				return err
			}
		}
		return nil
	}
	if err := do(warmRounds); err != nil {
		return err
	}
	host, err := residentOf(b.e.WorkerPID())
	if err != nil {
		return err
	}
	free, err := b.freeMemory()
	if err == nil {
		err = do(rounds)
	}
	if err != nil {
		return err
	}
	after, err := residentOf(b.e.WorkerPID())
	if err != nil {
		return err
	}
	if after-host > growth {
		return fmt.Errorf("the worker's memory grows with each batch: by more than %d bytes over %d", growth, rounds)
	}
	left, err := b.freeMemory()
	if err == nil && free-left > growth {
		err = fmt.Errorf("the device's free memory shrinks: by more than %d bytes over %d batches (or another process took it)", growth, rounds)
	}
	if err == nil && b.e.Stats().Slots != 0 {
		err = errors.New("slots of the arena are still taken")
	}
	return err
}

// residentOf is a process's own memory, in bytes: not what it shares.
func residentOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssAnon:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("the worker's memory is not known")
}

func (b *battery) freeMemory() (int64, error) {
	o := &b.o.Engine
	list, err := gpu.Probe(b.ctx, o.Worker, o.Env, o.Vendor, o.Libraries)
	if err == nil && o.Index >= len(list) {
		err = errors.New("the device is gone")
	}
	if err != nil {
		return 0, err
	}
	return list[o.Index].Free, nil
}

// twoLanes decodes other batches on two streams at once.
func (b *battery) twoLanes() error {
	return b.atOnce(func(k int) error {
		list, err := b.crowd(tiles, uint64(24_000+1000*k))
		if err != nil {
			return err
		}
		for range 16 {
			if err := exact(b.ctx, b.e, k, list); err != nil {
				return fmt.Errorf("lane %d: %w", k, err)
			}
		}
		return nil
	})
}

// atOnce runs two functions at once; the first's error is the first.
func (b *battery) atOnce(do func(k int) error) error {
	var errs [2]error
	var wait sync.WaitGroup
	for k := range errs {
		wait.Go(func() { errs[k] = do(k) })
	}
	wait.Wait()
	if errs[0] != nil {
		return errs[0]
	}
	return errs[1]
}

// twoEngines has a second engine, which works as the server's does, at work beside
// the first.
func (b *battery) twoEngines() error {
	other, err := b.engine(func(o *gpu.Options) {
		o.Lanes, o.Batch = gpu.Defaults().Lanes, cmp.Or(b.e.Info().Batch, gpu.Defaults().Batch)
	})
	if err != nil {
		return err
	}
	err = b.atOnce(func(k int) error {
		list, err := b.crowd(80, uint64(26_000+1000*k))
		if err != nil {
			return err
		}
		for range 4 {
			if k == 0 {
				err = b.served(b.e, list)
			} else {
				err = b.served(other, list)
			}
			if err != nil {
				return fmt.Errorf("engine %d: %w", k, err)
			}
		}
		return nil
	})
	return errors.Join(err, other.Close())
}

// served decodes pictures as the server does, in batches as they come.
func (b *battery) served(e *gpu.Engine, list []*picture) error {
	jobs := make([]microtome.Job, len(list))
	for i, p := range list {
		jobs[i].Tile = p.tile
	}
	px, err := decoded(list, loadBy(b.ctx, e, jobs), true)
	if err != nil {
		return err
	}
	defer release(px)
	got, err := readAll(b.ctx, e, px)
	if err != nil {
		return err
	}
	return equal(list, got)
}
