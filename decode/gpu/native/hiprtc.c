//go:build cgo && linux

// hipRTC, opened at run time: it compiles the kernels for a GPU that no embedded
// code object is for. It needs libamd_comgr and libhiprtc-builtins beside it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

#define DECLARE(name, args) static int(*p_##name) args;
HIPRTC_SYMBOLS(DECLARE)

static int open_hiprtc(const char *dir, char *why, size_t n) {
  static const char *const names[] = {"libhiprtc.so.7", "libhiprtc.so.6", NULL};
  static const char *const places[] = {"/opt/rocm/lib/libhiprtc.so.7", "/opt/rocm/lib/libhiprtc.so.6", NULL};
  mt_library l = {.role = "compiler"};
  void *lib = mt_library_open(&l, dir, names);
  const char *rocm = getenv("ROCM_PATH");
  char in_rocm[256];
  snprintf(in_rocm, sizeof in_rocm, "%s/lib", rocm ? rocm : "");
  if (!lib && rocm && *rocm) lib = mt_library_open(&l, in_rocm, names);
  if (!lib) lib = mt_library_open(&l, "", *dir ? names : places);
  if (!lib) {
    snprintf(why, n, "no kernels for this GPU are built in, and hipRTC, which would compile them, can't be opened: %s", l.why);
    return MT_GPU_MISSING;
  }
#define FIND(name, args)                                                       \
  if (!(*(void **)&p_##name = dlsym(lib, #name))) {                            \
    snprintf(why, n, "%s has no %s", l.file, #name);                           \
    return MT_GPU_MISSING;                                                     \
  }
  HIPRTC_SYMBOLS(FIND)
  return MT_GPU_OK;
}

// said puts the beginning of the compiler's log behind what failed.
static int said(hiprtcProgram p, int e, char *why, size_t n) {
  size_t size = 0, used = (size_t)snprintf(why, n, "hipRTC error %d", e);
  char *log = NULL;
  if (p && !p_hiprtcGetProgramLogSize(p, &size) && size > 1) log = calloc(1, size + 1);
  if (log && !p_hiprtcGetProgramLog(p, log) && used < n) snprintf(why + used, n - used, ": %.150s", log);
  free(log);
  return MT_GPU_LOST;
}

int hiprtc_compile(const char *dir, const char *source, const char *arch, void **image, char *why, size_t n) {
  int rc = open_hiprtc(dir, why, n);
  if (rc) return rc;
  char target[96];
  snprintf(target, sizeof target, "--gpu-architecture=%s", arch);
  const char *options[] = {target, "-O3", "-ffp-contract=off"};
  hiprtcProgram p = NULL;
  size_t size = 0;
  int e = p_hiprtcCreateProgram(&p, source, "kernels.cu", 0, NULL, NULL);
  if (!e) e = p_hiprtcCompileProgram(p, sizeof options / sizeof *options, options);
  if (!e) e = p_hiprtcGetCodeSize(p, &size);
  if (!e && !(*image = malloc(size ? size : 1))) return MT_GPU_MEMORY;
  if (!e) e = p_hiprtcGetCode(p, *image);
  if (e) return said(p, e, why, n);
  p_hiprtcDestroyProgram(&p);
  return MT_GPU_OK;
}
