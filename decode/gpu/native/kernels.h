// The engine's kernels, one source for the GPUs and the host: integers only, no
// shared memory, no barriers, nothing that knows how wide a wave is. Each is a
// function of a global thread number; kernels.cu calls them and, on the host, the
// tests' fakes, ../fake/lib/launch.h.
#ifndef MICROTOME_GPU_KERNELS_H
#define MICROTOME_GPU_KERNELS_H

#include <stdint.h>

#ifndef MT_DEVICE
#define MT_DEVICE static inline
#endif

// mt_plane: one component as the decoder left it. step is the distance of
// neighbours in a row: 1 for planes, more where components are interleaved.
typedef struct {
  const uint8_t *at;
  uint32_t pitch;
  uint16_t step;
  uint16_t shift; // bit 0: half as wide, bit 1: half as high
} mt_plane;

// mt_paint: a decoded tile, from its components to packed rows.
typedef struct {
  mt_plane c[3];
  uint8_t *dst;
  uint16_t w, h;
  uint8_t components, channels, color, pad; // color: MT_COLOR_*
} mt_paint;

// mt_target, mt_part and mt_filter are mt_out, mt_piece and mt_scale with places
// in device memory.
typedef struct {
  uint8_t *dst;
  const uint32_t *lut; // 256 a channel, or NULL
  uint32_t w, h;
  uint8_t channels, layout, bytes, fill;
  uint8_t rgb[4];
} mt_target;

typedef struct {
  const uint8_t *src;
  uint32_t pitch, target;
  uint16_t channels, w, h, pad;
  uint32_t dx, dy;
} mt_part;

typedef struct {
  uint32_t from, to;
  const uint32_t *across, *down, *words;
  uint16_t *line;
} mt_filter;

enum { MT_PER_THREAD = 4 }; // pixels

// mt_sample is component c at pixel (x, y), upsampled as libjpeg-turbo does it
// (jdsample.c: h2v1, h1v2 and h2v2 with the triangle filter; edges repeat).
MT_DEVICE int mt_sample(const mt_paint *p, int ci, int x, int y) {
  const mt_plane *c = &p->c[ci];
  int halfw = c->shift & 1, halfh = c->shift >> 1 & 1;
  int w = (p->w + halfw) >> halfw, h = (p->h + halfh) >> halfh;
  int cx = x >> halfw, cy = y >> halfh;
  const uint8_t *row = c->at + (uint64_t)cy * c->pitch;
  if (!halfw && !halfh) return row[(uint64_t)cx * c->step];
  // Where the chroma is at most two samples wide libjpeg-turbo repeats it.
  if (halfw && w <= 2) return row[(uint64_t)cx * c->step];
  int ny = y & 1 ? cy + 1 : cy - 1;
  if (ny < 0) ny = 0;
  if (ny > h - 1) ny = h - 1;
  const uint8_t *near = c->at + (uint64_t)ny * c->pitch;
  int nx = x & 1 ? cx + 1 : cx - 1;
  if (halfw && !halfh) {
    int v = row[(uint64_t)cx * c->step];
    if (nx < 0 || nx > w - 1) return v;
    return (3 * v + row[(uint64_t)nx * c->step] + (x & 1 ? 2 : 1)) >> 2;
  }
  if (!halfw)
    return (3 * row[(uint64_t)cx * c->step] + near[(uint64_t)cx * c->step] + (y & 1 ? 2 : 1)) >> 2;
  int sum = 3 * row[(uint64_t)cx * c->step] + near[(uint64_t)cx * c->step];
  if (nx < 0 || nx > w - 1) return (sum * 4 + (x & 1 ? 7 : 8)) >> 4;
  int other = 3 * row[(uint64_t)nx * c->step] + near[(uint64_t)nx * c->step];
  return (sum * 3 + other + (x & 1 ? 7 : 8)) >> 4;
}

MT_DEVICE uint8_t mt_clamp(int v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

// mt_paint_pixel is jdcolor.c's arithmetic: 16-bit fixed point, rounded as its
// tables are.
MT_DEVICE void mt_paint_pixel(const mt_paint *p, int x, int y) {
  uint8_t *d = p->dst + ((uint64_t)y * p->w + x) * p->channels;
  int a = mt_sample(p, 0, x, y);
  if (p->components == 1) {
    if (p->color == 2) a = 255 - a; // MT_COLOR_INVERT
    for (int i = 0; i < p->channels; i++) d[i] = (uint8_t)a;
    return;
  }
  int b = mt_sample(p, 1, x, y), c = mt_sample(p, 2, x, y);
  if (p->color == 1) { // MT_COLOR_YCC
    int cb = b - 128, cr = c - 128, luma = a;
    a = mt_clamp(luma + ((91881 * cr + 32768) >> 16));
    b = mt_clamp(luma + ((-22554 * cb - 46802 * cr + 32768) >> 16));
    c = mt_clamp(luma + ((116130 * cb + 32768) >> 16));
  }
  d[0] = (uint8_t)a;
  d[1] = (uint8_t)b;
  d[2] = (uint8_t)c;
}

// mt_paint_at: thread t of the one grid over all tiles, each of which has the
// same number of threads.
MT_DEVICE void mt_paint_at(const mt_paint *tiles, uint32_t threads, uint64_t t) {
  const mt_paint *p = &tiles[t / threads];
  uint32_t first = (uint32_t)(t % threads) * MT_PER_THREAD, n = (uint32_t)p->w * p->h;
  for (uint32_t i = first; i < first + MT_PER_THREAD && i < n; i++)
    mt_paint_pixel(p, (int)(i % p->w), (int)(i / p->w));
}

// mt_store writes the samples of one pixel of a target.
MT_DEVICE void mt_store(const mt_target *o, uint32_t x, uint32_t y, int r, int g, int b) {
  int v[3] = {r, g, b};
  uint64_t plane = (uint64_t)o->w * o->h, at = (uint64_t)y * o->w + x;
  for (int c = 0; c < o->channels; c++) {
    uint64_t i = o->layout == 0 ? at * o->channels + c : c * plane + at;
    if (o->lut == 0) {
      o->dst[i] = (uint8_t)v[c];
      continue;
    }
    uint32_t word = o->lut[256 * c + v[c]];
    if (o->bytes == 4) ((uint32_t *)o->dst)[i] = word;
    else if (o->bytes == 2) ((uint16_t *)o->dst)[i] = (uint16_t)word;
    else o->dst[i] = (uint8_t)word;
  }
}

// mt_luma is ITU-R BT.601's, as on the CPU (tiles.luma).
MT_DEVICE int mt_luma(int r, int g, int b) {
  return (int)((19595u * (uint32_t)r + 38470u * (uint32_t)g + 7471u * (uint32_t)b + (1u << 15)) >> 16);
}

// mt_fill_at paints the targets that ask for it.
MT_DEVICE void mt_fill_at(const mt_target *targets, uint32_t threads, uint64_t t) {
  const mt_target *o = &targets[t / threads];
  if (!o->fill) return;
  uint32_t first = (uint32_t)(t % threads) * MT_PER_THREAD;
  int r = o->rgb[0], g = o->rgb[1], b = o->rgb[2];
  if (o->channels == 1) r = mt_luma(r, g, b);
  for (uint64_t i = first; i < (uint64_t)first + MT_PER_THREAD && i < (uint64_t)o->w * o->h; i++)
    mt_store(o, (uint32_t)(i % o->w), (uint32_t)(i / o->w), r, g, b);
}

// mt_lay_at lays the parts on their targets, grey and RGB turned into each other.
MT_DEVICE void mt_lay_at(const mt_part *parts, const mt_target *targets, uint32_t threads, uint64_t t) {
  const mt_part *p = &parts[t / threads];
  const mt_target *o = &targets[p->target];
  uint32_t first = (uint32_t)(t % threads) * MT_PER_THREAD, n = (uint32_t)p->w * p->h;
  for (uint32_t i = first; i < first + MT_PER_THREAD && i < n; i++) {
    uint32_t x = i % p->w, y = i / p->w;
    const uint8_t *s = p->src + (uint64_t)y * p->pitch + (uint64_t)x * p->channels;
    int r = s[0], g = r, b = r;
    if (p->channels == 3) {
      g = s[1];
      b = s[2];
      if (o->channels == 1) r = mt_luma(r, g, b);
    }
    mt_store(o, p->dx + x, p->dy + y, r, g, b);
  }
}

// mt_across_at filters the rows of a source across, into 8.8 fixed point; a
// column without weights is background.
MT_DEVICE void mt_across_at(const mt_filter *f, const mt_target *targets, uint64_t t) {
  const mt_target *from = &targets[f->from], *to = &targets[f->to];
  uint32_t ch = from->channels, w = to->w;
  if (t >= (uint64_t)from->h * w) return;
  uint32_t x = (uint32_t)(t % w), y = (uint32_t)(t / w);
  uint16_t *line = f->line + ((uint64_t)y * w + x) * ch;
  const uint32_t *tap = f->across + 3 * x;
  if (tap[1] == 0) {
    line[0] = (uint16_t)((ch == 1 ? mt_luma(to->rgb[0], to->rgb[1], to->rgb[2]) : to->rgb[0]) << 8);
    for (uint32_t c = 1; c < ch; c++) line[c] = (uint16_t)(to->rgb[c] << 8);
    return;
  }
  const uint32_t *weights = f->words + tap[2];
  const uint8_t *px = from->dst + ((uint64_t)y * from->w + tap[0]) * ch;
  for (uint32_t c = 0; c < ch; c++) {
    uint32_t v = 1 << 5;
    for (uint32_t i = 0; i < tap[1]; i++) v += weights[i] * px[i * ch + c];
    line[c] = (uint16_t)(v >> 6);
  }
}

// mt_down_at filters the lines down.
MT_DEVICE void mt_down_at(const mt_filter *f, const mt_target *targets, uint64_t t) {
  const mt_target *from = &targets[f->from], *to = &targets[f->to];
  if (t >= (uint64_t)to->w * to->h) return;
  uint32_t ch = from->channels, x = (uint32_t)(t % to->w), y = (uint32_t)(t / to->w);
  const uint32_t *tap = f->down + 3 * y;
  int v[3] = {to->rgb[0], to->rgb[1], to->rgb[2]};
  if (tap[1] == 0) {
    if (ch == 1) v[0] = mt_luma(v[0], v[1], v[2]);
  } else {
    const uint32_t *weights = f->words + tap[2];
    for (uint32_t c = 0; c < ch; c++) {
      const uint16_t *line = f->line + ((uint64_t)tap[0] * to->w + x) * ch + c;
      uint32_t sum = 0;
      for (uint32_t i = 0; i < tap[1]; i++) sum += weights[i] * line[(uint64_t)i * to->w * ch];
      v[c] = (int)((sum + (1u << 21)) >> 22);
    }
  }
  if (ch == 1) v[1] = v[2] = v[0];
  else if (to->channels == 1) v[0] = mt_luma(v[0], v[1], v[2]);
  mt_store(to, x, y, v[0], v[1], v[2]);
}

#endif
