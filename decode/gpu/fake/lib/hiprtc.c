// A libhiprtc.so.7 that compiles nothing: what it gives for an architecture is the
// code object at CODE_OBJECT, marked for that architecture. Its rules are those of
// ROCm/clr's hipamd/src/hiprtc: an architecture must be named, and the source must not
// include what hipRTC has not.
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "fault.h"

typedef struct {
  char *source, log[128];
  uint8_t *code;
  size_t size;
} Program;
enum { COMPILATION = 6 };

int hiprtcVersion(int *major, int *minor) {
  *major = 9;
  *minor = 0;
  return fault("hiprtcVersion");
}
int hiprtcCreateProgram(void **p, const char *source, const char *name, int n, const char **headers, const char **names) {
  (void)name; (void)headers; (void)names;
  if (!p || !source || n) return 3; // HIPRTC_ERROR_INVALID_INPUT
  Program *k = calloc(1, sizeof *k);
  k->source = strdup(source);
  *p = k;
  return fault("hiprtcCreateProgram");
}
int hiprtcCompileProgram(void *p, int n, const char **options) {
  Program *k = p;
  unsigned m = 0;
  for (int i = 0; i < n; i++) {
    const char *at = strchr(options[i], '=');
    if (strncmp(options[i], "--gpu-architecture=", 19) == 0 || strncmp(options[i], "--offload-arch=", 15) == 0) m = machine(at + 1);
  }
  if (!m || strstr(k->source, "#include")) {
    snprintf(k->log, sizeof k->log, m ? "fatal error: a header was not found" : "error: no such architecture");
    return COMPILATION;
  }
  FILE *f = fopen(CODE_OBJECT, "rb");
  if (!f) return COMPILATION;
  k->code = calloc(1, 1 << 18);
  k->size = fread(k->code, 1, 1 << 18, f);
  fclose(f);
  Elf64_Ehdr h;
  memcpy(&h, k->code, sizeof h);
  h.e_flags = (h.e_flags & ~0xffu) | m;
  memcpy(k->code, &h, sizeof h);
  return fault("hiprtcCompileProgram");
}
int hiprtcGetProgramLogSize(void *p, size_t *n) { *n = strlen(((Program *)p)->log) + 1; return 0; }
int hiprtcGetProgramLog(void *p, char *log) { strcpy(log, ((Program *)p)->log); return 0; }
int hiprtcGetCodeSize(void *p, size_t *n) { *n = ((Program *)p)->size; return fault("hiprtcGetCodeSize"); }
int hiprtcGetCode(void *p, char *code) {
  memcpy(code, ((Program *)p)->code, ((Program *)p)->size);
  return fault("hiprtcGetCode");
}
int hiprtcDestroyProgram(void **p) {
  Program *k = *p;
  free(k->source);
  free(k->code);
  free(k);
  *p = NULL;
  return 0;
}
