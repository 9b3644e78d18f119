/* The steps of the pass `fuse`, in the order in which it takes them. Each works on one block of op.* operators, with
 * all constants at its beginning. */
#pragma once

#include "passes/passes.h"

/* Makes bias, activation, gate and residual a part of op.linear (fuse_linear.c). */
void lp_fuse_linear(lp_module *module, lp_block *block, lp_diag *diag);
/* Joins a residual add and the norm that follows it into op.add_norm (fuse_norm.c). */
void lp_fuse_norm(lp_module *module, lp_block *block);
/* Replaces transposes between [b,s,h,d] and [b,h,s,d] by the layout of attention, rotary and cache (fuse_layout.c). */
void lp_fuse_layout(lp_module *module, lp_block *block);
/* Joins trees of op.map into one op.fused (fuse_map.c). */
void lp_fuse_map(lp_module *module, lp_block *block);

/* Returns the operator that reads `value` when it has exactly one use, else NULL. */
static inline lp_op *lp_only_reader(const lp_value *value) {
  return lp_value_has_one_use(value) ? value->uses->owner : NULL;
}
static inline bool lp_is_map(const lp_op *op, const char *fn) {
  return lp_op_is(op, LP_OP_MAP) && lp_streq(lp_op_str(op, "fn", NULL), fn);
}
