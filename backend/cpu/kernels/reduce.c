/* Reductions, arg-max and running sums along the middle axis of [outer][n][inner]. */
#include "backend/cpu/kernels/math/vector_math.h"

/* ---- f32 ---- */

INLINE float start_f32(int kind) {
  switch (kind) {
  case LPK_REDUCE_MAX:
  case LPK_REDUCE_LOGSUMEXP:
    return -__builtin_inff();
  case LPK_REDUCE_MIN:
    return __builtin_inff();
  case LPK_REDUCE_PROD:
    return 1;
  default:
    return 0;
  }
}

/* Once a NaN occurs, the result is NaN. LOGSUMEXP: its first pass, the maximum. */
#define STEP(kind, acc, x, abs_x)                                                                                      \
  ((kind) == LPK_REDUCE_MAX || (kind) == LPK_REDUCE_LOGSUMEXP ? ((acc) >= (x) || (acc) != (acc) ? (acc) : (x))         \
   : (kind) == LPK_REDUCE_MIN                                 ? ((acc) <= (x) || (acc) != (acc) ? (acc) : (x))         \
   : (kind) == LPK_REDUCE_PROD                                ? (acc) * (x)                                            \
   : (kind) == LPK_REDUCE_SUMSQ || (kind) == LPK_REDUCE_L2    ? (acc) + (x) * (x)                                      \
   : (kind) == LPK_REDUCE_L1                                  ? (acc) + (abs_x)                                        \
                                                              : (acc) + (x))

INLINE float step_f32(int kind, float acc, float x) {
  return STEP(kind, acc, x, scalar_fabs(x));
}

INLINE v16 step_v16(int kind, v16 acc, v16 x) {
  if (kind == LPK_REDUCE_MAX || kind == LPK_REDUCE_LOGSUMEXP) return ((acc >= x) | (acc != acc)) ? acc : x;
  if (kind == LPK_REDUCE_MIN) return ((acc <= x) | (acc != acc)) ? acc : x;
  if (kind == LPK_REDUCE_PROD) return acc * x;
  if (kind == LPK_REDUCE_SUMSQ || kind == LPK_REDUCE_L2) return acc + x * x;
  return acc + (kind == LPK_REDUCE_L1 ? vector_fabs(x) : x);
}

/* Merging two partial results: squares and magnitudes are already taken. */
INLINE int merge_kind(int kind) {
  return kind == LPK_REDUCE_SUMSQ || kind == LPK_REDUCE_L2 || kind == LPK_REDUCE_L1 ? LPK_REDUCE_SUM : kind;
}

INLINE float finish_f32(int kind, float acc, int64_t n) {
  switch (kind) {
  case LPK_REDUCE_MEAN:
    return acc / (float)n;
  case LPK_REDUCE_L2:
    return __builtin_sqrtf(acc);
  case LPK_REDUCE_LOGSUM:
    return scalar_log(acc);
  default:
    return acc;
  }
}

/* log(sum(exp(x))), given the maximum. */
INLINE float log_sum_exp(const float *x, float max, int64_t n, int64_t step) {
  float sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += scalar_exp(x[i * step] - max);
  return max > -__builtin_inff() && max < __builtin_inff() ? max + scalar_log(sum) : max;
}

INLINE float reduce_row(const float *x, int64_t n, int kind) {
  v16 acc[4];
  UNROLL for (int j = 0; j < 4; j++) acc[j] = splat(start_f32(kind));
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    UNROLL for (int j = 0; j < 4; j++) acc[j] = step_v16(kind, acc[j], load16(x + i + j * LANES));
  for (; i + LANES <= n; i += LANES)
    acc[0] = step_v16(kind, acc[0], load16(x + i));
  float rest = start_f32(kind);
  for (; i < n; i++)
    rest = step_f32(kind, rest, x[i]);
  v16 all = acc[0];
  UNROLL for (int j = 1; j < 4; j++) all = step_v16(merge_kind(kind), all, acc[j]);
  UNROLL for (int j = 0; j < LANES; j++) rest = step_f32(merge_kind(kind), rest, all[j]);
  return kind == LPK_REDUCE_LOGSUMEXP ? log_sum_exp(x, rest, n, 1) : finish_f32(kind, rest, n);
}

/* Columns at .. at + 16 (or one) of an inner axis: consecutive in memory, so accumulated side by side. */
INLINE void reduce_columns_f32(float *y, const float *x, int64_t n, int64_t inner, int64_t first, int64_t last,
                               int kind) {
  int64_t i = first;
  for (; i + LANES <= last; i += LANES) {
    v16 acc = splat(start_f32(kind));
    for (int64_t j = 0; j < n; j++)
      acc = step_v16(kind, acc, load16(x + j * inner + i));
    for (int l = 0; l < LANES; l++)
      y[i + l] = kind == LPK_REDUCE_LOGSUMEXP ? log_sum_exp(x + i + l, acc[l], n, inner) : finish_f32(kind, acc[l], n);
  }
  for (; i < last; i++) {
    float acc = start_f32(kind);
    for (int64_t j = 0; j < n; j++)
      acc = step_f32(kind, acc, x[j * inner + i]);
    y[i] = kind == LPK_REDUCE_LOGSUMEXP ? log_sum_exp(x + i, acc, n, inner) : finish_f32(kind, acc, n);
  }
}

INLINE void reduce_f32(float *y, const float *x, int64_t outer, int64_t n, int64_t inner, int kind, int64_t thread,
                       int64_t threads) {
  int64_t first = share(outer * inner, thread, threads), last = share(outer * inner, thread + 1, threads);
  if (inner == 1) {
    for (int64_t o = first; o < last; o++)
      y[o] = reduce_row(x + o * n, n, kind);
    return;
  }
  while (first < last) {
    int64_t o = first / inner, end = min64(last, (o + 1) * inner);
    reduce_columns_f32(y + o * inner, x + o * n * inner, n, inner, first - o * inner, end - o * inner, kind);
    first = end;
  }
}

/* ---- i64 ---- */

INLINE int64_t reduce_i64(const int64_t *x, int64_t n, int64_t step, int kind) {
  int64_t acc = kind == LPK_REDUCE_MAX ? INT64_MIN : kind == LPK_REDUCE_MIN ? INT64_MAX : kind == LPK_REDUCE_PROD;
  for (int64_t i = 0; i < n; i++) {
    int64_t v = x[i * step];
    acc = STEP(kind, acc, v, (v < 0 ? -v : v));
  }
  return kind == LPK_REDUCE_MEAN && n ? acc / n : acc;
}

KERNEL void lpk_reduce(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, int kind, int dtype,
                       int64_t thread, int64_t threads) {
  if (dtype == LPK_F32) {
    reduce_f32(y, x, outer, n, inner, kind, thread, threads);
    return;
  }
  for (int64_t i = share(outer * inner, thread, threads); i < share(outer * inner, thread + 1, threads); i++)
    ((int64_t *)y)[i] = reduce_i64((const int64_t *)x + i / inner * n * inner + i % inner, n, inner, kind);
}

/* ---- arg-max ---- */

/* Finds the extreme value at full width, then its index. */
INLINE int64_t argmax_row(const float *x, int64_t n, int min, int last) {
  float best = reduce_row(x, n, min ? LPK_REDUCE_MIN : LPK_REDUCE_MAX);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = last ? n - 1 - i : i;
    if (x[at] == best || x[at] != x[at]) return at;
  }
  return 0;
}

INLINE int64_t argmax_column(const float *x, int64_t n, int64_t step, int min, int last) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++) {
    float a = x[i * step], b = x[best * step];
    if (min ? (last ? a <= b : a < b) : (last ? a >= b : a > b)) best = i;
  }
  return best;
}

KERNEL void lpk_argmax(int64_t *y, const float *x, int64_t outer, int64_t n, int64_t inner, int min, int last,
                       int64_t thread, int64_t threads) {
  for (int64_t i = share(outer * inner, thread, threads); i < share(outer * inner, thread + 1, threads); i++) {
    const float *row = x + i / inner * n * inner + i % inner;
    y[i] = inner == 1 ? argmax_row(row, n, min, last) : argmax_column(row, n, inner, min, last);
  }
}

/* ---- running sums ---- */

#define CUMSUM(type)                                                                                                   \
  INLINE void cumsum_##type(type *y, const type *x, int64_t n, int64_t step, int exclusive, int reverse) {             \
    type sum = 0;                                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      int64_t at = (reverse ? n - 1 - i : i) * step;                                                                   \
      type v = x[at];                                                                                                  \
      y[at] = exclusive ? sum : sum + v;                                                                               \
      sum += v;                                                                                                        \
    }                                                                                                                  \
  }
CUMSUM(float)
CUMSUM(int64_t)

KERNEL void lpk_cumsum(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, int exclusive, int reverse,
                       int dtype, int64_t thread, int64_t threads) {
  for (int64_t i = share(outer * inner, thread, threads); i < share(outer * inner, thread + 1, threads); i++) {
    int64_t at = i / inner * n * inner + i % inner;
    if (dtype == LPK_F32)
      cumsum_float((float *)y + at, (const float *)x + at, n, inner, exclusive, reverse);
    else
      cumsum_int64_t((int64_t *)y + at, (const int64_t *)x + at, n, inner, exclusive, reverse);
  }
}
