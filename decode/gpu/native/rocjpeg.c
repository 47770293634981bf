//go:build cgo && linux

// rocJPEG, opened at run time: VCN's JPEG cores. What it does that its header does
// not say, read in its sources (ROCm/rocm-systems, projects/rocjpeg), stands at the
// place where it is met.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hip.h"
#include "message.h"
#include "node.h"

#define DECLARE(name, args) static int(*p_##name) args;
ROCJPEG_SYMBOLS(DECLARE)

mt_library rocjpeg_library;
static int newer; // 1.7 or later

static const char drm[] = "/sys/class/drm", fds[] = "/proc/self/fd";

// A librocjpeg.so.0 (ROCm 6) takes one set of parameters where .so.1 takes an array,
// and hands surfaces out again before they are copied.
static const char too_old[] = "%.150s is rocJPEG 0.x, of ROCm 6: it may overwrite a picture before it is copied; 1.x is needed";

static int is_old(void *lib, const char *file) {
  char *real = realpath(file, NULL);
  int old = strstr(mt_library_soname(lib), ".so.0") != NULL || (real && strstr(real, "librocjpeg.so.0"));
  free(real);
  return old;
}

// old_in says whether a folder has a librocjpeg.so.0.
static int old_in(const char *dir, char *why, size_t n) {
  char path[512];
  snprintf(path, sizeof path, "%s/librocjpeg.so.0", dir);
  if (!*dir || access(path, F_OK) != 0) return 0;
  snprintf(why, n, too_old, path);
  return 1;
}

// version_of: rocJPEG has no call that tells it, but the file is named by it.
static void version_of(mt_library *l) {
  static const char stem[] = "librocjpeg.so.";
  char *real = realpath(l->file, NULL);
  const char *v = real ? strstr(real, stem) : NULL;
  if (v && strspn(v + sizeof stem - 1, "0123456789.") >= 3) snprintf(l->version, sizeof l->version, "%.31s", v + sizeof stem - 1);
  free(real);
}

int rocjpeg_open(const char *dir) {
  static const char *const names[] = {"librocjpeg.so.1", "librocjpeg.so", NULL};
  static const char *const places[] = {"/opt/rocm/lib/librocjpeg.so.1", "/opt/rocm/lib/librocjpeg.so", NULL};
  mt_library *l = &rocjpeg_library;
  const char *rocm = getenv("ROCM_PATH");
  char lib[256];
  snprintf(lib, sizeof lib, "%s%s", rocm && *rocm ? rocm : "", rocm && *rocm ? "/lib" : "");
  *l = (mt_library){.role = "decoder"};
  void *h = mt_library_open(l, dir, names);
  if (!h && !*dir && *lib) h = mt_library_open(l, lib, names);
  if (!h && !*dir) h = mt_library_open(l, "", places);
  if (!h) {
    if (l->absent && (old_in(dir, l->why, sizeof l->why) || old_in(lib, l->why, sizeof l->why) ||
                      old_in("/opt/rocm/lib", l->why, sizeof l->why)))
      l->absent = 0;
    return MT_GPU_MISSING;
  }
  if (is_old(h, l->file)) {
    snprintf(l->why, sizeof l->why, too_old, l->file);
    return MT_GPU_MISSING;
  }
#define FIND(name, args)                                                       \
  if (!(*(void **)&p_##name = dlsym(h, #name)) && !*l->why)                    \
    snprintf(l->why, sizeof l->why, "%s has no %s", l->file, #name);
  ROCJPEG_SYMBOLS(FIND)
  newer = dlsym(h, ROCJPEG_NEWER) != NULL;
  version_of(l);
  return *l->why ? MT_GPU_MISSING : MT_GPU_OK;
}

// rocjpeg_cores asks the kernel's driver, of the GPU's own render node: partitions
// have their share. A driver that says 0 is believed: rocJPEG counts by the same
// number, and loops for ever over batches at 0. Where nothing is said it is what
// rocJPEG's table of architectures has (docs/reference,
// rocjpeg-formats-and-architectures); of those that it has not, 0: refused.
uint32_t rocjpeg_cores(const char *pci, const char *arch, int multiprocessors) {
  static const struct { const char *arch; uint32_t cores; } table[] = {
      {"gfx908", 2}, {"gfx90a", 4}, {"gfx1030", 1}, {"gfx1031", 1}, {"gfx1032", 1}, {"gfx1100", 1}, {"gfx1101", 1}, {"gfx1102", 1}};
  int node = mt_node_of(drm, pci), asked = node < 0 ? -1 : mt_node_cores(node);
  if (asked >= 0) return (uint32_t)asked;
  // MI300X has 32 and 304 multiprocessors, MI300A 24 and 228.
  if (strcmp(arch, "gfx942") == 0) return multiprocessors < 38 ? 4 : 4 * (uint32_t)(multiprocessors / 38);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(arch, table[i].arch) == 0) return table[i].cores;
  return 0;
}

// rocjpeg_limits: 64 pixels a side at least, and 4096 at most on gfx908 and gfx90a;
// one picture out of range fails its batch. Grey (4:0:0) may end the process (seen
// on MI300X with 1.9: rocm-systems issue 11435).
void rocjpeg_limits(const mt_gpu *g, mt_gpu_info *i) {
  enum { USUAL = 16 };
  i->jpeg_engines = g->cores;
  i->min_side = 64;
  i->max_side = 4096;
  i->css = (1 << MT_CSS_COUNT) - 1;
  i->css_tried = 1 << MT_CSS_GRAY;
  if (g->cores > 1) i->batch = (USUAL + g->cores - 1) / g->cores * g->cores;
}

struct mt_jpeg {
  RocJpegHandle handle;
  int most; // pictures a call
  uint64_t scratch; // where pictures that fill a call up go
  RocJpegStreamHandle *streams;
  RocJpegDecodeParams *params; // an array, all zeros: NATIVE, without crop
  RocJpegImage *images;
  int *group;
};

static int status(mt_gpu *g, int e) {
  if (e == 0) return MT_GPU_OK;
  g->code = e;
  return e == ROCJPEG_OUT_OF_MEMORY ? MT_GPU_MEMORY : MT_GPU_REFUSED;
}

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// rocjpeg_planes: what NATIVE makes of each sampling: NV12, packed YUYV, or planes.
// It copies rows as they are; a row is as long as the picture is wide or, where the
// pitches agree, as the pitch. Pitches above the surface's are refused before 1.1,
// so they are no longer than they must be.
uint64_t rocjpeg_planes(int w, int h, int css, uint64_t at, mt_plane *p) {
  uint8_t *to = (uint8_t *)(uintptr_t)at;
  uint64_t rows = up((uint64_t)h, 16), even = ((uint64_t)w + 1) & ~(uint64_t)1;
  if (css == MT_CSS_420) {
    uint32_t pitch = (uint32_t)up(even, 64);
    uint8_t *c = to + pitch * rows;
    p[0] = (mt_plane){.at = to, .pitch = pitch, .step = 1};
    p[1] = (mt_plane){.at = c, .pitch = pitch, .step = 2, .shift = 3};
    p[2] = (mt_plane){.at = c + 1, .pitch = pitch, .step = 2, .shift = 3};
    return pitch * (rows + up((uint64_t)(h + 1) / 2, 16));
  }
  if (css == MT_CSS_422) {
    uint32_t pitch = (uint32_t)up(2 * even, 64);
    p[0] = (mt_plane){.at = to, .pitch = pitch, .step = 2};
    p[1] = (mt_plane){.at = to + 1, .pitch = pitch, .step = 4, .shift = 1};
    p[2] = (mt_plane){.at = to + 3, .pitch = pitch, .step = 4, .shift = 1};
    return pitch * rows;
  }
  return mt_planar(w, h, css, at, p);
}

// image_of: no plane that the sampling has may be left out, since rocJPEG skips those
// silently.
static void image_of(RocJpegImage *image, int css, const mt_plane *p) {
  int planes = css == MT_CSS_420 ? 2 : css == MT_CSS_422 || css == MT_CSS_GRAY ? 1 : 3;
  memset(image, 0, sizeof *image);
  for (int c = 0; c < planes; c++) {
    image->channel[c] = (uint8_t *)p[c].at;
    image->pitch[c] = p[c].pitch;
  }
}

// make_handle makes a handle, and sees on which GPU. rocJPEG finds the GPU's render
// node by a number of the GPU's that the kernel may not tell (never on gfx950), and
// took the first node then, until it went by the PCI address (rocm-systems PR 8404):
// pixels are right, and GPU 0 does all the work. One at a time, so that what was
// opened is this handle's.
static int make_handle(mt_gpu *g, RocJpegHandle *handle, char *why, size_t n) {
  static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
  static int seen[MT_NODES]; // nodes that a handle has opened; later ones might share it
  int before[MT_NODES], after[MT_NODES];
  pthread_mutex_lock(&making);
  mt_nodes_open(fds, before);
  int e = p_rocJpegCreate(ROCJPEG_BACKEND_HARDWARE, g->device, handle); // sets the thread's device
  mt_nodes_open(fds, after);
  int ours = mt_node_of(drm, g->pci), opened = mt_nodes_newer(before, after, ours);
  if (opened < 0 && ours >= 0 && seen[ours]) opened = ours;
  if (opened == ours && ours >= 0 && !e) seen[ours] = 1;
  pthread_mutex_unlock(&making);
  if (e) {
    snprintf(why, n, "rocJpegCreate: rocJPEG error %d", e);
    return status(g, e);
  }
  if (opened == ours) return MT_GPU_OK; // both -1: no nodes here, as with test libraries
  if (opened < 0) snprintf(why, n, "rocJPEG has opened no render node: which GPU it decodes on is unknown");
  else snprintf(why, n, "rocJPEG has opened renderD%d, which is not the GPU at %s: give the process that GPU's node alone", 128 + opened, g->pci);
  p_rocJpegDestroy(*handle);
  *handle = NULL;
  g->code = 0;
  return MT_GPU_REFUSED;
}

int rocjpeg_try(mt_gpu *g, char *why, size_t n) {
  RocJpegHandle h = NULL;
  int rc = make_handle(g, &h, why, n);
  if (rc == MT_GPU_OK) p_rocJpegDestroy(h);
  return rc;
}

void rocjpeg_end(mt_gpu *g, mt_jpeg *j) {
  if (p_hipSetDevice(g->device)) return;
  for (int i = 0; j->streams && i < j->most; i++)
    if (j->streams[i]) p_rocJpegStreamDestroy(j->streams[i]);
  if (j->handle) p_rocJpegDestroy(j->handle);
  if (j->scratch) p_hipFree((void *)(uintptr_t)j->scratch);
  free(j->streams);
  free(j->params);
  free(j->images);
  free(j->group);
  free(j);
}

// A handle for each lane: calls on one wait for each other. The images lie where
// they stay: rocJPEG may know pending ones by their address.
int rocjpeg_make(mt_gpu *g, mt_stream s, int batch, int w, int h, mt_jpeg **out) {
  (void)s;
  if (g->cores == 0) return MT_GPU_REFUSED;
  HIP_BIND(g);
  mt_jpeg *j = calloc(1, sizeof *j);
  if (!j) return MT_GPU_MEMORY;
  j->most = (int)up((uint64_t)batch, g->cores);
  j->streams = calloc(j->most, sizeof *j->streams);
  j->params = calloc(j->most, sizeof *j->params);
  j->images = calloc(j->most, sizeof *j->images);
  j->group = calloc(j->most, sizeof *j->group);
  void *scratch = NULL;
  char why[256] = "";
  int rc = j->streams && j->params && j->images && j->group ? MT_GPU_OK : MT_GPU_MEMORY;
  if (!rc) rc = hip_kind(g, p_hipMalloc(&scratch, 3 * up((uint64_t)w, 64) * up((uint64_t)h, 16)));
  j->scratch = (uint64_t)(uintptr_t)scratch;
  if (!rc) rc = make_handle(g, &j->handle, why, sizeof why);
  if (!rc) rc = hip_kind(g, p_hipSetDevice(g->device));
  if (rc) {
    rocjpeg_end(g, j);
    return rc;
  }
  *out = j;
  return MT_GPU_OK;
}

// parse gives a picture a stream handle of its own: before mid 2026 a handle kept the
// restart interval and the components of the stream that it had before. The handle
// points into the data, which are host memory in the ring and stay. What it found is
// held against what was asked for: factors may be filed as another sampling.
static int parse(mt_gpu *g, mt_jpeg *j, int k, const mt_jpeg_in *in) {
  static const int css_of[MT_CSS_COUNT] = {
      [MT_CSS_444] = ROCJPEG_CSS_444, [MT_CSS_422] = ROCJPEG_CSS_422, [MT_CSS_420] = ROCJPEG_CSS_420,
      [MT_CSS_440] = ROCJPEG_CSS_440, [MT_CSS_GRAY] = ROCJPEG_CSS_400};
  if (j->streams[k]) {
    RocJpegStreamHandle old = j->streams[k];
    j->streams[k] = NULL;
    p_rocJpegStreamDestroy(old);
  }
  uint8_t components = 0;
  int css = -1;
  uint32_t w[4] = {0}, h[4] = {0}; // all four are written
  int rc = status(g, p_rocJpegStreamCreate(&j->streams[k]));
  if (!rc) rc = status(g, p_rocJpegStreamParse(in->data, in->len, j->streams[k]));
  if (!rc) rc = status(g, p_rocJpegGetImageInfo(j->handle, j->streams[k], &components, &css, w, h));
  if (rc) return rc;
  if (css == css_of[in->css] && w[0] == in->w && h[0] == in->h && components == (in->css == MT_CSS_GRAY ? 1 : 3)) return MT_GPU_OK;
  g->code = 0;
  return MT_GPU_REFUSED;
}

// call decodes pictures of one kind, filled up to a multiple of the cores by the last
// one once more, into scratch: rocJPEG cuts a batch into chunks of that many, and
// keeps surfaces, each for 3840x2160 at least, for every size of chunk that it meets.
static int call(mt_gpu *g, mt_jpeg *j, const mt_jpeg_in *in, const int *group, int n) {
  int total = (int)up((uint64_t)n, g->cores);
  for (int k = 0; k < total; k++) {
    const mt_jpeg_in *i = &in[group[k < n ? k : n - 1]];
    mt_plane spare[3] = {0};
    if (k >= n) rocjpeg_planes(i->w, i->h, i->css, j->scratch, spare);
    image_of(&j->images[k], i->css, k < n ? i->plane : spare);
    int rc = parse(g, j, k, i);
    if (rc) return rc;
  }
  return status(g, p_rocJpegDecodeBatched(j->handle, j->streams, total, j->params, j->images));
}

// rocjpeg_decode: one sampling and one size a call. The call returns when its own
// stream is done, so that s's work may read the planes; it does not wait for s, so
// the caller has. Versions before 1.7 get a chunk a call: in some the next chunk may
// overwrite a surface that is still being copied. After an error the chunk's surfaces
// stay taken: the caller makes the handle anew.
int rocjpeg_decode(mt_gpu *g, mt_jpeg *j, mt_stream s, mt_jpeg_in *in, int n) {
  (void)s;
  HIP_BIND(g);
  if (n > j->most) return MT_GPU_INVALID;
  int most = newer ? j->most : (int)g->cores, rc = MT_GPU_OK;
  for (int first = 0; first < n && !rc; first++) {
    int seen = 0, size = 0;
    for (int i = 0; i < n; i++) {
      if (in[i].css != in[first].css || in[i].w != in[first].w || in[i].h != in[first].h) continue;
      seen |= i < first;
      j->group[size++] = i;
    }
    for (int at = 0; at < size && !seen && !rc; at += most) rc = call(g, j, in, j->group + at, size - at < most ? size - at : most);
  }
  return rc;
}
