/* The scheduler `exact`: searches for the request, then takes the fastest plan within the tolerance. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/exact/solve.h"
#include "passes/plan/schedulers.h"

static double value_of(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                       lp_side *const side[LP_STAGE_COUNT]) {
  lp_plan_result result;
  lp_plan_evaluate(problem, request, side, &result);
  return lp_plan_objective_value(&result, request);
}

/* Makes the placement the fastest one with an objective of at most (1 + request->tolerance) times its own. The latency
 * is then the objective and the request's one a limit. `proof` keeps the placement where the fastest one is dearer. */
static void find_faster(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                        lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch) {
  const double least = value_of(problem, request, side);
  if (!(least > 0)) return;
  lp_compile_request faster = *request;
  faster.objective = "latency";
  faster.near_suffices = true;
  lp_side *best[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    best[stage] = lp_arena_copy(scratch, side[stage], (size_t)problem[stage].op_count * sizeof **side);
  (void)lp_exact_solve(&(lp_exact_task){.problem = problem,
                                        .request = &faster,
                                        .seed = best,
                                        .limited = request,
                                        .most = least * (1 + request->tolerance)},
                       side, NULL, scratch);
  if (!proof || value_of(problem, request, side) <= least * (1 + LP_EXACT_ROUNDING)) return;
  memcpy(proof->cheapest, best, sizeof best);
}

lp_status lp_place_exact(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                         lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)diag;
  const lp_exact_task task = {.problem = problem, .request = request};
  if (lp_exact_solve(&task, side, proof, scratch) && request->tolerance > 0 && !request->feasible_suffices)
    find_faster(problem, request, side, proof, scratch);
  return LP_OK;
}
