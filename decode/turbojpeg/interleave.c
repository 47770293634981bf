//go:build cgo

#include "interleave.h"

// plain writes the pixels from i on.
static void plain(const unsigned char *r, const unsigned char *g,
                  const unsigned char *b, unsigned char *out, size_t i, size_t n) {
  for (; i < n; i++) {
    out[3 * i] = r[i];
    out[3 * i + 1] = g[i];
    out[3 * i + 2] = b[i];
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

// Of 48 bytes out, byte k is sample k/3 of plane k%3. Each of three vectors out
// is the union of the planes' shuffles; -1 leaves a byte zero.
__attribute__((target("ssse3"))) static size_t
by_16(const unsigned char *r, const unsigned char *g, const unsigned char *b,
      unsigned char *out, size_t n) {
  const __m128i r0 = _mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5);
  const __m128i g0 = _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1);
  const __m128i b0 = _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1);
  const __m128i r1 = _mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1);
  const __m128i g1 = _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10);
  const __m128i b1 = _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1);
  const __m128i r2 = _mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1);
  const __m128i g2 = _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1);
  const __m128i b2 = _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m128i vr = _mm_loadu_si128((const __m128i *)(r + i));
    __m128i vg = _mm_loadu_si128((const __m128i *)(g + i));
    __m128i vb = _mm_loadu_si128((const __m128i *)(b + i));
    __m128i *to = (__m128i *)(out + 3 * i);
    _mm_storeu_si128(to, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(vr, r0), _mm_shuffle_epi8(vg, g0)), _mm_shuffle_epi8(vb, b0)));
    _mm_storeu_si128(to + 1, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(vr, r1), _mm_shuffle_epi8(vg, g1)), _mm_shuffle_epi8(vb, b1)));
    _mm_storeu_si128(to + 2, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(vr, r2), _mm_shuffle_epi8(vg, g2)), _mm_shuffle_epi8(vb, b2)));
  }
  return i;
}

static size_t vector(const unsigned char *r, const unsigned char *g,
                     const unsigned char *b, unsigned char *out, size_t n) {
  return __builtin_cpu_supports("ssse3") ? by_16(r, g, b, out, n) : 0;
}

#elif defined(__aarch64__)
#include <arm_neon.h>

static size_t vector(const unsigned char *r, const unsigned char *g,
                     const unsigned char *b, unsigned char *out, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    uint8x16x3_t v = {{vld1q_u8(r + i), vld1q_u8(g + i), vld1q_u8(b + i)}};
    vst3q_u8(out + 3 * i, v);
  }
  return i;
}

#else

static size_t vector(const unsigned char *r, const unsigned char *g,
                     const unsigned char *b, unsigned char *out, size_t n) {
  return 0;
}

#endif

void mt_interleave(const unsigned char *r, const unsigned char *g,
                   const unsigned char *b, unsigned char *out, size_t n) {
  plain(r, g, b, out, vector(r, g, b, out, n), n);
}
