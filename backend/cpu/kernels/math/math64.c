/* The scalar functions in double precision: within a few ulp, not made for speed. Branch-free, no tables, no libm. */
#include "backend/cpu/kernels/vector.h"

#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)

/* ln 2 in two parts; multiples of the first by whole numbers below 2^11 are exact. */
#define LN2_HIGH 0x1.62e42fefa3800p-1
#define LN2_LOW 0x1.ef35793c76730p-45
#define ROUNDER 0x1.8p52

INLINE double of_bits(uint64_t u) {
  return ((union {
           uint64_t from;
           double to;
         }){.from = u})
      .to;
}
INLINE uint64_t bits_of(double f) {
  return ((union {
           double from;
           uint64_t to;
         }){.from = f})
      .to;
}
INLINE double magnitude(double x) {
  return of_bits(bits_of(x) & 0x7fffffffffffffff);
}
INLINE double with_sign(double x, double sign) {
  return of_bits((bits_of(x) & 0x7fffffffffffffff) | (bits_of(sign) & 0x8000000000000000));
}

/* exp(r) - 1 for |r| <= ln 2 / 2, by its series. */
INLINE double expm1_reduced(double r) {
  double p = 1.0 / 87178291200;
  p = FMA(p, r, 1.0 / 6227020800);
  p = FMA(p, r, 1.0 / 479001600);
  p = FMA(p, r, 1.0 / 39916800);
  p = FMA(p, r, 1.0 / 3628800);
  p = FMA(p, r, 1.0 / 362880);
  p = FMA(p, r, 1.0 / 40320);
  p = FMA(p, r, 1.0 / 5040);
  p = FMA(p, r, 1.0 / 720);
  p = FMA(p, r, 1.0 / 120);
  p = FMA(p, r, 1.0 / 24);
  p = FMA(p, r, 1.0 / 6);
  p = FMA(p, r, 0.5);
  return FMA(p * r, r, r);
}

/* 2^n y for whole n in [-1080, 1030], in two steps for results near overflow and denormal ones. */
INLINE double scale(double y, double n) {
  int64_t i = (int64_t)n, half = i >> 1;
  return y * of_bits((uint64_t)(half + 1023) << 52) * of_bits((uint64_t)(i - half + 1023) << 52);
}

/* exp(x + low) for |low| far below one. */
INLINE double exp_sum(double x, double low) {
  x = x < -750 ? -750 : x;
  x = x > 712 ? 712 : x;
  double n = FMA(x, 1.4426950408889634, ROUNDER) - ROUNDER;
  double r = FMA(n, -LN2_LOW, FMA(n, -LN2_HIGH, x)) + low;
  return scale(1 + expm1_reduced(r), n);
}

KERNEL double lpk_exp_f64(double x) {
  return exp_sum(x, 0);
}

KERNEL double lpk_expm1_f64(double x) {
  double y = x < -60 ? -60 : x;
  y = y > 712 ? 712 : y;
  double n = FMA(y, 1.4426950408889634, ROUNDER) - ROUNDER;
  double r = FMA(n, -LN2_LOW, FMA(n, -LN2_HIGH, y)), one = scale(1, n);
  double p = expm1_reduced(r);
  return n > 1000 ? scale(1 + p, n) : FMA(one, p, one - 1);
}

/* log of a positive number as a sum of two doubles: exponent and 2 atanh((m - 1) / (m + 1)), m in [sqrt 1/2, sqrt
 * 2). */
typedef struct {
  double high, low;
} pair;

INLINE pair log_pair(double x) {
  double tiny = x < 0x1p-1022 ? 54 : 0;
  x = tiny > 0 ? x * 0x1p54 : x;
  int64_t e = (int64_t)(bits_of(x) - 0x3fe6a09e667f3bcd) >> 52;
  double m = of_bits(bits_of(x) - ((uint64_t)e << 52)), d = m + 1, d_low = m - (d - 1);
  double z = (m - 1) / d, z_low = (FMA(-z, d, m - 1) - z * d_low) / d, s = z * z, n = (double)e - tiny;
  double p = 2.0 / 25;
  p = FMA(p, s, 2.0 / 23);
  p = FMA(p, s, 2.0 / 21);
  p = FMA(p, s, 2.0 / 19);
  p = FMA(p, s, 2.0 / 17);
  p = FMA(p, s, 2.0 / 15);
  p = FMA(p, s, 2.0 / 13);
  p = FMA(p, s, 2.0 / 11);
  p = FMA(p, s, 2.0 / 9);
  p = FMA(p, s, 2.0 / 7);
  p = FMA(p, s, 2.0 / 5);
  p = FMA(p, s, 2.0 / 3);
  double a = n * LN2_HIGH, b = 2 * z, high = a + b;
  double rest = n == 0 ? 0 : b - (high - a); /* |a| > |b| unless n is 0 */
  return (pair){high, rest + FMA(p * s, z, FMA(n, LN2_LOW, 2 * z_low))};
}

KERNEL double lpk_log_f64(double x) {
  double inf = __builtin_inf();
  pair y = log_pair(x > 0 && x < inf ? x : 1);
  double r = y.high + y.low;
  r = x == 0 ? -inf : r;
  r = x == inf ? inf : r;
  return x < 0 || x != x ? __builtin_nan("") : r;
}

KERNEL double lpk_log1p_f64(double x) {
  double u = 1 + x, y = lpk_log_f64(u), inf = __builtin_inf();
  double left = u > 0 && u < inf ? ((u - 1) - x) / u : 0;
  return y - left;
}

KERNEL double lpk_pow_f64(double x, double y) {
  double a = magnitude(x), inf = __builtin_inf();
  pair l = log_pair(a > 0 && a < inf ? a : 1);
  double high = y * l.high, low = FMA(y, l.high, -high) + y * l.low;
  double r = exp_sum(high, magnitude(high) < 800 ? low : 0);
  r = a == 0 ? (y < 0 ? inf : 0) : r;
  r = a == inf ? (y < 0 ? 0 : inf) : r;
  r = magnitude(y) == inf ? ((a > 1) == (y > 0) ? inf : 0) : r;
  r = magnitude(y) == inf && a == 1 ? 1 : r;
  /* Integers below 2^53 are odd or even; larger doubles are even. */
  double rounded = magnitude(y) < 0x1p52 ? with_sign((magnitude(y) + 0x1p52) - 0x1p52, y) : y;
  int whole = rounded == y;
  int odd = whole && magnitude(y) < 0x1p53 && ((int64_t)(magnitude(y) < 0x1p53 ? y : 0) & 1);
  r = with_sign(1, x) < 0 && odd ? -r : r;
  r = x < 0 && a != inf && !whole ? __builtin_nan("") : r;
  r = x != x || y != y ? __builtin_nan("") : r;
  return y == 0 || x == 1 ? 1 : r;
}

/* sin of x plus `quadrant` right angles; |x| up to 1e8. */
INLINE double sin_quadrant(double x, int64_t quadrant) {
  double n = FMA(x, 0.6366197723675814, ROUNDER) - ROUNDER;
  n = magnitude(x) < 0x1p31 ? n : 0;
  double r = FMA(n, -0x1.921fb54442d18p+0, x);
  r = FMA(n, -0x1.1a62633145c07p-54, r);
  int64_t q = (int64_t)n + quadrant;
  double z = r * r, s = -1.0 / 121645100408832000, c = 1.0 / 2432902008176640000;
  s = FMA(s, z, 1.0 / 355687428096000);
  s = FMA(s, z, -1.0 / 1307674368000);
  s = FMA(s, z, 1.0 / 6227020800);
  s = FMA(s, z, -1.0 / 39916800);
  s = FMA(s, z, 1.0 / 362880);
  s = FMA(s, z, -1.0 / 5040);
  s = FMA(s, z, 1.0 / 120);
  s = FMA(s, z, -1.0 / 6);
  s = FMA(s * z, r, r);
  c = FMA(c, z, -1.0 / 6402373705728000);
  c = FMA(c, z, 1.0 / 20922789888000);
  c = FMA(c, z, -1.0 / 87178291200);
  c = FMA(c, z, 1.0 / 479001600);
  c = FMA(c, z, -1.0 / 3628800);
  c = FMA(c, z, 1.0 / 40320);
  c = FMA(c, z, -1.0 / 720);
  c = FMA(c, z, 1.0 / 24);
  c = FMA(c, z, -0.5);
  c = FMA(c, z, 1.0);
  double y = q & 1 ? c : s;
  y = q & 2 ? -y : y;
  return magnitude(x) == __builtin_inf() ? __builtin_nan("") : y;
}

KERNEL double lpk_sin_f64(double x) {
  return sin_quadrant(x, 0);
}
KERNEL double lpk_cos_f64(double x) {
  return sin_quadrant(x, 1);
}

/* Two halvings of the angle, then the series. */
KERNEL double lpk_atan_f64(double x) {
  double a = magnitude(x), t = a > 1 ? 1 / a : a;
  t = t / (1 + __builtin_elementwise_sqrt(1 + t * t));
  t = t / (1 + __builtin_elementwise_sqrt(1 + t * t));
  double z = t * t, p = 1.0 / 25;
  p = FMA(p, z, -1.0 / 23);
  p = FMA(p, z, 1.0 / 21);
  p = FMA(p, z, -1.0 / 19);
  p = FMA(p, z, 1.0 / 17);
  p = FMA(p, z, -1.0 / 15);
  p = FMA(p, z, 1.0 / 13);
  p = FMA(p, z, -1.0 / 11);
  p = FMA(p, z, 1.0 / 9);
  p = FMA(p, z, -1.0 / 7);
  p = FMA(p, z, 1.0 / 5);
  p = FMA(p, z, -1.0 / 3);
  double y = 4 * FMA(p * z, t, t);
  return with_sign(a > 1 ? 1.5707963267948966 - y : y, x);
}

KERNEL double lpk_tanh_f64(double x) {
  double t = lpk_expm1_f64(2 * (magnitude(x) < 25 ? magnitude(x) : 25)), y = t / (t + 2);
  return x != x ? x : with_sign(y, x);
}

/* 2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): all terms positive; for x in [0, 2]. */
INLINE double erf_near(double x) {
  double z = 2 * x * x, term = x, sum = x;
  for (int n = 1; n <= 50; n++) {
    term *= z / (2 * n + 1);
    sum += term;
  }
  return 1.1283791670955126 * lpk_exp_f64(-x * x) * sum;
}

/* erfc's continued fraction, for x >= 2. */
INLINE double erfc_far(double x) {
  double f = x;
  for (int n = 100; n >= 1; n--)
    f = x + n * 0.5 / f;
  double square = x * x, low = FMA(x, x, -square);
  return exp_sum(-square, -low) * 0.5641895835477563 / f;
}

INLINE double erfc_f64(double x) {
  double a = magnitude(x), near = a < 2 ? a : 2, far = a < 2 ? 2 : a;
  far = far > 30 ? 30 : far;
  double upper = a < 2 ? 1 - erf_near(near) : erfc_far(far);
  double y = x < 0 ? (a < 2 ? 1 + erf_near(near) : 2 - erfc_far(far)) : upper;
  return x != x ? x : y;
}

KERNEL double lpk_erf_f64(double x) {
  double a = magnitude(x), near = a < 2 ? a : 2, far = a < 2 ? 2 : a;
  double y = a < 2 ? erf_near(near) : 1 - erfc_far(far > 30 ? 30 : far);
  return x != x ? x : with_sign(y, x);
}

KERNEL double lpk_sigmoid_f64(double x) {
  return 1 / (1 + lpk_exp_f64(-x));
}
KERNEL double lpk_silu_f64(double x) {
  return x / (1 + lpk_exp_f64(-x));
}
KERNEL double lpk_quick_gelu_f64(double x) {
  return x / (1 + lpk_exp_f64(-1.702 * x));
}
KERNEL double lpk_gelu_erf_f64(double x) {
  return 0.5 * x * erfc_f64(-0.7071067811865476 * x);
}
KERNEL double lpk_gelu_tanh_f64(double x) {
  return x / (1 + lpk_exp_f64(-1.5957691216057308 * FMA(0.044715 * x * x, x, x)));
}
KERNEL double lpk_softplus_f64(double x) {
  return (x > 0 ? x : 0) + lpk_log1p_f64(lpk_exp_f64(-magnitude(x)));
}
