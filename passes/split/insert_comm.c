/* insert-comm: turns a placed module into two programs that exchange values.
 *
 * Each stage becomes one total order that both sides follow: turns (plan/order.c), and after each turn a comm.send and
 * its comm.recv for every value of the turn that the other side reads, once per value. Operators of positions only
 * ("both") are copied to each side that reads them, before their first reader. Where the stages keep a KV cache on
 * different sides, @prefill ends with comm.kv_move. */
#include "base/poly.h"
#include "base/side.h"
#include "passes/plan/pin.h"
#include "passes/plan/plan.h"
#include "passes/state.h"

#include <stdlib.h>

typedef struct {
  lp_module *module;
  lp_block *block;
  const lp_plan_problem *problem;
  const lp_side *side;
  lp_plan_order order;
  LP_VEC(lp_value *) crossing; /* in order of turn, then of first reader */
  LP_VEC(int32_t) turn;        /* of each crossing value */
  int64_t tag;
} comm_stage;

/* The copies of a free operator, in op->scratch while a stage is written. */
typedef struct {
  lp_op *copy[LP_SIDE_COUNT];
} free_copies;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_free_value(const lp_value *value) {
  return value->def && lp_op_on_both(value->def);
}

static lp_side value_side(const lp_value *value) {
  lp_side side = LP_SIDE_DEVICE;
  if (value->def) (void)lp_side_find(lp_op_str(value->def, "side", NULL), &side);
  return side;
}

typedef struct {
  comm_stage *stage;
  lp_side side;
} resolver;

/* The value that `side` reads: the value itself, its copy, or the received value. */
static lp_value *resolve(void *user, lp_value *value) {
  const resolver *r = user;
  if (!value || lp_value_is_constant(value)) return value;
  if (is_free_value(value)) {
    free_copies *copies = value->def->scratch;
    if (!copies->copy[r->side]) {
      lp_op *copy = lp_op_clone(r->stage->module, value->def, resolve, user);
      lp_op_set_str(r->stage->module, copy, "side", lp_side_name(r->side));
      lp_op_append(r->stage->block, copy);
      copies->copy[r->side] = copy;
    }
    return copies->copy[r->side]->out[value->index];
  }
  return value_side(value) == r->side ? value : value->scratch;
}

static void resolve_operands(comm_stage *stage, lp_op *op, lp_side side) {
  resolver r = {stage, side};
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = op->in[i].value;
    if (value) lp_op_set_in(op, i, resolve(&r, value));
  }
}

/* ---- crossings --------------------------------------------------------------------------------------------------- */

/* The turn after which a value can be sent; inputs exist from the start. */
static int32_t value_turn(const comm_stage *stage, const lp_value *value) {
  return value->def ? stage->order.turn[(intptr_t)value->def->scratch - 1] : 0;
}

static void note_crossings(comm_stage *stage, const lp_op *op, lp_side side) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = op->in[i].value;
    if (!value || lp_value_is_constant(value) || is_free_value(value)) continue;
    if (value_side(value) == side || value->scratch) continue;
    value->scratch = value; /* seen; its comm.recv comes later */
    lp_vec_push(&stage->crossing, value);
    lp_vec_push(&stage->turn, value_turn(stage, value));
  }
}

static const char *value_label(const lp_value *value) {
  if (value->name) return value->name;
  return value->def ? lp_op_str(value->def, "name", NULL) : NULL;
}

static void emit_crossing(comm_stage *stage, lp_value *value) {
  lp_module *module = stage->module;
  lp_side from = value_side(value);
  lp_loc loc = value->def ? value->def->loc : LP_LOC_NONE;
  lp_op *pair[] = {lp_op_create(module, LP_OP_COMM_SEND, loc, 1, &value, 0, NULL),
                   lp_op_create(module, LP_OP_COMM_RECV, loc, 0, NULL, 1, &value->type)};
  for (size_t i = 0; i < LP_COUNT(pair); i++) {
    lp_op_set_str(module, pair[i], "from", lp_side_name(from));
    lp_op_set_str(module, pair[i], "to", lp_side_name(lp_side_other(from)));
    lp_op_set_i64(module, pair[i], "tag", stage->tag);
    if (value_label(value)) lp_op_set_str(module, pair[i], "name", value_label(value));
    lp_op_append(stage->block, pair[i]);
  }
  stage->tag++;
  value->scratch = pair[1]->out[0];
  pair[1]->out[0]->name = value->name;
}

static void emit_turn_crossings(comm_stage *stage, int32_t turn) {
  for (size_t i = 0; i < stage->crossing.count; i++)
    if (stage->turn.data[i] == turn) emit_crossing(stage, stage->crossing.data[i]);
}

/* ---- a stage ----------------------------------------------------------------------------------------------------- */

/* Takes all operators but constants out of the block; they keep their operands. Returns the terminator. */
static lp_op *empty_block(lp_block *block) {
  lp_op *end = lp_block_terminator(block);
  for (lp_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (!lp_op_has(op, LP_CONSTANT)) lp_op_detach(op);
  }
  return end;
}

static void prepare_ops(comm_stage *stage, lp_arena *arena) {
  const lp_plan_problem *problem = stage->problem;
  for (int32_t i = 0; i < problem->op_count; i++)
    problem->ops[i].op->scratch = (void *)(intptr_t)(i + 1);
  for (int32_t i = 0; i < stage->order.count; i++) {
    int32_t index = stage->order.op[i];
    note_crossings(stage, problem->ops[index].op, stage->side[index]);
  }
  for (int32_t i = 0; i < problem->op_count; i++)
    problem->ops[i].op->scratch = problem->ops[i].free ? LP_NEW(arena, free_copies) : NULL;
}

static void emit_ops(comm_stage *stage) {
  int32_t turn = 0;
  for (int32_t i = 0; i < stage->order.count; i++) {
    int32_t index = stage->order.op[i];
    for (; turn < stage->order.turn[index]; turn++)
      emit_turn_crossings(stage, turn);
    lp_op *op = stage->problem->ops[index].op;
    resolve_operands(stage, op, stage->side[index]);
    lp_op_append(stage->block, op);
  }
}

/* Appends the terminator. Results stay where they are computed; free results are computed on the device. */
static void emit_end(comm_stage *stage, lp_op *end) {
  resolver device = {stage, LP_SIDE_DEVICE};
  for (int32_t i = 0; i < end->in_count; i++)
    if (end->in[i].value && is_free_value(end->in[i].value)) lp_op_set_in(end, i, resolve(&device, end->in[i].value));
  lp_op_append(stage->block, end);
}

/* Erases the originals of free operators, last first: only later operators read each. */
static void drop_originals(const lp_plan_problem *problem) {
  for (int32_t i = problem->op_count; i-- > 0;) {
    problem->ops[i].op->scratch = NULL;
    if (problem->ops[i].free) lp_op_erase(problem->ops[i].op);
  }
}

static void write_stage(lp_module *module, lp_op *func, const lp_plan_problem *problem, const lp_side *side,
                        lp_arena *arena) {
  comm_stage stage = {.module = module, .block = func->region, .problem = problem, .side = side};
  lp_plan_order_make(problem, side, arena, &stage.order);
  prepare_ops(&stage, arena);
  lp_op *end = empty_block(func->region);
  emit_ops(&stage);
  emit_end(&stage, end);
  drop_originals(problem);
  for (size_t i = 0; i < stage.crossing.count; i++)
    stage.crossing.data[i]->scratch = NULL;
  lp_op_set_bool(module, func, "communicating", true);
  lp_vec_free(&stage.crossing);
  lp_vec_free(&stage.turn);
}

/* ---- KV moves ---------------------------------------------------------------------------------------------------- */

static const char *append_side(const lp_op *func, int64_t state) {
  LP_FOR_OPS(op, func->region)
  if (op->kind == LP_OP_KV_APPEND && lp_op_i64(op, "state", -1) == state) return lp_op_str(op, "side", NULL);
  return NULL;
}

/* Sets the shape of a move: the rows [0, p + s) of the cache instead of its capacity. */
static void set_moved_shape(lp_module *module, lp_op *move, const lp_op *state) {
  const lp_attr *shape = lp_op_attr(state, "shape");
  const lp_poly *dims[LP_MAX_RANK];
  int64_t axis = lp_op_i64(state, "append_axis", -1);
  for (int32_t i = 0; i < shape->count && i < LP_MAX_RANK; i++)
    dims[i] = i != axis ? shape->polys[i]
                        : lp_poly_add(module->arena, lp_dim_symbol(module, "p"), lp_dim_symbol(module, "s"));
  lp_op_set_polys(module, move, "shape", dims, shape->count);
  lp_op_set_str(module, move, "dtype", lp_op_str(state, "dtype", "f32"));
}

static void add_moves(lp_module *module, const lp_op *prefill, const lp_op *decode) {
  lp_op *end = lp_block_terminator(prefill->region);
  LP_FOR_OPS(state, lp_module_body(module)) {
    if (state->kind != LP_OP_STATE) continue;
    int64_t index = lp_op_i64(state, "index", -1);
    const char *from = append_side(prefill, index), *to = append_side(decode, index);
    if (!from || !to || lp_streq(from, to)) continue;
    lp_op *move = lp_op_create(module, LP_OP_COMM_KV_MOVE, state->loc, 0, NULL, 0, NULL);
    lp_op_set_str(module, move, "from", from);
    lp_op_set_str(module, move, "to", to);
    lp_op_set_i64(module, move, "state", index);
    set_moved_shape(module, move, state);
    lp_op_insert_before(end, move);
  }
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static lp_status check_stage(const lp_module *module, const lp_op *func, lp_diag *diag) {
  if (!func)
    return lp_error(diag, LP_LOC_FILE(module->name), "a stage is missing: '@prefill' and '@decode' are needed");
  LP_FOR_OPS(op, func->region) {
    const char *name = lp_op_str(op, "side", NULL);
    lp_side side;
    if (lp_op_is_placeable(op) && !lp_op_on_both(op) && !lp_side_find(name, &side))
      return lp_error(diag, op->loc, "'%s' has side '%s', should be 'device', 'cloud' or 'both'",
                      lp_op_info_get(op->kind)->name, name ? name : "");
  }
  return LP_OK;
}

/* Sets `free` from the text, so that the pass can start from any placed file, and checks that the operands of a "both"
 * operator are on both sides. */
static lp_status check_free(const lp_plan_problem *problem, lp_diag *diag) {
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_op *op = problem->ops[i].op;
    problem->ops[i].free = lp_op_on_both(op);
    for (int32_t k = 0; problem->ops[i].free && k < op->in_count; k++) {
      const lp_value *value = op->in[k].value;
      if (value && !lp_value_is_constant(value) && !is_free_value(value))
        return lp_error(diag, op->loc, "'%s' has side 'both' but its operand %" PRId32 " is not on both sides",
                        lp_op_info_get(op->kind)->name, k);
    }
  }
  return LP_OK;
}

/* Moves views to the side of their operand's memory, so that no side receives a value only to send it back. */
static void move_views(lp_module *module, const lp_plan_problem *problem, lp_side *side) {
  lp_plan_settle_views(problem, side);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (!problem->ops[i].free) lp_op_set_str(module, problem->ops[i].op, "side", lp_side_name(side[i]));
}

/* Plans of a family may share a function: each is written once. */
static lp_status write_plan(lp_module *module, int32_t plan, lp_pass_context *context) {
  lp_op *func[LP_STAGE_COUNT];
  bool written[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    func[stage] = lp_plan_func(module, (lp_stage)stage, plan);
    LP_TRY(check_stage(module, func[stage], context->diag));
    written[stage] = lp_op_bool(func[stage], "communicating", false);
  }
  if (written[LP_STAGE_PREFILL]) return LP_OK; /* its decode is written with it */
  lp_plan_problem problem[LP_STAGE_COUNT];
  LP_TRY(lp_plan_build_of(module, context->request, plan, context->scratch, problem, context->diag));
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_sides(problem, side, context->scratch);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!written[stage]) LP_TRY(check_free(&problem[stage], context->diag));
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!written[stage]) move_views(module, &problem[stage], side[stage]);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!written[stage]) write_stage(module, func[stage], &problem[stage], side[stage], context->scratch);
  add_moves(module, func[LP_STAGE_PREFILL], func[LP_STAGE_DECODE]);
  return LP_OK;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  int32_t plans = lp_plan_count(module);
  for (int32_t plan = 0; plan < plans; plan++)
    LP_TRY(write_plan(module, plan, context));
  return LP_OK;
}

const lp_pass lp_pass_insert_comm = {
    .name = "insert-comm",
    .summary = "send each value that the other side reads, once; copy what both sides compute",
    .needs = LP_STATE_PLACED,
    .makes = LP_STATE_COMMUNICATING,
    .breaks = LP_STATE_COUNT,
    .run = run,
};
