/* The steps of the pass `fuse`, in the order in which it takes them. Each works on one block of op.* operators whose
 * constants all stand at its beginning. */
#ifndef LP_PASSES_FUSE_H
#define LP_PASSES_FUSE_H

#include "passes/passes.h"

/* op.linear takes in bias, activation, gate and residual (fuse_linear.c). */
void lp_fuse_linear(lp_module *module, lp_block *block, lp_diag *diag);
/* A residual add and the norm behind it become op.add_norm (fuse_norm.c). */
void lp_fuse_norm(lp_module *module, lp_block *block);
/* Transposes between [b,s,h,d] and [b,h,s,d] vanish into the layout of attention, rotary and cache (fuse_layout.c). */
void lp_fuse_layout(lp_module *module, lp_block *block);
/* Trees of op.map become one op.fused (fuse_map.c). */
void lp_fuse_map(lp_module *module, lp_block *block);

/* The only operator that reads `value`, once; NULL otherwise. */
static inline lp_op *lp_only_reader(const lp_value *value) {
  return lp_value_has_one_use(value) ? value->uses->owner : NULL;
}
static inline bool lp_is_map(const lp_op *op, const char *fn) {
  return lp_op_is(op, LP_OP_MAP) && lp_streq(lp_op_str(op, "fn", NULL), fn);
}

#endif
