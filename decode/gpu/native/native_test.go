//go:build cgo && linux

package native

import (
	"testing"

	"github.com/microtome/microtome/decode/gpu/wire"
)

// The two sides of the shared memory agree on every size and place.
func TestLayouts(t *testing.T) {
	for _, l := range layouts(wire.Message{}, wire.Tile{}, wire.Upload{}, wire.Out{}, wire.Piece{}, wire.Scale{}) {
		if l.inGo != l.inC {
			t.Errorf("%s: %d in Go, %d in C", l.what, l.inGo, l.inC)
		}
	}
}
