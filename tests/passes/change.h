/* Graphs with one thing changed: near misses of the patterns that passes look for. */
#ifndef LP_TESTS_PASSES_CHANGE_H
#define LP_TESTS_PASSES_CHANGE_H

#include "ir/ir.h"

enum { CHANGE_NAME_SIZE = 120 };

/* Makes change number `*number` of the function: an operator of another kind, operands in another order or from
 * elsewhere, an attribute or a constant with another value, a further result. Describes it in `name`. False: there are
 * not so many, and their count was taken off `*number`. The types are not inferred again. */
bool change_function(lp_module *module, lp_op *func, int64_t *number, char name[CHANGE_NAME_SIZE]);

#endif
