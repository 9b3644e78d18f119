/* Declarations that the files of the pass kv-cache share. */
#pragma once

#include "ir/ir.h"

/* Masks of a model without past inputs (kv_mask.c). They are sized for s queries over s keys, but with a cache there
 * are p + s keys. The caller sets `block` and calls lp_kv_lengthen_mask for each attention in order. */
typedef struct {
  lp_block *block;
  const lp_value *mask; /* the mask of the last call */
  lp_value *longer;     /* the same mask over p + s keys, kept because layers share masks */
} lp_kv_masks;

/* Replaces the mask of an op.attention by the same mask over p + s keys, for the last s queries. */
LP_MUST_USE lp_status lp_kv_lengthen_mask(lp_module *module, lp_kv_masks *masks, lp_op *attention, lp_diag *diag);
/* Tells whether lp_kv_lengthen_mask made the operator, from a mark in op->scratch. The positions of such an operator
 * count from 0. */
bool lp_kv_is_mask(const lp_op *op);

/* Tells whether a row of the operator's result depends on other rows of the sequence (kv_rows.c). Attention does not
 * count, because the cache serves it. */
bool lp_kv_mixes_rows(lp_module *module, const lp_op *op);

/* Replaces the concatenation of `past`, the last columns of a causal convolution's input, and the new columns by those
 * of a cache of type `dtype` [b, 1, p + s, channels] (kv_columns.c). Returns the op.kv_append; the caller declares its
 * state. Returns NULL when anything else reads the past. */
lp_op *lp_kv_keep_columns(lp_module *module, const lp_value *past, lp_dtype dtype, lp_diag *diag);

/* The same by op.carry_columns, which it returns. */
lp_op *lp_kv_carry_columns(lp_module *module, const lp_value *past, lp_diag *diag);

/* Tells whether the operator counts, for each token, those so far that meet a condition (kv_counts.c). */
bool lp_kv_counts_tokens(const lp_op *op);
/* Makes such an operator of a model without past inputs count from position 0 on, by a cache of type `dtype`
 * [b, 1, p + s, 1] of zeros and ones. Returns the op.kv_append; the caller declares its state. */
lp_op *lp_kv_keep_counts(lp_module *module, lp_op *op, lp_dtype dtype, lp_diag *diag);

/* Computes the operators that lead only to the block's results for the last r of s rows (kv_last.c). Results of
 * other forms stay as they are. */
void lp_kv_take_last_rows(lp_module *module, lp_block *block, lp_diag *diag);

/* Sets the function's `context`, the number of positions for which its position tables have rows, and `source_context`,
 * the same for the text of an encoder. Sets nothing where it has no such table (kv_context.c). `encodes`: the function
 * has no caches, and a pass has all positions. */
void lp_kv_find_context(lp_module *module, lp_op *func, bool encodes);
