/* outline: numbers the segments. A segment is a straight run of one place's operators that ends at communication or at
 * another place's turn; it becomes one function of emitted code. Operators that only an early exit needs form
 * segments of their own, so that the runtime can skip them when no caller wants the exit; they carry `exit` (i64:
 * which of the function's exits). With profile=true functions carry `profiled`: their code reports when each operator
 * begins. */
#include "passes/passes.h"
#include "passes/state.h"

/* ---- operators that only an exit needs --------------------------------------------------------------------------- */

enum { FOR_ALL = -1, FOR_NONE = -2 }; /* other values are the number of an exit */

/* While outlining, op->scratch is the number of the exit that the operator serves, minus FOR_NONE, so that NULL stands
 * for FOR_NONE. */
static int served_by(const lp_op *op) {
  return (int)(intptr_t)op->scratch + FOR_NONE;
}

static void serve(lp_op *op, int served) {
  int before = served_by(op);
  if (before != FOR_NONE && before != served) served = FOR_ALL;
  op->scratch = (void *)(intptr_t)(served - FOR_NONE);
}

static void find_exit_ops(const lp_op *func) {
  const lp_attr *roles = lp_op_attr(func, "output_roles");
  int exits = 0;
  LP_FOR_OPS(op, func->region)
    op->scratch = NULL;
  for (lp_op *op = func->region->last; op; op = op->prev) {
    bool ends = lp_op_has(op, LP_TERMINATOR);
    if (!ends && !lp_op_has(op, LP_PURE)) serve(op, FOR_ALL);
    for (int32_t i = 0; i < op->in_count; i++) {
      lp_value *in = lp_op_in(op, i);
      bool is_exit = ends && roles && i < roles->count && lp_streq(roles->ss[i], "exit_logits");
      int served = is_exit ? exits++ : ends ? FOR_ALL : served_by(op);
      if (in && in->def && served != FOR_NONE) serve(in->def, served);
    }
  }
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static void outline_func(lp_module *module, lp_op *func, bool profile) {
  int64_t next[LP_PLACES_MAX] = {0};
  int running = -1, served = FOR_ALL; /* the place of the open segment, -1 none, and what it serves */
  find_exit_ops(func);
  LP_FOR_OPS(op, func->region) {
    if (lp_op_has(op, LP_COMM)) running = -1;
    if (!lp_op_is_placeable(op)) continue;
    const lp_place named = lp_op_place(op, "side"), place = named < 0 ? LP_SIDE_DEVICE : named;
    if (place != running || served_by(op) != served) next[place]++;
    running = place;
    served = served_by(op);
    lp_op_set_i64(module, op, "segment", next[place] - 1);
    if (served >= 0) lp_op_set_i64(module, op, "exit", served);
  }
  LP_FOR_OPS(op, func->region)
    op->scratch = NULL;
  if (profile) lp_op_set_bool(module, func, "profiled", true);
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  bool profile = lp_streq(lp_pass_option(context, "profile"), "true");
  LP_FOR_FUNCS(func, module)
    outline_func(module, func, profile);
  return LP_OK;
}

const lp_pass lp_pass_outline = {
    .name = "outline",
    .summary = "number each place's runs of operators between communications",
    .needs = LP_STATE_PLANNED,
    .makes = LP_STATE_OUTLINED,
    .breaks = LP_STATE_COUNT,
    .options = "profile",
    .run = run,
};
