/* The functions of math.h for one type: included once with F = float and once with F = v16, with I and U the signed
 * and unsigned integers of the same shape, NAME(f) the function's name, SPLAT(c) a constant, TO_F(i) a conversion.
 * Branch-free. No include guard. Polynomials: minimax fits in single precision, evaluated with fused multiply-add. */

#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define BITS_F(u)                                                                                                      \
  (((union {                                                                                                           \
     U from;                                                                                                           \
     F to;                                                                                                             \
   }){.from = (u)})                                                                                                    \
       .to)
#define BITS_U(f)                                                                                                      \
  (((union {                                                                                                           \
     F from;                                                                                                           \
     U to;                                                                                                             \
   }){.from = (f)})                                                                                                    \
       .to)

/* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
#define ROUNDER 12582912.0f

INLINE F NAME(fabs)(F x) {
  return BITS_F(BITS_U(x) & 0x7fffffff);
}
INLINE F NAME(copysign)(F x, F sign) {
  return BITS_F((BITS_U(x) & 0x7fffffff) | (BITS_U(sign) & 0x80000000));
}

/* exp(r) for |r| <= ln 2 / 2. */
INLINE F NAME(exp_reduced)(F r) {
  F p = SPLAT(0x1.694000p-10f);
  p = FMA(p, r, SPLAT(0x1.125edcp-7f));
  p = FMA(p, r, SPLAT(0x1.555b5ap-5f));
  p = FMA(p, r, SPLAT(0x1.555450p-3f));
  p = FMA(p, r, SPLAT(0x1.fffff6p-2f));
  p = FMA(p, r, SPLAT(1));
  return FMA(p, r, SPLAT(1));
}

INLINE F NAME(exp)(F x) {
  x = x < -110.0f ? SPLAT(-110.0f) : x;
  x = x > 100.0f ? SPLAT(100.0f) : x;
  F t = FMA(x, SPLAT(0x1.715476p+0f), SPLAT(ROUNDER));
  F n = t - ROUNDER;
  F r = FMA(n, SPLAT(-0x1.62e400p-1f), x);
  r = FMA(n, SPLAT(-0x1.7f7d1cp-20f), r);
  U i = BITS_U(t) - BITS_U(SPLAT(ROUNDER));
  U half = (U)((I)i >> 1); /* in two steps, for results near overflow and denormal ones */
  return NAME(exp_reduced)(r) * BITS_F((half + 127) << 23) * BITS_F((i - half + 127) << 23);
}

/* exp(x) for x <= 0. A result below the smallest normal number is zero. */
INLINE F NAME(exp_negative)(F x) {
  x = x < -88.0f ? SPLAT(-88.0f) : x;
  F t = FMA(x, SPLAT(0x1.715476p+0f), SPLAT(ROUNDER + 127.0f));
  F n = t - (ROUNDER + 127.0f);
  F r = FMA(n, SPLAT(-0x1.62e400p-1f), x);
  r = FMA(n, SPLAT(-0x1.7f7d1cp-20f), r);
  return NAME(exp_reduced)(r) * BITS_F(BITS_U(t) << 23);
}

/* exp(x) for x <= 0 within 1e-4 of the value, for results that are rounded to bf16. */
INLINE F NAME(exp_rough)(F x) {
  x = x < -88.0f ? SPLAT(-88.0f) : x;
  F t = FMA(x, SPLAT(0x1.715476p+0f), SPLAT(ROUNDER + 127.0f));
  F r = FMA(x, SPLAT(0x1.715476p+0f), (ROUNDER + 127.0f) - t);
  F p = FMA(SPLAT(0x1.c2a1b4p-5f), r, SPLAT(0x1.f00c32p-3f));
  p = FMA(p, r, SPLAT(0x1.62f5fap-1f));
  return FMA(p, r, SPLAT(1)) * BITS_F(BITS_U(t) << 23);
}

/* 1 + exp(x). Infinite from 88.4 on. */
INLINE F NAME(exp_plus_one)(F x) {
  x = x < -87.0f ? SPLAT(-87.0f) : x;
  x = x > 89.0f ? SPLAT(89.0f) : x;
  F t = FMA(x, SPLAT(0x1.715476p+0f), SPLAT(ROUNDER + 127.0f));
  F n = t - (ROUNDER + 127.0f);
  F r = FMA(n, SPLAT(-0x1.62e400p-1f), x);
  r = FMA(n, SPLAT(-0x1.7f7d1cp-20f), r);
  return FMA(NAME(exp_reduced)(r), BITS_F(BITS_U(t) << 23), SPLAT(1));
}

INLINE F NAME(log)(F x) {
  F scaled = x < 0x1p-126f ? x * 0x1p+23f : x;
  F bias = x < 0x1p-126f ? SPLAT(-23) : SPLAT(0);
  U e = (BITS_U(scaled) - 0x3f2aaaab) & 0xff800000;
  F f = BITS_F(BITS_U(scaled) - e) - 1.0f;
  F exponent = FMA(TO_F((I)e), SPLAT(0x1p-23f), bias), s = f * f;
  F r = FMA(SPLAT(-0.130310059f), s, SPLAT(-0.121483438f));
  F t = FMA(SPLAT(0.140869141f), s, SPLAT(0.139814854f));
  r = FMA(r, s, SPLAT(-0.166846126f));
  t = FMA(t, s, SPLAT(0.200120345f));
  r = FMA(r, s, SPLAT(-0.249996200f));
  r = FMA(t, f, r);
  r = FMA(r, f, SPLAT(0.333331972f));
  r = FMA(r, f, SPLAT(-0.5f));
  r = FMA(r, s, f);
  r = FMA(exponent, SPLAT(0.693147182f), r);
  F special = x < 0.0f ? SPLAT(__builtin_nanf("")) : SPLAT(-__builtin_inff());
  r = x > 0.0f ? r : special;
  F big = x + x; /* infinity and NaN give themselves */
  return x < __builtin_inff() ? r : big;
}

INLINE F NAME(sigmoid)(F x) {
  return 1.0f / NAME(exp_plus_one)(-x);
}
INLINE F NAME(silu)(F x) {
  return x / NAME(exp_plus_one)(-x);
}
INLINE F NAME(quick_gelu)(F x) {
  return x / NAME(exp_plus_one)(-1.702f * x);
}
INLINE F NAME(relu)(F x) {
  return x < 0.0f ? SPLAT(0) : x;
}

INLINE F NAME(tanh)(F x) {
  F t = NAME(fabs)(x), s = x * x;
  F big = 1.0f - 2.0f / (NAME(exp)(t + t) + 1.0f);
  F p = SPLAT(-0x1.9bba68p-8f);
  p = FMA(p, s, SPLAT(0x1.595686p-6f));
  p = FMA(p, s, SPLAT(-0x1.b92bbap-5f));
  p = FMA(p, s, SPLAT(0x1.110d3cp-3f));
  p = FMA(p, s, SPLAT(-0x1.55554cp-2f));
  F small = FMA(p * s, x, x);
  return t < 0.55f ? small : NAME(copysign)(big, x);
}

/* 0.5 x (1 + tanh(u)) = x * sigmoid(2 u). */
INLINE F NAME(gelu_tanh)(F x) {
  F u = x * FMA(x * x, SPLAT(2 * 0.7978845608f * 0.044715f), SPLAT(2 * 0.7978845608f));
  return x / NAME(exp_plus_one)(-u);
}

INLINE F NAME(erf)(F x) {
  F t = NAME(fabs)(x), s = x * x;
  F r = FMA(SPLAT(-1.72853470e-5f), t, SPLAT(3.83197126e-4f));
  F u = FMA(SPLAT(-3.88396438e-3f), t, SPLAT(2.42546219e-2f));
  r = FMA(r, s, u);
  r = FMA(r, t, SPLAT(-1.06777877e-1f));
  r = FMA(r, t, SPLAT(-6.34846687e-1f));
  r = FMA(r, t, SPLAT(-1.28717512e-1f));
  r = FMA(r, t, -t);
  F big = NAME(copysign)(1.0f - NAME(exp)(r), x);
  big = t > 4.0f ? NAME(copysign)(SPLAT(1), x) : big; /* the polynomial overflows for huge x */
  F p = SPLAT(-5.96761703e-4f);
  p = FMA(p, s, SPLAT(4.99119423e-3f));
  p = FMA(p, s, SPLAT(-2.67681349e-2f));
  p = FMA(p, s, SPLAT(1.12819925e-1f));
  p = FMA(p, s, SPLAT(-3.76125336e-1f));
  p = FMA(p, s, SPLAT(1.28379166e-1f));
  F small = FMA(p, x, x);
  return t > 0.927734375f ? big : small;
}
INLINE F NAME(gelu_erf)(F x) {
  F half = 0.5f * x;
  return FMA(half, NAME(erf)(x * 0.70710678118f), half);
}

/* max(x, 0) + log1p(exp(-|x|)), log1p(u) = log(1 + u) * u / ((1 + u) - 1). */
INLINE F NAME(softplus)(F x) {
  F u = NAME(exp)(-NAME(fabs)(x)), w = 1.0f + u, d = w - 1.0f;
  F log1p = d > 0.0f ? NAME(log)(w) * u / d : u;
  return (x < 0.0f ? SPLAT(0) : x) + log1p;
}

/* sin(x + quadrant * pi / 2), three-part reduction by pi / 2. */
INLINE F NAME(sin_quadrant)(F x, uint32_t quadrant) {
  F t = FMA(x, SPLAT(0x1.45f306p-1f), SPLAT(ROUNDER));
  F n = t - ROUNDER;
  F r = FMA(n, SPLAT(-0x1.921fb0p+0f), x);
  r = FMA(n, SPLAT(-0x1.5110b4p-22f), r);
  r = FMA(n, SPLAT(-0x1.846988p-48f), r);
  U i = BITS_U(t) + quadrant;
  F s = r * r;
  F sin = FMA(SPLAT(2.86567956e-6f), s, SPLAT(-1.98559923e-4f));
  sin = FMA(sin, s, SPLAT(8.33338592e-3f));
  sin = FMA(sin, s, SPLAT(-1.66666672e-1f));
  sin = FMA(sin * s, r, r);
  F cos = FMA(SPLAT(2.44677067e-5f), s, SPLAT(-1.38877297e-3f));
  cos = FMA(cos, s, SPLAT(4.16666567e-2f));
  cos = FMA(cos, s, SPLAT(-0.5f));
  cos = FMA(cos, s, SPLAT(1));
  F y = (i & 1) != 0 ? cos : sin;
  return BITS_F(BITS_U(y) ^ ((i & 2) << 30));
}

#undef FMA
#undef BITS_F
#undef BITS_U
#undef ROUNDER
