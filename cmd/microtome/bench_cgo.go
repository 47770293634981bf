//go:build cgo

package main

import (
	"github.com/microtome/microtome/bench"
	"github.com/microtome/microtome/decode/turbojpeg/cloop"
)

// bareLoop decodes streams by the plainest C that libjpeg-turbo allows.
var bareLoop = func(streams []bench.Stream) {
	var dst []byte
	for _, s := range streams {
		if need := cloop.Room(s.Data); len(dst) < need {
			dst = make([]byte, need)
		}
		if s.W == 0 {
			cloop.Run(s.Data, s.RGB, dst, 1)
			continue
		}
		cloop.Part(s.Data, s.RGB, s.X, s.Y, s.W, s.H, dst)
	}
}
