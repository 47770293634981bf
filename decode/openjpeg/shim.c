//go:build cgo

#include <string.h>

#include <openjpeg-2.5/openjpeg.h>

#include "shim.h"

typedef struct {
  const unsigned char *data;
  size_t len, at;
} input;

static OPJ_SIZE_T input_read(void *to, OPJ_SIZE_T n, void *user) {
  input *in = user;
  size_t left = in->len - in->at;
  if (left == 0) return (OPJ_SIZE_T)-1;
  if (n > left) n = left;
  memcpy(to, in->data + in->at, n);
  in->at += n;
  return n;
}

static OPJ_OFF_T input_skip(OPJ_OFF_T n, void *user) {
  input *in = user;
  if (n < 0) return -1;
  if ((OPJ_UINT64)n > in->len - in->at) n = (OPJ_OFF_T)(in->len - in->at);
  in->at += (size_t)n;
  return n;
}

static OPJ_BOOL input_seek(OPJ_OFF_T to, void *user) {
  input *in = user;
  if (to < 0 || (OPJ_UINT64)to > in->len) return OPJ_FALSE;
  in->at = (size_t)to;
  return OPJ_TRUE;
}

static void keep(const char *msg, mj_failure *f) {
  if (f->message[0]) return;
  strncpy(f->message, msg, sizeof f->message - 1);
  size_t n = strlen(f->message);
  while (n > 0 && f->message[n - 1] == '\n') f->message[--n] = 0;
}

static void on_error(const char *msg, void *user) { keep(msg, user); }

static void on_warning(const char *msg, void *user) {
  mj_failure *f = user;
  f->warnings++;
  keep(msg, f);
}

static void on_info(const char *msg, void *user) {
  (void)msg;
  (void)user;
}

static int fail(const char *msg, mj_failure *f) {
  keep(msg, f);
  return -1;
}

// unload copies the planes, clamped to 8 bits: the wavelets may overshoot where
// a component was not coded as 8 bits.
static int unload(const opj_image_t *image, const mj_request *r, unsigned char *dst,
                  size_t cap, int *dims, mj_failure *f) {
  if ((int)image->numcomps != r->components || (int)(image->x1 - image->x0) != r->width ||
      (int)(image->y1 - image->y0) != r->height)
    return fail("the codestream's size is not the tile's", f);
  for (int c = 0; c < r->components; c++) {
    const opj_image_comp_t *p = &image->comps[c];
    size_t n = (size_t)p->w * p->h;
    if (!p->data || n > cap) return fail("a component has no samples, or too many", f);
    for (size_t i = 0; i < n; i++) {
      OPJ_INT32 v = p->data[i];
      dst[i] = v < 0 ? 0 : v > 255 ? 255 : (unsigned char)v;
    }
    dst += n;
    cap -= n;
    dims[2 * c] = (int)p->w;
    dims[2 * c + 1] = (int)p->h;
  }
  return 0;
}

int mj_decode(const unsigned char *data, size_t len, const mj_request *r,
              unsigned char *dst, size_t cap, int *dims, mj_failure *f) {
  input in = {data, len, 0};
  opj_image_t *image = NULL;
  opj_dparameters_t params;
  int rc = -1;
  memset(f, 0, sizeof *f);
  opj_codec_t *codec = opj_create_decompress(OPJ_CODEC_J2K);
  opj_stream_t *stream = opj_stream_create(len < 65536 ? len : 65536, OPJ_TRUE);
  if (!codec || !stream) {
    fail("out of memory", f);
    goto done;
  }
  opj_set_error_handler(codec, on_error, f);
  opj_set_warning_handler(codec, on_warning, f);
  opj_set_info_handler(codec, on_info, f);
  opj_stream_set_read_function(stream, input_read);
  opj_stream_set_skip_function(stream, input_skip);
  opj_stream_set_seek_function(stream, input_seek);
  opj_stream_set_user_data(stream, &in, NULL);
  opj_stream_set_user_data_length(stream, len);
  opj_set_default_decoder_parameters(&params);
  params.cp_reduce = (OPJ_UINT32)r->reduce;
  if (!opj_setup_decoder(codec, &params) || !opj_decoder_set_strict_mode(codec, OPJ_TRUE) ||
      !opj_read_header(stream, codec, &image) || !opj_decode(codec, stream, image)) {
    fail("not decodable", f);
    goto done;
  }
  rc = unload(image, r, dst, cap, dims, f);
  if (f->warnings) rc = -1;
done:
  if (image) opj_image_destroy(image);
  if (stream) opj_stream_destroy(stream);
  if (codec) opj_destroy_codec(codec);
  return rc;
}
