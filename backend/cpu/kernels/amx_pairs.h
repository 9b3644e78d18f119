/* Products of bf16 by AMX: few rows, tiles of many rows, and the packing of rows. */
#pragma once

#include "backend/cpu/kernels/amx.h"
#include "backend/cpu/kernels/linear_form.h"
#include "backend/cpu/kernels/pairs.h"

/* An instruction takes 32 rows of k: it sums the products of the even ones in order by fused multiply-adds, those of
 * the odd ones likewise, adds the two sums, and adds the result to the sum of the tile. Numbers below 2^-126 are zeros
 * to it. No other instructions compute that as fast, so few rows are multiplied by tiles too. */
enum { STEP = 2 * AMX_WORDS, TILE_WORDS = AMX_ROWS * AMX_WORDS };

/* Whether the products are those of AMX. No function: branches on a member of the form itself are dropped when a kernel
 * is inlined, also where nothing is optimised, and other targets cannot compile code for tiles. */
#define HAS_AMX_PAIRS(f) ((f)->pairs == LPK_PAIRS_AMX)

INLINE int64_t step_count(int64_t k) {
  return (k + STEP - 1) / STEP;
}

/* Numbers of tiles: the sums of rows 0 .. 15 and 16 .. 31 by columns 0 .. 15 and 16 .. 31, the rows, the columns. */
#define SUMS_00 0
#define SUMS_01 1
#define SUMS_10 2
#define SUMS_11 3
#define ROWS_0 4
#define ROWS_1 5
#define WORDS_0 6
#define WORDS_1 7

static const amx_shapes many_shapes = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS}};
/* A gated product's sums of up are in the place of rows 16 .. 31. */
static const amx_shapes few_shapes = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 0, 64, 64},
    .rows = {GEMV_ROWS, GEMV_ROWS, GEMV_ROWS, GEMV_ROWS, GEMV_ROWS, 0, AMX_ROWS, AMX_ROWS}};

/* words[AMX_WORDS][LPK_PANEL]: the pairs of `count` rows of a panel, the others zeros. */
INLINE void join_step(uint32_t *words, const char *w, int64_t count) {
  UNROLL for (int64_t i = 0; i < AMX_WORDS; i++) {
    v16w pairs[2] = {(v16w)0u, (v16w)0u};
    const char *row = w + 2 * i * LPK_PANEL * 2;
    UNROLL for (int b = 0; b < 2; b++) __builtin_prefetch(row + 2 * PREFETCH_BYTES + b * 64);
    if (2 * i < count) join_rows(pairs, (const uint16_t *)row, 2 * i + 1 < count);
    UNROLL for (int h = 0; h < 2; h++) * (v16w_any *)(words + i * LPK_PANEL + h * LANES) = pairs[h];
  }
}

/* The pairs of step `step` of a row. */
INLINE v16w row_pairs(const float *x, int64_t step, int64_t k) {
  int64_t left = k - step * STEP;
  return left >= STEP ? round_pairs(load16(x + step * STEP), load16(x + step * STEP + LANES))
                      : round_some(x + step * STEP, left);
}

/* A panel of few rows, or two when gated. */
INLINE void few_panel(const linear *l, const form *f, int64_t panel) {
  _Alignas(64) uint32_t rows[2][GEMV_ROWS * AMX_WORDS], words[2][2][AMX_WORDS * LPK_PANEL];
  _Alignas(64) float sums[4][GEMV_ROWS * LANES];
  int panels = f->gated ? 2 : 1;
  memset(rows, 0, sizeof rows);
  AMX_ZERO(SUMS_00);
  AMX_ZERO(SUMS_01);
  if (f->gated) {
    AMX_ZERO(SUMS_10);
    AMX_ZERO(SUMS_11);
  }
  for (int64_t i = 0; i < step_count(f->k); i++) {
    for (int64_t r = 0; r < l->m; r++)
      *(v16w_any *)(rows[i & 1] + r * AMX_WORDS) = row_pairs(l->x + r * l->ldx, i, f->k);
    UNROLL for (int p = 0; p < panels; p++) {
      const char *w = (const char *)l->w + ((panel * panels + p) * f->k + i * STEP) * LPK_PANEL * 2;
      if (i < f->k / STEP)
        join_step(words[i & 1][p], w, STEP);
      else
        join_step(words[i & 1][p], w, f->k % STEP);
    }
    AMX_LOAD(ROWS_0, rows[i & 1], AMX_ROW_BYTES);
    AMX_LOAD(WORDS_0, words[i & 1][0], LPK_PANEL * 4);
    AMX_LOAD(WORDS_1, words[i & 1][0] + LANES, LPK_PANEL * 4);
    AMX_BF16(SUMS_00, ROWS_0, WORDS_0);
    AMX_BF16(SUMS_01, ROWS_0, WORDS_1);
    if (f->gated) {
      AMX_LOAD(WORDS_0, words[i & 1][1], LPK_PANEL * 4);
      AMX_LOAD(WORDS_1, words[i & 1][1] + LANES, LPK_PANEL * 4);
      AMX_BF16(SUMS_10, ROWS_0, WORDS_0);
      AMX_BF16(SUMS_11, ROWS_0, WORDS_1);
    }
  }
  AMX_STORE(SUMS_00, sums[0], AMX_ROW_BYTES);
  AMX_STORE(SUMS_01, sums[1], AMX_ROW_BYTES);
  if (f->gated) {
    AMX_STORE(SUMS_10, sums[2], AMX_ROW_BYTES);
    AMX_STORE(SUMS_11, sums[3], AMX_ROW_BYTES);
  }
  for (int64_t r = 0; r < l->m; r++)
    UNROLL for (int h = 0; h < 2; h++)
        finish16(l, f, r, panel * LPK_PANEL + h * LANES, panel * panels * LPK_PANEL + h * LANES,
                 load16(sums[h] + r * LANES), f->gated ? load16(sums[2 + h] + r * LANES) : splat(0));
}

INLINE void amx_few(const linear *l, const form *f, int64_t first, int64_t last) {
  amx_begin(&few_shapes);
  for (int64_t j = first; j < last; j++)
    few_panel(l, f, j);
  amx_end();
}

/* Memory that is read after a tile: each step prefetches `step` bytes, until `end`. */
typedef struct {
  const char *at, *end;
  int64_t step;
} prefetch;

INLINE void prefetch_step(prefetch *ahead) {
  const char *end = ahead->at + ahead->step < ahead->end ? ahead->at + ahead->step : ahead->end;
  for (; ahead->at < end; ahead->at += 64)
    __builtin_prefetch(ahead->at);
}

/* c[tiles * AMX_ROWS][LPK_PANEL] += `tiles` tiles of rows, one or two, . words[count][AMX_WORDS][LPK_PANEL]; `first`:
 * = instead of +=. */
INLINE void amx_tiles(float *c, int tiles, int first, const uint32_t *x, int64_t x_tile, const uint32_t *words,
                      int64_t count, prefetch *ahead) {
  float *low = c + AMX_ROWS * LPK_PANEL;
  if (first) {
    AMX_ZERO(SUMS_00);
    AMX_ZERO(SUMS_01);
    if (tiles == 2) AMX_ZERO(SUMS_10);
    if (tiles == 2) AMX_ZERO(SUMS_11);
  } else {
    AMX_LOAD(SUMS_00, c, LPK_PANEL * 4);
    AMX_LOAD(SUMS_01, c + LANES, LPK_PANEL * 4);
    if (tiles == 2) AMX_LOAD(SUMS_10, low, LPK_PANEL * 4);
    if (tiles == 2) AMX_LOAD(SUMS_11, low + LANES, LPK_PANEL * 4);
  }
  for (int64_t i = 0; i < count; i++, x += TILE_WORDS, words += AMX_WORDS * LPK_PANEL) {
    AMX_LOAD(ROWS_0, x, AMX_ROW_BYTES);
    AMX_LOAD(WORDS_0, words, LPK_PANEL * 4);
    AMX_BF16(SUMS_00, ROWS_0, WORDS_0);
    AMX_LOAD(WORDS_1, words + LANES, LPK_PANEL * 4);
    AMX_BF16(SUMS_01, ROWS_0, WORDS_1);
    if (tiles == 2) {
      AMX_LOAD(ROWS_1, x + x_tile, AMX_ROW_BYTES);
      AMX_BF16(SUMS_10, ROWS_1, WORDS_0);
      AMX_BF16(SUMS_11, ROWS_1, WORDS_1);
    }
    prefetch_step(ahead);
  }
  AMX_STORE(SUMS_00, c, LPK_PANEL * 4);
  AMX_STORE(SUMS_01, c + LANES, LPK_PANEL * 4);
  if (tiles == 2) AMX_STORE(SUMS_10, low, LPK_PANEL * 4);
  if (tiles == 2) AMX_STORE(SUMS_11, low + LANES, LPK_PANEL * 4);
}

/* Rows first .. last of tiles, in pairs; missing rows are zero. */
INLINE void pack_amx(uint32_t *to, const linear *l, const form *f, int64_t first, int64_t last) {
  int64_t steps = step_count(f->k);
  for (int64_t r = first; r < last; r++)
    for (int64_t i = 0; i < steps; i++) {
      uint32_t *row = to + (r / AMX_ROWS * steps + i) * TILE_WORDS + r % AMX_ROWS * AMX_WORDS;
      *(v16w_any *)row = r < l->m ? row_pairs(l->x + r * l->ldx, i, f->k) : (v16w)0u;
    }
}
