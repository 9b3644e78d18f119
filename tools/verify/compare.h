/* Compares the results of a model with those of its test data. */
#pragma once

#include "ir/ir.h"
#include "tools/equal/run.h"

typedef struct {
  double rtol, atol;
} lp_tolerance;

/* The outcome of a comparison: a text of the first difference that is not tolerated, and the greatest difference of
 * finite floats, tolerated or not. */
typedef struct {
  lp_buf why;
  double worst;
} lp_verify_outcome;

/* |found - wanted| <= atol + rtol |wanted| for floats (rtol, unless it is 0, at least one unit in the last place of f16
 * and bf16), equality for everything else; NaN equals NaN. Returns LP_MISMATCH
 * with a text of the first difference and the number of them. Adds to `outcome`. */
LP_MUST_USE lp_status lp_verify_compare(const lp_verify_array *found, const lp_array *wanted,
                                        const lp_tolerance *tolerance, lp_verify_outcome *outcome);
