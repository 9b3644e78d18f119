/* outline: numbers the segments: each straight run of one side's operators, ended by communication or by the other
 * side's turn, becomes one function of emitted code. With each=true every operator is a run of its own, so that it can be timed; the
 * function then says `profiled`. */
#include "passes/plan_internal.h"

static void outline_func(lp_module *module, lp_op *func, bool each) {
  int64_t next[LP_PLACE_COUNT] = {0, 0};
  int running = -1; /* the side of the open segment, -1 none */
  LP_FOR_OPS(op, func->region) {
    if (lp_op_has(op, LP_COMM)) running = -1;
    if (!lp_plan_is_placeable(op)) continue;
    int side = lp_op_on(op, "cloud") ? LP_PLACE_CLOUD : LP_PLACE_DEVICE;
    if (each || side != running) next[side]++;
    running = side;
    lp_op_set_i64(module, op, "segment", next[side] - 1);
  }
  if (each) lp_op_set_bool(module, func, "profiled", true);
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  bool each = lp_streq(lp_pass_option(context, "each"), "true");
  LP_FOR_OPS(func, lp_module_body(module))
  if (func->kind == LP_OP_FUNC) outline_func(module, func, each);
  return LP_OK;
}

const lp_pass lp_pass_outline = {
    .name = "outline",
    .summary = "number each side's runs of operators between communications",
    .needs = "planned",
    .options = "each",
    .run = run,
};
