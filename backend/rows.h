/* Batched passes over several sequences (base/abi.h): finds the values that have one row for each token, and the
 * row-wise operators, which run once per batch over the rows of all sequences. */
#pragma once

#include "ir/ir.h"

/* The rows that a value has: none, one for each of the s new tokens, or one for each of the last r of them. */
typedef enum { LP_ROWS_NONE, LP_ROWS_NEW, LP_ROWS_LAST } lp_rows;

/* The rows of a value of this type; `bytes` gets the bytes of one row. */
lp_rows lp_type_rows(const lp_module *module, lp_type type, int64_t *bytes);
/* The rows of a value; LP_ROWS_NONE when its shape as an operand and its shape in memory differ in their rows. */
lp_rows lp_value_rows(const lp_module *module, lp_value *value);
/* Tells whether each row of the results depends on only one row of the operands. */
bool lp_op_is_joint(const lp_module *module, const lp_op *op);
