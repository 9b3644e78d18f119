/* Floats of 16 bits, IEEE half and bfloat16, by their bits; bytes of numbers; the order of doubles. Pure functions. */
#pragma once

#include <stdint.h>

/* Exact; NaN stays NaN. */
float lp_f16_to_f32(uint16_t half);
uint16_t lp_f32_to_f16(float value); /* round to nearest even */
float lp_bf16_to_f32(uint16_t bits);
uint16_t lp_f32_to_bf16(float value); /* round to nearest even */

/* Unsigned numbers of 1 to 8 bytes, the lowest one first. */
void lp_put_bytes(uint8_t *to, uint64_t number, int bytes);
uint64_t lp_get_bytes(const uint8_t *from, int bytes);

/* For qsort of doubles, which are no NaN: ascending. */
int lp_compare_doubles(const void *a, const void *b);
