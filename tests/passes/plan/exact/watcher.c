/* Evaluates the placements that a search of the exact scheduler shows. */
#include "tests/passes/plan/exact/watcher.h"
#include "base/side.h"
#include "passes/plan/objective.h"
#include "passes/plan/pin.h"

#include <math.h>

void watcher_open(random_plan *plan, double best, watcher *out) {
  lp_exact *x = LP_NEW(plan->arena, lp_exact);
  lp_exact_build(plan->problem, &plan->request, plan->arena, x);
  *out = (watcher){.plan = plan, .x = x, .best = best};
  for (int i = 0; i < LP_STAGE_COUNT; i++)
    out->side[i] = LP_NEW_ARRAY(plan->arena, lp_side, plan->problem[i].op_count);
}

bool watcher_see(void *user, unsigned char *const of_unit[LP_STAGE_COUNT]) {
  watcher *w = user;
  lp_plan_result result;
  w->shown++;
  if (w->refuses) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int32_t i = 0; i < w->plan->problem[stage].op_count; i++) {
      int32_t unit = w->x->unit_of[stage][i];
      w->side[stage][i] = unit >= 0 && of_unit[stage][unit] ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
    lp_plan_settle(&w->plan->problem[stage], w->side[stage]);
  }
  lp_plan_evaluate(w->plan->problem, &w->plan->request, w->side, &result);
  if (result.feasible) w->best = fmin(w->best, lp_plan_objective_value(&result, &w->plan->request));
  return result.feasible;
}

double watcher_known(const void *user) {
  return ((const watcher *)user)->best;
}
