#include "variants.h"

#define OUTER __attribute__((noinline))

#define LINEAR(i, n, k, dtype, act, gated, has_bias, has_residual)                                                     \
  OUTER void linear_##i(float *y, const float *x, const void *w, const float *bias, const float *residual, int64_t m,  \
                        int64_t ldx, int64_t ldy, void *scratch, lp_barrier *barrier, int64_t thread,                  \
                        int64_t threads) {                                                                             \
    (void)bias, (void)residual;                                                                                        \
    static const lpk_linear_form form = {n, k, dtype, act, gated, TEST_ISA, TEST_DOT, 0, {0, LPK_F32, 0, 0, 1}};       \
    lpk_linear(y, x, w, (has_bias) ? bias : 0, (has_residual) ? residual : 0, m, ldx, ldy, &form, scratch, barrier,    \
               thread, threads);                                                                                       \
  }
LINEAR_VARIANTS(LINEAR)

#define GROUPS(i, ...) DEFINE_GROUPS(groups_##i, lpk_linear, __VA_ARGS__)
#define INTEGER(i, ...) DEFINE_GROUPS(integer_##i, lpk_linear_integer, __VA_ARGS__)
GROUP_VARIANTS(GROUPS)
INTEGER_VARIANTS(INTEGER)

#define ATTENTION(...) DEFINE_ATTENTION(lpk_attention, __VA_ARGS__)
ATTENTION_VARIANTS(ATTENTION)

#define ROTARY(i, heads, d, rotary_dim, interleaved)                                                                   \
  OUTER void rotary_##i(float *y, const float *x, const float *cos, const float *sin, const int64_t *ys,               \
                        const int64_t *xs, int64_t table_batch, int64_t table_row, int64_t b, int64_t s,               \
                        int64_t thread, int64_t threads) {                                                             \
    lpk_rotary(y, x, cos, sin, ys, xs, table_batch, table_row, b, s, heads, d, rotary_dim, interleaved, thread,        \
               threads);                                                                                               \
  }                                                                                                                    \
  OUTER void append_##i(void *cache, const float *x, const float *cos, const float *sin, const int64_t *xs,            \
                        int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t p, int64_t c,            \
                        int64_t thread, int64_t threads) {                                                             \
    lpk_kv_append(cache, x, cos, sin, xs, table_batch, table_row, b, s, p, c, heads, d, rotary_dim, interleaved,       \
                  LPK_F32, thread, threads);                                                                           \
  }
ROTARY_VARIANTS(ROTARY)

#define APPEND(name, dtype)                                                                                            \
  OUTER void append_##name(void *cache, const float *x, const float *cos, const float *sin, const int64_t *xs,         \
                           int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t p, int64_t c,         \
                           int64_t thread, int64_t threads) {                                                          \
    lpk_kv_append(cache, x, cos, sin, xs, table_batch, table_row, b, s, p, c, 2, 24, 0, 0, dtype, thread, threads);    \
  }
APPEND(plain, LPK_F32)
APPEND(f16, LPK_F16)
APPEND(bf16, LPK_BF16)

#define NORM(i, n, rms, has_residual, has_sum, has_weight, has_bias)                                                   \
  OUTER void norm_##i(float *y, float *sum, const float *x, const float *residual, const float *weight,                \
                      const float *bias, int64_t rows, int64_t ldx, int64_t thread, int64_t threads) {                 \
    (void)sum, (void)residual, (void)weight, (void)bias;                                                               \
    lpk_norm(y, (has_sum) ? sum : 0, x, (has_residual) ? residual : 0, (has_weight) ? weight : 0,                      \
             (has_bias) ? bias : 0, rows, ldx, n, 1e-5f, rms, thread, threads);                                        \
  }
NORM_VARIANTS(NORM)

#define MATH(f)                                                                                                        \
  OUTER void math_##f(float *y, const float *x, int64_t n) {                                                           \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      y[i] = lpk_##f(x[i]);                                                                                            \
  }
MATH_FUNCTIONS(MATH)

OUTER void math_pow(float *y, const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = lpk_pow(a[i], b[i]);
}

OUTER void softmax_plain(float *y, const float *x, int64_t rows, int64_t n, int64_t thread, int64_t threads) {
  lpk_softmax(y, x, rows, n, 0, thread, threads);
}
OUTER void softmax_log(float *y, const float *x, int64_t rows, int64_t n, int64_t thread, int64_t threads) {
  lpk_softmax(y, x, rows, n, 1, thread, threads);
}

OUTER void reduce(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, int kind, int dtype, int64_t thread,
                  int64_t threads) {
#define CASE(k)                                                                                                        \
  case k:                                                                                                              \
    if (dtype == LPK_F32)                                                                                              \
      lpk_reduce(y, x, outer, n, inner, k, LPK_F32, thread, threads);                                                  \
    else                                                                                                               \
      lpk_reduce(y, x, outer, n, inner, k, LPK_I64, thread, threads);                                                  \
    break;
  switch (kind) {
    CASE(LPK_REDUCE_SUM)
    CASE(LPK_REDUCE_MEAN)
    CASE(LPK_REDUCE_MAX)
    CASE(LPK_REDUCE_MIN)
    CASE(LPK_REDUCE_PROD)
    CASE(LPK_REDUCE_SUMSQ)
    CASE(LPK_REDUCE_L1)
    CASE(LPK_REDUCE_L2)
    CASE(LPK_REDUCE_LOGSUM)
    CASE(LPK_REDUCE_LOGSUMEXP)
  default:
    break;
  }
}

OUTER void argmax(int64_t *y, const float *x, int64_t outer, int64_t n, int64_t inner, int min, int last,
                  int64_t thread, int64_t threads) {
  lpk_argmax(y, x, outer, n, inner, min, last, thread, threads);
}
OUTER void topk_f32(float *y, int64_t *place, const float *x, int64_t n, int64_t k, int min) {
  lpk_topk(y, place, x, 1, n, 1, k, min, LPK_F32, 0, 0, 1);
}
OUTER void cumsum(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, int exclusive, int reverse,
                  int dtype, int64_t thread, int64_t threads) {
  lpk_cumsum(y, x, outer, n, inner, exclusive, reverse, dtype, thread, threads);
}
OUTER void matmul(float *c, const float *a, const float *b, const int64_t *dims, const lpk_matrix *cs,
                  const lpk_matrix *as, const lpk_matrix *bs, int64_t m, int64_t n, int64_t k, int rank, float alpha,
                  void *scratch, int64_t thread, int64_t threads) {
  lpk_matmul(c, a, b, dims, cs, as, bs, m, n, k, rank, alpha, TEST_ISA, scratch, thread, threads);
}
OUTER void embed(float *y, const void *table, const void *index, int64_t count, int64_t vocab, int64_t width, int dtype,
                 int64_t thread, int64_t threads) {
  if (dtype == LPK_F16)
    lpk_embed(y, table, index, count, vocab, width, LPK_F16, LPK_I64, thread, threads);
  else if (dtype == LPK_BF16)
    lpk_embed(y, table, index, count, vocab, width, LPK_BF16, LPK_I64, thread, threads);
  else
    lpk_embed(y, table, index, count, vocab, width, LPK_F32, LPK_I64, thread, threads);
}
OUTER void embed_groups(float *y, const void *table, const void *index, int64_t count, int64_t vocab, int64_t width,
                        int form, int64_t thread, int64_t threads) {
  static const lpk_groups bytes = {8, LPK_F16, 0, 0, 32}, nibbles = {4, LPK_F16, 0, 0, 32},
                          blocks = {6, LPK_I8, 0, 16, 16}, minima = {5, LPK_U8, LPK_MINIMA, 8, 32},
                          doubles = {5, LPK_BF16, LPK_DOUBLES, 0, 32}, uneven = {8, LPK_I8, LPK_UNEVEN, 8, 32};
  const lpk_groups *const forms[] = {&bytes, &nibbles, &blocks, &minima, &doubles, &uneven};
#define EMBED(i)                                                                                                       \
  if (form == i) lpk_embed_groups(y, table, index, count, vocab, width, forms[i], LPK_I64, thread, threads);
  EMBED(0) EMBED(1) EMBED(2) EMBED(3) EMBED(4) EMBED(5)
}
#define RECURRENCE(i, heads, kv_heads, d, dv, has_past, has_decay, per_key, betas)                                     \
  OUTER void recurrence_##i(float *y, float *state, const float *q, const float *k, const float *v, const float *past, \
                            const float *decay, const float *beta, int64_t b, int64_t rows, int64_t tokens,            \
                            int64_t thread, int64_t threads) {                                                         \
    lpk_linear_attention(y, state, q, k, v, (has_past) ? past : 0, (has_decay) ? decay : 0, (betas) ? beta : 0, b,     \
                         rows, tokens, heads, kv_heads, d, dv, 0.5f, per_key, betas, thread, threads);                 \
  }
RECURRENCE_VARIANTS(RECURRENCE)
OUTER void carry_columns(float *y, float *last, const float *x, int64_t rows, int64_t s, int64_t tokens, int64_t thread,
                         int64_t threads) {
  lpk_carry_columns(y, last, x, rows, s, tokens, 3, thread, threads);
}
OUTER void gather(void *y, const void *x, const void *index, int64_t outer, int64_t axis, int64_t rows,
                  int64_t inner_bytes, int64_t count, int itype, int64_t thread, int64_t threads) {
  if (itype == LPK_I64)
    lpk_gather(y, x, index, outer, axis, rows, inner_bytes, count, LPK_I64, thread, threads);
  else
    lpk_gather(y, x, index, outer, axis, rows, inner_bytes, count, LPK_I32, thread, threads);
}
OUTER void gather_elements(void *y, const void *x, const void *index, const int64_t *dims, const int64_t *xdims,
                           int axis, int64_t thread, int64_t threads) {
  lpk_gather_elements(y, x, index, dims, xdims, 3, axis, 4, LPK_I64, thread, threads);
}
OUTER void scatter_elements(void *y, const void *x, const void *index, const void *updates, const int64_t *dims,
                            const int64_t *xdims, int axis, int reduction, lp_barrier *barrier, int64_t thread,
                            int64_t threads) {
  lpk_scatter_elements(y, x, index, updates, dims, xdims, 3, axis, 4, LPK_I64, reduction, LPK_F32, barrier, thread,
                       threads);
}
OUTER void scatter_nd(void *y, const void *x, const void *index, const void *updates, const int64_t *xdims,
                      int64_t count, int depth, int reduction, int64_t thread, int64_t threads) {
  lpk_scatter_nd(y, x, index, updates, xdims, count, 3, depth, 4, LPK_I64, reduction, LPK_F32, thread, threads);
}

#define COPY(size)                                                                                                     \
  OUTER void copy_##size(void *y, const void *x, const int64_t *dims, const int64_t *ys, const int64_t *xs,            \
                         int64_t thread, int64_t threads) {                                                            \
    lpk_copy(y, x, dims, ys, xs, 4, size, thread, threads);                                                            \
  }
COPY(1)
COPY(2)
COPY(4)
COPY(8)

OUTER void fill_4(void *y, int64_t count, uint64_t bits, int64_t thread, int64_t threads) {
  lpk_fill(y, count, bits, 4, thread, threads);
}
OUTER void range_f32(float *y, int64_t count, float start, float step, int64_t thread, int64_t threads) {
  lpk_range(y, count, start, step, thread, threads);
}
OUTER void range_i64(int64_t *y, int64_t count, int64_t start, int64_t step, int64_t thread, int64_t threads) {
  lpk_range_i64(y, count, start, step, thread, threads);
}
OUTER void barrier_wait(lp_barrier *barrier, int64_t threads) {
  lpk_barrier(barrier, threads);
}
