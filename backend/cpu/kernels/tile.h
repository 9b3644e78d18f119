/* The register tile that all matrix products share. */
#pragma once

#include "backend/cpu/kernels/vector.h"

enum { TILE_MAX = 12 * 2 };

/* Rows, and columns in vectors of 16, that fill the registers and leave room for operands. */
INLINE int tile_rows(int isa) {
  return isa == LPK_ISA_AVX512 ? 12 : 6;
}
/* Rows of a lower tile, for the last rows of a block. */
INLINE int low_tile_rows(int isa) {
  return isa == LPK_ISA_AVX512 ? 8 : 3;
}
INLINE int tile_cols(int isa) {
  return isa == LPK_ISA_AVX512 ? 2 : 1;
}

/* Operands of a tile: a[rows][k] and b[k][16 cols], and the memory that is read after it: each of the k steps
 * prefetches `step` bytes at `ahead` (a multiple of 64; 0: none). */
typedef struct {
  const float *a;
  int64_t a_row, a_col;
  const float *b;
  int64_t b_row, k;
  const char *ahead;
  int64_t step;
} tile_operands;

/* acc[rows][cols] += a . b. All sizes but k, and all strides, should be constants. */
INLINE void tile_multiply(v16 *acc, int rows, int cols, const tile_operands *t) {
  const float *restrict a = t->a, *restrict b = t->b;
  int64_t a_row = t->a_row, a_col = t->a_col, b_row = t->b_row;
  for (int64_t i = 0; i < t->k; i++) {
    UNROLL for (int64_t p = 0; p < t->step; p += 64) __builtin_prefetch(t->ahead + i * t->step + p);
    v16 bv[4];
    UNROLL for (int c = 0; c < cols; c++) bv[c] = load16(b + i * b_row + c * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      v16 av = splat(a[r * a_row + i * a_col]);
      UNROLL for (int c = 0; c < cols; c++) acc[r * cols + c] += av * bv[c];
    }
  }
}

/* c[rows][16 cols] = scale[row] * c + a . b; scale NULL: c = (first ? 0 : c) + a . b. */
INLINE void tile_update(float *c, int64_t c_row, const float *scale, int first, int rows, int cols,
                        const tile_operands *t) {
  v16 acc[TILE_MAX];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < cols; j++) {
    v16 old = first ? splat(0) : load16(c + r * c_row + j * LANES);
    acc[r * cols + j] = scale ? old * splat(scale[r]) : old;
  }
  tile_multiply(acc, rows, cols, t);
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < cols; j++)
      store16(c + r * c_row + j * LANES, acc[r * cols + j]);
}

/* Packs `rows` (at most `height`) rows of x, `k` long, as [k][height]; missing rows are zero. x_col: stride along k. */
INLINE void pack_tile(float *packed, int height, const float *x, int64_t x_row, int64_t x_col, int64_t rows,
                      int64_t k) {
  int64_t i = 0;
  for (; x_col == 1 && rows > 1 && i + LANES <= k; i += LANES) {
    v16 t[16];
    UNROLL for (int r = 0; r < 16; r++) t[r] = r < height && r < rows ? load16(x + r * x_row + i) : splat(0);
    transpose16(t);
    UNROLL for (int r = 0; r < 16; r++) store_part(packed + (i + r) * height, t[r], height);
  }
  for (; i < k; i++)
    for (int r = 0; r < height; r++)
      packed[i * height + r] = r < rows ? x[r * x_row + i * x_col] : 0;
}
