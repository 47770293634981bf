// What is called of HIP, rocJPEG and hipRTC, declared here from their
// documentation and sources: no header of AMD's is needed. Names, numbers and
// layouts are those of HIP 6 and 7 (LP64) and rocJPEG 1.x.
//
// HIP differs from CUDA's driver API, call by call, in what docs/gpu.md lists.
// rocJPEG has no call that tells its version, or how many JPEG cores there are.
#ifndef MICROTOME_GPU_HIP_H
#define MICROTOME_GPU_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "library.h"
#include "vendor.h"

// HIP.
enum {
  HIP_OUT_OF_MEMORY = 2,   // hipErrorOutOfMemory
  HIP_NO_DEVICE = 100,     // hipErrorNoDevice
  HIP_NO_BINARY = 209,     // hipErrorNoBinaryForGpu
  HIP_SET_ON_ACTIVE = 708, // hipErrorSetOnActiveProcess
  HIP_REGISTERED = 712,    // hipErrorHostMemoryAlreadyRegistered
  HIP_STREAM_NON_BLOCKING = 1,
  HIP_HOST_REGISTER_PORTABLE = 1,
  HIP_SCHEDULE_BLOCKING_SYNC = 4, // hipDeviceScheduleBlockingSync
};

// Of hipDeviceProp_tR0600, which has 1472 bytes. It is filled into a zeroed buffer
// of HIP_PROPERTIES bytes: later versions may have made it longer.
enum {
  HIP_PROPERTIES = 8192,
  HIP_NAME = 0,              // char[256]
  HIP_MEMORY = 288,          // size_t totalGlobalMem
  HIP_MULTIPROCESSORS = 388, // int
  HIP_PCI_BUS = 584,         // int
  HIP_PCI_DEVICE = 588,      // int
  HIP_PCI_DOMAIN = 592,      // int
  HIP_ARCH = 1160,           // char gcnArchName[256]: gfx942:sramecc+:xnack-
};

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;

// hipGetDeviceProperties is a macro in HIP's header: the plain symbol fills an
// older layout.
#define HIP_SYMBOLS(X)                                                         \
  X(hipInit, (unsigned))                                                       \
  X(hipRuntimeGetVersion, (int *))                                             \
  X(hipGetDeviceCount, (int *))                                                \
  X(hipGetDevicePropertiesR0600, (void *, int))                                \
  X(hipSetDevice, (int))                                                       \
  X(hipSetDeviceFlags, (unsigned))                                             \
  X(hipMemGetInfo, (size_t *, size_t *))                                       \
  X(hipMalloc, (void **, size_t))                                              \
  X(hipFree, (void *))                                                         \
  X(hipHostRegister, (void *, size_t, unsigned))                               \
  X(hipHostUnregister, (void *))                                               \
  X(hipStreamCreateWithFlags, (hipStream_t *, unsigned))                       \
  X(hipStreamDestroy, (hipStream_t))                                           \
  X(hipStreamSynchronize, (hipStream_t))                                       \
  X(hipMemcpyHtoDAsync, (void *, const void *, size_t, hipStream_t))           \
  X(hipMemcpyDtoHAsync, (void *, void *, size_t, hipStream_t))                 \
  X(hipMemsetD8Async, (void *, unsigned char, size_t, hipStream_t))            \
  X(hipModuleLoadData, (hipModule_t *, const void *))                          \
  X(hipModuleGetFunction, (hipFunction_t *, hipModule_t, const char *))        \
  X(hipModuleLaunchKernel, (hipFunction_t, unsigned, unsigned, unsigned,       \
                            unsigned, unsigned, unsigned, unsigned,            \
                            hipStream_t, void **, void **))

// rocJPEG.
typedef void *RocJpegHandle;
typedef void *RocJpegStreamHandle;

enum {
  ROCJPEG_OUT_OF_MEMORY = -5,
  ROCJPEG_BACKEND_HARDWARE = 0,
  ROCJPEG_OUTPUT_NATIVE = 0,
};

// The order of the samplings is not nvJPEG's.
enum { ROCJPEG_CSS_444, ROCJPEG_CSS_440, ROCJPEG_CSS_422, ROCJPEG_CSS_420, ROCJPEG_CSS_411, ROCJPEG_CSS_400 };

// 48 bytes: a pitch has 32 bits here, and 64 in nvJPEG.
typedef struct {
  uint8_t *channel[4];
  uint32_t pitch[4];
} RocJpegImage;

// 20 bytes. All zeros: NATIVE, no crop, no scaling.
typedef struct {
  int32_t output_format;
  int16_t left, top, right, bottom;
  uint32_t width, height;
} RocJpegDecodeParams;

_Static_assert(sizeof(RocJpegImage) == 48 && offsetof(RocJpegImage, pitch) == 32, "RocJpegImage");
_Static_assert(sizeof(RocJpegDecodeParams) == 20 && offsetof(RocJpegDecodeParams, width) == 12, "RocJpegDecodeParams");

#define ROCJPEG_SYMBOLS(X)                                                     \
  X(rocJpegStreamCreate, (RocJpegStreamHandle *))                              \
  X(rocJpegStreamParse, (const unsigned char *, size_t, RocJpegStreamHandle))  \
  X(rocJpegStreamDestroy, (RocJpegStreamHandle))                               \
  X(rocJpegCreate, (int, int, RocJpegHandle *))                                \
  X(rocJpegDestroy, (RocJpegHandle))                                           \
  X(rocJpegGetImageInfo, (RocJpegHandle, RocJpegStreamHandle, uint8_t *,       \
                          int *, uint32_t *, uint32_t *))                      \
  X(rocJpegDecodeBatched, (RocJpegHandle, RocJpegStreamHandle *, int,          \
                           const RocJpegDecodeParams *, RocJpegImage *))

// Looked for and not called: versions from 1.7 on have it, and get whole batches; see
// rocjpeg_decode.
#define ROCJPEG_NEWER "rocJpegDecodeAsync"

// hipRTC, opened only for a GPU that no embedded code object is for.
typedef struct ihiprtcProgram *hiprtcProgram;
#define HIPRTC_SYMBOLS(X)                                                      \
  X(hiprtcVersion, (int *, int *))                                             \
  X(hiprtcCreateProgram, (hiprtcProgram *, const char *, const char *, int,    \
                          const char **, const char **))                       \
  X(hiprtcCompileProgram, (hiprtcProgram, int, const char **))                 \
  X(hiprtcGetProgramLogSize, (hiprtcProgram, size_t *))                        \
  X(hiprtcGetProgramLog, (hiprtcProgram, char *))                              \
  X(hiprtcGetCodeSize, (hiprtcProgram, size_t *))                              \
  X(hiprtcGetCode, (hiprtcProgram, char *))                                    \
  X(hiprtcDestroyProgram, (hiprtcProgram *))

#define HIP_EXTERN(name, args) extern int(*p_##name) args;
HIP_SYMBOLS(HIP_EXTERN)

struct mt_gpu {
  int device, code;
  uint32_t cores; // that decode JPEG
  char arch[64];  // without features: gfx942
  char pci[32];
};

// hip_kind turns what HIP said into a result; g may be NULL.
int hip_kind(mt_gpu *g, int e);
#define HIP_TRY(g, call)                                                       \
  do {                                                                         \
    int rc_ = hip_kind(g, call);                                               \
    if (rc_) return rc_;                                                       \
  } while (0)
#define HIP_BIND(g) HIP_TRY(g, p_hipSetDevice((g)->device))

// rocjpeg.c.
extern mt_library rocjpeg_library;
int rocjpeg_open(const char *dir); // MT_GPU_OK or MT_GPU_MISSING
void rocjpeg_limits(const mt_gpu *g, mt_gpu_info *i);
uint32_t rocjpeg_cores(const char *pci, const char *arch, int multiprocessors);
uint64_t rocjpeg_planes(int w, int h, int css, uint64_t at, mt_plane *p);
// rocjpeg_try makes a decoder and ends it: whether one can be had, and on this GPU.
int rocjpeg_try(mt_gpu *g, char *why, size_t n);
int rocjpeg_make(mt_gpu *g, mt_stream s, int batch, int w, int h, mt_jpeg **out);
void rocjpeg_end(mt_gpu *g, mt_jpeg *j);
int rocjpeg_decode(mt_gpu *g, mt_jpeg *j, mt_stream s, mt_jpeg_in *in, int n);

// hiprtc.c: compiles the kernels' source for an architecture. The image is
// malloc's.
int hiprtc_compile(const char *dir, const char *source, const char *arch, void **image, char *why, size_t n);

#endif
