// Faults on order. MICROTOME_FAKE is a list of NAME:N:WHAT, separated by commas:
// the N-th call of NAME (and, with N+, each from there on) returns the code WHAT,
// or does what it says: "crash", "hang"; of decodes "flip" (one sample off); of
// decodes and kernels "skip" (nothing is done, to see what the rest costs).
#ifndef MICROTOME_FAKE_FAULT_H
#define MICROTOME_FAKE_FAULT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULT_FLIP = -1, FAULT_SKIP = -2 };

static int fault(const char *name) {
  static atomic_int counts[16];
  static const char *names[16];
  static atomic_flag lock = ATOMIC_FLAG_INIT;
  const char *p = getenv("MICROTOME_FAKE");
  if (!p || !strstr(p, name)) return 0;
  while (atomic_flag_test_and_set(&lock)) {}
  int i = 0;
  while (i < 15 && names[i] && strcmp(names[i], name) != 0) i++;
  names[i] = name;
  atomic_flag_clear(&lock);
  int nth = atomic_fetch_add(&counts[i], 1) + 1;
  for (size_t len = strlen(name); p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
    if (strncmp(p, name, len) != 0 || p[len] != ':') continue;
    char *rest;
    long n = strtol(p + len + 1, &rest, 10);
    int on = *rest == '+' ? nth >= n : nth == n;
    if (*rest == '+') rest++;
    if (!on || *rest != ':') continue;
    rest++;
    if (strncmp(rest, "crash", 5) == 0) raise(SIGSEGV);
    if (strncmp(rest, "hang", 4) == 0) pause();
    if (strncmp(rest, "flip", 4) == 0) return FAULT_FLIP;
    if (strncmp(rest, "skip", 4) == 0) return FAULT_SKIP;
    return atoi(rest);
  }
  return 0;
}

#endif
