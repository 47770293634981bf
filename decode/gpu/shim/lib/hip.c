// A libamdhip64.so.7 over CUDA's driver, so that the engine's AMD half runs on an
// NVIDIA GPU. HIP's numbers of errors and flags are CUDA's wherever the engine
// meets them, so they pass through. What differs between the two is kept as HIP
// has it: the current device is a thread's and needs no context, the driver starts
// by itself, and a module is an AMD code object. Its machine code is not run: the
// engine's PTX takes its place.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "hip.h"

#define DECLARE(name, args) static int(*p_##name) args;
CUDA_SYMBOLS(DECLARE)

// The engine's kernels, for NVIDIA.
extern const char engine_ptx[];
__asm__(".pushsection .rodata\n"
        "engine_ptx: .incbin \"" ENGINE_PTX "\"\n .byte 0\n"
        ".popsection");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int start_code, devices;
static CUcontext contexts[MAX_DEVICES];
static pthread_mutex_t retaining = PTHREAD_MUTEX_INITIALIZER;
static __thread int device;

static void start(void) {
  start_code = HIP_NO_DEVICE;
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!cuda) {
    fprintf(stderr, "microtome's HIP shim: %s\n", dlerror());
    return;
  }
#define MUST(name, args)                                                       \
  if (!(*(void **)&p_##name = dlsym(cuda, #name))) {                           \
    fprintf(stderr, "microtome's HIP shim: libcuda.so.1 has no " #name "\n");  \
    return;                                                                    \
  }
  CUDA_SYMBOLS(MUST)
  start_code = p_cuInit(0);
  if (!start_code) start_code = p_cuDeviceGetCount(&devices);
  if (devices > MAX_DEVICES) devices = MAX_DEVICES;
}

static int started(void) {
  pthread_once(&once, start);
  return start_code;
}

static int known(int d) { return d >= 0 && d < devices ? 0 : HIP_INVALID_DEVICE; }

// current makes the thread's device CUDA's current context: nothing that HIP's
// callers did before has.
static int current(void) {
  int e = started();
  if (!e) e = known(device);
  if (e) return e;
  pthread_mutex_lock(&retaining);
  if (!contexts[device]) e = p_cuDevicePrimaryCtxRetain(&contexts[device], device);
  CUcontext c = contexts[device];
  pthread_mutex_unlock(&retaining);
  return e ? e : p_cuCtxSetCurrent(c);
}

#define CALL(...)                                                              \
  do {                                                                         \
    int e_ = current();                                                        \
    return e_ ? e_ : (__VA_ARGS__);                                            \
  } while (0)

int hipInit(unsigned flags) { return flags ? HIP_INVALID_VALUE : started(); }

// What the engine sees is a ROCm 7.0: it has nothing to do with CUDA's version.
int hipRuntimeGetVersion(int *v) {
  *v = 70000000;
  return 0;
}

int hipGetDeviceCount(int *n) {
  int e = started();
  *n = e ? 0 : devices;
  return !e && devices == 0 ? HIP_NO_DEVICE : e;
}
int hipSetDevice(int d) {
  int e = started();
  if (!e) e = known(d);
  if (!e) device = d;
  return e;
}
// HIP sets flags of a device that is in use already, which older CUDA does not.
int hipSetDeviceFlags(unsigned flags) {
  int e = started();
  if (!e) e = known(device);
  if (!e) e = p_cuDevicePrimaryCtxSetFlags_v2(device, flags);
  return e == CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE ? 0 : e;
}

static int attribute(int d, int a) {
  int v = 0;
  return p_cuDeviceGetAttribute(&v, a, d) ? 0 : v;
}

static const char *arch(void) {
  const char *a = getenv("MICROTOME_SHIM_ARCH");
  return a && *a ? a : "gfx942:sramecc+:xnack-";
}

// processors is what half an MI300X has, which decodes JPEG by 16 cores: rocJPEG's
// callers fill their batches up to the cores, and 16 is what the engine gives
// nvJPEG too.
static int processors(void) {
  const char *n = getenv("MICROTOME_SHIM_PROCESSORS");
  return n && *n ? atoi(n) : 152;
}

// A PCI domain beyond those that GPUs have: the engine asks AMD's kernel driver of
// the render node at the GPU's address, and NVIDIA's must not be asked.
enum { NO_DOMAIN = 0x10000 };

// hipGetDevicePropertiesR0600 fills in the fields that the engine reads, and
// writes the whole struct as HIP's does.
int hipGetDevicePropertiesR0600(void *to, int d) {
  int e = started();
  if (!e) e = known(d);
  if (e) return e;
  uint8_t *p = to;
  memset(p, 0, PROPERTIES_SIZE);
  // No figure of a shim's may pass for an AMD GPU's: the name says what this is.
  char name[128] = "";
  p_cuDeviceGetName(name, sizeof name, d);
  snprintf((char *)p, 256, "%s under Microtome's shim", name);
  size_t total = 0;
  p_cuDeviceTotalMem_v2(&total, d);
  memcpy(p + PROPERTIES_TOTAL, &total, sizeof total);
  const int at[] = {PROPERTIES_WARP, PROPERTIES_PROCESSORS, PROPERTIES_PCI_BUS, PROPERTIES_PCI_DEVICE, PROPERTIES_PCI_DOMAIN};
  const int v[] = {strncmp(arch(), "gfx9", 4) == 0 ? 64 : 32, processors(), attribute(d, CU_ATTR_PCI_BUS),
                   attribute(d, CU_ATTR_PCI_DEVICE), NO_DOMAIN + attribute(d, CU_ATTR_PCI_DOMAIN)};
  for (int i = 0; i < 5; i++) memcpy(p + at[i], &v[i], sizeof v[i]);
  snprintf((char *)p + PROPERTIES_ARCH, 256, "%s", arch());
  return 0;
}

int hipMemGetInfo(size_t *available, size_t *total) { CALL(p_cuMemGetInfo_v2(available, total)); }
int hipMalloc(void **at, size_t n) {
  CUdeviceptr p = 0;
  int e = current();
  if (!e) e = p_cuMemAlloc_v2(&p, n);
  if (!e) *at = (void *)(uintptr_t)p;
  return e;
}
int hipFree(void *at) { CALL(at ? p_cuMemFree_v2((uintptr_t)at) : 0); }
int hipHostRegister(void *at, size_t n, unsigned flags) { CALL(p_cuMemHostRegister_v2(at, n, flags)); }
int hipHostUnregister(void *at) { CALL(p_cuMemHostUnregister(at)); }

int hipStreamCreateWithFlags(void **s, unsigned flags) { CALL(p_cuStreamCreate(s, flags)); }
int hipStreamDestroy(void *s) { CALL(p_cuStreamDestroy_v2(s)); }
int hipStreamSynchronize(void *s) { CALL(p_cuStreamSynchronize(s)); }

int hipMemcpyHtoDAsync(void *dst, const void *src, size_t n, void *s) { CALL(p_cuMemcpyHtoDAsync_v2((uintptr_t)dst, src, n, s)); }
int hipMemcpyDtoHAsync(void *dst, void *src, size_t n, void *s) { CALL(p_cuMemcpyDtoHAsync_v2(dst, (uintptr_t)src, n, s)); }
int hipMemsetD8Async(void *dst, unsigned char v, size_t n, void *s) { CALL(p_cuMemsetD8Async((uintptr_t)dst, v, n, s)); }

// The processor of an AMD code object, EF_AMDGPU_MACH in its ELF header's flags
// (LLVM's user guide for AMDGPU).
static const struct { unsigned mach; const char *name; } machines[] = {
    {0x30, "gfx908"}, {0x3f, "gfx90a"}, {0x4c, "gfx942"}, {0x4f, "gfx950"}, {0x33, "gfx1010"}, {0x36, "gfx1030"}, {0x37, "gfx1031"},
    {0x38, "gfx1032"}, {0x39, "gfx1033"}, {0x3e, "gfx1034"}, {0x3d, "gfx1035"}, {0x45, "gfx1036"}, {0x41, "gfx1100"}, {0x46, "gfx1101"},
    {0x47, "gfx1102"}, {0x44, "gfx1103"}, {0x43, "gfx1150"}, {0x4a, "gfx1151"}, {0x55, "gfx1152"}, {0x58, "gfx1153"}, {0x48, "gfx1200"},
    {0x4e, "gfx1201"}, {0x49, "gfx1250"}};

// fits says whether a code object would run on the processor that is reported:
// HIP refuses one that is made for another.
static int fits(const uint8_t *elf) {
  uint16_t machine;
  uint32_t flags;
  memcpy(&machine, elf + 18, sizeof machine);
  memcpy(&flags, elf + 48, sizeof flags);
  if (elf[4] != 2 || machine != 224) return 0; // 64 bits, EM_AMDGPU
  size_t n = strcspn(arch(), ":");
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].mach == (flags & 0xff)) return strlen(machines[i].name) == n && strncmp(machines[i].name, arch(), n) == 0;
  return 0;
}

// shim_enter is hipSetDevice, and the thread has CUDA's context afterwards: for
// nvJPEG, which librocjpeg's shim calls beside HIP.
int shim_enter(int d) {
  int e = hipSetDevice(d);
  return e ? e : current();
}

// hipModuleLoadData takes the engine's code object, and PTX for librocjpeg's shim.
int hipModuleLoadData(void **m, const void *image) {
  const char *ptx = image;
  if (memcmp(image, "\177ELF", 4) == 0) {
    if (!fits(image)) return HIP_NO_BINARY;
    ptx = engine_ptx;
  } else if (memcmp(image, "//", 2) != 0) {
    return HIP_INVALID_IMAGE;
  }
  CALL(p_cuModuleLoadData(m, ptx));
}
int hipModuleGetFunction(void **f, void *m, const char *name) { CALL(p_cuModuleGetFunction(f, m, name)); }
int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *s, void **args, void **extra) {
  if (extra) return HIP_NOT_SUPPORTED; // a packed buffer, whose marks differ from CUDA's
  CALL(p_cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, args, NULL));
}
