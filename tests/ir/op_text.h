/* Tables of operators that are accepted or refused, each in a module of its own. */
#ifndef LP_TESTS_OP_TEXT_H
#define LP_TESTS_OP_TEXT_H

#include "base/base.h"
#include "ir/ir.h"

/* An operator, its attributes as text, and the types of its operands and results: "f32 b,s,8; w i8 3; k i64 2=0,1".
 * After "w" it is that of a weight, after "k" that of a constant with its elements. "f32" alone is a scalar, and
 * "f32 *" has no known rank. */
typedef struct {
  const char *op, *attrs;
  const char *in, *out;
  const char *refusal; /* NULL: it is accepted */
} op_row;

/* Appends the text of a module to `out`. Its function @main consists of the operator. */
void op_put_module(const op_row *row, lp_buf *out);

/* Appends the text of a module whose function @main is a graph, given as statements between semicolons:
 *   x: f32 b,s,4           an argument; "w" and "k" before the type as above
 *   n: n p + s             the size p + s as a scalar of i64; "n b, s" is a vector
 *   u v = Split x _ {axis = 1 : i64}    an operator of ONNX, or of the domain in its name; "_" is no operand
 *   return u v             the results; without it those of the last operator
 * The names are those of the function's inputs and outputs.
 * The results of operators have no types until lp_block_infer finds them. */
void op_put_graph(const char *graph, lp_buf *out);

/* What is done with the module after it was verified; NULL: nothing. */
typedef lp_status op_act(lp_module *module, lp_diag *diag);

/* Requires that each row is accepted, or refused with one error of this text at the operator. A table needs an accepted
 * row beside those that are refused, so that a refusal is that of the one thing that differs. */
void op_check_rows(const op_row *rows, size_t count, op_act *act);

#endif
