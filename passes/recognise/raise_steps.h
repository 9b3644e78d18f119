/* Declarations that the files of raise share: the groups that become layers.
 *
 * raise.c       which operator belongs to which group
 * raise_order.c an order in which each group stands together      raise_wrap.c  groups made layers, and described */
#pragma once

#include "ir/ir.h"

typedef struct {
  lp_kind kind;
  int64_t index;
  bool needs_norm; /* an exit head includes its own norm */
} lp_group;

/* While raising, op->scratch is the operator's group. */
static inline lp_group *lp_group_of(const lp_op *op) {
  return op->scratch;
}

bool lp_raise_is_projection(const lp_op *op); /* a product with a weight */

/* Gives every operand with integers known as polynomials its own op.dims, so that no shape arithmetic ties one layer to
 * another. They stay outside the block until lp_raise_order puts each before its user. */
void lp_raise_detach_sizes(lp_module *module, lp_block *block);
/* Reorders the block's operators, all of which have a group. */
void lp_raise_order(lp_block *block);
/* Wraps each run of one group into its layer. */
void lp_raise_wrap(lp_module *module, lp_block *block);
