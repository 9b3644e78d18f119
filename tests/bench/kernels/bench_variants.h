/* The kernels that bench_kernels measures, with their constants, and the machine's limits as loops of the same
 * build. */
#ifndef LP_BENCH_KERNEL_VARIANTS_H
#define LP_BENCH_KERNEL_VARIANTS_H

#include "backend/cpu/kernels/kernels.h"

/*      name        n     k     weights   activation    gated kernel  bits, group, pairs */
#define LINEAR_VARIANTS(V)                                                                                             \
  V(qkv_f32, 2304, 768, LPK_F32, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 0)                                                 \
  V(up_f32, 2048, 768, LPK_F32, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 0)                                                  \
  V(down_f32, 768, 2048, LPK_F32, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 0)                                                \
  V(gated_f32, 2048, 768, LPK_F32, LPK_ACT_SILU, 1, lpk_linear, 0, 1, 0)                                               \
  V(small_f32, 192, 192, LPK_F32, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 0)                                                \
  V(small_gelu_f32, 512, 192, LPK_F32, LPK_ACT_GELU_ERF, 0, lpk_linear, 0, 1, 0)                                       \
  V(up_f16, 2048, 768, LPK_F16, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 0)                                                  \
  V(up_bf16, 2048, 768, LPK_BF16, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 0)                                                \
  V(up_bf16_pairs, 2048, 768, LPK_BF16, LPK_ACT_NONE, 0, lpk_linear, 0, 1, 1)                                          \
  V(up_int8, 2048, 768, LPK_U8, LPK_ACT_NONE, 0, lpk_linear_integer, 8, 32, 0)                                         \
  V(down_int8, 768, 2048, LPK_U8, LPK_ACT_NONE, 0, lpk_linear_integer, 8, 32, 0)                                       \
  V(up_int8_64, 2048, 768, LPK_U8, LPK_ACT_NONE, 0, lpk_linear_integer, 8, 64, 0)                                      \
  V(up_int4, 2048, 768, LPK_U8, LPK_ACT_NONE, 0, lpk_linear_integer, 4, 32, 0)                                         \
  V(gated_int4, 2048, 768, LPK_U8, LPK_ACT_SILU, 1, lpk_linear_integer, 4, 32, 0)

/*      name, kernel, heads, kv, d, cache */
#define ATTENTION_VARIANTS(V)                                                                                          \
  V(mha64, lpk_attention, 12, 12, 64, LPK_F32)                                                                         \
  V(mha64_f16, lpk_attention, 12, 12, 64, LPK_F16)                                                                     \
  V(mha64_f16_pairs, lpk_attention_pairs, 12, 12, 64, LPK_F16)                                                         \
  V(mha64_bf16_pairs, lpk_attention_pairs, 12, 12, 64, LPK_BF16)                                                       \
  V(gqa64, lpk_attention, 9, 3, 64, LPK_F32)                                                                           \
  V(gqa64_f16_pairs, lpk_attention_pairs, 9, 3, 64, LPK_F16)                                                           \
  V(mha128, lpk_attention, 8, 8, 128, LPK_F32)                                                                         \
  V(mha128_f16_pairs, lpk_attention_pairs, 8, 8, 128, LPK_F16)                                                         \
  V(mqa64, lpk_attention, 8, 1, 64, LPK_F32)                                                                           \
  V(gqa32, lpk_attention, 6, 2, 32, LPK_F32)

typedef void linear_fn(float *y, const float *x, const void *w, int64_t m, void *scratch, lp_barrier *barrier,
                       int64_t thread, int64_t threads);
typedef void attention_fn(float *y, const float *q, const float *k, const float *v, const int64_t *ys,
                          const int64_t *qs, int64_t s, int64_t p, int64_t c, void *scratch, lp_barrier *barrier,
                          int64_t thread, int64_t threads);
typedef void math_fn(float *y, const float *x, int64_t n);

#define DECLARE_LINEAR(name, ...) linear_fn linear_##name;
#define DECLARE_ATTENTION(name, ...) attention_fn attention_##name;
LINEAR_VARIANTS(DECLARE_LINEAR)
ATTENTION_VARIANTS(DECLARE_ATTENTION)

void norm_768(float *y, const float *x, const float *weight, int64_t rows);
void softmax_rows(float *y, const float *x, int64_t rows, int64_t n);
void transpose(float *y, const float *x, int64_t rows, int64_t columns);
void matmul_plain(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k, void *scratch);
math_fn math_exp, math_gelu_erf, math_silu, math_tanh, math_sin;
void barrier_wait(lp_barrier *barrier, int64_t threads);

/* Multiplications and additions of `rounds` rounds of independent integer dot products in registers. */
double limit_dot(int64_t rounds, float *sink);
/* FLOPs of `rounds` rounds of independent fused multiply-adds in registers. */
double limit_fma(int64_t rounds, float *sink);
/* Reads `bytes` in one stream. */
void limit_read(const float *x, int64_t bytes, float *sink);

#endif
