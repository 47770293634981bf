// What kernels do wrong on order: see defect.h.
#ifndef MICROTOME_FAKE_DEFECT_KERNEL_H
#define MICROTOME_FAKE_DEFECT_KERNEL_H

#include "defect.h"
#include "../../native/kernels.h"

// paint_wrongly paints a tile anew: with samples repeated where they are to be
// filtered (box), or by BT.709's matrix.
static void paint_wrongly(const mt_paint *p, int box, int matrix) {
  if (p->components == 1) return;
  for (int y = 0; y < p->h; y++)
    for (int x = 0; x < p->w; x++) {
      int v[3];
      for (int c = 0; c < 3; c++) {
        const mt_plane *k = &p->c[c];
        int w = k->shift & 1, h = k->shift >> 1 & 1;
        v[c] = box ? k->at[(uint64_t)(y >> h) * k->pitch + (uint64_t)(x >> w) * k->step] : mt_sample(p, c, x, y);
      }
      uint8_t *d = p->dst + ((uint64_t)y * p->w + x) * p->channels;
      int cb = v[1] - 128, cr = v[2] - 128;
      if (p->color == 1) {
        d[0] = mt_clamp(v[0] + (((matrix ? 103206 : 91881) * cr + 32768) >> 16));
        d[1] = mt_clamp(v[0] + (((matrix ? -12276 : -22554) * cb - (matrix ? 30679 : 46802) * cr + 32768) >> 16));
        d[2] = mt_clamp(v[0] + (((matrix ? 121609 : 116130) * cb + 32768) >> 16));
      } else {
        for (int c = 0; c < 3; c++) d[c] = (uint8_t)v[c];
      }
    }
}

#define KERNEL_ARG(type, i) (*(type *)args[i])

// defect_before changes what a kernel is given, defect_after what it has made.
static void defect_before(int k, void **args) {
  if (k != 2 || !PLANTED("layout")) return;
  const mt_part *parts = KERNEL_ARG(const mt_part *, 0);
  mt_target *targets = KERNEL_ARG(mt_target *, 1);
  for (uint32_t i = 0; i < KERNEL_ARG(uint32_t, 3); i++) targets[parts[i].target].layout = 0;
}

static void defect_after(int k, void **args) {
  int box = k == 0 && PLANTED("box"), matrix = k == 0 && PLANTED("matrix");
  for (uint32_t i = 0; (box || matrix) && i < KERNEL_ARG(uint32_t, 2); i++)
    paint_wrongly(&KERNEL_ARG(const mt_paint *, 0)[i], box, matrix);
  if (k == 1 && PLANTED("fill")) {
    const mt_target *o = KERNEL_ARG(const mt_target *, 0);
    if (o->fill && o->channels == 3 && o->bytes == 1) o->dst[0] = o->rgb[2];
  }
  if (k == 2 && PLANTED("types")) {
    const mt_target *o = &KERNEL_ARG(const mt_target *, 1)[KERNEL_ARG(const mt_part *, 0)->target];
    if (o->bytes == 2) o->dst[0] ^= 1; // the last bit of a float
  }
  if (k == 3 && PLANTED("round")) {
    const mt_filter *f = KERNEL_ARG(const mt_filter *, 0);
    const mt_target *t = KERNEL_ARG(const mt_target *, 1);
    uint64_t n = (uint64_t)t[f->from].h * t[f->to].w * t[f->from].channels;
    for (uint64_t i = 0; i < n; i++) f->line[i] -= f->line[i] > 0;
  }
}

#endif
