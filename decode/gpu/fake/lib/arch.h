// AMD's architectures.
#ifndef MICROTOME_FAKE_ARCH_H
#define MICROTOME_FAKE_ARCH_H

#include <string.h>

// machine is a processor's number in the flags of an AMDGPU code object (LLVM,
// AMDGPUUsage, "AMDGPU EF_AMDGPU_MACH").
static unsigned machine(const char *arch) {
  static const struct { const char *name; unsigned number; } all[] = {
      {"gfx908", 0x30}, {"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}, {"gfx1030", 0x36}, {"gfx1031", 0x37}, {"gfx1032", 0x38},
      {"gfx1100", 0x41}, {"gfx1101", 0x46}, {"gfx1102", 0x47}, {"gfx1103", 0x44}, {"gfx1150", 0x43}, {"gfx1151", 0x4a},
      {"gfx1152", 0x55}, {"gfx1153", 0x58}, {"gfx1200", 0x48}, {"gfx1201", 0x4e}, {"gfx1250", 0x49}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t n = strlen(all[i].name);
    if (strncmp(arch, all[i].name, n) == 0 && (arch[n] == 0 || arch[n] == ':')) return all[i].number;
  }
  return 0;
}

#endif
