/* Quantising weights at compile time: groups with one scale, symmetric about zero. */
#pragma once

#include "ir/ir.h"

/* Finds the nearest codes and the scale of a group of `count` floats, at most LP_WEIGHT_GROUP, which are `step`
 * elements apart. The scale is that of several about max|w| / 8 (int4: codes 0 .. 15 about 8) or max|w| / 127 (int8)
 * with the least sum of the squared errors, each times a weight: that of element i is squares[i], the mean square of
 * what the element is multiplied by. Where `squares` is NULL or all zero, the weight in int4 is
 * sqrt(mean of w^2 + w[i]^2), because large elements tend to be of rows that matter, and the scale of int8 is
 * max|w| / 127. The scale is rounded to `scale_dtype`; a group that holds an infinity or a NaN has the scale NaN.
 * Returns the scale. */
float lp_quantise(const float *w, int64_t count, int64_t step, const float *squares, lp_dtype codes,
                  lp_dtype scale_dtype, uint8_t *out);
