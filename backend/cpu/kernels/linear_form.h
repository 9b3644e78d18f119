/* What the products with f32 and with integer activations share: the call, the end of a row, the division of work. */
#pragma once

#include "backend/cpu/kernels/math/vector_math.h"
#include "backend/cpu/kernels/pieces.h"

enum { GEMV_ROWS = 4, PREFETCH_BYTES = 2048 };

typedef lpk_linear_form form;

/* The arguments of a call. Its form is an argument of each function instead of a member: a constant argument lets LLVM
 * drop the branches of other forms while it inlines, but what is stored in a structure it follows only later. */
typedef struct {
  float *y;
  const float *x;
  const void *w;
  const float *bias, *residual;
  const int32_t *rows; /* the row of y for each row of x; NULL: the same */
  int64_t m, ldx, ldy;
} linear;

/* Writes columns col .. col + 16 of a row: value of panel column `at`, for a gated product of `at` (gate) and at +
 * 32. */
INLINE void finish16(const linear *l, const form *f, int64_t row, int64_t col, int64_t at, v16 value, v16 up) {
  if (l->bias) value += load16(l->bias + at);
  value = activate(value, f->act);
  if (f->gated) value *= l->bias ? up + load16(l->bias + at + LPK_PANEL) : up;
  float *y = l->y + (l->rows ? l->rows[row] : row) * l->ldy + col;
  const float *residual = l->residual ? l->residual + row * l->ldy + col : 0;
  if (f->n % LPK_PANEL == 0 || col + LANES <= f->n) {
    store16(y, residual ? value + load16(residual) : value);
  } else if (f->n % LANES && col < f->n) {
    int64_t part = f->n % LANES;
    store_part(y, residual ? value + load_part(residual, part) : value, part);
  }
}

/* Rows of the result from `row` on (at most LPK_MC, from a tile's start), and a panel of it. */
typedef struct {
  int64_t row, rows, panel;
} result_block;

/* Writes rows first .. first + rows of a block. part[2][LPK_MC][LPK_PANEL] holds their sums, which `unit` scales: first
 * the gate's, then those of up. A GEMM calls it for each tile, so that the writes overlap with the next tile's
 * products. */
INLINE void finish_rows(const linear *l, const form *f, const float *part, float unit, const result_block *b,
                        int64_t first, int64_t rows) {
  int64_t panels = f->gated ? 2 : 1, col = b->panel * LPK_PANEL;
  for (int64_t r = first; r < min64(first + rows, b->rows); r++)
    UNROLL for (int h = 0; h < 2; h++) {
      const float *sum = part + r * LPK_PANEL + h * LANES;
      finish16(l, f, b->row + r, col + h * LANES, panels * col + h * LANES, load16(sum) * unit,
               f->gated ? load16(sum + LPK_MC * LPK_PANEL) * unit : splat(0));
    }
}

/* A thread's share of a GEMM: rows row .. end, and weight panels first .. last. A piece is a panel and a block of at
 * most LPK_MC rows; `count` of them, block by block. */
typedef struct {
  int64_t row, end, first, last, count;
} gemm_share;

/* Returns the number of threads along n out of `threads`; the rest divide m. It is the division with the least work for
 * the busiest thread. */
INLINE int64_t split_columns(int64_t panels, int64_t tiles, int64_t threads) {
  int64_t best = threads, least = INT64_MAX;
  for (int64_t tn = threads; tn >= 1; tn--) {
    int64_t tm = threads / tn, work = ((panels + tn - 1) / tn) * ((tiles + tm - 1) / tm);
    if (work < least) {
      least = work;
      best = tn;
    }
  }
  return best;
}

/* The share of `thread`; rows are divided in tiles of `height`. */
INLINE gemm_share share_gemm(int64_t m, int64_t height, int64_t panels, int64_t thread, int64_t threads) {
  int64_t tiles = (m + height - 1) / height;
  int64_t tn = split_columns(panels, tiles, threads), tm = threads / tn, column = thread % tn, band = thread / tn;
  gemm_share s = {0, 0, share(panels, column, tn), share(panels, column + 1, tn), 0};
  if (band >= tm) return s;
  s.row = share(tiles, band, tm) * height;
  s.end = min64(m, share(tiles, band + 1, tm) * height);
  s.count = (s.end - s.row + LPK_MC - 1) / LPK_MC * (s.last - s.first);
  return s;
}

INLINE result_block piece_at(const gemm_share *s, int64_t piece) {
  int64_t panels = s->last - s->first, row = s->row + piece / panels * LPK_MC;
  return (result_block){row, min64(LPK_MC, s->end - row), s->first + piece % panels};
}
