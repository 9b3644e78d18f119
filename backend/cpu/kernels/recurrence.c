/* Linear attention (ONNX LinearAttention-27): a state per KV head that every token decays, corrects and reads.
 * Columns of the state are independent, so 16 of them are a unit of work. A unit takes the tokens in order. */
#include "backend/cpu/kernels/math/vector_math.h"

typedef struct {
  float *y, *state;
  const float *q, *k, *v, *past, *decay, *beta;
  int64_t rows, tokens, heads, kv_heads, d, dv;
  float scale;
  int per_key, betas; /* decay: one per element of a key, not per head; betas per token */
} recurrence;

INLINE v16 load_columns(const float *x, int64_t count) {
  return count == LANES ? load16(x) : load_part(x, count);
}

INLINE void store_columns(float *y, v16 v, int64_t count) {
  if (count == LANES)
    store16(y, v);
  else
    store_part(y, v, count);
}

/* S = exp(g) S; returns the columns that the key selects in it. */
INLINE v16 decay_and_find(const recurrence *r, float *state, const float *k, const float *decay, int64_t count) {
  v16 found = splat(0);
  float factor = decay && !r->per_key ? lpk_exp(decay[0]) : 1;
  for (int64_t i = 0; i < r->d; i++) {
    v16 row = load_columns(state + i * r->dv, count);
    if (decay) {
      row *= splat(r->per_key ? lpk_exp(decay[i]) : factor);
      store_columns(state + i * r->dv, row, count);
    }
    found += row * splat(k[i]);
  }
  return found;
}

/* Token `token` of KV head `head`, columns c .. c + count of its state. */
INLINE void step(const recurrence *r, int64_t token, int64_t head, float *state, int64_t c, int64_t count) {
  int64_t group = r->heads / r->kv_heads, at = token * r->kv_heads + head;
  const float *k = r->k + at * r->d, *decay = r->decay ? r->decay + at * (r->per_key ? r->d : 1) : 0;
  v16 wanted = load_columns(r->v + at * r->dv + c, count), found = decay_and_find(r, state, k, decay, count);
  if (r->beta) wanted = (wanted - found) * splat(r->beta[token * r->betas + (r->betas == 1 ? 0 : head)]);
  for (int64_t i = 0; i < r->d; i++)
    store_columns(state + i * r->dv, load_columns(state + i * r->dv, count) + wanted * splat(k[i]), count);
  for (int64_t h = head * group; h < (head + 1) * group; h++) {
    const float *q = r->q + (token * r->heads + h) * r->d;
    v16 sum = splat(0);
    for (int64_t i = 0; i < r->d; i++)
      sum += load_columns(state + i * r->dv, count) * splat(q[i]);
    store_columns(r->y + (token * r->heads + h) * r->dv + c, sum * splat(r->scale), count);
  }
}

/* The same where a head has one query and nothing is corrected: one pass over the state. */
INLINE void scan(const recurrence *r, int64_t token, int64_t head, float *state, int64_t c, int64_t count) {
  int64_t at = token * r->kv_heads + head;
  const float *k = r->k + at * r->d, *q = r->q + at * r->d;
  const float *decay = r->decay ? r->decay + at * (r->per_key ? r->d : 1) : 0;
  v16 wanted = load_columns(r->v + at * r->dv + c, count), sum = splat(0);
  float factor = decay && !r->per_key ? lpk_exp(decay[0]) : 1;
  for (int64_t i = 0; i < r->d; i++) {
    if (decay && r->per_key) factor = lpk_exp(decay[i]);
    v16 row = load_columns(state + i * r->dv, count) * splat(factor) + wanted * splat(k[i]);
    store_columns(state + i * r->dv, row, count);
    sum += row * splat(q[i]);
  }
  store_columns(r->y + at * r->dv + c, sum * splat(r->scale), count);
}

INLINE void begin(const recurrence *r, float *state, int64_t from, int64_t count) {
  if (r->tokens > 0) return;
  for (int64_t i = 0; i < r->d; i++)
    store_columns(state + i * r->dv, r->past ? load_columns(r->past + from + i * r->dv, count) : splat(0), count);
}

KERNEL void lpk_linear_attention(float *y, float *state, const float *q, const float *k, const float *v,
                                 const float *past, const float *decay, const float *beta, int64_t b, int64_t rows,
                                 int64_t tokens, int64_t heads, int64_t kv_heads, int64_t d, int64_t dv, float scale,
                                 int per_key, int betas, int64_t thread, int64_t threads) {
  recurrence r = {y, state, q, k, v, past, decay, beta, rows, tokens, heads, kv_heads, d, dv, scale, per_key, betas};
  int64_t blocks = (dv + LANES - 1) / LANES, units = b * kv_heads * blocks;
  for (int64_t u = share(units, thread, threads); u < share(units, thread + 1, threads); u++) {
    int64_t c = u % blocks * LANES, head = u / blocks % kv_heads, batch = u / blocks / kv_heads;
    int64_t count = min64(LANES, dv - c), from = (batch * kv_heads + head) * d * dv + c;
    begin(&r, state + from, from, count);
    for (int64_t t = batch * rows; t < (batch + 1) * rows; t++) {
      if (beta || heads != kv_heads)
        step(&r, t, head, state + from, c, count);
      else if (count == LANES)
        scan(&r, t, head, state + from, c, LANES);
      else
        scan(&r, t, head, state + from, c, count);
    }
  }
}

KERNEL void lpk_carry_columns(float *y, float *last, const float *x, int64_t rows, int64_t s, int64_t tokens, int64_t n,
                              int64_t thread, int64_t threads) {
  for (int64_t row = share(rows, thread, threads); row < share(rows, thread + 1, threads); row++) {
    float *to = y + row * (n + s), *keep = last + row * n;
    for (int64_t i = 0; i < n; i++)
      to[i] = tokens > 0 ? keep[i] : 0;
    for (int64_t i = 0; i < s; i++)
      to[n + i] = x[row * s + i];
    for (int64_t i = 0; i < n; i++)
      keep[i] = to[s + i];
  }
}
