/* Chooses the number of ranks: plans with each, and keeps the best plan. */
#include "passes/plan/plan.h"

lp_status lp_plan_choose_ranks(lp_module *module, lp_compile_request *request, lp_machine *all, lp_diag *diag) {
  static const int64_t counts[] = {1, 2, 4, 8};
  const lp_machine *one = request->cloud;
  lp_plan_result best = {0};
  for (size_t i = 0; i < LP_COUNT(counts); i++) {
    lp_compile_request changed = *request;
    const lp_machine machines = lp_hw_of_ranks(one, counts[i]);
    changed.cloud = &machines;
    changed.ranks = counts[i];
    LP_TRY(lp_plan_choose_types(module, &changed, diag));
    lp_plan_result result;
    changed.tolerance = 0; /* numbers of ranks are compared by their best plans */
    LP_TRY(lp_plan_try(module, &changed, &result, diag));
    /* The shards of a cache do not move between the sides. */
    if (i > 0 && (result.kv_move_ms > 0 || lp_plan_compare(&result, &best, request) >= 0)) continue;
    best = result;
    request->ranks = counts[i];
  }
  *all = lp_hw_of_ranks(one, request->ranks);
  request->cloud = all;
  request->chose_ranks = true;
  return LP_OK;
}
