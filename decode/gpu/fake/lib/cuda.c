// A libcuda.so.1 over host memory: streams do their work at once, kernels are the
// host build of the engine's own. What it refuses and how it fails is what real
// drivers do; faults are asked for by MICROTOME_FAKE (see fault.h).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defect.h"
#include "fault.h"
#include "launch.h"
#include "memory.h"

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

static const size_t total = (size_t)1 << 30;

CUresult cuInit(unsigned flags) { return flags ? 1 : fault("cuInit"); }
CUresult cuDriverGetVersion(int *v) { *v = 13000; return fault("cuDriverGetVersion"); }
CUresult cuDeviceGetCount(int *n) { *n = 2; return fault("cuDeviceGetCount"); }
CUresult cuDeviceGet(int *d, int i) { *d = i; return i < 2 ? fault("cuDeviceGet") : 101; }
CUresult cuDeviceGetName(char *s, int n, int d) { (void)d; snprintf(s, n, "Microtome's fake"); return fault("cuDeviceGetName"); }
CUresult cuDeviceGetAttribute(int *v, int a, int d) {
  *v = a == 75 ? 7 : a == 76 ? 5 : a == 16 ? 1 : a == 33 ? d + 1 : 0;
  return fault("cuDeviceGetAttribute");
}
CUresult cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = total; return fault("cuDeviceTotalMem"); }
CUresult cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(d + 1); return fault("cuDevicePrimaryCtxRetain"); }
CUresult cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return fault("cuDevicePrimaryCtxRelease"); }
CUresult cuDevicePrimaryCtxSetFlags_v2(int d, unsigned f) { (void)d; return f > 31 ? 1 : fault("cuDevicePrimaryCtxSetFlags"); }

static __thread void *current;
CUresult cuCtxSetCurrent(void *c) {
  int e = fault("cuCtxSetCurrent");
  if (!e) current = c;
  return e;
}
// A call on a thread without a context is error 201, as in a real driver.
#define NEED_CONTEXT if (!current) return 201
// WORK does its work unless the call is to fail.
#define WORK(name, work) \
  do { NEED_CONTEXT; int e_ = fault(name); if (!e_) { work; } return e_; } while (0)

CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { WORK("cuMemGetInfo", *f = *t = total); }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  NEED_CONTEXT;
  int e = fault("cuMemAlloc");
  if (e) return e;
  if (n > total) return 2;
  *p = (CUdeviceptr)(uintptr_t)memory_get((int)(intptr_t)current, n);
  return *p ? 0 : 2;
}
CUresult cuMemFree_v2(CUdeviceptr p) { NEED_CONTEXT; return !memory_put(p) ? 1 : fault("cuMemFree"); }
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned f) { (void)p; (void)n; (void)f; WORK("cuMemHostRegister", ); }
CUresult cuMemHostUnregister(void *p) { (void)p; WORK("cuMemHostUnregister", ); }
CUresult cuStreamCreate(void **s, unsigned f) { (void)f; WORK("cuStreamCreate", *s = malloc(1)); }
CUresult cuStreamDestroy_v2(void *s) { WORK("cuStreamDestroy", free(s)); }
CUresult cuStreamSynchronize(void *s) { (void)s; WORK("cuStreamSynchronize", ); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, void *st) {
  (void)st; WORK("cuMemcpyHtoDAsync", memcpy((void *)(uintptr_t)d, s, n));
}
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, void *st) {
  (void)st; WORK("cuMemcpyDtoHAsync", memcpy(d, (void *)(uintptr_t)s, n - PLANTED("short")));
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, void *st) {
  (void)st; WORK("cuMemsetD8Async", memset((void *)(uintptr_t)d, v, n));
}

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
  if (!strstr(m, entry) || kernel_of(name) < 0) return 500; // CUDA_ERROR_NOT_FOUND
  *f = (void *)(intptr_t)(kernel_of(name) + 1);
  return fault("cuModuleGetFunction");
}

CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, void *s, void **args, void **extra) {
  NEED_CONTEXT;
  (void)s; (void)extra;
  if (gx == 0 || gy != 1 || gz != 1 || bx != KERNEL_BLOCK || by != 1 || bz != 1 || shared) return 1;
  int e = fault("cuLaunchKernel");
  if (e == FAULT_SKIP) return 0;
  if (e) return e;
  return run_kernel((int)(intptr_t)f - 1, gx, args) ? 0 : 400;
}
