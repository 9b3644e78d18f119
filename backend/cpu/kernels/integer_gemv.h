/* Few rows of activations of 8 bits times panels of groups, and the parts that the product of many rows shares. */
#pragma once

#include "backend/cpu/kernels/unit.h"

INLINE v16i splat_word(int32_t x) {
  return (v16i)x;
}

/* What a sum of products begins with. Sums of 16 bits (DOT_SMALL) begin with zero. */
INLINE v16i first_sum(const form *f, int32_t start, int kind) {
  return splat_word(stores_zeros(&f->q) || kind == DOT_SMALL ? 0 : start);
}

/* The products of a block as floats, without the scales of weights and activations: the sum less the zero point
 * times the sum of the codes. `group`: of which columns 16 h .. are computed. */
INLINE v16 block_value(v16i sum, const form *f, const group_place *group, int h, int32_t start, int kind) {
  if (kind == DOT_SMALL && !stores_zeros(&f->q)) sum += splat_word(start);
  v16 value = __builtin_convertvector(sum, v16);
  if (f->q.zeros != LPK_ZEROS) return value;
  v16 zero = load_zero(&f->q, group, h) + splat((float)code_offset(kind, &f->q));
  return __builtin_elementwise_fma(-zero, splat((float)start), value);
}

/* sum + value * the scales of weights and of a row's block, by one rounding in the order of the blocks. */
INLINE v16 add_scaled(v16 sum, v16 value, v16 scale, float row_scale, const groups *q) {
  if (!has_binary_scale(q)) return __builtin_elementwise_fma(value * scale, splat(row_scale), sum);
  v16i larger = (v16i)value + (v16i)splat(row_scale);
  return __builtin_elementwise_fma((v16)larger, scale, sum);
}

/* The sum less a group's minima times the sum of a row's elements, which `start` is. */
INLINE v16 less_minima(v16 sum, const form *f, const group_place *group, int h, int32_t start) {
  if (f->q.zeros != LPK_MINIMA) return sum;
  return __builtin_elementwise_fma(-load_zero(&f->q, group, h), (v16)splat_word(start), sum);
}

/* What a sum of such products is multiplied by to give the result. */
INLINE float sum_unit(const groups *q) {
  return has_binary_scale(q) ? BINARY_UNIT : 1;
}

/* acc[rows][2] += the products of block `at` with `rows` rows. Sums of one row are taken in two chains, which hides
 * latency. */
INLINE void gemv_block(v16 *acc, const form *f, const block *b, const rounded_rows *x, int rows, int kind) {
  int per_word = word_steps(kind, &f->q), chains = rows == 1 ? 2 : 1;
  v16w high[2] = {load_high(b, f, 0), load_high(b, f, 1)};
  v16i dot[2 * GEMV_ROWS];
  UNROLL for (int j = 0; j < 2 * rows * chains; j++) dot[j] =
      j % chains ? splat_word(0) : first_sum(f, x->starts[j / (2 * chains)], kind);
  for (int64_t i = 0; i < b->count; i++) {
    const uint32_t *words = b->words + i * LPK_PANEL;
    const int32_t *codes = x->codes + i * per_word * rows;
    UNROLL for (int h = 0; h < 2; h++) {
      __builtin_prefetch((const char *)(words + h * LANES) + PREFETCH_BYTES);
      v16w word = load_word(words + h * LANES);
      UNROLL for (int s = 0; s < per_word; s++) UNROLL for (int r = 0; r < rows; r++) {
        v16i *to = &dot[(r * 2 + h) * chains + (per_word > 1 ? s % chains : 0)];
        *to = dot_add(*to, (v16i)step_codes(word, s, high[h], (int)i * per_word + s, kind, f->dot, &f->q),
                      splat_word(codes[s * rows + r]), kind, f->dot);
      }
    }
  }
  UNROLL for (int h = 0; h < 2; h++) {
    v16 scale = load_scale(&f->q, &b->group, h);
    UNROLL for (int r = 0; r < rows; r++) {
      int j = r * 2 + h;
      v16i all = dot_sum(dot[j * chains], kind);
      if (chains == 2) all += dot_sum(dot[j * 2 + 1], kind);
      v16 value = block_value(all, f, &b->group, h, x->starts[r], kind);
      acc[j] = less_minima(acc[j], f, &b->group, h, x->starts[r]);
      acc[j] = add_scaled(acc[j], value, scale, x->scales[r], &f->q);
    }
  }
}

/* acc[rows][2] = rows of x . a panel. */
INLINE void gemv_panel(v16 *acc, const linear *l, const form *f, const rounded_rows *x, int rows, int64_t panel,
                       int kind) {
  const char *at = (const char *)l->w + panel * panel_bytes(&f->q, f->k);
  UNROLL for (int j = 0; j < 2 * rows; j++) acc[j] = splat(0);
  for (int64_t i = 0; i < unit_count(f); i++) {
    rounded_rows here = rounded_unit(x, 0, rows, i, &f->q, f->k, kind);
    block b = find_block(at, f, i);
    if (i >= f->k / unit_rows(&f->q)) b.count = words_left(f, i);
    gemv_block(acc, f, &b, &here, rows, kind);
  }
}

/* Rows row .. row + rows of the result's panel j. */
INLINE void gemv_rows(const linear *l, const form *f, const rounded_rows *x, int rows, int64_t row, int64_t j,
                      int kind) {
  int panels = f->gated ? 2 : 1;
  v16 acc[2][2 * GEMV_ROWS];
  UNROLL for (int p = 0; p < panels; p++) gemv_panel(acc[p], l, f, x, rows, panels * j + p, kind);
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++)
      finish16(l, f, row + r, j * LPK_PANEL + h * LANES, panels * j * LPK_PANEL + h * LANES,
               acc[0][r * 2 + h] * sum_unit(&f->q), f->gated ? acc[1][r * 2 + h] * sum_unit(&f->q) : splat(0));
}

/* Rounds rows row .. row + rows; `scratch`: a pair's. */
INLINE rounded_rows round_few(const linear *l, const form *f, char *scratch, int64_t row, int rows, int kind) {
  const source_rows from = {l->x + row * l->ldx, l->ldx, rows, rows, f->k};
  rounded_rows x = rounded_at(scratch, rows, f->k, kind);
  round_tile(&x, &from, &f->q, kind);
  return x;
}

/* Each thread rounds all rows for itself, which takes less time than a barrier, and multiplies panels first .. last of
 * the result. Rows go in pairs, and all through a panel while the caches hold it. `scratch`: the thread's. */
INLINE void integer_few(const linear *l, const form *f, char *scratch, int64_t first, int64_t last) {
  int kind = dot_kind(f->dot, f->q.bits, f->q.zeros, 0);
  rounded_rows x[GEMV_ROWS / 2 + 1];
  int64_t pairs = l->m / 2, odd = l->m % 2;
  for (int64_t i = 0; i < pairs; i++)
    x[i] = round_few(l, f, scratch + i * LPK_INTEGER_PAIR_BYTES(f->k), 2 * i, 2, kind);
  if (odd) x[pairs] = round_few(l, f, scratch + pairs * LPK_INTEGER_PAIR_BYTES(f->k), 2 * pairs, 1, kind);
  for (int64_t panel = first; panel < last; panel++) {
    for (int64_t i = 0; i < pairs; i++)
      gemv_rows(l, f, &x[i], 2, 2 * i, panel, kind);
    if (odd) gemv_rows(l, f, &x[pairs], 1, 2 * pairs, panel, kind);
  }
}
