/* Matrix product with a packed weight: GEMV for a few rows, blocked GEMM for many. A row's result does not depend, to
 * the bit, on the rows that are computed with it: each element is one sum along k in order, or one for each group of
 * k. */
#include "backend/cpu/kernels/amx_pairs.h"
#include "backend/cpu/kernels/groups.h"
#include "backend/cpu/kernels/linear_form.h"
#include "backend/cpu/kernels/pairs.h"
#include "backend/cpu/kernels/tile.h"

/* ---- GEMV ---- */

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
    __builtin_prefetch(codes[p] + i * LPK_PANEL * f->q.bits / 8 + PREFETCH_BYTES);
    UNROLL for (int h = 0; h < 2; h++) {
      v16 w = load_codes(codes[p], i, h, f->q.bits);
      UNROLL for (int r = 0; r < rows; r++) part[(p * rows + r) * 2 + h] += splat(x[r * l->ldx + i]) * w;
    }
  }
}

/* part[panels][rows][2] += x . codes of rows i .. len of a group. */
INLINE void gemv_codes(v16 *part, const linear *l, const form *f, int rows, int panels, const float *x,
                       const char *const *codes, int64_t i, int64_t len) {
  int64_t step = word_rows(f->q.bits);
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

/* A group's part of a sum: sum (code - zero) x = sum code x - zero sum x, scaled once. */
INLINE v16 add_group(v16 before, v16 dot, v16 zero, float sum, v16 scale, const groups *q) {
  if (has_zero(q)) dot -= zero * splat(sum);
  return before + dot * scale;
}

INLINE void gemv_groups(v16 *acc, const linear *l, const form *f, int rows, int panels, const float *x, int64_t panel) {
  const char *at[4], *codes[4];
  UNROLL for (int p = 0; p < panels; p++) at[p] = (const char *)l->w + (panel + p) * panel_bytes(&f->q, f->k);
  for (int64_t k0 = 0; k0 < f->k; k0 += f->q.group) {
    int64_t len = min64(f->q.group, f->k - k0), done = 0;
    v16 part[16];
    UNROLL for (int j = 0; j < panels * rows * 2; j++) part[j] = splat(0);
    UNROLL for (int p = 0; p < panels; p++) codes[p] = at[p] + head_bytes(&f->q);
    if (rows == 1 && f->q.bits == 4) done = gemv_nibbles(part, panels, x + k0, codes, len);
    gemv_codes(part, l, f, rows, panels, x + k0, codes, done, len);
    UNROLL for (int r = 0; r < rows; r++) {
      float sum = has_zero(&f->q) ? sum_of(x + r * l->ldx + k0, len) : 0;
      UNROLL for (int p = 0; p < panels; p++) UNROLL for (int h = 0; h < 2; h++) {
        int j = (p * rows + r) * 2 + h;
        acc[j] = add_group(acc[j], part[j], load_zero(&f->q, at[p], h), sum, load_weight(at[p], h * LANES, f->q.scale),
                           &f->q);
      }
    }
    UNROLL for (int p = 0; p < panels; p++) at[p] += group_bytes(&f->q);
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

INLINE void linear_few(const linear *l, const form *f, int64_t thread, int64_t threads) {
  int64_t panels = LPK_PANELS(f->n), step = f->gated ? 2 : 1;
  int64_t first = share(panels, thread, threads) * step, last = share(panels, thread + 1, threads) * step;
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

/* ---- GEMM ---- */

/* A thread's part of the scratch. */
typedef struct {
  float *b;    /* [LPK_KC][LPK_PANEL] widened weights */
  float *part; /* [2][LPK_MC][LPK_PANEL] sums of a panel, for a gated product of two */
  float *dot;  /* [LPK_MC][LPK_PANEL] of a group that takes several blocks of k */
} gemm_work;

/* The rows as the GEMM reads them. */
typedef struct {
  float *x;    /* tiles [k][height] */
  float *sums; /* [row][groups] of x, needed by zero points */
} packed_rows;

INLINE int64_t group_count(const form *f) {
  return (f->k + f->q.group - 1) / f->q.group;
}

/* A product of a block of rows and one of its weight panels (two when gated). Its sums go to part[rows][LPK_PANEL]; the
 * last product writes the result. */
typedef struct {
  result_block at;
  int64_t half;
  float *part;
} product;

INLINE product product_at(const gemm_work *work, const result_block *at, int64_t half) {
  return (product){*at, half, work->part + half * LPK_MC * LPK_PANEL};
}

/* The weight panel. */
INLINE int64_t weight_panel(const product *p, const form *f) {
  return f->gated ? 2 * p->at.panel + p->half : p->at.panel;
}

/* Writes the tile of `height` rows that begins with row r if the sums are complete at `end` of k. */
INLINE void finish_tile(const linear *l, const form *f, const product *p, int64_t r, int64_t end, int64_t height) {
  const float *first = p->part - p->half * LPK_MC * LPK_PANEL;
  if (end == f->k && p->half == (f->gated ? 1 : 0)) finish_rows(l, f, first, 1, &p->at, r, height);
}

/* Multiplies packed rows and a panel, over k in blocks that keep the panel's slice in L1. Meanwhile the next slice
 * comes from memory, a line for each step, so that several tiles share the time. A single tile reads f32 only a little
 * ahead: two slices do not fit in L1. */
INLINE void gemm_floats(const product *p, const linear *l, const form *f, const float *packed, float *wide) {
  int height = tile_rows(f->isa), low = low_tile_rows(f->isa), cols = tile_cols(f->isa);
  int64_t rows = p->at.rows, panel = weight_panel(p, f);
  int64_t blocks = (f->k + LPK_KC - 1) / LPK_KC, kc = (f->k + blocks - 1) / blocks;
  int64_t step = LPK_PANEL * dtype_bytes(f->dtype);
  for (int64_t k0 = 0; k0 < f->k; k0 += kc) {
    int64_t len = min64(kc, f->k - k0), at = (panel * f->k + k0) * LPK_PANEL;
    tile_operands t = {0, 1, height, (const float *)l->w + at, LPK_PANEL, len, 0, step};
    const char *here = (const char *)l->w + at * dtype_bytes(f->dtype), *end = here + 2 * len * step;
    t.ahead = here + (rows <= height && f->dtype == LPK_F32 ? PREFETCH_BYTES : len * step);
    if (rows > height) t.step = 64;
    if (f->dtype != LPK_F32) {
      for (int64_t i = 0; i < len * LPK_PANEL; i += LANES)
        store16(wide + i, load_weight(l->w, at + i, f->dtype));
      t.b = wide;
    }
    for (int64_t r = 0; r < rows; r += height) {
      t.a = packed + r * f->k + k0 * height;
      for (int c = 0; c < LPK_PANEL; c += cols * LANES) {
        tile_operands half = t;
        half.b += c;
        float *to = p->part + r * LPK_PANEL + c;
        if (rows - r > low)
          tile_update(to, LPK_PANEL, 0, k0 == 0, height, cols, &half);
        else
          tile_update(to, LPK_PANEL, 0, k0 == 0, low, cols, &half);
      }
      t.ahead += t.k * t.step;
      if (t.ahead >= end) t.step = 0;
      finish_tile(l, f, p, r, k0 + len, height);
    }
  }
}

/* acc[rows][cols] += pairs `i` .. i + `side` of k of a tile: the products of each in order. */
INLINE void tile_pairs_at(v16 *acc, int rows, int cols, const tile_operands *t, int64_t i, int side) {
  const uint32_t *x = (const uint32_t *)t->a + i * t->a_col;
  UNROLL for (int e = 0; e < side; e++) {
    int64_t bytes = side > 1 ? 4 * LPK_PANEL : t->step; /* a tile of step 0 reads one line again, without a branch */
    UNROLL for (int64_t p = 0; p < bytes; p += 64) __builtin_prefetch(t->ahead + (i + e) * t->step + p);
    v16w w[4];
    UNROLL for (int j = 0; j < cols; j++) w[j] = *(const v16w_any *)(t->b + (i + e) * t->b_row + j * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      int64_t at = e * t->a_col + r;
      UNROLL for (int j = 0; j < cols; j++) acc[r * cols + j] =
          side > 1 ? add_pair_of_lane(acc[r * cols + j], w[j], x, at) : add_pair(acc[r * cols + j], w[j], (v16w)x[at]);
    }
  }
}

/* c[rows][cols] += a . b in pairs: as tile_update. */
INLINE void tile_pairs(float *c, int first, int rows, int cols, const tile_operands *t) {
  v16 acc[TILE_MAX];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < cols; j++) acc[r * cols + j] =
      first ? splat(0) : load16(c + r * LPK_PANEL + j * LANES);
  int64_t i = 0;
  for (; PAIRS_AT_ONCE > 1 && i + PAIRS_AT_ONCE <= t->k; i += PAIRS_AT_ONCE)
    tile_pairs_at(acc, rows, cols, t, i, PAIRS_AT_ONCE);
  for (; i < t->k; i++)
    tile_pairs_at(acc, rows, cols, t, i, 1);
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < cols; j++)
      store16(c + r * LPK_PANEL + j * LANES, acc[r * cols + j]);
}

/* wide[pairs][LPK_PANEL]: the pairs of `len` rows of a panel. */
INLINE void join_panel(float *wide, const uint16_t *w, int64_t len) {
  for (int64_t i = 0; i < len; i += 2) {
    v16w pairs[2];
    join_rows(pairs, w + i * LPK_PANEL, i + 1 < len);
    UNROLL for (int h = 0; h < 2; h++) * (v16w_any *)(wide + i / 2 * LPK_PANEL + h * LANES) = pairs[h];
  }
}

/* Does what gemm_floats does with products of bf16: `packed` holds tiles of pairs. The next weights come in four tiles,
 * or in the first one where there are fewer. */
INLINE void gemm_pairs(const product *p, const linear *l, const form *f, const float *packed, float *wide) {
  enum { STRETCH = 2 * LPK_KC };
  int height = tile_rows(f->isa), low = low_tile_rows(f->isa), cols = tile_cols(f->isa);
  int64_t rows = p->at.rows, pairs = (f->k + 1) / 2, bytes = LPK_PANEL * 2;
  for (int64_t k0 = 0; k0 < f->k; k0 += STRETCH) {
    int64_t len = min64(STRETCH, f->k - k0);
    const char *from = (const char *)l->w + (weight_panel(p, f) * f->k + k0) * bytes;
    join_panel(wide, (const uint16_t *)from, len);
    const char *next = from + len * bytes, *end = next + len * bytes;
    tile_operands t = {0, 1, height, wide, LPK_PANEL, (len + 1) / 2, next, rows > 3 * height ? 64 : 2 * bytes};
    for (int64_t r = 0; r < rows; r += height) {
      t.a = packed + r * pairs + k0 / 2 * height;
      for (int c = 0; c < LPK_PANEL; c += cols * LANES) {
        tile_operands half = t;
        half.b += c;
        if (rows - r > low)
          tile_pairs(p->part + r * LPK_PANEL + c, k0 == 0, height, cols, &half);
        else
          tile_pairs(p->part + r * LPK_PANEL + c, k0 == 0, low, cols, &half);
      }
      t.ahead += t.k * t.step;
      if (t.ahead >= end) t.step = 0;
      finish_tile(l, f, p, r, k0 + len, height);
    }
  }
}

/* Does what gemm_floats does. `packed` holds tiles [steps][AMX_ROWS][AMX_WORDS] of pairs. */
INLINE void gemm_amx(const product *p, const linear *l, const form *f, const uint32_t *packed, uint32_t *wide) {
  enum { STRETCH = LPK_KC, ROWS = 2 * AMX_ROWS };
  int64_t rows = p->at.rows, tile = step_count(f->k) * TILE_WORDS, bytes = LPK_PANEL * 2;
  for (int64_t k0 = 0; k0 < f->k; k0 += STRETCH) {
    int64_t len = min64(STRETCH, f->k - k0), count = step_count(len);
    const char *from = (const char *)l->w + (weight_panel(p, f) * f->k + k0) * bytes, *next = from + len * bytes;
    for (int64_t i = 0; i < len / STEP; i++)
      join_step(wide + i * AMX_WORDS * LPK_PANEL, from + i * STEP * bytes, STEP);
    if (len % STEP) join_step(wide + len / STEP * AMX_WORDS * LPK_PANEL, from + len / STEP * STEP * bytes, len % STEP);
    int64_t times = (rows + ROWS - 1) / ROWS * count;
    prefetch ahead = {next, next + len * bytes, (len + times - 1) / times * bytes};
    for (int64_t r = 0; r < rows; r += ROWS) {
      const uint32_t *x = packed + r / AMX_ROWS * tile + k0 / STEP * TILE_WORDS;
      if (rows - r > AMX_ROWS)
        amx_tiles(p->part + r * LPK_PANEL, 2, k0 == 0, x, tile, wide, count, &ahead);
      else
        amx_tiles(p->part + r * LPK_PANEL, 1, k0 == 0, x, tile, wide, count, &ahead);
      finish_tile(l, f, p, r, k0 + len, ROWS);
    }
  }
}

/* A stretch of rows of k within one group: of a panel of which `head` are the scales and zero points. */
typedef struct {
  const char *head;
  int64_t group;   /* its number */
  int first, last; /* whether the group begins, and ends, with this stretch */
} stretch;

/* Computes a tile of rows. The group's dot products stay in registers and are added to the sums at its end, as in the
 * GEMV. */
INLINE void group_tile(float *part, float *dot, const float *sums, const form *f, int rows, int cols, int half,
                       const tile_operands *t, const stretch *s) {
  v16 acc[TILE_MAX];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < cols; j++) acc[r * cols + j] =
      s->first ? splat(0) : load16(dot + r * LPK_PANEL + j * LANES);
  tile_multiply(acc, rows, cols, t);
  if (!s->last) {
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < cols; j++)
        store16(dot + r * LPK_PANEL + j * LANES, acc[r * cols + j]);
    return;
  }
  UNROLL for (int j = 0; j < cols; j++) {
    v16 zero = load_zero(&f->q, s->head, half + j), scale = load_weight(s->head, (half + j) * LANES, f->q.scale);
    UNROLL for (int r = 0; r < rows; r++) {
      float *to = part + r * LPK_PANEL + j * LANES;
      v16 before = s->group ? load16(to) : splat(0);
      store16(to,
              add_group(before, acc[r * cols + j], zero, has_zero(&f->q) ? sums[r * group_count(f)] : 0, scale, &f->q));
    }
  }
}

/* Does the same with a panel of groups. `sums`: of the rows. */
INLINE void gemm_groups(const product *p, const gemm_work *work, const linear *l, const form *f, const float *packed,
                        const float *sums) {
  int height = tile_rows(f->isa), low = low_tile_rows(f->isa), cols = tile_cols(f->isa);
  const char *at = (const char *)l->w + weight_panel(p, f) * panel_bytes(&f->q, f->k);
  for (int64_t k0 = 0, len; k0 < f->k; k0 += len) {
    int64_t group = k0 / f->q.group, in_group = k0 % f->q.group, end = min64(f->k, (group + 1) * f->q.group);
    len = min64(LPK_KC, end - k0);
    stretch s = {at + group * group_bytes(&f->q), group, in_group == 0, k0 + len == end};
    widen_codes(work->b, &f->q, s.head + head_bytes(&f->q), in_group, len);
    for (int64_t r = 0; r < p->at.rows; r += height) {
      for (int c = 0; c < LPK_PANEL; c += cols * LANES) {
        tile_operands t = {packed + r * f->k + k0 * height, 1, height, work->b + c, LPK_PANEL, len, 0, 0};
        float *to = p->part + r * LPK_PANEL + c, *dot = work->dot + r * LPK_PANEL + c;
        const float *row_sums = sums + r * group_count(f) + group;
        if (p->at.rows - r > low)
          group_tile(to, dot, row_sums, f, height, cols, c / LANES, &t, &s);
        else
          group_tile(to, dot, row_sums, f, low, cols, c / LANES, &t, &s);
      }
      finish_tile(l, f, p, r, k0 + len, height);
    }
  }
}

INLINE void gemm_piece(const linear *l, const form *f, const packed_rows *packed, const gemm_work *work,
                       const result_block *at) {
  const float *x = packed->x + at->row * f->k;
  for (int64_t half = 0; half < (f->gated ? 2 : 1); half++) {
    product p = product_at(work, at, half);
    if (HAS_AMX_PAIRS(f))
      gemm_amx(&p, l, f, (const uint32_t *)packed->x + at->row * step_count(f->k) * AMX_WORDS, (uint32_t *)work->b);
    else if (f->pairs == LPK_PAIRS_DOT)
      gemm_pairs(&p, l, f, packed->x + at->row * ((f->k + 1) / 2), work->b);
    else if (f->q.bits)
      gemm_groups(&p, work, l, f, x, packed->sums + at->row * group_count(f));
    else
      gemm_floats(&p, l, f, x, work->b);
  }
}

/* Pairs i .. i + count of tile `t` of the rows, [count][height]; missing rows are zero. */
INLINE void pack_some_pairs(uint32_t *to, const linear *l, const form *f, int64_t height, int64_t t, int64_t i,
                            int64_t count) {
  v16 x[LANES];
  UNROLL for (int r = 0; r < LANES; r++) {
    const float *row = l->x + (t * height + r) * l->ldx + 2 * i;
    int real = r < height && t * height + r < l->m;
    x[r] = !real ? splat(0) : (v16)(count == LANES ? round_some(row, 2 * LANES) : round_some(row, f->k - 2 * i));
  }
  transpose16(x);
  if (count == LANES)
    UNROLL for (int j = 0; j < LANES; j++) store_part((float *)to + j * height, x[j], height);
  else
    for (int64_t j = 0; j < count; j++)
      store_part((float *)to + j * height, x[j], height);
}

/* Tile `t` of the rows as pairs, [pairs][height]. */
INLINE void pack_pairs(uint32_t *to, const linear *l, const form *f, int64_t height, int64_t t) {
  int64_t i = 0, pairs = (f->k + 1) / 2;
  for (; 2 * (i + LANES) <= f->k; i += LANES)
    pack_some_pairs(to + i * height, l, f, height, t, i, LANES);
  if (i < pairs) pack_some_pairs(to + i * height, l, f, height, t, i, pairs - i);
}

/* Tiles `first` .. `last` of the rows, and the sums of their groups. */
INLINE void pack_rows(const packed_rows *to, const linear *l, const form *f, int height, int64_t first, int64_t last) {
  if (HAS_AMX_PAIRS(f)) {
    pack_amx((uint32_t *)to->x, l, f, first * height, last * height);
    return;
  }
  for (int64_t t = first; f->pairs == LPK_PAIRS_DOT && t < last; t++)
    pack_pairs((uint32_t *)to->x + t * height * ((f->k + 1) / 2), l, f, height, t);
  for (int64_t t = first; f->pairs != LPK_PAIRS_DOT && t < last; t++)
    pack_tile(to->x + t * height * f->k, height, l->x + t * height * l->ldx, l->ldx, 1,
              min64(height, l->m - t * height), f->k);
  if (!f->q.bits || !has_zero(&f->q)) return;
  for (int64_t r = first * height; r < min64(l->m, last * height); r++)
    for (int64_t g = 0; g < group_count(f); g++)
      to->sums[r * group_count(f) + g] =
          sum_of(l->x + r * l->ldx + g * f->q.group, min64(f->q.group, f->k - g * f->q.group));
}

INLINE void linear_many(const linear *l, const form *f, float *scratch, lp_barrier *barrier, int64_t thread,
                        int64_t threads) {
  int height = HAS_AMX_PAIRS(f) ? AMX_ROWS : tile_rows(f->isa);
  int64_t tiles = (l->m + height - 1) / height;
  int64_t thread_floats = LPK_LINEAR_THREAD_BYTES / 4;
  gemm_work work = {.b = scratch + thread * thread_floats + LPK_PIECES_BYTES / 4};
  work.part = work.b + LPK_KC * LPK_PANEL;
  work.dot = work.part + 2 * LPK_MC * LPK_PANEL;
  packed_rows packed = {.x = scratch + threads * thread_floats};
  packed.sums = packed.x + tiles * height * f->k;
  open_pieces(pieces_of(scratch, LPK_LINEAR_THREAD_BYTES, thread));
  pack_rows(&packed, l, f, height, share(tiles, thread, threads), share(tiles, thread + 1, threads));
  lpk_barrier(barrier, threads);
  if (HAS_AMX_PAIRS(f)) amx_begin(&many_shapes);
  for (int64_t i = 0; i < threads; i++) {
    int64_t owner = (thread + i) % threads;
    pieces *left = pieces_of(scratch, LPK_LINEAR_THREAD_BYTES, owner);
    gemm_share s = share_gemm(l->m, height, LPK_PANELS(f->n), owner, threads);
    for (int64_t n = take_piece(left); n < s.count; n = take_piece(left)) {
      result_block at = piece_at(&s, n);
      gemm_piece(l, f, &packed, &work, &at);
    }
  }
  if (HAS_AMX_PAIRS(f)) amx_end();
}

KERNEL void lpk_linear(float *y, const float *x, const void *w, const float *bias, const float *residual, int64_t m,
                       int64_t ldx, int64_t ldy, const lpk_linear_form *f, void *scratch, lp_barrier *barrier,
                       int64_t thread, int64_t threads) {
  linear l = {y, x, w, bias, residual, m, ldx, ldy};
  if (m <= GEMV_ROWS && HAS_AMX_PAIRS(f))
    amx_few(&l, f, thread, threads);
  else if (m <= GEMV_ROWS)
    linear_few(&l, f, thread, threads);
  else
    linear_many(&l, f, scratch, barrier, thread, threads);
}
