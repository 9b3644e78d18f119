/* Matrix product with a packed weight: GEMV for a few rows, blocked GEMM for many. */
#include "backend/cpu/kernels/groups.h"
#include "backend/cpu/kernels/tile.h"
#include "backend/cpu/kernels/vector_math.h"

enum { GEMV_ROWS = 4, PREFETCH_BYTES = 2048 };

typedef struct {
  float *y;
  const float *x;
  const void *w;
  const float *bias, *residual;
  int64_t m, ldx, ldy, n, k;
  int dtype, act, gated, isa;
  groups q; /* bits 0: weights of `dtype` */
} linear;

/* Writes columns col .. col + 16 of a row: value of panel column `at`, for a gated product of `at` (gate) and at + 32. */
INLINE void finish16(const linear *l, int64_t row, int64_t col, int64_t at, v16 value, v16 up) {
  if (l->bias) value += load16(l->bias + at);
  value = activate(value, l->act);
  if (l->gated) value *= l->bias ? up + load16(l->bias + at + LPK_PANEL) : up;
  float *y = l->y + row * l->ldy + col;
  const float *residual = l->residual ? l->residual + row * l->ldy + col : 0;
  if (l->n % LPK_PANEL == 0 || col + LANES <= l->n) {
    store16(y, residual ? value + load16(residual) : value);
  } else if (l->n % LANES && col < l->n) {
    int64_t part = l->n % LANES;
    store_part(y, residual ? value + load_part(residual, part) : value, part);
  }
}

/* ---- GEMV ---- */

/* Independent sums along k, as many as registers allow: they hide the latency of FMA. */
INLINE int gemv_chains(int isa, int rows) {
  if (isa == LPK_ISA_AVX512) return rows <= 2 ? 4 : 2;
  return rows == 1 ? 2 : 1;
}

/* acc[rows][2] = x[row ..] . panel. */
INLINE void gemv_panel(v16 *acc, const linear *l, int rows, const float *restrict x, int64_t panel) {
  int chains = gemv_chains(l->isa, rows);
  v16 part[16];
  UNROLL for (int i = 0; i < chains * rows * 2; i++) part[i] = splat(0);
  int64_t at = panel * l->k * LPK_PANEL, bytes = LPK_PANEL * dtype_bytes(l->dtype), i = 0;
  const char *ahead = (const char *)l->w + panel * l->k * bytes + PREFETCH_BYTES;
  for (; i + chains <= l->k; i += chains) {
    UNROLL for (int64_t b = 0; b < chains * bytes; b += 64) __builtin_prefetch(ahead + i * bytes + b);
    UNROLL for (int c = 0; c < chains; c++) {
      v16 w0 = load_weight(l->w, at + (i + c) * LPK_PANEL, l->dtype);
      v16 w1 = load_weight(l->w, at + (i + c) * LPK_PANEL + LANES, l->dtype);
      UNROLL for (int r = 0; r < rows; r++) {
        v16 xv = splat(x[r * l->ldx + i + c]);
        part[(c * rows + r) * 2] += xv * w0;
        part[(c * rows + r) * 2 + 1] += xv * w1;
      }
    }
  }
  for (; i < l->k; i++)
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++) part[r * 2 + h] +=
        splat(x[r * l->ldx + i]) * load_weight(l->w, at + i * LPK_PANEL + h * LANES, l->dtype);
  UNROLL for (int j = 0; j < rows * 2; j++) {
    acc[j] = part[j];
    UNROLL for (int c = 1; c < chains; c++) acc[j] += part[c * rows * 2 + j];
  }
}

/* part[rows][2] += x . codes of `len` rows of a group, in chains that hide the latency of FMA. */
INLINE void gemv_codes(v16 *part, const linear *l, int rows, int chains, const float *x, const char *codes,
                       int64_t len) {
  int64_t words = word_rows(l->q.bits), step = words > chains ? words : chains, i = 0;
  for (; i + step <= len; i += step) {
    UNROLL for (int64_t b = 0; b < step * LPK_PANEL * l->q.bits / 8; b += 64)
        __builtin_prefetch(codes + i * LPK_PANEL * l->q.bits / 8 + PREFETCH_BYTES + b);
    UNROLL for (int64_t c = 0; c < step; c++) UNROLL for (int h = 0; h < 2; h++) {
      v16 w = load_codes(codes, i + c, h, l->q.bits);
      UNROLL for (int r = 0; r < rows; r++) part[((c % chains) * rows + r) * 2 + h] += splat(x[r * l->ldx + i + c]) * w;
    }
  }
  for (; i < len; i++)
    UNROLL for (int h = 0; h < 2; h++) {
      v16 w = load_codes(codes, i, h, l->q.bits);
      UNROLL for (int r = 0; r < rows; r++) part[r * 2 + h] += splat(x[r * l->ldx + i]) * w;
    }
}

/* acc[2] = x . codes of 4 bits. A sum for each nibble of a word: there a code is worth 16^nibble, which is taken out
 * exactly at the end. That saves a shift for each of them, which decoding is bound by. */
INLINE void gemv_nibbles(v16 *acc, const float *x, const char *codes, int64_t len) {
  v16 part[16];
  int64_t i = 0;
  UNROLL for (int j = 0; j < 16; j++) part[j] = splat(0);
  for (; i + 8 <= len; i += 8) {
    const char *words = codes + i * LPK_PANEL / 2;
    UNROLL for (int h = 0; h < 2; h++) {
      __builtin_prefetch(words + h * 64 + PREFETCH_BYTES);
      v16w word = *(const v16w_any *)(words + h * 64);
      UNROLL for (int r = 0; r < 7; r++) part[2 * r + h] +=
          splat(x[i + r]) * __builtin_convertvector((v16i)(word & (15u << (4 * r))), v16);
      part[14 + h] += splat(x[i + 7]) * __builtin_convertvector((v16i)(word >> 28), v16);
    }
  }
  UNROLL for (int h = 0; h < 2; h++) {
    v16 sum = part[14 + h];
    float unit = 1;
    UNROLL for (int r = 0; r < 7; r++, unit *= 0.0625f) sum += part[2 * r + h] * splat(unit);
    acc[h] = sum;
  }
  for (; i < len; i++)
    UNROLL for (int h = 0; h < 2; h++) acc[h] += splat(x[i]) * load_codes(codes, i, h, 4);
}

INLINE float sum_of(const float *x, int64_t count) {
  v16 sum = splat(0);
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    sum += load16(x + i);
  float rest = 0;
  for (; i < count; i++)
    rest += x[i];
  return sum_lanes(sum) + rest;
}

/* The same for weights in groups: sum (code - zero) x = sum code x - zero sum x, scaled once for each group. */
INLINE void gemv_groups(v16 *acc, const linear *l, int rows, const float *x, int64_t panel) {
  int nibbles = rows == 1 && l->q.bits == 4 && l->isa == LPK_ISA_AVX512; /* 16 sums: half of its registers */
  int chains = nibbles ? 1 : gemv_chains(l->isa, rows);
  const char *at = (const char *)l->w + panel * panel_bytes(&l->q, l->k);
  UNROLL for (int j = 0; j < rows * 2; j++) acc[j] = splat(0);
  for (int64_t k0 = 0; k0 < l->k; k0 += l->q.group, at += group_bytes(&l->q)) {
    int64_t len = min64(l->q.group, l->k - k0);
    v16 part[16];
    UNROLL for (int j = 0; j < chains * rows * 2; j++) part[j] = splat(0);
    if (nibbles)
      gemv_nibbles(part, x + k0, at + head_bytes(&l->q), len);
    else
      gemv_codes(part, l, rows, chains, x + k0, at + head_bytes(&l->q), len);
    UNROLL for (int r = 0; r < rows; r++) {
      float sum = has_zero(&l->q) ? sum_of(x + r * l->ldx + k0, len) : 0;
      UNROLL for (int h = 0; h < 2; h++) {
        v16 dot = part[r * 2 + h];
        UNROLL for (int c = 1; c < chains; c++) dot += part[(c * rows + r) * 2 + h];
        if (has_zero(&l->q)) dot -= load_zero(&l->q, at, h) * splat(sum);
        acc[r * 2 + h] += dot * load_weight(at, h * LANES, l->q.scale);
      }
    }
  }
}

INLINE void gemv_any(v16 *acc, const linear *l, int rows, const float *x, int64_t panel) {
  if (l->q.bits)
    gemv_groups(acc, l, rows, x, panel);
  else
    gemv_panel(acc, l, rows, x, panel);
}

INLINE void gemv(const linear *l, int rows, int64_t row, int64_t first, int64_t last) {
  for (int64_t j = first; j < last; j++) {
    v16 acc[2 * GEMV_ROWS], up[2 * GEMV_ROWS];
    int64_t panel = l->gated ? 2 * j : j;
    const float *x = l->x + row * l->ldx;
    gemv_any(acc, l, rows, x, panel);
    if (l->gated) gemv_any(up, l, rows, x, panel + 1);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++)
        finish16(l, row + r, j * LPK_PANEL + h * LANES, panel * LPK_PANEL + h * LANES, acc[2 * r + h],
                 l->gated ? up[2 * r + h] : splat(0));
  }
}

INLINE void linear_few(const linear *l, int64_t thread, int64_t threads) {
  int64_t panels = LPK_PANELS(l->n);
  int64_t first = share(panels, thread, threads), last = share(panels, thread + 1, threads);
  if (l->isa == LPK_ISA_AVX512) {
    switch (l->m) {
    case 1:
      gemv(l, 1, 0, first, last);
      break;
    case 2:
      gemv(l, 2, 0, first, last);
      break;
    case 3:
      gemv(l, 3, 0, first, last);
      break;
    case 4:
      gemv(l, 4, 0, first, last);
      break;
    }
    return;
  }
  for (int64_t j = first; j < last; j++) { /* pairs of rows: the panel comes from the cache the second time */
    for (int64_t row = 0; row + 2 <= l->m; row += 2)
      gemv(l, 2, row, j, j + 1);
    if (l->m % 2) gemv(l, 1, l->m - 1, j, j + 1);
  }
}

/* ---- GEMM ---- */

/* A thread's part of the scratch. */
typedef struct {
  float *b;    /* [LPK_KC][LPK_PANEL] widened weights */
  float *part; /* [2][LPK_MC][LPK_PANEL] sums of a panel, for a gated product of two */
} gemm_work;

/* part[rows][LPK_PANEL] = packed rows . panel, over k in blocks that keep the panel's slice in L1. Meanwhile the weights
 * that follow, f32 a little ahead, narrower ones (which are widened first) the whole next slice, come from memory. */
INLINE void gemm_panel(float *part, const linear *l, const float *packed, int64_t rows, int64_t panel, float *wide) {
  int height = tile_rows(l->isa), cols = tile_cols(l->isa);
  int64_t blocks = (l->k + LPK_KC - 1) / LPK_KC, kc = (l->k + blocks - 1) / blocks;
  int64_t step = LPK_PANEL * dtype_bytes(l->dtype);
  for (int64_t k0 = 0; k0 < l->k; k0 += kc) {
    int64_t len = min64(kc, l->k - k0), at = (panel * l->k + k0) * LPK_PANEL;
    tile_operands t = {0, 1, height, (const float *)l->w + at, LPK_PANEL, len, 0, l->q.bits ? 0 : step};
    t.ahead = (const char *)l->w + (panel * l->k + k0) * step + (l->dtype == LPK_F32 ? PREFETCH_BYTES : len * step);
    if (l->q.bits) {
      widen_groups(wide, &l->q, (const char *)l->w + panel * panel_bytes(&l->q, l->k), k0, len);
      t.b = wide;
    } else if (l->dtype != LPK_F32) {
      for (int64_t i = 0; i < len * LPK_PANEL; i += LANES)
        store16(wide + i, load_weight(l->w, at + i, l->dtype));
      t.b = wide;
    }
    for (int64_t r = 0; r < rows; r += height) {
      t.a = packed + r * l->k + k0 * height;
      for (int c = 0; c < LPK_PANEL; c += cols * LANES) {
        tile_operands half = t;
        half.b += c;
        float *to = part + r * LPK_PANEL + c;
        if (rows - r > height / 2)
          tile_update(to, LPK_PANEL, 0, k0 == 0, height, cols, &half);
        else
          tile_update(to, LPK_PANEL, 0, k0 == 0, height / 2, cols, &half);
      }
    }
  }
}

/* Rows row .. row + rows (at most LPK_MC, from a tile's start) of panels first .. last. */
INLINE void gemm_block(const linear *l, const float *packed, const gemm_work *work, int64_t row, int64_t rows,
                       int64_t first, int64_t last) {
  for (int64_t j = first; j < last; j++) {
    int64_t panels = l->gated ? 2 : 1;
    for (int64_t i = 0; i < panels; i++)
      gemm_panel(work->part + i * LPK_MC * LPK_PANEL, l, packed + row * l->k, rows, panels * j + i, work->b);
    for (int64_t r = 0; r < rows; r++)
      UNROLL for (int h = 0; h < 2; h++) {
        const float *sum = work->part + r * LPK_PANEL + h * LANES;
        finish16(l, row + r, j * LPK_PANEL + h * LANES, panels * j * LPK_PANEL + h * LANES, load16(sum),
                 l->gated ? load16(sum + LPK_MC * LPK_PANEL) : splat(0));
      }
  }
}

/* Threads along n out of `threads`, the rest along m: the division with the least work for the busiest thread. */
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

INLINE void linear_many(const linear *l, float *scratch, lp_barrier *barrier, int64_t thread, int64_t threads) {
  int height = tile_rows(l->isa);
  int64_t tiles = (l->m + height - 1) / height, panels = LPK_PANELS(l->n);
  int64_t thread_floats = LPK_LINEAR_THREAD_BYTES / 4;
  gemm_work work = {.b = scratch + thread * thread_floats};
  work.part = work.b + LPK_KC * LPK_PANEL;
  float *packed = scratch + threads * thread_floats;
  for (int64_t t = share(tiles, thread, threads); t < share(tiles, thread + 1, threads); t++)
    pack_tile(packed + t * height * l->k, height, l->x + t * height * l->ldx, l->ldx, 1,
              min64(height, l->m - t * height), l->k);
  lpk_barrier(barrier, threads);
  int64_t tn = split_columns(panels, tiles, threads), tm = threads / tn, column = thread % tn, band = thread / tn;
  if (band >= tm) return;
  int64_t end = min64(l->m, share(tiles, band + 1, tm) * height);
  for (int64_t row = share(tiles, band, tm) * height; row < end; row += LPK_MC)
    gemm_block(l, packed, &work, row, min64(LPK_MC, end - row), share(panels, column, tn),
               share(panels, column + 1, tn));
}

INLINE void run(const linear *l, void *scratch, lp_barrier *barrier, int64_t thread, int64_t threads) {
  if (l->m <= GEMV_ROWS)
    linear_few(l, thread, threads);
  else
    linear_many(l, scratch, barrier, thread, threads);
}

KERNEL void lpk_linear(float *y, const float *x, const void *w, const float *bias, const float *residual, int64_t m,
                       int64_t ldx, int64_t ldy, int64_t n, int64_t k, int dtype, int act, int gated, int isa,
                       void *scratch, lp_barrier *barrier, int64_t thread, int64_t threads) {
  linear l = {y, x, w, bias, residual, m, ldx, ldy, n, k, dtype, act, gated, isa, {0, LPK_F32, 0, 1}};
  run(&l, scratch, barrier, thread, threads);
}

KERNEL void lpk_linear_groups(float *y, const float *x, const void *w, const float *bias, const float *residual,
                              int64_t m, int64_t ldx, int64_t ldy, int64_t n, int64_t k, int bits, int64_t group,
                              int scale, int zeros, int act, int gated, int isa, void *scratch, lp_barrier *barrier,
                              int64_t thread, int64_t threads) {
  linear l = {y, x, w, bias, residual, m, ldx, ldy, n, k, LPK_U8, act, gated, isa, {bits, scale, zeros, group}};
  run(&l, scratch, barrier, thread, threads);
}
