/* Bounds numbers of rows that depend on data. NonZero gives one row for each element of its operand that is not zero.
 * If the rows are only summed in the end, as in a mixture of experts, the importer computes the rows of each token's
 * choices at once; where that is not possible, it computes every possible row, and adds only those that NonZero would
 * give. */
#pragma once

#include "base/poly.h"
#include "frontend/onnx/importer.h"

/* The symbol of the number of rows of a NonZero. Dimension names of a file contain no '#'. */
#define LP_ROWS_NAME "#rows"

/* ---- operators that compute rows independently (rows.c) ---------------------------------------------------------- */

/* Tell whether the number of rows, the symbol `rows`, occurs in the value's shape; in its shape or its known
 * elements. */
bool lp_rows_in_shape(const lp_value *value, lp_symbol rows);
bool lp_rows_in(const lp_value *value, lp_symbol rows);
/* Returns the only axis that counts the rows, or -1. */
int32_t lp_rows_axis(const lp_value *value, lp_symbol rows);
/* Tells whether row i of each result depends only on row i of the operands. Results that are known sizes do not
 * count. */
bool lp_rows_kept(const lp_op *op, lp_symbol rows);

/* ---- experts.c --------------------------------------------------------------------------------------------------- */

/* An expert's mask [tokens, choices] or [choices, tokens] that compares the indices of a TopK with one expert's number,
 * so that at most one element along the axis of choices is not zero. */
typedef struct {
  const lp_value *index; /* of the TopK */
  int32_t axis;          /* of the mask, that counts a token's choices */
  int64_t expert;        /* negative: its number is not known */
} lp_choice;

/* False: the mask has another form. */
bool lp_choice_find(const lp_value *mask, lp_choice *out);

/* ---- mixture.c --------------------------------------------------------------------------------------------------- */

/* Rewrites mixtures in which a NonZero of each expert's mask gives the expert's tokens, so that only chosen experts are
 * computed; their NonZeros are left without uses. Returns the number of mixtures of another form, and where the first
 * of them is. */
int64_t lp_mixtures_gather(lp_importer *im, lp_loc *first);

/* ---- nonzero.c --------------------------------------------------------------------------------------------------- */

/* Returns the type of NonZero(x), with a symbol for its number of rows. The importer sets it before the operator's own
 * shape rule runs. */
lp_type lp_nonzero_type(lp_importer *im, const lp_value *x);
/* Counts the operator if it is a NonZero that still has this symbol as its number of rows. */
void lp_nonzero_count(lp_importer *im, const lp_op *op);
/* Bounds the rows of every NonZero in the finished block; reports the first that cannot be bounded. */
LP_MUST_USE lp_status lp_nonzero_bound(lp_importer *im);
