// A librocjpeg.so.1 over nvJPEG's hardware backend. It has rocJPEG's rules: streams
// that keep a pointer to their bytes, NATIVE output, calls that return when all is
// written, and a handle that is of no use after an error. What lies otherwise in
// NATIVE output than nvJPEG leaves it is decoded into the handle's own memory and
// laid by a kernel (pack.h). HIP is the shim's beside it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "header.h"
#include "hip.h"
#include "pack.h"

// RocJpegStatus.
enum {
  NOT_INITIALIZED = -1, INVALID_PARAMETER = -2, BAD_JPEG = -3, NOT_SUPPORTED = -4, OUT_OF_MEMORY = -5, EXECUTION_FAILED = -6,
  ARCH_MISMATCH = -7, INTERNAL_ERROR = -8, NO_HARDWARE = -10, RUNTIME_ERROR = -11, NOT_IMPLEMENTED = -12,
};
enum { LEAST_SIDE = 64, MOST_SIDE = 16384 };

typedef struct { uint8_t *channel[4]; uint32_t pitch[4]; } Image;
typedef struct {
  int32_t output;
  int16_t left, top, right, bottom;
  uint32_t width, height;
} Params;

// nvJPEG's part.
typedef struct { unsigned char *channel[4]; size_t pitch[4]; } Planes;
enum { HARDWARE = 3, OUTPUT_YUV = 1, NVJPEG_444 = 0 };
#define NVJPEG_SYMBOLS(X)                                                      \
  X(nvjpegCreateEx, (int, void *, void *, unsigned, void **))                  \
  X(nvjpegDestroy, (void *))                                                   \
  X(nvjpegGetHardwareDecoderInfo, (void *, unsigned *, unsigned *))            \
  X(nvjpegJpegStateCreate, (void *, void **))                                  \
  X(nvjpegJpegStateDestroy, (void *))                                          \
  X(nvjpegDecodeBatchedPreAllocate, (void *, void *, int, int, int, int, int)) \
  X(nvjpegDecodeBatchedInitialize, (void *, void *, int, int, int))            \
  X(nvjpegDecodeBatched, (void *, void *, const unsigned char *const *, const size_t *, Planes *, void *))
#define DECLARE(name, args) static int(*p_##name) args;
NVJPEG_SYMBOLS(DECLARE)

extern const char pack_ptx[];
__asm__(".pushsection .rodata\n"
        "pack_ptx: .incbin \"" PACK_PTX "\"\n .byte 0\n"
        ".popsection");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int found;

static void find(void) {
  const char *named = getenv("MICROTOME_SHIM_NVJPEG");
  const char *const names[] = {named && *named ? named : "libnvjpeg.so.13", "libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11",
                               "/usr/local/cuda/lib64/libnvjpeg.so.13", "/usr/local/cuda/lib64/libnvjpeg.so.12",
                               "/usr/local/cuda/lib64/libnvjpeg.so"};
  void *lib = NULL;
  for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    fprintf(stderr, "microtome's rocJPEG shim: no libnvjpeg: name the file by MICROTOME_SHIM_NVJPEG, or its folder by LD_LIBRARY_PATH\n");
    return;
  }
#define FIND(name, args)                                                        \
  if (!(*(void **)&p_##name = dlsym(lib, #name))) {                             \
    fprintf(stderr, "microtome's rocJPEG shim: libnvjpeg has no " #name "\n");  \
    return;                                                                     \
  }
  NVJPEG_SYMBOLS(FIND)
  found = 1;
}

// status turns nvJPEG's numbers into rocJPEG's.
static int status(int e) {
  static const int8_t of[] = {0, NOT_INITIALIZED, INVALID_PARAMETER, BAD_JPEG, NOT_SUPPORTED, OUT_OF_MEMORY, EXECUTION_FAILED,
                              ARCH_MISMATCH, INTERNAL_ERROR, NO_HARDWARE, BAD_JPEG};
  return e >= 0 && e < (int)sizeof of ? of[e] : INTERNAL_ERROR;
}

// hip turns HIP's.
static int hip(int e) { return e == 0 ? 0 : e == 2 ? OUT_OF_MEMORY : RUNTIME_ERROR; }

typedef struct {
  const uint8_t *data; // the caller's
  size_t len;
  mt_header header;
} Stream;

int rocJpegStreamCreate(void **s) {
  if (!s) return INVALID_PARAMETER;
  *s = calloc(1, sizeof(Stream));
  return *s ? 0 : OUT_OF_MEMORY;
}
int rocJpegStreamDestroy(void *s) {
  if (!s) return INVALID_PARAMETER;
  free(s);
  return 0;
}
int rocJpegStreamParse(const unsigned char *data, size_t len, void *stream) {
  Stream *s = stream;
  if (!data || !s) return INVALID_PARAMETER;
  s->data = data;
  s->len = len;
  if (read_header(&s->header, data, len)) return 0;
  s->data = NULL;
  return BAD_JPEG;
}

typedef struct {
  pthread_mutex_t lock;
  int device, broken;
  void *stream, *jpeg, *state, *kernel;
  int most, w, h;       // what the state has memory for
  int prepared;         // the count that it is initialized for
  uint8_t *room;        // device memory: jobs, then planes
  size_t room_bytes;
  mt_pack *jobs;        // pinned: 3 for each of most pictures
  Planes *planes;       // where each decoded picture's components go
  const uint8_t **data;
  size_t *lens;
  int *unique;          // of each picture: which of the decoded ones it is
} Handle;

static void lists_free(Handle *h) {
  if (h->jobs) hipHostUnregister(h->jobs);
  free(h->jobs);
  free(h->planes);
  free(h->data);
  free(h->lens);
  free(h->unique);
  h->jobs = NULL;
  h->planes = NULL;
  h->data = NULL;
  h->lens = NULL;
  h->unique = NULL;
}

int rocJpegDestroy(void *handle) {
  Handle *h = handle;
  if (!h) return INVALID_PARAMETER;
  if (shim_enter(h->device) == 0) {
    lists_free(h);
    if (h->state) p_nvjpegJpegStateDestroy(h->state);
    if (h->jpeg) p_nvjpegDestroy(h->jpeg);
    if (h->room) hipFree(h->room);
    if (h->stream) hipStreamDestroy(h->stream);
  }
  pthread_mutex_destroy(&h->lock);
  free(h);
  return 0;
}

// kernel_on is the kernel on the thread's device: one module a device, however many
// handles are made there.
static int kernel_on(int device, void **kernel) {
  static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
  static void *loaded[MAX_DEVICES];
  int rc = 0;
  pthread_mutex_lock(&loading);
  if (!loaded[device]) {
    void *module;
    rc = hip(hipModuleLoadData(&module, pack_ptx));
    if (!rc) rc = hip(hipModuleGetFunction(&loaded[device], module, "mt_pack_kernel"));
  }
  *kernel = loaded[device];
  pthread_mutex_unlock(&loading);
  return rc;
}

static int open_handle(Handle *h) {
  unsigned engines = 0, cores = 0;
  int rc = hip(hipStreamCreateWithFlags(&h->stream, HIP_STREAM_NON_BLOCKING));
  if (!rc) rc = kernel_on(h->device, &h->kernel);
  if (!rc && p_nvjpegCreateEx(HARDWARE, NULL, NULL, 0, &h->jpeg)) return NO_HARDWARE;
  if (!rc && (p_nvjpegGetHardwareDecoderInfo(h->jpeg, &engines, &cores) || engines * cores == 0)) return NO_HARDWARE;
  return rc;
}

// rocJpegCreate leaves the device set on the calling thread, as rocJPEG's does.
int rocJpegCreate(int backend, int device, void **out) {
  if (!out) return INVALID_PARAMETER;
  *out = NULL;
  if (backend != 0) return NOT_IMPLEMENTED;
  pthread_once(&once, find);
  if (!found) return NOT_INITIALIZED;
  if (shim_enter(device)) return RUNTIME_ERROR;
  Handle *h = calloc(1, sizeof *h);
  if (!h) return OUT_OF_MEMORY;
  pthread_mutex_init(&h->lock, NULL);
  h->device = device;
  int rc = open_handle(h);
  if (rc) rocJpegDestroy(h);
  else *out = h;
  return rc;
}

// halving is by how much a sampling's chroma is smaller, as shifts.
static void halving(int css, int *across, int *down) {
  *across = css == CSS_411 ? 2 : css == CSS_422 || css == CSS_420;
  *down = css == CSS_440 || css == CSS_420;
}

// All four elements are written, and odd chroma sizes are rounded down.
int rocJpegGetImageInfo(void *handle, void *stream, uint8_t *n, int *css, uint32_t *w, uint32_t *h) {
  Stream *s = stream;
  if (!handle || !s || !s->data || !n || !css || !w || !h) return INVALID_PARAMETER;
  int across, down;
  halving(s->header.css, &across, &down);
  *n = (uint8_t)s->header.n;
  *css = s->header.css;
  for (int c = 0; c < 4; c++) {
    w[c] = c >= s->header.n ? 0 : (uint32_t)s->header.w >> (c ? across : 0);
    h[c] = c >= s->header.n ? 0 : (uint32_t)s->header.h >> (c ? down : 0);
  }
  return 0;
}

// check refuses a whole batch for one picture that can't be decoded.
static int check(Stream **s, int n, const Params *params) {
  for (int i = 0; i < n; i++) {
    const Params *p = &params[i];
    if (!s[i] || !s[i]->data) return INVALID_PARAMETER;
    const mt_header *k = &s[i]->header;
    if (k->w < LEAST_SIDE || k->h < LEAST_SIDE || k->w > MOST_SIDE || k->h > MOST_SIDE) return NOT_SUPPORTED;
    if (k->css == CSS_UNKNOWN || k->css == CSS_411) return NOT_SUPPORTED;
    if (p->output || p->left || p->top || p->right || p->bottom || p->width || p->height) return NOT_IMPLEMENTED;
  }
  return 0;
}

// ready gives the handle memory for n pictures of at most w x h. nvJPEG's hardware
// batches need it beforehand.
static int ready(Handle *h, int n, int w, int ht) {
  if (n <= h->most && w <= h->w && ht <= h->h) return 0;
  if (h->state) p_nvjpegJpegStateDestroy(h->state);
  h->state = NULL;
  h->prepared = 0;
  lists_free(h);
  h->most = n > h->most ? (n + 15) / 16 * 16 : h->most;
  h->w = w > h->w ? w : h->w;
  h->h = ht > h->h ? ht : h->h;
  size_t bytes = (3 * (size_t)h->most * sizeof(mt_pack) + 4095) / 4096 * 4096;
  h->jobs = aligned_alloc(4096, bytes);
  h->planes = calloc(h->most, sizeof *h->planes);
  h->data = calloc(h->most, sizeof *h->data);
  h->lens = calloc(h->most, sizeof *h->lens);
  h->unique = calloc(h->most, sizeof *h->unique);
  if (!h->jobs || !h->planes || !h->data || !h->lens || !h->unique) return OUT_OF_MEMORY;
  int rc = hip(hipHostRegister(h->jobs, bytes, HIP_HOST_PORTABLE));
  if (!rc) rc = status(p_nvjpegJpegStateCreate(h->jpeg, &h->state));
  if (!rc) rc = status(p_nvjpegDecodeBatchedPreAllocate(h->jpeg, h->state, h->most, h->w, h->h, NVJPEG_444, OUTPUT_YUV));
  return rc;
}

// lay says where the components of a picture are decoded to: the caller's planes
// where they are those of NATIVE output, else room from used on. It returns how
// much of the room is used.
static size_t lay(const mt_header *k, const Image *to, uintptr_t room, size_t used, Planes *p) {
  int across, down;
  halving(k->css, &across, &down);
  memset(p, 0, sizeof *p);
  for (int c = 0; c < k->n; c++) {
    // As nvJPEG has it, an odd size's last sample counts.
    size_t w = (size_t)(k->w + (c ? across : 0)) >> (c ? across : 0), h = (size_t)(k->h + (c ? down : 0)) >> (c ? down : 0);
    int native = c == 0 ? k->css != CSS_422 : k->css == CSS_444 || (k->css == CSS_440 && k->h % 2 == 0);
    if (native && to->channel[c] && to->pitch[c] >= w) {
      p->channel[c] = to->channel[c];
      p->pitch[c] = to->pitch[c];
      continue;
    }
    p->pitch[c] = (w + 255) / 256 * 256;
    p->channel[c] = (uint8_t *)(room + used); // an offset, until there is room
    used += p->pitch[c] * ((h + 15) / 16 * 16);
  }
  return used;
}

// job makes one destination plane of a picture: c counts them.
static int job(const mt_header *k, const Planes *from, const Image *to, int c, mt_pack *j) {
  if (!to->channel[c] || !to->pitch[c] || to->channel[c] == from->channel[c]) return 0;
  uint32_t down = c && (k->css == CSS_440 || k->css == CSS_420);
  *j = (mt_pack){.y = from->channel[0], .y_pitch = (uint32_t)from->pitch[0], .u = from->channel[c], .c_pitch = (uint32_t)from->pitch[c],
                 .v = from->channel[c], .out = to->channel[c], .out_pitch = to->pitch[c], .bytes = k->w, .rows = k->h >> down, .kind = PACK_COPY};
  if (k->css == CSS_422 || (k->css == CSS_420 && c)) {
    // A row of NV12's chroma is copied as wide as the picture is, odd or even.
    j->kind = c ? PACK_UV : PACK_YUYV;
    if (!c) j->bytes *= 2;
    j->u = from->channel[1];
    j->v = from->channel[2];
    j->c_pitch = (uint32_t)from->pitch[1];
  }
  return j->bytes <= j->out_pitch ? 1 : -1;
}

// channels is how many planes NATIVE output has.
static int channels(int css) { return css == CSS_422 || css == CSS_400 ? 1 : css == CSS_420 ? 2 : 3; }

// place fills the lists of what is decoded, and of the jobs that follow. A stream
// that stands in the batch twice (callers fill batches up to the number of cores
// with repeats) is decoded once: VCN does repeats on cores that would idle, and there
// are none here.
static int place(Handle *h, Stream **s, int n, Image *to, int *decoded, int *jobs) {
  size_t used = (3 * (size_t)h->most * sizeof(mt_pack) + 255) / 256 * 256; // the jobs
  uintptr_t room = (uintptr_t)h->room;
  int d = 0;
  for (int i = 0; i < n; i++) {
    int k = 0;
    while (k < d && (h->data[k] != s[i]->data || h->lens[k] != s[i]->len)) k++;
    h->unique[i] = k;
    if (k < d) continue;
    h->data[d] = s[i]->data;
    h->lens[d] = s[i]->len;
    used = lay(&s[i]->header, &to[i], room, used, &h->planes[d++]);
  }
  *decoded = d;
  if (h->room_bytes < used) {
    if (h->room) hipFree(h->room);
    h->room = NULL;
    h->room_bytes = 0;
    void *at = NULL;
    if (hipMalloc(&at, used)) return OUT_OF_MEMORY;
    h->room = at;
    h->room_bytes = used;
    return place(h, s, n, to, decoded, jobs); // with the new addresses
  }
  *jobs = 0;
  for (int i = 0; i < n; i++)
    for (int c = 0; c < channels(s[i]->header.css); c++) {
      int made = job(&s[i]->header, &h->planes[h->unique[i]], &to[i], c, &h->jobs[*jobs]);
      if (made < 0) return INVALID_PARAMETER;
      *jobs += made;
    }
  return 0;
}

static int pack(Handle *h, int n) {
  uint32_t threads = 0, count = (uint32_t)n;
  for (int i = 0; i < n; i++) {
    uint32_t t = (h->jobs[i].bytes + PACK_PER_THREAD - 1) / PACK_PER_THREAD * h->jobs[i].rows;
    if (t > threads) threads = t;
  }
  if (n == 0 || threads == 0) return 0;
  const mt_pack *at = (const mt_pack *)h->room;
  void *args[] = {&at, &threads, &count};
  int rc = hip(hipMemcpyHtoDAsync(h->room, h->jobs, (size_t)n * sizeof *h->jobs, h->stream));
  if (rc) return rc;
  return hip(hipModuleLaunchKernel(h->kernel, (unsigned)(((uint64_t)threads * n + 255) / 256), 1, 1, 256, 1, 1, 0, h->stream, args, NULL));
}

static int decode(Handle *h, Stream **s, int n, const Params *params, Image *to) {
  int w = 256, ht = 256, decoded = 0, jobs = 0;
  int rc = h->broken ? INVALID_PARAMETER : hip(shim_enter(h->device)); // as when no surface is idle
  if (!rc) rc = check(s, n, params);
  for (int i = 0; i < n && !rc; i++) {
    w = s[i]->header.w > w ? s[i]->header.w : w;
    ht = s[i]->header.h > ht ? s[i]->header.h : ht;
  }
  if (!rc) rc = ready(h, n, w, ht);
  if (!rc) rc = place(h, s, n, to, &decoded, &jobs);
  if (!rc && h->prepared != decoded) {
    h->prepared = 0;
    rc = status(p_nvjpegDecodeBatchedInitialize(h->jpeg, h->state, decoded, 1, OUTPUT_YUV));
    if (!rc) h->prepared = decoded;
  }
  if (!rc) rc = status(p_nvjpegDecodeBatched(h->jpeg, h->state, h->data, h->lens, h->planes, h->stream));
  if (!rc) rc = pack(h, jobs);
  if (h->stream && !h->broken) {
    int waited = hip(hipStreamSynchronize(h->stream));
    rc = rc ? rc : waited;
  }
  h->broken |= rc != 0;
  return rc;
}

int rocJpegDecodeBatched(void *handle, void **streams, int n, const Params *params, Image *to) {
  Handle *h = handle;
  if (!h || !streams || n < 1 || !params || !to) return INVALID_PARAMETER;
  pthread_mutex_lock(&h->lock);
  int rc = decode(h, (Stream **)streams, n, params, to);
  pthread_mutex_unlock(&h->lock);
  return rc;
}
int rocJpegDecode(void *handle, void *stream, const Params *params, Image *to) {
  return rocJpegDecodeBatched(handle, &stream, 1, params, to);
}

// Since 1.7, whose batches may have more pictures than there are cores. The engine
// looks for it, and does not call it.
int rocJpegDecodeAsync(void *handle, void *stream, const Params *params, Image *to) {
  (void)handle, (void)stream, (void)params, (void)to;
  return NOT_IMPLEMENTED;
}

const char *rocJpegGetErrorName(int s) { return s ? "ROCJPEG_STATUS of Microtome's shim" : "ROCJPEG_STATUS_SUCCESS"; }
