// A walk over a baseline scan that decodes no coefficient: what hardware would
// decode in silence is found before it is asked to.
#ifndef MICROTOME_GPU_WALK_H
#define MICROTOME_GPU_WALK_H

#include <stddef.h>
#include <stdint.h>

// What a walk finds. All but MT_WALK_GOOD are for the CPU to judge.
enum {
  MT_WALK_GOOD = 0,
  MT_WALK_CODE = 1,   // a code that no table has, or a run beyond its block
  MT_WALK_SHORT = 2,  // the data end early
  MT_WALK_LONG = 3,   // bytes are left over
  MT_WALK_MARKER = 4, // a marker that does not belong there
  MT_WALK_RANGE = 5,  // coefficients that no picture has
  MT_WALK_TABLE = 6,  // a Huffman table that is none
};

// mt_scan says where the parts of a stream begin in its data. A Huffman table is
// 16 counts and n values, a quantization table 64 values in zigzag order.
typedef struct {
  uint32_t scan, len;
  uint32_t components, mcus, restart;
  uint32_t blocks[3], dc_of[3], ac_of[3], quant[3];
  uint32_t dc[2], dc_n[2], ac[2], ac_n[2];
} mt_scan;

// mt_walk walks over the scan of a stream.
int mt_walk(const uint8_t *data, const mt_scan *s);

#endif
