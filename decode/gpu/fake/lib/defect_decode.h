// What a decoder's call does wrong on order: see defect.h.
#ifndef MICROTOME_FAKE_DEFECT_DECODE_H
#define MICROTOME_FAKE_DEFECT_DECODE_H

#include <signal.h>

#include "defect.h"
#include "planes.h"

// Defects are those of one call of n pictures. keep is what the decoder carries from
// call to call.
typedef struct {
  int n, sample, swap, last, odd, large, poison, stuck, raced, spoil;
  const uint8_t *const *data;
  const size_t *len;
} Defects;

typedef struct {
  int n, w, h;
  size_t len;
  int same;
} Keep;

static atomic_int defect_calls_now;

static Defects defects_begin(int n, const uint8_t *const *data, const size_t *len) {
  Defects d = {.n = n, .data = data, .len = len};
  d.sample = PLANTED("sample") || (PLANTED("size17") && n == 17);
  d.swap = PLANTED("swap") && n > 1;
  d.last = PLANTED("last") && n > 1;
  d.odd = PLANTED("odd");
  d.large = PLANTED("large");
  d.poison = PLANTED("poison");
  d.stuck = PLANTED("stuck");
  if (PLANTED("dies") && n > 100) raise(SIGKILL);
  if (PLANTED("hoard")) memset(malloc(1 << 14), 1, 1 << 14);
  if (PLANTED("race")) {
    d.raced = 1;
    int before = atomic_fetch_add(&defect_calls_now, 1);
    usleep(2000);
    d.sample = before > 0;
  }
  return d;
}

static void defects_end(const Defects *d) {
  if (d->raced) atomic_fetch_sub(&defect_calls_now, 1);
}

// defect_refuses says whether a call is refused.
static int defect_refuses(int n) { return PLANTED("refuse255") && n == 255; }

// defect_picture spoils picture i, and says whether it is to be written.
static int defect_picture(Defects *d, Keep *keep, Picture *p, int i) {
  if (i == 0) {
    int other = keep->n > 1 && d->n > 1 && (keep->w != p->w[0] || keep->h != p->h[0]);
    keep->same = keep->len == d->len[0] && keep->n == d->n ? keep->same + 1 : 0;
    if (PLANTED("state") && other) d->sample = 1;
    if (PLANTED("repeat") && keep->same == 40) d->sample = 1;
    *keep = (Keep){.n = d->n, .w = p->w[0], .h = p->h[0], .len = d->len[0], .same = keep->same};
  }
  if (d->swap && (i ^ 1) < d->n) {
    Picture q;
    if (picture_decode(d->data[i ^ 1], d->len[i ^ 1], &q)) {
      if (q.n == p->n && q.w[0] == p->w[0] && q.h[0] == p->h[0] && q.w[q.n - 1] == p->w[p->n - 1] && q.h[q.n - 1] == p->h[p->n - 1]) {
        Picture t = *p;
        *p = q;
        q = t;
      }
      picture_free(&q);
    }
  }
  if (d->sample && i == 0) p->plane[0][0] += p->plane[0][0] < 255 ? 1 : -1;
  if (d->spoil) p->plane[0][p->w[0]] ^= 1;
  d->spoil = d->poison && p->broken;
  if (d->stuck && p->broken) hang();
  if (d->odd && p->w[0] % 2)
    for (int y = 0; y < p->h[0]; y++) p->plane[0][(size_t)y * p->w[0] + p->w[0] - 1] = p->plane[0][(size_t)y * p->w[0] + p->w[0] - 2];
  if (d->large && p->h[0] >= 2048) memset(p->plane[0] + (size_t)(p->h[0] - 1) * p->w[0], 0, p->w[0]);
  return !(d->last && i == d->n - 1);
}

#endif
