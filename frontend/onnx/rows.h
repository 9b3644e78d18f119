/* Rows that the data decides: NonZero gives as many as elements of its operand are not zero. Where nothing but sums
 * over rows leaves them, as in the experts of a mixture, they are bounded: every row is computed, and those that were
 * not chosen are left out at the end. */
#ifndef LP_ONNX_ROWS_H
#define LP_ONNX_ROWS_H

#include "base/poly.h"
#include "frontend/onnx/importer.h"

/* ---- rows.c: which operators keep rows apart. `rows` is the symbol that stands for their number ------------------ */

/* Does the number of rows occur in the value's shape; in its shape or its known elements? */
bool lp_rows_in_shape(const lp_value *value, lp_symbol rows);
bool lp_rows_in(const lp_value *value, lp_symbol rows);
/* The only axis of the value that has the rows, or -1. */
int32_t lp_rows_axis(const lp_value *value, lp_symbol rows);
/* Does row i of each result depend on row i of the operands only? Results that are known sizes do not count. */
bool lp_rows_kept(const lp_op *op, lp_symbol rows);

/* ---- experts.c --------------------------------------------------------------------------------------------------- */

/* The axis of a matrix that counts the experts which a token chose, if at most one element along it is not zero:
 * where the matrix tells which of TopK's indices are one expert's. -1: it is not known to be so. */
int32_t lp_choice_axis(const lp_value *mask);

/* ---- nonzero.c --------------------------------------------------------------------------------------------------- */

/* The type of a NonZero of x, to be set before its own rule runs: its number of rows is a symbol. */
lp_type lp_nonzero_type(lp_importer *im, const lp_value *x);
/* Counts the operator if it is a NonZero whose number of rows is still that symbol. */
void lp_nonzero_count(lp_importer *im, const lp_op *op);
/* Bounds the rows of every NonZero in the finished block; reports one whose rows are used in another way. */
LP_MUST_USE lp_status lp_nonzero_bound(lp_importer *im);

#endif
