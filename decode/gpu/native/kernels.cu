// The kernels as a GPU starts them. Compiled by clang alone, without CUDA's or
// ROCm's headers: see the Makefile's target "kernels".
#if defined(__NVPTX__)
#define MT_THREAD_X __nvvm_read_ptx_sreg_tid_x()
#define MT_BLOCK_X __nvvm_read_ptx_sreg_ctaid_x()
#else
#define MT_THREAD_X __builtin_amdgcn_workitem_id_x()
#define MT_BLOCK_X __builtin_amdgcn_workgroup_id_x()
#endif
#define MT_DEVICE static inline __attribute__((device, always_inline))
#if defined(__NVPTX__)
#define MT_KERNEL extern "C" __attribute__((global)) void
#else // a block is never larger, which leaves each thread more registers
#define MT_KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256))) void
#endif
#include "kernels.h"

// A block has MT_BLOCK threads: passed by no register, known to both sides.
enum { MT_BLOCK = 256 };
#define MT_GLOBAL ((uint64_t)MT_BLOCK_X * MT_BLOCK + MT_THREAD_X)

MT_KERNEL mt_paint_kernel(const mt_paint *tiles, uint32_t threads, uint32_t n) {
  if (MT_GLOBAL < (uint64_t)threads * n) mt_paint_at(tiles, threads, MT_GLOBAL);
}
MT_KERNEL mt_fill_kernel(const mt_target *targets, uint32_t threads, uint32_t n) {
  if (MT_GLOBAL < (uint64_t)threads * n) mt_fill_at(targets, threads, MT_GLOBAL);
}
MT_KERNEL mt_lay_kernel(const mt_part *parts, const mt_target *targets, uint32_t threads, uint32_t n) {
  if (MT_GLOBAL < (uint64_t)threads * n) mt_lay_at(parts, targets, threads, MT_GLOBAL);
}
MT_KERNEL mt_across_kernel(const mt_filter *f, const mt_target *targets) { mt_across_at(f, targets, MT_GLOBAL); }
MT_KERNEL mt_down_kernel(const mt_filter *f, const mt_target *targets) { mt_down_at(f, targets, MT_GLOBAL); }
