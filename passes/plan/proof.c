/* Keeps the proof of a plan in the placed module, so that its report can state it. */
#include "base/side.h"
#include "passes/plan/objective.h"
#include "passes/plan/plan.h"

#include <math.h>

static const char *const names[] = {"price_ttft_ms", "price_tpot_ms", "price_device_byte", "price_cloud_byte"};

void lp_plan_proof_write(lp_module *module, lp_op *prefill, const lp_plan_proof *proof) {
  if (!proof->known) return;
  const double price[] = {proof->per_ms[0], proof->per_ms[1], proof->per_byte[0], proof->per_byte[1]};
  lp_op_set_f64(module, prefill, "plan_bound", proof->lower_bound);
  lp_op_set_f64(module, prefill, "plan_dual_bound", proof->dual_bound);
  lp_op_set_bool(module, prefill, "plan_complete", proof->complete);
  for (size_t i = 0; i < LP_COUNT(names); i++)
    lp_op_set_f64(module, prefill, names[i], price[i]);
  lp_op_set_f64s(module, prefill, "plan_way", proof->way, proof->way_count);
}

lp_plan_proof lp_plan_proof_read(const lp_module *module) {
  const lp_op *prefill = lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]);
  lp_plan_proof proof = {0};
  const lp_attr *way = prefill ? lp_op_attr(prefill, "plan_way") : NULL;
  if (!way || way->kind != LP_ATTR_F64S || !lp_op_attr(prefill, "plan_bound")) return proof;
  double price[LP_COUNT(names)];
  for (size_t i = 0; i < LP_COUNT(names); i++)
    price[i] = lp_op_f64(prefill, names[i], 0);
  return (lp_plan_proof){.known = true,
                         .complete = lp_op_bool(prefill, "plan_complete", false),
                         .lower_bound = lp_op_f64(prefill, "plan_bound", 0),
                         .dual_bound = lp_op_f64(prefill, "plan_dual_bound", 0),
                         .per_ms = {price[0], price[1]},
                         .per_byte = {price[2], price[3]},
                         .way = way->fs,
                         .way_count = way->count};
}

static const char cheapest_side[] = "cheapest_side";

void lp_plan_cheapest_write(lp_module *module, lp_op *op, lp_side side) {
  lp_op_set_str(module, op, cheapest_side, lp_side_name(side));
}

bool lp_plan_cheapest_read(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *side[LP_STAGE_COUNT],
                           lp_arena *arena) {
  bool differs = false;
  lp_plan_sides(problem, side, arena);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < problem[stage].op_count; i++)
      if (lp_side_find(lp_op_str(problem[stage].ops[i].op, cheapest_side, NULL), &side[stage][i])) differs = true;
  return differs;
}

double lp_plan_gap(const lp_plan_proof *proof, const lp_plan_result *result, const lp_compile_request *request) {
  const double objective = lp_plan_objective_value(result, request);
  if (!proof->known) return NAN;
  return objective > 0 ? fmax(0, 1 - proof->lower_bound / objective) : 0;
}
