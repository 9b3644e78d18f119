/* Floats of eight and four bits, as ONNX defines them: decoded and encoded by their bits. Freestanding, all inline: the
 * compiler and the micro-kernels share it. Encoding rounds to nearest, ties to even (lp_e8m0_encode by its argument).
 *
 * Source: the OCP 8-bit floating point and microscaling (MX) specifications; for the "fnuz" forms, where the code 0x80
 * is the one NaN and zero has no sign, the ONNX technical note on float 8. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum { LP_MINI_E4M3FN, LP_MINI_E4M3FNUZ, LP_MINI_E5M2, LP_MINI_E5M2FNUZ, LP_MINI_E8M0, LP_MINI_E2M1 } lp_mini;

typedef enum { LP_E8M0_UP, LP_E8M0_DOWN, LP_E8M0_NEAREST } lp_e8m0_rounding;

typedef struct {
  uint32_t mantissa, bias; /* bits of the mantissa, bias of the exponent */
  uint32_t sign, largest;  /* code of the sign bit, of the largest finite magnitude */
  uint32_t over;           /* the code of a magnitude that is too large, unless it saturates */
  bool fnuz, nan;          /* 0x80 is the only NaN; the type has a NaN */
} lp_mini_form;

static inline lp_mini_form lp_mini_form_of(lp_mini mini) {
  switch (mini) {
  case LP_MINI_E4M3FN:
    return (lp_mini_form){3, 7, 0x80, 0x7e, 0x7f, false, true};
  case LP_MINI_E4M3FNUZ:
    return (lp_mini_form){3, 8, 0x80, 0x7f, 0x80, true, true};
  case LP_MINI_E5M2:
    return (lp_mini_form){2, 15, 0x80, 0x7b, 0x7c, false, true};
  case LP_MINI_E5M2FNUZ:
    return (lp_mini_form){2, 16, 0x80, 0x7f, 0x80, true, true};
  default:
    return (lp_mini_form){1, 1, 0x8, 0x7, 0x7, false, false};
  }
}

static inline uint32_t lp_mini_bits(float value) {
  union {
    float from;
    uint32_t to;
  } pun = {.from = value};
  return pun.to;
}

static inline float lp_mini_float(uint32_t bits) {
  union {
    uint32_t from;
    float to;
  } pun = {.from = bits};
  return pun.to;
}

/* The value of a code; for E2M1 of its low four bits. */
static inline float lp_mini_decode(uint32_t code, lp_mini mini) {
  const uint32_t nan = 0x7fc00000u;
  if (mini == LP_MINI_E8M0) return lp_mini_float(code == 0xff ? nan : code == 0 ? 0x00400000u : code << 23);
  const lp_mini_form f = lp_mini_form_of(mini);
  uint32_t sign = code & f.sign ? 0x80000000u : 0, magnitude = code & (f.sign - 1);
  if (f.fnuz && code == 0x80) return lp_mini_float(nan);
  if (f.nan && !f.fnuz && magnitude > f.largest)
    return lp_mini_float(sign | (mini == LP_MINI_E5M2 && magnitude == f.over ? 0x7f800000u : nan));
  uint32_t exponent = magnitude >> f.mantissa;
  if (exponent > 0) return lp_mini_float(sign | ((magnitude << (23 - f.mantissa)) + ((127 - f.bias) << 23)));
  float value = (float)magnitude * lp_mini_float((128 - f.bias - f.mantissa) << 23);
  return sign ? -value : value;
}

/* Encodes to any format but E8M0. With `saturate`, too large values and infinity become the largest finite value. */
static inline uint32_t lp_mini_encode(float value, lp_mini mini, bool saturate) {
  const lp_mini_form f = lp_mini_form_of(mini);
  uint32_t bits = lp_mini_bits(value), magnitude = bits & 0x7fffffffu, sign = bits >> 31 ? f.sign : 0, code;
  if (magnitude > 0x7f800000u) return f.fnuz ? 0x80 : f.nan ? sign | 0x7f : f.sign;
  uint32_t shift = 23 - f.mantissa, normal = (128 - f.bias) << 23;
  if (magnitude >= normal) {
    code = ((magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1)) >> shift) -
           ((127 - f.bias) << f.mantissa);
  } else { /* adding a number rounds, when its last bit has the weight of the code's last bit */
    float unit = lp_mini_float((127 + 24 - f.bias - f.mantissa) << 23);
    code = lp_mini_bits(lp_mini_float(magnitude) + unit) - lp_mini_bits(unit);
  }
  if (code > f.largest) {
    if (!saturate && f.fnuz) return f.over;
    code = saturate ? f.largest : f.over;
  }
  return f.fnuz && code == 0 ? 0 : sign | code;
}

/* Encodes to the nearest power of two. Zero and smaller values become the least, 2^-127; a negative number becomes
 * NaN. */
static inline uint32_t lp_e8m0_encode(float value, lp_e8m0_rounding rounding, bool saturate) {
  uint32_t bits = lp_mini_bits(value), exponent = bits >> 23, mantissa = bits & 0x7fffffu;
  if (bits > 0x7f800000u) return bits == 0x80000000u ? 0 : 0xff;
  if (bits == 0x7f800000u) return saturate ? 0xfe : 0xff;
  bool up;
  if (exponent == 0) /* 2^-127 is the half of the least normal number */
    up = rounding == LP_E8M0_UP ? mantissa > 0x400000u : rounding == LP_E8M0_NEAREST && mantissa >= 0x600000u;
  else
    up = rounding == LP_E8M0_UP ? mantissa > 0 : rounding == LP_E8M0_NEAREST && mantissa >= 0x400000u;
  exponent += up;
  return exponent < 0xff ? exponent : saturate ? 0xfe : 0xff;
}
