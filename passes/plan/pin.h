/* Operators that must be on one side: pinned ones, private layers, the users of a KV cache. */
#pragma once

#include "passes/plan/plan.h"

/* The name of the place in "GLOB=PLACE", borrowed from `text`; NULL: `text` has no glob or no place. */
const char *lp_plan_pin_place(const char *text);
/* Tells whether the glob of "GLOB=PLACE" matches the operator's name in the model or its name by layer and kind. */
bool lp_plan_pin_matches(const lp_plan_op *item, const char *text);
/* Sets each operator's `pin`; all users of a KV cache have the same. */
void lp_plan_pin(lp_plan_problem *problem, const lp_compile_request *request);
/* Moves each view to the place of its operand's memory, unless only other places read the view. A view has no code, so
 * without this a place could receive a value only to send it back. No placement costs more afterwards. */
void lp_plan_settle_views(const lp_plan_problem *problem, uint8_t *place);
/* Moves pinned operators and the users of each KV cache to their sides, then views. */
void lp_plan_settle(const lp_plan_problem *problem, lp_side *side);
