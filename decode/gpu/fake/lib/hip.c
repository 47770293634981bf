// A libamdhip64.so.7 over host memory: streams do their work at once, kernels are
// the host build of the engine's own. Behaviour that is not plain is cited from
// HIP's public sources: clr is ROCm/clr's hipamd/src, and "header" is ROCm/HIP's
// include/hip/hip_runtime_api.h. Faults are asked for by MICROTOME_FAKE (see
// fault.h), and so are these settings: arch=gfx1100 (what both GPUs are), gpus=N
// (how many there are, 2), swapped=1 (they come in the other order, as with other
// settings of HIP_VISIBLE_DEVICES), memory=N (MiB, 16384).
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "hip.h"
#include "launch.h"
#include "memory.h"

// Header, hipError_t.
enum {
  INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200, NO_BINARY = 209, FILE_NOT_FOUND = 301,
  INVALID_HANDLE = 400, NOT_FOUND = 500, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713,
};

enum { DEVICES = 8, REGISTERED = 64 };
static atomic_long used[DEVICES];

// Header: a thread that has set no device is on device 0. (CUDA's driver API has
// none then.)
static __thread int current;

static int gpus(void) {
  char v[32];
  return atoi(setting("gpus", "2", v));
}

static long memory(void) {
  char v[32];
  return atol(setting("memory", "16384", v)) << 20;
}

// bus is where a device is on PCI.
static int bus(int device) {
  static const int at[DEVICES] = {0x03, 0x43, 0x83, 0xc3, 0x07, 0x47, 0x87, 0xc7};
  char v[32];
  return at[*setting("swapped", "0", v) == '1' ? gpus() - 1 - device : device];
}

#define FAULT(name) \
  do { int e_ = fault(name); if (e_) return e_; } while (0)

int hipInit(unsigned flags) { return flags ? INVALID_VALUE : fault("hipInit"); }
// Header, hipRuntimeGetVersion: major * 10000000 + minor * 100000 + patch.
int hipRuntimeGetVersion(int *v) { *v = 70199910; return fault("hipRuntimeGetVersion"); }
int hipGetDeviceCount(int *n) { *n = gpus(); return *n ? fault("hipGetDeviceCount") : 100; }
int hipSetDevice(int d) {
  FAULT("hipSetDevice");
  if (d < 0 || d >= gpus()) return INVALID_DEVICE;
  current = d;
  return 0;
}
int hipSetDeviceFlags(unsigned f) { return f > 31 ? INVALID_VALUE : fault("hipSetDeviceFlags"); }

// Header, hipDeviceProp_tR0600: 1472 bytes.
int hipGetDevicePropertiesR0600(void *p, int d) {
  FAULT("hipGetDevicePropertiesR0600");
  if (!p || d < 0 || d >= gpus()) return INVALID_DEVICE;
  char *at = p, v[32];
  memset(p, 0, 1472);
  snprintf(at, 256, "Microtome's fake");
  snprintf(at + 256, 17, "%016x", 0xfa4e0000 + bus(d)); // uuid, unterminated
  *(size_t *)(at + 288) = (size_t)memory();
  *(int *)(at + 308) = strncmp(fake_arch(v), "gfx9", 4) == 0 ? 64 : 32; // the wave
  *(int *)(at + 388) = 1;                                              // multiprocessors
  *(int *)(at + 584) = bus(d);
  snprintf(at + 1160, 256, "%s", fake_arch(v));
  return 0;
}
// The plain symbol fills hipDeviceProp_tR0000, whose gcnArchName lies elsewhere; it
// is here to be called by mistake.
int hipGetDeviceProperties(void *p, int d) {
  memset(p, 0, 792);
  return hipSetDevice(d);
}

int fake_hip_take(int device, long bytes) {
  if (atomic_fetch_add(&used[device], bytes) + bytes <= memory()) return 1;
  atomic_fetch_sub(&used[device], bytes);
  return 0;
}
int fake_hip_holds(int device, const void *at, size_t bytes) { return memory_of((uintptr_t)at, bytes) == device; }

int hipMemGetInfo(size_t *f, size_t *t) {
  FAULT("hipMemGetInfo");
  *t = (size_t)memory();
  *f = *t - (size_t)atomic_load(&used[current]);
  return 0;
}
int hipMalloc(void **p, size_t n) {
  FAULT("hipMalloc");
  *p = NULL;
  if (n == 0) return 0; // header
  if (n > (size_t)memory() || !fake_hip_take(current, (long)n)) return OUT_OF_MEMORY;
  *p = memory_get(current, n);
  return *p ? 0 : OUT_OF_MEMORY;
}
int hipFree(void *p) {
  FAULT("hipFree");
  if (!p) return 0; // header
  int d = memory_of((uintptr_t)p, 0);
  size_t n = memory_put((uintptr_t)p);
  if (!n) return INVALID_VALUE;
  fake_hip_take(d, -(long)n);
  return 0;
}

// clr, hipHostRegister: memory is registered once, and unregistered by its first
// byte's address.
static void *registered[REGISTERED];
static int registration(void *p) {
  for (int i = 0; i < REGISTERED; i++)
    if (registered[i] == p) return i;
  return -1;
}
int hipHostRegister(void *p, size_t n, unsigned flags) {
  FAULT("hipHostRegister");
  if (!p || !n || flags > 15) return INVALID_VALUE;
  pthread_mutex_lock(&memory_lock);
  int rc = registration(p) >= 0 ? ALREADY_REGISTERED : registration(NULL) < 0 ? OUT_OF_MEMORY : 0;
  if (!rc) registered[registration(NULL)] = p;
  pthread_mutex_unlock(&memory_lock);
  return rc;
}
int hipHostUnregister(void *p) {
  FAULT("hipHostUnregister");
  pthread_mutex_lock(&memory_lock);
  int i = p ? registration(p) : -1;
  if (i >= 0) registered[i] = NULL;
  pthread_mutex_unlock(&memory_lock);
  return i < 0 ? NOT_REGISTERED : 0;
}

// A stream is its device's: work on another's is refused, which finds a call that
// has not set the device.
typedef struct { uint32_t magic; int device; } Stream;
enum { STREAM = 0x51ea3 };
static int stream_wrong(void *s) {
  Stream *st = s;
  return st && (st->magic != STREAM || st->device != current);
}
int hipStreamCreateWithFlags(void **s, unsigned flags) {
  FAULT("hipStreamCreateWithFlags");
  if (flags > 1) return INVALID_VALUE;
  Stream *st = malloc(sizeof *st);
  *st = (Stream){STREAM, current};
  *s = st;
  return 0;
}
int hipStreamDestroy(void *s) {
  FAULT("hipStreamDestroy");
  if (!s || stream_wrong(s)) return INVALID_HANDLE;
  memset(s, 0, sizeof(Stream));
  free(s);
  return 0;
}
int hipStreamSynchronize(void *s) {
  FAULT("hipStreamSynchronize");
  return stream_wrong(s) ? INVALID_HANDLE : 0;
}

// Device pointers are held against the current device's memory: clr looks them up,
// and takes what it does not know for the host's.
#define DEVICE_MEMORY(p, n, s)                                        \
  do {                                                                \
    if (stream_wrong(s)) return INVALID_HANDLE;                       \
    if (memory_of((uintptr_t)(p), n) != current) return INVALID_VALUE; \
  } while (0)
int hipMemcpyHtoDAsync(void *d, const void *s, size_t n, void *st) {
  FAULT("hipMemcpyHtoDAsync");
  DEVICE_MEMORY(d, n, st);
  memcpy(d, s, n);
  return 0;
}
int hipMemcpyDtoHAsync(void *d, void *s, size_t n, void *st) {
  FAULT("hipMemcpyDtoHAsync");
  DEVICE_MEMORY(s, n, st);
  memcpy(d, s, n - PLANTED("short"));
  return 0;
}
int hipMemsetD8Async(void *d, unsigned char v, size_t n, void *st) {
  FAULT("hipMemsetD8Async");
  DEVICE_MEMORY(d, n, st);
  memset(d, v, n);
  return 0;
}

// A module keeps the image, which must stay where it is and as it is.
typedef struct { int device; const uint8_t *image; Elf64_Ehdr head; } Module;
typedef struct { Module *module; int kernel; } Function;

// from_file says whether an address is mapped from a file. clr looks for that file,
// to hand it to debuggers, and hipModuleLoadData can fail with hipErrorFileNotFound
// when it was replaced or removed: here it always does.
static int from_file(const void *at) {
  FILE *f = fopen("/proc/self/maps", "re");
  char line[512];
  int found = 0;
  while (f && !found && fgets(line, sizeof line, f)) {
    unsigned long from, to, inode = 0;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) == 3)
      found = inode != 0 && (uintptr_t)at >= from && (uintptr_t)at < to;
  }
  if (f) fclose(f);
  return found;
}

// A raw code object: clr hip_fatbin.cpp, ExtractFatBinaryUsingCOMGR; it matches by
// the processor exactly (isCodeObjectCompatibleWithDevice). Code object versions up
// to 5 are what ROCm 6.0 loads. The image need not be aligned.
int hipModuleLoadData(void **m, const void *image) {
  FAULT("hipModuleLoadData");
  Module *k = calloc(1, sizeof *k);
  char v[32];
  int rc = 0;
  k->device = current;
  k->image = image;
  memcpy(&k->head, image, sizeof k->head);
  const unsigned char *id = k->head.e_ident;
  if (memcmp(id, ELFMAG, SELFMAG) != 0 || k->head.e_machine != EM_AMDGPU || id[EI_OSABI] != 64) rc = INVALID_IMAGE;
  else if (id[EI_ABIVERSION] > 3 || (k->head.e_flags & 0xff) != machine(fake_arch(v))) rc = NO_BINARY;
  else if (from_file(image)) rc = FILE_NOT_FOUND;
  if (rc) free(k);
  else *m = k;
  return rc;
}

// has_symbol looks a name up in an image's dynamic symbols.
static int has_symbol(const uint8_t *image, const char *name) {
  Elf64_Ehdr h;
  memcpy(&h, image, sizeof h);
  for (int i = 0; i < h.e_shnum; i++) {
    Elf64_Shdr s, names;
    memcpy(&s, image + h.e_shoff + (size_t)i * h.e_shentsize, sizeof s);
    if (s.sh_type != SHT_DYNSYM) continue;
    memcpy(&names, image + h.e_shoff + (size_t)s.sh_link * h.e_shentsize, sizeof names);
    for (size_t at = 0; at < s.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym y;
      memcpy(&y, image + s.sh_offset + at, sizeof y);
      if (strcmp((const char *)image + names.sh_offset + y.st_name, name) == 0) return 1;
    }
  }
  return 0;
}

int hipModuleGetFunction(void **f, void *m, const char *name) {
  FAULT("hipModuleGetFunction");
  Module *k = m;
  char descriptor[80];
  snprintf(descriptor, sizeof descriptor, "%s.kd", name);
  if (!k || memcmp(k->image, &k->head, sizeof k->head) != 0) return INVALID_HANDLE;
  if (!has_symbol(k->image, descriptor) || kernel_of(name) < 0) return NOT_FOUND;
  Function *fn = malloc(sizeof *fn);
  *fn = (Function){k, kernel_of(name)};
  *f = fn;
  return 0;
}

// The grid counts blocks, as cuLaunchKernel's (hipExtModuleLaunchKernel's counts
// threads).
int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          void *s, void **args, void **extra) {
  int e = fault("hipModuleLaunchKernel");
  if (e) return e == FAULT_SKIP ? 0 : e;
  Function *fn = f;
  if (!fn || stream_wrong(s) || fn->module->device != current) return INVALID_HANDLE;
  if (memcmp(fn->module->image, &fn->module->head, sizeof fn->module->head) != 0) return INVALID_HANDLE;
  if (gx == 0 || gy != 1 || gz != 1 || bx != KERNEL_BLOCK || by != 1 || bz != 1 || shared || extra) return INVALID_VALUE;
  return run_kernel(fn->kernel, gx, args) ? 0 : INVALID_HANDLE;
}
