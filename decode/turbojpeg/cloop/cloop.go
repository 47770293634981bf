//go:build cgo

// Package cloop decodes one JPEG stream again and again by the plainest C that
// libjpeg-turbo allows: what the decoder's benchmarks are held against.
package cloop

/*
#cgo CFLAGS: -O2
#cgo LDFLAGS: -l:libturbojpeg.a -lm
#include <stdio.h>
#include <jpeglib.h>

static void loop(const unsigned char *data, size_t len, int rgb, unsigned char *dst, long times) {
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr e;
  d.err = jpeg_std_error(&e);
  for (long i = 0; i < times; i++) {
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, len);
    jpeg_read_header(&d, TRUE);
    d.jpeg_color_space = rgb ? JCS_RGB : JCS_YCbCr;
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height) {
      JSAMPROW row = dst + (size_t)d.output_scanline * d.output_width * 3;
      jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
  }
}
*/
import "C"

import "unsafe"

// Run decodes a good three-component stream into dst so many times. It trusts
// the stream: an error ends the process.
func Run(data []byte, rgb bool, dst []byte, times int) {
	var c C.int
	if rgb {
		c = 1
	}
	C.loop((*C.uchar)(unsafe.Pointer(unsafe.SliceData(data))), C.size_t(len(data)), c,
		(*C.uchar)(unsafe.Pointer(unsafe.SliceData(dst))), C.long(times))
}
