//go:build cgo && linux

// CUDA's driver API and nvJPEG, opened at run time. The types are written down
// here from the libraries' documentation; only what is called stands here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "message.h"
#include "vendor.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

enum {
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CU_ATTR_MULTIPROCESSORS = 16,
  CU_ATTR_PCI_BUS = 33,
  CU_ATTR_PCI_DEVICE = 34,
  CU_ATTR_PCI_DOMAIN = 50,
  CU_ATTR_MAJOR = 75,
  CU_ATTR_MINOR = 76,
  CU_STREAM_NON_BLOCKING = 1,
  CU_HOST_REGISTER_PORTABLE = 1,
  CU_CTX_SCHED_BLOCKING_SYNC = 4,
};

// nvJPEG.
typedef struct nvjpegHandle *nvjpegHandle_t;
typedef struct nvjpegJpegState *nvjpegJpegState_t;
typedef struct {
  unsigned char *channel[4];
  size_t pitch[4];
} nvjpegImage_t;
enum {
  NVJPEG_BACKEND_HARDWARE = 3,
  NVJPEG_OUTPUT_YUV = 1, // planes as they are stored
  NVJPEG_CSS_444 = 0,
};

#define CUDA_SYMBOLS(X)                                                        \
  X(cuInit, (unsigned))                                                        \
  X(cuDriverGetVersion, (int *))                                               \
  X(cuDeviceGetCount, (int *))                                                 \
  X(cuDeviceGet, (CUdevice *, int))                                            \
  X(cuDeviceGetName, (char *, int, CUdevice))                                  \
  X(cuDeviceGetAttribute, (int *, int, CUdevice))                              \
  X(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                 \
  X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                         \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                  \
  X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice, unsigned))                       \
  X(cuCtxSetCurrent, (CUcontext))                                              \
  X(cuMemGetInfo_v2, (size_t *, size_t *))                                     \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                    \
  X(cuMemFree_v2, (CUdeviceptr))                                               \
  X(cuMemHostRegister_v2, (void *, size_t, unsigned))                          \
  X(cuMemHostUnregister, (void *))                                             \
  X(cuStreamCreate, (CUstream *, unsigned))                                    \
  X(cuStreamDestroy_v2, (CUstream))                                            \
  X(cuStreamSynchronize, (CUstream))                                           \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))       \
  X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))             \
  X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))           \
  X(cuModuleLoadData, (CUmodule *, const void *))                              \
  X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))               \
  X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned,       \
                     unsigned, unsigned, unsigned, CUstream, void **, void **))

#define NVJPEG_SYMBOLS(X)                                                      \
  X(nvjpegGetProperty, (int, int *))                                           \
  X(nvjpegCreateEx, (int, void *, void *, unsigned, nvjpegHandle_t *))         \
  X(nvjpegDestroy, (nvjpegHandle_t))                                           \
  X(nvjpegGetHardwareDecoderInfo, (nvjpegHandle_t, unsigned *, unsigned *))    \
  X(nvjpegJpegStateCreate, (nvjpegHandle_t, nvjpegJpegState_t *))              \
  X(nvjpegJpegStateDestroy, (nvjpegJpegState_t))                               \
  X(nvjpegDecodeBatchedPreAllocate,                                            \
    (nvjpegHandle_t, nvjpegJpegState_t, int, int, int, int, int))              \
  X(nvjpegDecodeBatchedInitialize, (nvjpegHandle_t, nvjpegJpegState_t, int, int, int)) \
  X(nvjpegDecodeBatched,                                                       \
    (nvjpegHandle_t, nvjpegJpegState_t, const unsigned char *const *,          \
     const size_t *, nvjpegImage_t *, CUstream))

#define DECLARE(name, args) static int(*p_##name) args;
CUDA_SYMBOLS(DECLARE)
NVJPEG_SYMBOLS(DECLARE)

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static int opened, loaded, host_code; // host_code: of the calls that have no device
static mt_library driver, decoder;

struct mt_gpu {
  CUdevice device;
  CUcontext context;
  int code;
};

struct mt_jpeg {
  nvjpegHandle_t handle;
  nvjpegJpegState_t state;
  int batch, prepared; // prepared: the count that the state was initialized for
  nvjpegImage_t *images;
  const unsigned char **data;
  size_t *lens;
};

// driver_version: libcuda.so.1 is a link to libcuda.so.580.95.05, the driver's own
// number, which CUDA does not tell; else the kernel's module says it.
static void driver_version(mt_library *l) {
  char *real = realpath(l->file, NULL);
  const char *v = real ? strstr(real, "libcuda.so.") : NULL;
  if (v) v += strlen("libcuda.so.");
  if (v && strspn(v, "0123456789") >= 3) snprintf(l->version, sizeof l->version, "%s", v);
  free(real);
  FILE *f = *l->version ? NULL : fopen("/sys/module/nvidia/version", "re");
  if (!f) return;
  if (fscanf(f, "%31[0-9.]", l->version) != 1) l->version[0] = 0;
  fclose(f);
}

static int open_locked(const char *dir) {
  // The driver belongs to the host: it is never taken from a folder of
  // libraries unless it lies there too.
  static const char *const cuda_names[] = {"libcuda.so.1", NULL};
  static const char *const nvjpeg_names[] = {
      "libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11", NULL};
  static const char *const nvjpeg_places[] = {
      "/usr/local/cuda/lib64/libnvjpeg.so.13", "/usr/local/cuda/lib64/libnvjpeg.so.12",
      "/usr/local/cuda/lib64/libnvjpeg.so", NULL};
  driver = (mt_library){.role = "driver"};
  decoder = (mt_library){.role = "decoder"};
  void *cuda = mt_library_open(&driver, dir, cuda_names);
  if (!cuda && *dir) cuda = mt_library_open(&driver, "", cuda_names);
  void *nvjpeg = mt_library_open(&decoder, dir, nvjpeg_names);
  if (!nvjpeg && !*dir) nvjpeg = mt_library_open(&decoder, "", nvjpeg_places);
#define FIND(l, lib, symbol)                                                   \
  if (lib && !(*(void **)&p_##symbol = dlsym(lib, #symbol)) && !*(l).why)      \
    snprintf((l).why, sizeof(l).why, "%s has no %s", (l).file, #symbol);
#define FIND_CUDA(name, args) FIND(driver, cuda, name)
#define FIND_NVJPEG(name, args) FIND(decoder, nvjpeg, name)
  CUDA_SYMBOLS(FIND_CUDA)
  NVJPEG_SYMBOLS(FIND_NVJPEG)
  if (cuda) driver_version(&driver);
  int v[3] = {0};
  if (nvjpeg && p_nvjpegGetProperty) {
    for (int i = 0; i < 3; i++) p_nvjpegGetProperty(i, &v[i]);
    snprintf(decoder.version, sizeof decoder.version, "%d.%d.%d", v[0], v[1], v[2]);
  }
  return *driver.why || *decoder.why ? MT_GPU_MISSING : MT_GPU_OK;
}

static int nv_libraries(const char *dir, mt_library *found) {
  pthread_mutex_lock(&loading);
  if (!opened && open_locked(dir) == MT_GPU_OK) opened = 1;
  found[0] = driver;
  found[1] = decoder;
  pthread_mutex_unlock(&loading);
  return 2;
}

static int load_locked(const char *dir, char *why, size_t n) {
  if (!opened && open_locked(dir)) {
    snprintf(why, n, "%s", *driver.why ? driver.why : decoder.why);
    return MT_GPU_MISSING;
  }
  opened = 1;
  int e = host_code = p_cuInit(0);
  if (e) {
    snprintf(why, n, "cuInit: CUDA error %d", e);
    return e == 100 ? MT_GPU_NONE : MT_GPU_LOST;
  }
  return MT_GPU_OK;
}

static int nv_load(const char *dir, char *why, size_t n) {
  pthread_mutex_lock(&loading);
  int rc = loaded ? MT_GPU_OK : load_locked(dir, why, n);
  if (rc == MT_GPU_OK) loaded = 1;
  pthread_mutex_unlock(&loading);
  return rc;
}

static int kind(mt_gpu *g, int e) {
  if (e == 0) return MT_GPU_OK;
  *(g ? &g->code : &host_code) = e;
  return e == CUDA_ERROR_OUT_OF_MEMORY ? MT_GPU_MEMORY : MT_GPU_LOST;
}
#define TRY(g, call)                                                           \
  do {                                                                         \
    int rc_ = kind(g, call);                                                   \
    if (rc_) return rc_;                                                       \
  } while (0)
#define BIND(g) TRY(g, p_cuCtxSetCurrent((g)->context))

static int nv_count(int *n) { return kind(NULL, p_cuDeviceGetCount(n)); }

static int attribute(CUdevice d, int a) {
  int v = 0;
  return p_cuDeviceGetAttribute(&v, a, d) ? 0 : v;
}

static void decoder_info(mt_gpu_info *i) {
  snprintf(i->decoder, sizeof i->decoder, "nvJPEG %s", decoder.version);
  nvjpegHandle_t h;
  if (p_nvjpegCreateEx(NVJPEG_BACKEND_HARDWARE, NULL, NULL, 0, &h)) return;
  unsigned engines = 0, cores = 0;
  if (p_nvjpegGetHardwareDecoderInfo(h, &engines, &cores) == 0)
    i->jpeg_engines = engines * cores;
  p_nvjpegDestroy(h);
}

static int nv_info(int index, mt_gpu_info *i) {
  CUdevice d;
  memset(i, 0, sizeof *i);
  if (p_cuDeviceGet(&d, index)) return MT_GPU_NONE;
  p_cuDeviceGetName(i->name, sizeof i->name, d);
  snprintf(i->arch, sizeof i->arch, "sm_%d%d", attribute(d, CU_ATTR_MAJOR), attribute(d, CU_ATTR_MINOR));
  snprintf(i->pci, sizeof i->pci, "%04x:%02x:%02x.0", attribute(d, CU_ATTR_PCI_DOMAIN),
           attribute(d, CU_ATTR_PCI_BUS), attribute(d, CU_ATTR_PCI_DEVICE));
  i->multiprocessors = attribute(d, CU_ATTR_MULTIPROCESSORS);
  i->css = (1 << MT_CSS_COUNT) - 1;
  size_t total = 0, free_now = 0;
  p_cuDeviceTotalMem_v2(&total, d);
  i->memory = total;
  int v = 0;
  p_cuDriverGetVersion(&v);
  snprintf(i->driver, sizeof i->driver, "CUDA %d.%d", v / 1000, v % 1000 / 10);
  snprintf(i->libraries[0], sizeof i->libraries[0], "%s", driver.file);
  snprintf(i->libraries[1], sizeof i->libraries[1], "%s", decoder.file);
  CUcontext c;
  int e = p_cuDevicePrimaryCtxRetain(&c, d);
  if (e) return kind(NULL, e);
  p_cuCtxSetCurrent(c);
  p_cuMemGetInfo_v2(&free_now, &total);
  i->memory_free = free_now;
  decoder_info(i);
  p_cuCtxSetCurrent(NULL);
  p_cuDevicePrimaryCtxRelease_v2(d);
  return MT_GPU_OK;
}

static int nv_open(int index, int blocking, mt_gpu **out) {
  mt_gpu *g = calloc(1, sizeof *g);
  if (!g) return MT_GPU_MEMORY;
  if (p_cuDeviceGet(&g->device, index)) {
    free(g);
    return MT_GPU_NONE;
  }
  int rc = MT_GPU_OK;
  if (blocking) rc = kind(g, p_cuDevicePrimaryCtxSetFlags_v2(g->device, CU_CTX_SCHED_BLOCKING_SYNC));
  if (!rc) rc = kind(g, p_cuDevicePrimaryCtxRetain(&g->context, g->device));
  if (rc) {
    host_code = g->code;
    free(g);
    return rc;
  }
  *out = g;
  return MT_GPU_OK;
}

static void nv_close(mt_gpu *g) {
  host_code = g->code; // of the call for which it is closed
  p_cuDevicePrimaryCtxRelease_v2(g->device);
  free(g);
}

static int nv_last_code(mt_gpu *g) { return g ? g->code : host_code; }

static int nv_alloc(mt_gpu *g, uint64_t bytes, uint64_t *at) {
  BIND(g);
  CUdeviceptr p = 0;
  TRY(g, p_cuMemAlloc_v2(&p, bytes));
  *at = p;
  return MT_GPU_OK;
}

static void nv_free(mt_gpu *g, uint64_t at) {
  if (p_cuCtxSetCurrent(g->context) == 0) p_cuMemFree_v2(at);
}

static int nv_pin(mt_gpu *g, void *at, uint64_t bytes) {
  BIND(g);
  return kind(g, p_cuMemHostRegister_v2(at, bytes, CU_HOST_REGISTER_PORTABLE)) ? MT_GPU_PIN : MT_GPU_OK;
}

static void nv_unpin(mt_gpu *g, void *at) {
  if (p_cuCtxSetCurrent(g->context) == 0) p_cuMemHostUnregister(at);
}

static int nv_stream(mt_gpu *g, mt_stream *s) {
  BIND(g);
  CUstream c = NULL;
  TRY(g, p_cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
  *s = (uint64_t)(uintptr_t)c;
  return MT_GPU_OK;
}

static CUstream stream_of(mt_stream s) { return (CUstream)(uintptr_t)s; }

static void nv_stream_end(mt_gpu *g, mt_stream s) {
  if (p_cuCtxSetCurrent(g->context) == 0) p_cuStreamDestroy_v2(stream_of(s));
}

static int nv_to_device(mt_gpu *g, mt_stream s, uint64_t dst, const void *src, uint64_t n) {
  BIND(g);
  return kind(g, p_cuMemcpyHtoDAsync_v2(dst, src, n, stream_of(s)));
}

static int nv_to_host(mt_gpu *g, mt_stream s, void *dst, uint64_t src, uint64_t n) {
  BIND(g);
  return kind(g, p_cuMemcpyDtoHAsync_v2(dst, src, n, stream_of(s)));
}

static int nv_fill(mt_gpu *g, mt_stream s, uint64_t dst, uint8_t v, uint64_t n) {
  BIND(g);
  return kind(g, p_cuMemsetD8Async(dst, v, n, stream_of(s)));
}

static int nv_wait(mt_gpu *g, mt_stream s) {
  BIND(g);
  return kind(g, p_cuStreamSynchronize(stream_of(s)));
}

static int nv_kernels(mt_gpu *g, const mt_kernels *k, const char *const *names, int n, mt_function *f, char *why, size_t len) {
  (void)why, (void)len;
  BIND(g);
  CUmodule m;
  TRY(g, p_cuModuleLoadData(&m, k->image));
  for (int i = 0; i < n; i++) {
    CUfunction c;
    TRY(g, p_cuModuleGetFunction(&c, m, names[i]));
    f[i] = (uint64_t)(uintptr_t)c;
  }
  return MT_GPU_OK;
}

static int nv_launch(mt_gpu *g, mt_stream s, mt_function f, uint32_t blocks, void **args) {
  BIND(g);
  return kind(g, p_cuLaunchKernel((CUfunction)(uintptr_t)f, blocks, 1, 1, MT_BLOCK, 1, 1, 0,
                                  stream_of(s), args, NULL));
}

static int jpeg_kind(mt_gpu *g, int e) {
  if (e == 0) return MT_GPU_OK;
  g->code = e;
  return e == 5 ? MT_GPU_MEMORY : MT_GPU_REFUSED;
}

static void nv_jpeg_end(mt_gpu *g, mt_jpeg *j) {
  if (p_cuCtxSetCurrent(g->context)) return;
  if (j->state) p_nvjpegJpegStateDestroy(j->state);
  if (j->handle) p_nvjpegDestroy(j->handle);
  free(j->images);
  free(j->data);
  free(j->lens);
  free(j);
}

// Without memory allocated before, nvJPEG's hardware batches fail at random when
// several lanes decode at once (seen with 13.0: codes 5 and 6).
static int nv_jpeg(mt_gpu *g, mt_stream s, int batch, int w, int h, mt_jpeg **out) {
  (void)s;
  BIND(g);
  mt_jpeg *j = calloc(1, sizeof *j);
  if (!j) return MT_GPU_MEMORY;
  j->batch = batch;
  j->images = calloc(batch, sizeof *j->images);
  j->data = calloc(batch, sizeof *j->data);
  j->lens = calloc(batch, sizeof *j->lens);
  int rc = j->images && j->data && j->lens ? MT_GPU_OK : MT_GPU_MEMORY;
  if (!rc) rc = jpeg_kind(g, p_nvjpegCreateEx(NVJPEG_BACKEND_HARDWARE, NULL, NULL, 0, &j->handle));
  if (!rc) rc = jpeg_kind(g, p_nvjpegJpegStateCreate(j->handle, &j->state));
  if (!rc)
    rc = jpeg_kind(g, p_nvjpegDecodeBatchedPreAllocate(j->handle, j->state, batch, w, h,
                                                       NVJPEG_CSS_444, NVJPEG_OUTPUT_YUV));
  if (rc) {
    nv_jpeg_end(g, j);
    return rc;
  }
  *out = j;
  return MT_GPU_OK;
}

// The hardware decoder writes when it is called, whatever the stream still has to
// do: the caller has waited for whoever used the planes before.
static int nv_decode(mt_gpu *g, mt_jpeg *j, mt_stream s, mt_jpeg_in *in, int n) {
  BIND(g);
  for (int i = 0; i < n; i++) {
    j->data[i] = in[i].data;
    j->lens[i] = in[i].len;
    memset(&j->images[i], 0, sizeof j->images[i]);
    for (int c = 0; c < 3 && in[i].plane[c].at; c++) {
      j->images[i].channel[c] = (unsigned char *)in[i].plane[c].at;
      j->images[i].pitch[c] = in[i].plane[c].pitch;
    }
  }
  if (j->prepared != n) {
    j->prepared = 0;
    int rc = jpeg_kind(g, p_nvjpegDecodeBatchedInitialize(j->handle, j->state, n, 1, NVJPEG_OUTPUT_YUV));
    if (rc) return rc;
    j->prepared = n;
  }
  return jpeg_kind(g, p_nvjpegDecodeBatched(j->handle, j->state, j->data, j->lens, j->images, stream_of(s)));
}

const mt_vendor mt_nvidia = {
    .name = "nvidia",
    .libraries = nv_libraries, .load = nv_load, .count = nv_count, .info = nv_info, .open = nv_open, .close = nv_close,
    .last_code = nv_last_code,
    .alloc = nv_alloc, .free = nv_free, .pin = nv_pin, .unpin = nv_unpin,
    .stream = nv_stream, .stream_end = nv_stream_end,
    .to_device = nv_to_device, .to_host = nv_to_host, .fill = nv_fill, .wait = nv_wait,
    .kernels = nv_kernels, .launch = nv_launch,
    .planes = mt_planar, .jpeg = nv_jpeg, .jpeg_end = nv_jpeg_end, .decode = nv_decode,
};
