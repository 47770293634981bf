//go:build !cgo || !linux

// Package gpu decodes tiles on a GPU. This build has no engine: it needs cgo and
// Linux.
package gpu

import (
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
	Unchecked    bool
	Sample       int
	Timeout      time.Duration
	Spin         int
}

var errNone = &microtome.Unsupported{Tag: "build", Value: "without a GPU engine: it needs cgo and Linux"}

// Open fails.
func Open(Options) (microtome.Device, error) { return nil, errNone }

// Work fails.
func Work(io.Reader, io.Writer) error { return errNone }
