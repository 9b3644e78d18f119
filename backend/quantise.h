/* Quantising weights at compile time: groups with one scale, symmetric about zero. */
#ifndef LP_BACKEND_QUANTISE_H
#define LP_BACKEND_QUANTISE_H

#include "ir/ir.h"

/* Finds the nearest codes and the scale of `count` floats, `step` elements apart. int8: scale = max|w| / 127. int4
 * (codes 0 .. 15 about 8): of 13 scales about max|w| / 8, the one with the least squared error. The scale is rounded to
 * `scale_dtype`; a group that holds an infinity or a NaN has the scale NaN. Returns the scale. */
float lp_quantise(const float *w, int64_t count, int64_t step, lp_dtype codes, lp_dtype scale_dtype, uint8_t *out);

#endif
