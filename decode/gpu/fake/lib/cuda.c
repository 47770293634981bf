// A libcuda.so.1 over host memory: device memory is malloc's, streams do their
// work at once, kernels are the host build of the engine's own. What it refuses
// and how it fails stands in notes of what real drivers do; faults are asked for by
// MICROTOME_FAKE (see fault.h).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fault.h"
#include "../../native/kernels.h"

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

CUresult cuInit(unsigned flags) { return flags ? 1 : fault("cuInit"); }
CUresult cuDriverGetVersion(int *v) { *v = 13000; return 0; }
CUresult cuDeviceGetCount(int *n) { *n = 2; return fault("cuDeviceGetCount"); }
CUresult cuDeviceGet(int *d, int i) { *d = i; return i < 2 ? 0 : 101; }
CUresult cuDeviceGetName(char *s, int n, int d) { (void)d; snprintf(s, n, "Microtome's fake"); return 0; }
CUresult cuDeviceGetAttribute(int *v, int a, int d) {
  *v = a == 75 ? 7 : a == 76 ? 5 : a == 16 ? 1 : a == 33 ? d + 1 : 0;
  return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = (size_t)1 << 30; return 0; }
CUresult cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(d + 1); return fault("cuDevicePrimaryCtxRetain"); }
CUresult cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return 0; }

CUresult cuDevicePrimaryCtxSetFlags_v2(int d, unsigned f) { (void)d; return f > 31; }

static __thread void *current;
CUresult cuCtxSetCurrent(void *c) { current = c; return 0; }
// A call on a thread without a context is error 201, as in a real driver.
#define NEED_CONTEXT if (!current) return 201

CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { NEED_CONTEXT; *f = *t = (size_t)1 << 30; return 0; }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  NEED_CONTEXT;
  int e = fault("cuMemAlloc");
  if (e) return e;
  if (n > (size_t)1 << 30) return 2;
  // Huge pages, where the system has them: an arena is filled at each start.
  const size_t page = n < (size_t)1 << 21 ? 256 : (size_t)1 << 21;
  const size_t bytes = (n + page - 1) / page * page;
  void *at = aligned_alloc(page, bytes);
  if (!at) return 2;
  if (page > 256) madvise(at, bytes, MADV_HUGEPAGE);
  memset(at, 0xDB, n); // what a program must not rely on
  *p = (CUdeviceptr)(uintptr_t)at;
  return 0;
}
CUresult cuMemFree_v2(CUdeviceptr p) { NEED_CONTEXT; free((void *)(uintptr_t)p); return 0; }
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned f) { NEED_CONTEXT; (void)p; (void)n; (void)f; return fault("cuMemHostRegister"); }
CUresult cuMemHostUnregister(void *p) { NEED_CONTEXT; (void)p; return 0; }
CUresult cuStreamCreate(void **s, unsigned f) { NEED_CONTEXT; (void)f; *s = malloc(1); return *s ? 0 : 2; }
CUresult cuStreamDestroy_v2(void *s) { NEED_CONTEXT; free(s); return 0; }
CUresult cuStreamSynchronize(void *s) { NEED_CONTEXT; (void)s; return fault("cuStreamSynchronize"); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, void *st) {
  NEED_CONTEXT; (void)st; memcpy((void *)(uintptr_t)d, s, n); return fault("cuMemcpyHtoDAsync");
}
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, void *st) {
  NEED_CONTEXT; (void)st; memcpy(d, (void *)(uintptr_t)s, n); return fault("cuMemcpyDtoHAsync");
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, void *st) {
  NEED_CONTEXT; (void)st; memset((void *)(uintptr_t)d, v, n); return 0;
}

static const char *const kernels[] = {"mt_paint_kernel", "mt_fill_kernel", "mt_lay_kernel", "mt_across_kernel", "mt_down_kernel"};

// A module must be PTX that has every kernel asked for.
CUresult cuModuleLoadData(void **m, const void *image) {
  NEED_CONTEXT;
  if (!strstr(image, ".target sm_75")) return 218; // CUDA_ERROR_INVALID_PTX
  *m = (void *)image;
  return fault("cuModuleLoadData");
}
CUresult cuModuleGetFunction(void **f, void *m, const char *name) {
  NEED_CONTEXT;
  char entry[80];
  snprintf(entry, sizeof entry, ".entry %s(", name);
  if (!strstr(m, entry)) return 500; // CUDA_ERROR_NOT_FOUND
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(kernels[i], name) == 0) {
      *f = (void *)(i + 1);
      return 0;
    }
  return 500;
}

#define ARG(type, i) (*(type *)args[i])
CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, void *s, void **args, void **extra) {
  NEED_CONTEXT;
  (void)s; (void)extra;
  if (gx == 0 || gy != 1 || gz != 1 || bx != 256 || by != 1 || bz != 1 || shared) return 1;
  int e = fault("cuLaunchKernel");
  if (e == FAULT_SKIP) return 0;
  if (e) return e;
  uint64_t n = (uint64_t)gx * bx;
  int k = (int)(intptr_t)f - 1;
  for (uint64_t t = 0; t < n; t++) {
    switch (k) {
    case 0: if (t < (uint64_t)ARG(uint32_t, 1) * ARG(uint32_t, 2)) mt_paint_at(ARG(const mt_paint *, 0), ARG(uint32_t, 1), t); break;
    case 1: if (t < (uint64_t)ARG(uint32_t, 1) * ARG(uint32_t, 2)) mt_fill_at(ARG(const mt_target *, 0), ARG(uint32_t, 1), t); break;
    case 2: if (t < (uint64_t)ARG(uint32_t, 2) * ARG(uint32_t, 3)) mt_lay_at(ARG(const mt_part *, 0), ARG(const mt_target *, 1), ARG(uint32_t, 2), t); break;
    case 3: mt_across_at(ARG(const mt_filter *, 0), ARG(const mt_target *, 1), t); break;
    case 4: mt_down_at(ARG(const mt_filter *, 0), ARG(const mt_target *, 1), t); break;
    default: return 400;
    }
  }
  return 0;
}
