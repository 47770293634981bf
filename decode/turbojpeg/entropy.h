// A Huffman decoder for baseline scans that libjpeg-turbo calls in place of its
// own, which takes half of the time of a tile. It finds a short code and its
// extra bits in one look-up, and only walks over blocks that nobody wants.
#ifndef MICROTOME_ENTROPY_H
#define MICROTOME_ENTROPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

// huff_entry is what the next ENTROPY_BITS bits begin with:
//   bits 16 to 31: the coefficient; when bits are missing, how many
//   bits 8 to 15:  how far to go in the block: run + 1; 64: it ends
//   bits 0 to 7:   how many bits to leave behind, and ENTROPY_MISSING when the
//                  extra bits don't fit; 0: a longer code
typedef uint32_t huff_entry;

enum { ENTROPY_BITS = 10, ENTROPY_MISSING = 0x80 };

// huff_table is a DC or AC table ready for use, with what it was made of.
typedef struct {
  UINT8 bits[17], values[256];
  int made;           // 0, 1 as an AC table, 2 as a DC table
  unsigned long used; // when it was used last
  huff_entry fast[1 << ENTROPY_BITS];
  // To walk over a block, how many bits one symbol or two take (8 bits), and
  // how far they go in it (above); 0: see fast. Of an AC table.
  uint16_t walk[1 << ENTROPY_BITS];
  // Codes of l bits are below limit[l], left-aligned to 16; the one that is c
  // has the value at index c + offset[l] of values.
  uint32_t limit[18];
  int32_t offset[17];
} huff_table;

// mt_entropy is the state of a scan. It must outlive the decompressor's reads.
typedef struct {
  const uint8_t *next;    // in the scan's bytes without stuffing
  const uint8_t *begin, *end;
  uint64_t bits;          // left-aligned
  int count;              // of valid bits
  int failed;
  JDIMENSION mcu;         // column of the next one
  JDIMENSION first, last; // columns wanted
  int dc[MAX_COMPS_IN_SCAN];
  int ac_wanted[MAX_COMPS_IN_SCAN]; // 0 at an eighth of the size
  huff_table *dc_table[MAX_COMPS_IN_SCAN], *ac_table[MAX_COMPS_IN_SCAN];
} mt_entropy;

// mt_entropy_begin prepares the scan that jpeg_start_decompress has read the
// header of. It returns 0 when that is none for this decoder: libjpeg-turbo's
// own does it then.
int mt_entropy_begin(j_decompress_ptr d, mt_entropy *s);

// mt_entropy_columns limits what is decoded to the pixel columns [x, x + w).
void mt_entropy_columns(j_decompress_ptr d, mt_entropy *s, int x, int w);

// mt_entropy_mcu is libjpeg's decode_mcu. blocks is NULL for an MCU to be
// skipped.
boolean mt_entropy_mcu(j_decompress_ptr d, mt_entropy *s, JBLOCKROW *blocks);

// mt_entropy_end puts the source behind the scan, when all of it was decoded.
void mt_entropy_end(j_decompress_ptr d, mt_entropy *s);

#endif
