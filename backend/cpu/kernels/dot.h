/* Dot products of integers, by the instructions of each target. The codes of a weight and the signed codes of an
 * activation are multiplied, four or two of one column in each lane of 32 bits, and summed exactly.
 *
 * A block is 32 rows of k. It is read in steps: in one step each lane holds the codes of four rows of its column, or of
 * two rows in 16 bits (DOT_PAIRS). A word of a packed weight holds 32 / bits rows, the first in its low bits, so step s
 * of a word takes rows s, s + 8 / bits, ... of it: a shift and a mask decode them. The activations are stored in the
 * same order (store_steps). */
#pragma once

#include "backend/cpu/kernels/groups.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

typedef uint8_t v64b __attribute__((ext_vector_type(64)));

enum { BLOCK = 32 };

/* How one step is multiplied and added. */
enum {
  DOT_PAIRS, /* vpmaddwd: both operands are widened to 16 bits before */
  DOT_SIGNS, /* vpmaddubsw of |w| and x with the sign of w: two products of 127 * 128 fit 16 bits */
  DOT_SUMS,  /* vpmaddubsw of codes of 5 and 6 bits: two products of 63 * 127 fit 16 bits */
  DOT_SMALL, /* vpmaddubsw of codes below 16, and sums of 16 bits: eight steps reach 8 * 2 * 15 * 127 */
  DOT_VNNI,  /* vpdpbusd; codes of 8 bits are read as unsigned, 128 above their value */
  DOT_SDOT,  /* sdot */
  DOT_SMULL, /* smull, addp, sadalp */
  DOT_SMMLA, /* smmla: products of two rows and two columns, eight rows of k at a time; only for tiles */
  DOT_TILES, /* tdpbssd: 16 rows, 16 columns and a block; codes below 8 bits less their middle; only for tiles */
  DOT_TILES_UNSIGNED /* tdpbsud, for weights that have zero points: codes as DOT_VNNI reads them */
};

/* `zeros`: of the weight's groups. `many`: for tiles of rows, which use each weight many times, so that widening it
 * pays. */
INLINE int dot_kind(int dot, int bits, int zeros, int many) {
  return dot == LPK_DOT_AMX && many ? (zeros == LPK_ZEROS || zeros == LPK_MINIMA ? DOT_TILES_UNSIGNED : DOT_TILES)
         : dot == LPK_DOT_VNNI512 || dot == LPK_DOT_VNNI256 || dot == LPK_DOT_AMX ? DOT_VNNI
         : dot == LPK_DOT_I8MM && many                                            ? DOT_SMMLA
         : dot == LPK_DOT_SDOT || dot == LPK_DOT_I8MM                             ? DOT_SDOT
         : dot == LPK_DOT_SMULL                                                   ? DOT_SMULL
         : bits < 5                                                               ? DOT_SMALL
         : bits < 8                                                               ? DOT_SUMS
         : many && zeros != LPK_UNEVEN && zeros != LPK_NORMAL                     ? DOT_PAIRS
                                                                                  : DOT_SIGNS;
}

/* Whether AMX multiplies tiles. */
INLINE int has_amx_tiles(int kind) {
  return kind == DOT_TILES || kind == DOT_TILES_UNSIGNED;
}

/* Whether codes of 8 bits are read as unsigned, 128 above their value. */
INLINE int reads_unsigned(int kind) {
  return kind == DOT_VNNI || kind == DOT_TILES_UNSIGNED;
}

INLINE int block_steps(int kind) {
  return kind == DOT_PAIRS ? BLOCK / 2 : BLOCK / 4;
}

/* The number of steps in a word of a weight's codes, or of their low bits. */
INLINE int word_steps(int kind, const groups *q) {
  return kind == DOT_PAIRS ? 2 : 8 / low_bits(q);
}

/* What dot_step's codes exceed those of the weight by. */
INLINE int code_offset(int kind, const groups *q) {
  return reads_unsigned(kind) && q->bits == 8 ? 128 : 0;
}

/* The bytes of each word as 16 bits: step 0 has the even ones, step 1 the odd ones. */
INLINE v16w widen_bytes(v16w word, int step) {
  typedef int16_t v32s __attribute__((ext_vector_type(32)));
  v32s pairs = (v32s)word;
  return (v16w)(step ? pairs >> 8 : (v32s)(pairs << 8) >> 8);
}

/* The values of codes of a book, one in each byte (book_of). */
INLINE v16w look_up(v16w codes, const groups *q, int dot) {
  (void)dot;
#if defined(__AVX2__)
  typedef uint32_t v8w __attribute__((ext_vector_type(8)));
  const __m128i book = _mm_loadu_si128((const __m128i_u *)book_of(q));
#if defined(__AVX512BW__)
  if (dot == LPK_DOT_VNNI512 || dot == LPK_DOT_AMX)
    return (v16w)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(book), (__m512i)codes);
#endif
  const __m256i both = _mm256_broadcastsi128_si256(book);
  codes.lo = (v8w)_mm256_shuffle_epi8(both, (__m256i)codes.lo);
  codes.hi = (v8w)_mm256_shuffle_epi8(both, (__m256i)codes.hi);
  return codes;
#else
  union {
    v16w words;
    uint8x16_t part[4];
  } x = {codes};
  UNROLL for (int i = 0; i < 4; i++) x.part[i] = vqtbl1q_u8(vld1q_u8(book_of(q)), x.part[i]);
  return x.words;
#endif
}

/* The operand of step `step` of a word. Codes of 5 and 6 bits take their high bits from step `high_step` of a word of
 * these. */
INLINE v16w step_codes(v16w word, int step, v16w high, int high_step, int kind, int dot, const groups *q) {
  const int bits = q->bits;
  if (kind == DOT_PAIRS) return widen_bytes(word, step);
  if (low_bits(q) == 8) return reads_unsigned(kind) ? word ^ 0x80808080u : word;
  v16w codes = bits == 2 ? word >> (uint32_t)(step * 2) & 0x03030303u : word >> (uint32_t)(step * 4) & 0x0f0f0f0fu;
  if (has_book(q)) codes = look_up(codes, q, dot);
  if (bits == 8) return reads_unsigned(kind) ? codes : codes ^ 0x80808080u;
  if (high_bits(q) == 1) codes |= (high >> (uint32_t)high_step & 0x01010101u) << 4;
  if (high_bits(q) == 2) codes |= (high >> (uint32_t)(high_step * 2) & 0x03030303u) << 4;
  return kind == DOT_TILES ? (v16w)((v64b)codes - (uint8_t)(1 << (bits - 1))) : codes;
}

#if defined(__AVX2__)
typedef int32_t v8i __attribute__((ext_vector_type(8)));

INLINE v8i add_signs(v8i sum, v8i w, v8i x) {
  __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)w), _mm256_sign_epi8((__m256i)x, (__m256i)w));
  return sum + (v8i)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE v8i add_sums(v8i sum, v8i w, v8i x) {
  __m256i pairs = _mm256_maddubs_epi16((__m256i)w, (__m256i)x);
  return sum + (v8i)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE v8i add_pairs(v8i sum, v8i w, v8i x) {
  return sum + (v8i)_mm256_madd_epi16((__m256i)w, (__m256i)x);
}
INLINE v8i add_small(v8i sum, v8i w, v8i x) {
  return (v8i)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)w, (__m256i)x));
}
INLINE v8i sum_small(v8i sum) {
  return (v8i)_mm256_madd_epi16((__m256i)sum, _mm256_set1_epi16(1));
}
INLINE v16i join8(v8i lo, v8i hi) {
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* sum + the products of one step; x: the activations of the step in each lane. A sum of DOT_SMALL has 16 bits a
 * product. */
INLINE v16i dot_add(v16i sum, v16i w, v16i x, int kind, int dot) {
  if (kind == DOT_SIGNS) return join8(add_signs(sum.lo, w.lo, x.lo), add_signs(sum.hi, w.hi, x.hi));
  if (kind == DOT_PAIRS) return join8(add_pairs(sum.lo, w.lo, x.lo), add_pairs(sum.hi, w.hi, x.hi));
  if (kind == DOT_SUMS) return join8(add_sums(sum.lo, w.lo, x.lo), add_sums(sum.hi, w.hi, x.hi));
  if (kind == DOT_SMALL) return join8(add_small(sum.lo, w.lo, x.lo), add_small(sum.hi, w.hi, x.hi));
#if defined(__AVX512VNNI__)
  if (dot != LPK_DOT_VNNI256) return (v16i)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
  return join8((v8i)_mm256_dpbusd_epi32((__m256i)sum.lo, (__m256i)w.lo, (__m256i)x.lo),
               (v8i)_mm256_dpbusd_epi32((__m256i)sum.hi, (__m256i)w.hi, (__m256i)x.hi));
#else
  (void)dot;
  return sum;
#endif
}

/* Never called: the instruction is aarch64's. */
typedef int32_t v4i __attribute__((ext_vector_type(4)));
INLINE v4i add_smmla(v4i sum, v4i rows, v4i columns) {
  (void)rows, (void)columns;
  return sum;
}

/* The sum of a block as integers of 32 bits. */
INLINE v16i dot_sum(v16i sum, int kind) {
  return kind == DOT_SMALL ? join8(sum_small(sum.lo), sum_small(sum.hi)) : sum;
}

#elif defined(__ARM_NEON)
typedef int32_t v4i __attribute__((ext_vector_type(4)));

INLINE v4i add_smull(v4i sum, v4i w, v4i x) {
  int8x16_t a = (int8x16_t)w, b = (int8x16_t)x;
  int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
  return (v4i)vpadalq_s16((int32x4_t)sum, pairs);
}
INLINE v4i add_sdot(v4i sum, v4i w, v4i x) {
  return (v4i)vdotq_s32((int32x4_t)sum, (int8x16_t)w, (int8x16_t)x);
}
INLINE v4i add_quarter(v4i sum, v4i w, v4i x, int kind) {
  return kind == DOT_SDOT ? add_sdot(sum, w, x) : add_smull(sum, w, x);
}

INLINE v16i dot_add(v16i sum, v16i w, v16i x, int kind, int dot) {
  (void)dot;
  v4i part[4] = {add_quarter(sum.lo.lo, w.lo.lo, x.lo.lo, kind), add_quarter(sum.lo.hi, w.lo.hi, x.lo.hi, kind),
                 add_quarter(sum.hi.lo, w.hi.lo, x.hi.lo, kind), add_quarter(sum.hi.hi, w.hi.hi, x.hi.hi, kind)};
  v16i all;
  all.lo.lo = part[0], all.lo.hi = part[1], all.hi.lo = part[2], all.hi.hi = part[3];
  return all;
}

INLINE v16i dot_sum(v16i sum, int kind) {
  (void)kind;
  return sum;
}

/* sum[2][2] + rows[2][8] . columns[2][8] */
INLINE v4i add_smmla(v4i sum, v4i rows, v4i columns) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  return (v4i)vmmlaq_s32((int32x4_t)sum, (int8x16_t)rows, (int8x16_t)columns);
#else
  (void)rows, (void)columns;
  return sum;
#endif
}
#endif
