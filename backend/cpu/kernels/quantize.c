/* Quantises and dequantises activations. */
#include "base/minifloat.h"

#include "backend/cpu/kernels/vector.h"

INLINE int code_bits(int dtype) {
  if (dtype == LPK_I4 || dtype == LPK_U4 || dtype == LPK_MINI + LP_MINI_E2M1) return 4;
  if (dtype == LPK_I2 || dtype == LPK_U2) return 2;
  if (dtype == LPK_I8 || dtype == LPK_U8 || dtype >= LPK_MINI) return 8;
  return dtype == LPK_I16 || dtype == LPK_U16 ? 16 : 32;
}

INLINE int is_signed(int dtype) {
  return dtype == LPK_I8 || dtype == LPK_I16 || dtype == LPK_I32 || dtype == LPK_I4 || dtype == LPK_I2;
}

INLINE int64_t packed_code(const void *x, int64_t at, int dtype) {
  int bits = code_bits(dtype), shift = (int)(at % (8 / bits)) * bits;
  int64_t code = ((const uint8_t *)x)[at / (8 / bits)] >> shift & ((1 << bits) - 1);
  return is_signed(dtype) && code >> (bits - 1) ? code - (1 << bits) : code;
}

INLINE int64_t integer_at(const void *x, int64_t at, int dtype) {
  switch (dtype) {
  case LPK_I8:
    return ((const int8_t *)x)[at];
  case LPK_U8:
    return ((const uint8_t *)x)[at];
  case LPK_I16:
    return ((const int16_t *)x)[at];
  case LPK_U16:
    return ((const uint16_t *)x)[at];
  case LPK_U32:
    return ((const uint32_t *)x)[at];
  case LPK_I32:
    return ((const int32_t *)x)[at];
  default:
    return packed_code(x, at, dtype);
  }
}

INLINE int is_real(int dtype) {
  return dtype == LPK_F32 || dtype >= LPK_MINI;
}

INLINE float real_at(const void *x, int64_t at, int dtype) {
  if (dtype == LPK_F32) return ((const float *)x)[at];
  if (code_bits(dtype) == 4) return lp_mini_decode((uint32_t)packed_code(x, at, dtype), LP_MINI_E2M1);
  return lp_mini_decode(((const uint8_t *)x)[at], (lp_mini)(dtype - LPK_MINI));
}

/* Integers are subtracted as integers, because those of 32 bits need not fit a float. */
INLINE float difference(const void *x, int64_t at, int dtype, const void *zero, int64_t zero_at, int zero_dtype) {
  if (!is_real(dtype) && zero && !is_real(zero_dtype))
    return (float)(integer_at(x, at, dtype) - integer_at(zero, zero_at, zero_dtype));
  float value = is_real(dtype) ? real_at(x, at, dtype) : (float)integer_at(x, at, dtype);
  if (!zero) return value;
  return value -
         (is_real(zero_dtype) ? real_at(zero, zero_at, zero_dtype) : (float)integer_at(zero, zero_at, zero_dtype));
}

INLINE int64_t scale_at(const lpk_cover *c, int64_t at) {
  if (c->so == 0 && c->sa == 0 && c->si == 0) return 0;
  int64_t i = at % c->inner, a = at / c->inner % c->size, o = at / c->inner / c->size;
  return o * c->so + a / c->group * c->sa + i * c->si;
}

/* Threads share whole bytes of packed elements. */
INLINE int64_t share16(int64_t count, int64_t thread, int64_t threads) {
  return min64(count, share((count + 15) / 16, thread, threads) * 16);
}

KERNEL void lpk_dequantize(float *y, const void *x, const float *scale, const void *zero, const lpk_cover *cover,
                           const lpk_cover *zero_cover, int dtype, int zero_dtype, int64_t thread, int64_t threads) {
  for (int64_t i = share16(cover->total, thread, threads); i < share16(cover->total, thread + 1, threads); i++) {
    int64_t at = zero ? scale_at(zero_cover, i) : 0;
    y[i] = difference(x, i, dtype, zero, at, zero_dtype) * scale[scale_at(cover, i)];
  }
}

INLINE void store_code(void *y, int64_t at, int64_t code, int dtype) {
  int bits = code_bits(dtype), shift;
  switch (bits) {
  case 8:
    ((uint8_t *)y)[at] = (uint8_t)code;
    return;
  case 16:
    ((uint16_t *)y)[at] = (uint16_t)code;
    return;
  case 32:
    ((uint32_t *)y)[at] = (uint32_t)code;
    return;
  default: /* in order, because later elements lie above in the byte */
    shift = (int)(at % (8 / bits)) * bits;
    uint8_t *byte = (uint8_t *)y + at / (8 / bits);
    *byte = (uint8_t)((*byte & ((1 << shift) - 1)) | (int)(code & ((1 << bits) - 1)) << shift);
  }
}

KERNEL void lpk_quantize(void *y, const float *x, const float *scale, const void *zero, const lpk_cover *cover,
                         const lpk_cover *zero_cover, int dtype, int saturate, int64_t thread, int64_t threads) {
  int bits = code_bits(dtype);
  float low = is_signed(dtype) ? -(float)(1ll << (bits - 1)) : 0;
  float high = (float)((1ll << (is_signed(dtype) ? bits - 1 : bits)) - 1);
  for (int64_t i = share16(cover->total, thread, threads); i < share16(cover->total, thread + 1, threads); i++) {
    float value = x[i] / scale[scale_at(cover, i)];
    if (is_real(dtype)) {
      store_code(y, i, lp_mini_encode(value, (lp_mini)(dtype - LPK_MINI), saturate), dtype);
      continue;
    }
    value = __builtin_rintf(value) + (zero ? (float)integer_at(zero, scale_at(zero_cover, i), dtype) : 0);
    value = value > low ? value : low; /* NaN becomes the least */
    store_code(y, i, (int64_t)(value < high ? value : high), dtype);
  }
}
