// What the engine needs of a GPU, as one table of functions for each vendor: the
// table is all that differs between them. No vendor header is used; the
// libraries are opened at run time and never closed.
//
// Every function may be called from any thread: those that take a device make it
// the thread's own first. They return MT_GPU_OK or another MT_GPU_* and leave the
// vendor's own code in the device's last_code. Streams and decoders are used by
// one thread at a time.
#ifndef MICROTOME_GPU_VENDOR_H
#define MICROTOME_GPU_VENDOR_H

#include <stddef.h>
#include <stdint.h>

#include "kernels.h"

enum {
  MT_GPU_OK = 0,
  MT_GPU_MISSING = 1,  // a library or one of its symbols
  MT_GPU_NONE = 2,     // no such device
  MT_GPU_MEMORY = 3,   // not enough of it
  MT_GPU_REFUSED = 4,  // the decoder refused the batch
  MT_GPU_LOST = 5,     // anything else that the device or driver said
  MT_GPU_INVALID = 6,  // the message breaks its own format
  MT_GPU_PIN = 7,      // the host's memory can't be pinned
};

typedef struct {
  char name[128];
  char arch[32];         // sm_90, gfx942
  char pci[32];          // 0000:00:06.0
  char driver[32], decoder[32]; // versions
  char libraries[3][256];       // the files that were opened
  uint64_t memory, memory_free;
  uint32_t jpeg_engines; // units that decode JPEG; 0: none
  uint32_t multiprocessors;
  uint32_t min_side, max_side; // of streams, in pixels
  uint32_t css;                // samplings that are decoded: bits 1 << MT_CSS_*
  uint32_t css_tried;          // of those, the ones that may crash: a child tries them first
  uint32_t batch;              // streams a call that suit it; 0: any
  char why[256];               // it can't be used, where there is more to say than a code
} mt_gpu_info;

// mt_library is a library that a vendor's engine needs, and where it was looked for.
typedef struct {
  char role[16];    // driver, decoder
  char looked[512]; // what the loader was asked for, a line each
  char file[256];   // what it opened; empty: nothing
  char version[32]; // empty: unknown
  char why[256];    // what is wrong with it; empty: nothing
  int absent;       // no file of that name was there
} mt_library;
enum { MT_LIBRARIES = 3 }; // at most

typedef struct mt_gpu mt_gpu;
typedef struct mt_jpeg mt_jpeg;
typedef uint64_t mt_stream; // a handle of the vendor's
typedef uint64_t mt_function;

// mt_stream_in: one canonical stream, and where its components go.
typedef struct {
  const uint8_t *data;
  size_t len;
  uint16_t w, h;
  uint8_t css;
  mt_plane plane[3]; // as planes has laid them
} mt_jpeg_in;

// mt_kernels: the engine's kernels, compiled for the device, or, where image is NULL,
// as source to be compiled.
typedef struct {
  const void *image; // bytes of it; PTX ends with a NUL beyond them
  size_t bytes;
  const char *source;
  const char *libraries; // folder of the compiler, or ""
} mt_kernels;

typedef struct {
  const char *name;
  // libraries opens those of the folder dir, or of the loader's own search when
  // dir is empty, and returns how many it describes. It may be called again.
  int (*libraries)(const char *dir, mt_library *found);
  // load opens them and starts the driver. why is filled in when it fails. It may
  // be called again.
  int (*load)(const char *dir, char *why, size_t why_len);
  int (*count)(int *n);
  int (*info)(int index, mt_gpu_info *info);
  // open's blocking has threads sleep while they wait for the device: slower
  // answers, and idle cores.
  int (*open)(int index, int blocking, mt_gpu **gpu);
  void (*close)(mt_gpu *gpu);
  int (*last_code)(mt_gpu *gpu); // NULL: of the calls that have no device

  int (*alloc)(mt_gpu *gpu, uint64_t bytes, uint64_t *at);
  void (*free)(mt_gpu *gpu, uint64_t at);
  int (*pin)(mt_gpu *gpu, void *at, uint64_t bytes);
  void (*unpin)(mt_gpu *gpu, void *at);

  int (*stream)(mt_gpu *gpu, mt_stream *s);
  void (*stream_end)(mt_gpu *gpu, mt_stream s);
  int (*to_device)(mt_gpu *gpu, mt_stream s, uint64_t dst, const void *src, uint64_t n);
  int (*to_host)(mt_gpu *gpu, mt_stream s, void *dst, uint64_t src, uint64_t n);
  int (*fill)(mt_gpu *gpu, mt_stream s, uint64_t dst, uint8_t value, uint64_t n);
  int (*wait)(mt_gpu *gpu, mt_stream s);

  // kernels loads the engine's kernels; functions are in the order of names. why is
  // filled in when there is more to say than a code.
  int (*kernels)(mt_gpu *gpu, const mt_kernels *k, const char *const *names, int n, mt_function *f, char *why, size_t why_len);
  int (*launch)(mt_gpu *gpu, mt_stream s, mt_function f, uint32_t blocks, void **args);

  // planes lays the components of a stream into memory from at on, as decode leaves
  // them, and returns how many bytes they take. Decoders may write all of them.
  uint64_t (*planes)(int w, int h, int css, uint64_t at, mt_plane *p);
  // jpeg makes a decoder for up to batch streams of at most w x h. decode writes
  // the components and returns when they may be read by s's next work. After a
  // failure the decoder is remade by the caller.
  int (*jpeg)(mt_gpu *gpu, mt_stream s, int batch, int w, int h, mt_jpeg **j);
  void (*jpeg_end)(mt_gpu *gpu, mt_jpeg *j);
  int (*decode)(mt_gpu *gpu, mt_jpeg *j, mt_stream s, mt_jpeg_in *in, int n);
} mt_vendor;

// MT_BLOCK is how many threads a block of the kernels has.
enum { MT_BLOCK = 256 };

// mt_planar is mt_vendor.planes for decoders that write a plane for each component.
uint64_t mt_planar(int w, int h, int css, uint64_t at, mt_plane *p);

extern const mt_vendor mt_nvidia, mt_amd;

#endif
