/* A block of keys in attention (attention_body.h), and the rows of a unit that pass it: scores, softmax, and the sum of
 * values, in register tiles. PAIRS says whether q, k, v and the probabilities are rounded to bf16 and multiplied in
 * pairs. It is a macro, so that a module for targets without that arithmetic never names its instructions, whatever is
 * optimised. No include guard. */
#include "backend/cpu/kernels/attention_cache.h"
#include "backend/cpu/kernels/math/vector_math.h"
#include "backend/cpu/kernels/pairs.h"

enum {
  ROWS = LPK_ATTENTION_ROWS,
  KEYS = LPK_ATTENTION_KEYS,
  MOST_HEIGHT = LPK_ATTENTION_SLOT_ROWS, /* of a tile */
  KEY_STEP = PAIRS ? 2 * LANES : LANES,  /* elements that fill a vector, or a vector of pairs */
  AHEAD_BYTES = 16384                    /* most from a row of the cache to what is prefetched with it */
};
#define LOWEST (-__FLT_MAX__)

typedef struct {
  float *y;
  const float *q;
  const void *k, *v;
  const float *mask, *sinks;
  const int64_t *ys, *qs, *ms;
  int64_t b, s, p, c, heads, kv_heads, d, dv;
  float scale, softcap;
  int causal, isa, dtype; /* dtype: of k and v */
  int64_t window;
} attention;

/* A thread's scratch. With PAIRS, q, s, k and v hold words of two bf16 that follow each other along
 * the inner dimension of the product. */
typedef struct {
  float *q;                 /* [ROWS][LPK_ROUND16(d)], scaled; zero past d and past the unit's rows */
  float *s;                 /* [MOST_HEIGHT][KEYS] scores of a tile, then its probabilities */
  float *o;                 /* [ROWS][LPK_ROUND16(dv)] */
  float *max, *sum;         /* [tiles][LANES] of the online softmax, a lane for each row of a tile */
  float *total;             /* [ROWS][partial_row] sums of the stretches */
  float *k;                 /* [LPK_ROUND16(d)][KEYS], pairs: half as many rows */
  float *v;                 /* [KEYS][LPK_ROUND16(dv)], pairs: half as many rows */
  int64_t ahead_k, ahead_v; /* bytes from a row of the cache to what is prefetched with it: a row of the unit */
} attention_work;

/* A block of query rows. Row r belongs to position r / group and to head r % group of the KV head's group. */
typedef struct {
  int64_t batch, kv_head, row, rows;
  int height; /* of its tiles */
} query_block;

/* A block of keys from position t0 on. */
typedef struct {
  int64_t t0, keys;
} key_block;

INLINE attention_work carve(const attention *a, float *scratch, int64_t thread) {
  int64_t dp = LPK_ROUND16(a->d), vp = LPK_ROUND16(a->dv);
  attention_work w;
  w.q = scratch + thread * LPK_ATTENTION_THREAD_FLOATS(a->d, a->dv) + LPK_PIECES_BYTES / 4;
  w.s = w.q + ROWS * dp;
  w.o = w.s + MOST_HEIGHT * KEYS;
  w.max = w.o + ROWS * vp;
  w.sum = w.max + ROWS * 4;
  w.total = w.sum + ROWS * 4;
  w.k = w.total + ROWS * (vp + LANES);
  w.v = w.k + KEYS * dp;
  return w;
}

/* Keys that query position `pos` sees: first .. last. */
INLINE int64_t first_key(const attention *a, int64_t pos) {
  return a->window ? max64(0, a->p + pos + 1 - a->window) : 0;
}
INLINE int64_t last_key(const attention *a, int64_t pos) {
  return a->causal ? a->p + pos + 1 : a->p + a->s;
}

INLINE int64_t group_size(const attention *a) {
  return a->heads / a->kv_heads;
}

/* Rows of a tile that fills the registers. */
INLINE int full_height(const attention *a) {
  return a->isa == LPK_ISA_AVX512 ? 12 : 6;
}

/* Vectors side by side in a tile of `height` rows. */
INLINE int tile_width(const attention *a, int height) {
  int most = (a->isa == LPK_ISA_AVX512 ? 24 : 6) / height;
  return most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

/* The number of vectors of values side by side; a row of the result has at least as many. */
INLINE int context_width(const attention *a, int height) {
  int64_t most = LPK_ROUND16(a->dv) / LANES;
  int width = tile_width(a, height);
  return most >= width ? width : most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

/* Steps of the product of q and k: elements, or pairs of them. */
INLINE int64_t inner_steps(const attention *a) {
  return PAIRS ? (a->d + 1) / 2 : a->d;
}

/* ---- loading ---- */

/* Does the same with 32 elements as pairs. */
INLINE v16w cache_pairs(const void *cache, int64_t at, int64_t count, int dtype) {
  if (dtype == LPK_BF16 && count >= 2 * LANES) return *(const v16w_any *)((const uint16_t *)cache + at);
  return round_pairs(cache_floats(cache, at, count, dtype), cache_floats(cache, at + LANES, count - LANES, dtype));
}

INLINE void load_queries(const attention *a, const attention_work *w, const query_block *u) {
  int64_t dp = LPK_ROUND16(a->d), group = group_size(a);
  int64_t padded = (u->rows + u->height - 1) / u->height * u->height;
  for (int64_t r = 0; r < padded; r++) {
    int64_t row = u->row + r, pos = row / group, head = u->kv_head * group + row % group;
    const float *from = a->q + u->batch * a->qs[0] + pos * a->qs[1] + head * a->qs[2];
    float *to = w->q + r * dp;
    for (int64_t i = 0; i < a->d; i += KEY_STEP) {
      int64_t count = r < u->rows ? a->d - i : 0;
      v16 lo = cache_floats(from, i, count, LPK_F32) * splat(a->scale);
      if (PAIRS)
        *(v16w_any *)(to + i / 2) =
            round_pairs(lo, cache_floats(from, i + LANES, count - LANES, LPK_F32) * splat(a->scale));
      else
        store16(to + i, lo);
    }
  }
}

INLINE void begin_stretch(const attention *a, const attention_work *w, const query_block *u) {
  int64_t tiles = (u->rows + u->height - 1) / u->height;
  for (int64_t i = 0; i < tiles * LANES; i++) {
    w->max[i] = LOWEST;
    w->sum[i] = 0;
  }
  memset(w->o, 0, (size_t)(tiles * u->height * LPK_ROUND16(a->dv)) * sizeof *w->o);
}

/* The number of the block's row t, or of the last one after it; `whole`: there is one. */
INLINE int64_t row_at(int64_t t, int64_t keys, int whole) {
  return whole ? t : min64(t, keys - 1);
}

/* x[j] = elements (or pairs) i + j of 16 rows of K from row t on, one in each lane. `k` is the block's first row. */
INLINE void transpose_keys(v16 *x, const attention *a, const attention_work *w, const char *k, int64_t t, int64_t i,
                           int64_t keys, int whole) {
  int64_t bytes = cache_row(a->d, a->dtype);
  UNROLL for (int j = 0; j < 16; j++) {
    const char *row = k + row_at(t + j, keys, whole) * bytes;
    __builtin_prefetch(row + cache_offset(i, a->dtype) + w->ahead_k);
    x[j] = PAIRS ? (v16)cache_pairs(row, i, a->d - i, a->dtype) : cache_floats(row, i, a->d - i, a->dtype);
  }
  transpose16(x);
}

INLINE void load_key_group(const attention *a, const attention_work *w, const char *k, int64_t t, int64_t keys,
                           int whole) {
  for (int64_t i = 0; i < a->d; i += KEY_STEP) {
    v16 x[16];
    float *to = w->k + (PAIRS ? i / 2 : i) * KEYS + t;
    transpose_keys(x, a, w, k, t, i, keys, whole);
    UNROLL for (int j = 0; j < 16; j++) store16(to + j * KEYS, x[j]);
  }
}

/* Transposes a block of keys. Columns past them repeat the last key, or keep what they held: no row sees them. */
INLINE void load_keys(const attention *a, const attention_work *w, const char *k, int64_t keys) {
  int64_t t = 0;
  for (; t + LANES <= keys; t += LANES)
    load_key_group(a, w, k, t, keys, 1);
  if (t < keys) load_key_group(a, w, k, t, keys, 0);
}

/* 16 values of two keys as pairs along the keys. */
INLINE v16w join_values(const void *first, const void *second, int64_t at, int64_t count, int dtype) {
  if (dtype == LPK_BF16 && count >= LANES)
    return __builtin_convertvector(*(const v16s_any *)((const uint16_t *)first + at), v16w) |
           __builtin_convertvector(*(const v16s_any *)((const uint16_t *)second + at), v16w) << 16;
  return join_halves(cache_floats(first, at, count, dtype), cache_floats(second, at, count, dtype));
}

INLINE void load_value_pair(const attention *a, const attention_work *w, const char *v, int64_t t, int64_t keys,
                            int whole) {
  int64_t vp = LPK_ROUND16(a->dv), bytes = cache_row(a->dv, a->dtype);
  const char *first = v + row_at(t, keys, whole) * bytes, *second = v + row_at(t + 1, keys, whole) * bytes;
  UNROLL for (int64_t c = 0; c < vp; c += LANES) {
    __builtin_prefetch(first + cache_offset(c, a->dtype) + w->ahead_v);
    __builtin_prefetch(second + cache_offset(c, a->dtype) + w->ahead_v);
    *(v16w_any *)(w->v + t / 2 * vp + c) = join_values(first, second, c, a->dv - c, a->dtype);
  }
}

/* Brings the block's values into the form of the product, w->v. Rows past them, which probabilities of zero multiply,
 * repeat the last one. */
INLINE void load_values(const attention *a, const attention_work *w, const char *v, int64_t keys) {
  int64_t vp = LPK_ROUND16(a->dv), bytes = cache_row(a->dv, a->dtype), t = 0;
  if (PAIRS) {
    for (; t + 2 <= keys; t += 2)
      load_value_pair(a, w, v, t, keys, 1);
    for (; t < (keys + 31) / 32 * 32; t += 2)
      load_value_pair(a, w, v, t, keys, 0);
    return;
  }
  for (; t < keys; t++)
    UNROLL for (int64_t c = 0; c < vp; c += LANES) {
      const char *row = v + t * bytes;
      __builtin_prefetch(row + cache_offset(c, a->dtype) + w->ahead_v);
      store16(w->v + t * vp + c, cache_floats(row, c, a->dv - c, a->dtype));
    }
}

/* ---- products ---- */

INLINE v16 add_product(v16 sum, v16 b, v16w a) {
  return PAIRS ? add_pair(sum, (v16w)b, a) : __builtin_elementwise_fma((v16)a, b, sum);
}

/* acc[rows][cols] += a[rows][k] . b[k][16 cols], k elements or pairs, in order. All sizes but k should be constants. */
INLINE void multiply(v16 *acc, int rows, int cols, const float *a, int64_t a_row, const float *b, int64_t b_row,
                     int64_t k) {
  for (int64_t i = 0; i < k; i++) {
    v16 bv[8];
    UNROLL for (int c = 0; c < cols; c++) bv[c] = load16(b + i * b_row + c * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      v16w av = (v16w)((const uint32_t *)a)[r * a_row + i];
      UNROLL for (int c = 0; c < cols; c++) acc[r * cols + c] = add_product(acc[r * cols + c], bv[c], av);
    }
  }
}

/* s = q . k for rows r .. r + height and the first `columns` keys. */
INLINE void score_tile(const attention *a, const attention_work *w, int64_t r, int height, int64_t columns) {
  int cols = tile_width(a, height);
  int64_t dp = LPK_ROUND16(a->d);
  for (int64_t t = 0; t < columns; t += cols * LANES) {
    v16 acc[24];
    UNROLL for (int j = 0; j < height * cols; j++) acc[j] = splat(0);
    multiply(acc, height, cols, w->q + r * dp, dp, w->k + t, KEYS, inner_steps(a));
    UNROLL for (int j = 0; j < height * cols; j++) store16(w->s + j / cols * KEYS + t + j % cols * LANES, acc[j]);
  }
}

/* Columns c .. c + 16 cols of o = decay * o + probabilities . v. */
INLINE void add_columns(const attention *a, const attention_work *w, int64_t r, int height, int cols, int64_t c,
                        const float *decay, int64_t steps) {
  int64_t vp = LPK_ROUND16(a->dv);
  float *o = w->o + r * vp + c;
  v16 acc[24];
  UNROLL for (int j = 0; j < height * cols; j++) acc[j] =
      load16(o + j / cols * vp + j % cols * LANES) * splat(decay[j / cols]);
  multiply(acc, height, cols, w->s, KEYS, w->v + c, vp, steps);
  UNROLL for (int j = 0; j < height * cols; j++) store16(o + j / cols * vp + j % cols * LANES, acc[j]);
}

INLINE void add_context(const attention *a, const attention_work *w, int64_t r, int height, const float *decay,
                        int64_t steps) {
  int cols = tile_width(a, height);
  int64_t c = 0, vp = LPK_ROUND16(a->dv);
  for (; c + cols * LANES <= vp; c += cols * LANES)
    add_columns(a, w, r, height, cols, c, decay, steps);
  for (; c < vp; c += LANES)
    add_columns(a, w, r, height, 1, c, decay, steps);
}

/* ---- products with the cache itself, for the rows of one tile ---- */

/* Scores of `groups` times 16 keys from row t on. A sum of one row is a chain of additions; two groups hide its
 * latency. */
INLINE void score_groups(const attention *a, const attention_work *w, int height, int groups, const char *k, int64_t t,
                         int64_t keys, int whole) {
  int64_t dp = LPK_ROUND16(a->d);
  v16 acc[2 * MOST_HEIGHT];
  UNROLL for (int r = 0; r < groups * height; r++) acc[r] = splat(0);
  for (int64_t i = 0; i < a->d; i += KEY_STEP)
    UNROLL for (int g = 0; g < groups; g++) {
      v16 x[16];
      const uint32_t *q = (const uint32_t *)w->q + (PAIRS ? i / 2 : i);
      transpose_keys(x, a, w, k, t + g * LANES, i, keys, whole);
      UNROLL for (int j = 0; j < 16; j++) UNROLL for (int r = 0; r < height; r++) acc[g * height + r] =
          add_product(acc[g * height + r], x[j], (v16w)q[r * dp + j]);
    }
  UNROLL for (int g = 0; g < groups; g++) UNROLL for (int r = 0; r < height; r++)
      store16(w->s + r * KEYS + t + g * LANES, acc[g * height + r]);
}

/* Does what load_keys and score_tile do. */
INLINE void score_cache(const attention *a, const attention_work *w, int height, const char *k, int64_t keys,
                        int64_t columns) {
  int64_t t = 0;
  for (; height == 1 && t + 2 * LANES <= keys; t += 2 * LANES)
    score_groups(a, w, height, 2, k, t, keys, 1);
  for (; t + LANES <= keys; t += LANES)
    score_groups(a, w, height, 1, k, t, keys, 1);
  for (; t < columns; t += LANES)
    score_groups(a, w, height, 1, k, t, keys, 0);
}

/* Step i of the sum of values: key i, or keys 2 i and 2 i + 1. */
INLINE void add_values(v16 *acc, const attention *a, const attention_work *w, int height, int cols, const char *v,
                       int64_t c, int64_t i, int whole) {
  int64_t bytes = cache_row(a->dv, a->dtype);
  const char *first = v + (PAIRS ? 2 * i : i) * bytes, *second = first + (whole ? bytes : 0);
  UNROLL for (int n = 0; n < cols; n++) {
    int64_t at = c + n * LANES;
    __builtin_prefetch(first + cache_offset(at, a->dtype) + w->ahead_v);
    if (PAIRS) __builtin_prefetch(second + cache_offset(at, a->dtype) + w->ahead_v);
    v16 x = PAIRS ? (v16)join_values(first, second, at, a->dv - at, a->dtype)
                  : cache_floats(first, at, a->dv - at, a->dtype);
    UNROLL for (int r = 0; r < height; r++) acc[r * cols + n] =
        add_product(acc[r * cols + n], x, (v16w)((const uint32_t *)w->s)[r * KEYS + i]);
  }
}

INLINE void add_cache_columns(const attention *a, const attention_work *w, int height, int cols, int64_t c,
                              const float *decay, const char *v, int64_t keys) {
  int64_t vp = LPK_ROUND16(a->dv);
  float *o = w->o + c;
  v16 acc[24];
  UNROLL for (int j = 0; j < height * cols; j++) acc[j] =
      load16(o + j / cols * vp + j % cols * LANES) * splat(decay[j / cols]);
  for (int64_t i = 0; i < (PAIRS ? keys / 2 : keys); i++)
    add_values(acc, a, w, height, cols, v, c, i, 1);
  if (PAIRS && keys % 2) add_values(acc, a, w, height, cols, v, c, keys / 2, 0);
  UNROLL for (int j = 0; j < height * cols; j++) store16(o + j / cols * vp + j % cols * LANES, acc[j]);
}

/* Does what load_values and add_context do. */
INLINE void add_cache(const attention *a, const attention_work *w, int height, const float *decay, const char *v,
                      int64_t keys) {
  int cols = context_width(a, height);
  int64_t c = 0, vp = LPK_ROUND16(a->dv);
  for (; c + cols * LANES <= vp; c += cols * LANES)
    add_cache_columns(a, w, height, cols, c, decay, v, keys);
  for (; c < vp; c += LANES)
    add_cache_columns(a, w, height, 1, c, decay, v, keys);
}

/* ---- softmax ---- */

/* 16 values of a mask from key t on; those past its `count` are zero. */
INLINE v16 load_mask(const float *mask, int64_t step, int64_t count) {
  float lanes[LANES] = {0};
  if (step == 1 && count >= LANES) return load16(mask);
  for (int64_t i = 0; i < min64(LANES, count); i++)
    lanes[i] = mask[i * step];
  return load16(lanes);
}

/* Finishes the scores of row r: cap, mask, and minus infinity for keys outside lo .. hi, which count from the block.
 * Returns the greatest in each lane. */
INLINE v16 finish_scores(const attention *a, float *s, const query_block *u, int64_t row, const key_block *block,
                         int64_t columns) {
  static const v16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  int64_t group = group_size(a), pos = row / group, head = u->kv_head * group + row % group;
  int64_t hi = min64(block->keys, last_key(a, pos) - block->t0), lo = first_key(a, pos) - block->t0;
  const float *mask = a->mask;
  if (mask) mask += u->batch * a->ms[0] + head * a->ms[1] + pos * a->ms[2] + block->t0 * a->ms[3];
  v16 top = splat(LOWEST);
  for (int64_t i = 0; i < columns; i += LANES) {
    v16 x = load16(s + i);
    if (a->softcap != 0) x = vector_tanh(x * splat(1 / a->softcap)) * splat(a->softcap);
    if (mask) x += load_mask(mask + i * a->ms[3], a->ms[3], block->keys - i);
    if (lo > i || hi < i + LANES) {
      v16 at = lane + splat((float)i);
      x = at < splat((float)hi) ? x : splat(-__builtin_inff());
      x = at < splat((float)lo) ? splat(-__builtin_inff()) : x;
    }
    if (a->softcap != 0 || mask || lo > i || hi < i + LANES) store16(s + i, x);
    top = max16(top, x);
  }
  return top;
}

/* Turns a row of scores into probabilities relative to `most`. Returns their sum in each lane. */
INLINE v16 exp_scores(float *s, float most, int64_t columns) {
  v16 total = splat(0);
  for (int64_t i = 0; i < columns; i += 2 * LANES) {
    v16 x = load16(s + i) - splat(most), y = load16(s + i + LANES) - splat(most);
    x = PAIRS ? vector_exp_rough(x) : vector_exp_negative(x);
    y = PAIRS ? vector_exp_rough(y) : vector_exp_negative(y);
    total = (total + x) + y;
    if (PAIRS) {
      *(v16w_any *)(s + i / 2) = round_pairs(x, y);
    } else {
      store16(s + i, x);
      store16(s + i + LANES, y);
    }
  }
  return total;
}

/* The sum of the lanes in the order of fold_lanes16. */
INLINE float sum_lanes_alike(v16 v) {
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return (v.s0 + v.s4) + (v.s8 + v.sc);
}

/* Below this height rows are reduced one by one, which takes fewer shuffles than all 16 together. */
enum { FEW_ROWS = 6 };

/* Lane i: the greatest element of rows[i], or LOWEST past `height`. */
INLINE v16 max_of_rows(const v16 *rows, int height) {
  if (height >= FEW_ROWS) return fold_lanes16(rows, FOLD_MAX);
  v16 max = splat(LOWEST);
  UNROLL for (int i = 0; i < height; i++) max[i] = max_lanes(rows[i]);
  return max;
}

/* Lane i: the sum of rows[i], or 0 past `height`. */
INLINE v16 sum_of_rows(const v16 *rows, int height) {
  if (height >= FEW_ROWS) return fold_lanes16(rows, FOLD_SUM);
  v16 sum = splat(0);
  UNROLL for (int i = 0; i < height; i++) sum[i] = sum_lanes_alike(rows[i]);
  return sum;
}

/* Turns the scores of a tile into probabilities and brings the rows' statistics up to date. decay[LANES]: the share of
 * o that remains at the new maximum. */
INLINE void softmax_tile(const attention *a, const attention_work *w, const query_block *u, int64_t r,
                         const key_block *block, int64_t columns, int height, float *decay) {
  v16 rows[LANES];
  float *max = w->max + r / height * LANES, *sum = w->sum + r / height * LANES, most[LANES];
  for (int i = 0; i < LANES; i++)
    rows[i] = splat(LOWEST);
  for (int i = 0; i < height; i++)
    rows[i] = finish_scores(a, w->s + i * KEYS, u, min64(u->row + r + i, u->row + u->rows - 1), block, columns);
  v16 new_max = max16(load16(max), max_of_rows(rows, height)), kept = vector_exp_negative(load16(max) - new_max);
  store16(most, new_max);
  for (int i = 0; i < LANES; i++)
    rows[i] = i < height ? exp_scores(w->s + i * KEYS, most[i], columns) : splat(0);
  store16(sum, __builtin_elementwise_fma(load16(sum), kept, sum_of_rows(rows, height)));
  store16(max, new_max);
  store16(decay, kept);
}

/* ---- a stretch of keys ---- */

INLINE void attend_tile(const attention *a, const attention_work *w, const query_block *u, int64_t r,
                        const key_block *block, int height) {
  int64_t group = group_size(a), first = (u->row + r) / group;
  int64_t last = (u->row + min64(r + height, u->rows) - 1) / group;
  int64_t seen = min64(block->keys, last_key(a, last) - block->t0), columns = (seen + 31) / 32 * 32;
  if (seen <= 0 || block->t0 + KEYS <= first_key(a, first)) return;
  float decay[LANES];
  score_tile(a, w, r, height, columns);
  softmax_tile(a, w, u, r, block, columns, height, decay);
  add_context(a, w, r, height, decay, PAIRS ? columns / 2 : seen);
}

/* A block of a unit that is one tile, of the heads of one position: nothing is used twice, so nothing is brought into
 * another form. */
INLINE void attend_position(const attention *a, const attention_work *w, const query_block *u, const key_block *block,
                            const char *k, const char *v) {
  int height = (int)group_size(a);
  int64_t columns = (block->keys + 31) / 32 * 32;
  float decay[LANES];
  score_cache(a, w, height, k, block->keys, columns);
  softmax_tile(a, w, u, 0, block, columns, height, decay);
  add_cache(a, w, height, decay, v, block->keys);
}

/* `end`: of the unit's keys. */
INLINE void attend_block(const attention *a, const attention_work *all, const query_block *u, int64_t t0, int64_t keys,
                         int64_t end) {
  int64_t row = (u->batch * a->kv_heads + u->kv_head) * a->c + t0;
  int64_t k_bytes = cache_row(a->d, a->dtype), v_bytes = cache_row(a->dv, a->dtype);
  const char *k = (const char *)a->k + row * k_bytes, *v = (const char *)a->v + row * v_bytes;
  key_block block = {t0, keys};
  attention_work here = *all, *w = &here;
  here.ahead_k = min64(AHEAD_BYTES, (end - t0 - keys) * k_bytes);
  here.ahead_v = min64(AHEAD_BYTES, (end - t0 - keys) * v_bytes);
  if (group_size(a) < full_height(a) && u->height == group_size(a)) {
    attend_position(a, w, u, &block, k, v);
    return;
  }
  load_keys(a, w, k, keys);
  load_values(a, w, v, keys);
  for (int64_t r = 0; r < u->rows; r += full_height(a))
    attend_tile(a, w, u, r, &block, full_height(a));
}
