/* Attention over the KV cache with an online softmax (Dao et al., FlashAttention-2, 2023, Algorithm 1). A unit of
 * work is a block of query rows that share a KV head. Its keys are split into stretches (split-K). Their number
 * depends on the number of keys only, and their sums are added in order, so the result is the same to the bit
 * whichever thread computes a stretch. For few rows: dot products with the cache's rows. For many: K is transposed
 * block by block, and both products run in register tiles. */
#include "backend/cpu/kernels/math/vector_math.h"
#include "backend/cpu/kernels/tile.h"

enum { ROWS = LPK_ATTENTION_ROWS, KEYS = LPK_ATTENTION_KEYS, FEW_ROWS = 8 };
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

/* A thread's scratch. Padded columns of q, and rows up to the tile's height, are zero. */
typedef struct {
  float *q;                 /* [ROWS][LPK_ROUND16(d)], scaled */
  float *s;                 /* [ROWS][KEYS] scores, then probabilities */
  float *o;                 /* [ROWS][LPK_ROUND16(dv)] */
  float *max, *sum, *decay; /* [ROWS] of the online softmax; decay: the share of o that remains at the new maximum */
  float *k, *v;             /* [KEYS][..] padded copies, where head sizes or a short block need them */
  float *kt;                /* [LPK_ROUND16(d)][KEYS] */
} attention_work;

/* A block of query rows. Row r belongs to position r / group and to head r % group of the KV head's group. */
typedef struct {
  int64_t batch, kv_head, row, rows;
} query_block;

INLINE attention_work carve(const attention *a, float *scratch, int64_t thread) {
  int64_t dp = LPK_ROUND16(a->d), vp = LPK_ROUND16(a->dv);
  attention_work w;
  w.q = scratch + thread * LPK_ATTENTION_THREAD_FLOATS(a->d, a->dv);
  w.s = w.q + ROWS * dp;
  w.o = w.s + ROWS * KEYS;
  w.max = w.o + ROWS * vp;
  w.sum = w.max + ROWS;
  w.decay = w.sum + ROWS;
  w.k = w.max + ROWS * 16;
  w.kt = w.k + KEYS * dp;
  w.v = w.kt + KEYS * dp;
  return w;
}

/* Keys that query position `pos` sees: lo .. hi. */
INLINE int64_t first_key(const attention *a, int64_t pos) {
  return a->window ? max64(0, a->p + pos + 1 - a->window) : 0;
}
INLINE int64_t last_key(const attention *a, int64_t pos) {
  return a->causal ? a->p + pos + 1 : a->p + a->s;
}

INLINE int64_t group_size(const attention *a) {
  return a->heads / a->kv_heads;
}

/* `first`: no other chunk of the keys precedes this one, so it adds the sinks. */
INLINE void load_queries(const attention *a, const attention_work *w, const query_block *u, int first) {
  int64_t dp = LPK_ROUND16(a->d), group = group_size(a);
  int64_t padded = min64(ROWS, (u->rows + 11) / 12 * 12);
  for (int64_t r = 0; r < padded; r++) {
    int64_t row = u->row + r, pos = row / group, head = u->kv_head * group + row % group;
    float *to = w->q + r * dp;
    if (r >= u->rows || dp != a->d) memset(to, 0, (size_t)dp * sizeof *to);
    const float *from = a->q + u->batch * a->qs[0] + pos * a->qs[1] + head * a->qs[2];
    for (int64_t i = 0; r < u->rows && i < a->d; i++)
      to[i] = from[i] * a->scale;
    w->max[r] = a->sinks && first ? a->sinks[head] : LOWEST;
    w->sum[r] = a->sinks && first ? 1 : 0;
    w->decay[r] = 0;
  }
  memset(w->o, 0, (size_t)(padded * LPK_ROUND16(a->dv)) * sizeof *w->o);
  memset(w->s, 0, (size_t)(padded * KEYS) * sizeof *w->s);
}

/* A row of 16-bit floats as f32. */
INLINE void widen_row(float *to, const void *row, int64_t at, int64_t size, int dtype) {
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES)
    store16(to + i, load_weight(row, at + i, dtype));
  for (; i < size; i++)
    to[i] = dtype == LPK_F16 ? (float)((const _Float16 *)row)[at + i] : bf16_value(((const uint16_t *)row)[at + i]);
}

/* `keys` rows of a cache from element `at`, as f32 [KEYS][padded] with zeros after them; the cache itself if it has
 * that form. */
INLINE const float *padded_rows(float *copy, const void *cache, int64_t at, int64_t size, int64_t keys, int whole,
                                int dtype) {
  int64_t padded = LPK_ROUND16(size);
  const float *rows = (const float *)cache + at;
  if (dtype == LPK_F32 && size == padded && (!whole || keys == KEYS)) return rows;
  for (int64_t t = 0; t < (whole ? KEYS : keys); t++) {
    if (t >= keys || size != padded) memset(copy + t * padded, 0, (size_t)padded * sizeof *copy);
    if (t < keys && dtype == LPK_F32) memcpy(copy + t * padded, rows + t * size, (size_t)size * sizeof *copy);
    if (t < keys && dtype != LPK_F32) widen_row(copy + t * padded, cache, at + t * size, size, dtype);
  }
  return copy;
}

/* ---- scores ---- */

INLINE v16 dot_row(const float *q, const float *k, int64_t size) {
  v16 acc = splat(0);
  for (int64_t i = 0; i < size; i += LANES)
    acc += load16(q + i) * load16(k + i);
  return acc;
}

/* Sixteen dot products of q with rows of K, as many side by side as registers allow. */
INLINE v16 dot_rows(const float *q, const float *k, int64_t size, int isa) {
  int count = isa == LPK_ISA_AVX512 ? 16 : 4;
  v16 dots[16];
  UNROLL for (int j = 0; j < 16; j += count) {
    v16 acc[16];
    UNROLL for (int n = 0; n < count; n++) acc[n] = splat(0);
    for (int64_t i = 0; i < size; i += LANES) {
      v16 part = load16(q + i);
      UNROLL for (int n = 0; n < count; n++) acc[n] += part * load16(k + (j + n) * size + i);
    }
    UNROLL for (int n = 0; n < count; n++) dots[j + n] = acc[n];
  }
  return sum_lanes16(dots);
}

/* Scores of few rows: dot products with 16 rows of K at a time, while the next rows come from memory. */
INLINE void score_few(const attention_work *w, int64_t rows, const float *k, int64_t size, int64_t keys, int isa) {
  for (int64_t t = 0; t < keys; t += LANES) {
    for (int64_t i = 0; i < size; i++)
      __builtin_prefetch(k + (t + LANES) * size + i * LANES);
    for (int64_t r = 0; r < rows; r++) {
      const float *q = w->q + r * size, *from = k + t * size;
      float *to = w->s + r * KEYS + t;
      if (t + LANES <= keys)
        store16(to, dot_rows(q, from, size, isa));
      else
        for (int64_t i = 0; i < keys - t; i++)
          to[i] = sum_lanes(dot_row(q, from + i * size, size));
    }
  }
}

INLINE void transpose_keys(float *kt, const float *k, int64_t size) {
  for (int64_t i = 0; i < size; i += LANES)
    for (int64_t t = 0; t < KEYS; t += LANES) {
      v16 x[16];
      UNROLL for (int j = 0; j < 16; j++) x[j] = load16(k + (t + j) * size + i);
      transpose16(x);
      UNROLL for (int j = 0; j < 16; j++) store16(kt + (i + j) * KEYS + t, x[j]);
    }
}

/* Number of keys of block t0 that the last of rows r .. r + height sees. */
INLINE int64_t tile_keys(const attention *a, const query_block *u, int64_t r, int height, int64_t t0, int64_t keys) {
  int64_t row = u->row + min64(r + height, u->rows) - 1;
  return min64(keys, last_key(a, row / group_size(a)) - t0);
}

INLINE void score_many(const attention *a, const attention_work *w, const query_block *u, int64_t t0, int64_t keys) {
  int height = tile_rows(a->isa), cols = tile_cols(a->isa);
  int64_t dp = LPK_ROUND16(a->d);
  for (int64_t r = 0; r < u->rows; r += height) {
    int64_t seen = tile_keys(a, u, r, height, t0, keys);
    for (int64_t t = 0; t < seen; t += cols * LANES) {
      tile_operands o = {w->q + r * dp, dp, 1, w->kt + t, KEYS, dp, 0, 0};
      tile_update(w->s + r * KEYS + t, KEYS, 0, 1, height, cols, &o);
    }
  }
}

/* ---- softmax ---- */

INLINE void add_mask(const attention *a, float *s, const query_block *u, int64_t pos, int64_t head, int64_t t0,
                     int64_t keys) {
  const float *mask = a->mask + u->batch * a->ms[0] + head * a->ms[1] + pos * a->ms[2] + t0 * a->ms[3];
  int64_t step = a->ms[3];
  if (step == 1)
    for (int64_t i = 0; i < keys; i++)
      s[i] += mask[i];
  else
    for (int64_t i = 0; i < keys; i++)
      s[i] += mask[i * step];
}

/* Turns a row of scores into probabilities relative to the running maximum. lo, hi: the visible keys, counted from the
 * block. */
INLINE void softmax_row(float *s, float *max, float *sum, float *decay, int64_t lo, int64_t hi) {
  static const v16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  v16 x[KEYS / LANES], top = splat(*max);
  int whole = lo <= 0 && hi >= KEYS;
  UNROLL for (int i = 0; i < KEYS / LANES; i++) {
    x[i] = load16(s + i * LANES);
    if (!whole) {
      v16 at = lane + (float)(i * LANES);
      x[i] = at < (float)hi ? x[i] : splat(-__builtin_inff());
      x[i] = at < (float)lo ? splat(-__builtin_inff()) : x[i];
    }
    top = max16(top, x[i]);
  }
  float new_max = max_lanes(top);
  v16 total = splat(0);
  UNROLL for (int i = 0; i < KEYS / LANES; i++) {
    v16 p = vector_exp_negative(x[i] - new_max);
    total += p;
    store16(s + i * LANES, p);
  }
  *decay = scalar_exp_negative(*max - new_max);
  *sum = *sum * *decay + sum_lanes(total);
  *max = new_max;
}

INLINE void softmax_rows(const attention *a, const attention_work *w, const query_block *u, int64_t t0, int64_t keys) {
  int64_t group = group_size(a);
  for (int64_t r = 0; r < u->rows; r++) {
    float *s = w->s + r * KEYS;
    int64_t pos = (u->row + r) / group;
    if (a->softcap != 0)
      for (int i = 0; i < KEYS; i += LANES)
        store16(s + i, vector_tanh(load16(s + i) * (1 / a->softcap)) * a->softcap);
    if (a->mask) add_mask(a, s, u, pos, u->kv_head * group + (u->row + r) % group, t0, keys);
    int64_t hi = max64(0, min64(keys, last_key(a, pos) - t0)), lo = min64(KEYS, max64(0, first_key(a, pos) - t0));
    softmax_row(s, w->max + r, w->sum + r, w->decay + r, lo, hi);
  }
}

/* ---- context ---- */

/* o = decay * o + probabilities . V, in tiles of `height` rows. */
INLINE void add_context(const attention_work *w, int64_t r, int height, int cols, const float *v, int64_t size,
                        int64_t keys) {
  int64_t c = 0, span = cols * LANES;
  tile_operands t = {w->s + r * KEYS, KEYS, 1, v, size, keys, 0, 0};
  for (; c + span <= size; c += span, t.b += span)
    tile_update(w->o + r * size + c, size, w->decay + r, 0, height, cols, &t);
  for (; c < size; c += LANES, t.b += LANES)
    tile_update(w->o + r * size + c, size, w->decay + r, 0, height, 1, &t);
}

INLINE void attend_block(const attention *a, const attention_work *w, const query_block *u, int64_t t0, int64_t keys) {
  int64_t dp = LPK_ROUND16(a->d), vp = LPK_ROUND16(a->dv), head = u->batch * a->kv_heads + u->kv_head;
  int64_t k_at = (head * a->c + t0) * a->d, v_at = (head * a->c + t0) * a->dv;
  const float *v = padded_rows(w->v, a->v, v_at, a->dv, keys, 0, a->dtype);
  if (u->rows <= FEW_ROWS) {
    score_few(w, u->rows, padded_rows(w->k, a->k, k_at, a->d, keys, 0, a->dtype), dp, keys, a->isa);
    softmax_rows(a, w, u, t0, keys);
    for (int64_t r = 0; r < u->rows; r++)
      add_context(w, r, 1, 4, v, vp, keys);
    return;
  }
  transpose_keys(w->kt, padded_rows(w->k, a->k, k_at, a->d, keys, 1, a->dtype), dp);
  score_many(a, w, u, t0, keys);
  softmax_rows(a, w, u, t0, keys);
  int height = tile_rows(a->isa);
  for (int64_t r = 0; r < u->rows; r += height)
    add_context(w, r, height, tile_cols(a->isa), v, vp, max64(0, tile_keys(a, u, r, height, t0, keys)));
}

/* ---- a stretch of keys ---- */

/* The keys of a unit: blocks from key `lo` on; the last block ends at `hi`. */
typedef struct {
  int64_t lo, hi, blocks, stretches;
} key_range;

INLINE key_range keys_of(const attention *a, const query_block *u) {
  int64_t group = group_size(a), lo = first_key(a, u->row / group), hi = last_key(a, (u->row + u->rows - 1) / group);
  int64_t blocks = max64(0, hi - lo + KEYS - 1) / KEYS;
  return (key_range){lo, hi, blocks, max64(1, min64(LPK_ATTENTION_STRETCHES, blocks / 2))};
}

INLINE void attend(const attention *a, const attention_work *w, const query_block *u, const key_range *keys,
                   int64_t stretch) {
  int64_t end = min64(keys->hi, keys->lo + share(keys->blocks, stretch + 1, keys->stretches) * KEYS);
  load_queries(a, w, u, stretch == 0);
  for (int64_t t = keys->lo + share(keys->blocks, stretch, keys->stretches) * KEYS; t < end; t += KEYS)
    attend_block(a, w, u, t, min64(KEYS, end - t));
}

/* A stretch's result is [ROWS][vp + 16], maximum and sum after a row's values. */
INLINE int64_t partial_row(const attention *a) {
  return LPK_ROUND16(a->dv) + LANES;
}

INLINE void write_partial(const attention *a, const attention_work *w, const query_block *u, float *partial) {
  int64_t vp = LPK_ROUND16(a->dv);
  for (int64_t r = 0; r < u->rows; r++) {
    float *to = partial + r * partial_row(a);
    memcpy(to, w->o + r * vp, (size_t)vp * sizeof *to);
    to[vp] = w->max[r];
    to[vp + 1] = w->sum[r];
  }
}

/* Adds a row of a later stretch to the sum of those before it. */
INLINE void add_row(float *to, const float *o, float max, float sum, int64_t vp) {
  float most = max > to[vp] ? max : to[vp];
  float kept = scalar_exp_negative(to[vp] - most), weight = scalar_exp_negative(max - most);
  for (int64_t i = 0; i < vp; i += LANES)
    store16(to + i, load16(to + i) * kept + load16(o + i) * weight);
  to[vp] = most;
  to[vp + 1] = to[vp + 1] * kept + sum * weight;
}

INLINE void write_row(const attention *a, const query_block *u, int64_t r, const float *o, float sum) {
  int64_t row = u->row + r, group = group_size(a), head = u->kv_head * group + row % group;
  float *y = a->y + u->batch * a->ys[0] + row / group * a->ys[1] + head * a->ys[2];
  float factor = sum > 0 ? 1 / sum : 0;
  for (int64_t i = 0; i < a->dv; i++)
    y[i] = o[i] * factor;
}

/* Adds stretch `i` of a unit of which this thread has all stretches; `sums` holds one result. */
INLINE void add_stretch(const attention *a, const attention_work *w, const query_block *u, int64_t i, float *sums) {
  int64_t vp = LPK_ROUND16(a->dv);
  if (i == 0)
    write_partial(a, w, u, sums);
  else
    for (int64_t r = 0; r < u->rows; r++)
      add_row(sums + r * partial_row(a), w->o + r * vp, w->max[r], w->sum[r], vp);
}

INLINE void write_rows(const attention *a, const attention_work *w, const query_block *u, const float *sums,
                       int several) {
  int64_t vp = LPK_ROUND16(a->dv), row = partial_row(a);
  for (int64_t r = 0; r < u->rows; r++)
    write_row(a, u, r, several ? sums + r * row : w->o + r * vp, several ? sums[r * row + vp + 1] : w->sum[r]);
}

/* ---- work division ---- */

INLINE int64_t row_blocks(const attention *a) {
  return (a->s * group_size(a) + ROWS - 1) / ROWS;
}

/* Unit `index`, the longest (last positions) first. */
INLINE query_block unit_at(const attention *a, int64_t index) {
  int64_t pairs = a->b * a->kv_heads, block = row_blocks(a) - 1 - index / pairs;
  query_block u = {index % pairs / a->kv_heads, index % a->kv_heads, block * ROWS, 0};
  u.rows = min64(ROWS, a->s * group_size(a) - u.row);
  return u;
}

/* Threads share the blocks of all units evenly. A stretch belongs to the thread that has its first block. */
typedef struct {
  int64_t units, blocks, threads;
} division;

INLINE division divide(const attention *a, int64_t threads) {
  division d = {row_blocks(a) * a->b * a->kv_heads, 0, threads};
  int64_t pairs = a->b * a->kv_heads;
  for (int64_t i = 0; i < d.units; i += pairs) {
    query_block u = unit_at(a, i);
    d.blocks += keys_of(a, &u).blocks * pairs;
  }
  return d;
}

/* The thread that computes a stretch. `before` is the number of blocks before the unit of the stretch. */
INLINE int64_t thread_of(const division *d, int64_t before, const key_range *keys, int64_t stretch) {
  int64_t block = before + share(keys->blocks, stretch, keys->stretches);
  return d->blocks ? min64(d->threads - 1, block * d->threads / d->blocks) : 0;
}

/* The place of a stretch's result if several threads share the unit: with the thread of the stretch's first block. It
 * is the last unit of that thread, so no other result is there. */
INLINE float *slot_of(const attention *a, float *partials, int64_t owner, int64_t stretch) {
  return partials + (owner * (LPK_ATTENTION_STRETCHES + 1) + stretch) * LPK_ATTENTION_PARTIAL_FLOATS(a->dv);
}

INLINE void attend_unit(const attention *a, const attention_work *w, const division *d, int64_t index, int64_t before,
                        float *partials, int64_t thread) {
  query_block u = unit_at(a, index);
  key_range keys = keys_of(a, &u);
  int64_t first = thread_of(d, before, &keys, 0), last = thread_of(d, before, &keys, keys.stretches - 1);
  int whole = first == last, several = keys.stretches > 1;
  float *sums = slot_of(a, partials, thread, LPK_ATTENTION_STRETCHES);
  if (thread < first || thread > last) return;
  for (int64_t i = 0; i < keys.stretches; i++) {
    if (thread_of(d, before, &keys, i) != thread) continue;
    attend(a, w, &u, &keys, i);
    if (!whole)
      write_partial(a, w, &u, slot_of(a, partials, first, i));
    else if (several)
      add_stretch(a, w, &u, i, sums);
  }
  if (whole) write_rows(a, w, &u, sums, several);
}

/* Combines row r of a unit that several threads computed. */
INLINE void combine_row(const attention *a, const query_block *u, int64_t r, float *partial, int64_t stretches) {
  int64_t vp = LPK_ROUND16(a->dv), step = LPK_ATTENTION_PARTIAL_FLOATS(a->dv);
  float *to = partial + r * partial_row(a);
  for (int64_t i = 1; i < stretches; i++)
    add_row(to, to + i * step, to[i * step + vp], to[i * step + vp + 1], vp);
  write_row(a, u, r, to, to[vp + 1]);
}

INLINE void combine(const attention *a, const division *d, float *partials, int64_t thread) {
  for (int64_t i = 0, before = 0, at = 0; i < d->units; i++) {
    query_block u = unit_at(a, i);
    key_range keys = keys_of(a, &u);
    int64_t first = thread_of(d, before, &keys, 0), last = thread_of(d, before, &keys, keys.stretches - 1);
    for (int64_t r = 0; first != last && r < u.rows; r++, at++)
      if (at % d->threads == thread) combine_row(a, &u, r, slot_of(a, partials, first, 0), keys.stretches);
    before += keys.blocks;
  }
}

INLINE void attention_run(const attention *a, float *scratch, lp_barrier *barrier, int64_t thread, int64_t threads) {
  attention_work w = carve(a, scratch, thread);
  /* [thread][stretch, or the thread's own] */
  float *partials = scratch + threads * LPK_ATTENTION_THREAD_FLOATS(a->d, a->dv);
  division d = divide(a, threads);
  int64_t most = 1;
  for (int64_t i = 0, before = 0; i < d.units; i++) {
    query_block u = unit_at(a, i);
    key_range keys = keys_of(a, &u);
    attend_unit(a, &w, &d, i, before, partials, thread);
    before += keys.blocks;
    most = max64(most, keys.stretches);
  }
  if (most == 1 || threads == 1) return;
  lpk_barrier(barrier, threads);
  combine(a, &d, partials, thread);
}

KERNEL void lpk_attention(float *y, const float *q, const void *k_cache, const void *v_cache, const float *mask,
                          const float *sinks, const int64_t *ys, const int64_t *qs, const int64_t *ms, int64_t b,
                          int64_t s, int64_t p, int64_t c, int64_t heads, int64_t kv_heads, int64_t d, int64_t dv,
                          float scale, float softcap, int causal, int64_t window, int dtype, int isa, void *scratch,
                          lp_barrier *barrier, int64_t thread, int64_t threads) {
  attention a = {y, q,     k_cache,  v_cache, mask, sinks, ys,      qs,     ms,  b,     s,     p,
                 c, heads, kv_heads, d,       dv,   scale, softcap, causal, isa, dtype, window};
  attention_run(&a, scratch, barrier, thread, threads);
}
