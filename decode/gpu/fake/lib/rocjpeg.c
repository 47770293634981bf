// A librocjpeg.so.1 on libjpeg-turbo: NATIVE output as VCN's surfaces have it, and
// the rules that rocJPEG's public sources show. Citations are of ROCm/rocm-systems'
// projects/rocjpeg (src/rocjpeg_parser.cpp, rocjpeg_decoder.cpp and
// rocjpeg_vaapi_decoder.cpp) and, where it says "0.7", of ROCm/rocJPEG: what any
// version does wrong, this one does. Compiled with ROCJPEG_0 it is a librocjpeg.so.0.
//
// Faults are asked for by MICROTOME_FAKE (see fault.h), and so are these settings:
// cores=N (of the GPU, by default what its architecture has; 0 as when the query
// failed), gray=crash (4:0:0 ends the process), node=first (every handle decodes on
// the first GPU), node=refused (no handle for a GPU whose node is not found).
#include <pthread.h>

#include "defect_decode.h"
#include "hip.h"
#include "planes.h"

enum {
  NOT_INITIALIZED = -1, INVALID_PARAMETER = -2, BAD_JPEG = -3, NOT_SUPPORTED = -4, RUNTIME_ERROR = -11, NOT_IMPLEMENTED = -12,
};
enum { CSS_444, CSS_440, CSS_422, CSS_420, CSS_411, CSS_400, CSS_UNKNOWN = -1 };
enum { NATIVE = 0 };

typedef struct { uint8_t *channel[4]; uint32_t pitch[4]; } Image;
typedef struct {
  int32_t output;
  int16_t left, top, right, bottom;
  uint32_t width, height;
} Params;

// Stream is what the parser found. Versions of 2024 do not reset it before they parse
// (0.7, ParseJpegStream): a restart interval, and a second and third component, stay
// from the stream before.
typedef struct {
  const uint8_t *data; // the caller's, read again when it is decoded
  size_t len;
  int w, h, n, css, restart, restarts_here;
  int id[4], horiz[4], vert[4];
} Stream;

int rocJpegStreamCreate(void **s) {
  if (!s) return INVALID_PARAMETER;
  int e = fault("rocJpegStreamCreate");
  if (!e) *s = calloc(1, sizeof(Stream));
  return e;
}
int rocJpegStreamDestroy(void *s) {
  if (!s) return INVALID_PARAMETER;
  free(s);
  return fault("rocJpegStreamDestroy");
}

static int be16(const uint8_t *p) { return p[0] << 8 | p[1]; }

// css_of: GetChromaSubsampling, by exact triples; 2x2,2x1,2x1 is 4:4:0 and filed as
// 4:2:2, and one component of 2x2 is unknown.
static int css_of(const Stream *s) {
  static const struct { uint8_t f[6]; int css; } all[] = {
      {{1, 1, 1, 1, 1, 1}, CSS_444}, {{2, 2, 2, 2, 2, 2}, CSS_444}, {{4, 4, 4, 4, 4, 4}, CSS_444},
      {{1, 1, 1, 2, 1, 1}, CSS_440}, {{2, 1, 1, 1, 1, 1}, CSS_422}, {{2, 1, 1, 2, 2, 2}, CSS_422},
      {{2, 2, 2, 2, 1, 1}, CSS_422}, {{2, 1, 1, 2, 1, 1}, CSS_420}, {{4, 1, 1, 1, 1, 1}, CSS_411},
      {{1, 0, 0, 1, 0, 0}, CSS_400}, {{4, 0, 0, 4, 0, 0}, CSS_400}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int same = 1;
    for (int c = 0; c < 3; c++) same &= all[i].f[c] == s->horiz[c] && all[i].f[3 + c] == s->vert[c];
    if (same) return all[i].css;
  }
  return CSS_UNKNOWN;
}

static int parse_frame(Stream *s, const uint8_t *p) {
  s->h = be16(p + 3);
  s->w = be16(p + 5);
  s->n = p[7];
  if (s->n > 3) return 0;
  for (int i = 0; i < s->n; i++) {
    s->id[i] = p[8 + 3 * i];
    s->horiz[i] = p[9 + 3 * i] >> 4;
    s->vert[i] = p[9 + 3 * i] & 15;
    if (p[10 + 3 * i] >= 4) return 0;
  }
  s->css = css_of(s);
  return s->w && s->h && s->n;
}

// parse_tables: ParseDHT and ParseDQT.
static int parse_tables(int marker, const uint8_t *p, const uint8_t *end) {
  for (p += 2; p < end;) {
    if (marker == 0xDB) {
      if (*p >= 4) return 0; // 16 bits, or no table's number
      p += 65;
      continue;
    }
    if ((*p & 15) > 1) return 0;
    int count = 0;
    for (int i = 1; i <= 16; i++) count += p[i];
    if (count > (*p >> 4 ? 162 : 12)) return 0;
    p += 17 + count;
  }
  return p == end;
}

// parse_scan: ParseSOS; components come in the frame's order.
static int parse_scan(const Stream *s, const uint8_t *p) {
  if (p[2] != s->n) return 0;
  for (int i = 0; i < p[2]; i++)
    if (p[3 + 2 * i] != s->id[i] || (p[4 + 2 * i] & 15) > 3 || p[4 + 2 * i] >> 4 > 3) return 0;
  return 1;
}

static int parse(Stream *s, const uint8_t *data, size_t len) {
  const uint8_t *p = data, *end = data + len;
  int tables = 0, marker = 0;
  if (len < 4 || p[0] != 0xFF || p[1] != 0xD8) return 0;
  for (p += 2; marker != 0xDA;) {
    while (p < end && *p == 0xFF) p++;
    if (end - p < 4) return 0;
    marker = *p++;
    if (marker == 0xD9) return 0; // tables alone
    const uint8_t *next = p + be16(p);
    if (next > end) return 0;
    switch (marker) {
    case 0xC0: // the only frame that is read; others are skipped, and are sizeless
      if (!parse_frame(s, p)) return 0;
      break;
    case 0xDB:
    case 0xC4:
      if (!parse_tables(marker, p, next)) return 0;
      tables |= marker == 0xDB ? 1 : 2;
      break;
    case 0xDD:
      if (be16(p) != 4) return 0;
      s->restart = s->restarts_here = be16(p + 2);
      break;
    case 0xDA:
      if (!parse_scan(s, p)) return 0;
    }
    p = next;
  }
  // Parsers without bounds (0.7) look for EOI past the end, and what follows the
  // stream is read: it must be there, and zero.
  for (int i = 0; i < 64; i++)
    if (end[i]) return 0;
  return tables == 3; // abbreviated streams are refused
}

int rocJpegStreamParse(const unsigned char *data, size_t length, void *stream) {
  Stream *s = stream;
  if (!data || !s) return INVALID_PARAMETER;
  int e = fault("rocJpegStreamParse");
  if (e) return e;
  s->data = data; // not copied: slice_data_buffer
  s->len = length;
  s->w = s->h = s->n = s->restarts_here = 0;
  return parse(s, data, length) ? 0 : BAD_JPEG;
}

// Entry is a set of surfaces of the pool (RocJpegVaapiMemPoolEntry).
typedef struct {
  int css, count, w, h, busy; // count 0: there is none
  long bytes;                 // of device memory
  struct { uint8_t *at; size_t room; uint32_t pitch[3]; uint8_t *plane[3]; } *surface;
} Entry;
enum { POOL = 512, CORES = 64 };

typedef struct {
  int device, node, cores, entries;
  Entry pool[POOL];
  pthread_mutex_t lock; // calls on one handle follow one another
  Keep keep;
} Handle;

// How many cores decode JPEG: docs/reference/rocjpeg-formats-and-architectures.
static int cores_of(void) {
  char v[32], a[32];
  const char *arch = fake_arch(a);
  const char *usual = strncmp(arch, "gfx908", 6) == 0 ? "2" : strncmp(arch, "gfx90a", 6) == 0 ? "4" : strncmp(arch, "gfx94", 5) == 0 ? "32" : "1";
  int n = atoi(setting("cores", usual, v));
  return n < CORES ? n : CORES;
}

static long most_side(void) {
  char a[32];
  const char *arch = fake_arch(a);
  return strncmp(arch, "gfx908", 6) == 0 || strncmp(arch, "gfx90a", 6) == 0 ? 4096 : 16384;
}

int rocJpegCreate(int backend, int device, void **out) {
  if (!out) return INVALID_PARAMETER;
  *out = NULL;
  int e = fault("rocJpegCreate"), n = 0;
  if (e) return e;
  if (hipGetDeviceCount(&n) || n < 1) return NOT_INITIALIZED;
  if (device >= n) return INVALID_PARAMETER;
  if (hipSetDevice(device)) return RUNTIME_ERROR; // and it stays so on this thread
  if (backend != 0) return NOT_IMPLEMENTED;
  // Where the GPU's node is not found by its uuid, the first one is taken
  // (GetDrmNodeOffset; rocm-systems issue 7442, pull request 8404), or, in some
  // versions, none.
  char v[32];
  const char *node = setting("node", "own", v);
  if (strcmp(node, "refused") == 0) return INVALID_PARAMETER;
  Handle *h = calloc(1, sizeof *h);
  h->device = device;
  h->node = strcmp(node, "first") == 0 ? 0 : device;
  h->cores = cores_of();
  pthread_mutex_init(&h->lock, NULL);
  *out = h;
  return 0;
}

static void entry_free(Handle *h, Entry *e) {
  for (int k = 0; k < e->count; k++) free(e->surface[k].at);
  free(e->surface);
  fake_hip_take(h->node, -e->bytes);
  memset(e, 0, sizeof *e);
  h->entries--;
}

int rocJpegDestroy(void *handle) {
  Handle *h = handle;
  if (!h) return INVALID_PARAMETER;
  for (int i = 0; i < POOL; i++)
    if (h->pool[i].count) entry_free(h, &h->pool[i]);
  free(h);
  return fault("rocJpegDestroy");
}

int rocJpegGetImageInfo(void *handle, void *stream, uint8_t *n, int *css, uint32_t *w, uint32_t *h) {
  Stream *s = stream;
  if (!handle || !s || !n || !css || !w || !h) return INVALID_PARAMETER;
  int e = fault("rocJpegGetImageInfo");
  if (e) return e;
  *n = (uint8_t)s->n;
  *css = s->css;
  // All four are written; a chroma plane's odd size is rounded down.
  int halfw = s->css == CSS_422 || s->css == CSS_420 ? 1 : s->css == CSS_411 ? 2 : 0, halfh = s->css == CSS_440 || s->css == CSS_420;
  for (int c = 0; c < 4; c++) {
    int none = c == 3 || (c && s->css == CSS_400);
    w[c] = none ? 0 : c ? (uint32_t)s->w >> halfw : (uint32_t)s->w;
    h[c] = none ? 0 : c ? (uint32_t)s->h >> halfh : (uint32_t)s->h;
  }
  return 0;
}

// entry_get is an idle set of exactly so many surfaces that are large enough (GetEntry:
// another count never serves), or a new one, of 3840x2160 at least, in whose place an
// idle one goes when the pool is full; -1: there is none idle (AddPoolEntry).
static int entry_get(Handle *h, int css, int count, int w, int ht) {
  int idle = -1, none = -1;
  for (int i = POOL - 1; i >= 0; i--) {
    Entry *e = &h->pool[i];
    if (!e->count) none = i;
    else if (!e->busy) idle = i;
    if (e->css == css && e->count == count && e->w >= w && e->h >= ht && !e->busy) return i;
  }
  if (h->entries > 5 * h->cores) {
    if (idle < 0) return -1;
    entry_free(h, &h->pool[idle]);
    none = idle;
  }
  Entry e = {.css = css, .count = count, .w = w > 3840 ? w : 3840, .h = ht > 2160 ? ht : 2160};
  e.bytes = (long)count * e.w * e.h * (css == CSS_444 ? 6 : css == CSS_420 ? 3 : css == CSS_400 ? 2 : 4) / 2;
  if (!fake_hip_take(h->node, e.bytes)) return -1;
  e.surface = calloc(count, sizeof *e.surface);
  h->pool[none] = e;
  h->entries++;
  return none;
}

// What VCN makes of each sampling: three planes, packed YUYV, NV12 or one plane, in
// rows of a multiple of 256 bytes.
static void layout(int css, int w, int h, int *planes, int width[3], int height[3]) {
  *planes = css == CSS_420 ? 2 : css == CSS_422 || css == CSS_400 ? 1 : 3;
  for (int p = 0; p < 3; p++) {
    width[p] = css == CSS_422 ? 2 * ((w + 1) & ~1) : css == CSS_420 ? (w + 1) & ~1 : w;
    height[p] = p && (css == CSS_420 || css == CSS_440) ? (h + 1) / 2 : h;
  }
}

static void surface_write(Entry *e, int k, const Picture *p, int css, int stale) {
  int planes, width[3], height[3];
  layout(css, p->w[0], p->h[0], &planes, width, height);
  size_t need = 0;
  for (int i = 0; i < planes; i++) need += (size_t)((width[i] + 255) & ~255) * height[i];
  if (e->surface[k].room < need) {
    free(e->surface[k].at);
    e->surface[k].at = malloc(need);
    e->surface[k].room = need;
    memset(e->surface[k].at, 0xB6, need); // what is beside the picture
    stale = 0;
  }
  uint8_t *at = e->surface[k].at;
  for (int i = 0; i < planes; i++) {
    uint32_t pitch = e->surface[k].pitch[i] = (uint32_t)(width[i] + 255) & ~255u;
    e->surface[k].plane[i] = at;
    for (int y = 0; y < height[i]; y++, at += pitch) {
      if (stale) continue;
      const uint8_t *row = p->plane[i] + (size_t)y * p->w[i];
      if (css == CSS_422) {
        for (int x = 0; x < p->w[0]; x++) {
          at[2 * x] = row[x];
          at[2 * x + 1] = p->plane[1 + (x & 1)][(size_t)y * p->w[1] + x / 2];
        }
      } else if (css == CSS_420 && i == 1) {
        for (int x = 0; x < p->w[1]; x++) {
          at[2 * x] = row[x];
          at[2 * x + 1] = p->plane[2][(size_t)y * p->w[1] + x];
        }
      } else {
        memcpy(at, row, p->w[i]);
      }
    }
  }
}

// surface_copy: CopyChannel. Rows are copied as wide as the picture is, or, where the
// two pitches are equal, whole; a chroma plane has h / 2 rows. A plane without an
// address or a pitch is left out, silently.
static int surface_copy(const Handle *h, const Entry *e, int k, int w, int ht, const Image *to) {
  int planes, width[3], height[3];
  layout(e->css, w, ht, &planes, width, height);
  for (int i = 0; i < planes; i++) {
    size_t from = e->surface[k].pitch[i], pitch = to->pitch[i];
    size_t bytes = e->css == CSS_422 ? 2 * (size_t)w : (size_t)w;
    int rows = i && (e->css == CSS_420 || e->css == CSS_440) ? ht >> 1 : ht;
    if (!to->channel[i] || !pitch) continue;
    // hipMemcpy2DAsync refuses rows that are longer than their pitch; versions before
    // 1.1 copy as much as the destination's pitch, of rows that may be shorter.
    if (bytes > pitch || pitch > from) return RUNTIME_ERROR;
    if (pitch == from) bytes = pitch;
    if (!fake_hip_holds(h->device, to->channel[i], (rows - 1) * pitch + bytes)) return RUNTIME_ERROR;
    for (int y = 0; y < rows; y++) memcpy(to->channel[i] + y * pitch, e->surface[k].plane[i] + y * from, bytes);
  }
  return 0;
}

// submit: SubmitDecodeBatched. The chunk's pictures are grouped by what surfaces they
// need, and each group has a set.
static int submit(Handle *h, Stream **s, int n, const Params *params, int broken, int entry[], int slot[], int stale, Defects *wrong, int at) {
  char v[32];
  for (int i = 0; i < n; i++) {
    if (!s[i]) return INVALID_PARAMETER;
    if (s[i]->w < 64 || s[i]->h < 64 || s[i]->w > most_side() || s[i]->h > most_side()) return NOT_SUPPORTED;
    if (s[i]->css < 0 || s[i]->css == CSS_411) return NOT_SUPPORTED;
    if (params[i].output != NATIVE) return NOT_IMPLEMENTED; // the engine asks for nothing else
    // rocm-systems issue 11435.
    if (s[i]->css == CSS_400 && strcmp(setting("gray", "", v), "crash") == 0) raise(SIGSEGV);
    entry[i] = -1;
  }
  for (int i = 0; i < n; i++) {
    if (entry[i] >= 0) continue;
    int count = 0, w = 0, ht = 0;
    for (int j = i; j < n; j++) {
      if (s[j]->css != s[i]->css) continue;
      slot[j] = count++;
      if (s[j]->w > w) w = s[j]->w;
      if (s[j]->h > ht) ht = s[j]->h;
    }
    int got = entry_get(h, s[i]->css, count, w, ht);
    if (got < 0) return INVALID_PARAMETER;
    h->pool[got].busy = 1;
    for (int j = i; j < n; j++)
      if (s[j]->css == s[i]->css) entry[j] = got;
  }
  for (int i = 0; i < n; i++) {
    Picture p;
    if (i == broken || !picture_decode(s[i]->data, s[i]->len, &p)) return RUNTIME_ERROR;
    // VCN is told of restarts that the data do not have.
    if (s[i]->restart && !s[i]->restarts_here) memset(p.plane[0], 0x55, (size_t)p.w[0] * p.h[0]);
    int skip = !defect_picture(wrong, &h->keep, &p, at + i);
    surface_write(&h->pool[entry[i]], slot[i], &p, s[i]->css, skip || (stale && i == 0));
    picture_free(&p);
  }
  return 0;
}

// chunks decodes and copies as many pictures at a time as there are cores.
static int chunks(Handle *h, Stream **s, int n, const Params *params, Image *to, int f, Defects *wrong) {
  int broken = f && f != FAULT_FLIP && f != FAULT_STALE ? n / 2 : n, entry[CORES], slot[CORES];
  if (h->cores == 0) hang(); // for (i = 0; i < n; i += cores)
  for (int i = 0; i < n; i += h->cores) {
    int chunk = n - i < h->cores ? n - i : h->cores;
    int rc = submit(h, s + i, chunk, params + i, broken - i, entry, slot, f == FAULT_STALE, wrong, i);
    for (int k = 0; k < chunk && !rc; k++)
      rc = surface_copy(h, &h->pool[entry[k]], slot[k], s[i + k]->w, s[i + k]->h, &to[i + k]);
    if (rc) return broken < n ? f : rc;
    for (int k = 0; k < chunk; k++) h->pool[entry[k]].busy = 0;
  }
  if (f == FAULT_FLIP) to[0].channel[0][0] ^= 1;
  return 0;
}

// decode: DecodeBatched. An error leaves the surfaces of its chunk busy for ever, and
// the pictures from there on unwritten.
static int decode(Handle *h, Stream **s, int n, const Params *params, Image *to) {
  int f = fault("rocJpegDecodeBatched");
  if (f == FAULT_SKIP) return 0;
  const uint8_t **data = calloc(n, sizeof *data);
  size_t *len = calloc(n, sizeof *len);
  for (int i = 0; i < n && s[i]; i++) {
    data[i] = s[i]->data;
    len[i] = s[i]->len;
  }
  Defects wrong = defects_begin(n, data, len);
  int rc = defect_refuses(n) ? RUNTIME_ERROR : chunks(h, s, n, params, to, f, &wrong);
  defects_end(&wrong);
  free(data);
  free(len);
  return rc;
}

int rocJpegDecodeBatched(void *handle, void **streams, int n, const Params *params, Image *to) {
  Handle *h = handle;
  if (!h || !streams || n < 1 || !params || !to) return INVALID_PARAMETER;
#ifdef ROCJPEG_0
  Params *all = calloc(n, sizeof *all); // one set for all
  for (int i = 0; i < n; i++) all[i] = *params;
  params = all;
#endif
  pthread_mutex_lock(&h->lock);
  int rc = decode(h, (Stream **)streams, n, params, to);
  pthread_mutex_unlock(&h->lock);
#ifdef ROCJPEG_0
  free(all);
#endif
  return rc;
}

int rocJpegDecode(void *handle, void *stream, const Params *params, Image *to) {
  return rocJpegDecodeBatched(handle, &stream, 1, params, to);
}

const char *rocJpegGetErrorName(int status) { return status ? "ROCJPEG_STATUS_OTHER" : "ROCJPEG_STATUS_SUCCESS"; }

#ifndef ROCJPEG_0
// Since 1.7: nobody calls it here.
int rocJpegDecodeAsync(void *handle, void *stream, const Params *params, Image *to) {
  (void)handle; (void)stream; (void)params; (void)to;
  return NOT_IMPLEMENTED;
}
#endif
