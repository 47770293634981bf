// One call of OpenJPEG: a whole codestream in, 8-bit planes out.
#ifndef MICROTOME_OPENJPEG_SHIM_H
#define MICROTOME_OPENJPEG_SHIM_H

#include <stddef.h>

typedef struct {
  int width, height;  // what the codestream must be
  int components;
  int reduce;         // resolutions to leave out
} mj_request;

typedef struct {
  int warnings;
  char message[200];
} mj_failure;

// mj_decode writes the components one after another into dst, each of
// dims[2c] x dims[2c+1] samples, as far as they fit into cap bytes.
int mj_decode(const unsigned char *data, size_t len, const mj_request *r,
              unsigned char *dst, size_t cap, int *dims, mj_failure *f);

#endif
