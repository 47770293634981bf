//go:build cgo && linux

package gpu

import (
	"github.com/microtome/microtome/decode/gpu/canon"
)

// claims takes over which samplings the device says it decodes. Those that may crash
// its libraries are tried by a worker of their own, whose death costs nothing.
func (e *Engine) claims() {
	i := &e.info
	tried := i.Samplings & i.Tried
	if e.o.trial == 0 && tried != 0 && !e.tries(tried) {
		i.Samplings &^= tried
	}
	for s := range e.kinds {
		bit := uint32(1) << s
		e.kinds[s] = i.Samplings&bit != 0 && (e.o.trial == 0 || e.o.trial&bit != 0)
		switch {
		case e.kinds[s]:
		case tried&bit != 0:
			e.whys[s] = " failed when a process of its own tried it on this device"
		default:
			e.whys[s] = " is not among what this device decodes"
		}
	}
}

// tries opens another engine on the device, which proves samplings and ends. Where the
// engine is in this process a crash ends it whatever is tried: the proof does.
func (e *Engine) tries(samplings uint32) bool {
	o := e.o
	if len(o.Worker) == 0 {
		return true
	}
	o.trial, o.Quiet, o.Sample = samplings, true, -1
	o.Lanes, o.Batch, o.Arena, o.Ring = 1, 1, leastArena, trialRing
	o.Start = min(o.Start, 4*o.Timeout)
	t, err := Open(o)
	if err != nil {
		return false
	}
	return t.Close() == nil
}

const trialRing = 16 << 20

// sides are the least and the largest stream that the device decodes, in pixels.
func (e *Engine) sides() (small, large int) {
	small, large = max(canon.MinSide, e.info.MinSide), canon.MaxSide
	if m := e.info.MaxSide; m > 0 {
		large = min(large, m)
	}
	return small, large
}
