// Package qualify puts a GPU engine to the proof: a battery of steps, each of which
// holds what the device makes against the CPU's, and one verdict a step. Nothing of
// a verdict depends on when or how fast it was found: on one host it is the same,
// byte by byte, each time.
package qualify

import (
	"slices"
	"time"

	"github.com/microtome/microtome/decode/gpu"
)

// Battery counts changes of the steps: a pass of another battery is none.
const Battery = 1

// Options say what is examined. Of Engine the vendor, index, libraries, worker,
// environment and CPU are taken, and Start and Timeout; the rest is the battery's
// own. A worker is needed: what hangs or crashes does so in a child.
type Options struct {
	Engine gpu.Options
	// Step bounds each step; 0: two minutes.
	Step time.Duration
	// Brief runs no step after one that failed.
	Brief bool
}

// Verdict is what came of a step.
type Verdict string

// The verdicts.
const (
	Passed     Verdict = "passed"
	Failed     Verdict = "failed"
	NotRun     Verdict = "not run"     // an earlier step lost the device, or a brief battery
	NotClaimed Verdict = "not claimed" // left to the CPU on this device
)

// Step is one step of the battery.
type Step struct {
	Name    string  `json:"step"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
}

// Result is the steps in their order, those not run included.
type Result struct {
	Steps  []Step
	Limits gpu.Limits // what the engine claims
}

// Passed says that every step was run and passed, but those that the engine makes no
// claim for.
func (r *Result) Passed() bool {
	return len(r.Steps) > 0 && !slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Verdict != Passed && s.Verdict != NotClaimed })
}

// First is the first step that failed, nil when none did.
func (r *Result) First() *Step {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Verdict == Failed })
	if i < 0 {
		return nil
	}
	return &r.Steps[i]
}

// NotClaimedAtAll lists what no pass says anything about.
func NotClaimedAtAll() []string {
	return []string{
		"speed",
		"JPEG of other samplings than the steps name, progressive, arithmetic or 12-bit JPEG, and every other codec: the CPU decodes them",
		"a stream whose damage leaves it a valid one: its pixels are those of libjpeg-turbo, not of the slide",
		"drivers, libraries, GPUs and binaries other than those named here",
		"a GPU that errs later, by heat, age or load: one tile in some is decoded on the CPU too while it serves (device-sample)",
		"device memory that another process maps: none is exported",
		"other processes on the same GPU, and partitions of it that were not the one examined",
	}
}
