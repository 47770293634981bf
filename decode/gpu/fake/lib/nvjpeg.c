// A libnvjpeg.so.13 on libjpeg-turbo: planes as they are stored, the batch rules
// of the hardware backend as they were measured on an H200 (13.0): a state must be
// initialized for the count; a stream that is no JPEG fails the batch and leaves
// the tiles behind it unwritten; corrupt entropy gives success and garbage.
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "fault.h"

typedef struct { int unused; } *Handle;
typedef struct { int prepared, allocated; } *State;
typedef struct { unsigned char *channel[4]; size_t pitch[4]; } Image;

int nvjpegGetProperty(int what, int *v) { *v = what == 0 ? 13 : 0; return 0; }
int nvjpegCreateEx(int backend, void *dev, void *pinned, unsigned flags, Handle *h) {
  (void)dev; (void)pinned; (void)flags;
  if (backend != 3) return 9;
  *h = malloc(sizeof **h);
  return *h ? fault("nvjpegCreateEx") : 5;
}
int nvjpegDestroy(Handle h) { free(h); return 0; }
int nvjpegGetHardwareDecoderInfo(Handle h, unsigned *engines, unsigned *cores) {
  (void)h;
  *engines = fault("nvjpegGetHardwareDecoderInfo") ? 0 : 7;
  *cores = 1;
  return 0;
}
int nvjpegJpegStateCreate(Handle h, State *s) { (void)h; *s = calloc(1, sizeof **s); return *s ? 0 : 5; }
int nvjpegJpegStateDestroy(State s) { free(s); return 0; }
int nvjpegDecodeBatchedPreAllocate(Handle h, State s, int n, int w, int hgt, int css, int fmt) {
  (void)h; (void)w; (void)hgt; (void)css;
  if (fmt != 1) return 2;
  s->allocated = n;
  return fault("nvjpegDecodeBatchedPreAllocate");
}
int nvjpegDecodeBatchedInitialize(Handle h, State s, int n, int threads, int fmt) {
  (void)h; (void)threads;
  if (fmt != 1 || n < 1) return 2;
  s->prepared = n;
  return fault("nvjpegDecodeBatchedInitialize");
}

typedef struct { struct jpeg_error_mgr base; jmp_buf leave; } Errors;
static void leave(j_common_ptr c) { longjmp(((Errors *)c->err)->leave, 1); }
static void quiet(j_common_ptr c, int level) { (void)c; (void)level; }

static int decode(const unsigned char *data, size_t len, Image *to) {
  struct jpeg_decompress_struct d;
  Errors e;
  d.err = jpeg_std_error(&e.base);
  e.base.error_exit = leave;
  e.base.emit_message = quiet;
  jpeg_create_decompress(&d);
  if (setjmp(e.leave)) {
    jpeg_destroy_decompress(&d);
    return 3; // BAD_JPEG
  }
  jpeg_mem_src(&d, data, len);
  jpeg_read_header(&d, TRUE);
  d.raw_data_out = TRUE;
  d.out_color_space = d.jpeg_color_space;
  d.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&d);
  int rows = d.max_v_samp_factor * DCTSIZE;
  JSAMPROW row[3][4 * DCTSIZE];
  JSAMPARRAY planes[3] = {row[0], row[1], row[2]};
  for (int c = 0; c < d.num_components; c++)
    for (int i = 0; i < 4 * DCTSIZE; i++)
      row[c][i] = d.mem->alloc_large((j_common_ptr)&d, JPOOL_IMAGE, d.comp_info[c].width_in_blocks * DCTSIZE + 64);
  while (d.output_scanline < d.output_height) {
    int first = d.output_scanline;
    jpeg_read_raw_data(&d, planes, rows);
    for (int c = 0; c < d.num_components; c++) {
      const jpeg_component_info *k = &d.comp_info[c];
      int y0 = first / d.max_v_samp_factor * k->v_samp_factor;
      for (int i = 0; i < k->v_samp_factor * DCTSIZE && y0 + i < (int)k->downsampled_height; i++)
        memcpy(to->channel[c] + (size_t)(y0 + i) * to->pitch[c], row[c][i], k->downsampled_width);
    }
  }
  jpeg_finish_decompress(&d);
  jpeg_destroy_decompress(&d);
  return 0;
}

int nvjpegDecodeBatched(Handle h, State s, const unsigned char *const *data, const size_t *len, Image *to, void *stream) {
  (void)h; (void)stream;
  int f = fault("nvjpegDecodeBatched");
  if (f == FAULT_SKIP) return 0;
  if (f > 0) {
    s->prepared = 0;
    return f;
  }
  if (s->prepared == 0 || s->allocated < s->prepared) return 6;
  for (int i = 0; i < s->prepared; i++) {
    int rc = decode(data[i], len[i], &to[i]);
    if (rc) {
      s->prepared = 0;
      return rc;
    }
  }
  if (f == FAULT_FLIP) to[0].channel[0][0] ^= 1;
  return 0;
}
