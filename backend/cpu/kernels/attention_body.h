/* Attention over the KV cache with an online softmax (Dao et al., FlashAttention-2, 2023, Algorithm 1). A unit of work
 * is a block of query rows that share a KV head. Each block of keys is brought into the form of the products once, and
 * all rows of the unit pass it in register tiles: scores, softmax, sum of the values (attention_tile.h).
 *
 * A row's result depends on its position, its q and the cache only, to the bit. Blocks and stretches of keys begin at
 * fixed positions, sums are taken in the order of the keys, and a key that a row does not see adds an exact zero. So
 * neither the threads nor the rows beside it change it: a prompt in parts, drafts and single tokens give the same.
 *
 * Included once for each kernel: ATTENTION is its name, and PAIRS as in attention_tile.h. No include guard. */
#include "backend/cpu/kernels/attention_tile.h"
#include "backend/cpu/kernels/pieces.h"

/* Stretches begin at these positions; the first two are short, so that threads can share a short context. */
INLINE int64_t stretch_start(int64_t stretch) {
  return stretch < 2 ? stretch * (LPK_ATTENTION_STRETCH / 2) : (stretch - 1) * LPK_ATTENTION_STRETCH;
}
INLINE int64_t stretch_of(int64_t key) {
  int64_t half = key / (LPK_ATTENTION_STRETCH / 2);
  return half < 2 ? half : half / 2 + 1;
}

/* The keys lo .. hi of a unit, and its stretches. */
typedef struct {
  int64_t lo, hi, first, count;
} key_range;

INLINE key_range keys_of(const attention *a, const query_block *u) {
  int64_t group = group_size(a);
  int64_t lo = first_key(a, u->row / group), hi = last_key(a, (u->row + u->rows - 1) / group);
  key_range range = {lo, hi, stretch_of(lo), 0};
  range.count = hi > lo ? stretch_of(hi - 1) - range.first + 1 : 0;
  return range;
}

/* Computes stretch number `i` of the unit. */
INLINE void attend(const attention *a, const attention_work *w, const query_block *u, const key_range *keys,
                   int64_t i) {
  int64_t start = max64(stretch_start(keys->first + i), keys->lo / KEYS * KEYS);
  int64_t end = min64(stretch_start(keys->first + i + 1), keys->hi);
  begin_stretch(a, w, u);
  for (int64_t t = start; t < end; t += KEYS)
    attend_block(a, w, u, t, min64(KEYS, end - t), keys->hi);
}

/* ---- sums of stretches ---- */

/* A row's sum: its values, maximum and sum after them. */
INLINE int64_t partial_row(const attention *a) {
  return LPK_ROUND16(a->dv) + LANES;
}

/* Sets a row's sum to that of no key; only the sink counts. */
INLINE void begin_row(const attention *a, const query_block *u, int64_t r, float *to) {
  int64_t vp = LPK_ROUND16(a->dv), group = group_size(a);
  memset(to, 0, (size_t)vp * sizeof *to);
  to[vp] = a->sinks ? a->sinks[u->kv_head * group + (u->row + r) % group] : LOWEST;
  to[vp + 1] = a->sinks ? 1 : 0;
}

/* Adds a stretch. One that the row does not see changes no bit. The multiplications and additions are fused explicitly:
 * otherwise LLVM chooses for each caller which product it rounds. */
INLINE void add_row(float *to, const float *o, float max, float sum, int64_t vp) {
  float most = max > to[vp] ? max : to[vp];
  float kept = scalar_exp_negative(to[vp] - most), weight = scalar_exp_negative(max - most);
  for (int64_t i = 0; i < vp; i += LANES)
    store16(to + i, __builtin_elementwise_fma(load16(to + i), splat(kept), load16(o + i) * splat(weight)));
  to[vp] = most;
  to[vp + 1] = __builtin_elementwise_fma(to[vp + 1], kept, sum * weight);
}

/* The place of row r's statistics. */
INLINE int64_t lane_of(const query_block *u, int64_t r) {
  return r / u->height * LANES + r % u->height;
}

INLINE void write_row(const attention *a, const query_block *u, int64_t r, const float *o, float sum) {
  int64_t row = u->row + r, group = group_size(a), head = u->kv_head * group + row % group;
  float *y = a->y + u->batch * a->ys[0] + row / group * a->ys[1] + head * a->ys[2];
  float factor = sum > 0 ? 1 / sum : 0;
  for (int64_t i = 0; i < a->dv; i++)
    y[i] = o[i] * factor;
}

/* ---- work division ---- */

/* The work: units of at most `rows` rows. Where each has only one tile (`few`), threads share the units' stretches,
 * which are items of work in order; otherwise they take whole units, the longest first. */
typedef struct {
  int64_t rows, units, thread, threads;
  int few;
  pieces *left; /* of all threads */
} division;

/* Rows of a unit: fewer than ROWS where threads would have none. */
INLINE int64_t unit_rows(const attention *a, int64_t threads) {
  int64_t rows = a->s * group_size(a), height = full_height(a), each = rows * a->b * a->kv_heads / (4 * threads);
  return threads == 1 ? ROWS : max64(height, min64(ROWS, (each + height - 1) / height * height));
}

INLINE division divide(const attention *a, void *scratch, int64_t thread, int64_t threads) {
  int64_t rows = a->s * group_size(a);
  division d = {ROWS, 0, thread, threads, rows <= full_height(a), pieces_of(scratch, 0, 0)};
  if (!d.few) d.rows = unit_rows(a, threads);
  d.units = (rows + d.rows - 1) / d.rows * a->b * a->kv_heads;
  return d;
}

/* The unit that the thread looks at after unit `last`; -1: the first. */
INLINE int64_t next_unit(const division *d, int64_t last) {
  return d->few ? last + 1 : take_piece(d->left);
}

/* Unit `index`, the longest (last positions) first. */
INLINE query_block unit_at(const attention *a, const division *d, int64_t index) {
  int64_t pairs = a->b * a->kv_heads, block = (d->units - 1 - index) / pairs;
  query_block u = {index % pairs / a->kv_heads, index % a->kv_heads, block * d->rows, 0, full_height(a)};
  u.rows = min64(d->rows, a->s * group_size(a) - u.row);
  if (u.rows == group_size(a) && u.rows < u.height) u.height = (int)u.rows;
  return u;
}

/* The stretches of a unit that the thread computes, and the thread that has the first. */
typedef struct {
  int64_t from, to, owner;
  int whole;
} part;

INLINE part part_of(const division *d, int64_t unit, int64_t stretches) {
  int64_t each = max64(1, stretches), items = d->units * each, at = unit * each;
  if (!d->few) return (part){0, each, d->thread, 1};
  part p = {max64(0, share(items, d->thread, d->threads) - at),
            min64(each, share(items, d->thread + 1, d->threads) - at), ((at + 1) * d->threads - 1) / items, 0};
  p.whole = share(items, p.owner + 1, d->threads) >= at + each;
  return p;
}

/* The place of the result of stretch `i` of a unit that several threads share: with the thread of the first. It is the
 * last unit of that thread, so no other result is there. */
INLINE float *slot_of(const attention *a, float *slots, int64_t owner, int64_t i) {
  int64_t count = LPK_ATTENTION_SLOTS(max64(0, a->p + a->s));
  return slots + (owner * count + i) * LPK_ATTENTION_SLOT_FLOATS(a->dv);
}

INLINE void write_partial(const attention *a, const attention_work *w, const query_block *u, float *slot) {
  int64_t vp = LPK_ROUND16(a->dv);
  for (int64_t r = 0; r < u->rows; r++) {
    float *to = slot + r * partial_row(a);
    memcpy(to, w->o + r * vp, (size_t)vp * sizeof *to);
    to[vp] = w->max[lane_of(u, r)];
    to[vp + 1] = w->sum[lane_of(u, r)];
  }
}

/* Computes the thread's part of a unit. */
INLINE void attend_unit(const attention *a, const attention_work *w, const query_block *u, const key_range *keys,
                        const part *p, float *slots) {
  int64_t vp = LPK_ROUND16(a->dv), row = partial_row(a);
  int several = a->sinks || keys->count != 1;
  load_queries(a, w, u);
  for (int64_t r = 0; several && r < u->rows; r++)
    begin_row(a, u, r, w->total + r * row);
  for (int64_t i = p->from; i < p->to; i++) {
    attend(a, w, u, keys, i);
    if (!p->whole) write_partial(a, w, u, slot_of(a, slots, p->owner, i));
    for (int64_t r = 0; p->whole && several && r < u->rows; r++)
      add_row(w->total + r * row, w->o + r * vp, w->max[lane_of(u, r)], w->sum[lane_of(u, r)], vp);
  }
  for (int64_t r = 0; p->whole && r < u->rows; r++) {
    const float *total = w->total + r * row;
    write_row(a, u, r, several ? total : w->o + r * vp, several ? total[vp + 1] : w->sum[lane_of(u, r)]);
  }
}

/* Combines row r of a unit that several threads computed. */
INLINE void combine_row(const attention *a, const attention_work *w, const query_block *u, int64_t r, const float *slot,
                        int64_t stretches) {
  int64_t vp = LPK_ROUND16(a->dv);
  begin_row(a, u, r, w->total);
  for (int64_t i = 0; i < stretches; i++) {
    const float *from = slot + i * LPK_ATTENTION_SLOT_FLOATS(a->dv) + r * partial_row(a);
    add_row(w->total, from, from[vp], from[vp + 1], vp);
  }
  write_row(a, u, r, w->total, w->total[vp + 1]);
}

INLINE void combine(const attention *a, const attention_work *w, const division *d, float *slots) {
  for (int64_t n = 0, at = 0; n < d->units; n++) {
    query_block u = unit_at(a, d, n);
    key_range keys = keys_of(a, &u);
    part p = part_of(d, n, keys.count);
    for (int64_t r = 0; !p.whole && r < u.rows; r++, at++)
      if (at % d->threads == d->thread) combine_row(a, w, &u, r, slot_of(a, slots, p.owner, 0), keys.count);
  }
}

KERNEL void ATTENTION(float *y, const float *q, const void *k_cache, const void *v_cache, const float *mask,
                      const float *sinks, const int64_t *ys, const int64_t *qs, const int64_t *ms, int64_t b, int64_t s,
                      int64_t p, int64_t c, int64_t heads, int64_t kv_heads, int64_t d, int64_t dv, float scale,
                      float softcap, int causal, int64_t window, int dtype, int isa, void *scratch, lp_barrier *barrier,
                      int64_t thread, int64_t threads) {
  attention a = {y, q,     k_cache,  v_cache, mask, sinks, ys,      qs,     ms,  b,     s,     p,
                 c, heads, kv_heads, d,       dv,   scale, softcap, causal, isa, dtype, window};
  attention_work w = carve(&a, scratch, thread);
  division all = divide(&a, scratch, thread, threads);
  float *slots = (float *)scratch + threads * LPK_ATTENTION_THREAD_FLOATS(d, dv);
  int shared = 0;
  if (!all.few) {
    if (thread == 0) open_pieces(all.left);
    lpk_barrier(barrier, threads);
  }
  for (int64_t n = next_unit(&all, -1); n < all.units; n = next_unit(&all, n)) {
    query_block u = unit_at(&a, &all, n);
    key_range keys = keys_of(&a, &u);
    part own = part_of(&all, n, keys.count);
    shared |= !own.whole;
    if (own.from < own.to) attend_unit(&a, &w, &u, &keys, &own, slots);
  }
  if (!shared) return;
  lpk_barrier(barrier, threads);
  combine(&a, &w, &all, slots);
}
