/* The state of a module, read off its content: parsed text needs no memory of the passes it went through. */
#include "passes/state.h"
#include "passes/passes.h"

#include <string.h>

const char *const lp_stage_names[LP_STAGE_COUNT] = {"prefill", "decode"};

static const char *const state_names[] = {"imported", "raised",        "lowered", "annotated",
                                          "placed",   "communicating", "planned", "outlined"};

const char *lp_module_state_name(lp_module_state state) {
  return state_names[state];
}

lp_module_state lp_module_state_parse(const char *name) {
  if (lp_streq(name, "fused")) return LP_STATE_LOWERED;
  for (size_t i = 0; i < LP_COUNT(state_names); i++)
    if (lp_streq(name, state_names[i])) return (lp_module_state)i;
  return LP_STATE_IMPORTED;
}

bool lp_op_on_both(const lp_op *op) {
  return lp_streq(lp_op_str(op, "side", NULL), LP_SIDE_BOTH);
}

bool lp_op_on(const lp_op *op, lp_side side) {
  return lp_op_on_both(op) || lp_streq(lp_op_str(op, "side", NULL), lp_side_name(side));
}

static lp_module_state state_of_placed(const lp_op *func) {
  lp_module_state state = LP_STATE_COMMUNICATING;
  LP_FOR_OPS(op, func->region) {
    if (lp_op_on_both(op)) return LP_STATE_PLACED;
    if (lp_op_attr(op, "segment")) state = LP_STATE_OUTLINED;
  }
  /* One without "both" operators is communicating once insert-comm has said so. */
  if (!lp_op_attr(func, "communicating")) return LP_STATE_PLACED;
  if (state == LP_STATE_COMMUNICATING && lp_op_attr(func, "slot_device")) state = LP_STATE_PLANNED;
  return state;
}

/* A function before placement. */
static lp_module_state state_of_main(const lp_op *func) {
  lp_module_state state = LP_STATE_LOWERED;
  bool annotated = false;
  LP_FOR_OPS(op, func->region) {
    lp_level level = lp_op_info_get(op->kind)->level;
    if (level == LP_LEVEL_ONNX) return LP_STATE_IMPORTED;
    if (level == LP_LEVEL_LAYER) state = LP_STATE_RAISED;
    if (lp_op_attr(op, "flops")) annotated = true;
  }
  return state == LP_STATE_LOWERED && annotated ? LP_STATE_ANNOTATED : state;
}

lp_module_state lp_module_state_of(const lp_module *module) {
  const lp_op *prefill = lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]);
  if (prefill) return state_of_placed(prefill);
  lp_module_state least = LP_STATE_OUTLINED;
  LP_FOR_OPS(op, lp_module_body(module)) {
    lp_module_state state = op->kind == LP_OP_FUNC ? state_of_main(op) : LP_STATE_OUTLINED;
    if (state < least) least = state;
  }
  return least == LP_STATE_OUTLINED ? LP_STATE_IMPORTED : least;
}
