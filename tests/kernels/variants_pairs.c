/* The products of bf16, for targets that have them. */
#include "variants.h"

#define PAIRS_BY(k) (TEST_DOT != LPK_DOT_AMX ? LPK_PAIRS_DOT : (k) < LPK_PAIRS_LEAST ? LPK_PAIRS_NONE : LPK_PAIRS_AMX)

#define LINEAR(i, n, k, dtype, act, gated, has_bias, has_residual)                                                     \
  __attribute__((noinline)) void linear_##i(float *y, const float *x, const void *w, const float *bias,                \
                                            const float *residual, int64_t m, int64_t ldx, int64_t ldy, void *scratch, \
                                            lp_barrier *barrier, int64_t thread, int64_t threads) {                    \
    (void)bias, (void)residual;                                                                                        \
    static const lpk_linear_form form = {                                                                              \
        n, k, dtype, act, gated, TEST_ISA, TEST_DOT, PAIRS_BY(k), {0, LPK_F32, 0, 0, 1}};                              \
    lpk_linear(y, x, w, (has_bias) ? bias : 0, (has_residual) ? residual : 0, m, ldx, ldy, &form, scratch, barrier,    \
               thread, threads);                                                                                       \
  }
PAIRS_VARIANTS(LINEAR)

#define ATTENTION(...) DEFINE_ATTENTION(lpk_attention_pairs, __VA_ARGS__)
PAIRS_ATTENTION_VARIANTS(ATTENTION)
