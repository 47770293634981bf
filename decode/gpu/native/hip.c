//go:build cgo && linux

// The second table: HIP, opened at run time. rocJPEG is in rocjpeg.c, hipRTC in
// hiprtc.c.
#define _GNU_SOURCE
#include "hip.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

#define DEFINE(name, args) int(*p_##name) args;
HIP_SYMBOLS(DEFINE)

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static int opened, loaded, host_code; // host_code: of the calls that have no device
static mt_library driver;

// runtimes counts the HIP runtimes in this process.
static int runtimes(struct dl_phdr_info *i, size_t size, void *n) {
  (void)size;
  const char *name = strrchr(i->dlpi_name, '/');
  if (name && strncmp(name + 1, "libamdhip64.so", 14) == 0) ++*(int *)n;
  return 0;
}

// rocJPEG names its HIP by soname: with another one than ours it would bring a
// second runtime, which knows nothing of our memory.
static int open_locked(const char *dir) {
  static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", NULL};
  static const char *const places[] = {"/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.6", NULL};
  // VCN's own RGB is not BT.601's, and is never wanted here.
  unsetenv("ROCJPEG_ENABLE_VCN_HW_CSC");
  driver = (mt_library){.role = "driver"};
  void *hip = mt_library_open(&driver, dir, names);
  const char *rocm = getenv("ROCM_PATH");
  char lib[256];
  snprintf(lib, sizeof lib, "%s/lib", rocm ? rocm : "");
  if (!hip && rocm && *rocm) hip = mt_library_open(&driver, lib, names);
  if (!hip) hip = mt_library_open(&driver, "", *dir ? names : places);
#define FIND(name, args)                                                       \
  if (hip && !(*(void **)&p_##name = dlsym(hip, #name)) && !*driver.why)       \
    snprintf(driver.why, sizeof driver.why, "%s has no %s", driver.file, #name);
  HIP_SYMBOLS(FIND)
  int rc = rocjpeg_open(dir), n = 0, v = 0;
  dl_iterate_phdr(runtimes, &n);
  if (n > 1 && !*rocjpeg_library.why)
    snprintf(rocjpeg_library.why, sizeof rocjpeg_library.why, "%.100s is for another HIP than %.100s", rocjpeg_library.file, driver.file);
  if (hip && p_hipRuntimeGetVersion && !p_hipRuntimeGetVersion(&v))
    snprintf(driver.version, sizeof driver.version, "%d.%d.%d", v / 10000000, v / 100000 % 100, v % 100000);
  return rc || *driver.why || *rocjpeg_library.why ? MT_GPU_MISSING : MT_GPU_OK;
}

static int amd_libraries(const char *dir, mt_library *found) {
  pthread_mutex_lock(&loading);
  if (!opened && open_locked(dir) == MT_GPU_OK) opened = 1;
  found[0] = driver;
  found[1] = rocjpeg_library;
  pthread_mutex_unlock(&loading);
  return 2;
}

static int load_locked(const char *dir, char *why, size_t n) {
  if (!opened && open_locked(dir)) {
    snprintf(why, n, "%s", *driver.why ? driver.why : rocjpeg_library.why);
    return MT_GPU_MISSING;
  }
  opened = 1;
  int e = host_code = p_hipInit(0);
  if (e) {
    snprintf(why, n, "hipInit: HIP error %d", e);
    return e == HIP_NO_DEVICE ? MT_GPU_NONE : MT_GPU_LOST;
  }
  return MT_GPU_OK;
}

static int amd_load(const char *dir, char *why, size_t n) {
  pthread_mutex_lock(&loading);
  int rc = loaded ? MT_GPU_OK : load_locked(dir, why, n);
  if (rc == MT_GPU_OK) loaded = 1;
  pthread_mutex_unlock(&loading);
  return rc;
}

int hip_kind(mt_gpu *g, int e) {
  if (e == 0) return MT_GPU_OK;
  *(g ? &g->code : &host_code) = e;
  return e == HIP_OUT_OF_MEMORY ? MT_GPU_MEMORY : MT_GPU_LOST;
}

// hipGetDeviceCount is an error where there is none; cuDeviceGetCount says 0.
static int amd_count(int *n) {
  int e = p_hipGetDeviceCount(n);
  if (e == HIP_NO_DEVICE) {
    *n = 0;
    return MT_GPU_OK;
  }
  return hip_kind(NULL, e);
}

// device_of reads the properties. gcnArchName begins with gfx: where it does not,
// the layout is another one.
static int device_of(int index, mt_gpu *g, mt_gpu_info *i) {
  char *p = calloc(1, HIP_PROPERTIES);
  if (!p) return MT_GPU_MEMORY;
  int e = p_hipGetDevicePropertiesR0600(p, index), at[3];
  if (e) {
    free(p);
    return hip_kind(NULL, e);
  }
  const char *arch = p + HIP_ARCH;
  size_t n = strcspn(arch, ":"); // gfx942:sramecc+:xnack-
  if (strncmp(arch, "gfx", 3) != 0 || n >= sizeof i->arch) {
    free(p);
    host_code = 0;
    snprintf(i->why, sizeof i->why, "HIP's properties of the device are laid out otherwise than in HIP 6 and 7");
    return MT_GPU_MISSING;
  }
  g->device = index;
  snprintf(g->arch, sizeof g->arch, "%.*s", (int)n, arch);
  memcpy(&at[0], p + HIP_PCI_DOMAIN, sizeof(int));
  memcpy(&at[1], p + HIP_PCI_BUS, sizeof(int));
  memcpy(&at[2], p + HIP_PCI_DEVICE, sizeof(int));
  snprintf(g->pci, sizeof g->pci, "%04x:%02x:%02x.0", at[0], at[1], at[2]);
  int cus = 0;
  memcpy(&cus, p + HIP_MULTIPROCESSORS, sizeof cus);
  g->cores = rocjpeg_cores(g->pci, g->arch, cus);
  snprintf(i->name, sizeof i->name, "%.127s", p + HIP_NAME);
  size_t total;
  memcpy(&total, p + HIP_MEMORY, sizeof total);
  i->memory = total;
  i->multiprocessors = cus;
  free(p);
  return MT_GPU_OK;
}

// try_decoder notes why a GPU has no decoder.
static int try_decoder(mt_gpu *g, mt_gpu_info *i) {
  int rc = rocjpeg_try(g, i->why, sizeof i->why);
  host_code = g->code;
  return rc;
}

static int amd_info(int index, mt_gpu_info *i) {
  mt_gpu g = {0};
  memset(i, 0, sizeof *i);
  int rc = device_of(index, &g, i);
  if (rc) return rc;
  snprintf(i->arch, sizeof i->arch, "%.31s", g.arch);
  snprintf(i->pci, sizeof i->pci, "%s", g.pci);
  snprintf(i->driver, sizeof i->driver, "HIP %.27s", driver.version);
  snprintf(i->decoder, sizeof i->decoder, "rocJPEG %s", *rocjpeg_library.version ? rocjpeg_library.version : "1.x");
  snprintf(i->libraries[0], sizeof i->libraries[0], "%s", driver.file);
  snprintf(i->libraries[1], sizeof i->libraries[1], "%s", rocjpeg_library.file);
  rocjpeg_limits(&g, i);
  size_t free_now = 0, total = 0;
  HIP_TRY(NULL, p_hipSetDevice(index));
  HIP_TRY(NULL, p_hipMemGetInfo(&free_now, &total));
  i->memory_free = free_now;
  return g.cores ? try_decoder(&g, i) : MT_GPU_OK;
}

static int amd_open(int index, int blocking, mt_gpu **out) {
  mt_gpu *g = calloc(1, sizeof *g);
  if (!g) return MT_GPU_MEMORY;
  mt_gpu_info unused = {0};
  int rc = device_of(index, g, &unused);
  if (!rc) rc = hip_kind(NULL, p_hipSetDevice(index));
  // A device that is at work keeps its flags: its threads spin then.
  int e = !rc && blocking ? p_hipSetDeviceFlags(HIP_SCHEDULE_BLOCKING_SYNC) : 0;
  if (e && e != HIP_SET_ON_ACTIVE) rc = hip_kind(NULL, e);
  if (rc) {
    free(g);
    return rc;
  }
  *out = g;
  return MT_GPU_OK;
}

// HIP has no context to give back: its memory and streams were freed before, and the
// rest goes with the process.
static void amd_close(mt_gpu *g) {
  host_code = g->code;
  free(g);
}

static int amd_last_code(mt_gpu *g) { return g ? g->code : host_code; }

static void *pointer(uint64_t at) { return (void *)(uintptr_t)at; }
static hipStream_t stream_of(mt_stream s) { return (hipStream_t)(uintptr_t)s; }

static int amd_alloc(mt_gpu *g, uint64_t bytes, uint64_t *at) {
  HIP_BIND(g);
  void *p = NULL;
  HIP_TRY(g, p_hipMalloc(&p, bytes));
  if (!p) return MT_GPU_MEMORY;
  *at = (uint64_t)(uintptr_t)p;
  return MT_GPU_OK;
}

static void amd_free(mt_gpu *g, uint64_t at) {
  if (p_hipSetDevice(g->device) == 0) p_hipFree(pointer(at));
}

// HIP remembers a registration by its address when the mapping is gone, as that of an
// engine that this process had before.
static int amd_pin(mt_gpu *g, void *at, uint64_t bytes) {
  HIP_BIND(g);
  int e = p_hipHostRegister(at, bytes, HIP_HOST_REGISTER_PORTABLE);
  if (e == HIP_REGISTERED && !p_hipHostUnregister(at)) e = p_hipHostRegister(at, bytes, HIP_HOST_REGISTER_PORTABLE);
  return hip_kind(g, e) ? MT_GPU_PIN : MT_GPU_OK;
}

static void amd_unpin(mt_gpu *g, void *at) {
  if (p_hipSetDevice(g->device) == 0) p_hipHostUnregister(at);
}

static int amd_stream(mt_gpu *g, mt_stream *s) {
  HIP_BIND(g);
  hipStream_t c = NULL;
  HIP_TRY(g, p_hipStreamCreateWithFlags(&c, HIP_STREAM_NON_BLOCKING));
  *s = (uint64_t)(uintptr_t)c;
  return MT_GPU_OK;
}

static void amd_stream_end(mt_gpu *g, mt_stream s) {
  if (p_hipSetDevice(g->device) == 0) p_hipStreamDestroy(stream_of(s));
}

static int amd_to_device(mt_gpu *g, mt_stream s, uint64_t dst, const void *src, uint64_t n) {
  HIP_BIND(g);
  return hip_kind(g, p_hipMemcpyHtoDAsync(pointer(dst), src, n, stream_of(s)));
}

static int amd_to_host(mt_gpu *g, mt_stream s, void *dst, uint64_t src, uint64_t n) {
  HIP_BIND(g);
  return hip_kind(g, p_hipMemcpyDtoHAsync(dst, pointer(src), n, stream_of(s)));
}

static int amd_fill(mt_gpu *g, mt_stream s, uint64_t dst, uint8_t v, uint64_t n) {
  HIP_BIND(g);
  return hip_kind(g, p_hipMemsetD8Async(pointer(dst), v, n, stream_of(s)));
}

static int amd_wait(mt_gpu *g, mt_stream s) {
  HIP_BIND(g);
  return hip_kind(g, p_hipStreamSynchronize(stream_of(s)));
}

// hipModuleLoadData looks for the file that an image is mapped from (clr,
// hip_fatbin.cpp), which fails where the binary was replaced meanwhile; and it
// needs the image for as long as the module lives. So it gets memory of its own,
// which is never freed, since the module is never unloaded.
static int amd_kernels(mt_gpu *g, const mt_kernels *k, const char *const *names, int n, mt_function *f, char *why, size_t len) {
  void *image = NULL;
  if (k->image) {
    image = malloc(k->bytes);
    if (!image) return MT_GPU_MEMORY;
    memcpy(image, k->image, k->bytes);
  } else {
    HIP_BIND(g);
    int rc = hiprtc_compile(k->libraries, k->source, g->arch, &image, why, len);
    if (rc) return rc;
  }
  HIP_BIND(g);
  hipModule_t m;
  HIP_TRY(g, p_hipModuleLoadData(&m, image));
  for (int i = 0; i < n; i++) {
    hipFunction_t c;
    HIP_TRY(g, p_hipModuleGetFunction(&c, m, names[i]));
    f[i] = (uint64_t)(uintptr_t)c;
  }
  return MT_GPU_OK;
}

// The grid is in blocks, as cuLaunchKernel's is; hipExtModuleLaunchKernel counts
// threads, and is not used.
static int amd_launch(mt_gpu *g, mt_stream s, mt_function f, uint32_t blocks, void **args) {
  HIP_BIND(g);
  return hip_kind(g, p_hipModuleLaunchKernel((hipFunction_t)(uintptr_t)f, blocks, 1, 1, MT_BLOCK, 1, 1, 0, stream_of(s), args, NULL));
}

const mt_vendor mt_amd = {
    .name = "amd",
    .libraries = amd_libraries, .load = amd_load, .count = amd_count, .info = amd_info, .open = amd_open, .close = amd_close,
    .last_code = amd_last_code,
    .alloc = amd_alloc, .free = amd_free, .pin = amd_pin, .unpin = amd_unpin,
    .stream = amd_stream, .stream_end = amd_stream_end,
    .to_device = amd_to_device, .to_host = amd_to_host, .fill = amd_fill, .wait = amd_wait,
    .kernels = amd_kernels, .launch = amd_launch,
    .planes = rocjpeg_planes, .jpeg = rocjpeg_make, .jpeg_end = rocjpeg_end, .decode = rocjpeg_decode,
};
