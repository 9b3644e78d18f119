/* The scalar functions that generated elementwise loops call. */
#include "backend/cpu/kernels/math/vector_math.h"

#define SCALAR(name)                                                                                                   \
  KERNEL float lpk_##name(float x) {                                                                                   \
    return scalar_##name(x);                                                                                           \
  }
SCALAR(exp)
SCALAR(log)
SCALAR(tanh)
SCALAR(sigmoid)
SCALAR(erf)
SCALAR(gelu_erf)
SCALAR(gelu_tanh)
SCALAR(quick_gelu)
SCALAR(silu)
SCALAR(softplus)

KERNEL float lpk_sin(float x) {
  return scalar_sin_quadrant(x, 0);
}
KERNEL float lpk_cos(float x) {
  return scalar_sin_quadrant(x, 1);
}

INLINE double bits_f64(uint64_t u) {
  return ((union {
           uint64_t from;
           double to;
         }){.from = u})
      .to;
}
INLINE uint64_t bits_u64(double f) {
  return ((union {
           double from;
           uint64_t to;
         }){.from = f})
      .to;
}

/* log2 of a positive normal number: exponent and 2 atanh((m - 1) / (m + 1)) / ln 2, m in [sqrt 1/2, sqrt 2). */
INLINE double log2_f64(double x) {
  int64_t e = (int64_t)(bits_u64(x) - 0x3fe6a09e667f3bcd) >> 52;
  double m = bits_f64(bits_u64(x) - ((uint64_t)e << 52)), z = (m - 1) / (m + 1), s = z * z;
  double p = 2.0 / 13;
  p = p * s + 2.0 / 11;
  p = p * s + 2.0 / 9;
  p = p * s + 2.0 / 7;
  p = p * s + 2.0 / 5;
  p = p * s + 2.0 / 3;
  p = p * s + 2.0;
  return (double)(int32_t)e + p * z * 1.4426950408889634;
}

/* 2^x, with x clamped to the range of a float. */
INLINE double exp2_f64(double x) {
  x = x < -160 ? -160 : x;
  x = x > 140 ? 140 : x;
  double t = x + 0x1.8p52, r = (x - (t - 0x1.8p52)) * 0.6931471805599453;
  double p = 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  return p * bits_f64((bits_u64(t) + 1023) << 52);
}

/* Computes in double, because the product y * log2(x) needs more than single precision. */
KERNEL float lpk_pow(float x, float y) {
  float a = scalar_fabs(x), inf = __builtin_inff();
  double e = (double)y * log2_f64((double)a);
  float r = (float)exp2_f64(e);
  float at_zero = y < 0 ? inf : 0, at_inf = y < 0 ? 0 : inf;
  r = a == 0 ? at_zero : r;
  r = a == inf ? at_inf : r;
  float y_inf = (a > 1) == (y > 0) ? inf : 0;
  r = scalar_fabs(y) == inf ? y_inf : r;
  r = scalar_fabs(y) == inf && a == 1 ? 1 : r;
  /* Integers below 2^24 are odd or even; larger floats are even. */
  float rounded = scalar_fabs(y) < 0x1p23f ? scalar_copysign((scalar_fabs(y) + 0x1p23f) - 0x1p23f, y) : y;
  int whole = rounded == y,
      odd = whole && scalar_fabs(y) < 0x1p24f && ((int32_t)(scalar_fabs(y) < 0x1p24f ? y : 0) & 1);
  int negative = scalar_copysign(1, x) < 0;
  r = negative && odd ? -r : r;
  r = x < 0 && a != inf && !whole ? __builtin_nanf("") : r;
  r = x != x || y != y ? __builtin_nanf("") : r;
  return y == 0 || x == 1 ? 1 : r;
}
