// The components of a JPEG as they are stored, by libjpeg-turbo, on either side of
// a vendor's own layout.
#ifndef MICROTOME_FAKE_PLANES_H
#define MICROTOME_FAKE_PLANES_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

// Picture is one decoded stream; its planes' rows are packed.
typedef struct {
  int n, broken; // broken: libjpeg-turbo warned of it
  int w[3], h[3];
  uint8_t *plane[3];
} Picture;

typedef struct {
  struct jpeg_error_mgr base;
  jmp_buf leave;
} Errors;
static void leave(j_common_ptr c) { longjmp(((Errors *)c->err)->leave, 1); }
static void quiet(j_common_ptr c, int level) {
  if (level < 0) c->err->num_warnings++;
}

static void picture_free(Picture *p) {
  for (int c = 0; c < 3; c++) free(p->plane[c]);
  memset(p, 0, sizeof *p);
}

static void picture_rows(struct jpeg_decompress_struct *d, Picture *p) {
  int rows = d->max_v_samp_factor * DCTSIZE;
  JSAMPROW row[3][4 * DCTSIZE];
  JSAMPARRAY planes[3] = {row[0], row[1], row[2]};
  for (int c = 0; c < p->n; c++)
    for (int i = 0; i < 4 * DCTSIZE; i++)
      row[c][i] = d->mem->alloc_large((j_common_ptr)d, JPOOL_IMAGE, d->comp_info[c].width_in_blocks * DCTSIZE + 64);
  while (d->output_scanline < d->output_height) {
    int first = d->output_scanline;
    jpeg_read_raw_data(d, planes, rows);
    for (int c = 0; c < p->n; c++) {
      int v = d->comp_info[c].v_samp_factor, y0 = first / d->max_v_samp_factor * v;
      for (int i = 0; i < v * DCTSIZE && y0 + i < p->h[c]; i++)
        memcpy(p->plane[c] + (size_t)(y0 + i) * p->w[c], row[c][i], p->w[c]);
    }
  }
}

// picture_decode returns 0 for what is no JPEG of 1 or 3 components. Corrupt
// entropy-coded data become some picture, as in hardware.
static int picture_decode(const uint8_t *data, size_t len, Picture *p) {
  struct jpeg_decompress_struct d;
  Errors e;
  memset(p, 0, sizeof *p);
  d.err = jpeg_std_error(&e.base);
  e.base.error_exit = leave;
  e.base.emit_message = quiet;
  jpeg_create_decompress(&d);
  if (setjmp(e.leave)) {
    jpeg_destroy_decompress(&d);
    picture_free(p);
    return 0;
  }
  jpeg_mem_src(&d, data, len);
  jpeg_read_header(&d, TRUE);
  d.raw_data_out = TRUE;
  d.out_color_space = d.jpeg_color_space;
  d.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&d);
  p->n = d.num_components;
  if (p->n != 1 && p->n != 3) leave((j_common_ptr)&d);
  for (int c = 0; c < p->n; c++) {
    p->w[c] = d.comp_info[c].downsampled_width;
    p->h[c] = d.comp_info[c].downsampled_height;
    if (!(p->plane[c] = malloc((size_t)p->w[c] * p->h[c]))) leave((j_common_ptr)&d);
  }
  picture_rows(&d, p);
  jpeg_finish_decompress(&d);
  p->broken = e.base.num_warnings > 0;
  jpeg_destroy_decompress(&d);
  return 1;
}

#endif
