// What the fake rocJPEG has of the fake HIP, beside HIP's own calls.
#ifndef MICROTOME_FAKE_HIP_H
#define MICROTOME_FAKE_HIP_H

#include <stddef.h>
#include <string.h>

#include "fault.h"

// fake_hip_take has a device give memory to a decoder's surfaces, or take it back
// (a negative count). It returns 0 when the device has none left.
int fake_hip_take(int device, long bytes);

// fake_hip_holds says whether a device's memory has these bytes.
int fake_hip_holds(int device, const void *at, size_t bytes);

int hipGetDeviceCount(int *n);
int hipSetDevice(int d);

// arch is the fakes' GPU: the setting "arch", otherwise one with few JPEG cores, so
// that full batches are cheap here, and with features in its name.
__attribute__((unused)) static const char *fake_arch(char v[32]) { return setting("arch", "gfx90a:sramecc+:xnack-", v); }

#endif
