// Defects on order: what a device does wrong without saying so. MICROTOME_FAKE's
// setting defect=NAME plants one. The first nine calls of each kind are right: a
// defect that the proof at the start sees needs no other test to be found.
//
// Of the decoder: sample (one sample off by one), swap (two pictures of a call, of
// one size, in each other's place), last (the last picture of a call is not
// written), size17 (a call of 17 is wrong), repeat (a call that is made again and
// again becomes wrong), state (a call leaves something to one of another size),
// poison (a broken stream spoils the picture behind it), stuck (it never returns),
// hoard (each call loses memory), race (calls at once spoil each other), odd (the
// last column of an odd width), large (the last row from 2048 pixels on), refuse255
// (a call of 255 is refused), dies (the process ends). Of kernels: matrix, box, fill,
// layout, types, round. Of copies to the host: short.
#ifndef MICROTOME_FAKE_DEFECT_H
#define MICROTOME_FAKE_DEFECT_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"

enum { DEFECT_AFTER = 9 };

// planted says whether the defect is ordered, and counts its calls.
__attribute__((unused)) static int planted(const char *name, atomic_int *calls) {
  char v[32];
  return strcmp(setting("defect", "", v), name) == 0 && atomic_fetch_add(calls, 1) >= DEFECT_AFTER;
}

// PLANTED is planted at this place.
#define PLANTED(name) ({ static atomic_int calls_; planted(name, &calls_); })

#endif
