// The part of HIP that the shims make and use, written down from its documentation.
#ifndef MICROTOME_SHIM_HIP_H
#define MICROTOME_SHIM_HIP_H

#include <stddef.h>

enum {
  HIP_INVALID_VALUE = 1,
  HIP_NO_DEVICE = 100,
  HIP_INVALID_DEVICE = 101,
  HIP_INVALID_IMAGE = 200,
  HIP_NO_BINARY = 209,
  HIP_NOT_SUPPORTED = 801,
};
enum { MAX_DEVICES = 64, HIP_STREAM_NON_BLOCKING = 1, HIP_HOST_PORTABLE = 1 };

// hipDeviceProp_tR0600: offsets of fields, and its size.
enum {
  PROPERTIES_TOTAL = 288,
  PROPERTIES_WARP = 308,
  PROPERTIES_PROCESSORS = 388,
  PROPERTIES_PCI_BUS = 584,
  PROPERTIES_PCI_DEVICE = 588,
  PROPERTIES_PCI_DOMAIN = 592,
  PROPERTIES_ARCH = 1160,
  PROPERTIES_SIZE = 1472,
};

// What librocjpeg's shim calls: HIP's own, and shim_enter (hip.c).
int shim_enter(int device);
int hipMalloc(void **at, size_t n);
int hipFree(void *at);
int hipHostRegister(void *at, size_t n, unsigned flags);
int hipHostUnregister(void *at);
int hipStreamCreateWithFlags(void **s, unsigned flags);
int hipStreamDestroy(void *s);
int hipStreamSynchronize(void *s);
int hipMemcpyHtoDAsync(void *dst, const void *src, size_t n, void *s);
int hipModuleLoadData(void **m, const void *image);
int hipModuleGetFunction(void **f, void *m, const char *name);
int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *s, void **args, void **extra);

#endif
