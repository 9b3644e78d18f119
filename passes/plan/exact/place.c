/* The scheduler `exact`: searches for the request, begins again where limits are tight, then takes the fastest plan
 * within the tolerance. */
#include "base/side.h"
#include "passes/plan/exact/solve.h"
#include "passes/plan/schedulers.h"

/* Solves for another objective and then for the request's, beginning with that placement. Returns whether one was
 * found. */
static bool solve_from(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                       const char *objective, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch) {
  lp_compile_request other = *request;
  other.objective = objective;
  lp_side *seed[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    seed[stage] = LP_NEW_ARRAY(scratch, lp_side, problem[stage].op_count);
  if (!lp_exact_solve(&(lp_exact_task){.problem = problem, .request = &other}, seed, NULL, scratch)) return false;
  (void)lp_exact_solve(&(lp_exact_task){.problem = problem, .request = request, .seed = seed}, side, proof, scratch);
  return true;
}

/* If the limits are tight, the placements that meet them are far from the objective at which the searches aim. The
 * search then begins again from the fastest placement or, if memory is tight, from the cheapest. */
static bool find_best(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                      lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch) {
  static const char *const others[] = {"latency", "cost"};
  if (lp_exact_solve(&(lp_exact_task){.problem = problem, .request = request}, side, proof, scratch)) return true;
  if (request->feasible_suffices) return false;
  for (size_t i = 0; i < LP_COUNT(others); i++)
    if (!lp_streq(request->objective ? request->objective : "cost", others[i]) &&
        solve_from(problem, request, others[i], side, proof, scratch))
      return true;
  return false;
}

lp_status lp_place_exact(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                         lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)diag;
  if (find_best(problem, request, side, proof, scratch) && request->tolerance > 0 && !request->feasible_suffices)
    lp_exact_find_faster(problem, request, side, proof, scratch);
  return LP_OK;
}
