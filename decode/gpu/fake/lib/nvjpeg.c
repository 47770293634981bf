// A libnvjpeg.so.13 on libjpeg-turbo: planes as they are stored, the batch rules
// of the hardware backend as they were measured on an H200 (13.0): a state must be
// initialized for the count; a stream that is no JPEG fails the batch and leaves
// the tiles behind it unwritten; corrupt entropy gives success and garbage.
#include "defect_decode.h"
#include "fault.h"
#include "planes.h"

typedef struct { int unused; } *Handle;
typedef struct { int prepared, allocated; Keep keep; } *State;
typedef struct { unsigned char *channel[4]; size_t pitch[4]; } Image;

int nvjpegGetProperty(int what, int *v) { *v = what == 0 ? 13 : 0; return fault("nvjpegGetProperty"); }
int nvjpegCreateEx(int backend, void *dev, void *pinned, unsigned flags, Handle *h) {
  (void)dev; (void)pinned; (void)flags;
  if (backend != 3) return 9;
  int e = fault("nvjpegCreateEx");
  if (!e) *h = malloc(sizeof **h);
  return e;
}
int nvjpegDestroy(Handle h) { free(h); return fault("nvjpegDestroy"); }
int nvjpegGetHardwareDecoderInfo(Handle h, unsigned *engines, unsigned *cores) {
  (void)h;
  char v[32];
  *engines = fault("nvjpegGetHardwareDecoderInfo") ? 0 : atoi(setting("cores", "7", v));
  *cores = 1;
  return 0;
}
int nvjpegJpegStateCreate(Handle h, State *s) {
  (void)h;
  int e = fault("nvjpegJpegStateCreate");
  if (!e) *s = calloc(1, sizeof **s);
  return e;
}
int nvjpegJpegStateDestroy(State s) { free(s); return fault("nvjpegJpegStateDestroy"); }
int nvjpegDecodeBatchedPreAllocate(Handle h, State s, int n, int w, int hgt, int css, int fmt) {
  (void)h; (void)w; (void)hgt; (void)css;
  if (fmt != 1) return 2;
  s->allocated = n;
  return fault("nvjpegDecodeBatchedPreAllocate");
}
int nvjpegDecodeBatchedInitialize(Handle h, State s, int n, int threads, int fmt) {
  (void)h; (void)threads;
  if (fmt != 1 || n < 1) return 2;
  s->prepared = n;
  return fault("nvjpegDecodeBatchedInitialize");
}

static void write_planes(const Picture *p, Image *to) {
  for (int c = 0; c < p->n; c++)
    for (int y = 0; y < p->h[c]; y++)
      memcpy(to->channel[c] + (size_t)y * to->pitch[c], p->plane[c] + (size_t)y * p->w[c], p->w[c]);
}

int nvjpegDecodeBatched(Handle h, State s, const unsigned char *const *data, const size_t *len, Image *to, void *stream) {
  (void)h; (void)stream;
  int f = fault("nvjpegDecodeBatched");
  if (f == FAULT_SKIP) return 0;
  if (f > 0) {
    s->prepared = 0;
    return f;
  }
  if (s->prepared == 0 || s->allocated < s->prepared || defect_refuses(s->prepared)) return 6;
  Defects wrong = defects_begin(s->prepared, data, len);
  for (int i = 0; i < s->prepared; i++) {
    Picture p;
    if (!picture_decode(data[i], len[i], &p)) {
      s->prepared = 0;
      return 3; // BAD_JPEG
    }
    if (f == FAULT_FLIP && i == 0) p.plane[0][0] ^= 1;
    if (defect_picture(&wrong, &s->keep, &p, i) && (f != FAULT_STALE || i > 0)) write_planes(&p, &to[i]);
    picture_free(&p);
  }
  defects_end(&wrong);
  return 0;
}
