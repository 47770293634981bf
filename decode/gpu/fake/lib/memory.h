// Device memory over the host's: what was never written reads as 0xDB, which a
// program must not rely on, and large pieces take room only where they are written.
#ifndef MICROTOME_FAKE_MEMORY_H
#define MICROTOME_FAKE_MEMORY_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEMORY_FRESH = 0xDB, MEMORY_PIECES = 4096 };
static const size_t memory_chunk = (size_t)2 << 20;

static struct { uintptr_t at; size_t asked, bytes; int device; } memory_pieces[MEMORY_PIECES];
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

// memory_pattern is a file of one chunk that has never been written.
static int memory_pattern(void) {
  static int fd = -1;
  if (fd >= 0) return fd;
  int f = memfd_create("microtome-fake", MFD_CLOEXEC);
  void *at = f < 0 || ftruncate(f, (off_t)memory_chunk) ? MAP_FAILED
                 : mmap(NULL, memory_chunk, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  if (at == MAP_FAILED) return -1;
  memset(at, MEMORY_FRESH, memory_chunk);
  munmap(at, memory_chunk);
  return fd = f;
}

static void *memory_map(size_t bytes) {
  uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int fd = memory_pattern();
  if (at == MAP_FAILED || fd < 0) return NULL;
  for (size_t i = 0; i < bytes; i += memory_chunk)
    if (mmap(at + i, memory_chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
      return NULL;
  return at;
}

// memory_get is a piece on a device, NULL when there is none.
static void *memory_get(int device, size_t n) {
  pthread_mutex_lock(&memory_lock);
  int i = 0;
  while (i < MEMORY_PIECES && memory_pieces[i].at) i++;
  size_t unit = n < memory_chunk / 4 ? 256 : memory_chunk, bytes = (n + unit - 1) / unit * unit;
  void *at = NULL;
  if (i < MEMORY_PIECES && n > 0) at = unit == 256 ? aligned_alloc(256, bytes) : memory_map(bytes);
  if (at) {
    if (unit == 256) memset(at, MEMORY_FRESH, bytes);
    memory_pieces[i].at = (uintptr_t)at;
    memory_pieces[i].asked = n;
    memory_pieces[i].bytes = bytes;
    memory_pieces[i].device = device;
  }
  pthread_mutex_unlock(&memory_lock);
  return at;
}

// memory_put gives a piece back, and says how much of it was asked for; 0: there is
// none.
static size_t memory_put(uintptr_t at) {
  size_t asked = 0;
  pthread_mutex_lock(&memory_lock);
  for (int i = 0; i < MEMORY_PIECES && at; i++) {
    if (memory_pieces[i].at != at) continue;
    asked = memory_pieces[i].asked;
    memory_pieces[i].at = 0;
    if (memory_pieces[i].bytes % memory_chunk) free((void *)at);
    else munmap((void *)at, memory_pieces[i].bytes);
    break;
  }
  pthread_mutex_unlock(&memory_lock);
  return asked;
}

// memory_of says which device a piece with these bytes is on; -1: none.
__attribute__((unused)) static int memory_of(uintptr_t at, size_t n) {
  int device = -1;
  pthread_mutex_lock(&memory_lock);
  for (int i = 0; i < MEMORY_PIECES; i++)
    if (memory_pieces[i].at && at >= memory_pieces[i].at && at - memory_pieces[i].at <= memory_pieces[i].bytes &&
        n <= memory_pieces[i].bytes - (at - memory_pieces[i].at))
      device = memory_pieces[i].device;
  pthread_mutex_unlock(&memory_lock);
  return device;
}

#endif
