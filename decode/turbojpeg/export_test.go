//go:build cgo

package turbojpeg

import (
	"image"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
)

// Plain is Decode by libjpeg-turbo's own parts.
func Plain(dst []byte, stride int, t microtome.Tile, f sof.Frame, part image.Rectangle, channels, denom int) error {
	return decode(dst, stride, t, f, part, channels, denom, true)
}
