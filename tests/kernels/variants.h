/* Kernels with constant arguments, as the code generator would make them: variants.c is compiled to bitcode, linked
 * with the kernels' and optimised for a target, so the tests go the way of the product. */
#ifndef LP_TEST_KERNEL_VARIANTS_H
#define LP_TEST_KERNEL_VARIANTS_H

#include "backend/cpu/kernels/kernels.h"

/*                 n    k    weights   activation         gated bias residual */
#define LINEAR_VARIANTS(V)                                                                                             \
  V(0, 96, 64, LPK_F32, LPK_ACT_NONE, 0, 0, 0)                                                                         \
  V(1, 33, 17, LPK_F32, LPK_ACT_NONE, 0, 1, 0)                                                                         \
  V(2, 100, 300, LPK_F16, LPK_ACT_GELU_ERF, 0, 1, 1)                                                                   \
  V(3, 64, 515, LPK_BF16, LPK_ACT_RELU, 0, 0, 1)                                                                       \
  V(4, 80, 48, LPK_F32, LPK_ACT_SILU, 1, 0, 0)                                                                         \
  V(5, 47, 257, LPK_F16, LPK_ACT_GELU_TANH, 1, 1, 1)                                                                   \
  V(6, 5, 7, LPK_BF16, LPK_ACT_QUICK_GELU, 0, 1, 0)                                                                    \
  V(7, 160, 600, LPK_F32, LPK_ACT_NONE, 0, 0, 1)                                                                       \
  V(8, 1, 1, LPK_F32, LPK_ACT_TANH, 0, 1, 1)                                                                           \
  V(9, 200, 33, LPK_BF16, LPK_ACT_SIGMOID, 1, 0, 1)

/* Products of bf16, which only some targets have (variants_pairs.c). */
#define PAIRS_VARIANTS(V)                                                                                              \
  V(20, 70, 259, LPK_BF16, LPK_ACT_SILU, 1, 1, 0)                                                                      \
  V(21, 96, 640, LPK_BF16, LPK_ACT_NONE, 0, 0, 1)                                                                      \
  V(22, 5, 7, LPK_BF16, LPK_ACT_RELU, 0, 1, 0)                                                                         \
  V(23, 33, 32, LPK_BF16, LPK_ACT_NONE, 0, 0, 0)                                                                       \
  V(24, 40, 289, LPK_BF16, LPK_ACT_SILU, 1, 0, 0)

/*                 n    k    bits group scales   zeros super gated */
#define GROUP_VARIANTS(V)                                                                                              \
  V(0, 96, 64, 8, 32, LPK_F16, 0, 0, 0)                                                                                \
  V(1, 33, 72, 4, 32, LPK_F16, 0, 0, 1)                                                                                \
  V(2, 64, 300, 4, 64, LPK_F32, 1, 0, 0)                                                                               \
  V(3, 40, 100, 8, 16, LPK_BF16, 1, 0, 1)                                                                              \
  V(4, 31, 50, 2, 16, LPK_F32, 0, 0, 0)                                                                                \
  V(23, 70, 300, 8, 128, LPK_F32, LPK_E4M3, 0, 0)                                                                      \
  V(24, 33, 515, 8, 515, LPK_F32, LPK_E4M3, 0, 1)                                                                      \
  V(25, 31, 77, 8, 16, LPK_BF16, LPK_E4M3, 0, 0)                                                                       \
  INTEGER_VARIANTS(V)

/* Those that lpk_linear_integer takes too. */
#define INTEGER_VARIANTS(V)                                                                                            \
  V(5, 70, 515, 4, 515, LPK_F32, 0, 0, 0)                                                                              \
  V(6, 96, 352, 8, 32, LPK_F16, 0, 0, 0)                                                                               \
  V(7, 33, 328, 4, 32, LPK_F16, 0, 0, 1)                                                                               \
  V(8, 64, 300, 4, 64, LPK_F32, 1, 0, 0)                                                                               \
  V(9, 40, 103, 8, 103, LPK_BF16, 1, 0, 1)                                                                             \
  V(10, 50, 164, 2, 32, LPK_F16, 0, 0, 0)                                                                              \
  V(11, 70, 512, 4, 32, LPK_U8, LPK_MINIMA, 8, 1)                                                                      \
  V(12, 40, 256, 6, 16, LPK_I8, 0, 16, 0)                                                                              \
  V(13, 33, 512, 2, 16, LPK_U8, LPK_MINIMA, 16, 0)                                                                     \
  V(14, 64, 256, 5, 32, LPK_U8, LPK_MINIMA, 8, 0)                                                                      \
  V(15, 31, 96, 5, 32, LPK_F16, 0, 0, 1)                                                                               \
  V(16, 40, 256, 4, 16, LPK_I8, 0, 16, 0)                                                                              \
  V(17, 40, 96, 4, 32, LPK_F16, LPK_MINIMA, 0, 0)                                                                      \
  V(18, 40, 256, 8, 32, LPK_I8, 0, 8, 0)                                                                               \
  V(19, 64, 512, 6, 16, LPK_I8, 0, 16, 1)                                                                              \
  V(20, 40, 352, 5, 32, LPK_BF16, LPK_DOUBLES, 0, 1)                                                                   \
  V(21, 33, 512, 8, 32, LPK_I8, LPK_UNEVEN, 8, 0)                                                                      \
  V(22, 70, 96, 8, 32, LPK_F16, LPK_UNEVEN, 0, 0)                                                                      \
  V(26, 40, 96, 8, 32, LPK_F16, LPK_NORMAL, 0, 1)

/*                 heads kv d   dv   cap causal window mask sinks cache */
#define ATTENTION_VARIANTS(V)                                                                                          \
  V(0, 4, 4, 32, 32, 0, 1, 0, 0, 0, LPK_F32)                                                                           \
  V(1, 6, 2, 64, 64, 0, 1, 0, 0, 1, LPK_F32)                                                                           \
  V(2, 9, 3, 64, 64, 0, 1, 0, 1, 0, LPK_F16)                                                                           \
  V(3, 8, 1, 128, 128, 0, 1, 0, 0, 0, LPK_F32)                                                                         \
  V(4, 2, 2, 256, 256, 0, 1, 0, 0, 0, LPK_F32)                                                                         \
  V(5, 3, 1, 20, 36, 0, 0, 0, 1, 1, LPK_BF16)                                                                          \
  V(6, 4, 2, 80, 80, 5, 1, 70, 1, 0, LPK_F32)                                                                          \
  V(7, 16, 1, 48, 16, 0, 1, 9, 0, 1, LPK_F16)                                                                          \
  V(8, 2, 2, 8, 8, 0, 1, 0, 0, 0, LPK_F32)                                                                             \
  V(9, 5, 5, 96, 112, 0, 0, 0, 0, 0, LPK_BF16)

/* Those with products of bf16. */
#define PAIRS_ATTENTION_VARIANTS(V)                                                                                    \
  V(20, 4, 4, 64, 64, 0, 1, 0, 0, 0, LPK_F16)                                                                          \
  V(21, 9, 3, 64, 64, 0, 1, 0, 1, 1, LPK_BF16)                                                                         \
  V(22, 3, 1, 20, 36, 0, 0, 0, 1, 0, LPK_F16)                                                                          \
  V(23, 4, 2, 80, 80, 5, 1, 70, 0, 0, LPK_BF16)                                                                        \
  V(24, 8, 1, 128, 128, 0, 1, 0, 0, 0, LPK_F32)

/*                 heads d   rotary interleaved */
#define ROTARY_VARIANTS(V)                                                                                             \
  V(0, 3, 64, 64, 0)                                                                                                   \
  V(1, 2, 80, 32, 0)                                                                                                   \
  V(2, 4, 20, 20, 1)                                                                                                   \
  V(3, 1, 10, 6, 0)                                                                                                    \
  V(4, 2, 128, 64, 1)

/*                 n    rms residual sum weight bias */
#define NORM_VARIANTS(V)                                                                                               \
  V(0, 192, 1, 0, 0, 1, 0)                                                                                             \
  V(1, 768, 0, 0, 0, 1, 1)                                                                                             \
  V(2, 37, 0, 1, 1, 1, 1)                                                                                              \
  V(3, 100, 1, 1, 1, 1, 0)                                                                                             \
  V(4, 5, 1, 1, 0, 0, 0)                                                                                               \
  V(5, 64, 0, 1, 0, 1, 0)

#define MATH_FUNCTIONS(V)                                                                                              \
  V(exp) V(log) V(tanh) V(sigmoid) V(erf) V(gelu_erf) V(gelu_tanh) V(quick_gelu) V(silu) V(softplus) V(sin) V(cos)

typedef void linear_fn(float *y, const float *x, const void *w, const float *bias, const float *residual, int64_t m,
                       int64_t ldx, int64_t ldy, void *scratch, lp_barrier *barrier, int64_t thread, int64_t threads);
typedef void attention_fn(float *y, const float *q, const void *k, const void *v, const float *mask, const float *sinks,
                          const int64_t *ys, const int64_t *qs, const int64_t *ms, int64_t b, int64_t s, int64_t p,
                          int64_t c, void *scratch, lp_barrier *barrier, int64_t thread, int64_t threads);
typedef void rotary_fn(float *y, const float *x, const float *cos, const float *sin, const int64_t *ys,
                       const int64_t *xs, int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t thread,
                       int64_t threads);
typedef void append_fn(void *cache, const float *x, const float *cos, const float *sin, const int64_t *xs,
                       int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t p, int64_t c,
                       int64_t thread, int64_t threads);
typedef void norm_fn(float *y, float *sum, const float *x, const float *residual, const float *weight,
                     const float *bias, int64_t rows, int64_t ldx, int64_t thread, int64_t threads);
typedef void math_fn(float *y, const float *x, int64_t n);
typedef void copy_fn(void *y, const void *x, const int64_t *dims, const int64_t *ys, const int64_t *xs, int64_t thread,
                     int64_t threads);

/* Groups of 16 rows have no products by tiles. */
#define GROUP_DOT(super, group)                                                                                        \
  ((super) == 0 || (group) == 32 ? TEST_DOT                                                                            \
   : TEST_DOT == LPK_DOT_AMX     ? LPK_DOT_VNNI512                                                                     \
   : TEST_DOT == LPK_DOT_I8MM    ? LPK_DOT_SDOT                                                                        \
                                 : TEST_DOT)

/* The function of a variant of a product with weights in groups. */
#define DEFINE_GROUPS(name, kernel, n, k, bits, group, scale, zeros, super, gated)                                     \
  __attribute__((noinline)) void name(float *y, const float *x, const void *w, const float *bias,                      \
                                      const float *residual, int64_t m, int64_t ldx, int64_t ldy, void *scratch,       \
                                      lp_barrier *barrier, int64_t thread, int64_t threads) {                          \
    (void)residual;                                                                                                    \
    static const lpk_linear_form form = {n,                                                                            \
                                         k,                                                                            \
                                         LPK_U8,                                                                       \
                                         (gated) ? LPK_ACT_SILU : 0,                                                   \
                                         gated,                                                                        \
                                         TEST_ISA,                                                                     \
                                         GROUP_DOT(super, group),                                                      \
                                         0,                                                                            \
                                         {bits, scale, zeros, super, group}};                                          \
    kernel(y, x, w, bias, 0, m, ldx, ldy, &form, scratch, barrier, thread, threads);                                   \
  }

/* The function of a variant of attention. */
#define DEFINE_ATTENTION(kernel, i, heads, kv_heads, d, dv, cap, causal, window, has_mask, has_sinks, dtype)           \
  __attribute__((noinline)) void attention_##i(                                                                        \
      float *y, const float *q, const void *k, const void *v, const float *mask, const float *sinks,                   \
      const int64_t *ys, const int64_t *qs, const int64_t *ms, int64_t b, int64_t s, int64_t p, int64_t c,             \
      void *scratch, lp_barrier *barrier, int64_t thread, int64_t threads) {                                           \
    (void)mask, (void)sinks;                                                                                           \
    kernel(y, q, k, v, (has_mask) ? mask : 0, (has_sinks) ? sinks : 0, ys, qs, ms, b, s, p, c, heads, kv_heads, d, dv, \
           0.3f, cap, causal, window, dtype, TEST_ISA, scratch, barrier, thread, threads);                             \
  }

#define DECLARE_LINEAR(i, ...) linear_fn linear_##i;
#define DECLARE_GROUPS(i, ...) linear_fn groups_##i;
#define DECLARE_INTEGER(i, ...) linear_fn integer_##i;
#define DECLARE_ATTENTION(i, ...) attention_fn attention_##i;
#define DECLARE_ROTARY(i, ...)                                                                                         \
  rotary_fn rotary_##i;                                                                                                \
  append_fn append_##i;
#define DECLARE_NORM(i, ...) norm_fn norm_##i;
#define DECLARE_MATH(f) math_fn math_##f;
LINEAR_VARIANTS(DECLARE_LINEAR)
PAIRS_VARIANTS(DECLARE_LINEAR)
GROUP_VARIANTS(DECLARE_GROUPS)
INTEGER_VARIANTS(DECLARE_INTEGER)
ATTENTION_VARIANTS(DECLARE_ATTENTION)
PAIRS_ATTENTION_VARIANTS(DECLARE_ATTENTION)
ROTARY_VARIANTS(DECLARE_ROTARY)
NORM_VARIANTS(DECLARE_NORM)
MATH_FUNCTIONS(DECLARE_MATH)
append_fn append_plain, append_f16, append_bf16; /* 2 heads of 24, not rotated */

void math_pow(float *y, const float *a, const float *b, int64_t n);
void softmax_plain(float *y, const float *x, int64_t rows, int64_t n, int64_t thread, int64_t threads);
void softmax_log(float *y, const float *x, int64_t rows, int64_t n, int64_t thread, int64_t threads);
void reduce(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, int kind, int dtype, int64_t thread,
            int64_t threads);
void argmax(int64_t *y, const float *x, int64_t outer, int64_t n, int64_t inner, int min, int last, int64_t thread,
            int64_t threads);
void topk_f32(float *y, int64_t *place, const float *x, int64_t n, int64_t k, int min);
void cumsum(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, int exclusive, int reverse, int dtype,
            int64_t thread, int64_t threads);
void matmul(float *c, const float *a, const float *b, const int64_t *dims, const lpk_matrix *cs, const lpk_matrix *as,
            const lpk_matrix *bs, int64_t m, int64_t n, int64_t k, int rank, float alpha, void *scratch, int64_t thread,
            int64_t threads);
void embed(float *y, const void *table, const void *index, int64_t count, int64_t vocab, int64_t width, int dtype,
           int64_t thread, int64_t threads);
void embed_groups(float *y, const void *table, const void *index, int64_t count, int64_t vocab, int64_t width, int form,
                  int64_t thread, int64_t threads); /* scales of f16, i64 */
/* Forms of lpk_linear_attention: heads, KV heads, d, dv, past, decay, decays for each element of a key, betas. */
#define RECURRENCE_VARIANTS(X)                                                                                         \
  X(0, 3, 3, 8, 16, 0, 1, 0, 0)                                                                                        \
  X(1, 4, 2, 5, 33, 1, 1, 1, 0)                                                                                        \
  X(2, 2, 2, 7, 20, 1, 1, 0, 2)                                                                                        \
  X(3, 6, 2, 4, 48, 0, 0, 0, 1)                                                                                        \
  X(4, 3, 3, 16, 40, 1, 1, 1, 0)                                                                                       \
  X(5, 2, 2, 4, 16, 0, 0, 1, 0)
typedef void recurrence_variant(float *y, float *state, const float *q, const float *k, const float *v,
                                const float *past, const float *decay, const float *beta, int64_t b, int64_t rows,
                                int64_t tokens, int64_t thread, int64_t threads);
#define RECURRENCE_DECLARED(i, ...) recurrence_variant recurrence_##i;
RECURRENCE_VARIANTS(RECURRENCE_DECLARED)
void carry_columns(float *y, float *last, const float *x, int64_t rows, int64_t s, int64_t tokens, int64_t thread,
                   int64_t threads);
void gather(void *y, const void *x, const void *index, int64_t outer, int64_t axis, int64_t rows, int64_t inner_bytes,
            int64_t count, int itype, int64_t thread, int64_t threads);
void gather_elements(void *y, const void *x, const void *index, const int64_t *dims, const int64_t *xdims, int axis,
                     int64_t thread, int64_t threads); /* rank 3, f32, i64 */
void scatter_elements(void *y, const void *x, const void *index, const void *updates, const int64_t *dims,
                      const int64_t *xdims, int axis, int reduction, lp_barrier *barrier, int64_t thread,
                      int64_t threads);
void scatter_nd(void *y, const void *x, const void *index, const void *updates, const int64_t *xdims, int64_t count,
                int depth, int reduction, int64_t thread, int64_t threads);
copy_fn copy_1, copy_2, copy_4, copy_8; /* rank 4 */
void fill_4(void *y, int64_t count, uint64_t bits, int64_t thread, int64_t threads);
void range_f32(float *y, int64_t count, float start, float step, int64_t thread, int64_t threads);
void range_i64(int64_t *y, int64_t count, int64_t start, int64_t step, int64_t thread, int64_t threads);
void barrier_wait(lp_barrier *barrier, int64_t threads);

#endif
