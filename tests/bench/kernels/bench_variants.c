#include "bench_variants.h"

#include "backend/cpu/kernels/dot.h"

/* Pairs of bf16 by the best of the target. */
#define TEST_PAIRS_BY (TEST_DOT == LPK_DOT_AMX ? LPK_PAIRS_AMX : LPK_PAIRS_DOT)

#define OUTER __attribute__((noinline))

#define LINEAR(name, n, k, dtype, act, gated, kernel, bits, group, pairs)                                              \
  OUTER void linear_##name(float *y, const float *x, const void *w, int64_t m, void *scratch, lp_barrier *barrier,     \
                           int64_t thread, int64_t threads) {                                                          \
    static const lpk_linear_form form = {                                                                              \
        n, k, dtype, act, gated, TEST_ISA, TEST_DOT, (pairs) ? TEST_PAIRS_BY : 0, {bits, LPK_F16, 0, group}};          \
    kernel(y, x, w, 0, 0, m, k, n, &form, scratch, barrier, thread, threads);                                          \
  }
LINEAR_VARIANTS(LINEAR)

#define ATTENTION(name, kernel, heads, kv_heads, d, dtype)                                                             \
  OUTER void attention_##name(float *y, const float *q, const float *k, const float *v, const int64_t *ys,             \
                              const int64_t *qs, int64_t s, int64_t p, int64_t c, void *scratch, lp_barrier *barrier,  \
                              int64_t thread, int64_t threads) {                                                       \
    kernel(y, q, k, v, 0, 0, ys, qs, 0, 1, s, p, c, heads, kv_heads, d, d, 0.125f, 0, 1, 0, dtype, TEST_ISA, scratch,  \
           barrier, thread, threads);                                                                                  \
  }
ATTENTION_VARIANTS(ATTENTION)

OUTER void norm_768(float *y, const float *x, const float *weight, int64_t rows) {
  lpk_norm(y, 0, x, 0, weight, 0, rows, 768, 768, 1e-5f, 1, 0, 1);
}
OUTER void softmax_rows(float *y, const float *x, int64_t rows, int64_t n) {
  lpk_softmax(y, x, rows, n, 0, 0, 1);
}
OUTER void transpose(float *y, const float *x, int64_t rows, int64_t columns) {
  int64_t dims[2] = {columns, rows}, ys[2] = {rows, 1}, xs[2] = {1, columns};
  lpk_copy(y, x, dims, ys, xs, 2, 4, 0, 1);
}
OUTER void matmul_plain(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k, void *scratch) {
  lpk_matrix cs = {n, 1, {0}}, as = {k, 1, {0}}, bs = {n, 1, {0}};
  lpk_matmul(c, a, b, 0, &cs, &as, &bs, m, n, k, 0, 1, TEST_ISA, scratch, 0, 1);
}

#define MATH(f)                                                                                                        \
  OUTER void math_##f(float *y, const float *x, int64_t n) {                                                           \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      y[i] = lpk_##f(x[i]);                                                                                            \
  }
MATH(exp)
MATH(gelu_erf)
MATH(silu)
MATH(tanh)
MATH(sin)

OUTER void barrier_wait(lp_barrier *barrier, int64_t threads) {
  lpk_barrier(barrier, threads);
}

OUTER double limit_fma(int64_t rounds, float *sink) {
  enum { CHAINS = TEST_ISA == LPK_ISA_AVX512 ? 12 : 6 };
  v16 acc[CHAINS], a = load16(sink), b = load16(sink + LANES);
  UNROLL for (int j = 0; j < CHAINS; j++) acc[j] = load16(sink + j);
  for (int64_t i = 0; i < rounds; i++)
    UNROLL for (int j = 0; j < CHAINS; j++) acc[j] = acc[j] * a + b;
  UNROLL for (int j = 0; j < CHAINS; j++) store16(sink, load16(sink) + acc[j]);
  return 2.0 * LANES * CHAINS * (double)rounds;
}

OUTER double limit_dot(int64_t rounds, float *sink) {
  enum { CHAINS = TEST_ISA == LPK_ISA_AVX512 ? 12 : 6, SIGNS = TEST_DOT == LPK_DOT_AVX2 };
  v16i acc[CHAINS], a = (v16i)load16(sink), b = (v16i)load16(sink + LANES);
  UNROLL for (int j = 0; j < CHAINS; j++) acc[j] = (v16i)load16(sink + j);
  for (int64_t i = 0; i < rounds; i++)
    UNROLL for (int j = 0; j < CHAINS; j++) acc[j] = dot_add(acc[j], a, b, SIGNS ? DOT_PAIRS : DOT_VNNI, TEST_DOT);
  UNROLL for (int j = 0; j < CHAINS; j++) store16(sink, load16(sink) + (v16)acc[j]);
  return (SIGNS ? 4.0 : 8.0) * LANES * CHAINS * (double)rounds;
}

OUTER void limit_read(const float *x, int64_t bytes, float *sink) {
  v16 acc[8];
  UNROLL for (int j = 0; j < 8; j++) acc[j] = splat(0);
  for (int64_t i = 0; i < bytes / 4; i += 8 * LANES) {
    UNROLL for (int j = 0; j < 8; j++) __builtin_prefetch(x + i + j * LANES + 1024);
    UNROLL for (int j = 0; j < 8; j++) acc[j] += load16(x + i + j * LANES);
  }
  UNROLL for (int j = 0; j < 8; j++) store16(sink + j * LANES, acc[j]);
}
