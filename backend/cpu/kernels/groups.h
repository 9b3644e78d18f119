/* Weights of 8, 4 and 2 bits in groups: their layout, and their conversion to floats. */
#pragma once

#include "backend/cpu/kernels/vector.h"

typedef lpk_groups groups;

INLINE int stores_zeros(const groups *q) {
  return q->zeros == LPK_ZEROS || q->zeros == LPK_MINIMA;
}

INLINE int has_book(const groups *q) {
  return q->zeros >= LPK_DOUBLES && q->zeros <= LPK_NORMAL;
}

/* Bits of a code that lie in words of their own, after those of the low bits. */
INLINE int high_bits(const groups *q) {
  return has_book(q) ? 0 : q->bits == 5 ? 1 : q->bits == 6 ? 2 : 0;
}

INLINE int low_bits(const groups *q) {
  return has_book(q) ? 4 : q->bits - high_bits(q);
}

/* The values of a book plus 2^(bits - 1), so that none is negative. */
INLINE const uint8_t *book_of(const groups *q) {
  static const uint8_t books[][16] = {{16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4},
                                      {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
                                      {1, 40, 61, 78, 92, 105, 116, 128, 138, 148, 159, 171, 184, 199, 220, 255}};
  return books[q->zeros - LPK_DOUBLES];
}

/* The number of rows of k that share a 32-bit word of a column with their codes. */
INLINE int64_t word_rows(int bits) {
  return 32 / bits;
}

/* The bit in a word of high bits at which those of row `row` of the word begin: step t of the word's rows (dot.h) takes
 * them by a shift of t * bits and a mask. */
INLINE int64_t high_place(int64_t row, int bits) {
  return row % 8 / 2 * 8 + (row / 8 * 2 + row % 2) * bits;
}

/* Bytes of the scales, or of the zero points or minima, of a group. */
INLINE int64_t scale_bytes(const groups *q) {
  return q->super ? LPK_PANEL : LPK_PANEL * dtype_bytes(q->scale);
}

/* Bytes of the scales and zero points that precede a group's codes. */
INLINE int64_t head_bytes(const groups *q) {
  return scale_bytes(q) * (stores_zeros(q) ? 2 : 1);
}

/* Bytes of the low bits, or of the high bits, of `rows` rows. */
INLINE int64_t plane_bytes(int64_t rows, int bits) {
  int64_t words = word_rows(bits);
  return (rows + words - 1) / words * words * LPK_PANEL * bits / 8;
}

INLINE int64_t code_bytes(const groups *q, int64_t rows) {
  return plane_bytes(rows, low_bits(q)) + (high_bits(q) ? plane_bytes(rows, high_bits(q)) : 0);
}

INLINE int64_t group_bytes(const groups *q) {
  return head_bytes(q) + code_bytes(q, q->group);
}

/* Bytes of the f16 that precede a super-block. */
INLINE int64_t super_bytes(const groups *q) {
  return q->super ? LPK_PANEL * 2 * (stores_zeros(q) ? 2 : 1) : 0;
}

/* A group of a panel, and its super-block. */
typedef struct {
  const char *head, *super;
} group_place;

INLINE group_place find_group(const groups *q, const char *panel, int64_t number) {
  if (!q->super) return (group_place){panel + number * group_bytes(q), 0};
  const char *super = panel + number / q->super * (super_bytes(q) + q->super * group_bytes(q));
  return (group_place){super + super_bytes(q) + number % q->super * group_bytes(q), super};
}

INLINE int64_t panel_bytes(const groups *q, int64_t k) {
  int64_t whole = k / q->group, rest = k % q->group;
  if (q->super) return whole / q->super * (super_bytes(q) + q->super * group_bytes(q));
  return whole * group_bytes(q) + (rest ? head_bytes(q) + code_bytes(q, rest) : 0);
}

/* The reciprocal of what load_codes multiplies floats of 8 bits by. */
INLINE float code_unit(const groups *q) {
  return q->zeros == LPK_E4M3 ? 0x1p8f : 1;
}

/* The e4m3 floats of `row`, divided by 2^8. A half has one exponent bit more than e4m3 and a bias greater by 8: with
 * the bits of an e4m3 float it has that float's value divided by 2^8. This holds for subnormal floats too. */
INLINE v16 load_e4m3(const char *codes, int64_t row, int h) {
  typedef int16_t v16t __attribute__((ext_vector_type(16)));
  typedef v16t v16t_any __attribute__((aligned(2), may_alias));
  v16t pair = *(const v16t_any *)(codes + (row / 2 * LPK_PANEL + h * LANES) * 2);
  v16h halves = (v16h)(pair << (int16_t)((row + 1) % 2 * 8) >> 1 & (int16_t)0xbf80);
  return __builtin_convertvector(halves, v16);
}

/* Codes of `row` of a group, columns 16 h .. 16 h + 15, as floats: the value in the book, or the code itself, signed
 * for 8 bits only; floats divided by code_unit(). */
INLINE v16 load_codes(const groups *q, const char *codes, int64_t row, int h) {
  if (q->zeros == LPK_E4M3) return load_e4m3(codes, row, h);
  int bits = low_bits(q);
  int64_t words = word_rows(bits);
  v16w word = *(const v16w_any *)(codes + (row / words * LPK_PANEL + h * LANES) * 4);
  uint32_t shift = (uint32_t)(row % words * bits);
  if (bits == 8) return __builtin_convertvector((v16i)(word << (24 - shift)) >> 24, v16);
  v16w code = (word >> shift) & ((1u << bits) - 1);
  if (has_book(q)) {
    for (int i = 0; i < LANES; i++)
      code[i] = book_of(q)[code[i]];
    return __builtin_convertvector((v16i)code - (1 << (q->bits - 1)), v16);
  }
  if (high_bits(q)) {
    int64_t in_word = high_place(row % word_rows(high_bits(q)), high_bits(q)), high = row / word_rows(high_bits(q));
    word = *(const v16w_any *)(codes + plane_bytes(q->group, bits) + (high * LPK_PANEL + h * LANES) * 4);
    code |= ((word >> (uint32_t)in_word) & ((1u << high_bits(q)) - 1)) << 4;
  }
  return __builtin_convertvector((v16i)code, v16);
}

/* 16 bytes of a super-block's group times its f16. */
INLINE v16 scaled_bytes(const char *bytes, const char *unit, int h, int is_signed) {
  typedef int8_t v16c_any __attribute__((ext_vector_type(16), aligned(1), may_alias));
  typedef uint8_t v16u_any __attribute__((ext_vector_type(16), aligned(1), may_alias));
  v16 x = is_signed ? __builtin_convertvector(*(const v16c_any *)(bytes + h * LANES), v16)
                    : __builtin_convertvector(*(const v16u_any *)(bytes + h * LANES), v16);
  return load_weight(unit, h * LANES, LPK_F16) * x;
}

/* The scales of columns 16 h .. of a group, for load_codes. */
INLINE v16 load_scale(const groups *q, const group_place *g, int h) {
  if (!q->super) return load_weight(g->head, h * LANES, q->scale) * code_unit(q);
  return scaled_bytes(g->head, g->super, h, q->scale == LPK_I8);
}

/* The zero points or minima of columns 16 h .. of a group. */
INLINE v16 load_zero(const groups *q, const group_place *g, int h) {
  if (stores_zeros(q) && q->super) return scaled_bytes(g->head + LPK_PANEL, g->super + LPK_PANEL * 2, h, 0);
  if (stores_zeros(q)) return load_weight(g->head + scale_bytes(q), h * LANES, q->scale);
  return splat(q->bits == 8 ? 0 : (float)(1 << (q->bits - 1)));
}

INLINE int has_zero(const groups *q) {
  return stores_zeros(q) || (q->bits != 8 && !has_book(q));
}

/* A group's part of a sum: sum (code - zero) x = sum code x - zero sum x, scaled once; minima are not scaled. */
INLINE v16 add_group(v16 before, v16 dot, v16 zero, float sum, v16 scale, const groups *q) {
  if (q->zeros == LPK_MINIMA) return before + dot * scale - zero * splat(sum);
  if (has_zero(q)) dot -= zero * splat(sum);
  return before + dot * scale;
}

/* wide[rows][LPK_PANEL] = codes of rows first .. first + rows of a group. */
INLINE void widen_codes(float *wide, const groups *q, const char *codes, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    UNROLL for (int h = 0; h < 2; h++) store16(wide + i * LPK_PANEL + h * LANES, load_codes(q, codes, first + i, h));
}
