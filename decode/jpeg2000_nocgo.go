//go:build !cgo

package decode

import "github.com/microtome/microtome"

const hasJPEG2000 = false

func (d *CPU) decodeJPEG2000([]byte, int, *microtome.Tile, plan) error {
	return &microtome.Unsupported{Tag: "Compression", Value: "JPEG 2000 in a build without cgo"}
}
