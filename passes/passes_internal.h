/* What the passes share among themselves: the states of a module, sides, and the walk over one stage's program. */
#ifndef LP_PASSES_INTERNAL_H
#define LP_PASSES_INTERNAL_H

#include "passes/passes.h"

/* ---- states (state.c) -------------------------------------------------------------------------------------------- */

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

/* ---- sides --------------------------------------------------------------------------------------------------------- */

/* Has the operator this side? "both" has each. */
bool lp_op_on(const lp_op *op, const char *side);

/* "prefill" and "decode": the functions that replace @main once a module is placed. */
extern const char *const lp_stage_names[LP_STAGE_COUNT];

#endif
