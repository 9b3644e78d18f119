/* Matrix product with weights in groups and activations of 8 bits (rounded.h). The products of a block of 32 rows of k
 * are summed in integers, exactly; the blocks are added in floats, in order. So a row's result does not depend, to the
 * bit, on the rows that are computed with it, on threads, or on the instructions. */
#include "backend/cpu/kernels/amx.h"
#include "backend/cpu/kernels/experts.h"
#include "backend/cpu/kernels/integer_gemv.h"
#include "backend/cpu/kernels/tile.h"

/* ---- GEMM ---- */

/* A tile's integer sums, and its floats beside them, fill the registers. */
enum { TILE_ROWS = 6 };
INLINE int tile_height(int kind) {
  return has_amx_tiles(kind) ? AMX_ROWS : TILE_ROWS;
}
INLINE int integer_cols(int dot) {
  return dot == LPK_DOT_VNNI512 ? 2 : 1;
}

/* A thread's part of the scratch. */
typedef struct {
  uint32_t *wide; /* [steps of a stretch][LPK_PANEL] operands of a panel */
  float *scales;  /* [blocks of a stretch][LPK_PANEL] of the weights */
  float *part;    /* [2][LPK_MC][LPK_PANEL] sums of a panel, for a gated product of two */
} integer_work;

/* The blocks of a panel that are decoded together: their weights fit in L1. */
INLINE int64_t stretch_blocks(int kind) {
  return LPK_KC / 2 / block_steps(kind);
}

/* The operands of all steps of a block, columns 16 h ..; words past the block's count are zero. */
INLINE void decode_steps(v16w *steps, const block *b, const form *f, int h, int kind) {
  int per_word = word_steps(kind, &f->q);
  v16w high = load_high(b, f, h);
  UNROLL for (int64_t w = 0; w < unit_words(&f->q); w++) {
    v16w word = w < b->count ? load_word(b->words + w * LPK_PANEL + h * LANES) : (v16w)0u;
    UNROLL for (int s = 0; s < per_word; s++) steps[w * per_word + s] =
        step_codes(word, s, high, (int)w * per_word + s, kind, f->dot, &f->q);
  }
}

/* Writes a block for DOT_SMMLA: [steps / 2][LPK_PANEL][2], so that eight rows of k of a column follow each other. */
INLINE void decode_block_pairs(uint32_t *wide, const block *b, const form *f, int kind) {
  UNROLL for (int h = 0; h < 2; h++) {
    v16w steps[BLOCK / 4];
    decode_steps(steps, b, f, h, kind);
    UNROLL for (int p = 0; p < BLOCK / 8; p++) {
      v16w x = steps[2 * p], y = steps[2 * p + 1];
      uint32_t *to = wide + 2 * (p * LPK_PANEL + h * LANES);
      *(v16w_any *)to = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      *(v16w_any *)(to + LANES) =
          __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  }
}

INLINE void decode_block(uint32_t *wide, const block *b, const form *f, int kind) {
  if (kind == DOT_SMMLA) {
    decode_block_pairs(wide, b, f, kind);
    return;
  }
  UNROLL for (int h = 0; h < 2; h++) {
    v16w steps[BLOCK / 2];
    decode_steps(steps, b, f, h, kind);
    UNROLL for (int s = 0; s < unit_steps(f, kind); s++) * (v16w_any *)(wide + s * LPK_PANEL + h * LANES) = steps[s];
  }
}

/* Decodes units first .. first + count of a panel; rows past k are zero. */
INLINE void decode_blocks(const integer_work *work, const char *panel, const form *f, int64_t first, int64_t count,
                          int kind) {
  for (int64_t i = 0; i < count; i++) {
    block b = find_block(panel, f, first + i);
    if (first + i >= f->k / unit_rows(&f->q)) b.count = words_left(f, first + i);
    decode_block(work->wide + i * unit_steps(f, kind) * LPK_PANEL, &b, f, kind);
    UNROLL for (int h = 0; h < 2; h++)
        store16(work->scales + i * LPK_PANEL + h * LANES, load_scale(&f->q, &b.group, h));
  }
}

/* Memory that is read after a tile: each block prefetches `bytes` of it. */
typedef struct {
  const char *at;
  int64_t bytes;
} prefetch;

/* The number of words before a tile's first column in a step of `wide`, or in two steps of DOT_SMMLA. */
INLINE int64_t column_words(int column, int kind) {
  return column * LANES * (kind == DOT_SMMLA ? 2 : 1);
}

/* The number of steps that a loop takes at once. The words of two steps fill three vectors, from whose lanes sdot takes
 * them; other targets load and repeat a word in one instruction. */
INLINE int steps_at_once(int kind) {
  return kind == DOT_SDOT ? 2 : 1;
}

/* Word `at` of some steps, repeated. */
INLINE v16i step_code(const int32_t *codes, int at, int kind) {
  return kind == DOT_SDOT ? lane_of_four(codes, at) : splat_word(codes[at]);
}

/* dot[rows][cols] = the products of a block. */
INLINE void tile_products(v16i *dot, const form *f, const uint32_t *wide, const rounded_rows *x, int rows, int kind) {
  int cols = integer_cols(f->dot);
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < cols; c++) dot[r * cols + c] =
      first_sum(f, x->starts[r], kind);
  int side = steps_at_once(kind);
  for (int s = 0; s < unit_steps(f, kind); s += side)
    UNROLL for (int e = 0; e < side; e++) {
      v16i w[2];
      UNROLL for (int c = 0; c < cols; c++) w[c] = (v16i)load_word(wide + (s + e) * LPK_PANEL + c * LANES);
      UNROLL for (int r = 0; r < rows; r++) {
        v16i code = step_code(x->codes + s * TILE_ROWS, e * TILE_ROWS + r, kind);
        UNROLL for (int c = 0; c < cols; c++) dot[r * cols + c] = dot_add(dot[r * cols + c], w[c], code, kind, f->dot);
      }
    }
}

/* Does the same by DOT_SMMLA: sum[r / 2][c / 2] holds the products of two rows and two columns. */
INLINE void tile_products_pairs(v16i *dot, const form *f, const uint32_t *wide, const rounded_rows *x, int rows) {
  typedef v4i v4i_any __attribute__((aligned(4), may_alias));
  enum { PAIRS = LANES / 2 };
  v4i sum[TILE_ROWS / 2 * PAIRS];
  UNROLL for (int r = 0; r < rows; r += 2) {
    const int none = stores_zeros(&f->q);
    int32_t a = none ? 0 : x->starts[r], b = none ? 0 : x->starts[r + 1];
    UNROLL for (int c = 0; c < PAIRS; c++) sum[r / 2 * PAIRS + c] = (v4i){a, a, b, b};
  }
  for (int p = 0; p < BLOCK / 8; p++) {
    v4i codes[TILE_ROWS / 2];
    UNROLL for (int r = 0; r < rows; r += 2) codes[r / 2] =
        *(const v4i_any *)(x->codes + code_at(2 * p, r, TILE_ROWS, DOT_SMMLA));
    UNROLL for (int c = 0; c < PAIRS; c++) { /* few operands at once: the sums fill the registers */
      v4i w = *(const v4i_any *)(wide + 2 * p * LPK_PANEL + 4 * c);
      UNROLL for (int r = 0; r < rows; r += 2) sum[r / 2 * PAIRS + c] =
          add_smmla(sum[r / 2 * PAIRS + c], codes[r / 2], w);
    }
  }
  UNROLL for (int r = 0; r < rows; r += 2) UNROLL for (int c = 0; c < PAIRS; c += 2) {
    v4i a = sum[r / 2 * PAIRS + c], b = sum[r / 2 * PAIRS + c + 1];
    v4i first = __builtin_shufflevector(a, b, 0, 1, 4, 5), second = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    UNROLL for (int i = 0; i < 4; i++) dot[r][2 * c + i] = first[i];
    UNROLL for (int i = 0; i < 4; i++) if (r + 1 < rows) dot[r + 1][2 * c + i] = second[i];
  }
}

/* acc[rows][cols] += the products of a block. `wide` and `scales` are at the column of the tile; `column` counts
 * vectors. */
INLINE void tile_block(v16 *acc, const form *f, const uint32_t *wide, const float *scales, const group_place *group,
                       const rounded_rows *x, int rows, int column, prefetch *ahead, int kind) {
  int cols = integer_cols(f->dot);
  v16i dot[2 * TILE_ROWS];
  if (kind == DOT_SMMLA)
    tile_products_pairs(dot, f, wide, x, rows);
  else
    tile_products(dot, f, wide, x, rows, kind);
  for (const char *end = ahead->at + ahead->bytes; ahead->at < end; ahead->at += 64)
    __builtin_prefetch(ahead->at);
  UNROLL for (int c = 0; c < cols; c++) UNROLL for (int r = 0; r < rows; r++) {
    int j = r * cols + c;
    v16 value = block_value(dot_sum(dot[j], kind), f, group, column + c, x->starts[r], kind),
        scale = load16(scales + c * LANES);
    acc[j] = less_minima(acc[j], f, group, column + c, x->starts[r]);
    acc[j] = add_scaled(acc[j], value, scale, x->scales[r], &f->q);
  }
}

/* Adds the products of `count` blocks, from `first` of the panel on, to part[rows][LPK_PANEL] at vector `column`. */
INLINE void tile_blocks(float *part, const integer_work *work, const form *f, const char *panel,
                        const rounded_rows *tile, int64_t first, int64_t count, int rows, int column, prefetch ahead,
                        int kind) {
  int cols = integer_cols(f->dot);
  v16 acc[2 * TILE_ROWS];
  UNROLL for (int j = 0; j < rows * cols; j++) acc[j] =
      first ? load16(part + j / cols * LPK_PANEL + j % cols * LANES) : splat(0);
  for (int64_t b = 0; b < count; b++) {
    rounded_rows x = rounded_unit(tile, 0, TILE_ROWS, first + b, &f->q, f->k, kind);
    const uint32_t *wide = work->wide + b * unit_steps(f, kind) * LPK_PANEL + column_words(column, kind);
    group_place group = find_block(panel, f, first + b).group;
    tile_block(acc, f, wide, work->scales + b * LPK_PANEL + column * LANES, &group, &x, rows, column, &ahead, kind);
  }
  UNROLL for (int j = 0; j < rows * cols; j++) store16(part + j / cols * LPK_PANEL + j % cols * LANES, acc[j]);
}

/* ---- GEMM by AMX ---- */

/* Numbers of tiles: the sums of 16 rows, or of 8, the codes of as many rows, and the words of a weight. */
#define SUMS 0
#define CODES 1
#define WORDS 2
#define LOW_SUMS 3
#define LOW_CODES 4

static const amx_shapes integer_shapes = {
    .palette = 1,
    .row_bytes = {AMX_ROW_BYTES, BLOCK, AMX_ROW_BYTES, AMX_ROW_BYTES, BLOCK},
    .rows = {AMX_ROWS, AMX_ROWS, BLOCK / 4, AMX_ROWS / 2, AMX_ROWS / 2},
};

/* Loads the codes of a block of 16 or 8 rows, and the words of 16 columns. */
INLINE void amx_load_block(const int32_t *codes, const uint32_t *wide, int rows) {
  if (rows == AMX_ROWS)
    AMX_LOAD(CODES, codes, BLOCK);
  else
    AMX_LOAD(LOW_CODES, codes, BLOCK);
  AMX_LOAD(WORDS, wide, LPK_PANEL * 4);
}

INLINE void amx_multiply_block(int rows, int kind) {
  if (rows == AMX_ROWS) {
    AMX_ZERO(SUMS);
    if (kind == DOT_TILES)
      AMX_SIGNED(SUMS, CODES, WORDS);
    else
      AMX_UNSIGNED(SUMS, CODES, WORDS);
  } else {
    AMX_ZERO(LOW_SUMS);
    if (kind == DOT_TILES)
      AMX_SIGNED(LOW_SUMS, LOW_CODES, WORDS);
    else
      AMX_UNSIGNED(LOW_SUMS, LOW_CODES, WORDS);
  }
}

INLINE void amx_store_sums(int32_t *to, int rows) {
  if (rows == AMX_ROWS)
    AMX_STORE(SUMS, to, AMX_ROW_BYTES);
  else
    AMX_STORE(LOW_SUMS, to, AMX_ROW_BYTES);
}

/* Blocks in the order in which they are multiplied: those of a stretch, for columns 0 .. 15 and then 16 .. 31 of each
 * tile of rows. */
typedef struct {
  const int32_t *codes; /* of the block */
  const uint32_t *wide;
  const int32_t *tile; /* codes of the tile's first block */
  int64_t left;        /* blocks of the tile and half from this one on */
  int half;
} amx_place;

/* Everything that the loop over a stretch reads. */
typedef struct {
  const integer_work *work;
  const char *panel;
  float *part;    /* sums of the rows */
  rounded_rows x; /* of the first tile's first block */
  int64_t tiles, first, count;
  prefetch ahead; /* what each block prefetches, until nothing is left */
  const char *end;
} amx_stretch;

enum { WORDS_OF_BLOCK = BLOCK / 4 * LPK_PANEL, CODES_OF_BLOCK = BLOCK / 4 * AMX_ROWS };

/* Moves on by one block; past the last it begins again, and its products are not used. */
INLINE void amx_advance(amx_place *at, const amx_stretch *s, const form *f) {
  at->codes += CODES_OF_BLOCK;
  at->wide += WORDS_OF_BLOCK;
  if (--at->left > 0) return;
  at->left = s->count;
  at->half = !at->half;
  if (!at->half) at->tile += block_count(f->k) * CODES_OF_BLOCK;
  if (at->tile == s->x.codes + s->tiles * block_count(f->k) * CODES_OF_BLOCK) at->tile = s->x.codes;
  at->codes = at->tile;
  at->wide = s->work->wide + at->half * LANES;
}

/* acc[first .. end] += the scaled sums of block `b` of a tile's rows. */
INLINE void amx_add_sums(v16 *acc, const int32_t *sums, const amx_stretch *s, const rounded_rows *x, const form *f,
                         int64_t b, int column, int first, int end, int kind) {
  group_place group = find_block(s->panel, f, s->first + b).group;
  v16 scale = load16(s->work->scales + b * LPK_PANEL + column * LANES);
  UNROLL for (int r = first; r < end; r++) {
    int64_t at = b * AMX_ROWS + r;
    v16i sum = (v16i)load16((const float *)sums + r * LANES);
    v16 value = block_value(sum, f, &group, column, x->starts[at], kind);
    acc[r] = less_minima(acc[r], f, &group, column, x->starts[at]);
    acc[r] = add_scaled(acc[r], value, scale, x->scales[at], &f->q);
  }
}

/* Adds the products of a stretch of blocks to the sums of some tiles of `rows` rows. The tiles are ahead of the floats,
 * so that these need not wait: while the sums of a block are scaled, those of the next are stored and those of the one
 * after it are computed. The order within the loop is the fastest of several that were measured. */
INLINE void amx_multiply_stretch(amx_stretch *s, const form *f, int rows, int kind) {
  _Alignas(64) int32_t sums[2][AMX_ROWS * LANES];
  amx_place next = {s->x.codes, s->work->wide, s->x.codes, s->count, 0};
  int64_t parity = 0;
  for (int i = 0; i < 2; i++) {
    if (i) amx_store_sums(sums[0], rows);
    amx_load_block(next.codes, next.wide, rows);
    amx_multiply_block(rows, kind);
    amx_advance(&next, s, f);
  }
  for (int64_t t = 0; t < 2 * s->tiles; t++) {
    int column = t % 2;
    float *part = s->part + t / 2 * AMX_ROWS * LPK_PANEL + column * LANES;
    rounded_rows x = rounded_tile(&s->x, t / 2 * AMX_ROWS, AMX_ROWS, 0, f->k, kind);
    v16 acc[AMX_ROWS];
    UNROLL for (int r = 0; r < rows; r++) acc[r] = s->first ? load16(part + r * LPK_PANEL) : splat(0);
    for (int64_t b = 0; b < s->count; b++, parity ^= 1) {
      amx_store_sums(sums[parity ^ 1], rows);
      amx_load_block(next.codes, next.wide, rows);
      amx_add_sums(acc, sums[parity], s, &x, f, b, column, 0, rows / 4, kind);
      amx_multiply_block(rows, kind);
      amx_add_sums(acc, sums[parity], s, &x, f, b, column, rows / 4, rows, kind);
      amx_advance(&next, s, f);
      for (const char *end = s->ahead.at + s->ahead.bytes; s->ahead.at < end; s->ahead.at += 64)
        __builtin_prefetch(s->ahead.at);
      if (s->ahead.at >= s->end) s->ahead.bytes = 0;
    }
    UNROLL for (int r = 0; r < rows; r++) store16(part + r * LPK_PANEL, acc[r]);
  }
}

/* ---- the whole product ---- */

/* Sets the sums of a block to the product of its rows and of weight panel `half` of one or two; after the last it
 * writes the result. It works in stretches of k, so that the decoded weights stay in L1. */
INLINE void gemm_panel(const integer_work *work, const linear *l, const form *f, const rounded_rows *x,
                       const result_block *block, int64_t half, int kind) {
  int64_t blocks = unit_count(f), most = stretch_blocks(kind), panels = f->gated ? 2 : 1;
  const char *at = (const char *)l->w + (panels * block->panel + half) * panel_bytes(&f->q, f->k);
  for (int64_t b0 = 0; b0 < blocks; b0 += most) {
    int64_t count = min64(most, blocks - b0);
    const char *here = find_block(at, f, b0).group.head, *next = find_block(at, f, b0 + count).group.head;
    int64_t size = next - here; /* the next stretch is as long */
    decode_blocks(work, at, f, b0, count, kind);
    if (f->dot == LPK_DOT_AMX) {
      amx_stretch s = {.work = work, .panel = at, .first = b0, .count = count, .end = next + size};
      s.part = work->part + half * LPK_MC * LPK_PANEL;
      s.x = rounded_tile(x, block->row, AMX_ROWS, b0, f->k, kind);
      s.tiles = (block->rows + AMX_ROWS - 1) / AMX_ROWS;
      s.ahead = (prefetch){next, (size / (2 * s.tiles * count) + 63) / 64 * 64};
      if (block->rows > AMX_ROWS / 2)
        amx_multiply_stretch(&s, f, AMX_ROWS, kind);
      else
        amx_multiply_stretch(&s, f, AMX_ROWS / 2, kind);
      if (half == panels - 1 && b0 + count == blocks)
        finish_rows(l, f, work->part, sum_unit(&f->q), block, 0, block->rows);
      continue;
    }
    for (int64_t r = 0; r < block->rows; r += TILE_ROWS) {
      rounded_rows tile = rounded_tile(x, block->row + r, TILE_ROWS, 0, f->k, kind);
      float *to = work->part + (half * LPK_MC + r) * LPK_PANEL;
      int64_t bytes = count * block_steps(kind) * 64, past = r / TILE_ROWS * bytes;
      prefetch ahead = {next + past, past < size ? block_steps(kind) * 64 : 0};
      for (int c = 0; c < 2; c += integer_cols(f->dot))
        if (block->rows - r > TILE_ROWS / 2)
          tile_blocks(to + c * LANES, work, f, at, &tile, b0, count, TILE_ROWS, c, ahead, kind);
        else
          tile_blocks(to + c * LANES, work, f, at, &tile, b0, count, TILE_ROWS / 2, c, ahead, kind);
      if (half == panels - 1 && b0 + count == blocks)
        finish_rows(l, f, work->part, sum_unit(&f->q), block, r, TILE_ROWS);
    }
  }
}

INLINE integer_work integer_work_at(char *scratch) {
  integer_work work = {.wide = (uint32_t *)(void *)(scratch + LPK_PIECES_BYTES)};
  work.scales = (float *)(work.wide + LPK_KC / 2 * LPK_PANEL);
  work.part = work.scales + LPK_KC / 16 * LPK_PANEL;
  return work;
}

/* Rounds tiles first .. last of the rows. */
INLINE void round_rows(const rounded_rows *x, const linear *l, const form *f, int64_t height, int64_t first,
                       int64_t last, int kind) {
  for (int64_t t = first; t < last; t++) {
    rounded_rows tile = rounded_tile(x, t * height, height, 0, f->k, kind);
    source_rows from = {l->x + t * height * l->ldx, l->ldx, min64(height, l->m - t * height), height, f->k};
    round_tile(&tile, &from, &f->q, kind);
  }
}

INLINE void integer_many(const linear *l, const form *f, char *scratch, lp_barrier *barrier, int64_t thread,
                         int64_t threads) {
  int kind = dot_kind(f->dot, f->q.bits, f->q.zeros, 1);
  int64_t height = tile_height(kind);
  int64_t tiles = (l->m + height - 1) / height, bytes = LPK_INTEGER_THREAD_BYTES(f->k);
  integer_work work = integer_work_at(scratch + thread * bytes);
  rounded_rows x = rounded_at(scratch + threads * bytes, tiles * height, f->k, kind);
  open_pieces(pieces_of(scratch, bytes, thread));
  round_rows(&x, l, f, height, share(tiles, thread, threads), share(tiles, thread + 1, threads), kind);
  lpk_barrier(barrier, threads);
  if (f->dot == LPK_DOT_AMX) amx_begin(&integer_shapes);
  for (int64_t i = 0; i < threads; i++) {
    int64_t owner = (thread + i) % threads;
    pieces *left = pieces_of(scratch, bytes, owner);
    gemm_share s = share_gemm(l->m, height, LPK_PANELS(f->n), owner, threads);
    for (int64_t n = take_piece(left); n < s.count; n = take_piece(left)) {
      result_block at = piece_at(&s, n);
      for (int64_t half = 0; half < (f->gated ? 2 : 1); half++)
        gemm_panel(&work, l, f, &x, &at, half, kind);
    }
  }
  if (f->dot == LPK_DOT_AMX) amx_end();
}

KERNEL void lpk_linear_integer(float *y, const float *x, const void *w, const float *bias, const float *residual,
                               int64_t m, int64_t ldx, int64_t ldy, const lpk_linear_form *f, void *scratch,
                               lp_barrier *barrier, int64_t thread, int64_t threads) {
  linear l = {y, x, w, bias, residual, 0, m, ldx, ldy};
  int64_t panels = LPK_PANELS(f->n), first = share(panels, thread, threads), last = share(panels, thread + 1, threads);
  if (m <= GEMV_ROWS)
    integer_few(&l, f, (char *)scratch + thread * LPK_INTEGER_THREAD_BYTES(f->k), first, last);
  else
    integer_many(&l, f, scratch, barrier, thread, threads);
}

/* Panels first .. last of at most LPK_MC rows. */
INLINE void integer_block(const linear *l, const form *f, char *scratch, int64_t first, int64_t last) {
  int kind = dot_kind(f->dot, f->q.bits, f->q.zeros, 1);
  int64_t height = tile_height(kind), tiles = (l->m + height - 1) / height;
  integer_work work = integer_work_at(scratch);
  rounded_rows x = rounded_at(scratch + LPK_INTEGER_THREAD_BYTES(f->k), tiles * height, f->k, kind);
  round_rows(&x, l, f, height, 0, tiles, kind);
  if (f->dot == LPK_DOT_AMX) amx_begin(&integer_shapes);
  for (int64_t panel = first; panel < last; panel++) {
    result_block at = {0, l->m, panel};
    for (int64_t half = 0; half < (f->gated ? 2 : 1); half++)
      gemm_panel(&work, l, f, &x, &at, half, kind);
  }
  if (f->dot == LPK_DOT_AMX) amx_end();
}

KERNEL void lpk_experts_integer(float *y, const float *x, const void *w, const float *bias, const int64_t *index,
                                int64_t m, int64_t experts, int64_t shared, const lpk_linear_form *f, void *scratch,
                                int64_t thread, int64_t threads) {
  int64_t bytes = LPK_EXPERTS_THREAD_BYTES(LPK_INTEGER_SCRATCH(LPK_MC, f->k, 1), f->k), first, last;
  mixture rows = {x, index, m, experts, shared};
  clear_outside(y, &rows, f->n, thread, threads);
  char *own = (char *)scratch + thread * bytes;
  expert_walk walk =
      walk_experts(&rows, f, own, order_of(&rows, (char *)scratch + threads * bytes, thread), bytes, thread, threads);
  linear l = {y, x, w, bias, 0, 0, 0, f->k, f->n};
  while (next_rows(&walk, &l, &rows, w, bias, panel_bytes(&f->q, f->k), f, &first, &last))
    if (l.m <= GEMV_ROWS)
      integer_few(&l, f, own, first, last);
    else
      integer_block(&l, f, own, first, last);
}
