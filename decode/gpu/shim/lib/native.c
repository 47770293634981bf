// Prints what rocJPEG makes of the streams named by the arguments: what it tells of
// each, and every byte of NATIVE output with what lies around it. Run over two
// libraries, the outputs must be equal.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint8_t *channel[4]; uint32_t pitch[4]; } Image;
typedef struct { int32_t output; int16_t crop[4]; uint32_t to[2]; } Params;

int hipMalloc(void **, size_t);
int hipFree(void *);
int hipStreamCreateWithFlags(void **, unsigned);
int hipStreamSynchronize(void *);
int hipMemsetD8Async(void *, unsigned char, size_t, void *);
int hipMemcpyDtoHAsync(void *, void *, size_t, void *);
int rocJpegCreate(int, int, void **);
int rocJpegDestroy(void *);
int rocJpegStreamCreate(void **);
int rocJpegStreamParse(const unsigned char *, size_t, void *);
int rocJpegGetImageInfo(void *, void *, uint8_t *, int *, uint32_t *, uint32_t *);
int rocJpegDecodeBatched(void *, void **, int, const Params *, Image *);

enum { COUNT = 3, GUARD = 64, SIZE = 1 << 20 };

// native_of gives NATIVE output rows that are no longer than they must be.
static void native_of(Image *to, uint8_t *at, int css, uint32_t w, uint32_t h) {
  int planes = css == 2 || css == 5 ? 1 : css == 3 ? 2 : 3;
  memset(to, 0, sizeof *to);
  for (int c = 0; c < planes; c++) {
    to->channel[c] = at += GUARD;
    to->pitch[c] = css == 2 ? 2 * ((w + 1) & ~1u) : css == 3 ? (w + 1) & ~1u : w;
    at += to->pitch[c] * (c && (css == 1 || css == 3) ? h >> 1 : h);
  }
}

// picture decodes a stream three times in one batch: the third is the second again,
// with a plane left out.
static void picture(void *h, const char *name, uint8_t *device, uint8_t *host, void *stream) {
  static uint8_t data[COUNT][SIZE];
  void *streams[COUNT];
  Params params[COUNT] = {{0}};
  Image to[COUNT];
  uint32_t w[4] = {9, 9, 9, 9}, ht[4] = {9, 9, 9, 9};
  uint8_t n = 9;
  int css = 9;
  memset(data, 0, sizeof data);
  FILE *f = fopen(name, "rb");
  size_t len = f ? fread(data[0], 1, SIZE - 64, f) : 0;
  if (f) fclose(f);
  for (int i = 0; i < COUNT; i++) {
    uint8_t *at = i ? memcpy(data[1], data[0], len) : data[0];
    rocJpegStreamCreate(&streams[i]);
    int rc = rocJpegStreamParse(at, len, streams[i]);
    if (i == 0) printf("%s: parsed %d\n", name, rc);
    if (rc) return;
  }
  printf("told %d\n", rocJpegGetImageInfo(h, streams[0], &n, &css, w, ht));
  printf("%d components, sampling %d, %ux%u %ux%u %ux%u %ux%u\n", n, css, w[0], ht[0], w[1], ht[1], w[2], ht[2], w[3], ht[3]);
  hipMemsetD8Async(device, 0xA5, COUNT * SIZE, stream);
  hipStreamSynchronize(stream);
  for (int i = 0; i < COUNT; i++) native_of(&to[i], device + i * SIZE, css, w[0], ht[0]);
  to[2].channel[css == 2 || css == 5 ? 0 : 1] = NULL;
  int rc = rocJpegDecodeBatched(h, streams, COUNT, params, to);
  printf("decoded %d\n", rc);
  hipMemcpyDtoHAsync(host, device, COUNT * SIZE, stream);
  hipStreamSynchronize(stream);
  if (rc == 0) fwrite(host, 1, COUNT * SIZE, stdout);
}

int main(int argc, char **argv) {
  void *device, *stream;
  uint8_t *host = malloc(COUNT * SIZE);
  if (!host || hipMalloc(&device, COUNT * SIZE) || hipStreamCreateWithFlags(&stream, 1)) return 1;
  for (int i = 1; i < argc; i++) {
    void *h;
    int rc = rocJpegCreate(0, 0, &h);
    if (rc) return printf("rocJpegCreate: %d\n", rc);
    picture(h, argv[i], device, host, stream);
    rocJpegDestroy(h);
  }
  return 0;
}
