/* Dot products of bf16. A lane of 32 bits holds the elements of two consecutive rows of k, the first in its low bits:
 * those of one column of a weight, or of a row of activations, which are rounded to bf16. */
#pragma once

#include "backend/cpu/kernels/vector.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>
#endif

/* The number of pairs of k that a tile's loop takes at once. Those of six rows fill three vectors of 128 bits, and
 * bfdot takes its operand from a lane of them. Other targets load and repeat a pair in one instruction. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
enum { PAIRS_AT_ONCE = 2 };
#else
enum { PAIRS_AT_ONCE = 1 };
#endif

typedef uint16_t v32h __attribute__((ext_vector_type(32)));
typedef uint32_t v4w __attribute__((ext_vector_type(4)));

/* sum + x.low * w.low + x.high * w.high in each lane. Targets differ in the rounding of the two products, and may take
 * numbers below 2^-126 as zero. */
INLINE v16 add_pair(v16 sum, v16w w, v16w x) {
#if defined(__AVX512BF16__)
  return (v16)_mm512_dpbf16_ps((__m512)sum, (__m512bh)w, (__m512bh)x);
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  v16 out;
  out.lo.lo = vbfdotq_f32(sum.lo.lo, (bfloat16x8_t)w.lo.lo, (bfloat16x8_t)x.lo.lo);
  out.lo.hi = vbfdotq_f32(sum.lo.hi, (bfloat16x8_t)w.lo.hi, (bfloat16x8_t)x.lo.hi);
  out.hi.lo = vbfdotq_f32(sum.hi.lo, (bfloat16x8_t)w.hi.lo, (bfloat16x8_t)x.hi.lo);
  out.hi.hi = vbfdotq_f32(sum.hi.hi, (bfloat16x8_t)w.hi.hi, (bfloat16x8_t)x.hi.hi);
  return out;
#else
  sum += (v16)(w & 0xffff0000u) * (v16)(x & 0xffff0000u);
  return sum + (v16)(w << 16) * (v16)(x << 16);
#endif
}

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
typedef float v4 __attribute__((ext_vector_type(4)));

INLINE v4 repeat_lane(v4 x, int64_t lane) {
  return lane == 0 ? x.s0000 : lane == 1 ? x.s1111 : lane == 2 ? x.s2222 : x.s3333;
}
#endif

/* Adds the products with pairs[at]. It takes them from a lane of four: LLVM makes a lane of floats an operand of bfdot.
 * Only for targets that take several pairs at once. */
INLINE v16 add_pair_of_lane(v16 sum, v16w w, const uint32_t *pairs, int64_t at) {
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  bfloat16x8_t x = (bfloat16x8_t)repeat_lane(*(const v4_any *)(pairs + at / 4 * 4), at % 4);
  v16 out;
  out.lo.lo = vbfdotq_f32(sum.lo.lo, (bfloat16x8_t)w.lo.lo, x);
  out.lo.hi = vbfdotq_f32(sum.lo.hi, (bfloat16x8_t)w.lo.hi, x);
  out.hi.lo = vbfdotq_f32(sum.hi.lo, (bfloat16x8_t)w.hi.lo, x);
  out.hi.hi = vbfdotq_f32(sum.hi.hi, (bfloat16x8_t)w.hi.hi, x);
  return out;
#else
  return add_pair(sum, w, (v16w)pairs[at]);
#endif
}

/* 16 floats as bf16, to nearest even, in the low halves of the lanes. */
INLINE v16w low_halves(v16 x) {
  v16w bits = (v16w)x, rounded = bits + 0x7fff + ((bits >> 16) & 1);
  v16w quiet = bits | 0x400000; /* NaN stays NaN */
  return (x == x ? rounded : quiet) >> 16;
}

/* The pairs of 32 floats in order, to nearest even. Targets with an instruction for it may take numbers below 2^-126 as
 * zero. */
INLINE v16w round_pairs(v16 lo, v16 hi) {
#if defined(__AVX512BF16__)
  return (v16w)_mm512_cvtne2ps_pbh((__m512)hi, (__m512)lo);
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  v16w out;
  out.lo.lo = (v4w)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(lo.lo.lo), lo.lo.hi);
  out.lo.hi = (v4w)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(lo.hi.lo), lo.hi.hi);
  out.hi.lo = (v4w)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(hi.lo.lo), hi.lo.hi);
  out.hi.hi = (v4w)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(hi.hi.lo), hi.hi.hi);
  return out;
#else
  v16 even = __builtin_shufflevector(lo, hi, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  v16 odd = __builtin_shufflevector(lo, hi, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return low_halves(even) | low_halves(odd) << 16;
#endif
}

/* Lane i holds elements i of both, `first` in its low bits. */
INLINE v16w join_halves(v16 first, v16 second) {
  v32h x = (v32h)round_pairs(first, second);
  return (v16w)__builtin_shufflevector(x, x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10,
                                       26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* The pairs of the first `count` of 32 activations and of zeros. */
INLINE v16w round_some(const float *x, int64_t count) {
  v16 lo = count >= LANES ? load16(x) : load_part(x, count);
  v16 hi = count >= 2 * LANES ? load16(x + LANES) : count > LANES ? load_part(x + LANES, count - LANES) : splat(0);
  return round_pairs(lo, hi);
}

/* The pairs of two rows of a panel, of which the second may be absent (zeros): columns 0 .. 15 and 16 .. 31. */
INLINE void join_rows(v16w *pairs, const uint16_t *row, int two) {
  typedef v32h v32h_any __attribute__((aligned(2), may_alias));
  v32h a = *(const v32h_any *)row, b = two ? *(const v32h_any *)(row + LPK_PANEL) : (v32h)(uint16_t)0;
  pairs[0] = (v16w)__builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41,
                                           10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
  pairs[1] = (v16w)__builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56,
                                           25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}
