/* insert-comm: turns a placed module into one program for each place, which exchange values.
 *
 * Each stage becomes one total order that all places follow: turns (plan/order.c), and after the operators of a place
 * in a turn a comm.send and its comm.recv for every value of them that another place reads, once per value and place.
 * Operators of positions only ("both") are copied to each place that reads them, before their first reader. Where the
 * stages keep a KV cache at different places, @prefill ends with comm.kv_move. */
#include "base/poly.h"
#include "base/side.h"
#include "passes/plan/pin.h"
#include "passes/plan/plan.h"
#include "passes/state.h"

/* A value that another place reads than the one that has it. */
typedef struct {
  lp_value *value;
  int32_t turn, number; /* number: in order of first reader */
  lp_place from, to;
} crossing;

typedef struct {
  lp_module *module;
  lp_block *block;
  const lp_plan_problem *problem;
  const uint8_t *place;
  const char *const *names;
  int32_t place_count;
  lp_plan_order order;
  lp_arena *arena;
  LP_VEC(crossing) crossings; /* in order of turn, places, number */
  size_t emitted;             /* of them */
  int64_t tag;
} comm_stage;

/* The copies of a free operator, in op->scratch while a stage is written. */
typedef struct {
  lp_op *copy[LP_PLACES_MAX];
} free_copies;

/* What places receive of a value, in value->scratch while a stage is written. */
typedef struct {
  bool reads[LP_PLACES_MAX];
  lp_value *got[LP_PLACES_MAX];
} received;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_free_value(const lp_value *value) {
  return value->def && lp_op_on_both(value->def);
}

static lp_place value_place(const comm_stage *stage, const lp_value *value) {
  if (!value->def) return LP_SIDE_DEVICE;
  const lp_place place = lp_place_find(stage->names, stage->place_count, lp_op_str(value->def, "side", NULL));
  return place < 0 ? LP_SIDE_DEVICE : place;
}

typedef struct {
  comm_stage *stage;
  lp_place place;
} resolver;

/* The value that a place reads: the value itself, its copy, or the received value. */
static lp_value *resolve(void *user, lp_value *value) {
  const resolver *r = user;
  if (!value || lp_value_is_constant(value)) return value;
  if (is_free_value(value)) {
    free_copies *copies = value->def->scratch;
    if (!copies->copy[r->place]) {
      lp_op *copy = lp_op_clone(r->stage->module, value->def, resolve, user);
      lp_op_set_str(r->stage->module, copy, "side", r->stage->names[r->place]);
      lp_op_append(r->stage->block, copy);
      copies->copy[r->place] = copy;
    }
    return copies->copy[r->place]->out[value->index];
  }
  if (value_place(r->stage, value) == r->place) return value;
  return ((received *)value->scratch)->got[r->place];
}

static void resolve_operands(comm_stage *stage, lp_op *op, lp_place place) {
  resolver r = {stage, place};
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

static void note_crossings(comm_stage *stage, const lp_op *op, lp_place to) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = op->in[i].value;
    if (!value || lp_value_is_constant(value) || is_free_value(value)) continue;
    const lp_place from = value_place(stage, value);
    if (from == to) continue;
    if (!value->scratch) value->scratch = LP_NEW(stage->arena, received);
    received *copies = value->scratch;
    if (copies->reads[to]) continue;
    copies->reads[to] = true;
    const crossing made = {value, value_turn(stage, value), (int32_t)stage->crossings.count, from, to};
    lp_vec_push(&stage->crossings, made);
  }
}

static int compare_crossings(const void *a, const void *b) {
  const crossing *x = a, *y = b;
  if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static const char *value_label(const lp_value *value) {
  if (value->name) return value->name;
  return value->def ? lp_op_str(value->def, "name", NULL) : NULL;
}

static void emit_crossing(comm_stage *stage, const crossing *c) {
  lp_module *module = stage->module;
  lp_value *value = c->value;
  lp_loc loc = value->def ? value->def->loc : LP_LOC_NONE;
  lp_op *pair[] = {lp_op_create(module, LP_OP_COMM_SEND, loc, 1, &value, 0, NULL),
                   lp_op_create(module, LP_OP_COMM_RECV, loc, 0, NULL, 1, &value->type)};
  for (size_t i = 0; i < LP_COUNT(pair); i++) {
    lp_op_set_str(module, pair[i], "from", stage->names[c->from]);
    lp_op_set_str(module, pair[i], "to", stage->names[c->to]);
    lp_op_set_i64(module, pair[i], "tag", stage->tag);
    if (value_label(value)) lp_op_set_str(module, pair[i], "name", value_label(value));
    lp_op_append(stage->block, pair[i]);
  }
  stage->tag++;
  ((received *)value->scratch)->got[c->to] = pair[1]->out[0];
  pair[1]->out[0]->name = value->name;
}

/* Emits the crossings of values that are made before the place's operators of the turn. */
static void emit_crossings(comm_stage *stage, int32_t turn, lp_place place) {
  for (; stage->emitted < stage->crossings.count; stage->emitted++) {
    const crossing *c = &stage->crossings.data[stage->emitted];
    if (c->turn > turn || (c->turn == turn && c->from >= place)) return;
    emit_crossing(stage, c);
  }
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

static void prepare_ops(comm_stage *stage) {
  const lp_plan_problem *problem = stage->problem;
  for (int32_t i = 0; i < problem->op_count; i++)
    problem->ops[i].op->scratch = (void *)(intptr_t)(i + 1);
  for (int32_t i = 0; i < stage->order.count; i++) {
    int32_t index = stage->order.op[i];
    note_crossings(stage, problem->ops[index].op, stage->place[index]);
  }
  if (stage->crossings.count > 0)
    qsort(stage->crossings.data, stage->crossings.count, sizeof *stage->crossings.data, compare_crossings);
  for (int32_t i = 0; i < problem->op_count; i++)
    problem->ops[i].op->scratch = problem->ops[i].free ? LP_NEW(stage->arena, free_copies) : NULL;
}

static void emit_ops(comm_stage *stage) {
  for (int32_t i = 0; i < stage->order.count; i++) {
    const int32_t index = stage->order.op[i];
    emit_crossings(stage, stage->order.turn[index], stage->place[index]);
    lp_op *op = stage->problem->ops[index].op;
    resolve_operands(stage, op, stage->place[index]);
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

static void write_stage(lp_module *module, lp_op *func, const lp_plan_problem *problem, const uint8_t *place,
                        lp_arena *arena) {
  comm_stage stage = {.module = module, .block = func->region, .problem = problem, .place = place, .arena = arena};
  stage.place_count = lp_func_places(func, &stage.names);
  lp_plan_order_make(problem, place, arena, &stage.order);
  prepare_ops(&stage);
  lp_op *end = empty_block(func->region);
  emit_ops(&stage);
  emit_end(&stage, end);
  drop_originals(problem);
  for (size_t i = 0; i < stage.crossings.count; i++)
    stage.crossings.data[i].value->scratch = NULL;
  lp_op_set_bool(module, func, "communicating", true);
  lp_vec_free(&stage.crossings);
}

/* ---- KV moves ---------------------------------------------------------------------------------------------------- */

static const char *append_side(const lp_op *func, int64_t state) {
  LP_FOR_OPS(op, func->region)
    if (lp_op_state(op) == state) return lp_op_str(op, "side", NULL);
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
  const char *const *places;
  const int32_t count = lp_func_places(func, &places);
  LP_FOR_OPS(op, func->region) {
    const char *name = lp_op_str(op, "side", NULL);
    if (!lp_op_is_placeable(op) || lp_op_on_both(op) || lp_op_place(op, "side") >= 0) continue;
    LP_OWNED(lp_buf_free) lp_buf wanted = {0};
    for (int32_t i = 0; i < count; i++)
      lp_buf_printf(&wanted, "%s'%s'", i ? ", " : "", places[i]);
    lp_status status = lp_error(diag, op->loc, "'%s' has side '%s', should be %s or 'both'",
                                lp_op_info_get(op->kind)->name, name ? name : "", lp_buf_text(&wanted));
    return status;
  }
  return LP_OK;
}

/* Sets `free` from the text, so that the pass can start from any placed file, and checks that the operands of a "both"
 * operator are at every place. */
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

/* Reads the places of a function's operators and moves views to that of their operand's memory, so that no place
 * receives a value only to send it back. */
static uint8_t *settle(lp_module *module, const lp_op *func, const lp_plan_problem *problem, lp_arena *arena) {
  const char *const *names;
  uint8_t *place = LP_NEW_ARRAY(arena, uint8_t, problem->op_count);
  (void)lp_func_places(func, &names);
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_place own = lp_op_place(problem->ops[i].op, "side");
    place[i] = (uint8_t)(own < 0 ? LP_SIDE_DEVICE : own);
  }
  lp_plan_settle_views(problem, place);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (!problem->ops[i].free) lp_op_set_str(module, problem->ops[i].op, "side", names[place[i]]);
  return place;
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
  uint8_t *place[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!written[stage]) LP_TRY(check_free(&problem[stage], context->diag));
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!written[stage]) place[stage] = settle(module, func[stage], &problem[stage], context->scratch);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!written[stage]) write_stage(module, func[stage], &problem[stage], place[stage], context->scratch);
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
    .summary = "send each value that other places read, once to each; copy what every place computes",
    .needs = LP_STATE_PLACED,
    .makes = LP_STATE_COMMUNICATING,
    .breaks = LP_STATE_COUNT,
    .run = run,
};
