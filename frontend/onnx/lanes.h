/* The operators of a mixture's experts, side by side. A file has the same operators for each expert, between NonZero of
 * its mask and the sum of its rows. They become one set of operators on [tokens][choices][features], in which products
 * with matrices of their own are llmpart.Experts. */
#pragma once

#include "frontend/onnx/bound.h"

/* A value of each expert, and the value [tokens][choices or 1][features] that stands for all. */
typedef struct {
  lp_value **each; /* [experts] */
  lp_value *all;
} lp_lanes_value;

typedef struct {
  lp_importer *im;
  int64_t experts;
  lp_bound *lane;  /* [experts], by the expert's number; with places */
  lp_value *index; /* [tokens][choices], of a TopK over the experts' scores */
  const lp_poly *tokens, *choices;
  lp_op *where; /* new operators are inserted before this one */
  lp_loc loc;   /* of new operators that stand for none of the file's */
  LP_VEC(lp_lanes_value) done;
  LP_VEC(lp_op *) built;
  int depth;
} lp_lanes;

/* Builds the value that stands for rows `each` [experts]; NULL: the operators that made them have no such form. */
lp_value *lp_lanes_all(lp_lanes *m, lp_value *const *each);
/* Builds an operator of two operands; attr NULL: without an attribute. NULL where an operand is NULL, or its type does
 * not fit. */
lp_value *lp_lanes_make(lp_lanes *m, lp_kind kind, lp_value *x, lp_value *y, const char *attr, int64_t number);
lp_value *lp_lanes_ints(lp_lanes *m, int32_t count, const int64_t *values);
#define LP_LANES_INTS(m, ...)                                                                                          \
  lp_lanes_ints(m, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
void lp_lanes_undo(lp_lanes *m); /* erases what was built */
void lp_lanes_release(lp_lanes *m);
