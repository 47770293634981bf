// The tests' libcuda.so.1 (decode/gpu/fake) with one kernel more: the shim's own.
#define cuModuleGetFunction fake_get_function
#define cuLaunchKernel fake_launch
#include "../../fake/lib/cuda.c"
#undef cuModuleGetFunction
#undef cuLaunchKernel

#include "pack.h"

static char pack_kernel;

CUresult cuModuleGetFunction(void **f, void *m, const char *name) {
  if (strcmp(name, "mt_pack_kernel") != 0) return fake_get_function(f, m, name);
  *f = &pack_kernel;
  return strstr(m, ".entry mt_pack_kernel(") ? 0 : 500;
}

CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, void *s, void **args, void **extra) {
  if (f != &pack_kernel) return fake_launch(f, gx, gy, gz, bx, by, bz, shared, s, args, extra);
  NEED_CONTEXT;
  const mt_pack *jobs = ARG(const mt_pack *, 0);
  uint32_t threads = ARG(uint32_t, 1), n = ARG(uint32_t, 2);
  if (gx == 0 || (uint64_t)gx * bx < (uint64_t)threads * n) return 1;
  for (uint64_t t = 0; t < (uint64_t)threads * n; t++) mt_pack_at(jobs, threads, t);
  return 0;
}
