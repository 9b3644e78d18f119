/* Weights of 8, 4 and 2 bits in groups: their layout, and their conversion to floats. */
#ifndef LP_KERNELS_GROUPS_H
#define LP_KERNELS_GROUPS_H

#include "backend/cpu/kernels/vector.h"

typedef lpk_groups groups;

/* The number of rows of k that share a 32-bit word of a column with their codes. */
INLINE int64_t word_rows(int bits) {
  return 32 / bits;
}

INLINE int64_t scale_bytes(const groups *q) {
  return LPK_PANEL * dtype_bytes(q->scale);
}

/* Bytes of the scales and zero points that precede a group's codes. */
INLINE int64_t head_bytes(const groups *q) {
  return scale_bytes(q) * (q->zeros ? 2 : 1);
}

INLINE int64_t code_bytes(const groups *q, int64_t rows) {
  int64_t words = word_rows(q->bits);
  return (rows + words - 1) / words * words * LPK_PANEL * q->bits / 8;
}

INLINE int64_t group_bytes(const groups *q) {
  return head_bytes(q) + code_bytes(q, q->group);
}

INLINE int64_t panel_bytes(const groups *q, int64_t k) {
  int64_t whole = k / q->group, rest = k % q->group;
  return whole * group_bytes(q) + (rest ? head_bytes(q) + code_bytes(q, rest) : 0);
}

/* Codes of `row` of a group, columns 16 h .. 16 h + 15, as floats: the code itself, signed only for 8 bits. */
INLINE v16 load_codes(const char *codes, int64_t row, int h, int bits) {
  int64_t words = word_rows(bits);
  v16w word = *(const v16w_any *)(codes + (row / words * LPK_PANEL + h * LANES) * 4);
  uint32_t shift = (uint32_t)(row % words * bits);
  if (bits == 8) return __builtin_convertvector((v16i)(word << (24 - shift)) >> 24, v16);
  v16w code = (word >> shift) & ((1u << bits) - 1);
  return __builtin_convertvector((v16i)code, v16);
}

/* The zero points of columns 16 h .. of a group. */
INLINE v16 load_zero(const groups *q, const char *group, int h) {
  if (q->zeros) return load_weight(group + scale_bytes(q), h * LANES, q->scale);
  return splat(q->bits == 8 ? 0 : (float)(1 << (q->bits - 1)));
}

INLINE int has_zero(const groups *q) {
  return q->zeros || q->bits != 8;
}

/* wide[rows][LPK_PANEL] = codes of rows first .. first + rows of a group. */
INLINE void widen_codes(float *wide, const groups *q, const char *codes, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    UNROLL for (int h = 0; h < 2; h++)
        store16(wide + i * LPK_PANEL + h * LANES, load_codes(codes, first + i, h, q->bits));
}

#endif
