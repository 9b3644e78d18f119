/* Activations of 8 bits: each block of 32 elements of a row is rounded to codes of -127 to 127 with a scale of its own,
 * so that what becomes of a row depends on this row only. Beside weights of fewer than 8 bits the scale is a power of
 * two, by which a sum is multiplied with an addition to its exponent: that runs beside the dot products, a
 * multiplication in place of one. */
#ifndef LP_KERNELS_ROUNDED_H
#define LP_KERNELS_ROUNDED_H

#include "backend/cpu/kernels/dot.h"
#include "backend/cpu/kernels/groups.h"

typedef int8_t v32c __attribute__((ext_vector_type(32)));
typedef int8_t v16c __attribute__((ext_vector_type(16)));

INLINE int has_binary_scale(const groups *q) {
  return q->bits < 8;
}

/* Scales that are powers of two are stored as the bits to add to a float, and without this factor, so that the bits are
 * never negative: they may be added to a zero. Then the sum is 2^-127 of a code's worth. */
#define BINARY_UNIT 0x1p-64f
/* Sums stay below 2^127 if no element of the block exceeds it. */
#define BINARY_MOST 0x1p32f

/* Rows in tiles of `height` (a missing row is zero). For each block of k: the operands of its steps [steps][height]
 * (DOT_SMMLA: [steps / 2][height][2], see code_at), and with what its products begin and the scales [height]. */
typedef struct {
  int32_t *codes, *starts;
  float *scales;
} rounded_rows;

INLINE int64_t block_count(int64_t k) {
  return (k + BLOCK - 1) / BLOCK;
}

INLINE rounded_rows rounded_at(void *memory, int64_t rows, int64_t k, int kind) {
  rounded_rows out = {.codes = memory};
  out.starts = out.codes + rows * block_count(k) * block_steps(kind);
  out.scales = (float *)(out.starts + rows * block_count(k));
  return out;
}

/* The place of block `block` of the tile that begins with row `row`. */
INLINE rounded_rows rounded_tile(const rounded_rows *all, int64_t row, int64_t height, int64_t block, int64_t k,
                                 int kind) {
  int64_t at = row * block_count(k) + block * height;
  return (rounded_rows){all->codes + at * block_steps(kind), all->starts + at, all->scales + at};
}

/* What a group without zero points subtracts from each code that the dot products read. */
INLINE int implied_zero(const groups *q, int kind) {
  return code_offset(kind, q->bits) + (q->bits == 8 ? 0 : 1 << (q->bits - 1));
}

/* x in units of 1 / inverse as codes. NaN becomes 0; its block's scale is NaN. */
INLINE v16i round_codes(v16 x, float inverse) {
  v16 code = __builtin_elementwise_roundeven(x * splat(inverse));
  return __builtin_convertvector(code == code ? code : splat(0), v16i);
}

/* The codes in the order of the steps (dot.h). */
INLINE v32c in_step_order(v32c c, int bits) {
  if (bits == 4)
    return __builtin_shufflevector(c, c, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 16, 18, 20, 22, 17, 19,
                                   21, 23, 24, 26, 28, 30, 25, 27, 29, 31);
  if (bits == 2)
    return __builtin_shufflevector(c, c, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 16, 20, 24, 28, 17, 21,
                                   25, 29, 18, 22, 26, 30, 19, 23, 27, 31);
  return c;
}

/* The least power of two, not below BINARY_UNIT, that is at least `scale`, as bits. */
INLINE uint32_t binary_bits(float scale) {
  union {
    float value;
    uint32_t bits;
  } unit = {scale * (1 / BINARY_UNIT)};
  uint32_t exponent = (unit.bits + 0x7fffff) >> 23;
  return exponent > 127 ? (exponent - 127) << 23 : 0;
}

/* Computes the scale of a block as it is stored. `most` is the block's largest element; `inverse` receives the factor
 * for its elements. `bad` is NaN for a block with a NaN or an infinity, else 0. Codes of blocks with a NaN as scale
 * must be zero. */
INLINE float block_scale(float most, float bad, int binary, float *inverse) {
  union {
    uint32_t bits;
    float value;
  } scale = {0}, factor;
  *inverse = 0;
  if (!binary) {
    if (most > 0x1p-100f) *inverse = 127 / most;
    return most / 127 + bad;
  }
  if (bad != 0 || most > BINARY_MOST) {
    scale.bits = 0x7fc00000;
  } else {
    scale.bits = binary_bits(most / 127);
    factor.bits = ((127u + 64) << 23) - scale.bits;
    *inverse = factor.value;
  }
  return scale.value;
}

/* The place of a row's operand of step `step` in a block of a tile. */
INLINE int64_t code_at(int64_t step, int64_t row, int64_t height, int kind) {
  return kind == DOT_SMMLA ? step / 2 * 2 * height + 2 * row + step % 2 : step * height + row;
}

/* Stores the operands of row `row` at the block's. */
INLINE void store_steps(int32_t *to, int64_t row, int64_t height, v32c codes, int kind, int bits) {
  typedef int32_t v8_words __attribute__((ext_vector_type(8)));
  v8_words words = (v8_words)in_step_order(codes, bits);
  UNROLL for (int i = 0; i < BLOCK / 4; i++) {
    if (kind == DOT_PAIRS)
      UNROLL for (int e = 0; e < 2; e++) to[code_at(2 * i + e, row, height, kind)] =
          ((v16i)widen_bytes((v16w)(uint32_t)words[i], e)).s0;
    else
      to[code_at(i, row, height, kind)] = words[i];
  }
}

/* Rounds a block, of which `count` elements exist, into a row of a tile. Its products begin with what the zero points
 * subtract; groups with zero points of their own need the sum of the codes itself. A block with an infinity or a NaN,
 * or with an element above BINARY_MOST if its scale is to be a power of two, gets the scale NaN; one of numbers too
 * small for a reciprocal becomes zeros. */
INLINE void round_block(const rounded_rows *to, int64_t row, int64_t height, const float *x, int64_t count,
                        const groups *q, int kind) {
  v16 lo = count >= LANES ? load16(x) : load_part(x, count);
  v16 hi = count >= BLOCK ? load16(x + LANES) : count > LANES ? load_part(x + LANES, count - LANES) : splat(0);
  float most = max_lanes(max16(__builtin_elementwise_abs(lo), __builtin_elementwise_abs(hi)));
  float inverse;
  to->scales[row] = block_scale(most, sum_lanes((lo - lo) + (hi - hi)), has_binary_scale(q), &inverse);
  v16i a = round_codes(lo, inverse), b = round_codes(hi, inverse);
  v16c ca = __builtin_convertvector(a, v16c), cb = __builtin_convertvector(b, v16c);
  int32_t sum = __builtin_reduce_add(a + b);
  store_steps(to->codes, row, height,
              __builtin_shufflevector(ca, cb, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                                      21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31),
              kind, q->bits);
  to->starts[row] = q->zeros ? sum : -implied_zero(q, kind) * sum;
}

/* Rounds a row of x into row `row` of a tile. */
INLINE void round_row(const rounded_rows *tile, int64_t row, int64_t height, const float *x, int64_t k, const groups *q,
                      int kind) {
  for (int64_t i = 0; i < block_count(k); i++) {
    rounded_rows to = rounded_tile(tile, 0, height, i, k, kind);
    if (i < k / BLOCK)
      round_block(&to, row, height, x + i * BLOCK, BLOCK, q, kind);
    else
      round_block(&to, row, height, x + i * BLOCK, k % BLOCK, q, kind);
  }
}

INLINE void clear_row(const rounded_rows *tile, int64_t row, int64_t height, int64_t k, int kind) {
  for (int64_t i = 0; i < block_count(k); i++) {
    rounded_rows to = rounded_tile(tile, 0, height, i, k, kind);
    to.scales[row] = 0;
    to.starts[row] = 0;
    for (int s = 0; s < block_steps(kind); s++)
      to.codes[code_at(s, row, height, kind)] = 0;
  }
}

/* Rounds `rows` rows, ldx apart, as one tile. */
INLINE void round_tile(const rounded_rows *to, int64_t height, const float *x, int64_t ldx, int64_t rows, int64_t k,
                       const groups *q, int kind) {
  for (int64_t r = 0; r < height; r++) {
    if (r < rows)
      round_row(to, r, height, x + r * ldx, k, q, kind);
    else
      clear_row(to, r, height, k, kind);
  }
}

#endif
