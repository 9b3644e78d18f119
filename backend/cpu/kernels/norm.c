/* Normalisation and softmax of rows. */
#include "backend/cpu/kernels/math/vector_math.h"

/* The sum over a row of x (+ residual); stores x + residual in `sum` unless that is null. */
INLINE float row_sum(float *sum, const float *x, const float *residual, int64_t n) {
  v16 total = splat(0);
  float rest = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    v16 v = load16(x + i);
    if (residual) v += load16(residual + i);
    if (sum) store16(sum + i, v);
    total += v;
  }
  for (; i < n; i++) {
    float v = x[i] + (residual ? residual[i] : 0);
    if (sum) sum[i] = v;
    rest += v;
  }
  return sum_lanes(total) + rest;
}

/* Sum of (x - mean)^2. */
INLINE float row_squares(const float *x, float mean, int64_t n) {
  v16 total[4];
  UNROLL for (int j = 0; j < 4; j++) total[j] = splat(0);
  float rest = 0;
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    UNROLL for (int j = 0; j < 4; j++) {
      v16 v = load16(x + i + j * LANES) - mean;
      total[j] += v * v;
    }
  for (; i < n; i++)
    rest += (x[i] - mean) * (x[i] - mean);
  return sum_lanes((total[0] + total[1]) + (total[2] + total[3])) + rest;
}

INLINE void scale_row(float *y, const float *x, const float *weight, const float *bias, float mean, float factor,
                      int64_t n) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    v16 v = (load16(x + i) - mean) * factor;
    if (weight) v *= load16(weight + i);
    if (bias) v += load16(bias + i);
    store16(y + i, v);
  }
  for (; i < n; i++)
    y[i] = (x[i] - mean) * factor * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
}

KERNEL void lpk_norm(float *y, float *sum, const float *x, const float *residual, const float *weight,
                     const float *bias, int64_t rows, int64_t ldx, int64_t n, float eps, int rms, int64_t thread,
                     int64_t threads) {
  for (int64_t r = share(rows, thread, threads); r < share(rows, thread + 1, threads); r++) {
    const float *from = x + r * ldx;
    float *total = sum ? sum + r * n : residual ? y + r * n : 0; /* without `sum` the sum waits in y */
    float mean = 0;
    if (!rms || total) mean = row_sum(total, from, residual ? residual + r * n : 0, n) / (float)n;
    if (rms) mean = 0;
    if (total) from = total;
    float factor = 1 / __builtin_sqrtf(row_squares(from, mean, n) / (float)n + eps);
    scale_row(y + r * n, from, weight, bias, mean, factor, n);
  }
}

INLINE float row_max(const float *x, int64_t n) {
  v16 top = splat(-__builtin_inff());
  float rest = -__builtin_inff();
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    top = max16(top, load16(x + i));
  for (; i < n; i++)
    rest = x[i] > rest ? x[i] : rest;
  float most = max_lanes(top);
  return rest > most ? rest : most;
}

/* Writes exp(x - max) unless y is null; returns the sum. */
INLINE float row_exp(float *y, const float *x, float max, int64_t n) {
  v16 total = splat(0);
  float rest = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    v16 e = vector_exp_negative(load16(x + i) - max);
    if (y) store16(y + i, e);
    total += e;
  }
  for (; i < n; i++) {
    float e = scalar_exp_negative(x[i] - max);
    if (y) y[i] = e;
    rest += e;
  }
  return sum_lanes(total) + rest;
}

KERNEL void lpk_softmax(float *y, const float *x, int64_t rows, int64_t n, int log, int64_t thread, int64_t threads) {
  for (int64_t r = share(rows, thread, threads); r < share(rows, thread + 1, threads); r++) {
    const float *from = x + r * n;
    float *to = y + r * n, max = row_max(from, n), sum = row_exp(log ? 0 : to, from, max, n);
    float factor = log ? 1 : 1 / sum, shift = log ? max + scalar_log(sum) : 0;
    for (int64_t i = 0; i < n; i++)
      to[i] = log ? from[i] - shift : to[i] * factor;
  }
}
