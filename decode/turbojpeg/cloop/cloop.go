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

// part decodes a rectangle, with an MCU of margin on each side, as far down as
// it reaches.
static void part(const unsigned char *data, size_t len, int rgb, int x, int y, int w, int h, unsigned char *dst) {
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr e;
  d.err = jpeg_std_error(&e);
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, data, len);
  jpeg_read_header(&d, TRUE);
  d.jpeg_color_space = rgb ? JCS_RGB : JCS_YCbCr;
  d.out_color_space = JCS_RGB;
  jpeg_start_decompress(&d);
  int mcu = 8 * d.max_h_samp_factor;
  int x0 = x > mcu ? x - mcu : 0, x1 = x + w + mcu;
  if (x1 > (int)d.output_width) x1 = d.output_width;
  if (x0 > 0 || x1 < (int)d.output_width) {
    JDIMENSION off = x0, width = x1 - x0;
    jpeg_crop_scanline(&d, &off, &width);
  }
  if (y > 0) jpeg_skip_scanlines(&d, y);
  for (int i = 0; i < h; i++) {
    JSAMPROW row = dst + (size_t)i * d.output_width * 3;
    jpeg_read_scanlines(&d, &row, 1);
  }
  jpeg_destroy_decompress(&d);
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

// Part decodes a rectangle of a good three-component stream into dst, which has
// room for the rows at the stream's full width.
func Part(data []byte, rgb bool, x, y, w, h int, dst []byte) {
	var c C.int
	if rgb {
		c = 1
	}
	C.part((*C.uchar)(unsafe.Pointer(unsafe.SliceData(data))), C.size_t(len(data)), c, C.int(x), C.int(y), C.int(w), C.int(h),
		(*C.uchar)(unsafe.Pointer(unsafe.SliceData(dst))))
}

// Room is what Run and Part need of a stream's three-component pixels. It trusts
// the stream to begin with its frame header's segments.
func Room(data []byte) int {
	for i := 2; i+9 < len(data) && data[i] == 0xFF; i += 2 + int(data[i+2])<<8 + int(data[i+3]) {
		if m := data[i+1]; m >= 0xC0 && m <= 0xCF && m != 0xC4 && m != 0xC8 && m != 0xCC {
			h, w := int(data[i+5])<<8+int(data[i+6]), int(data[i+7])<<8+int(data[i+8])
			return 3 * w * h
		}
	}
	return 0
}
