/* The placements that are kept during a search: the fastest within a limit of the objective, and the best. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/exact/solve.h"
#include "passes/plan/objective.h"

#include <string.h>

void lp_exact_placement_set(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT],
                            const lp_plan_result *result, lp_exact_placement *to) {
  to->result = *result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    memcpy(to->side[stage], side[stage], (size_t)problem[stage].op_count * sizeof **side);
}

bool lp_exact_keep(lp_exact_kept *kept, const lp_plan_problem problem[LP_STAGE_COUNT],
                   lp_side *const side[LP_STAGE_COUNT], const lp_plan_result *result) {
  if (!result->feasible) return false;
  const double objective = lp_plan_objective_value(result, kept->request);
  if (objective < lp_plan_objective_value(&kept->best.result, kept->request) * (1 - LP_EXACT_ROUNDING))
    lp_exact_placement_set(problem, side, result, &kept->best);
  if (objective > kept->most) return false;
  if (result->e2e_ms < kept->fastest.result.e2e_ms * (1 - LP_EXACT_ROUNDING))
    lp_exact_placement_set(problem, side, result, &kept->fastest);
  return true;
}
