/* annotate: writes the flops and bytes of each operator on the operator, as closed forms in the module's symbols. The
 * verifier derives them again and compares. */
#include "passes/passes.h"

void lp_op_remove_costs(lp_op *op) {
  lp_op_remove_attr(op, "flops");
  lp_op_remove_attr(op, "bytes_read");
  lp_op_remove_attr(op, "bytes_written");
}

/* Returns false when a cost is beyond 64 bits; the operator then has none. */
static bool annotate_op(lp_module *module, lp_op *op) {
  lp_cost cost = lp_op_cost(module, op);
  if (!cost.flops || !cost.bytes_read || !cost.bytes_written) return false;
  lp_op_set_poly(module, op, "flops", cost.flops);
  lp_op_set_poly(module, op, "bytes_read", cost.bytes_read);
  lp_op_set_poly(module, op, "bytes_written", cost.bytes_written);
  return true;
}

/* Costs show that a function is annotated. When no operator has costs, an attribute of the function shows it. */
static void annotate_func(lp_module *module, lp_op *func) {
  bool has_operators = false, has_costs = false;
  LP_FOR_OPS(op, func->region) {
    if (lp_op_info_get(op->kind)->level != LP_LEVEL_OP) continue;
    has_operators = true;
    has_costs |= annotate_op(module, op);
  }
  if (has_operators && !has_costs) lp_op_set_bool(module, func, "annotated", true);
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  (void)context;
  LP_FOR_FUNCS(func, module)
    annotate_func(module, func);
  return LP_OK;
}

const lp_pass lp_pass_annotate = {
    .name = "annotate",
    .summary = "write the FLOPs and bytes of every operator as closed forms",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_ANNOTATED,
    .breaks = LP_STATE_COUNT,
    .run = run,
};
