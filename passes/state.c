/* The states of a module, read from its content: parsed text needs no memory of the passes that it went through. */
#include "passes/state.h"

const char *const lp_stage_names[LP_STAGE_COUNT] = {"prefill", "decode"};

/* ---- operators of a placed module -------------------------------------------------------------------------------- */

bool lp_op_is_placeable(const lp_op *op) {
  return lp_op_info_get(op->kind)->level == LP_LEVEL_OP && !lp_op_has(op, LP_COMM);
}

bool lp_op_on_both(const lp_op *op) {
  return lp_streq(lp_op_str(op, "side", NULL), LP_SIDE_BOTH);
}

bool lp_op_on(const lp_op *op, lp_place place) {
  return lp_op_on_both(op) || lp_op_place(op, "side") == place;
}

/* ---- signs of a state in a function ------------------------------------------------------------------------------ */

static bool has_level(const lp_op *func, lp_level level) {
  LP_FOR_OPS(op, func->region)
    if (lp_op_info_get(op->kind)->level == level) return true;
  return false;
}

static bool is_any(const lp_op *func) {
  return func != NULL;
}

static bool is_raised(const lp_op *func) {
  return !has_level(func, LP_LEVEL_ONNX);
}

/* Lowering copies constants that are results, so a function that returns one is not lowered yet. */
static bool is_lowered(const lp_op *func) {
  const lp_op *last = lp_block_terminator(func->region);
  for (int32_t i = 0; last && i < last->in_count; i++)
    if (lp_value_is_constant(lp_op_in(last, i))) return false;
  return !has_level(func, LP_LEVEL_LAYER);
}

/* Operators with costs beyond 64 bits have none. Where no operator has costs, the function's attribute tells. */
static bool is_annotated(const lp_op *func) {
  LP_FOR_OPS(op, func->region)
    if (lp_op_attr(op, "flops")) return true;
  return lp_op_attr(func, "annotated") || !has_level(func, LP_LEVEL_OP);
}

/* Without "both" operators the function looks communicating before insert-comm; the attribute tells. */
static bool is_communicating(const lp_op *func) {
  LP_FOR_OPS(op, func->region)
    if (lp_op_on_both(op)) return false;
  return lp_op_attr(func, "communicating") != NULL;
}

static bool is_planned(const lp_op *func) {
  char key[LP_PLACE_KEY_SIZE];
  return lp_op_attr(func, lp_func_place_key(func, "slot", LP_SIDE_DEVICE, key)) != NULL;
}

static bool is_outlined(const lp_op *func) {
  LP_FOR_OPS(op, func->region)
    if (lp_op_is_placeable(op) && !lp_op_attr(op, "segment")) return false;
  return true;
}

/* ---- the states -------------------------------------------------------------------------------------------------- */

/* `holds` reads a function of which the state before holds. Up to `annotated` that is every function of the module,
 * from `placed` on it is @prefill. */
static const struct {
  const char *name, *meaning;
  bool (*holds)(const lp_op *func);
} states[LP_STATE_COUNT] = {
    [LP_STATE_IMPORTED] = {"imported", "@main of onnx.* operators, with types", is_any},
    [LP_STATE_RAISED] = {"raised", "@main is layer.* groups of onnx.* operators", is_raised},
    [LP_STATE_LOWERED] = {"lowered", "@main is op.* operators, each with `name`, `layer` and `layer_kind`", is_lowered},
    [LP_STATE_ANNOTATED] = {"annotated", "operators have `flops`, `bytes_read` and `bytes_written`", is_annotated},
    [LP_STATE_PLACED] = {"placed", "@prefill and @decode replace @main; each operator has a `side`", is_any},
    [LP_STATE_COMMUNICATING] = {"communicating", "each operator has one side and reads values of that side; comm.*",
                                is_communicating},
    [LP_STATE_PLANNED] = {"planned", "each result has a `buffer`, each buffer a slot of its side", is_planned},
    [LP_STATE_OUTLINED] = {"outlined", "each operator but constants and comm.* has a `segment`", is_outlined},
};

const char *lp_module_state_name(lp_module_state state) {
  return states[state].name;
}

const char *lp_module_state_meaning(lp_module_state state) {
  return states[state].meaning;
}

static lp_module_state state_of_func(const lp_op *func, lp_module_state first, lp_module_state last) {
  lp_module_state state = first;
  while (state < last && states[state + 1].holds(func))
    state++;
  return state;
}

lp_module_state lp_module_state_of(const lp_module *module) {
  const lp_op *prefill = lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]);
  if (prefill) return state_of_func(prefill, LP_STATE_PLACED, LP_STATE_OUTLINED);
  lp_module_state least = LP_STATE_ANNOTATED;
  bool found = false;
  LP_FOR_FUNCS(func, module) {
    lp_module_state state = state_of_func(func, LP_STATE_IMPORTED, LP_STATE_ANNOTATED);
    if (state < least) least = state;
    found = true;
  }
  return found ? least : LP_STATE_IMPORTED;
}
