package gpu

import (
	"fmt"

	"github.com/microtome/microtome/decode/gpu/canon"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// Info describes a device.
type Info = wire.Info

// Library is one that a vendor's engine needs, and where it was looked for.
type Library = wire.Library

// Step is one on the way to an engine that works.
type Step string

// The steps, in their order.
const (
	StepBuild     Step = "build"     // this program has an engine
	StepLibraries Step = "libraries" // they are opened
	StepDriver    Step = "driver"    // it starts and counts the devices
	StepDevice    Step = "device"    // it is described
	StepOpen      Step = "open"      // memory, kernels and lanes
	StepProof     Step = "proof"     // pixels are libjpeg-turbo's
)

// Trouble is why an engine can't run.
type Trouble struct {
	Step Step
	Kind int // wire.Missing, …; 0: none of them
	Code int // the vendor's own, 0: none
	// Died and Silent say how the worker ended, if it did: by itself, or because it
	// did not answer.
	Died, Silent bool
	Err          error
}

func (t *Trouble) Error() string { return t.Err.Error() }

// Unwrap returns what went wrong.
func (t *Trouble) Unwrap() error { return t.Err }

// Found is a device that the driver has, with what is known of it; Trouble when it
// can't be opened.
type Found struct {
	Info
	Trouble *Trouble
}

// Survey is what a vendor's libraries say on this host. What is known is told even
// where there is Trouble.
type Survey struct {
	Libraries []Library
	Devices   []Found
	Loaded    []string // shared objects that came with the libraries, in order
	Trouble   *Trouble // of all devices
}

// Examined is an engine that was opened and held against the CPU.
type Examined struct {
	Tiles   int // of the proof
	Trouble *Trouble
	Limits
}

// Settings are how an engine works unless it is told otherwise.
type Settings struct {
	Lanes, Batch int   // tiles decoded at once: lanes, and tiles a call
	Ring         int64 // bytes of memory that the worker pins
}

// Defaults returns them.
func Defaults() Settings {
	return Settings{Lanes: defaultLanes, Batch: defaultBatch, Ring: defaultRing}
}

const (
	defaultLanes = 4
	defaultBatch = 16
	defaultRing  = 512 << 20
)

// Host is what the ring needs of this host. Sizes are bytes, -1 where there is no
// limit.
type Host struct {
	Known  bool  // this build looks
	Memfd  error // why there is no ring; nil: there can be one
	Locked int64 // memory that a process may lock (RLIMIT_MEMLOCK)
	Memory int64 // memory that the container may take
}

// Limits are which tiles a device decodes; all others are the CPU's.
type Limits struct {
	MinSide, MaxSide int // pixels
	Samplings        []Sampling
}

// Sampling is a subsampling of the chroma, and why the CPU decodes it; nil where
// the device does.
type Sampling struct {
	Name string
	Why  error
}

// limits asks canon for every sampling that tiles in the field have, and exact,
// which may be nil, for those that canon takes.
func limits(exact func(canon.Sampling) error) Limits {
	l := Limits{MinSide: canon.MinSide, MaxSide: canon.MaxSide}
	add := func(name string, factors ...[2]int) {
		s, err := canon.SamplingOf(factors...)
		if err == nil {
			name = s.String()
			if exact != nil {
				err = exact(s)
			}
		}
		l.Samplings = append(l.Samplings, Sampling{Name: name, Why: err})
	}
	one := [2]int{1, 1}
	for _, across := range []int{1, 2, 4} {
		for down := 1; down <= 2; down++ {
			// J:a:b counts chroma samples of four pixels, in a row and in the next.
			add(fmt.Sprintf("4:%d:%d", 4/across, 4/across*(2-down)), [2]int{across, down}, one, one)
		}
	}
	add("grey", one)
	return l
}
