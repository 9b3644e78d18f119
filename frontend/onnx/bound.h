/* The operators between one NonZero and the sum of its rows: what nonzero.c and mixture.c share. */
#pragma once

#include "frontend/onnx/rows.h"

/* The relation of a value with rows to the coordinates that NonZero gives. `coordinate`: row i of the value holds only
 * this coordinate of the i-th element that is not zero. `matrix_axis`: the value holds all coordinates, along this
 * axis. -1: it does not. */
typedef struct {
  int32_t coordinate, matrix_axis;
} lp_row_place;

typedef struct {
  lp_importer *im;
  lp_op *source; /* the NonZero */
  lp_symbol rows;
  const lp_poly *count; /* the bound: the size of the mask's axis of tokens */
  int32_t token_axis;
  LP_VEC(lp_op *) users;                  /* operators that use the rows, in order */
  lp_value *chosen, *token, *coordinates; /* bool [count]; 0 .. count - 1; all coordinates [rank, count] */
  lp_op *where;                           /* new operators are inserted before this one */
} lp_bound;

/* Collects the operators that depend on the rows or their number; they are marked until lp_bound_forget. */
void lp_bound_collect(lp_bound *b);
/* The first operator that does not compute rows one by one, or add them at their places; NULL: there is none. */
const lp_op *lp_bound_find_other(const lp_bound *b);
/* Finds the places of all values of the operators, for the functions below. */
void lp_bound_find_places(const lp_bound *b);
void lp_bound_forget(lp_bound *b);

bool lp_bound_is_sum(lp_kind kind);
lp_row_place lp_bound_place(const lp_value *value);
/* Tells whether row i of the value is the token of row i. */
bool lp_bound_is_token(const lp_bound *b, const lp_value *value);
/* Returns each row's choice if the index is choice + token * `choices`, else NULL. */
lp_value *lp_bound_choice_in(const lp_bound *b, const lp_value *index, const lp_poly *choices);
