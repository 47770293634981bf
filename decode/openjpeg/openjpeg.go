//go:build cgo

// Package openjpeg decodes JPEG 2000 codestreams by OpenJPEG, linked statically.
package openjpeg

/*
#cgo CFLAGS: -O2
#cgo LDFLAGS: -l:libopenjp2.a -lm
#cgo noescape mj_decode
#cgo nocallback mj_decode
#include <openjpeg-2.5/openjpeg.h>
#include "shim.h"
*/
import "C"

import (
	"image"
	"unsafe"

	"github.com/microtome/microtome"
)

// Lender lends scratch memory, its content undefined, and takes it back.
type Lender interface {
	Take(n int) []byte
	Give(b []byte)
}

// Decode writes part of a tile into dst, rows of stride bytes, as RGB or grey.
//
// part lies in pixels of the picture after `reduce` halvings (each rounds up).
// Resolutions that the stream doesn't have are made by averaging.
func Decode(dst []byte, stride int, t *microtome.Tile, part image.Rectangle, channels, reduce int, mem Lender) error {
	data, err := codestream(t.Data)
	if err != nil {
		return err
	}
	h, err := parse(data)
	if err != nil {
		return err
	}
	if h.width != t.Width || h.height != t.StreamHeight {
		return corrupt("the codestream is %dx%d, the tile %dx%d", h.width, h.height, t.Width, t.StreamHeight)
	}
	if h.components != channels {
		return corrupt("%d components, wanted %d", h.components, channels)
	}
	own := min(reduce, h.levels)
	buf := mem.Take(h.components * ceilShift(h.width, own) * ceilShift(h.height, own))
	defer func() { mem.Give(buf) }()
	p, err := decode(buf, h.ended(data), h, own)
	if err != nil {
		return err
	}
	if t.Color == microtome.ColorYCbCr {
		p.color = newTable()
	}
	if own == reduce {
		p.write(dst, stride, part)
		return nil
	}
	small := p.halved(reduce - own)
	for y := range part.Dy() {
		from := ((part.Min.Y+y)*ceilShift(h.width, reduce) + part.Min.X) * channels
		copy(dst[y*stride:y*stride+part.Dx()*channels], small[from:])
	}
	return nil
}

func decode(buf, data []byte, h header, reduce int) (picture, error) {
	r := C.mj_request{width: C.int(h.width), height: C.int(h.height), components: C.int(h.components), reduce: C.int(reduce)}
	var (
		bad  C.mj_failure
		dims [8]C.int
	)
	rc := C.mj_decode((*C.uchar)(unsafe.Pointer(unsafe.SliceData(data))), C.size_t(len(data)), &r,
		(*C.uchar)(unsafe.Pointer(unsafe.SliceData(buf))), C.size_t(len(buf)), &dims[0], &bad)
	if rc != 0 {
		return picture{}, corrupt("%s", C.GoString(&bad.message[0]))
	}
	p := picture{w: ceilShift(h.width, reduce), h: ceilShift(h.height, reduce), n: h.components}
	for c := range h.components {
		w, ht := int(dims[2*c]), int(dims[2*c+1])
		if w < 1 || ht < 1 {
			return picture{}, corrupt("component %d is empty", c)
		}
		p.planes[c] = plane{pix: buf[:w*ht], w: w, h: ht, subX: h.subX[c], subY: h.subY[c]}
		buf = buf[w*ht:]
	}
	return p, nil
}
