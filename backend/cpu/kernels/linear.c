/* Matrix product with a packed weight: GEMV for a few rows, blocked GEMM for many. A row's result does not depend, to
 * the bit, on the rows that are computed with it: each element is one sum along k in order, or one for each group of
 * k. */
#include "backend/cpu/kernels/experts.h"
#include "backend/cpu/kernels/linear_gemv.h"
#include "backend/cpu/kernels/tile.h"

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

/* A stretch of rows of k within one group. */
typedef struct {
  group_place at;
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
    v16 zero = load_zero(&f->q, &s->at, half + j), scale = load_scale(&f->q, &s->at, half + j);
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
    stretch s = {find_group(&f->q, at, group), group, in_group == 0, k0 + len == end};
    widen_codes(work->b, &f->q, s.at.head + head_bytes(&f->q), in_group, len);
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
  linear l = {y, x, w, bias, residual, 0, m, ldx, ldy};
  int64_t panels = LPK_PANELS(f->n);
  if (m <= GEMV_ROWS)
    linear_few(&l, f, share(panels, thread, threads), share(panels, thread + 1, threads));
  else
    linear_many(&l, f, scratch, barrier, thread, threads);
}

/* Panels first .. last of at most LPK_MC rows. */
INLINE void linear_block(const linear *l, const form *f, float *scratch, int64_t first, int64_t last) {
  int height = HAS_AMX_PAIRS(f) ? AMX_ROWS : tile_rows(f->isa);
  gemm_work work = {.b = scratch};
  work.part = work.b + LPK_KC * LPK_PANEL;
  work.dot = work.part + 2 * LPK_MC * LPK_PANEL;
  packed_rows packed = {.x = scratch + LPK_LINEAR_THREAD_BYTES / 4};
  packed.sums = packed.x + LPK_MC * f->k;
  pack_rows(&packed, l, f, height, 0, (l->m + height - 1) / height);
  if (HAS_AMX_PAIRS(f)) amx_begin(&many_shapes);
  for (int64_t panel = first; panel < last; panel++) {
    result_block at = {0, l->m, panel};
    gemm_piece(l, f, &packed, &work, &at);
  }
  if (HAS_AMX_PAIRS(f)) amx_end();
}

KERNEL void lpk_experts(float *y, const float *x, const void *w, const float *bias, const int64_t *index, int64_t m,
                        int64_t experts, int64_t shared, const lpk_linear_form *f, void *scratch, int64_t thread,
                        int64_t threads) {
  int64_t bytes = LPK_EXPERTS_THREAD_BYTES(LPK_LINEAR_SCRATCH(LPK_MC, f->k, 1), f->k), first, last;
  mixture rows = {x, index, m, experts, shared};
  clear_outside(y, &rows, f->n, thread, threads);
  char *own = (char *)scratch + thread * bytes;
  expert_walk walk =
      walk_experts(&rows, f, own, order_of(&rows, (char *)scratch + threads * bytes, thread), bytes, thread, threads);
  int64_t size = f->q.bits ? panel_bytes(&f->q, f->k) : f->k * LPK_PANEL * dtype_bytes(f->dtype);
  linear l = {y, x, w, bias, 0, 0, 0, f->k, f->n};
  while (next_rows(&walk, &l, &rows, w, bias, size, f, &first, &last))
    if (l.m <= GEMV_ROWS)
      linear_few(&l, f, first, last);
    else
      linear_block(&l, f, (float *)(void *)own, first, last);
}
