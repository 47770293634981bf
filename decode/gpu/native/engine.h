// The engine over one device: lanes that execute messages. A lane is a stream
// with its decoder, planes and arguments; each is used by one thread at a time.
#ifndef MICROTOME_GPU_ENGINE_H
#define MICROTOME_GPU_ENGINE_H

#include "message.h"
#include "vendor.h"

typedef struct mt_engine mt_engine;

typedef struct {
  const char *libraries;  // folder, or ""
  mt_kernels kernels;
  int index;              // of the device
  int lanes;              // that decode; further ones only copy and lay
  int copy_lanes;
  int batch;              // tiles a decoder call
  int blocking;           // see mt_vendor.open
  int profile;            // wait after each stage, so that its time is its own
  uint64_t arena;         // bytes of device memory
  void *ring;             // host memory that messages and streams lie in
  uint64_t ring_bytes;
} mt_options;

const mt_vendor *mt_vendor_of(const char *name); // NULL: none

// What Go can't call through a table.
int vendor_libraries(const mt_vendor *v, const char *dir, mt_library *found);
int vendor_last_code(const mt_vendor *v);
int vendor_load(const mt_vendor *v, const char *dir, char *why, size_t n);
int vendor_count(const mt_vendor *v, int *n);
int vendor_info(const mt_vendor *v, int index, mt_gpu_info *info);

// mt_engine_open makes the engine; why is filled in when it fails.
int mt_engine_open(const mt_vendor *v, const mt_options *o, mt_engine **e, char *why, size_t why_len);
void mt_engine_close(mt_engine *e);

// mt_engine_run executes the message at an offset of the ring, on a lane, and
// returns when its answer is written. A message that breaks the format is
// MT_GPU_INVALID and does nothing.
int mt_engine_run(mt_engine *e, int lane, uint64_t at);

// mt_engine_bare decodes a message's tiles into the lane's planes again and again
// and does nothing else: the limit that the rest is measured by.
int mt_engine_bare(mt_engine *e, int lane, uint64_t at, double seconds, uint64_t *decoded);

// mt_engine_serve executes messages whose offsets arrive on a socket, 8 bytes
// each, and answers each with 8 bytes: the result. It returns when the socket
// ends. spin is how many microseconds it looks for the next before it sleeps.
int mt_engine_serve(mt_engine *e, int lane, int fd, int spin);

#endif
