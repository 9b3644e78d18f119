/* The states of a module, read from its content, and the side of a placed operator. */
#pragma once

#include "passes/passes.h"

/* The last state of passes.h that holds; LP_STATE_IMPORTED for a module without functions. */
lp_module_state lp_module_state_of(const lp_module *module);
const char *lp_module_state_name(lp_module_state state);
/* Describes a module in this state, in one line. */
const char *lp_module_state_meaning(lp_module_state state);

bool lp_op_is_placeable(const lp_op *op); /* op.* and no communication */
/* The `side` of operators that every place computes: cheap ones that depend on positions only. */
#define LP_SIDE_BOTH "both"
bool lp_op_on_both(const lp_op *op);
/* Tells whether the operator runs at the place. An operator with the side "both" runs at each. */
bool lp_op_on(const lp_op *op, lp_place place);
