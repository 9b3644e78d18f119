/* Operators that must be on a side at any cost: pinned ones, private layers, and the users of a KV cache. */
#include "passes/plan/pin.h"
#include "base/side.h"
#include "passes/passes.h"
#include "passes/plan/plan.h"

#include <fnmatch.h>

enum { NO_VIEW = -2 };

const char *lp_plan_pin_place(const char *text) {
  const char *equals = strrchr(text, '=');
  return equals && equals != text ? equals + 1 : NULL;
}

lp_status lp_plan_pin_check(const char *text, lp_diag *diag, lp_loc loc) {
  lp_side side;
  if (lp_side_find(lp_plan_pin_place(text), &side)) return LP_OK;
  lp_status status = lp_error(diag, loc, "'%s' is not an operator's name and a side", text);
  lp_note(diag, loc, "such as 'layer.0.*=device' or '*/lm_head/*=cloud'");
  return status;
}

/* Tells whether the glob matches the operator's own name, or layer.N.KIND, which does not depend on the exporter. */
static bool is_named(const lp_plan_op *item, const char *glob) {
  const lp_op *op = item->op;
  const char *name = lp_op_str(op, "name", ""), *kind = lp_op_info_get(op->kind)->name;
  if (fnmatch(glob, name, 0) == 0 || (op->loc.node && fnmatch(glob, op->loc.node, 0) == 0)) return true;
  char role[128];
  int64_t layer = lp_op_i64(op, "layer", -1);
  if (lp_has_prefix(kind, "op.")) kind += 3;
  if (layer >= 0)
    (void)snprintf(role, sizeof role, "layer.%" PRId64 ".%s", layer, kind);
  else
    (void)snprintf(role, sizeof role, "%s.%s", lp_op_str(op, "layer_kind", "model"), kind);
  return fnmatch(glob, role, 0) == 0;
}

bool lp_plan_pin_matches(const lp_plan_op *item, const char *text) {
  char glob[256];
  const char *place = lp_plan_pin_place(text);
  const size_t length = place ? (size_t)(place - text) - 1 : sizeof glob;
  if (length >= sizeof glob) return false;
  memcpy(glob, text, length);
  glob[length] = 0;
  return is_named(item, glob);
}

static int8_t pin_of(const lp_plan_op *item, const lp_compile_request *request) {
  int8_t pin = -1;
  if (request->keep_private && item->layer < request->private_layers) pin = LP_SIDE_DEVICE;
  for (int32_t i = 0; i < request->pin_count; i++) {
    lp_side side;
    if (lp_side_find(lp_plan_pin_place(request->pins[i]), &side) && lp_plan_pin_matches(item, request->pins[i]))
      pin = (int8_t)side;
  }
  return pin;
}

void lp_plan_pin(lp_plan_problem *problem, const lp_compile_request *request) {
  for (int32_t i = 0; i < problem->op_count; i++)
    problem->ops[i].pin = pin_of(&problem->ops[i], request);
  for (int32_t i = 0; i < problem->op_count; i++) { /* all users of a cache follow */
    const lp_plan_op *item = &problem->ops[i];
    for (int32_t k = 0; item->pin >= 0 && item->state >= 0 && k < problem->op_count; k++)
      if (problem->ops[k].state == item->state) problem->ops[k].pin = item->pin;
  }
}

lp_status lp_plan_pin_used(const lp_plan_problem *problem, const lp_compile_request *request, lp_diag *diag) {
  if (request->keep_private && request->private_layers > problem->layer_count)
    return lp_error(diag, LP_LOC_FILE("--private"),
                    "%" PRId64 " layers should stay private, but the model has only %" PRId32, request->private_layers,
                    problem->layer_count);
  for (int32_t i = 0; i < request->pin_count; i++) {
    int32_t at = 0;
    while (at < problem->op_count && !lp_plan_pin_matches(&problem->ops[at], request->pins[i]))
      at++;
    if (at < problem->op_count) continue;
    lp_status status = lp_error(diag, LP_LOC_FILE("--pin"), "'%s' matches no operator of the model", request->pins[i]);
    lp_note(diag, LP_LOC_FILE("--pin"), "`--emit=report -o csv` lists the operators");
    return status;
  }
  return LP_OK;
}

/* The operator that made a view's memory, -1 for an input; `index` itself where it is no view. */
static int32_t memory_of(const int32_t *operand, int32_t index) {
  while (index >= 0 && operand[index] != NO_VIEW)
    index = operand[index];
  return index;
}

/* The producer of each view's operand, -1 for an input; NO_VIEW for other operators. */
static void find_views(const lp_plan_problem *problem, int32_t *operand) {
  for (int32_t i = 0; i < problem->op_count; i++)
    operand[i] = NO_VIEW;
  for (int32_t i = problem->edge_count; i-- > 0;) { /* the first edge of a consumer is its first operand's */
    const lp_plan_edge *edge = &problem->edges[i];
    const lp_plan_op *consumer = &problem->ops[edge->consumer];
    if (lp_op_has(consumer->op, LP_ALIAS) && !consumer->free) operand[edge->consumer] = edge->producer;
  }
}

/* `reads[i]` collects the places at which operator i is read, directly or through views; only later operators read
 * it. */
void lp_plan_settle_views(const lp_plan_problem *problem, uint8_t *place) {
  LP_OWNED(lp_free_at) int32_t *operand = lp_alloc(((size_t)problem->op_count + 1) * sizeof *operand);
  unsigned char *reads = lp_alloc((size_t)problem->op_count + 1);
  memset(reads, 0, (size_t)problem->op_count + 1);
  find_views(problem, operand);
  int32_t edge = problem->edge_count;
  for (int32_t i = problem->op_count; i-- > 0;) {
    int32_t memory = memory_of(operand, i);
    const uint8_t where = memory >= 0 ? place[memory] : LP_SIDE_DEVICE;
    bool view = operand[i] != NO_VIEW, read_there = (reads[i] & (1U << where)) != 0;
    if (view && (read_there || !(reads[i] & (1U << place[i])))) place[i] = where;
    for (; edge > 0 && problem->edges[edge - 1].consumer == i; edge--) {
      int32_t producer = problem->edges[edge - 1].producer;
      if (producer >= 0) reads[producer] = (unsigned char)(reads[producer] | (view ? reads[i] : 1U << place[i]));
    }
  }
  free(reads);
}

static void settle_sides(const lp_plan_problem *problem, lp_side *side) {
  LP_OWNED(lp_free_at) uint8_t *place = lp_alloc((size_t)problem->op_count + 1);
  for (int32_t i = 0; i < problem->op_count; i++)
    place[i] = (uint8_t)side[i];
  lp_plan_settle_views(problem, place);
  for (int32_t i = 0; i < problem->op_count; i++)
    side[i] = (lp_side)place[i];
}

/* A cache is on the side of the operator that writes it; its readers go there. */
void lp_plan_settle(const lp_plan_problem *problem, lp_side *side) {
  int8_t *of_state = lp_alloc((size_t)problem->state_count + 1); /* 0 unknown, else side + 1 */
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *item = &problem->ops[i];
    if (item->pin >= 0) side[i] = (lp_side)item->pin;
    if (item->state >= 0 && lp_op_state(item->op) >= 0 && !of_state[item->state])
      of_state[item->state] = (int8_t)(side[i] + 1);
  }
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t state = problem->ops[i].state;
    if (state >= 0 && of_state[state]) side[i] = (lp_side)(of_state[state] - 1);
  }
  free(of_state);
  settle_sides(problem, side);
}
