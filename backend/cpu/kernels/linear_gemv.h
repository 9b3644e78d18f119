/* Few rows times packed panels: GEMV, which streams each panel once. */
#pragma once

#include "backend/cpu/kernels/amx_pairs.h"
#include "backend/cpu/kernels/groups.h"
#include "backend/cpu/kernels/linear_form.h"
#include "backend/cpu/kernels/pairs.h"

/* Number of panels that one row multiplies side by side, as registers allow: their sums are independent, which hides
 * the latency of FMA. Several rows have enough independent sums. */
INLINE int gemv_panels(int isa, int rows) {
  if (rows > 1) return 1;
  return isa == LPK_ISA_AVX512 ? 4 : 2;
}

/* acc[panels][rows][2] = x[rows] . panels from `panel` on. Along k each sum is taken in order, as in the GEMM. */
INLINE void gemv_floats(v16 *acc, const linear *l, const form *f, int rows, int panels, const float *restrict x,
                        int64_t panel) {
  int64_t size = f->k * LPK_PANEL, at = panel * size, bytes = LPK_PANEL * dtype_bytes(f->dtype);
  const char *ahead = (const char *)l->w + panel * f->k * bytes + PREFETCH_BYTES;
  for (int64_t i = 0; i < f->k; i++) {
    v16 xv[GEMV_ROWS];
    UNROLL for (int r = 0; r < rows; r++) xv[r] = splat(x[r * l->ldx + i]);
    UNROLL for (int p = 0; p < panels; p++) {
      UNROLL for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(ahead + (p * f->k + i) * bytes + b);
      UNROLL for (int h = 0; h < 2; h++) {
        v16 w = load_weight(l->w, at + p * size + i * LPK_PANEL + h * LANES, f->dtype);
        UNROLL for (int r = 0; r < rows; r++) acc[(p * rows + r) * 2 + h] += xv[r] * w;
      }
    }
  }
}

/* The products of a pair of rows of k. `x`: [rows][LANES] pairs, of which `i` is taken. */
INLINE void gemv_pair(v16 *acc, const char *const *w, const uint32_t *x, int64_t i, int rows, int panels, int two) {
  UNROLL for (int p = 0; p < panels; p++) {
    const char *row = w[p] + 2 * i * LPK_PANEL * 2;
    v16w pairs[2];
    UNROLL for (int b = 0; b < 2; b++) __builtin_prefetch(row + PREFETCH_BYTES + b * 64);
    join_rows(pairs, (const uint16_t *)row, two);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++) acc[(p * rows + r) * 2 + h] =
        add_pair(acc[(p * rows + r) * 2 + h], pairs[h], (v16w)x[r * LANES + i]);
  }
}

/* Does what gemv_floats does with products of bf16. */
INLINE void gemv_pairs(v16 *acc, const linear *l, const form *f, int rows, int panels, const float *x, int64_t panel) {
  enum { STEP = 2 * LANES };
  const char *w[4];
  UNROLL for (int p = 0; p < panels; p++) w[p] = (const char *)l->w + (panel + p) * f->k * LPK_PANEL * 2;
  uint32_t pairs[GEMV_ROWS * LANES];
  for (int64_t i = 0; i < f->k; i += STEP) {
    int64_t count = min64(STEP, f->k - i);
    UNROLL for (int r = 0; r < rows; r++) * (v16w_any *)(pairs + r * LANES) =
        i + STEP <= f->k ? round_pairs(load16(x + r * l->ldx + i), load16(x + r * l->ldx + i + LANES))
                         : round_some(x + r * l->ldx + i, count);
    for (int64_t j = 0; j < count / 2; j++)
      gemv_pair(acc, w, pairs, j, rows, panels, 1);
    if (count % 2) gemv_pair(acc, w, pairs, count / 2, rows, panels, 0);
    UNROLL for (int p = 0; p < panels; p++) w[p] += STEP * LPK_PANEL * 2;
  }
}

INLINE void gemv_code(v16 *part, const linear *l, const form *f, int rows, int panels, const float *x,
                      const char *const *codes, int64_t i) {
  UNROLL for (int p = 0; p < panels; p++) {
    __builtin_prefetch(codes[p] + i * LPK_PANEL * low_bits(&f->q) / 8 + PREFETCH_BYTES);
    UNROLL for (int h = 0; h < 2; h++) {
      v16 w = load_codes(&f->q, codes[p], i, h);
      UNROLL for (int r = 0; r < rows; r++) part[(p * rows + r) * 2 + h] += splat(x[r * l->ldx + i]) * w;
    }
  }
}

/* part[panels][rows][2] += x . codes of rows i .. len of a group. */
INLINE void gemv_codes(v16 *part, const linear *l, const form *f, int rows, int panels, const float *x,
                       const char *const *codes, int64_t i, int64_t len) {
  int64_t step = word_rows(low_bits(&f->q));
  for (; i + step <= len; i += step)
    UNROLL for (int64_t c = 0; c < step; c++) gemv_code(part, l, f, rows, panels, x, codes, i + c);
  for (; i < len; i++)
    gemv_code(part, l, f, rows, panels, x, codes, i);
}

/* Does the same for one row and codes of 4 bits, 16 rows of k at a time. Nibble r of a word stays in its place, where
 * it is worth 16^r, and x is divided by 16^r instead. Both are exact. This saves a shift for each nibble, and decoding
 * is bound by shifts. */
INLINE int64_t gemv_nibbles(v16 *part, int panels, const float *x, const char *const *codes, int64_t len) {
  static const v16 unit = {1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1,
                           1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1};
  int64_t i = 0;
  for (; i + 16 <= len; i += 16) {
    float scaled[16];
    store16(scaled, load16(x + i) * unit);
    UNROLL for (int w = 0; w < 2; w++) UNROLL for (int p = 0; p < panels; p++) UNROLL for (int h = 0; h < 2; h++) {
      const char *words = codes[p] + (i + 8 * w) * LPK_PANEL / 2 + h * 64;
      __builtin_prefetch(words + PREFETCH_BYTES);
      v16w word = *(const v16w_any *)words;
      UNROLL for (int r = 0; r < 8; r++) {
        v16w code = r < 7 ? word & (15u << (4 * r)) : word >> 28;
        part[2 * p + h] += splat(scaled[8 * w + r]) * __builtin_convertvector((v16i)code, v16);
      }
    }
  }
  return i;
}

INLINE void gemv_groups(v16 *acc, const linear *l, const form *f, int rows, int panels, const float *x, int64_t panel) {
  const char *codes[4];
  for (int64_t k0 = 0; k0 < f->k; k0 += f->q.group) {
    int64_t len = min64(f->q.group, f->k - k0), done = 0;
    v16 part[16];
    group_place at[4];
    UNROLL for (int j = 0; j < panels * rows * 2; j++) part[j] = splat(0);
    UNROLL for (int p = 0; p < panels; p++) {
      const char *whole = (const char *)l->w + (panel + p) * panel_bytes(&f->q, f->k);
      at[p] = find_group(&f->q, whole, k0 / f->q.group);
      codes[p] = at[p].head + head_bytes(&f->q);
    }
    if (rows == 1 && f->q.bits == 4) done = gemv_nibbles(part, panels, x + k0, codes, len);
    gemv_codes(part, l, f, rows, panels, x + k0, codes, done, len);
    UNROLL for (int r = 0; r < rows; r++) {
      float sum = has_zero(&f->q) ? sum_of(x + r * l->ldx + k0, len) : 0;
      UNROLL for (int p = 0; p < panels; p++) UNROLL for (int h = 0; h < 2; h++) {
        int j = (p * rows + r) * 2 + h;
        acc[j] = add_group(acc[j], part[j], load_zero(&f->q, &at[p], h), sum, load_scale(&f->q, &at[p], h), &f->q);
      }
    }
  }
}

/* Rows row .. row + rows of packed panels panel .. panel + panels; pairs of them when gated. */
INLINE void gemv(const linear *l, const form *f, int rows, int panels, int64_t row, int64_t panel) {
  v16 acc[16];
  const float *x = l->x + row * l->ldx;
  int side = gemv_panels(f->isa, rows) < panels ? gemv_panels(f->isa, rows) : panels;
  UNROLL for (int j = 0; j < panels * rows * 2; j++) acc[j] = splat(0);
  UNROLL for (int p = 0; p < panels; p += side) {
    if (f->pairs == LPK_PAIRS_DOT)
      gemv_pairs(acc + p * rows * 2, l, f, rows, side, x, panel + p);
    else if (f->q.bits)
      gemv_groups(acc + p * rows * 2, l, f, rows, side, x, panel + p);
    else
      gemv_floats(acc + p * rows * 2, l, f, rows, side, x, panel + p);
  }
  int step = f->gated ? 2 : 1;
  UNROLL for (int p = 0; p < panels; p += step) UNROLL for (int r = 0; r < rows; r++)
      UNROLL for (int h = 0; h < 2; h++) {
    int j = (p * rows + r) * 2 + h;
    finish16(l, f, row + r, (panel + p) / step * LPK_PANEL + h * LANES, (panel + p) * LPK_PANEL + h * LANES, acc[j],
             f->gated ? acc[j + rows * 2] : splat(0));
  }
}

/* Packed panels first .. last of some rows: as many side by side as possible, then fewer. */
INLINE void gemv_rows(const linear *l, const form *f, int rows, int64_t row, int64_t first, int64_t last) {
  int panels = gemv_panels(f->isa, rows), least = f->gated ? 2 : 1;
  if (panels < least) panels = least;
  int64_t at = first;
  for (; at + panels <= last; at += panels)
    gemv(l, f, rows, panels, row, at);
  if (panels == 4 && at + 2 <= last) {
    gemv(l, f, rows, 2, row, at);
    at += 2;
  }
  for (; least == 1 && at < last; at++)
    gemv(l, f, rows, 1, row, at);
}

/* Panels first .. last of the result. */
INLINE void linear_few(const linear *l, const form *f, int64_t first, int64_t last) {
  int64_t step = f->gated ? 2 : 1;
  if (HAS_AMX_PAIRS(f)) {
    amx_few(l, f, first, last);
    return;
  }
  first *= step;
  last *= step;
  if (f->isa == LPK_ISA_AVX512) {
    switch (l->m) {
    case 1:
      gemv_rows(l, f, 1, 0, first, last);
      break;
    case 2:
      gemv_rows(l, f, 2, 0, first, last);
      break;
    case 3:
      gemv_rows(l, f, 3, 0, first, last);
      break;
    case 4:
      gemv_rows(l, f, 4, 0, first, last);
      break;
    }
    return;
  }
  if (l->m == 1) {
    gemv_rows(l, f, 1, 0, first, last);
    return;
  }
  /* Pairs of rows, so that the panel comes from the cache for the second pair. */
  for (int64_t j = first; j < last; j += step) {
    for (int64_t row = 0; row + 2 <= l->m; row += 2)
      gemv_rows(l, f, 2, row, j, j + step);
    if (l->m % 2) gemv_rows(l, f, 1, l->m - 1, j, j + step);
  }
}
