//go:build !cgo || !linux

// Package gpu decodes tiles on a GPU. This build has no engine: it needs cgo and
// Linux.
package gpu

import (
	"context"
	"io"
	"time"

	"github.com/microtome/microtome"
)

// Options are those of the builds that have an engine.
type Options struct {
	Vendor       string
	Index        int
	Libraries    string
	CPU          microtome.Decoder
	Worker, Env  []string
	Lanes, Batch int
	Arena, Ring  int64
	Wait         time.Duration
	Beside       int
	Cores        int
	Unchecked    bool
	Blocking     bool
	Profile      bool
	Sample       int
	Timeout      time.Duration
	Start        time.Duration
	Quiet        bool
	Spin         int
}

var errNone = &microtome.Unsupported{Tag: "build", Value: "without a GPU engine: it needs cgo and Linux"}

// Probe fails.
func Probe(context.Context, []string, []string, string, string) ([]Info, error) {
	return nil, errNone
}

// Look fails.
func Look(context.Context, []string, []string, string, string) Survey {
	return Survey{Trouble: &Trouble{Step: StepBuild, Err: errNone}}
}

// Examine fails.
func Examine(Options) Examined {
	return Examined{Limits: limits(nil), Trouble: &Trouble{Step: StepBuild, Err: errNone}}
}

// OfHost knows nothing.
func OfHost() Host { return Host{} }

// Bare fails.
func Bare(Options, []microtome.Tile, time.Duration) (float64, error) { return 0, errNone }

// Open fails.
func Open(Options) (microtome.Device, error) { return nil, errNone }

// Work fails.
func Work(io.Reader, io.Writer) error { return errNone }
