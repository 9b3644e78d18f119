/* shard: cuts the cloud's half for several ranks, which all run the same code on their own weights. Each rank computes
 * its columns of a product and its heads of an attention, and comm.all_gather joins the parts where an operator needs
 * the whole (docs/adr/0035). Operators that do not divide run on every rank. Does nothing for one rank. */
#include "passes/shard/shard.h"
#include "base/side.h"
#include "base/units.h"
#include "passes/passes.h"
#include "passes/state.h"

/* ---- KV caches --------------------------------------------------------------------------------------------------- */

enum { UNKNOWN = 0, WHOLE = -1, MOST_STEPS = 8 }; /* of state_parts; other values are the parts */

static bool on_cloud(const lp_op *op) {
  return lp_op_is_placeable(op) && lp_op_on(op, LP_SIDE_CLOUD);
}

/* The op.linear that alone computes the value, through operators that keep the parts of their operand; or NULL. */
static lp_op *find_linear(const lp_value *value) {
  for (int step = 0; value && step < MOST_STEPS; step++) {
    lp_op *op = value->def;
    if (!op || !on_cloud(op) || !lp_value_has_one_use(value)) return NULL;
    if (op->kind == LP_OP_LINEAR) return op;
    if (op->kind != LP_OP_RESHAPE && op->kind != LP_OP_ROTARY && op->kind != LP_OP_NORM && op->kind != LP_OP_TRANSPOSE)
      return NULL;
    value = lp_op_in(op, 0);
  }
  return NULL;
}

/* A rank starts at head rank * heads / ranks, which is a polynomial only where each rank has heads of its own. Where
 * several ranks share a head, its keys and values must come from products that are cut in the same way. */
static bool append_divides(const lp_shard *shard, const lp_op *append, int64_t parts) {
  if (parts == 1 || parts == shard->ranks) return true;
  const lp_op *linear = find_linear(lp_op_in(append, 0));
  return linear && lp_shard_linear_divides(shard, linear, parts);
}

/* The op.kv_append of an attention's keys (1) or values (2), if ranks may keep some of its heads; or NULL. */
static const lp_op *append_of(const lp_op *attention, int32_t operand) {
  const lp_value *value = lp_op_in(attention, operand);
  const lp_op *op = value ? value->def : NULL;
  bool good = op && op->kind == LP_OP_KV_APPEND && on_cloud(op) && lp_op_in(op, 0) && !lp_op_bool(op, "once", false);
  return good ? op : NULL;
}

/* The parts of the heads of K and V; WHOLE: the attention is not cut. */
static int64_t parts_of(const lp_shard *shard, const lp_op *attention) {
  const lp_op *k = append_of(attention, 1), *v = append_of(attention, 2);
  const lp_value *mask = lp_op_in(attention, 3), *sinks = lp_op_in(attention, 4);
  int64_t parts = lp_shard_kv_parts(attention, shard->ranks), size = 1, heads = lp_op_i64(attention, "heads", 0);
  if (!on_cloud(attention) || !k || !v || parts == 0) return WHOLE;
  if (mask && mask->type.rank >= 3 && lp_type_static_dim(mask->type, mask->type.rank - 3, &size) && size != 1 &&
      size != heads)
    return WHOLE;
  if (sinks && (sinks->type.rank != 1 || !lp_type_static_dim(sinks->type, 0, &size) || size != heads)) return WHOLE;
  return append_divides(shard, k, parts) && append_divides(shard, v, parts) ? parts : WHOLE;
}

/* Notes that an operator wants a cache in so many parts. True: that changed something. */
static bool want(int64_t *state_parts, const lp_op *append, int64_t parts) {
  int64_t *now = &state_parts[lp_op_i64(append, "state", 0)], before = *now;
  if (*now == UNKNOWN)
    *now = parts;
  else if (*now != parts)
    *now = WHOLE;
  return *now != before;
}

static bool only_feeds_attention(const lp_op *append) {
  for (const lp_use *use = append->out[0]->uses; use; use = use->next)
    if (use->owner->kind != LP_OP_ATTENTION || lp_op_in(use->owner, 0) == append->out[0]) return false;
  return true;
}

static bool note_attention(const lp_shard *shard, int64_t *state_parts, const lp_op *op) {
  int64_t parts = parts_of(shard, op);
  const lp_op *append[] = {append_of(op, 1), append_of(op, 2)};
  bool changed = false;
  for (int i = 0; i < 2; i++)
    if (append[i] && state_parts[lp_op_i64(append[i], "state", 0)] == WHOLE) parts = WHOLE;
  for (int i = 0; i < 2; i++) {
    const lp_value *value = lp_op_in(op, 1 + i);
    if (value && lp_op_is(value->def, LP_OP_KV_APPEND)) changed |= want(state_parts, value->def, parts);
  }
  return changed;
}

/* One look at every operator that uses a cache. A cache stays whole where one of them needs it whole. */
static bool note_caches(const lp_shard *shard, int64_t *state_parts) {
  bool changed = false;
  LP_FOR_FUNCS(func, shard->module) {
    LP_FOR_OPS(op, func->region) {
      if (op->kind == LP_OP_ATTENTION) changed |= note_attention(shard, state_parts, op);
      bool bad = op->kind == LP_OP_KV_APPEND && !(on_cloud(op) && only_feeds_attention(op));
      if (bad) changed |= want(state_parts, op, WHOLE);
    }
  }
  return changed;
}

/* Marks the attentions that are cut, and the products of keys and values that several ranks share. */
static void mark(const lp_shard *shard) {
  LP_FOR_FUNCS(func, shard->module) {
    LP_FOR_OPS(op, func->region) {
      const lp_op *k = op->kind == LP_OP_ATTENTION ? append_of(op, 1) : NULL;
      int64_t parts = k ? shard->state_parts[lp_op_i64(k, "state", 0)] : WHOLE;
      if (op->kind == LP_OP_ATTENTION && parts > 0 && on_cloud(op)) lp_shard_set_mark(op, 1);
      for (int32_t i = 1; parts > 1 && parts < shard->ranks && i <= 2; i++)
        lp_shard_set_mark(find_linear(lp_op_in(append_of(op, i), 0)), parts);
    }
  }
}

static void set_states(lp_shard *shard) {
  LP_FOR_OPS(state, lp_module_body(shard->module)) {
    int64_t parts = state->kind == LP_OP_STATE ? shard->state_parts[lp_op_i64(state, "index", 0)] : 1, heads;
    const lp_attr *shape = parts > 1 ? lp_op_attr(state, "shape") : NULL;
    const lp_poly *dim[LP_MAX_RANK];
    for (int32_t i = 0; shape && i < shape->count && i < LP_MAX_RANK; i++)
      dim[i] = i == 1 && lp_poly_is_const(shape->polys[i], &heads) ? lp_dim_const(shard->module, heads / parts)
                                                                   : shape->polys[i];
    if (shape) lp_op_set_polys(shard->module, state, "shape", dim, shape->count);
  }
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void forget(const lp_module *module) {
  LP_FOR_FUNCS(func, module)
    lp_block_forget(func->region);
}

static lp_status shard_func(lp_shard *shard, lp_op *func) {
  LP_FOR_OPS(op, func->region) {
    bool sends = op->kind == LP_OP_COMM_SEND || lp_op_has(op, LP_TERMINATOR);
    if (on_cloud(op) || sends) LP_TRY(lp_shard_op(shard, op));
  }
  return LP_OK;
}

static lp_status check(const lp_module *module, int64_t ranks, lp_diag *diag) {
  if (lp_symbols_find(&module->symbols, "rank"))
    return lp_error(diag, module->op->loc, "the model names a size 'rank', which sharded halves use");
  const char *const *names;
  if (lp_module_places(module, &names) > LP_SIDE_COUNT)
    return lp_error(diag, module->op->loc, "a half of a plan over more than two places cannot be divided among ranks");
  LP_FOR_FUNCS(func, module) {
    if (lp_op_attr(func, "exits"))
      return lp_error(diag, func->loc, "a half with early exits cannot be divided among %" PRId64 " ranks", ranks);
    LP_FOR_OPS(op, func->region) {
      if (op->kind == LP_OP_COMM_KV_MOVE)
        return lp_error(diag, op->loc,
                        "a KV cache that moves between the sides cannot be divided among %" PRId64 " ranks", ranks);
    }
  }
  return LP_OK;
}

static int64_t count_states(const lp_module *module) {
  int64_t count = 0;
  LP_FOR_OPS(op, lp_module_body(module)) {
    int64_t index = op->kind == LP_OP_STATE ? lp_op_i64(op, "index", 0) : -1;
    if (index >= count) count = index + 1;
  }
  return count;
}

static lp_status read_ranks(const lp_pass_context *context, int64_t *ranks) {
  const char *text = lp_pass_option(context, "ranks");
  *ranks = context->request->ranks;
  return text ? lp_parse_i64(text, 1, LP_MOST_RANKS, ranks, context->diag, LP_LOC_FILE("ranks")) : LP_OK;
}

lp_status lp_shard_module(lp_module *module, int64_t ranks, lp_arena *scratch, lp_diag *diag) {
  int64_t *parts = LP_NEW_ARRAY(scratch, int64_t, count_states(module) + 1);
  lp_shard shard = {.module = module, .scratch = scratch, .diag = diag, .ranks = ranks, .state_parts = parts};
  (void)lp_dim_symbol(module, "rank");
  forget(module);
  while (note_caches(&shard, parts))
    continue;
  mark(&shard);
  lp_status status = LP_OK;
  LP_FOR_FUNCS(func, module)
    if (status == LP_OK) status = shard_func(&shard, func);
  set_states(&shard);
  forget(module);
  return status;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  int64_t ranks = 0;
  LP_TRY(read_ranks(context, &ranks));
  if (ranks < 2) return LP_OK;
  LP_TRY(check(module, ranks, context->diag));
  LP_TRY(lp_shard_module(module, ranks, context->scratch, context->diag));
  lp_op_set_i64(module, module->op, "llmpart.ranks", ranks);
  return LP_OK;
}

const lp_pass lp_pass_shard = {
    .name = "shard",
    .summary = "cut the cloud's half for several ranks, each with its own columns and heads",
    .needs = LP_STATE_COMMUNICATING,
    .makes = LP_STATE_COMMUNICATING,
    .breaks = LP_STATE_COUNT,
    .options = "ranks",
    .run = run,
};
