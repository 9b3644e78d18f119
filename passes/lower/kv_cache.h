/* What the files of kv-cache share. */
#ifndef LP_PASSES_KV_INTERNAL_H
#define LP_PASSES_KV_INTERNAL_H

#include "ir/ir.h"

/* Masks of a model without past inputs (kv_mask.c): sized for s queries over s keys, but with a cache there are p + s keys.
 * Set the block alone, call for each attention in order. */
typedef struct {
  lp_block *block;
  const lp_value *mask; /* the last one met, */
  lp_value *longer;     /* and what it is over p + s keys: layers share masks */
} lp_kv_masks;

/* Gives the attention (op.attention) what its mask is over p + s keys, at the last s of as many queries. */
LP_MUST_USE lp_status lp_kv_lengthen_mask(lp_module *module, lp_kv_masks *masks, lp_op *attention, lp_diag *diag);
/* Was the operator made for such a mask? Its positions count from 0. Marked in op->scratch. */
bool lp_kv_is_mask(const lp_op *op);

/* Is a row of the operator's result made of other rows of the sequence than its own (kv_rows.c)? Attention, which the cache
 * serves, does not count. */
bool lp_kv_mixes_rows(lp_module *module, const lp_op *op);

/* Computes what leads to the block's results alone for the last r of s rows (kv_last.c); results of other forms stay. */
void lp_kv_take_last_rows(lp_module *module, lp_block *block, lp_diag *diag);

/* Notes in the function's `context` how many positions its tables of positions have rows for; nothing where it has none
 * (kv_context.c). */
void lp_kv_find_context(lp_module *module, lp_op *func);

#endif
