//go:build cgo

package decode

import (
	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/openjpeg"
)

const hasJPEG2000 = true

func (d *CPU) decodeJPEG2000(dst []byte, stride int, t *microtome.Tile, p plan) error {
	err := openjpeg.Decode(dst, stride, t, p.part, p.channels, p.reduce, &d.buffers)
	if err == nil && t.Color == microtome.ColorGrayWhite {
		invert(dst, stride, p.part.Dx(), p.part.Dy())
	}
	return err
}
