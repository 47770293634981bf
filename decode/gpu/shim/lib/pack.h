// What is done to the planes of a decoded picture so that they lie as rocJPEG's
// NATIVE output does. One source for the GPU and, in tests, the host.
#ifndef MICROTOME_SHIM_PACK_H
#define MICROTOME_SHIM_PACK_H

#include <stdint.h>

#ifndef MT_DEVICE
#define MT_DEVICE static inline
#endif

enum { PACK_COPY = 0, PACK_UV = 1, PACK_YUYV = 2 };

// mt_pack: one destination plane, and the planes that its bytes come from. PACK_COPY
// and PACK_UV do not read y.
typedef struct {
  const uint8_t *y, *u, *v;
  uint8_t *out;
  uint32_t y_pitch, c_pitch, out_pitch;
  uint32_t bytes, rows; // of the destination: what a row has, and how many
  uint32_t kind;
} mt_pack;

enum { PACK_PER_THREAD = 16 };

// mt_pack_at: thread t of the one grid over all jobs, each of which has the same
// number of threads; each makes PACK_PER_THREAD bytes of a row.
MT_DEVICE void mt_pack_at(const mt_pack *jobs, uint32_t threads, uint64_t t) {
  const mt_pack *p = &jobs[t / threads];
  uint32_t i = (uint32_t)(t % threads), across = (p->bytes + PACK_PER_THREAD - 1) / PACK_PER_THREAD;
  if (across == 0 || i / across >= p->rows) return;
  uint32_t row = i / across, b = i % across * PACK_PER_THREAD;
  uint32_t end = b + PACK_PER_THREAD < p->bytes ? b + PACK_PER_THREAD : p->bytes;
  const uint8_t *u = p->u + (uint64_t)row * p->c_pitch, *v = p->v + (uint64_t)row * p->c_pitch;
  const uint8_t *y = p->y + (uint64_t)row * p->y_pitch;
  uint8_t *out = p->out + (uint64_t)row * p->out_pitch;
  for (; b < end; b++) {
    if (p->kind == PACK_COPY) out[b] = u[b];
    else if (p->kind == PACK_UV) out[b] = b & 1 ? v[b >> 1] : u[b >> 1];
    else out[b] = !(b & 1) ? y[b >> 1] : b & 2 ? v[b >> 2] : u[b >> 2];
  }
}

#endif
