// What rocJPEG's parser finds in a stream before it decodes (T.81 annex B).
#ifndef MICROTOME_SHIM_HEADER_H
#define MICROTOME_SHIM_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// rocJPEG's numbers of samplings.
enum { CSS_444 = 0, CSS_440 = 1, CSS_422 = 2, CSS_420 = 3, CSS_411 = 4, CSS_400 = 5, CSS_UNKNOWN = -1 };

typedef struct {
  int w, h, n, css;
  int id[3];
  uint8_t factors[6]; // across of each component, then down
} mt_header;

// css_of goes by exact factors, as rocJPEG does: equal ratios of other factors are
// unknown. It files 2x2,2x1,2x1, which is 4:4:0, as 4:2:2; here that is unknown, for
// its planes would not have the size that rocJPEG tells.
static int css_of(const mt_header *s) {
  static const struct { uint8_t f[6]; int css; } all[] = {
      {{1, 1, 1, 1, 1, 1}, CSS_444}, {{2, 2, 2, 2, 2, 2}, CSS_444}, {{4, 4, 4, 4, 4, 4}, CSS_444},
      {{1, 1, 1, 2, 1, 1}, CSS_440}, {{2, 1, 1, 1, 1, 1}, CSS_422}, {{2, 1, 1, 2, 2, 2}, CSS_422},
      {{2, 1, 1, 2, 1, 1}, CSS_420}, {{4, 1, 1, 1, 1, 1}, CSS_411},
      {{1, 0, 0, 1, 0, 0}, CSS_400}, {{4, 0, 0, 4, 0, 0}, CSS_400}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (memcmp(all[i].f, s->factors, 6) == 0) return all[i].css;
  return CSS_UNKNOWN;
}

static int be16(const uint8_t *p) { return p[0] << 8 | p[1]; }

// read_frame reads SOF0, whose parameters have n bytes.
static int read_frame(mt_header *s, const uint8_t *p, int n) {
  if (n < 6 || p[0] != 8 || p[5] < 1 || p[5] > 3 || n != 6 + 3 * p[5]) return 0;
  s->h = be16(p + 1);
  s->w = be16(p + 3);
  s->n = p[5];
  for (int i = 0; i < s->n; i++) {
    s->id[i] = p[6 + 3 * i];
    s->factors[i] = p[7 + 3 * i] >> 4;
    s->factors[3 + i] = p[7 + 3 * i] & 15;
  }
  s->css = css_of(s);
  return s->w > 0 && s->h > 0;
}

// read_scan reads SOS: one scan, of all components in the frame's order.
static int read_scan(const mt_header *s, const uint8_t *p, int n) {
  if (s->n == 0 || n != 4 + 2 * s->n || p[0] != s->n) return 0;
  for (int i = 0; i < s->n; i++)
    if (p[1 + 2 * i] != s->id[i] || p[2 + 2 * i] & 0xEE) return 0; // tables 0 and 1
  return 1;
}

// read_header reads up to the scan. It returns 0 for what rocJPEG's parser refuses:
// other frames than SOF0, a stream without tables of its own, one that ends early.
static int read_header(mt_header *s, const uint8_t *data, size_t len) {
  size_t at = 2;
  int quant = 0, huff = 0;
  memset(s, 0, sizeof *s);
  if (len < 4 || data[0] != 0xFF || data[1] != 0xD8) return 0;
  for (;;) {
    while (at < len && data[at] == 0xFF) at++;
    if (len - at < 3 || at >= len) return 0;
    int marker = data[at], n = be16(data + at + 1) - 2;
    const uint8_t *p = data + at + 3;
    if (n < 0 || (size_t)n > len - at - 3) return 0;
    switch (marker) {
    case 0xC0:
      if (!read_frame(s, p, n)) return 0;
      break;
    case 0xC4: huff = 1; break;
    case 0xDB:
      if (n > 0 && p[0] >> 4) return 0; // 16 bits
      quant = 1;
      break;
    case 0xDA: return quant && huff && read_scan(s, p, n);
    case 0xD8: case 0xD9: return 0; // tables alone
    }
    at += 3 + (size_t)n;
  }
}

#endif
