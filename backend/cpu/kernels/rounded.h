/* Activations of 8 bits: each block of 32 elements of a row is rounded to codes of -127 to 127 with a scale of its own,
 * so that what becomes of a row depends on this row only. Beside weights of fewer than 5 bits the scale is a power of
 * two, by which a sum is multiplied with an addition to its exponent: that runs beside the dot products, a
 * multiplication in place of one. */
#pragma once

#include "backend/cpu/kernels/dot.h"

typedef int8_t v32c __attribute__((ext_vector_type(32)));
typedef int8_t v16c __attribute__((ext_vector_type(16)));

INLINE int has_binary_scale(const groups *q) {
  return q->bits < 5;
}

/* Tells whether a block of activations is multiplied by two groups of weights, each with a sum of its own. */
INLINE int has_halves(const groups *q) {
  return q->super && q->group == BLOCK / 2;
}

/* Scales that are powers of two are stored as the bits to add to a float, and without this factor, so that the bits are
 * never negative: they may be added to a zero. Then the sum is 2^-127 of a code's worth. */
#define BINARY_UNIT 0x1p-64f
/* Sums stay below 2^127 if no element of the block exceeds it. */
#define BINARY_MOST 0x1p32f

/* Rows in tiles of `height` (a missing row is zero). For each block of k: the operands of its steps [steps][height]
 * (DOT_SMMLA: [steps / 2][height][2], AMX: [height][steps], see code_at), and with what its products begin (those of
 * its second half: `second`) and the scales [height]. Beside minima the products begin with nothing, and `starts` holds
 * the sum of the block's elements, a float. */
typedef struct {
  int32_t *codes, *starts, *second;
  float *scales;
} rounded_rows;

INLINE int64_t block_count(int64_t k) {
  return (k + BLOCK - 1) / BLOCK;
}

INLINE rounded_rows rounded_at(void *memory, int64_t rows, int64_t k, int kind) {
  rounded_rows out = {.codes = memory};
  out.starts = out.codes + rows * block_count(k) * block_steps(kind);
  out.scales = (float *)(out.starts + rows * block_count(k));
  out.second = (int32_t *)(out.scales + rows * block_count(k)); /* only where steps are few */
  return out;
}

/* The place of block `block` of the tile that begins with row `row`. */
INLINE rounded_rows rounded_tile(const rounded_rows *all, int64_t row, int64_t height, int64_t block, int64_t k,
                                 int kind) {
  int64_t at = row * block_count(k) + block * height;
  return (rounded_rows){all->codes + at * block_steps(kind), all->starts + at, all->second + at, all->scales + at};
}

/* The same of unit `unit`: a block, or half of one (has_halves). */
INLINE rounded_rows rounded_unit(const rounded_rows *all, int64_t row, int64_t height, int64_t unit, const groups *q,
                                 int64_t k, int kind) {
  if (!has_halves(q)) return rounded_tile(all, row, height, unit, k, kind);
  rounded_rows at = rounded_tile(all, row, height, unit / 2, k, kind);
  if (unit % 2 == 0) return at;
  at.codes += block_steps(kind) / 2 * height;
  at.starts = at.second;
  return at;
}

/* What a group without zero points subtracts from each code that the dot products read. */
INLINE int implied_zero(const groups *q, int kind) {
  return code_offset(kind, q) + (q->bits == 8 ? 0 : 1 << (q->bits - 1));
}

/* The codes in the order of the steps (dot.h). */
INLINE v32c in_step_order(v32c c, const groups *q) {
  if (low_bits(q) == 4)
    return __builtin_shufflevector(c, c, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 16, 18, 20, 22, 17, 19,
                                   21, 23, 24, 26, 28, 30, 25, 27, 29, 31);
  if (low_bits(q) == 2)
    return __builtin_shufflevector(c, c, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 16, 20, 24, 28, 17, 21,
                                   25, 29, 18, 22, 26, 30, 19, 23, 27, 31);
  return c;
}

/* The least powers of two, not below BINARY_UNIT, that are at least `scale`, as bits. */
INLINE v16w binary_bits(v16 scale) {
  v16w exponent = ((v16w)(scale * splat(1 / BINARY_UNIT)) + 0x7fffff) >> 23;
  return exponent > 127 ? (exponent - 127) << 23 : (v16w)0u;
}

/* The scales of blocks as they are stored, the factors for their elements, and a mask of all bits for each block
 * without a NaN, an infinity, or a number too large for its scale. The others get the scale NaN and must have zeros as
 * codes. */
typedef struct {
  v16 scale, inverse;
  v16i good;
} block_scales;

/* `most`: the largest magnitude of each block, or the bits of an infinity or a NaN in it. */
INLINE block_scales scale_blocks(v16 most, int binary) {
  block_scales b = {.scale = most / splat(127)};
  if (binary) {
    v16w bits = binary_bits(b.scale);
    b.scale = (v16)bits;
    b.inverse = (v16)(((127u + 64) << 23) - bits);
    b.good = most <= splat(BINARY_MOST);
  } else {
    b.inverse = most > splat(0x1p-100f) ? splat(127) / most : splat(0);
    b.good = most < splat(__builtin_inff());
  }
  b.scale = b.good ? b.scale : splat(__builtin_nanf(""));
  return b;
}

/* The place of a row's operand of step `step` in a block of a tile. */
INLINE int64_t code_at(int64_t step, int64_t row, int64_t height, int kind) {
  return kind == DOT_SMMLA     ? step / 2 * 2 * height + 2 * row + step % 2
         : has_amx_tiles(kind) ? row * block_steps(kind) + step
                               : step * height + row;
}

typedef int32_t v8_words __attribute__((ext_vector_type(8)));

/* Stores the operands of row `row` at the block's. */
INLINE void store_steps(int32_t *to, int64_t row, int64_t height, v8_words words, int kind) {
  UNROLL for (int i = 0; i < BLOCK / 4; i++) {
    if (kind == DOT_PAIRS)
      UNROLL for (int e = 0; e < 2; e++) to[code_at(2 * i + e, row, height, kind)] =
          ((v16i)widen_bytes((v16w)(uint32_t)words[i], e)).s0;
    else
      to[code_at(i, row, height, kind)] = words[i];
  }
}

/* Stores the operands of six rows, [8][6], by two permutations for 16 of them. */
INLINE void store_six_rows(int32_t *to, const v8_words *rows) {
  typedef v16i v16i_any __attribute__((aligned(4), may_alias));
  v16i a = __builtin_shufflevector(rows[0], rows[1], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  v16i b = __builtin_shufflevector(rows[2], rows[3], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  v16i c = __builtin_shufflevector(rows[4], rows[5], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  v16i x = __builtin_shufflevector(a, b, 0, 8, 16, 24, -1, -1, 1, 9, 17, 25, -1, -1, 2, 10, 18, 26);
  v16i y = __builtin_shufflevector(a, b, -1, -1, 3, 11, 19, 27, -1, -1, 4, 12, 20, 28, -1, -1, 5, 13);
  v16i z = __builtin_shufflevector(a, b, 21, 29, -1, -1, 6, 14, 22, 30, -1, -1, 7, 15, 23, 31, -1, -1);
  ((v16i_any *)to)[0] = __builtin_shufflevector(x, c, 0, 1, 2, 3, 16, 24, 6, 7, 8, 9, 17, 25, 12, 13, 14, 15);
  ((v16i_any *)to)[1] = __builtin_shufflevector(y, c, 18, 26, 2, 3, 4, 5, 19, 27, 8, 9, 10, 11, 20, 28, 14, 15);
  ((v16i_any *)to)[2] = __builtin_shufflevector(z, c, 0, 1, 21, 29, 4, 5, 6, 7, 22, 30, 10, 11, 12, 13, 23, 31);
}

/* Stores the operands of a block, those of row r in words[r]. */
INLINE void store_block(int32_t *to, const v8_words *words, int64_t height, int kind) {
  if (kind == DOT_VNNI && height == 6)
    store_six_rows(to, words);
  else
    UNROLL for (int64_t r = 0; r < height; r++) store_steps(to, r, height, words[r], kind);
}

/* The codes of 16 elements, as floats. */
INLINE v16 round_codes(const float *x, float inverse, int32_t good) {
  return __builtin_elementwise_roundeven((v16)((v16i)load16(x) & good) * splat(inverse));
}

/* Rounds a block of a row; sets `words` to its operands. Returns sums of the codes; `first`: those of half a block. */
INLINE v16 round_block(v8_words *words, v16 *first, const float *x, float inverse, int32_t good, const groups *q) {
  v16 lo = round_codes(x, inverse, good), hi = round_codes(x + LANES, inverse, good);
  v16c a = __builtin_convertvector(__builtin_convertvector(lo, v16i), v16c),
       b = __builtin_convertvector(__builtin_convertvector(hi, v16i), v16c);
  v32c codes = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                                       21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  *words = (v8_words)in_step_order(codes, q);
  *first = lo;
  return lo + hi;
}

/* Some rows, ldx apart and k long, that become a tile of `height`. */
typedef struct {
  const float *x;
  int64_t ldx, rows, height, k;
} source_rows;

/* The blocks of all rows of a tile that are rounded together: block e of row r is lane e * height + r, which is the
 * order of their scales. */
INLINE int64_t blocks_at_once(int64_t height) {
  return LANES / height;
}

/* The elements of the block of lane `lane`, where block `first` is that of lane 0. Where some do not exist, `padded`
 * receives the block with zeros. */
INLINE const float *lane_elements(float *padded, const source_rows *from, int64_t first, int64_t lane) {
  int64_t r = lane % from->height, block = first + lane / from->height, whole = from->k / BLOCK;
  if (r < from->rows && block < whole) return from->x + r * from->ldx + block * BLOCK;
  memset(padded, 0, BLOCK * sizeof *padded);
  if (r < from->rows)
    memcpy(padded, from->x + r * from->ldx + whole * BLOCK, (size_t)(from->k % BLOCK) * sizeof *padded);
  return padded;
}

/* Stores the first `count` lanes of whole blocks. */
INLINE void store_lanes(float *to, v16 x, int64_t height, int64_t count) {
  if (count == blocks_at_once(height))
    store_part(to, x, blocks_at_once(height) * height);
  else
    for (int64_t i = 0; i < count * height; i++)
      to[i] = x[i];
}

/* The greatest magnitude in each of 16 pairs of elements of a block. */
INLINE v16 pair_magnitudes(const float *x) {
  return fold16(__builtin_elementwise_abs(load16(x)), __builtin_elementwise_abs(load16(x + LANES)), FOLD_BITS);
}

/* What products begin with for the sums of codes: what the zero points subtract. Groups with zero points of their own
 * need the sum itself, and minima that of the elements. */
INLINE v16i starts_of(v16 sums, v16 scale, const groups *q, int kind) {
  if (q->zeros == LPK_MINIMA) return has_binary_scale(q) ? (v16i)sums + (v16i)scale : (v16i)(sums * scale);
  v16i start = __builtin_convertvector(sums, v16i);
  return stores_zeros(q) ? start : start * -implied_zero(q, kind);
}

/* Stores the scales of blocks, and what their products begin with. `lanes`: sums of the codes of each block, `first`:
 * of each first half. */
INLINE void store_statistics(const rounded_rows *to, v16 scale, const v16 *lanes, const v16 *first, int64_t height,
                             int64_t count, const groups *q, int kind) {
  v16 sums = fold_lanes16(lanes, FOLD_SUM);
  store_lanes(to->scales, scale, height, count);
  if (kind == DOT_TILES && !stores_zeros(q)) return;
  if (has_halves(q)) {
    v16 half = fold_lanes16(first, FOLD_SUM);
    store_lanes((float *)to->starts, (v16)starts_of(half, scale, q, kind), height, count);
    store_lanes((float *)to->second, (v16)starts_of(sums - half, scale, q, kind), height, count);
    return;
  }
  store_lanes((float *)to->starts, (v16)starts_of(sums, scale, q, kind), height, count);
}

/* Rounds blocks first .. first + count. A block of numbers too small for a reciprocal becomes zeros. */
INLINE void round_blocks(const rounded_rows *tile, const source_rows *from, int64_t first, int64_t count,
                         const groups *q, int kind) {
  float padded[BLOCK], inverse[LANES];
  int32_t good[LANES];
  v16 lanes[LANES], halves[LANES];
  int64_t height = from->height;
  rounded_rows to = rounded_tile(tile, 0, height, first, from->k, kind);
  for (int64_t i = 0; i < LANES; i++)
    lanes[i] = i < count * height ? pair_magnitudes(lane_elements(padded, from, first, i)) : splat(0);
  block_scales b = scale_blocks(fold_lanes16(lanes, FOLD_BITS), has_binary_scale(q));
  store16(inverse, b.inverse);
  store16((float *)good, (v16)b.good);
  for (int64_t e = 0; e < count; e++) {
    v8_words words[LANES];
    for (int64_t i = e * height; i < (e + 1) * height; i++)
      lanes[i] = round_block(&words[i - e * height], &halves[i], lane_elements(padded, from, first, i), inverse[i],
                             good[i], q);
    store_block(rounded_tile(&to, 0, height, e, from->k, kind).codes, words, height, kind);
  }
  store_statistics(&to, b.scale, lanes, halves, height, count, q, kind);
}

/* Does the same without branches where all rows and elements exist. */
INLINE void round_whole_blocks(const rounded_rows *tile, const source_rows *from, int64_t first, const groups *q,
                               int kind) {
  v16 lanes[LANES], halves[LANES];
  int64_t height = from->height, count = blocks_at_once(height);
  rounded_rows to = rounded_tile(tile, 0, height, first, from->k, kind);
  const float *x = from->x + first * BLOCK;
  UNROLL for (int64_t i = 0; i < LANES; i++) lanes[i] =
      i < count * height ? pair_magnitudes(x + i % height * from->ldx + i / height * BLOCK) : splat(0);
  block_scales b = scale_blocks(fold_lanes16(lanes, FOLD_BITS), has_binary_scale(q));
  UNROLL for (int64_t e = 0; e < count; e++) {
    v8_words words[LANES];
    UNROLL for (int64_t r = 0; r < height; r++) lanes[e * height + r] =
        round_block(&words[r], &halves[e * height + r], x + r * from->ldx + e * BLOCK, b.inverse[e * height + r],
                    b.good[e * height + r], q);
    store_block(rounded_tile(&to, 0, height, e, from->k, kind).codes, words, height, kind);
  }
  store_statistics(&to, b.scale, lanes, halves, height, count, q, kind);
}

/* Rounds some rows as one tile. */
INLINE void round_tile(const rounded_rows *to, const source_rows *from, const groups *q, int kind) {
  int64_t blocks = block_count(from->k), most = blocks_at_once(from->height), i = 0;
  if (from->height > 2 && from->rows == from->height)
    for (; i + most <= from->k / BLOCK; i += most)
      round_whole_blocks(to, from, i, q, kind);
  for (; i < blocks; i += most)
    round_blocks(to, from, i, min64(most, blocks - i), q, kind);
}
