// The part of CUDA's driver API that the HIP shim stands on, opened at run time.
// The types are written down here from the library's documentation.
#ifndef MICROTOME_SHIM_CUDA_H
#define MICROTOME_SHIM_CUDA_H

#include <stddef.h>

typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;

enum {
  CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
  CU_ATTR_PCI_BUS = 33,
  CU_ATTR_PCI_DEVICE = 34,
  CU_ATTR_PCI_DOMAIN = 50,
};

#define CUDA_SYMBOLS(X)                                                           \
  X(cuInit, (unsigned))                                                        \
  X(cuDeviceGetCount, (int *))                                                 \
  X(cuDeviceGetName, (char *, int, int))                                       \
  X(cuDeviceGetAttribute, (int *, int, int))                                   \
  X(cuDeviceTotalMem_v2, (size_t *, int))                                      \
  X(cuDevicePrimaryCtxRetain, (CUcontext *, int))                              \
  X(cuDevicePrimaryCtxSetFlags_v2, (int, unsigned))                            \
  X(cuCtxSetCurrent, (CUcontext))                                              \
  X(cuMemGetInfo_v2, (size_t *, size_t *))                                     \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                    \
  X(cuMemFree_v2, (CUdeviceptr))                                               \
  X(cuMemHostRegister_v2, (void *, size_t, unsigned))                          \
  X(cuMemHostUnregister, (void *))                                             \
  X(cuStreamCreate, (void **, unsigned))                                       \
  X(cuStreamDestroy_v2, (void *))                                              \
  X(cuStreamSynchronize, (void *))                                             \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, void *))         \
  X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, void *))               \
  X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, void *))             \
  X(cuModuleLoadData, (void **, const void *))                                 \
  X(cuModuleGetFunction, (void **, void *, const char *))                      \
  X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, unsigned, void *, void **, void **))

#endif
