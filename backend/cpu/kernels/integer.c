/* Matrix product with weights in groups and activations of 8 bits (rounded.h). The products of a block of 32 rows of k
 * are summed in integers, exactly; the blocks are added in floats, in order. So a row's result does not depend, to the
 * bit, on the rows that are computed with it, on threads, or on the instructions. */
#include "backend/cpu/kernels/groups.h"
#include "backend/cpu/kernels/linear.h"
#include "backend/cpu/kernels/rounded.h"
#include "backend/cpu/kernels/tile.h"

/* A block of k in a panel: the head of its group (scales and zero points), and its words. */
typedef struct {
  const char *head;
  const uint32_t *words; /* [count][LPK_PANEL] */
  int64_t count;
} block;

INLINE block find_block(const char *panel, const form *f, int64_t number) {
  int64_t row = number * BLOCK, group = row / f->q.group, in_group = row % f->q.group, words = word_rows(f->q.bits);
  block b = {.head = panel + group * group_bytes(&f->q)};
  b.words = (const uint32_t *)(b.head + head_bytes(&f->q)) + in_group / words * LPK_PANEL;
  b.count = (min64(BLOCK, f->k - row) + words - 1) / words;
  return b;
}

INLINE v16w load_word(const uint32_t *word) {
  return *(const v16w_any *)word;
}

INLINE v16i splat_word(int32_t x) {
  return (v16i)x;
}

/* sum + scale * (dot - zero * the sum of the codes) * the activations' scale. */
INLINE v16 add_block(v16 sum, v16i dot, v16 scale, v16 zero, int with_zero, float row_scale, float row_sum) {
  v16 value = __builtin_convertvector(dot, v16);
  if (with_zero) value = __builtin_elementwise_fma(-zero, splat(row_sum), value);
  return __builtin_elementwise_fma(value * scale, splat(row_scale), sum);
}

INLINE int subtracts_zero(const form *f, int kind) {
  return has_zero(&f->q) || code_offset(kind, f->q.bits) != 0;
}

INLINE v16 zero_of(const form *f, const char *head, int h, int kind) {
  return load_zero(&f->q, head, h) + splat(code_offset(kind, f->q.bits));
}

/* ---- GEMV ---- */

/* The products of a block with `rows` rows. Sums of one row are taken in two chains, which hides latency. */
INLINE void gemv_block(v16 *acc, const form *f, const block *b, const rounded_rows *x, int64_t at, int rows, int kind) {
  int steps = block_steps(kind), per_word = word_steps(kind, f->q.bits), chains = rows == 1 ? 2 : 1;
  v16i dot[2 * GEMV_ROWS];
  UNROLL for (int j = 0; j < 2 * rows * chains; j++) dot[j] = splat_word(0);
  for (int64_t i = 0; i < b->count; i++) {
    const uint32_t *words = b->words + i * LPK_PANEL;
    const int32_t *codes = x->codes + (at * steps + i * per_word) * rows;
    UNROLL for (int h = 0; h < 2; h++) {
      __builtin_prefetch((const char *)(words + h * LANES) + PREFETCH_BYTES);
      v16w word = load_word(words + h * LANES);
      UNROLL for (int s = 0; s < per_word; s++) UNROLL for (int r = 0; r < rows; r++) {
        v16i *to = &dot[(r * 2 + h) * chains + (per_word > 1 ? s % chains : 0)];
        *to = dot_add(*to, (v16i)step_codes(word, s, kind, f->q.bits), splat_word(codes[s * rows + r]), kind, f->dot);
      }
    }
  }
  UNROLL for (int h = 0; h < 2; h++) {
    v16 scale = load_weight(b->head, h * LANES, f->q.scale), zero = zero_of(f, b->head, h, kind);
    UNROLL for (int r = 0; r < rows; r++) {
      int j = r * 2 + h;
      v16i sum = dot_sum(dot[j * chains], kind);
      if (chains == 2) sum += dot_sum(dot[j * 2 + 1], kind);
      acc[j] = add_block(acc[j], sum, scale, zero, subtracts_zero(f, kind), x->scales[at * rows + r],
                         x->sums[at * rows + r]);
    }
  }
}

/* acc[rows][2] = rows of x . a panel. */
INLINE void gemv_panel(v16 *acc, const linear *l, const form *f, const rounded_rows *x, int rows, int64_t panel,
                       int kind) {
  const char *at = (const char *)l->w + panel * panel_bytes(&f->q, f->k);
  UNROLL for (int j = 0; j < 2 * rows; j++) acc[j] = splat(0);
  for (int64_t i = 0; i < f->k / BLOCK; i++) {
    block b = find_block(at, f, i);
    b.count = BLOCK / word_rows(f->q.bits);
    gemv_block(acc, f, &b, x, i, rows, kind);
  }
  if (f->k % BLOCK) {
    block b = find_block(at, f, f->k / BLOCK);
    gemv_block(acc, f, &b, x, f->k / BLOCK, rows, kind);
  }
}

INLINE void gemv_rows(const linear *l, const form *f, const rounded_rows *x, int rows, int64_t row, int64_t first,
                      int64_t last, int kind) {
  int panels = f->gated ? 2 : 1;
  for (int64_t j = first; j < last; j++) {
    v16 acc[2][2 * GEMV_ROWS];
    UNROLL for (int p = 0; p < panels; p++) gemv_panel(acc[p], l, f, x, rows, panels * j + p, kind);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++)
        finish16(l, f, row + r, j * LPK_PANEL + h * LANES, panels * j * LPK_PANEL + h * LANES, acc[0][r * 2 + h],
                 f->gated ? acc[1][r * 2 + h] : splat(0));
  }
}

/* Each thread rounds all rows for itself, which takes less time than a barrier. Rows go in pairs. */
INLINE void integer_few(const linear *l, const form *f, void *scratch, int64_t thread, int64_t threads) {
  int kind = dot_kind(f->dot, f->q.bits, 0);
  int64_t panels = LPK_PANELS(f->n), first = share(panels, thread, threads), last = share(panels, thread + 1, threads);
  rounded_rows x = rounded_at((char *)scratch + thread * LPK_INTEGER_THREAD_BYTES(f->k), 2, f->k, kind);
  int64_t row = 0;
  for (; row + 2 <= l->m; row += 2) {
    round_tile(&x, 2, l->x + row * l->ldx, l->ldx, 2, f->k, kind, f->q.bits);
    gemv_rows(l, f, &x, 2, row, first, last, kind);
  }
  if (row == l->m) return;
  round_tile(&x, 1, l->x + row * l->ldx, l->ldx, 1, f->k, kind, f->q.bits);
  gemv_rows(l, f, &x, 1, row, first, last, kind);
}

/* ---- GEMM ---- */

/* Tiles fill the registers, as those of floats do (tile.h). */
INLINE int integer_rows(int dot) {
  return dot == LPK_DOT_VNNI512 ? 12 : 6;
}
INLINE int integer_cols(int dot) {
  return dot == LPK_DOT_VNNI512 ? 2 : 1;
}

/* A thread's part of the scratch. */
typedef struct {
  uint32_t *wide; /* [steps of LPK_KC][LPK_PANEL] operands of a panel */
  float *part;    /* [2][LPK_MC][LPK_PANEL] sums of a panel, for a gated product of two */
} integer_work;

/* Decodes blocks first .. first + count of a panel; rows past k are zero. */
INLINE void decode_blocks(uint32_t *wide, const char *panel, const form *f, int64_t first, int64_t count, int kind) {
  int per_word = word_steps(kind, f->q.bits);
  for (int64_t i = 0; i < count; i++, wide += block_steps(kind) * LPK_PANEL) {
    block b = find_block(panel, f, first + i);
    for (int64_t w = 0; w < BLOCK / word_rows(f->q.bits); w++)
      UNROLL for (int s = 0; s < per_word; s++) UNROLL for (int h = 0; h < 2; h++) {
        v16w word = w < b.count ? load_word(b.words + w * LPK_PANEL + h * LANES) : (v16w)0u;
        *(v16w_any *)(wide + (w * per_word + s) * LPK_PANEL + h * LANES) = step_codes(word, s, kind, f->q.bits);
      }
  }
}

/* Adds a block's products to part[rows][LPK_PANEL]: `x` of the block, `wide` at the column of the tile. */
INLINE void tile_block(float *part, const form *f, const uint32_t *wide, const char *head, const rounded_rows *x,
                       int first, int rows, int height, int half, int kind) {
  int cols = integer_cols(f->dot);
  v16i dot[TILE_MAX];
  UNROLL for (int j = 0; j < rows * cols; j++) dot[j] = splat_word(0);
  for (int s = 0; s < block_steps(kind); s++) {
    v16i w[2];
    UNROLL for (int c = 0; c < cols; c++) w[c] = (v16i)load_word(wide + s * LPK_PANEL + c * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      v16i code = splat_word(x->codes[s * height + r]);
      UNROLL for (int c = 0; c < cols; c++) dot[r * cols + c] = dot_add(dot[r * cols + c], w[c], code, kind, f->dot);
    }
  }
  UNROLL for (int c = 0; c < cols; c++) {
    v16 scale = load_weight(head, (half + c) * LANES, f->q.scale), zero = zero_of(f, head, half + c, kind);
    UNROLL for (int r = 0; r < rows; r++) {
      float *to = part + r * LPK_PANEL + c * LANES;
      store16(to, add_block(first ? splat(0) : load16(to), dot_sum(dot[r * cols + c], kind), scale, zero,
                            subtracts_zero(f, kind), x->scales[r], x->sums[r]));
    }
  }
}

/* part[rows][LPK_PANEL] = rows of x . a panel, in blocks of k whose decoded weights stay in L1. */
INLINE void gemm_panel(const integer_work *work, float *part, const linear *l, const form *f, const rounded_rows *x,
                       int64_t rows, int64_t panel, int kind) {
  enum { BLOCKS = LPK_KC / BLOCK };
  int height = integer_rows(f->dot), cols = integer_cols(f->dot), steps = block_steps(kind);
  const char *at = (const char *)l->w + panel * panel_bytes(&f->q, f->k);
  for (int64_t b0 = 0; b0 < block_count(f->k); b0 += BLOCKS) {
    int64_t count = min64(BLOCKS, block_count(f->k) - b0);
    decode_blocks(work->wide, at, f, b0, count, kind);
    for (int64_t r = 0; r < rows; r += height) {
      rounded_rows tile = rounded_tile(x, r, f->k, kind);
      for (int c = 0; c < LPK_PANEL; c += cols * LANES)
        for (int64_t b = 0; b < count; b++) {
          rounded_rows here = {tile.codes + (b0 + b) * steps * height, tile.scales + (b0 + b) * height,
                               tile.sums + (b0 + b) * height};
          const uint32_t *wide = work->wide + b * steps * LPK_PANEL + c;
          const char *head = find_block(at, f, b0 + b).head;
          float *to = part + r * LPK_PANEL + c;
          if (rows - r > height / 2)
            tile_block(to, f, wide, head, &here, b0 + b == 0, height, height, c / LANES, kind);
          else
            tile_block(to, f, wide, head, &here, b0 + b == 0, height / 2, height, c / LANES, kind);
        }
    }
  }
}

/* Rows row .. row + rows (at most LPK_MC, from a tile's start) of panels first .. last. */
INLINE void gemm_rows(const linear *l, const form *f, const rounded_rows *x, const integer_work *work, int64_t row,
                      int64_t rows, int64_t first, int64_t last, int kind) {
  int64_t panels = f->gated ? 2 : 1;
  rounded_rows mine = rounded_tile(x, row, f->k, kind);
  for (int64_t j = first; j < last; j++) {
    for (int64_t p = 0; p < panels; p++)
      gemm_panel(work, work->part + p * LPK_MC * LPK_PANEL, l, f, &mine, rows, panels * j + p, kind);
    for (int64_t r = 0; r < rows; r++)
      UNROLL for (int h = 0; h < 2; h++) {
        const float *sum = work->part + r * LPK_PANEL + h * LANES;
        finish16(l, f, row + r, j * LPK_PANEL + h * LANES, panels * j * LPK_PANEL + h * LANES, load16(sum),
                 f->gated ? load16(sum + LPK_MC * LPK_PANEL) : splat(0));
      }
  }
}

INLINE void integer_many(const linear *l, const form *f, char *scratch, lp_barrier *barrier, int64_t thread,
                         int64_t threads) {
  int kind = dot_kind(f->dot, f->q.bits, 1), height = integer_rows(f->dot);
  int64_t tiles = (l->m + height - 1) / height, panels = LPK_PANELS(f->n);
  integer_work work = {.wide = (uint32_t *)(scratch + thread * LPK_INTEGER_THREAD_BYTES(f->k))};
  work.part = (float *)(work.wide + LPK_KC / 2 * LPK_PANEL);
  rounded_rows x = rounded_at(scratch + threads * LPK_INTEGER_THREAD_BYTES(f->k), tiles * height, f->k, kind);
  for (int64_t t = share(tiles, thread, threads); t < share(tiles, thread + 1, threads); t++) {
    rounded_rows tile = rounded_tile(&x, t * height, f->k, kind);
    round_tile(&tile, height, l->x + t * height * l->ldx, l->ldx, min64(height, l->m - t * height), f->k, kind,
               f->q.bits);
  }
  lpk_barrier(barrier, threads);
  int64_t tn = split_columns(panels, tiles, threads), tm = threads / tn, column = thread % tn, band = thread / tn;
  if (band >= tm) return;
  int64_t end = min64(l->m, share(tiles, band + 1, tm) * height);
  for (int64_t row = share(tiles, band, tm) * height; row < end; row += LPK_MC)
    gemm_rows(l, f, &x, &work, row, min64(LPK_MC, end - row), share(panels, column, tn), share(panels, column + 1, tn),
              kind);
}

KERNEL void lpk_linear_integer(float *y, const float *x, const void *w, const float *bias, const float *residual,
                               int64_t m, int64_t ldx, int64_t ldy, const lpk_linear_form *f, void *scratch,
                               lp_barrier *barrier, int64_t thread, int64_t threads) {
  linear l = {y, x, w, bias, residual, m, ldx, ldy};
  if (m <= GEMV_ROWS)
    integer_few(&l, f, scratch, thread, threads);
  else
    integer_many(&l, f, scratch, barrier, thread, threads);
}
