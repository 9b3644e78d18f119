/* Products by the tiles of AMX. A tile is up to 16 rows of 64 bytes: rows of x, words of a weight (of 16 columns, in
 * each the elements of four or two rows of k), or sums. A thread sets the shapes of its tiles before a product, and
 * gives the tiles up after it, so that the operating system need not save them. The process must have asked the
 * operating system for them (base/amx.h).
 *
 * Other arithmetic slows down beside tiles: while they work, products of vectors of 512 bits run on one port instead of
 * two. Measured on Sapphire Rapids, a product of a tile and the store of a tile take 16 cycles each and do not overlap,
 * and a load of 16 rows takes 8. */
#pragma once

#include "backend/cpu/kernels/vector.h"

enum { AMX_ROWS = 16, AMX_ROW_BYTES = 64, AMX_WORDS = 16 };

/* The operand of LDTILECFG: bytes of a row, and rows, of each tile. */
typedef struct {
  uint8_t palette, start, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} amx_shapes;

#if defined(__AMX_TILE__)
#include <immintrin.h>

INLINE void amx_begin(const amx_shapes *shapes) {
  _tile_loadconfig(shapes);
}
INLINE void amx_end(void) {
  _tile_release();
}
/* Numbers of tiles are part of an instruction, so they must be literals. */
#define AMX_ZERO(tile) _tile_zero(tile)
#define AMX_LOAD(tile, from, stride) _tile_loadd(tile, from, stride)
#define AMX_STORE(tile, to, stride) _tile_stored(tile, to, stride)
/* sums + rows . words: signed bytes; signed bytes by unsigned ones; bf16 (see ADR 38 for its rounding). */
#define AMX_SIGNED(sums, rows, words) _tile_dpbssd(sums, rows, words)
#define AMX_UNSIGNED(sums, rows, words) _tile_dpbsud(sums, rows, words)
#define AMX_BF16(sums, rows, words) _tile_dpbf16ps(sums, rows, words)
#else
/* Never called: the instructions are those of some x86-64. */
INLINE void amx_begin(const amx_shapes *shapes) {
  (void)shapes;
}
INLINE void amx_end(void) {
}
#define AMX_ZERO(tile) ((void)(tile))
#define AMX_LOAD(tile, from, stride) ((void)(tile), (void)(from), (void)(stride))
#define AMX_STORE(tile, to, stride) ((void)(tile), (void)(to), (void)(stride))
#define AMX_SIGNED(sums, rows, words) ((void)(sums), (void)(rows), (void)(words))
#define AMX_UNSIGNED(sums, rows, words) ((void)(sums), (void)(rows), (void)(words))
#define AMX_BF16(sums, rows, words) ((void)(sums), (void)(rows), (void)(words))
#endif
