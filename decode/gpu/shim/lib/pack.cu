// The shim's kernel as a GPU starts it: see ../build.
#define MT_DEVICE static inline __attribute__((device, always_inline))
#include "pack.h"

extern "C" __attribute__((global)) void mt_pack_kernel(const mt_pack *jobs, uint32_t threads, uint32_t n) {
  uint64_t t = (uint64_t)__nvvm_read_ptx_sreg_ctaid_x() * 256 + __nvvm_read_ptx_sreg_tid_x();
  if (t < (uint64_t)threads * n) mt_pack_at(jobs, threads, t);
}
