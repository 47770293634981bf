//go:build cgo

#include <string.h>

#include "entropy.h"
#include <jerror.h>

// The k-th coefficient of a block in zigzag order (T.81 figure A.6). A broken
// run may lead up to 15 beyond the last: that goes to the last, as in libjpeg.
static const uint8_t zigzag[64 + 16] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33,
    40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36,
    29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// What an MCU of ten blocks can take at most, 31 bits a coefficient: so much is
// readable behind the data, and each MCU looks once whether it went too far.
enum { SLACK = 10 * 64 * 4 + 16 };

// extend is T.81 F.2.2.1: n extra bits as a signed value.
static inline int extend(uint32_t v, int n) {
  return n == 0 ? 0 : (int)v - (int)((((v >> (n - 1)) & 1) ^ 1) * ((1u << n) - 1));
}

static inline huff_entry pack(int value, int skip, int len) {
  return (uint32_t)value << 16 | skip << 8 | len;
}
static inline int value_of(huff_entry e) { return (int32_t)e >> 16; }
static inline int skip_of(huff_entry e) { return e >> 8 & 0xFF; }

// entry_of is what an index begins with when that is the symbol's code of len
// bits.
static huff_entry entry_of(int symbol, int len, uint32_t index, int dc) {
  int size = symbol & 15, run = dc ? 0 : symbol >> 4;
  if (size == 0) // EOB; ZRL is a run of 15 and a zero
    return pack(0, !dc && run < 15 ? 64 : run + 1, len);
  int left = ENTROPY_BITS - len - size;
  if (left < 0) return pack(size, run + 1, len | ENTROPY_MISSING);
  return pack(extend((index >> left) & ((1u << size) - 1), size), run + 1, len + size);
}

// whole says that an entry has its value, and that in so many bits.
static int whole(huff_entry e, int bits) {
  int len = e & 0xFF;
  return len > 0 && len <= bits; // ENTROPY_MISSING is more than any
}

// make_walk joins two symbols where both lie within the bits looked at.
static void make_walk(huff_table *t) {
  for (uint32_t i = 0; i < 1 << ENTROPY_BITS; i++) {
    huff_entry a = t->fast[i];
    t->walk[i] = 0;
    if (!whole(a, ENTROPY_BITS)) continue;
    int len = a & 0xFF, skip = skip_of(a);
    huff_entry b = t->fast[(i << len) & ((1 << ENTROPY_BITS) - 1)];
    if (skip < 64 && whole(b, ENTROPY_BITS - len)) {
      len += b & 0xFF;
      skip += skip_of(b);
    }
    t->walk[i] = skip << 8 | len;
  }
}

// make fills in a table. libjpeg has checked that it is one: its codes fit, and
// DC symbols are below 16 (jpeg_make_d_derived_tbl).
static void make(huff_table *t, const JHUFF_TBL *from, int dc) {
  memcpy(t->bits, from->bits, sizeof t->bits);
  memcpy(t->values, from->huffval, sizeof t->values);
  memset(t->fast, 0, sizeof t->fast);
  uint32_t code = 0;
  int k = 0;
  for (int len = 1; len <= 16; len++, code <<= 1) {
    t->offset[len] = k - (int32_t)code;
    for (int i = 0; i < t->bits[len]; i++, k++, code++) {
      if (len > ENTROPY_BITS) continue;
      uint32_t at = code << (ENTROPY_BITS - len), n = 1u << (ENTROPY_BITS - len);
      for (uint32_t j = 0; j < n; j++)
        t->fast[at + j] = entry_of(t->values[k], len, at + j, dc);
    }
    t->limit[len] = code << (16 - len);
  }
  t->limit[17] = UINT32_MAX;
  if (!dc) make_walk(t);
  t->made = 1 + dc;
}

// Tiles of a slide share their tables; a thread keeps those that it used last.
// A scan uses at most 8 at once.
enum { KEPT = 12 };
static __thread huff_table kept[KEPT];
static __thread unsigned long uses;

static huff_table *table(const JHUFF_TBL *from, int dc) {
  huff_table *oldest = &kept[0];
  for (int i = 0; i < KEPT; i++) {
    huff_table *t = &kept[i];
    if (t->made == 1 + dc && memcmp(t->bits, from->bits, sizeof t->bits) == 0 &&
        memcmp(t->values, from->huffval, sizeof t->values) == 0) {
      t->used = ++uses;
      return t;
    }
    if (t->used < oldest->used) oldest = t;
  }
  make(oldest, from, dc);
  oldest->used = ++uses;
  return oldest;
}

// unstuff copies the scan's bytes up to the next marker without the zeros behind
// 0xFF (T.81 B.1.1.5), and leaves the source at the marker.
static void unstuff(j_decompress_ptr d, mt_entropy *s) {
  const JOCTET *p = d->src->next_input_byte, *end = p + d->src->bytes_in_buffer;
  uint8_t *to = d->mem->alloc_large((j_common_ptr)d, JPOOL_IMAGE, (end - p) + SLACK);
  s->begin = s->next = to;
  while (p < end) {
    const JOCTET *ff = memchr(p, 0xFF, end - p);
    size_t n = (ff ? ff : end) - p;
    memcpy(to, p, n);
    to += n;
    p += n;
    if (!ff) break;
    const JOCTET *code = ff + 1; // after fill bytes
    while (code < end && *code == 0xFF) code++;
    if (code >= end || *code != 0) break; // a marker, or the data's end
    if (code > ff + 1) { // fill bytes and no marker (T.81 B.1.1.2): broken
      s->failed = 1;
      WARNMS(d, JWRN_HUFF_BAD_CODE);
      break;
    }
    *to++ = 0xFF;
    p = code + 1;
  }
  s->end = to;
  memset(to, 0, SLACK);
  d->src->next_input_byte = p;
  d->src->bytes_in_buffer = end - p;
}

// scaled is the size of a component's blocks after the inverse DCT.
static int scaled(const jpeg_component_info *c) {
#if JPEG_LIB_VERSION >= 70
  return c->DCT_h_scaled_size;
#else
  return c->DCT_scaled_size;
#endif
}

int mt_entropy_begin(j_decompress_ptr d, mt_entropy *s) {
  if (d->arith_code || d->progressive_mode || d->restart_interval != 0 ||
      d->unread_marker != 0 || jpeg_has_multiple_scans(d) ||
      d->comps_in_scan != d->num_components || d->Ss != 0 || d->Se != 63 ||
      d->Ah != 0 || d->Al != 0 || d->blocks_in_MCU > 10)
    return 0;
  memset(s, 0, sizeof *s);
  for (int i = 0; i < d->comps_in_scan; i++) {
    const jpeg_component_info *c = d->cur_comp_info[i];
    s->dc_table[i] = table(d->dc_huff_tbl_ptrs[c->dc_tbl_no], 1);
    s->ac_table[i] = table(d->ac_huff_tbl_ptrs[c->ac_tbl_no], 0);
    s->ac_wanted[i] = scaled(c) > 1;
  }
  s->last = d->MCUs_per_row - 1;
  unstuff(d, s); // last: it may fail
  return 1;
}

void mt_entropy_columns(j_decompress_ptr d, mt_entropy *s, int x, int w) {
  int mcu = d->comps_in_scan == 1 ? DCTSIZE : DCTSIZE * d->max_h_samp_factor;
  s->first = x / mcu;
  s->last = (x + w - 1) / mcu;
}

// refill leaves at least 56 bits. Behind the end it finds zeros.
static inline void refill(uint64_t *bits, int *count, const uint8_t **next) {
  uint64_t w;
  memcpy(&w, *next, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  w = __builtin_bswap64(w);
#endif
  *bits |= w >> *count;
  *next += (63 - *count) >> 3;
  *count |= 56;
}

// longer finds a code of more than ENTROPY_BITS bits. It returns its symbol, -1
// when there is none.
static int longer(const huff_table *t, uint64_t bits, int *len) {
  uint32_t top = bits >> 48;
  int l = ENTROPY_BITS + 1;
  while (top >= t->limit[l]) l++;
  if (l > 16) return -1;
  *len = l;
  return t->values[((top >> (16 - l)) + t->offset[l]) & 0xFF];
}

// TAKE decodes a symbol with its extra bits: together they are at most 31.
#define TAKE(table, is_dc, e)                                                  \
  do {                                                                         \
    if (count < 32) refill(&bits, &count, &next);                              \
    e = (table)->fast[bits >> (64 - ENTROPY_BITS)];                            \
    int len = e & 0x7F;                                                        \
    if (__builtin_expect((e & ENTROPY_MISSING) != 0 || len == 0, 0)) {         \
      if (len == 0) {                                                          \
        int symbol = longer(table, bits, &len);                                \
        if (symbol < 0) goto bad;                                              \
        e = entry_of(symbol, ENTROPY_BITS, 0, is_dc);                          \
      }                                                                        \
      bits <<= len;                                                            \
      count -= len;                                                            \
      len = e & ENTROPY_MISSING ? value_of(e) : 0;                             \
      e = pack(len ? extend(bits >> 32 >> (32 - len), len) : 0, skip_of(e), 0); \
    }                                                                          \
    bits <<= len;                                                              \
    count -= len;                                                              \
  } while (0)

boolean mt_entropy_mcu(j_decompress_ptr d, mt_entropy *s, JBLOCKROW *blocks) {
  JDIMENSION at = s->mcu++;
  if (s->mcu == d->MCUs_per_row) s->mcu = 0;
  if (s->failed) return TRUE;
  uint64_t bits = s->bits;
  int count = s->count;
  const uint8_t *next = s->next;
  int wanted = blocks != NULL && at >= s->first && at <= s->last;
  for (int b = 0; b < d->blocks_in_MCU; b++) {
    int ci = d->MCU_membership[b];
    const huff_table *ac = s->ac_table[ci];
    huff_entry e;
    TAKE(s->dc_table[ci], 1, e);
    int dc = s->dc[ci];
    if (__builtin_add_overflow(dc, value_of(e), &dc)) goto bad;
    s->dc[ci] = dc;
    if (wanted) blocks[b][0][0] = (JCOEF)dc;
    if (wanted && s->ac_wanted[ci]) {
      JCOEF *block = blocks[b][0];
      for (int k = 1; k < 64;) {
        TAKE(ac, 0, e);
        int skip = skip_of(e);
        if (skip == 64) break;
        block[zigzag[k + skip - 1]] = value_of(e);
        k += skip;
      }
    } else {
      for (int k = 1; k < 64;) {
        if (count < 32) refill(&bits, &count, &next);
        // One symbol goes 16 at most: below 48 the second is of this block too.
        uint16_t two = k < 48 ? ac->walk[bits >> (64 - ENTROPY_BITS)] : 0;
        if (two != 0) {
          bits <<= two & 0xFF;
          count -= two & 0xFF;
          k += two >> 8;
          continue;
        }
        TAKE(ac, 0, e);
        k += skip_of(e);
      }
    }
  }
  s->bits = bits;
  s->count = count;
  s->next = next;
  if (next > s->end && (next - s->end) * 8 > count) {
    s->failed = 1;
    WARNMS(d, JWRN_HIT_MARKER);
  }
  return TRUE;
bad:
  s->failed = 1;
  WARNMS(d, JWRN_HUFF_BAD_CODE);
  return TRUE;
}

// libjpeg's own decoder reads a few bytes ahead and forgets them at a scan's end.
enum { READ_AHEAD = 8 };

void mt_entropy_end(j_decompress_ptr d, mt_entropy *s) {
  if (!s->failed && s->next - s->count / 8 + READ_AHEAD < s->end)
    WARNMS2(d, JWRN_EXTRANEOUS_DATA, (int)(s->end - s->next), JPEG_EOI);
}
