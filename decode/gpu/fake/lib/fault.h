// Faults on order. MICROTOME_FAKE is a list of NAME:N:WHAT, separated by commas:
// the N-th call of the function NAME (and, with N+, each from there on) returns the
// code WHAT, or does what it says: "crash", "hang"; of decodes "flip" (one sample
// off), "stale" (the first picture is an earlier one's) and, of decodes and kernels,
// "skip" (nothing is done, to see what the rest costs). Functions go by their
// symbols without "_v2". An item KEY=VALUE is a setting: see the library that asks
// for it. With MICROTOME_FAKE_ONCE, a file that is not there yet, only one fault comes
// in all processes that share it.
#ifndef MICROTOME_FAKE_FAULT_H
#define MICROTOME_FAKE_FAULT_H

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// No vendor's code: rocJPEG's are negative.
enum { FAULT_FLIP = -1001, FAULT_SKIP = -1002, FAULT_STALE = -1003 };

// hang never returns, whatever signals Go's runtime sends.
__attribute__((unused, noreturn)) static void hang(void) {
  for (;;) pause();
}

// come says whether a fault is to come.
static int come(void) {
  const char *once = getenv("MICROTOME_FAKE_ONCE");
  if (!once) return 1;
  int fd = open(once, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

static int fault(const char *name) {
  static atomic_int counts[64];
  static const char *names[64];
  static atomic_flag lock = ATOMIC_FLAG_INIT;
  const char *p = getenv("MICROTOME_FAKE");
  if (!p || !strstr(p, name)) return 0;
  while (atomic_flag_test_and_set(&lock)) {}
  int i = 0;
  while (i < 63 && names[i] && strcmp(names[i], name) != 0) i++;
  names[i] = name;
  atomic_flag_clear(&lock);
  int nth = atomic_fetch_add(&counts[i], 1) + 1;
  for (size_t len = strlen(name); p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
    if (strncmp(p, name, len) != 0 || p[len] != ':') continue;
    char *rest;
    long n = strtol(p + len + 1, &rest, 10);
    int on = *rest == '+' ? nth >= n : nth == n;
    if (*rest == '+') rest++;
    if (!on || *rest != ':' || !come()) continue;
    rest++;
    if (strncmp(rest, "crash", 5) == 0) raise(SIGSEGV);
    if (strncmp(rest, "hang", 4) == 0) hang();
    if (strncmp(rest, "flip", 4) == 0) return FAULT_FLIP;
    if (strncmp(rest, "skip", 4) == 0) return FAULT_SKIP;
    if (strncmp(rest, "stale", 5) == 0) return FAULT_STALE;
    return atoi(rest);
  }
  return 0;
}

// setting is the value of KEY=VALUE, of at most 31 bytes, or otherwise what is given.
__attribute__((unused)) static const char *setting(const char *key, const char *otherwise, char value[32]) {
  size_t len = strlen(key);
  for (const char *p = getenv("MICROTOME_FAKE"); p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
    if (strncmp(p, key, len) != 0 || p[len] != '=') continue;
    size_t n = strcspn(p + len + 1, ",");
    if (n > 31) n = 31;
    memcpy(value, p + len + 1, n);
    value[n] = 0;
    return value;
  }
  return otherwise;
}

#endif
