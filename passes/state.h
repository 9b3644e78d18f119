/* The states of a module, read from its content. */
#ifndef LP_PASSES_STATE_H
#define LP_PASSES_STATE_H

#include "passes/passes.h"

/* In the order of passes.h; `bound` and `fused` leave no trace of their own and count as the state before them. */
typedef enum {
  LP_STATE_IMPORTED,
  LP_STATE_RAISED,
  LP_STATE_LOWERED,
  LP_STATE_ANNOTATED,
  LP_STATE_PLACED,
  LP_STATE_COMMUNICATING,
  LP_STATE_PLANNED,
  LP_STATE_OUTLINED
} lp_module_state;

/* What the module's text says it is, so that a pass can also start from a parsed file. */
lp_module_state lp_module_state_of(const lp_module *module);
const char *lp_module_state_name(lp_module_state state);
/* The state a descriptor's `needs` names; IMPORTED for "". */
lp_module_state lp_module_state_parse(const char *name);

/* The `side` of operators that every side computes: cheap ones that depend on positions only. */
#define LP_SIDE_BOTH "both"
bool lp_op_on_both(const lp_op *op);
/* Does the operator run on the side? One whose side is "both" runs on each. */
bool lp_op_on(const lp_op *op, lp_side side);

#endif
