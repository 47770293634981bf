//go:build !cgo

package decode

import (
	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
	"github.com/microtome/microtome/decode/stdjpeg"
)

const jpegExact = false

func jpegName() string { return stdjpeg.Name }

func decodeJPEG(dst []byte, stride int, t *microtome.Tile, p plan) error {
	f, err := sof.Check(*t)
	if err != nil {
		return err
	}
	return stdjpeg.Decode(dst, stride, *t, f, p.part, p.channels)
}

func encodeJPEG(pix []byte, stride, w, h, channels int, o microtome.EncodeOptions) ([]byte, error) {
	return stdjpeg.Encode(pix, stride, w, h, channels, o.Quality, o.ICC)
}

func cropJPEG(*microtome.Tile) ([]byte, error) {
	return nil, &microtome.Unsupported{Tag: "build", Value: "without cgo: no lossless crop"}
}
