// The few calls of libjpeg-turbo that the decoder needs, each of them one whole
// job: nothing outlives a call, and libjpeg's error exit never leaves C.
#ifndef MICROTOME_TURBOJPEG_SHIM_H
#define MICROTOME_TURBOJPEG_SHIM_H

#include <stddef.h>

enum { MT_GRAY = 0, MT_RGB = 1, MT_YCBCR = 2 };

// mt_request says which pixels of a stream are wanted.
typedef struct {
  int width, height;      // what the stream must be
  int color;              // what its samples are, MT_*
  int channels;           // what to write, 1 or 3
  int denom;              // 1, 2, 4 or 8
  int x, y, w, h;         // the part wanted, in pixels of the scaled stream
  int mcu_w, mcu_h;       // size of an MCU, in pixels
  int plain;              // by libjpeg-turbo's own entropy decoder, for tests
} mt_request;

// mt_failure says what libjpeg said.
typedef struct {
  int code;               // libjpeg's message code, of the error or first warning
  int parm;               // and its first parameter
  long warnings;
  char message[200];
} mt_failure;

// All return 0 or, with f filled in, -1.
int mt_decode(const unsigned char *data, size_t len, const mt_request *r,
              unsigned char *dst, size_t stride, mt_failure *f);

// mt_encode writes into buf, or into memory of malloc's when that is too small:
// *out then differs from buf and is the caller's to free.
int mt_encode(const unsigned char *pix, size_t stride, int w, int h, int channels,
              int quality, int subsample, const unsigned char *icc, unsigned icc_len,
              unsigned char *buf, unsigned long cap, int *own,
              unsigned char **out, unsigned long *out_len, mt_failure *f);

// mt_crop keeps the upper left w x h pixels of a stream without decoding it.
int mt_crop(const unsigned char *data, size_t len, int color, int w, int h,
            unsigned char **out, unsigned long *out_len, mt_failure *f);

#endif
