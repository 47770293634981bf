//go:build cgo

// Package turbojpeg decodes, encodes and crops JPEG streams by libjpeg-turbo,
// linked statically.
package turbojpeg

/*
#cgo CFLAGS: -O2
#cgo LDFLAGS: -l:libturbojpeg.a -lm
#cgo noescape mt_decode
#cgo nocallback mt_decode
#cgo noescape mt_encode
#cgo nocallback mt_encode
#cgo noescape mt_crop
#cgo nocallback mt_crop
#include <stdlib.h>
#include <stdio.h>
#include <jpeglib.h>
#include "shim.h"

enum { mt_version = LIBJPEG_TURBO_VERSION_NUMBER };
*/
import "C"

import (
	"fmt"
	"image"
	"unsafe"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/sof"
)

// Name is the library and its version.
func Name() string {
	v := int(C.mt_version)
	return fmt.Sprintf("libjpeg-turbo %d.%d.%d", v/1000000, v/1000%1000, v%1000)
}

// Decode writes a part of a tile's stream into dst, rows of stride bytes, as
// channels samples a pixel (1 for a grey stream, else 3).
//
// part lies in pixels of the stream after it was divided by denom (1, 2, 4 or
// 8). At denom 1 the pixels are those of the whole decode, bit for bit, by the
// accurate integer DCT and the smooth chroma filter. f is what sof.Check said
// of the tile.
func Decode(dst []byte, stride int, t microtome.Tile, f sof.Frame, part image.Rectangle, channels, denom int) error {
	return decode(dst, stride, t, f, part, channels, denom, false)
}

// decode is Decode; plain leaves all of it to libjpeg-turbo.
func decode(dst []byte, stride int, t microtome.Tile, f sof.Frame, part image.Rectangle, channels, denom int, plain bool) error {
	w, h := part.Dx(), part.Dy()
	if part.Empty() || stride < w*channels || len(dst) < (h-1)*stride+w*channels || len(t.Data) == 0 {
		return fmt.Errorf("turbojpeg: %v in %d bytes: %w", part, len(dst), microtome.ErrMalformed)
	}
	r := C.mt_request{
		width: C.int(f.Width), height: C.int(f.Height), color: color(t.Color),
		channels: C.int(channels), denom: C.int(denom),
		x: C.int(part.Min.X), y: C.int(part.Min.Y), w: C.int(w), h: C.int(h),
		mcu_w: C.int(8 * f.MaxH()), mcu_h: C.int(8 * f.MaxV()),
	}
	if plain {
		r.plain = 1
	}
	var bad C.mt_failure
	if C.mt_decode(bytesOf(t.Data), C.size_t(len(t.Data)), &r, bytesOf(dst), C.size_t(stride), &bad) != 0 {
		return failure(&bad)
	}
	return nil
}

// EncodeOptions choose how Encode works.
type EncodeOptions struct {
	Quality int    // 1 to 100
	Full    bool   // chroma at full resolution (4:4:4) instead of 4:2:0
	ICC     []byte // embedded in APP2 segments when not nil
}

// Encode makes a baseline stream of w x h pixels, 1, 3 or 4 samples each (the
// fourth is left out).
func Encode(pix []byte, stride, w, h, channels int, o EncodeOptions) ([]byte, error) {
	if w <= 0 || h <= 0 || w > 65500 || h > 65500 || len(pix) < (h-1)*stride+w*channels {
		return nil, fmt.Errorf("JPEG of %dx%d: %w", w, h, microtome.ErrLimit)
	}
	// A Q80 picture takes about a tenth of this; what outgrows it moves to
	// malloc's memory.
	scratch := make([]byte, w*h*channels/4+4096+len(o.ICC))
	var (
		out   *C.uchar
		n     C.ulong
		own   C.int
		bad   C.mt_failure
		chrom = C.int(1)
	)
	if o.Full {
		chrom = 0
	}
	rc := C.mt_encode(bytesOf(pix), C.size_t(stride), C.int(w), C.int(h), C.int(channels), C.int(o.Quality), chrom,
		bytesOf(o.ICC), C.uint(len(o.ICC)), bytesOf(scratch), C.ulong(len(scratch)), &own, &out, &n, &bad)
	if rc != 0 {
		return nil, failure(&bad)
	}
	if own == 0 {
		return append([]byte(nil), scratch[:n]...), nil
	}
	defer C.free(unsafe.Pointer(out))
	return C.GoBytes(unsafe.Pointer(out), C.int(n)), nil
}

// Crop keeps the upper left w x h pixels of a tile's stream. Whole MCUs stay bit
// for bit; the answer carries the marker that makes its colour plain (JFIF for
// YCbCr, APP14 transform 0 for RGB) and none of the stream's other segments.
func Crop(t microtome.Tile, w, h int) ([]byte, error) {
	if len(t.Data) == 0 || w <= 0 || h <= 0 || w > t.Width || h > t.StreamHeight {
		return nil, fmt.Errorf("turbojpeg: crop to %dx%d: %w", w, h, microtome.ErrMalformed)
	}
	var (
		out *C.uchar
		n   C.ulong
		bad C.mt_failure
	)
	rc := C.mt_crop(bytesOf(t.Data), C.size_t(len(t.Data)), color(t.Color), C.int(w), C.int(h), &out, &n, &bad)
	if rc != 0 {
		return nil, failure(&bad)
	}
	defer C.free(unsafe.Pointer(out))
	return C.GoBytes(unsafe.Pointer(out), C.int(n)), nil
}

func color(c microtome.Color) C.int {
	switch c {
	case microtome.ColorRGB:
		return C.MT_RGB
	case microtome.ColorYCbCr:
		return C.MT_YCBCR
	}
	return C.MT_GRAY
}

func bytesOf(b []byte) *C.uchar { return (*C.uchar)(unsafe.Pointer(unsafe.SliceData(b))) }

func failure(f *C.mt_failure) error {
	return fmt.Errorf("JPEG: %s: %w", C.GoString(&f.message[0]), microtome.ErrCorrupt)
}
