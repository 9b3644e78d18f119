/* The searches of the exact scheduler for one request (exact.c). */
#pragma once

#include "passes/plan/plan.h"

/* Borrowed parts. */
typedef struct {
  const lp_plan_problem *problem; /* [LP_STAGE_COUNT] */
  const lp_compile_request *request;
  lp_side *const *seed;              /* [LP_STAGE_COUNT] a placement to begin with; NULL: none */
  const lp_compile_request *limited; /* its objective must be at most `most`; NULL: no such limit */
  double most;
  bool any_suffices; /* any placement that meets the limits does */
} lp_exact_task;
/* Searches for the best placement. Returns whether it found one that meets the limits; `side` then holds it. Otherwise
 * `side` holds the placement that comes nearest. `proof` may be NULL. */
bool lp_exact_solve(const lp_exact_task *task, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch);
