//go:build cgo

package decode

import (
	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
	"github.com/microtome/microtome/decode/turbojpeg"
)

const jpegExact = true

func jpegName() string { return turbojpeg.Name() }

func decodeJPEG(dst []byte, stride int, t *microtome.Tile, p plan) error {
	f, err := sof.Check(*t)
	if err != nil {
		return err
	}
	return turbojpeg.Decode(dst, stride, *t, f, p.part, p.channels, 1<<p.reduce)
}

func encodeJPEG(pix []byte, stride, w, h, channels int, o microtome.EncodeOptions) ([]byte, error) {
	return turbojpeg.Encode(pix, stride, w, h, channels, turbojpeg.EncodeOptions{Quality: o.Quality, ICC: o.ICC})
}

func cropJPEG(t *microtome.Tile) ([]byte, error) {
	if _, err := sof.Check(*t); err != nil {
		return nil, err
	}
	return turbojpeg.Crop(*t, t.VisibleWidth, t.VisibleHeight)
}
