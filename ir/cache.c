/* Rows of KV caches: floats, or codes in blocks with a scale each. */
#include "base/number.h"
#include "base/poly.h"
#include "ir/ir.h"

#include <math.h>

int64_t lp_op_state(const lp_op *op) {
  return lp_op_has(op, LP_COMM) ? -1 : lp_op_i64(op, "state", -1);
}

const lp_op *lp_value_cache(const lp_value *value) {
  const lp_op *op = value ? value->def : NULL;
  return op && value->index == op->out_count - 1 && lp_op_state(op) >= 0 ? op : NULL;
}

bool lp_cache_dtype_parse(const char *name, lp_dtype *out) {
  static const struct {
    const char *name;
    lp_dtype dtype;
  } types[] = {{"f32", LP_F32}, {"f16", LP_F16}, {"bf16", LP_BF16}, {"int8", LP_I8}, {"int4", LP_U8}};
  for (size_t i = 0; i < LP_COUNT(types); i++) {
    if (strcmp(name, types[i].name) != 0) continue;
    *out = types[i].dtype;
    return true;
  }
  return false;
}

bool lp_cache_is_coded(lp_dtype dtype) {
  return dtype == LP_I8 || dtype == LP_U8;
}

/* The bytes of a block: its codes and its scale. */
static int64_t block_bytes(lp_dtype dtype) {
  return (dtype == LP_I8 ? LP_CACHE_BLOCK : LP_CACHE_BLOCK / 2) + 2;
}

int64_t lp_cache_row(lp_dtype dtype, int64_t width) {
  if (!lp_cache_is_coded(dtype)) return width;
  return width > 0 && width % LP_CACHE_BLOCK == 0 ? width / LP_CACHE_BLOCK * block_bytes(dtype) : -1;
}

int64_t lp_cache_width(lp_dtype dtype, int64_t row) {
  if (!lp_cache_is_coded(dtype)) return row;
  return row > 0 && row % block_bytes(dtype) == 0 ? row / block_bytes(dtype) * LP_CACHE_BLOCK : -1;
}

const lp_poly *lp_cache_width_of(lp_module *module, lp_type cache) {
  int64_t row;
  if (!lp_cache_is_coded(cache.dtype) || !lp_poly_is_const(cache.dim[3], &row)) return cache.dim[3];
  return lp_dim_const(module, lp_cache_width(cache.dtype, row));
}

/* The greatest code, which the greatest element of a block has. */
static float greatest_code(lp_dtype dtype) {
  return dtype == LP_I8 ? 127 : 7;
}

static void encode_block(lp_dtype dtype, const float *x, uint16_t *scale_bits, unsigned char *to) {
  enum { HALF = LP_CACHE_BLOCK / 2 };
  const float most = greatest_code(dtype);
  float greatest = 0;
  for (int i = 0; i < LP_CACHE_BLOCK; i++)
    greatest = fmaxf(greatest, fabsf(x[i]));
  *scale_bits = lp_f32_to_f16(fminf(greatest / most, 65504));
  const float scale = lp_f16_to_f32(*scale_bits);
  for (int i = 0; i < LP_CACHE_BLOCK; i++) {
    const int code = (int)rintf(fminf(fmaxf(scale > 0 ? x[i] / scale : 0, -most), most));
    if (dtype == LP_I8)
      to[i] = (unsigned char)code;
    else if (i < HALF)
      to[i] = (unsigned char)(code + 8);
    else
      to[i - HALF] |= (unsigned char)((code + 8) << 4);
  }
}

static void narrow(lp_dtype dtype, int64_t width, const float *x, void *row) {
  if (dtype == LP_F32) memcpy(row, x, (size_t)width * sizeof *x);
  for (int64_t i = 0; i < width && dtype != LP_F32; i++)
    ((uint16_t *)row)[i] = dtype == LP_F16 ? lp_f32_to_f16(x[i]) : lp_f32_to_bf16(x[i]);
}

static void widen(lp_dtype dtype, int64_t width, const void *row, float *x) {
  if (dtype == LP_F32) memcpy(x, row, (size_t)width * sizeof *x);
  for (int64_t i = 0; i < width && dtype != LP_F32; i++) {
    const uint16_t bits = ((const uint16_t *)row)[i];
    x[i] = dtype == LP_F16 ? lp_f16_to_f32(bits) : lp_bf16_to_f32(bits);
  }
}

void lp_cache_encode(lp_dtype dtype, int64_t width, const float *x, void *row) {
  if (!lp_cache_is_coded(dtype)) {
    narrow(dtype, width, x, row);
    return;
  }
  const int64_t bytes = block_bytes(dtype) - 2, blocks = width / LP_CACHE_BLOCK;
  for (int64_t b = 0; b < blocks; b++) {
    uint16_t scale;
    encode_block(dtype, x + b * LP_CACHE_BLOCK, &scale, (unsigned char *)row + b * bytes);
    memcpy((char *)row + blocks * bytes + 2 * b, &scale, sizeof scale);
  }
}

void lp_cache_decode(lp_dtype dtype, int64_t width, const void *row, float *x) {
  if (!lp_cache_is_coded(dtype)) {
    widen(dtype, width, row, x);
    return;
  }
  enum { HALF = LP_CACHE_BLOCK / 2 };
  const int64_t bytes = block_bytes(dtype) - 2, blocks = width / LP_CACHE_BLOCK;
  for (int64_t i = 0; i < width; i++) {
    const int64_t block = i / LP_CACHE_BLOCK, in = i % LP_CACHE_BLOCK;
    const unsigned char *from = (const unsigned char *)row + block * bytes;
    const int code = dtype == LP_I8 ? (signed char)from[in] : (in < HALF ? from[in] & 15 : from[in - HALF] >> 4) - 8;
    uint16_t scale;
    memcpy(&scale, (const char *)row + blocks * bytes + 2 * block, sizeof scale);
    x[i] = (float)code * lp_f16_to_f32(scale);
  }
}
