/* Floats of 16 bits by their bits. */
#include "base/number.h"

#include <string.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* `value` / 2^shift, rounded to nearest, ties to even; 0 < shift < 32. */
static uint32_t shift_rounded(uint32_t value, uint32_t shift) {
  uint32_t half = 1u << (shift - 1), odd = (value >> shift) & 1u;
  return (value + (half - 1) + odd) >> shift;
}

float lp_f16_to_f32(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | mantissa << 13);
  if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  float magnitude = (float)mantissa * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

uint16_t lp_f32_to_f16(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu)); /* NaN, quiet */
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);                             /* 65520 and more */
  if (magnitude >= 0x38800000u) return (uint16_t)(sign | shift_rounded(magnitude - 0x38000000u, 13));
  if (magnitude < 0x33000000u) return (uint16_t)sign; /* below 2^-25 */
  uint32_t exponent = magnitude >> 23, mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  return (uint16_t)(sign | shift_rounded(mantissa, 126 - exponent));
}

float lp_bf16_to_f32(uint16_t bits) {
  return float_of((uint32_t)bits << 16);
}

uint16_t lp_f32_to_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* NaN, quiet */
  return (uint16_t)shift_rounded(bits, 16);
}

void lp_put_bytes(uint8_t *to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++)
    to[i] = (uint8_t)(number >> (8 * i));
}

uint64_t lp_get_bytes(const uint8_t *from, int bytes) {
  uint64_t number = 0;
  for (int i = 0; i < bytes; i++)
    number |= (uint64_t)from[i] << (8 * i);
  return number;
}

int lp_compare_doubles(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}
