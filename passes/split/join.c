/* join: where a place's code can run several operators in one launch, brings such operators together: products of one
 * operand, rotations, and appends to KV caches. The operators of a group do not depend on each other, carry the same
 * `join` (i64, numbered per function from 0), and have only constants and aliases between them. A later operator of a
 * group moves up, with the constants and aliases that it reads, over operators without effects and over appends, which
 * it does not depend on. */
#include "passes/passes.h"
#include "passes/state.h"

enum { MOST = 4, NEAR = 64 }; /* operators in a group, and operators among which a group is looked for */

typedef struct {
  lp_module *module;
  lp_block *block;
  lp_place place;
  lp_op *member[MOST];
  int32_t count;
  int64_t number; /* of the next group */
} joiner;

/* ---- operators that can join ------------------------------------------------------------------------------------- */

static bool same_word(const lp_op *a, const lp_op *b, const char *name) {
  return lp_streq(lp_op_str(a, name, ""), lp_op_str(b, name, ""));
}

/* Tells whether the operator may begin a group. A product with a gate fills a GPU without others. */
static bool may_lead(const lp_op *op) {
  if (lp_op_attr(op, "join")) return false;
  if (op->kind == LP_OP_LINEAR) return !lp_op_in(op, 3) && !lp_op_in(op, 4);
  return op->kind == LP_OP_ROTARY || (op->kind == LP_OP_KV_APPEND && lp_op_in(op, 0));
}

static bool is_like(const lp_op *leader, const lp_op *op) {
  if (op->kind != leader->kind || !may_lead(op)) return false;
  if (op->kind != LP_OP_LINEAR) return true;
  return lp_op_in(op, 0) == lp_op_in(leader, 0) && lp_op_in(op, 1)->type.dtype == lp_op_in(leader, 1)->type.dtype &&
         same_word(leader, op, "epilogue") && same_word(leader, op, "weight_dtype");
}

static bool is_member(const joiner *j, const lp_op *op) {
  for (int32_t i = 0; i < j->count; i++)
    if (j->member[i] == op) return true;
  return false;
}

/* Tells whether `op` appends to a KV cache that an operator before it uses: their order matters. */
static bool uses_cache_again(const lp_op *op) {
  for (const lp_op *at = op->prev; at && op->kind == LP_OP_KV_APPEND; at = at->prev)
    if (at->kind == LP_OP_KV_APPEND && lp_op_i64(at, "state", 0) == lp_op_i64(op, "state", 0)) return true;
  return false;
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* Tells whether the value is made before the group, or by a constant or alias that can move there. */
static bool is_ready(const joiner *j, const lp_value *value) {
  const lp_op *def = value ? value->def : NULL;
  if (!def || lp_op_has(def, LP_CONSTANT)) return true;
  if (is_member(j, def)) return false;
  if (!lp_op_has(def, LP_ALIAS)) return def->order < j->member[j->count - 1]->order;
  for (int32_t i = 0; i < def->in_count; i++)
    if (!is_ready(j, lp_op_in(def, i))) return false;
  return true;
}

static bool can_join(const joiner *j, const lp_op *op) {
  if (!is_like(j->member[0], op) || uses_cache_again(op)) return false;
  for (int32_t i = 0; i < op->in_count; i++)
    if (!is_ready(j, lp_op_in(op, i))) return false;
  return true;
}

/* Moves `op` after `where`, and before it what it reads and what is not there yet. Returns `op`. */
static lp_op *move_after(lp_op *where, lp_op *op, int64_t order) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_op *def = lp_op_in(op, i) ? lp_op_in(op, i)->def : NULL;
    if (def && def->order > order) where = move_after(where, def, order);
  }
  lp_op_detach(op);
  lp_op_insert_after(where, op);
  op->order = order;
  return op;
}

/* Operators of a group may move over this one unless they read it. */
static bool may_pass(const joiner *j, const lp_op *op) {
  if (lp_op_has(op, LP_CONSTANT)) return true;
  return lp_op_on(op, j->place) && (lp_op_has(op, LP_PURE) || op->kind == LP_OP_KV_APPEND) && !lp_op_has(op, LP_COMM);
}

static void join_from(joiner *j, lp_op *leader) {
  j->member[0] = leader;
  j->count = 1;
  int32_t seen = 0;
  for (lp_op *op = leader->next, *next; op && j->count < MOST && seen < NEAR; op = next) {
    next = op->next;
    if (!may_pass(j, op)) break;
    seen += !lp_op_has(op, LP_CONSTANT);
    if (!can_join(j, op)) continue;
    lp_op *last = j->member[j->count - 1];
    j->member[j->count++] = move_after(last, op, last->order);
    lp_block_renumber(j->block);
  }
  if (j->count == 1) return;
  for (int32_t i = 0; i < j->count; i++)
    lp_op_set_i64(j->module, j->member[i], "join", j->number);
  j->number++;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool joins_at(const lp_module *module, const lp_pass_context *context, lp_place place) {
  const char *named = lp_pass_option(context, "place");
  return named ? lp_streq(named, lp_module_place_name(module, place)) : context->request->joins[place];
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  LP_FOR_FUNCS(func, module) {
    const char *const *names;
    const lp_place count = lp_func_places(func, &names);
    joiner j = {.module = module, .block = func->region};
    for (j.place = 0; j.place < count; j.place++) {
      if (!joins_at(module, context, j.place)) continue;
      lp_block_renumber(func->region);
      LP_FOR_OPS(op, func->region)
        if (lp_op_is_placeable(op) && lp_op_on(op, j.place) && may_lead(op)) join_from(&j, op);
    }
  }
  return LP_OK;
}

const lp_pass lp_pass_join = {
    .name = "join",
    .summary = "bring operators together that a GPU can run in one launch",
    .needs = LP_STATE_COMMUNICATING,
    .makes = LP_STATE_COMMUNICATING,
    .breaks = LP_STATE_COUNT,
    .options = "place",
    .run = run,
};
