//go:build cgo && linux

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum { K_PAINT, K_FILL, K_LAY, K_ACROSS, K_DOWN, KERNELS };
static const char *const kernel_names[KERNELS] = {
    "mt_paint_kernel", "mt_fill_kernel", "mt_lay_kernel", "mt_across_kernel", "mt_down_kernel"};

// Planes are padded to what decoders write in one go.
enum { PLANE_ALIGN = 64, LARGEST_SIDE = 2048 };

typedef struct {
  mt_stream stream;
  mt_jpeg *jpeg;
  int jpeg_w, jpeg_h;    // what jpeg was made for
  uint64_t planes, planes_bytes;
  uint64_t args, args_bytes; // device copies of descriptors
  uint8_t *args_host;        // pinned
  uint64_t args_used;
} lane;

struct mt_engine {
  const mt_vendor *v;
  mt_gpu *gpu;
  mt_options o;
  uint64_t arena;
  mt_function kernels[KERNELS];
  lane *lanes;
  int count;
  int pinned;
};

static uint64_t nanos(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

const mt_vendor *mt_vendor_of(const char *name) {
  static const mt_vendor *const all[] = {&mt_nvidia, &mt_amd};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(name, all[i]->name) == 0) return all[i];
  return NULL;
}

int vendor_libraries(const mt_vendor *v, const char *dir, mt_library *found) { return v->libraries(dir, found); }
int vendor_last_code(const mt_vendor *v) { return v->last_code(NULL); }
int vendor_load(const mt_vendor *v, const char *dir, char *why, size_t n) { return v->load(dir, why, n); }
int vendor_count(const mt_vendor *v, int *n) { return v->count(n); }
int vendor_info(const mt_vendor *v, int index, mt_gpu_info *info) { return v->info(index, info); }

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static int lane_open(mt_engine *e, lane *l) {
  l->args_bytes = 16 << 20;
  l->args_host = aligned_alloc(4096, l->args_bytes);
  if (!l->args_host) return MT_GPU_MEMORY;
  int rc = e->v->stream(e->gpu, &l->stream);
  if (!rc) rc = e->v->pin(e->gpu, l->args_host, l->args_bytes);
  if (!rc) rc = e->v->alloc(e->gpu, l->args_bytes, &l->args);
  return rc;
}

int mt_engine_open(const mt_vendor *v, const mt_options *o, mt_engine **out, char *why, size_t n) {
  mt_engine *e = calloc(1, sizeof *e);
  if (!e) return MT_GPU_MEMORY;
  e->v = v;
  e->o = *o;
  e->count = o->lanes + o->copy_lanes;
  const char *step = "load";
  int rc = v->load(o->libraries, why, n);
  if (rc) goto failed;
  step = "open the device";
  if ((rc = v->open(o->index, o->blocking, &e->gpu))) goto failed;
  step = "load the kernels";
  why[0] = 0;
  if ((rc = v->kernels(e->gpu, &o->kernels, kernel_names, KERNELS, e->kernels, why, n))) goto failed;
  step = "allocate the arena";
  if ((rc = v->alloc(e->gpu, o->arena, &e->arena))) goto failed;
  step = "pin the ring";
  if ((rc = v->pin(e->gpu, o->ring, o->ring_bytes))) goto failed;
  e->pinned = 1;
  step = "make the lanes";
  rc = MT_GPU_MEMORY;
  if (!(e->lanes = calloc(e->count, sizeof *e->lanes))) goto failed;
  for (int i = 0; i < e->count; i++)
    if ((rc = lane_open(e, &e->lanes[i]))) goto failed;
  *out = e;
  return MT_GPU_OK;
failed:
  if (!*why)
    snprintf(why, n, "%s: error %d, the driver's code %d", step, rc, v->last_code(e->gpu));
  mt_engine_close(e);
  return rc;
}

void mt_engine_close(mt_engine *e) {
  for (int i = 0; e->lanes && i < e->count; i++) {
    lane *l = &e->lanes[i];
    if (l->jpeg) e->v->jpeg_end(e->gpu, l->jpeg);
    if (l->planes) e->v->free(e->gpu, l->planes);
    if (l->args) e->v->free(e->gpu, l->args);
    if (l->stream) e->v->stream_end(e->gpu, l->stream);
    if (l->args_host) {
      e->v->unpin(e->gpu, l->args_host);
      free(l->args_host);
    }
  }
  free(e->lanes);
  if (e->pinned) e->v->unpin(e->gpu, e->o.ring);
  if (e->arena) e->v->free(e->gpu, e->arena);
  if (e->gpu) e->v->close(e->gpu);
  free(e);
}

// view is a message with its arrays.
typedef struct {
  mt_message *m;
  mt_tile *tiles;
  mt_upload *uploads;
  mt_out *outs;
  mt_piece *pieces;
  mt_scale *scales;
  uint32_t *words;
} view;

static int within(uint64_t at, uint64_t n, uint64_t size) { return at <= size && n <= size - at; }

static uint64_t out_bytes(const mt_out *o) { return (uint64_t)o->w * o->h * o->channels * o->bytes; }

static int check_tiles(const mt_engine *e, const view *v) {
  for (uint32_t i = 0; i < v->m->tiles; i++) {
    const mt_tile *t = &v->tiles[i];
    if (t->w == 0 || t->h == 0 || t->w > LARGEST_SIDE || t->h > LARGEST_SIDE || t->css >= MT_CSS_COUNT ||
        (t->channels != 1 && t->channels != 3) || (t->css != MT_CSS_GRAY && t->channels != 3) ||
        !within(t->src, t->src_len, e->o.ring_bytes) ||
        !within(t->dst, (uint64_t)t->w * t->h * t->channels, e->o.arena))
      return 0;
  }
  for (uint32_t i = 0; i < v->m->uploads; i++) {
    const mt_upload *u = &v->uploads[i];
    if (!within(u->dst, u->bytes, e->o.arena) ||
        (u->src != UINT64_MAX && !within(u->src, u->bytes, e->o.ring_bytes)))
      return 0;
  }
  return 1;
}

static int check_taps(const view *v, uint32_t at, uint32_t n, uint32_t size) {
  if (!within(at, 3 * (uint64_t)n, v->m->words)) return 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t *t = v->words + at + 3 * i;
    if (!within(t[0], t[1], size) || !within(t[2], t[1], v->m->words)) return 0;
  }
  return 1;
}

static int check_outs(const mt_engine *e, const view *v) {
  for (uint32_t i = 0; i < v->m->outs; i++) {
    const mt_out *o = &v->outs[i];
    if (o->w == 0 || o->h == 0 || o->w > 1 << 16 || o->h > 1 << 16 || (o->channels != 1 && o->channels != 3) || o->layout > 1 ||
        (o->bytes != 1 && o->bytes != 2 && o->bytes != 4) || (o->bytes > 1 && o->lut == UINT32_MAX) ||
        o->dst % o->bytes != 0 || !within(o->dst, out_bytes(o), e->o.arena) ||
        (o->lut != UINT32_MAX && !within(o->lut, 256u * o->channels, v->m->words)))
      return 0;
  }
  for (uint32_t i = 0; i < v->m->pieces; i++) {
    const mt_piece *p = &v->pieces[i];
    if (p->out >= v->m->outs || p->w == 0 || p->h == 0 || (p->channels != 1 && p->channels != 3)) return 0;
    const mt_out *o = &v->outs[p->out];
    uint64_t last = (uint64_t)(p->sy + p->h - 1) * p->pitch + (uint64_t)(p->sx + p->w) * p->channels;
    if (!within(p->dx, p->w, o->w) || !within(p->dy, p->h, o->h) || !within(p->src, last, e->o.arena)) return 0;
  }
  for (uint32_t i = 0; i < v->m->scales; i++) {
    const mt_scale *s = &v->scales[i];
    if (s->from >= v->m->outs || s->to >= v->m->outs) return 0;
    const mt_out *from = &v->outs[s->from], *to = &v->outs[s->to];
    if (from->layout != MT_NHWC || from->bytes != 1 || from->lut != UINT32_MAX || s->line % 2 != 0 ||
        !within(s->line, 2 * (uint64_t)from->h * to->w * from->channels, e->o.arena) ||
        !check_taps(v, s->across, to->w, from->w) || !check_taps(v, s->down, to->h, from->h))
      return 0;
  }
  return 1;
}

// open_message finds the arrays of a message and checks all that it says.
static int open_message(const mt_engine *e, uint64_t at, view *v) {
  if (at % 16 != 0 || !within(at, sizeof(mt_message), e->o.ring_bytes)) return 0;
  uint8_t *base = (uint8_t *)e->o.ring;
  mt_message *m = v->m = (mt_message *)(base + at);
  if (m->version != MT_MESSAGE_VERSION) return 0;
  uint64_t next = up(at + sizeof *m, 16);
#define ARRAY(field, type, n)                                                  \
  if (!within(next, (uint64_t)(n) * sizeof(type), e->o.ring_bytes)) return 0;  \
  v->field = (type *)(base + next);                                            \
  next = up(next + (uint64_t)(n) * sizeof(type), 16)
  ARRAY(tiles, mt_tile, m->tiles);
  ARRAY(uploads, mt_upload, m->uploads);
  ARRAY(outs, mt_out, m->outs);
  ARRAY(pieces, mt_piece, m->pieces);
  ARRAY(scales, mt_scale, m->scales);
  ARRAY(words, uint32_t, m->words);
  if (m->tiles > (uint32_t)e->o.batch) return 0;
  if (m->copy_bytes && (!within(m->copy_src, m->copy_bytes, e->o.arena) ||
                        !within(m->copy_dst, m->copy_bytes, e->o.ring_bytes)))
    return 0;
  return check_tiles(e, v) && check_outs(e, v);
}

// put reserves room among the lane's arguments; the device's copy lies at *at.
static void *put(lane *l, uint64_t bytes, uint64_t *at) {
  uint64_t from = up(l->args_used, 64);
  if (from + bytes > l->args_bytes) return NULL;
  l->args_used = from + bytes;
  *at = l->args + from;
  return l->args_host + from;
}

static int send_args(mt_engine *e, lane *l) {
  return l->args_used ? e->v->to_device(e->gpu, l->stream, l->args, l->args_host, l->args_used) : MT_GPU_OK;
}

static int launch(mt_engine *e, lane *l, int k, uint64_t threads, void **args) {
  uint64_t blocks = (threads + MT_BLOCK - 1) / MT_BLOCK;
  if (blocks == 0) return MT_GPU_OK;
  if (blocks > INT32_MAX) return MT_GPU_INVALID;
  return e->v->launch(e->gpu, l->stream, e->kernels[k], (uint32_t)blocks, args);
}

// The horizontal and vertical halving of a css's chroma, as mt_plane.shift.
static const uint8_t halving[MT_CSS_COUNT] = {0, 1, 3, 2, 0};

uint64_t mt_planar(int w, int h, int css, uint64_t at, mt_plane *p) {
  uint64_t used = 0;
  for (int c = 0; c < (css == MT_CSS_GRAY ? 1 : 3); c++) {
    uint8_t half = c ? halving[css] : 0;
    uint64_t cw = (w + (half & 1)) >> (half & 1), ch = (h + (half >> 1)) >> (half >> 1);
    p[c] = (mt_plane){.at = (uint8_t *)(uintptr_t)(at + used), .pitch = (uint32_t)up(cw, PLANE_ALIGN), .step = 1, .shift = half};
    used += up(cw, PLANE_ALIGN) * up(ch, 16);
  }
  return used;
}

// ready makes the lane's decoder and planes large enough for the tiles.
static int ready(mt_engine *e, lane *l, const view *v) {
  int w = 256, h = 256;
  uint64_t need = 0;
  mt_plane unused[3];
  for (uint32_t i = 0; i < v->m->tiles; i++) {
    if (v->tiles[i].w > w) w = v->tiles[i].w;
    if (v->tiles[i].h > h) h = v->tiles[i].h;
    need += e->v->planes(v->tiles[i].w, v->tiles[i].h, v->tiles[i].css, 0, unused);
  }
  if (l->planes_bytes < need) {
    if (l->planes) e->v->free(e->gpu, l->planes);
    l->planes = l->planes_bytes = 0;
    int rc = e->v->alloc(e->gpu, need, &l->planes);
    if (rc) return rc;
    l->planes_bytes = need;
  }
  if (l->jpeg && (l->jpeg_w < w || l->jpeg_h < h)) {
    e->v->jpeg_end(e->gpu, l->jpeg);
    l->jpeg = NULL;
  }
  if (l->jpeg) return MT_GPU_OK;
  if (w < l->jpeg_w) w = l->jpeg_w;
  if (h < l->jpeg_h) h = l->jpeg_h;
  int rc = e->v->jpeg(e->gpu, l->stream, e->o.batch, w, h, &l->jpeg);
  if (rc == MT_GPU_OK) {
    l->jpeg_w = w;
    l->jpeg_h = h;
  }
  return rc;
}

// decode decodes the message's tiles into the lane's planes. When the decoder
// refuses the batch none of them is decoded, and it is made anew.
static int decode(mt_engine *e, lane *l, view *v, mt_paint **paint, uint64_t *paint_at) {
  uint32_t n = v->m->tiles;
  if (n == 0) return MT_GPU_OK;
  for (uint32_t i = 0; i < n; i++) v->tiles[i].status = MT_TILE_NOT_DECODED;
  int rc = ready(e, l, v);
  if (rc) return rc;
  mt_jpeg_in *in = calloc(n, sizeof *in);
  mt_paint *p = put(l, n * sizeof *p, paint_at);
  if (!in || !p) {
    free(in);
    return MT_GPU_MEMORY;
  }
  uint64_t at = l->planes;
  for (uint32_t i = 0; i < n; i++) {
    const mt_tile *t = &v->tiles[i];
    in[i] = (mt_jpeg_in){.data = (const uint8_t *)e->o.ring + t->src, .len = t->src_len, .w = t->w, .h = t->h, .css = t->css};
    at += e->v->planes(t->w, t->h, t->css, at, in[i].plane);
  }
  v->m->vendor_calls++;
  rc = e->v->decode(e->gpu, l->jpeg, l->stream, in, (int)n);
  for (uint32_t i = 0; i < n && !rc; i++) {
    mt_tile *t = &v->tiles[i];
    p[i] = (mt_paint){.dst = (uint8_t *)(uintptr_t)(e->arena + t->dst), .w = t->w, .h = t->h,
                      .components = t->css == MT_CSS_GRAY ? 1 : 3, .channels = t->channels, .color = t->color};
    memcpy(p[i].c, in[i].plane, sizeof p[i].c);
  }
  free(in);
  if (rc == MT_GPU_REFUSED || rc == MT_GPU_MEMORY) {
    v->m->vendor_code = e->v->last_code(e->gpu);
    e->v->wait(e->gpu, l->stream);
    e->v->jpeg_end(e->gpu, l->jpeg);
    l->jpeg = NULL;
    *paint = NULL;
    return MT_GPU_OK; // the tiles say that they were not decoded
  }
  if (rc == MT_GPU_OK) *paint = p;
  return rc;
}

static int paint_tiles(mt_engine *e, lane *l, view *v, uint64_t at) {
  uint32_t most = 0, n = v->m->tiles;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t px = (uint32_t)v->tiles[i].w * v->tiles[i].h;
    if (px > most) most = px;
  }
  uint32_t threads = (most + MT_PER_THREAD - 1) / MT_PER_THREAD;
  void *args[] = {&at, &threads, &n};
  int rc = launch(e, l, K_PAINT, (uint64_t)threads * n, args);
  for (uint32_t i = 0; i < n && !rc; i++) v->tiles[i].status = MT_TILE_DONE;
  return rc;
}

static int upload(mt_engine *e, lane *l, view *v) {
  for (uint32_t i = 0; i < v->m->uploads; i++) {
    const mt_upload *u = &v->uploads[i];
    int rc = u->src == UINT64_MAX
                 ? e->v->fill(e->gpu, l->stream, e->arena + u->dst, (uint8_t)u->value, u->bytes)
                 : e->v->to_device(e->gpu, l->stream, e->arena + u->dst, (const uint8_t *)e->o.ring + u->src, u->bytes);
    if (rc) return rc;
  }
  return MT_GPU_OK;
}

// work is the device's copies of a message's arrays.
typedef struct {
  uint64_t targets, parts, filters;
} work;

static int describe(mt_engine *e, lane *l, view *v, work *w) {
  uint64_t words_at = 0;
  uint32_t *words = put(l, (uint64_t)v->m->words * sizeof *words, &words_at);
  mt_target *targets = put(l, (uint64_t)v->m->outs * sizeof *targets, &w->targets);
  mt_part *parts = put(l, (uint64_t)v->m->pieces * sizeof *parts, &w->parts);
  mt_filter *filters = put(l, (uint64_t)v->m->scales * sizeof *filters, &w->filters);
  if (!words || !targets || !parts || !filters) return MT_GPU_MEMORY;
  memcpy(words, v->words, (uint64_t)v->m->words * sizeof *words);
#define WORD(i) ((const uint32_t *)(uintptr_t)(words_at + 4 * (uint64_t)(i)))
  for (uint32_t i = 0; i < v->m->outs; i++) {
    const mt_out *o = &v->outs[i];
    targets[i] = (mt_target){.dst = (uint8_t *)(uintptr_t)(e->arena + o->dst), .w = o->w, .h = o->h,
                             .lut = o->lut == UINT32_MAX ? NULL : WORD(o->lut),
                             .channels = o->channels, .layout = o->layout, .bytes = o->bytes, .fill = o->fill};
    memcpy(targets[i].rgb, o->rgb, sizeof o->rgb);
  }
  for (uint32_t i = 0; i < v->m->pieces; i++) {
    const mt_piece *p = &v->pieces[i];
    uint64_t src = e->arena + p->src + (uint64_t)p->sy * p->pitch + (uint64_t)p->sx * p->channels;
    parts[i] = (mt_part){.src = (const uint8_t *)(uintptr_t)src, .pitch = p->pitch, .target = p->out,
                         .channels = p->channels, .w = p->w, .h = p->h, .dx = p->dx, .dy = p->dy};
  }
  for (uint32_t i = 0; i < v->m->scales; i++) {
    const mt_scale *s = &v->scales[i];
    filters[i] = (mt_filter){.from = s->from, .to = s->to, .across = WORD(s->across), .down = WORD(s->down),
                             .words = WORD(0), .line = (uint16_t *)(uintptr_t)(e->arena + s->line)};
  }
  return MT_GPU_OK;
}

static int lay(mt_engine *e, lane *l, view *v, work *w) {
  uint32_t most = 0, fill = 0, n = v->m->outs;
  for (uint32_t i = 0; i < n; i++)
    if (v->outs[i].fill && (uint64_t)v->outs[i].w * v->outs[i].h > fill) fill = v->outs[i].w * v->outs[i].h;
  int rc = MT_GPU_OK;
  uint32_t threads = (fill + MT_PER_THREAD - 1) / MT_PER_THREAD;
  void *fill_args[] = {&w->targets, &threads, &n};
  if (fill) rc = launch(e, l, K_FILL, (uint64_t)threads * n, fill_args);
  for (uint32_t i = 0; i < v->m->pieces; i++) {
    uint32_t px = (uint32_t)v->pieces[i].w * v->pieces[i].h;
    if (px > most) most = px;
  }
  threads = (most + MT_PER_THREAD - 1) / MT_PER_THREAD;
  n = v->m->pieces;
  void *lay_args[] = {&w->parts, &w->targets, &threads, &n};
  if (!rc && n) rc = launch(e, l, K_LAY, (uint64_t)threads * n, lay_args);
  for (uint32_t i = 0; i < v->m->scales && !rc; i++) {
    const mt_out *from = &v->outs[v->scales[i].from], *to = &v->outs[v->scales[i].to];
    uint64_t filter = w->filters + i * sizeof(mt_filter);
    void *args[] = {&filter, &w->targets};
    rc = launch(e, l, K_ACROSS, (uint64_t)from->h * to->w, args);
    if (!rc) rc = launch(e, l, K_DOWN, (uint64_t)to->h * to->w, args);
  }
  return rc;
}

static int run(mt_engine *e, lane *l, view *v) {
  uint64_t t0 = nanos(), t;
#define STAGE(i) (e->o.profile ? (void)e->v->wait(e->gpu, l->stream) : (void)0, t = nanos(), v->m->nanos[i] = t - t0, t0 = t)
  mt_paint *paint = NULL;
  uint64_t paint_at = 0;
  work w = {0};
  l->args_used = 0;
  int rc = upload(e, l, v);
  STAGE(0);
  if (!rc) rc = decode(e, l, v, &paint, &paint_at);
  STAGE(1);
  if (!rc && v->m->outs) rc = describe(e, l, v, &w);
  if (!rc) rc = send_args(e, l);
  STAGE(2);
  if (!rc && paint) rc = paint_tiles(e, l, v, paint_at);
  STAGE(3);
  if (!rc && v->m->outs) rc = lay(e, l, v, &w);
  STAGE(4);
  if (!rc && v->m->copy_bytes)
    rc = e->v->to_host(e->gpu, l->stream, (uint8_t *)e->o.ring + v->m->copy_dst, e->arena + v->m->copy_src, v->m->copy_bytes);
  int waited = e->v->wait(e->gpu, l->stream);
  STAGE(5);
  return rc ? rc : waited;
}

int mt_engine_run(mt_engine *e, int i, uint64_t at) {
  view v;
  if (i < 0 || i >= e->count || !open_message(e, at, &v)) return MT_GPU_INVALID;
  if (v.m->tiles && i >= e->o.lanes) return MT_GPU_INVALID;
  v.m->vendor_code = 0;
  v.m->vendor_calls = 0;
  int rc = run(e, &e->lanes[i], &v);
  if (rc) {
    if (!v.m->vendor_code) v.m->vendor_code = e->v->last_code(e->gpu);
    for (uint32_t k = 0; k < v.m->tiles; k++) v.tiles[k].status = MT_TILE_NOT_DECODED;
  }
  v.m->status = rc;
  return rc;
}

int mt_engine_bare(mt_engine *e, int i, uint64_t at, double seconds, uint64_t *decoded) {
  view v;
  *decoded = 0;
  if (i < 0 || i >= e->o.lanes || !open_message(e, at, &v) || v.m->tiles == 0) return MT_GPU_INVALID;
  lane *l = &e->lanes[i];
  int rc = ready(e, l, &v);
  mt_jpeg_in *in = calloc(v.m->tiles, sizeof *in);
  if (!in) return MT_GPU_MEMORY;
  uint64_t planes = l->planes;
  for (uint32_t k = 0; k < v.m->tiles && !rc; k++) {
    const mt_tile *t = &v.tiles[k];
    in[k] = (mt_jpeg_in){.data = (const uint8_t *)e->o.ring + t->src, .len = t->src_len, .w = t->w, .h = t->h, .css = t->css};
    planes += e->v->planes(t->w, t->h, t->css, planes, in[k].plane);
  }
  uint64_t until = nanos() + (uint64_t)(seconds * 1e9);
  while (!rc && nanos() < until) {
    rc = e->v->decode(e->gpu, l->jpeg, l->stream, in, (int)v.m->tiles);
    if (!rc) rc = e->v->wait(e->gpu, l->stream);
    if (!rc) *decoded += v.m->tiles;
  }
  free(in);
  return rc;
}

// receive looks for a message for a while before it sleeps: a caller that asks
// for one thing at a time asks again within microseconds.
static ssize_t receive(int fd, uint64_t *at, int spin) {
  uint64_t until = nanos() + (uint64_t)spin * 1000;
  do {
    ssize_t n = recv(fd, at, sizeof *at, MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) return n;
  } while (nanos() < until);
  for (;;) {
    ssize_t n = recv(fd, at, sizeof *at, 0);
    if (n >= 0 || errno != EINTR) return n;
  }
}

int mt_engine_serve(mt_engine *e, int i, int fd, int spin) {
  uint64_t at;
  while (receive(fd, &at, spin) == sizeof at) {
    int64_t rc = mt_engine_run(e, i, at);
    if (send(fd, &rc, sizeof rc, MSG_NOSIGNAL) != sizeof rc) break;
  }
  return 0;
}
