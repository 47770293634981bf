//go:build cgo

#include <stdlib.h>
#include <string.h>

#include "walk.h"

// A code of up to FAST bits is found in one look-up: its length, its run and the
// size of its extra bits.
enum { FAST = 10, PAIR = 11, KEPT = 8, MAX_BLOCK_BYTES = 64 * 4 + 16 };

typedef struct {
  uint8_t bits[16], values[256];
  uint32_t n;
  int dc, bad, made;
  unsigned long used;
  struct {
    uint8_t len, total, go, size; // go: how far in the block; 0: the block ends
  } fast[1 << FAST];
  // Of an AC table: one symbol or two that the next PAIR bits begin with. total and
  // go are theirs together, weight is the sum of 2^size of those that have a value.
  struct {
    uint8_t total, go, end, pad; // end: the last of them ends the block
    uint32_t weight;
  } pair[1 << PAIR];
  uint32_t limit[18]; // codes of l bits are below, left-aligned to 16
  int32_t offset[17];
} table;

static __thread table kept[KEPT];
static __thread unsigned long uses;
static __thread uint8_t *plain; // the scan without stuffing
static __thread size_t plain_cap;

static void enter(table *t, uint32_t at, uint32_t n, int len, uint8_t value) {
  for (uint32_t i = at; i < at + n; i++) {
    t->fast[i].len = len;
    t->fast[i].size = value & 15;
    t->fast[i].total = len + (value & 15);
    t->fast[i].go = t->dc ? 1 : value == 0 ? 0 : (value >> 4) + 1;
  }
}

// usable says that a symbol is one that baseline has: DC differences of at most
// 11 bits, AC values of 1 to 10 bits, EOB and ZRL (T.81 tables F.1 and F.2).
static int usable(uint8_t v, int dc) {
  if (dc) return v <= 11;
  return (v & 15) <= 10 && ((v & 15) != 0 || v == 0 || v == 0xF0);
}

static void make(table *t, const uint8_t *h, uint32_t n, int dc) {
  memset(t, 0, sizeof *t);
  memcpy(t->bits, h, 16);
  memcpy(t->values, h + 16, n);
  t->n = n;
  t->dc = dc;
  t->made = 1;
  uint32_t code = 0, k = 0;
  for (int len = 1; len <= 16; len++, code <<= 1) {
    t->offset[len] = (int32_t)k - (int32_t)code;
    for (int i = 0; i < t->bits[len - 1]; i++, k++, code++) {
      if (code >= 1u << len || k >= n || !usable(t->values[k], dc)) {
        t->bad = 1;
        return;
      }
      if (len <= FAST) enter(t, code << (FAST - len), 1u << (FAST - len), len, t->values[k]);
    }
    // A code of ones only is none (T.81 C.2).
    if (t->bits[len - 1] && code >= 1u << len) {
      t->bad = 1;
      return;
    }
    t->limit[len] = code << (16 - len);
  }
  t->limit[17] = UINT32_MAX;
}

// make_pairs joins symbols that lie within PAIR bits, the extra bits of the last
// perhaps beyond.
static void make_pairs(table *t) {
  for (uint32_t i = 0; i < 1 << PAIR; i++) {
    uint32_t a = i >> (PAIR - FAST);
    t->pair[i].total = t->fast[a].total;
    t->pair[i].go = t->fast[a].go;
    t->pair[i].end = t->fast[a].go == 0;
    t->pair[i].weight = t->fast[a].size ? 1u << t->fast[a].size : 0;
    int used = t->fast[a].total;
    if (used == 0 || t->fast[a].go == 0 || used >= PAIR) continue;
    uint32_t rest = i << used & ((1 << PAIR) - 1), b = rest >> (PAIR - FAST);
    if (t->fast[b].len == 0 || t->fast[b].len > PAIR - used) continue;
    t->pair[i].total += t->fast[b].total;
    t->pair[i].go += t->fast[b].go;
    t->pair[i].end = t->fast[b].go == 0;
    t->pair[i].weight += t->fast[b].size ? 1u << t->fast[b].size : 0;
  }
}

static table *find(const uint8_t *h, uint32_t n, int dc) {
  table *oldest = &kept[0];
  for (int i = 0; i < KEPT; i++) {
    table *t = &kept[i];
    if (t->made && t->dc == dc && t->n == n && memcmp(t->bits, h, 16) == 0 &&
        memcmp(t->values, h + 16, n) == 0) {
      t->used = ++uses;
      return t;
    }
    if (t->used < oldest->used) oldest = t;
  }
  make(oldest, h, n, dc);
  if (!dc && !oldest->bad) make_pairs(oldest);
  oldest->used = ++uses;
  return oldest;
}

typedef struct {
  uint64_t bits;
  int count;
  const uint8_t *next;
} reader;

static inline void refill(reader *r) {
  uint64_t w;
  memcpy(&w, r->next, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  w = __builtin_bswap64(w);
#endif
  r->bits |= w >> r->count;
  r->next += (63 - r->count) >> 3;
  r->count |= 56;
}

// longer finds a code of more than FAST bits: its value, -1 when there is none.
static int longer(const table *t, uint64_t bits, int *len) {
  uint32_t top = bits >> 48;
  int l = FAST + 1;
  while (top >= t->limit[l]) l++;
  if (l > 16) return -1;
  *len = l;
  return t->values[((top >> (16 - l)) + t->offset[l]) & 0xFF];
}

static inline int extend(uint32_t v, int n) {
  return n == 0 ? 0 : (int)v - (int)((((v >> (n - 1)) & 1) ^ 1) * ((1u << n) - 1));
}

// component is a component's tables, and what its blocks may come to.
typedef struct {
  const table *dc, *ac;
  uint32_t blocks, quant[64];
  uint32_t coarsest; // of quant, but the first
  uint32_t most;     // see bound
  int last;      // DC
} component;

// bound: a block of 8-bit samples has coefficients whose absolute values sum to
// at most 8 * 1024 (64 of them, of energy 1024^2), and quantizing adds half a step
// to each. Sizes are known to within a factor of 2.
static uint32_t bound(const uint32_t *quant) {
  uint32_t sum = 0;
  for (int k = 0; k < 64; k++) sum += quant[k];
  return 2 * (8 * 1024 + sum / 2) + quant[0];
}

// dc_of reads a block's DC difference; *sum begins with the coefficient.
static inline int dc_of(reader *r, component *c, uint32_t *sum) {
  if (r->count < 32) refill(r);
  uint32_t i = r->bits >> (64 - FAST);
  int len = c->dc->fast[i].len, size = c->dc->fast[i].size;
  if (len == 0) {
    int v = longer(c->dc, r->bits, &len);
    if (v < 0) return MT_WALK_CODE;
    size = v & 15;
  }
  r->bits <<= len;
  int diff = size ? extend(r->bits >> (64 - size), size) : 0;
  r->bits <<= size;
  r->count -= len + size;
  c->last += diff;
  uint32_t dc = (uint32_t)abs(c->last);
  if (dc > 2048) return MT_WALK_RANGE;
  *sum = dc * c->quant[0];
  return *sum > 1024 + c->quant[0] ? MT_WALK_RANGE : MT_WALK_GOOD;
}

// exactly walks over a block's AC coefficients, each with its own quantizer.
static int exactly(reader *r, const component *c, uint32_t sum) {
  const table *ac = c->ac;
  for (int k = 1; k < 64;) {
    if (r->count < 32) refill(r);
    uint32_t i = r->bits >> (64 - FAST);
    int total = ac->fast[i].total, go = ac->fast[i].go, size = ac->fast[i].size;
    if (total == 0) {
      int v = longer(ac, r->bits, &total);
      if (v < 0) return MT_WALK_CODE;
      size = v & 15;
      go = v == 0 ? 0 : (v >> 4) + 1;
      total += size;
    }
    r->bits <<= total;
    r->count -= total;
    if (go == 0) break;
    k += go;
    if (k > 64) return MT_WALK_CODE;
    if (size) sum += c->quant[k - 1] << size;
  }
  return sum > c->most ? MT_WALK_RANGE : MT_WALK_GOOD;
}

// block walks over a block, two symbols at a time where that goes: all quantizers
// are taken for the coarsest, and a block that seems too large then is walked over
// again.
static int block(reader *r, component *c) {
  uint32_t sum;
  int rc = dc_of(r, c, &sum);
  if (rc) return rc;
  reader at = *r;
  const table *ac = c->ac;
  uint32_t weight = 0;
  for (int k = 1; k < 64;) {
    if (r->count < 40) refill(r); // two symbols take 11 + 26 bits at most
    if (k < 48) { // one symbol goes 16 at most: the second is of this block too
      uint32_t i = r->bits >> (64 - PAIR);
      int total = ac->pair[i].total;
      if (__builtin_expect(total != 0, 1)) {
        r->bits <<= total;
        r->count -= total;
        weight += ac->pair[i].weight;
        k += ac->pair[i].go;
        if (k > 64) return MT_WALK_CODE;
        if (ac->pair[i].end) break;
        continue;
      }
    }
    uint32_t i = r->bits >> (64 - FAST);
    int total = ac->fast[i].total, go = ac->fast[i].go, size = ac->fast[i].size;
    if (total == 0) {
      int v = longer(ac, r->bits, &total);
      if (v < 0) return MT_WALK_CODE;
      size = v & 15;
      go = v == 0 ? 0 : (v >> 4) + 1;
      total += size;
    }
    r->bits <<= total;
    r->count -= total;
    if (go == 0) break;
    k += go;
    if (k > 64) return MT_WALK_CODE;
    if (size) weight += 1u << size;
  }
  if (sum + weight * c->coarsest <= c->most) return MT_WALK_GOOD;
  *r = at;
  return exactly(r, c, sum);
}

// unstuff copies the bytes up to the next marker, without the zeros behind 0xFF.
static const uint8_t *unstuff(const uint8_t *p, const uint8_t *end, uint8_t **to) {
  uint8_t *out = *to;
  while (p < end) {
    const uint8_t *ff = memchr(p, 0xFF, end - p);
    size_t n = (ff ? ff : end) - p;
    memcpy(out, p, n);
    out += n;
    p += n;
    if (!ff) break;
    if (ff + 1 >= end || ff[1] != 0) break;
    *out++ = 0xFF;
    p = ff + 2;
  }
  *to = out;
  return p;
}

// interval walks over the MCUs between two restarts.
static int interval(component *c, const mt_scan *s, uint32_t mcus, const uint8_t *data, const uint8_t *end) {
  reader r = {.next = data};
  for (uint32_t i = 0; i < s->components; i++) c[i].last = 0;
  for (uint32_t m = 0; m < mcus; m++) {
    for (uint32_t i = 0; i < s->components; i++)
      for (uint32_t b = 0; b < c[i].blocks; b++) {
        int rc = block(&r, &c[i]);
        if (rc) return rc;
        // Behind the data lie zeros: no block goes further than they do.
        if (r.next > end && (r.next - end) * 8 > r.count) return MT_WALK_SHORT;
      }
  }
  return end - r.next > 0 || r.count - (r.next - end) * 8 >= 8 ? MT_WALK_LONG : MT_WALK_GOOD;
}

int mt_walk(const uint8_t *data, const mt_scan *s) {
  component c[3];
  memset(c, 0, sizeof c);
  for (uint32_t i = 0; i < s->components; i++) {
    uint32_t dc = s->dc_of[i], ac = s->ac_of[i];
    c[i].dc = find(data + s->dc[dc], s->dc_n[dc], 1);
    c[i].ac = find(data + s->ac[ac], s->ac_n[ac], 0);
    if (c[i].dc->bad || c[i].ac->bad) return MT_WALK_TABLE;
    c[i].blocks = s->blocks[i];
    for (int k = 0; k < 64; k++) {
      c[i].quant[k] = data[s->quant[i] + k];
      if (k && c[i].quant[k] > c[i].coarsest) c[i].coarsest = c[i].quant[k];
    }
    c[i].most = bound(c[i].quant);
  }
  size_t need = s->len + MAX_BLOCK_BYTES;
  if (plain_cap < need) {
    free(plain);
    plain_cap = 0;
    if (!(plain = malloc(need * 2))) return MT_WALK_TABLE;
    plain_cap = need * 2;
  }
  const uint8_t *p = data + s->scan, *end = p + s->len;
  for (uint32_t done = 0, n = 0; done < s->mcus; n++) {
    uint32_t mcus = s->restart && s->restart < s->mcus - done ? s->restart : s->mcus - done;
    uint8_t *to = plain;
    p = unstuff(p, end, &to);
    memset(to, 0, MAX_BLOCK_BYTES);
    int rc = interval(c, s, mcus, plain, to);
    if (rc) return rc;
    done += mcus;
    if (done == s->mcus) break;
    if (end - p < 2 || p[1] != 0xD0 + (n & 7)) return MT_WALK_MARKER;
    p += 2;
  }
  return p == end ? MT_WALK_GOOD : MT_WALK_MARKER;
}
