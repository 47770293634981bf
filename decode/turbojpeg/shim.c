//go:build cgo

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "entropy.h"
#include "interleave.h"
#include "shim.h"

// A stream of more scans than a component-wise baseline one can need is made to
// burn time.
enum { MAX_SCANS = 8 };

typedef struct {
  struct jpeg_error_mgr base;
  jmp_buf leave;
  mt_failure *f;
} errors;

static void note(j_common_ptr c) {
  errors *e = (errors *)c->err;
  e->f->code = e->base.msg_code;
  e->f->parm = e->base.msg_parm.i[0];
  char text[JMSG_LENGTH_MAX];
  e->base.format_message(c, text);
  snprintf(e->f->message, sizeof e->f->message, "%s", text);
}

static void on_error(j_common_ptr c) {
  note(c);
  longjmp(((errors *)c->err)->leave, 1);
}

static void on_message(j_common_ptr c, int level) {
  errors *e = (errors *)c->err;
  if (level >= 0) return;
  if (e->f->warnings++ == 0) note(c);
}

static void silent(j_common_ptr c) { (void)c; }

static void errors_init(errors *e, mt_failure *f) {
  jpeg_std_error(&e->base);
  e->base.error_exit = on_error;
  e->base.emit_message = on_message;
  e->base.output_message = silent;
  e->f = f;
  memset(f, 0, sizeof *f);
}

// The source: bytes in memory. At their end it serves EOI: a stream without one
// is whole when its pixels are; one that misses pixels makes the entropy decoder
// warn (JWRN_HIT_MARKER).
static const JOCTET eoi[2] = {0xFF, JPEG_EOI};

static void source_nothing(j_decompress_ptr d) { (void)d; }

static boolean source_end(j_decompress_ptr d) {
  d->src->next_input_byte = eoi;
  d->src->bytes_in_buffer = 2;
  return TRUE;
}

static void source_skip(j_decompress_ptr d, long n) {
  if (n <= 0) return;
  if ((size_t)n > d->src->bytes_in_buffer) {
    source_end(d);
    return;
  }
  d->src->next_input_byte += n;
  d->src->bytes_in_buffer -= n;
}

static void source_set(j_decompress_ptr d, struct jpeg_source_mgr *s,
                       const unsigned char *data, size_t len) {
  s->init_source = source_nothing;
  s->fill_input_buffer = source_end;
  s->skip_input_data = source_skip;
  s->resync_to_restart = jpeg_resync_to_restart;
  s->term_source = source_nothing;
  s->next_input_byte = data;
  s->bytes_in_buffer = len;
  d->src = s;
}

static void on_progress(j_common_ptr c) {
  j_decompress_ptr d = (j_decompress_ptr)c;
  if (d->input_scan_number > MAX_SCANS) ERREXIT(d, JERR_BAD_SCAN_SCRIPT);
}

// set_color makes the caller's word on the colour model stand over the stream's.
static void set_color(j_decompress_ptr d, int color) {
  if (d->num_components == 1)
    d->jpeg_color_space = JCS_GRAYSCALE;
  else
    d->jpeg_color_space = color == MT_RGB ? JCS_RGB : JCS_YCbCr;
}

static int check(j_decompress_ptr d, const mt_request *r) {
  return (int)d->image_width == r->width && (int)d->image_height == r->height &&
         !d->progressive_mode && !d->arith_code &&
         (d->num_components == 1 || d->num_components == 3);
}

// Two of a decompressor's parts, as libjpeg-turbo 1.x to 3.x begin them
// (jpegint.h, which is not installed).
struct jpeg_color_deconverter {
  void (*start_pass)(j_decompress_ptr);
  void (*color_convert)(j_decompress_ptr, JSAMPIMAGE, JDIMENSION, JSAMPARRAY, int);
};
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr);
  boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
};

#if !defined(LIBJPEG_TURBO_VERSION_NUMBER) || LIBJPEG_TURBO_VERSION_NUMBER >= 4000000
#error "read jpegint.h of this libjpeg-turbo: do these parts still begin so?"
#endif

// parts is a decompressor's client data: the state of our own parts of it.
typedef struct {
  JDIMENSION left, width; // columns that interleave leaves out, and writes
  mt_entropy entropy;
} parts;

static boolean decode_mcu(j_decompress_ptr d, JBLOCKROW *blocks) {
  parts *own = d->client_data;
  return mt_entropy_mcu(d, &own->entropy, blocks);
}

// interleave is libjpeg-turbo's null_convert of three components, for the
// columns wanted only.
static void interleave(j_decompress_ptr d, JSAMPIMAGE in, JDIMENSION row,
                       JSAMPARRAY out, int rows) {
  const parts *c = d->client_data;
  for (int i = 0; i < rows; i++, row++)
    mt_interleave(in[0][row] + c->left, in[1][row] + c->left,
                  in[2][row] + c->left, out[i], c->width);
}

// UNEVEN keeps a row off the alignment at which libjpeg-turbo's colour conversion
// writes past the caches: the row is read again at once.
enum { UNEVEN = 16 };

// read_rows reads the rows into dst, by way of a row of its own when the
// decoder's rows are wider than those wanted.
static void read_rows(j_decompress_ptr d, const mt_request *r, int skip_px,
                      unsigned char *dst, size_t stride) {
  parts *own = d->client_data;
  int direct = skip_px == 0 && (int)d->output_width == r->w;
  if (d->jpeg_color_space == JCS_RGB && d->num_components == 3) {
    own->left = skip_px;
    own->width = r->w;
    d->cconvert->color_convert = interleave;
    direct = 1;
  }
  JSAMPROW row = NULL;
  if (!direct)
    row = UNEVEN + (JSAMPROW)d->mem->alloc_large((j_common_ptr)d, JPOOL_IMAGE,
                               (size_t)d->output_width * r->channels + UNEVEN);
  for (int y = 0; y < r->h;) {
    if (direct) {
      JSAMPROW rows[16];
      int n = r->h - y < 16 ? r->h - y : 16;
      for (int i = 0; i < n; i++) rows[i] = dst + (size_t)(y + i) * stride;
      y += jpeg_read_scanlines(d, rows, n);
    } else {
      jpeg_read_scanlines(d, &row, 1);
      memcpy(dst + (size_t)y * stride, row + (size_t)skip_px * r->channels,
             (size_t)r->w * r->channels);
      y++;
    }
  }
}

// decode_part leaves out what isn't wanted: columns beyond one MCU around the
// part (whose pixels the upsampling filter of the part's own edge reads), rows
// above it, and all rows below it.
static void decode_part(j_decompress_ptr d, const mt_request *r,
                        mt_entropy *own, unsigned char *dst, size_t stride) {
  int left = r->x;
  int x0 = r->x - r->mcu_w, x1 = r->x + r->w + r->mcu_w;
  if (x0 < 0) x0 = 0;
  if (x1 > (int)d->output_width) x1 = d->output_width;
  if (x1 - x0 + r->mcu_w < (int)d->output_width) {
    JDIMENSION off = x0, width = x1 - x0;
    jpeg_crop_scanline(d, &off, &width);
    left = r->x - (int)off;
    if (own) mt_entropy_columns(d, own, off, width);
  }
  if (r->y > 0) jpeg_skip_scanlines(d, r->y);
  read_rows(d, r, left, dst, stride);
}

int mt_decode(const unsigned char *data, size_t len, const mt_request *r,
              unsigned char *dst, size_t stride, mt_failure *f) {
  struct jpeg_decompress_struct d;
  struct jpeg_source_mgr src;
  struct jpeg_progress_mgr progress = {.progress_monitor = on_progress};
  errors e;
  parts own;
  errors_init(&e, f);
  d.err = &e.base;
  if (setjmp(e.leave)) {
    jpeg_destroy_decompress(&d);
    return -1;
  }
  jpeg_create_decompress(&d);
  d.client_data = &own;
  source_set(&d, &src, data, len);
  d.progress = &progress;
  jpeg_read_header(&d, TRUE);
  if (!check(&d, r)) ERREXIT(&d, JERR_CONVERSION_NOTIMPL);
  set_color(&d, r->color);
  d.out_color_space = r->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  d.dct_method = JDCT_ISLOW;
  d.scale_num = 1;
  d.scale_denom = r->denom;
  jpeg_start_decompress(&d);
  mt_entropy *entropy = NULL;
  if (!r->plain && mt_entropy_begin(&d, &own.entropy)) {
    entropy = &own.entropy;
    d.entropy->decode_mcu = decode_mcu;
  }
  if (r->x + r->w > (int)d.output_width || r->y + r->h > (int)d.output_height)
    ERREXIT(&d, JERR_CONVERSION_NOTIMPL);
  if (r->denom == 1)
    decode_part(&d, r, entropy, dst, stride);
  else
    read_rows(&d, r, r->x, dst, stride);
  // What lies between the last row and EOI tells of bits lost above.
  if (d.output_scanline >= d.output_height) {
    if (entropy) mt_entropy_end(&d, entropy);
    jpeg_finish_decompress(&d);
  }
  jpeg_destroy_decompress(&d);
  return f->warnings ? -1 : 0;
}

// The destination: the caller's buffer first, when there is one, then memory of
// malloc's. libjpeg's own would lose track of that on an error.
typedef struct {
  struct jpeg_destination_mgr base;
  unsigned char *buf;
  size_t cap;
  int own;
} sink;

static void sink_start(j_compress_ptr c) { (void)c; }

static boolean sink_grow(j_compress_ptr c) {
  sink *s = (sink *)c->dest;
  size_t cap = s->cap < 16384 ? 32768 : 2 * s->cap;
  unsigned char *p = s->own ? realloc(s->buf, cap) : malloc(cap);
  if (!p) ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
  if (!s->own && s->cap > 0) memcpy(p, s->buf, s->cap);
  s->buf = p;
  s->own = 1;
  s->base.next_output_byte = p + s->cap;
  s->base.free_in_buffer = cap - s->cap;
  s->cap = cap;
  return TRUE;
}

static void sink_set(j_compress_ptr c, sink *s, unsigned char *buf, size_t cap) {
  s->base.init_destination = sink_start;
  s->base.empty_output_buffer = sink_grow;
  s->base.term_destination = sink_start;
  s->base.next_output_byte = s->buf = buf;
  s->base.free_in_buffer = s->cap = cap;
  s->own = 0;
  c->dest = &s->base;
  if (cap == 0) sink_grow(c);
}

static void set_input(j_compress_ptr c, int channels) {
  switch (channels) {
  case 1:
    c->in_color_space = JCS_GRAYSCALE;
    break;
  case 4:
    c->in_color_space = JCS_EXT_RGBX;
    break;
  default:
    c->in_color_space = JCS_RGB;
  }
  c->input_components = channels;
}

int mt_encode(const unsigned char *pix, size_t stride, int w, int h, int channels,
              int quality, int subsample, const unsigned char *icc, unsigned icc_len,
              unsigned char *buf, unsigned long cap, int *own,
              unsigned char **out, unsigned long *out_len, mt_failure *f) {
  struct jpeg_compress_struct c;
  errors e;
  sink dest = {.own = 0};
  errors_init(&e, f);
  c.err = &e.base;
  if (setjmp(e.leave)) {
    jpeg_destroy_compress(&c);
    if (dest.own) free(dest.buf);
    return -1;
  }
  jpeg_create_compress(&c);
  sink_set(&c, &dest, buf, cap);
  c.image_width = w;
  c.image_height = h;
  set_input(&c, channels);
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, quality, TRUE);
  c.dct_method = JDCT_ISLOW;
  if (channels != 1 && !subsample)
    c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&c, TRUE);
  if (icc_len > 0) jpeg_write_icc_profile(&c, icc, icc_len);
  while (c.next_scanline < c.image_height) {
    JSAMPROW rows[16];
    int left = (int)(c.image_height - c.next_scanline), k = left < 16 ? left : 16;
    for (int i = 0; i < k; i++)
      rows[i] = (JSAMPROW)(pix + (size_t)(c.next_scanline + i) * stride);
    jpeg_write_scanlines(&c, rows, k);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  *own = dest.own;
  *out = dest.own ? dest.buf : NULL;
  *out_len = dest.cap - dest.base.free_in_buffer;
  return 0;
}

int mt_crop(const unsigned char *data, size_t len, int color, int w, int h,
            unsigned char **out, unsigned long *out_len, mt_failure *f) {
  struct jpeg_decompress_struct d;
  struct jpeg_compress_struct c;
  struct jpeg_source_mgr src;
  struct jpeg_progress_mgr progress = {.progress_monitor = on_progress};
  sink dest = {.own = 0};
  errors e;
  errors_init(&e, f);
  // Both are created before anything can fail but for want of memory.
  memset(&c, 0, sizeof c);
  memset(&d, 0, sizeof d);
  c.err = d.err = &e.base;
  if (setjmp(e.leave)) {
    jpeg_destroy_compress(&c);
    jpeg_destroy_decompress(&d);
    if (dest.own) free(dest.buf);
    return -1;
  }
  jpeg_create_decompress(&d);
  jpeg_create_compress(&c);
  source_set(&d, &src, data, len);
  d.progress = &progress;
  jpeg_read_header(&d, TRUE);
  set_color(&d, color);
  jvirt_barray_ptr *coefs = jpeg_read_coefficients(&d);
  jpeg_copy_critical_parameters(&d, &c);
  c.image_width = w;
  c.image_height = h;
  sink_set(&c, &dest, NULL, 0);
  jpeg_write_coefficients(&c, coefs);
  jpeg_finish_compress(&c);
  jpeg_finish_decompress(&d);
  jpeg_destroy_compress(&c);
  jpeg_destroy_decompress(&d);
  if (f->warnings) {
    free(dest.buf);
    return -1;
  }
  *out = dest.buf;
  *out_len = dest.cap - dest.base.free_in_buffer;
  return 0;
}
