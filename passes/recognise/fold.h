/* Declarations that the files of fold share. */
#pragma once

#include "ir/ir.h"

typedef struct {
  lp_module *module;
  lp_diag *diag;
  lp_arena *scratch;
  const int64_t *no_sizes; /* zeros for the symbols, for values that depend on none */
  bool changed;
} lp_fold;

/* Returns an existing value that equals the operator's result (fold_simplify.c), or NULL. May rewrite the operator's
 * operands and set `changed`. */
lp_value *lp_fold_simplify(lp_fold *f, lp_op *op);
/* Merges equal constants, weights and pure operators of a block (fold_merge.c). */
void lp_fold_merge(lp_fold *f, lp_block *block);
