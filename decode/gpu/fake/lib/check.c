// What the fakes of AMD's libraries must do, tried from outside: each line is one
// behaviour, and says so when it is not there. Run by fake_test.go with the streams
// rgb420, small (48x48), gray, gray2x2 and truncated (its entropy-coded data).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint8_t *channel[4]; uint32_t pitch[4]; } Image;
typedef struct { int32_t output; int16_t crop[4]; uint32_t to[2]; } Params;

int hipSetDevice(int);
int hipMalloc(void **, size_t);
int hipFree(void *);
int hipMemGetInfo(size_t *, size_t *);
int hipHostRegister(void *, size_t, unsigned);
int hipHostUnregister(void *);
int hipStreamCreateWithFlags(void **, unsigned);
int hipStreamSynchronize(void *);
int hipModuleLoadData(void **, const void *);
int rocJpegCreate(int, int, void **);
int rocJpegDestroy(void *);
int rocJpegStreamCreate(void **);
int rocJpegStreamParse(const unsigned char *, size_t, void *);
int rocJpegGetImageInfo(void *, void *, uint8_t *, int *, uint32_t *, uint32_t *);
int rocJpegDecodeBatched(void *, void **, int, const Params *, Image *);

static int failed;
#define SAY(what, got, want) \
  do { long g_ = (long)(got), w_ = (long)(want); if (g_ != w_) failed = printf("%s: %ld, want %ld\n", what, g_, w_); } while (0)

typedef struct { uint8_t *data; size_t len; } File;
static File load(const char *name) {
  FILE *f = fopen(name, "rb");
  File out = {calloc(1, 1 << 20), 0};
  if (f) out.len = fread(out.data, 1, (1 << 20) - 64, f);
  return out;
}

static void *parsed(File f, int want, const char *what) {
  void *s = NULL;
  rocJpegStreamCreate(&s);
  SAY(what, rocJpegStreamParse(f.data, f.len, s), want);
  return s;
}

static size_t free_memory(void) {
  size_t f = 0, t;
  hipMemGetInfo(&f, &t);
  return f;
}

static void runtime(void) {
  void *p, *s, *m;
  static uint8_t page[8192];
  SAY("a device that is none", hipSetDevice(2), 101);
  SAY("a device of a new thread is the first", hipMalloc(&p, 64), 0);
  SAY("fresh memory is no zeros", *(uint8_t *)p, 0xDB);
  SAY("memory is freed", hipFree(p), 0);
  SAY("memory is freed once", hipFree(p), 1);
  SAY("more memory than there is", hipMalloc(&p, (size_t)1 << 40), 2);
  SAY("large memory is there at once", hipMalloc(&p, (size_t)8 << 30), 0);
  SAY("and is counted", free_memory(), (size_t)8 << 30);
  SAY("and is fresh", ((uint8_t *)p)[(size_t)7 << 30], 0xDB);
  hipFree(p);
  SAY("memory is pinned", hipHostRegister(page, 4096, 1), 0);
  SAY("memory is pinned once", hipHostRegister(page, 4096, 1), 712);
  SAY("what is not pinned", hipHostUnregister(page + 1), 713);
  SAY("memory is unpinned", hipHostUnregister(page), 0);
  SAY("a stream", hipStreamCreateWithFlags(&s, 1), 0);
  hipSetDevice(1);
  SAY("another device's stream", hipStreamSynchronize(s), 400);
  hipSetDevice(0);
  SAY("an image that is none", hipModuleLoadData(&m, page), 200);
}

static Image image(uint8_t *at) {
  return (Image){.channel = {at, at + 256 * 256, NULL, NULL}, .pitch = {256, 256, 0, 0}};
}

static void decoder(void) {
  File rgb420 = load("rgb420"), truncated = load("truncated");
  File tables = rgb420, dirty = load("rgb420"), gray = load("gray");
  void *h, *p, *streams[8];
  Params params[8] = {{0}};
  Image images[8];
  uint32_t w[4], ht[4];
  uint8_t n;
  int css;
  SAY("the hybrid backend", rocJpegCreate(1, 0, &h), -12);
  SAY("no such device", rocJpegCreate(0, 2, &h), -2);
  tables.len = 100;
  dirty.data[dirty.len + 10] = 1;
  parsed(tables, -3, "a stream without its end");
  parsed(dirty, -3, "a stream without slack");
  void *grays = parsed(gray, 0, "grey"), *gray2 = parsed(load("gray2x2"), 0, "grey of 2x2"), *small = parsed(load("small"), 0, "small");
  SAY("a handle", rocJpegCreate(0, 0, &h), 0);
  SAY("info", rocJpegGetImageInfo(h, parsed(rgb420, 0, "4:2:0"), &n, &css, w, ht), 0);
  SAY("sampling is not numbered as by nvJPEG", css, 3);
  SAY("the fourth size is written", w[3], 0);
  rocJpegGetImageInfo(h, gray2, &n, &css, w, ht);
  SAY("grey of 2x2 is unknown", css, -1);
  size_t before = free_memory();
  hipMalloc(&p, 8 * 4 * 65536);
  for (int i = 0; i < 8; i++) {
    streams[i] = parsed(i == 5 ? truncated : rgb420, 0, "4:2:0");
    images[i] = image((uint8_t *)p + (size_t)i * 4 * 65536);
  }
  before = free_memory();
  SAY("a batch, one corrupt", rocJpegDecodeBatched(h, streams, 8, params, images), 0);
  SAY("surfaces of one chunk are kept, of 3840x2160", before - free_memory(), 4L * 3840 * 2160 * 3 / 2);
  SAY("pictures are the same", memcmp(images[0].channel[0], images[7].channel[0], 256 * 256), 0);
  SAY("corrupt data are a picture too", memcmp(images[0].channel[0], images[5].channel[0], 256 * 256) != 0, 1);
  SAY("another count has its own surfaces", rocJpegDecodeBatched(h, streams, 6, params, images), 0);
  SAY("which are counted", before - free_memory(), 6L * 3840 * 2160 * 3 / 2);
  SAY("a small one", rocJpegDecodeBatched(h, &small, 1, params, images), -4);
  SAY("grey of 2x2, decoded", rocJpegDecodeBatched(h, &gray2, 1, params, images), -4);
  images[0].pitch[0] = 512; // longer than the surface's rows
  SAY("a pitch beyond the surface's", rocJpegDecodeBatched(h, streams, 4, params, images), -11);
  images[0] = image(p);
  images[1].channel[1] = NULL;
  memset(p, 0, 8 * 65536);
  SAY("a plane of nowhere is left out", rocJpegDecodeBatched(h, streams, 4, params, images), 0);
  SAY("and nothing is written", *((uint8_t *)p + 5 * 65536), 0);
  images[1] = image((uint8_t *)p + 4 * 65536);
  // Each failed batch leaves its surfaces busy.
  int rc = 0;
  images[0].channel[0] = gray.data; // host memory
  for (int i = 0; i < 5 * 4 + 1 && rc != -2; i++) rc = rocJpegDecodeBatched(h, streams, 4, params, images);
  SAY("no idle surfaces are left", rc, -2);
  images[0] = image(p);
  SAY("the handle is of no use", rocJpegDecodeBatched(h, streams, 4, params, images), -2);
  SAY("it is destroyed", rocJpegDestroy(h), 0);
  SAY("with its surfaces", free_memory(), before);
  rocJpegCreate(0, 0, &h);
  SAY("a new one is", rocJpegDecodeBatched(h, streams, 4, params, images), 0);
  // A stream's handle keeps what it was told before.
  rocJpegStreamParse(rgb420.data, rgb420.len, grays);
  rocJpegStreamParse(gray.data, gray.len, grays);
  rocJpegGetImageInfo(h, grays, &n, &css, w, ht);
  SAY("grey after colour", css == 5, 0);
}

// first: every handle decodes on the first GPU, and its memory tells.
static void first(void) {
  File f = load("rgb420");
  void *h, *p, *s = parsed(f, 0, "4:2:0");
  Params params = {0};
  hipSetDevice(1);
  hipMalloc(&p, 2 * 65536);
  Image to = image(p);
  size_t own = free_memory();
  SAY("a handle of the second GPU", rocJpegCreate(0, 1, &h), 0);
  SAY("decodes", rocJpegDecodeBatched(h, &s, 1, &params, &to), 0);
  SAY("without the GPU's memory", own - free_memory(), 0);
  hipSetDevice(0);
  SAY("but with the first one's", ((size_t)16 << 30) - free_memory(), 3840L * 2160 * 3 / 2);
}

int main(void) {
  const char *faults = getenv("MICROTOME_FAKE");
  if (faults && strstr(faults, "node=first")) {
    first();
    return failed != 0;
  }
  runtime();
  decoder();
  return failed != 0;
}
