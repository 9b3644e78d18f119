/* Floats of 16 bits, IEEE half and bfloat16, by their bits. Pure functions. */
#ifndef LP_NUMBER_H
#define LP_NUMBER_H

#include <stdint.h>

/* Exact; NaN stays NaN. */
float lp_f16_to_f32(uint16_t half);
uint16_t lp_f32_to_f16(float value); /* round to nearest even */
float lp_bf16_to_f32(uint16_t bits);
uint16_t lp_f32_to_bf16(float value); /* round to nearest even */

#endif
