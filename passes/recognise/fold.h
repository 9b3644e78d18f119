/* What the files of fold share. */
#ifndef LP_PASSES_FOLD_INTERNAL_H
#define LP_PASSES_FOLD_INTERNAL_H

#include "ir/ir.h"

typedef struct {
  lp_module *module;
  lp_diag *diag;
  lp_arena *scratch;
  const int64_t *no_sizes; /* zeros for the symbols, where nothing depends on them */
  bool changed;
} lp_fold;

/* What a result can be replaced by without computing anything (fold_simplify.c); NULL: nothing. May rewrite the
 * operator's operands and set `changed`. */
lp_value *lp_fold_simplify(lp_fold *f, lp_op *op);
/* Merges equal constants, weights and pure operators of a block (fold_merge.c). */
void lp_fold_merge(lp_fold *f, lp_block *block);

#endif
