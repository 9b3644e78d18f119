/* Vectors of 16 floats, and functions on them that every kernel needs. LLVM maps one to a 512-bit register, two of 256
 * or four of 128 bits. All functions here are inlined, so no ISA ever passes such a vector as an argument. */
#pragma once

#include "backend/cpu/kernels/kernels.h"

#define INLINE static inline __attribute__((always_inline, unused))
#define KERNEL __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")

enum { LANES = 16 };

typedef float v16 __attribute__((ext_vector_type(16)));
typedef int32_t v16i __attribute__((ext_vector_type(16)));
typedef uint32_t v16w __attribute__((ext_vector_type(16)));
typedef uint16_t v16s __attribute__((ext_vector_type(16)));
typedef _Float16 v16h __attribute__((ext_vector_type(16)));
/* A vector at the address of any element. */
typedef v16 v16_any __attribute__((aligned(4), may_alias));
typedef float v8_any __attribute__((ext_vector_type(8), aligned(4), may_alias));
typedef float v4_any __attribute__((ext_vector_type(4), aligned(4), may_alias));
typedef v16w v16w_any __attribute__((aligned(4), may_alias));
typedef v16s v16s_any __attribute__((aligned(2), may_alias));
typedef v16h v16h_any __attribute__((aligned(2), may_alias));

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

INLINE int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
INLINE int64_t max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* First of `count` items that thread `thread` of `threads` takes; its last is the next thread's first. */
INLINE int64_t share(int64_t count, int64_t thread, int64_t threads) {
  return count * thread / threads;
}

INLINE v16 splat(float x) {
  return (v16)x;
}
INLINE v16 load16(const float *x) {
  return *(const v16_any *)x;
}
INLINE void store16(float *y, v16 v) {
  *(v16_any *)y = v;
}

/* Stores the first `count` lanes in pieces of 8, 4, 2 and 1, which is cheap for a constant. */
INLINE void store_part(float *y, v16 v, int64_t count) {
  if (count & 16) store16(y, v);
  if (count & 8) {
    *(v8_any *)y = v.lo;
    v.lo = v.hi;
    y += 8;
  }
  if (count & 4) {
    *(v4_any *)y = v.s0123;
    v.s0123 = v.s4567;
    y += 4;
  }
  if (count & 2) {
    y[0] = v.s0;
    y[1] = v.s1;
    v.s0 = v.s2;
    y += 2;
  }
  if (count & 1) *y = v.s0;
}
/* Loads the first `count` lanes; the others are zero. */
INLINE v16 load_part(const float *x, int64_t count) {
  float lanes[LANES] = {0};
  memcpy(lanes, x, (size_t)count * sizeof *x);
  return load16(lanes);
}

INLINE float bf16_value(uint16_t bits) {
  union {
    uint32_t bits;
    float value;
  } wide = {(uint32_t)bits << 16};
  return wide.value;
}

/* 16 weights of `dtype` from element `at`. */
INLINE v16 load_weight(const void *w, int64_t at, int dtype) {
  if (dtype == LPK_F16) return __builtin_convertvector(*(const v16h_any *)((const _Float16 *)w + at), v16);
  if (dtype == LPK_BF16) {
    v16w bits = __builtin_convertvector(*(const v16s_any *)((const uint16_t *)w + at), v16w) << 16;
    return (v16)bits;
  }
  return load16((const float *)w + at);
}
/* 16 values as LPK_F16 or LPK_BF16, rounded to nearest even. */
INLINE void store_half(uint16_t *y, v16 x, int dtype) {
  if (dtype == LPK_F16) {
    *(v16h_any *)y = __builtin_convertvector(x, v16h);
    return;
  }
  v16w bits = (v16w)x, rounded = bits + 0x7fff + ((bits >> 16) & 1);
  v16w quiet = bits | 0x400000; /* NaN stays NaN */
  rounded = x == x ? rounded : quiet;
  *(v16s_any *)y = __builtin_convertvector(rounded >> 16, v16s);
}
INLINE int64_t dtype_bytes(int dtype) {
  return dtype == LPK_I64 || dtype == LPK_F64 ? 8 : dtype == LPK_F16 || dtype == LPK_BF16 ? 2 : dtype == LPK_U8 ? 1 : 4;
}

/* r[i] lane j = x[j] lane i, in place. */
INLINE void transpose16(v16 *x) {
  v16 t[16];
  UNROLL for (int i = 0; i < 16; i += 4) { /* 4x4 transpositions within quarters */
    v16 a = __builtin_shufflevector(x[i], x[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    v16 b = __builtin_shufflevector(x[i], x[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    v16 c = __builtin_shufflevector(x[i + 2], x[i + 3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    v16 d = __builtin_shufflevector(x[i + 2], x[i + 3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    t[i] = __builtin_shufflevector(a, c, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    t[i + 1] = __builtin_shufflevector(a, c, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    t[i + 2] = __builtin_shufflevector(b, d, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    t[i + 3] = __builtin_shufflevector(b, d, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  }
  UNROLL for (int i = 0; i < 4; i++) { /* 4x4 transposition of the quarters */
    v16 a = __builtin_shufflevector(t[i], t[4 + i], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    v16 b = __builtin_shufflevector(t[i], t[4 + i], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    v16 c = __builtin_shufflevector(t[8 + i], t[12 + i], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    v16 d = __builtin_shufflevector(t[8 + i], t[12 + i], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    x[i] = __builtin_shufflevector(a, c, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    x[4 + i] = __builtin_shufflevector(b, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    x[8 + i] = __builtin_shufflevector(a, c, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    x[12 + i] = __builtin_shufflevector(b, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
}

INLINE v16 max16(v16 a, v16 b) {
  return a > b ? a : b;
}
INLINE v16 min16(v16 a, v16 b) {
  return a < b ? a : b;
}
/* How two vectors become one: their sum, the greater elements, or the greater ones as integers, which for numbers that
 * are not negative is the same and keeps an infinity or a NaN. */
enum { FOLD_SUM, FOLD_MAX, FOLD_BITS };
INLINE v16 fold16(v16 a, v16 b, int how) {
  v16i x = (v16i)a, y = (v16i)b;
  return how == FOLD_SUM ? a + b : how == FOLD_MAX ? max16(a, b) : (v16)(x > y ? x : y);
}

/* Lane i = the lanes of x[i] folded. */
INLINE v16 fold_lanes16(const v16 *x, int how) {
  v16 t[4];
  UNROLL for (int i = 0; i < 4; i++) {
    const v16 *y = x + 4 * i;
    v16 a =
        fold16(__builtin_shufflevector(y[0], y[1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29),
               __builtin_shufflevector(y[0], y[1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31), how);
    v16 b =
        fold16(__builtin_shufflevector(y[2], y[3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29),
               __builtin_shufflevector(y[2], y[3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31), how);
    t[i] = fold16(__builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                  __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31), how);
  }
  v16 a = fold16(__builtin_shufflevector(t[0], t[1], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                 __builtin_shufflevector(t[0], t[1], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31), how);
  v16 b = fold16(__builtin_shufflevector(t[2], t[3], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                 __builtin_shufflevector(t[2], t[3], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31), how);
  return fold16(__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31), how);
}

/* words[at] in each lane. It is taken from a vector of four words, for targets whose products read an operand from a
 * lane: one load serves four operands. */
INLINE v16i lane_of_four(const int32_t *words, int at) {
  typedef int32_t v4i_any __attribute__((ext_vector_type(4), aligned(4), may_alias));
  return (v16i)(*(const v4i_any *)(words + at / 4 * 4))[at % 4];
}

INLINE float sum_lanes(v16 v) {
  v.lo += v.hi;
  v.s0123 += v.s4567;
  return (v.s0 + v.s2) + (v.s1 + v.s3);
}

INLINE float sum_of(const float *x, int64_t count) {
  v16 sum = splat(0);
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    sum += load16(x + i);
  float rest = 0;
  for (; i < count; i++)
    rest += x[i];
  return sum_lanes(sum) + rest;
}

INLINE float max_lanes(v16 v) {
  v = max16(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  v = max16(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  v = max16(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  return v.s0 > v.s1 ? v.s0 : v.s1;
}
