// The message that a lane executes: this header, then its arrays, each beginning
// at the next multiple of 16 bytes, in the order of the counts. The Go side
// writes the same layout (package wire), and a test holds the two together.
//
// Places are offsets: into the arena (device memory) or into the shared ring
// (host memory that the server and the worker both map). An offset of the arena
// plus its length is checked against the arena before anything is run.
#ifndef MICROTOME_GPU_MESSAGE_H
#define MICROTOME_GPU_MESSAGE_H

#include <stdint.h>

enum { MT_MESSAGE_VERSION = 1, MT_STAGES = 6 };

// What became of a tile.
enum { MT_TILE_DONE = 0, MT_TILE_NOT_DECODED = 1 };

// Sampling of a stream, as the engine numbers it.
enum { MT_CSS_444 = 0, MT_CSS_422 = 1, MT_CSS_420 = 2, MT_CSS_440 = 3, MT_CSS_GRAY = 4, MT_CSS_COUNT = 5 };

// What the components of a stream become.
enum { MT_COLOR_COPY = 0, MT_COLOR_YCC = 1, MT_COLOR_INVERT = 2 };

// mt_tile: decode a canonical stream into an arena slot, packed rows.
typedef struct {
  uint64_t src;      // ring
  uint64_t dst;      // arena
  uint32_t src_len;
  uint16_t w, h;     // of the stream
  uint8_t css;       // MT_CSS_*
  uint8_t color;     // MT_COLOR_*
  uint8_t channels;  // to be written: 1 or 3
  uint8_t pad;
  int32_t status;    // answer: MT_TILE_*
} mt_tile;

// mt_upload: copy host bytes into the arena, or, with no source, fill.
typedef struct {
  uint64_t src;      // ring; UINT64_MAX: fill with the byte value
  uint64_t dst;      // arena
  uint64_t bytes;
  uint64_t value;
} mt_upload;

// Layouts and sample types of what is made.
enum { MT_NHWC = 0, MT_NCHW = 1 };

// mt_out: one picture being made. Samples are looked up in a table of 256
// values a channel when lut is not 0xFFFFFFFF (an index into the words), else
// written as they are.
typedef struct {
  uint64_t dst;      // arena
  uint32_t w, h;
  uint8_t channels;  // 1 or 3
  uint8_t layout;    // MT_NHWC, MT_NCHW
  uint8_t bytes;     // of a sample: 1, 2, 4
  uint8_t fill;      // 1: paint all of it in rgb first
  uint8_t rgb[4];
  uint32_t lut;      // words
  uint32_t pad;
} mt_out;

// mt_piece: a rectangle of a decoded tile that goes onto an out.
typedef struct {
  uint64_t src;      // arena: the tile's first sample
  uint32_t pitch;    // bytes a row
  uint32_t out;      // index
  uint16_t channels; // of the tile
  uint16_t w, h;
  uint16_t sx, sy;   // in the tile
  uint16_t pad;
  uint32_t dx, dy;   // on the out
} mt_piece;

// mt_scale: the integer area filter over an out that holds the source (interleaved
// 8-bit), into another out. Taps are 3 words each: first source pixel, how many
// weights, and where they begin among the words.
typedef struct {
  uint32_t from, to;     // outs
  uint32_t across, down; // words: a tap for each column and row of "to"
  uint64_t line;         // arena: scratch of from.h * to.w * channels 16-bit values
  uint64_t pad;
} mt_scale;

typedef struct {
  uint32_t version;
  uint32_t tiles, uploads, outs, pieces, scales, words;
  uint32_t flags;
  uint64_t copy_src;   // arena: what goes back to the host
  uint64_t copy_dst;   // ring
  uint64_t copy_bytes; // 0: nothing
  int32_t status;      // answer: MT_GPU_*
  int32_t vendor_code; // answer: what the vendor's library said
  uint32_t vendor_calls; // answer: decoder calls made
  uint32_t pad;
  uint64_t nanos[MT_STAGES]; // answer: host time of each stage
  char error[64];      // answer
} mt_message;

#endif
