/* The simple placements: all operators on one side, and a single cut between two layers that both stages share. */
#include "base/side.h"
#include "passes/passes.h"
#include "passes/plan/plan.h"
#include "passes/plan/schedulers.h"

void lp_plan_fill(const lp_plan_problem *problem, lp_side where, lp_side *side) {
  for (int32_t i = 0; i < problem->op_count; i++)
    side[i] = where;
}

void lp_plan_fill_cut(const lp_plan_problem *problem, int64_t cut, lp_side *side) {
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *item = &problem->ops[i];
    side[i] = item->layer < cut ? LP_SIDE_DEVICE : LP_SIDE_CLOUD;
  }
}

lp_status lp_place_device_only(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                               lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)request, (void)scratch, (void)proof, (void)diag;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_plan_fill(&problem[stage], LP_SIDE_DEVICE, side[stage]);
  return LP_OK;
}

lp_status lp_place_cloud_only(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                              lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)request, (void)scratch, (void)proof, (void)diag;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_plan_fill(&problem[stage], LP_SIDE_CLOUD, side[stage]);
  return LP_OK;
}

static void fill_both(const lp_plan_problem problem[LP_STAGE_COUNT], int64_t cut, lp_side *side[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_plan_fill_cut(&problem[stage], cut, side[stage]);
}

/* Tries every cut, both ends included; of equal ones it takes the one that leaves most on the device. */
lp_status lp_place_layer(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                         lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)scratch, (void)proof, (void)diag;
  int64_t best = 0;
  lp_plan_result best_result = {0};
  for (int64_t cut = problem[0].layer_count + 1; cut >= -1; cut--) {
    lp_plan_result result;
    fill_both(problem, cut, side);
    lp_plan_evaluate(problem, request, side, &result);
    if (cut <= problem[0].layer_count && lp_plan_compare(&result, &best_result, request) >= 0) continue;
    best = cut;
    best_result = result;
  }
  fill_both(problem, best, side);
  return LP_OK;
}

/* ---- cut: a cut that the request gives --------------------------------------------------------------------------- */

/* The operator that comes from ONNX node `node`; for "auto" the one after which half of the work is done; -1: none. */
static int32_t find_node(const lp_plan_problem *problem, const char *node) {
  double total = 0, sum = 0;
  int32_t found = -1;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_op *op = problem->ops[i].op;
    if (lp_streq(op->loc.node, node) || lp_streq(lp_op_str(op, "name", NULL), node)) found = i;
    total += problem->ops[i].flops[LP_SIDE_DEVICE] + problem->ops[i].bytes[LP_SIDE_DEVICE];
  }
  if (!lp_streq(node, "auto")) return found;
  for (int32_t i = 0; i < problem->op_count; i++) {
    sum += problem->ops[i].flops[LP_SIDE_DEVICE] + problem->ops[i].bytes[LP_SIDE_DEVICE];
    if (2 * sum >= total) return i;
  }
  return problem->op_count - 1;
}

/* Puts the node, its ancestors, and all operators that share a KV cache with these on the device. */
static void fill_ancestors(const lp_plan_problem *problem, int32_t node, lp_side *side, lp_arena *scratch) {
  bool *cached = LP_NEW_ARRAY(scratch, bool, problem->state_count);
  lp_plan_fill(problem, LP_SIDE_CLOUD, side);
  side[node] = LP_SIDE_DEVICE;
  for (bool changed = true; changed;) {
    changed = false;
    for (int32_t i = problem->edge_count; i-- > 0;) {
      const lp_plan_edge *edge = &problem->edges[i];
      if (edge->producer < 0 || side[edge->consumer] != LP_SIDE_DEVICE || side[edge->producer] == LP_SIDE_DEVICE)
        continue;
      side[edge->producer] = LP_SIDE_DEVICE;
      changed = true;
    }
    for (int32_t i = 0; i < problem->op_count; i++) {
      int32_t state = problem->ops[i].state;
      if (state < 0) continue;
      if (side[i] == LP_SIDE_DEVICE) {
        changed |= !cached[state];
        cached[state] = true;
      } else if (cached[state]) {
        side[i] = LP_SIDE_DEVICE;
        changed = true;
      }
    }
  }
}

lp_status lp_place_cut(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                       lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)proof;
  if (!request->cut_node) {
    if (request->cut < 0 || request->cut > problem[0].layer_count)
      return lp_error(diag, LP_LOC_NONE, "cannot cut before layer %" PRId64 ": the model has %" PRId32 " layers",
                      request->cut, problem[0].layer_count);
    fill_both(problem, request->cut, side);
    return LP_OK;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    int32_t node = find_node(&problem[stage], request->cut_node);
    if (node < 0)
      return lp_error(diag, LP_LOC_NONE, "no operator comes from node '%s': it was folded or fused into another",
                      request->cut_node);
    fill_ancestors(&problem[stage], node, side[stage], scratch);
  }
  return LP_OK;
}
