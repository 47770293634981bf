// The engine's kernels on the host, by name.
#ifndef MICROTOME_FAKE_LAUNCH_H
#define MICROTOME_FAKE_LAUNCH_H

#include <stdint.h>
#include <string.h>

#include "defect_kernel.h"
#include "../../native/kernels.h"

static const char *const kernel_names[] = {"mt_paint_kernel", "mt_fill_kernel", "mt_lay_kernel", "mt_across_kernel", "mt_down_kernel"};
enum { KERNELS = sizeof kernel_names / sizeof *kernel_names, KERNEL_BLOCK = 256 };

// kernel_of is a kernel's number, -1: there is none of that name.
static int kernel_of(const char *name) {
  for (int i = 0; i < KERNELS; i++)
    if (strcmp(kernel_names[i], name) == 0) return i;
  return -1;
}

#define ARG(type, i) (*(type *)args[i])

// run_kernel runs all threads of a grid, and returns 0 for a kernel that is none.
static int run_kernel(int k, uint64_t blocks, void **args) {
  defect_before(k, args);
  for (uint64_t t = 0; t < blocks * KERNEL_BLOCK; t++) {
    switch (k) {
    case 0: if (t < (uint64_t)ARG(uint32_t, 1) * ARG(uint32_t, 2)) mt_paint_at(ARG(const mt_paint *, 0), ARG(uint32_t, 1), t); break;
    case 1: if (t < (uint64_t)ARG(uint32_t, 1) * ARG(uint32_t, 2)) mt_fill_at(ARG(const mt_target *, 0), ARG(uint32_t, 1), t); break;
    case 2: if (t < (uint64_t)ARG(uint32_t, 2) * ARG(uint32_t, 3)) mt_lay_at(ARG(const mt_part *, 0), ARG(const mt_target *, 1), ARG(uint32_t, 2), t); break;
    case 3: mt_across_at(ARG(const mt_filter *, 0), ARG(const mt_target *, 1), t); break;
    case 4: mt_down_at(ARG(const mt_filter *, 0), ARG(const mt_target *, 1), t); break;
    default: return 0;
    }
  }
  defect_after(k, args);
  return 1;
}

#endif
