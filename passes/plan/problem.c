/* Builds the plan problem: operators, values and KV caches of each stage. Their numbers at the workload are computed in
 * numbers.c. */
#include "base/map.h"
#include "base/side.h"
#include "passes/plan/numbers.h"
#include "passes/plan/pin.h"
#include "passes/shard/view.h"
#include "passes/state.h"

#include <math.h>

/* Shared while both stages are built. */
typedef struct {
  lp_module *module;
  const lp_compile_request *request;
  lp_arena *arena;
  lp_map *weights; /* key -> id + 1 */
  LP_VEC(double) weight_size[LP_SIDE_COUNT];
  int32_t *group;    /* [state] -> representative state (union-find) */
  int32_t *group_id; /* [state] -> dense id of its group, by representative */
  int32_t state_count, group_count;
  bool fills_once;     /* a cache is filled by @prefill and only read by @decode */
  lp_plan_sizes sizes; /* of the stage being built */
  /* What each rank of the cloud computes, in all, and in the stage being built; NULL: there is one rank. */
  lp_shard_view *shards;
  const lp_shard_stage *part;
} builder;

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* The identity of a weight, by content and form. */
static void weight_key(const lp_op *op, int32_t operand, lp_weight_form form, lp_buf *key) {
  const lp_op *def = op->in[operand].value->def;
  if (def->kind == LP_OP_WEIGHT)
    lp_buf_printf(key, "%d %s@%" PRId64, (int)form, lp_op_str(def, "file", ""), lp_op_i64(def, "offset", 0));
  else
    lp_buf_printf(key, "%d %p", (int)form, lp_op_attr(def, "value")->tensor.data);
}

/* The number of a weight in a form. `parts`: into how many parts the ranks of the cloud cut it. Its size is that of a
 * part then, and the parts are a weight of their own for the cloud: other operators may need the whole there. */
static int32_t weight_id(builder *b, const lp_op *op, int32_t operand, lp_weight_form form, int64_t parts,
                         unsigned sides) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  weight_key(op, operand, form, &key);
  if (b->part) lp_buf_printf(&key, " %u/%" PRId64, sides, parts);
  size_t known = (size_t)(uintptr_t)lp_map_get(b->weights, lp_buf_text(&key));
  if (!known) {
    known = lp_map_count(b->weights) + 1;
    lp_map_put(b->weights, lp_buf_text(&key), (void *)(uintptr_t)known);
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      const double bytes = lp_plan_weight_bytes(b->request, (lp_side)side, op, operand, form) *
                           lp_plan_resident_share(b->request, (lp_side)side, op) / (double)parts;
      lp_vec_push(&b->weight_size[side], sides & (1u << side) ? bytes : 0);
    }
  }
  return (int32_t)known - 1;
}

/* With ranks a side's weights are numbered by themselves. `part`: of a rank; NULL: there is one. */
static void fill_weights(builder *b, lp_plan_op *item, const lp_op *part) {
  enum { DEVICE = 1u << LP_SIDE_DEVICE, CLOUD = 1u << LP_SIDE_CLOUD, MOST = (int)LP_SIDE_COUNT * LP_WEIGHT_FORMS };
  const lp_op *op = item->op;
  int32_t *ids = LP_NEW_ARRAY(b->arena, int32_t, MOST * op->in_count), count = 0;
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!lp_value_is_constant(op->in[i].value)) continue;
    lp_weight_form forms[LP_WEIGHT_FORMS];
    int32_t form_count = lp_plan_weight_forms(op, i, forms);
    for (int32_t k = 0; k < form_count; k++) {
      ids[count++] = weight_id(b, op, i, forms[k], 1, part ? DEVICE : DEVICE | CLOUD);
      if (part) ids[count++] = weight_id(b, op, i, forms[k], lp_shard_parts(part, i), CLOUD);
    }
  }
  item->weights = ids;
  item->weight_count = count;
}

/* ---- KV caches --------------------------------------------------------------------------------------------------- */

static int32_t find_group(const builder *b, int32_t state) {
  while (b->group[state] != state)
    state = b->group[state];
  return state;
}

static int32_t cache_state(const builder *b, const lp_op *op) {
  int64_t state = op ? lp_op_state(op) : -1;
  return state >= 0 && state < b->state_count ? (int32_t)state : -1;
}

/* The lowest representative wins, so that both stages give the same groups. */
static int32_t join_states(builder *b, const lp_op *op) {
  int32_t joined = cache_state(b, op);
  if (joined >= 0) joined = find_group(b, joined);
  for (int32_t i = 0; i < op->in_count; i++) {
    int32_t state = cache_state(b, lp_value_cache(op->in[i].value));
    if (state < 0) continue;
    int32_t root = find_group(b, state);
    if (joined < 0 || joined == root) {
      joined = root;
      continue;
    }
    int32_t low = root < joined ? root : joined;
    b->group[root < joined ? joined : root] = low;
    joined = low;
  }
  return joined;
}

static void count_states(builder *b) {
  LP_FOR_OPS(op, lp_module_body(b->module)) {
    int64_t index = op->kind == LP_OP_STATE ? lp_op_i64(op, "index", -1) : -1;
    if (index >= b->state_count && index < INT32_MAX) b->state_count = (int32_t)index + 1;
    if (index >= 0 && lp_op_i64(op, "append_axis", 0) < 0) b->fills_once = true;
  }
  b->group = LP_NEW_ARRAY(b->arena, int32_t, b->state_count);
  b->group_id = LP_NEW_ARRAY(b->arena, int32_t, b->state_count);
  for (int32_t i = 0; i < b->state_count; i++)
    b->group[i] = i;
}

static void number_groups(builder *b) {
  for (int32_t i = 0; i < b->state_count; i++)
    b->group_id[i] = b->group[i] == i ? b->group_count++ : -1;
}

/* Bytes of every group at a capacity of `tokens`, with the caches of `module`: the builder's, or that of its shards. */
static const double *group_sizes(builder *b, const lp_module *module, double tokens) {
  double *sizes = LP_NEW_ARRAY(b->arena, double, b->group_count);
  LP_FOR_OPS(op, lp_module_body(module)) {
    int64_t index = op->kind == LP_OP_STATE ? lp_op_i64(op, "index", -1) : -1;
    if (index >= 0)
      sizes[b->group_id[find_group(b, (int32_t)index)]] +=
          lp_plan_state_bytes(module, b->request, op, tokens, b->arena);
  }
  return sizes;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

/* ---- edges ------------------------------------------------------------------------------------------------------- */

typedef struct {
  LP_VEC(lp_plan_op) ops;
  LP_VEC(lp_plan_edge) edges;
  int32_t value_count;
  bool is_decode;
} stage_lists;

/* Returns the value itself, or the value that was sent if it was received: the module may have gone through
 * insert-comm. */
static lp_value *sent_value(lp_value *value) {
  while (value && lp_op_is(value->def, LP_OP_COMM_RECV)) {
    int64_t tag = lp_op_i64(value->def, "tag", -1);
    const lp_op *send = value->def->prev;
    while (send && !(send->kind == LP_OP_COMM_SEND && lp_op_i64(send, "tag", -2) == tag))
      send = send->prev;
    if (!send) return value;
    value = lp_op_in(send, 0);
  }
  return value;
}

static int32_t index_of(const lp_op *op) {
  return op ? (int32_t)(intptr_t)op->scratch - 1 : -1;
}

static bool producer_is_free(const stage_lists *lists, int32_t producer) {
  return producer >= 0 && (size_t)producer < lists->ops.count && lists->ops.data[producer].free;
}

/* Tells whether the consumer added last already has an edge of this value. */
static bool has_edge(const stage_lists *lists, int32_t value, int32_t consumer) {
  for (size_t i = lists->edges.count; i > 0; i--) {
    const lp_plan_edge *edge = &lists->edges.data[i - 1];
    if (edge->consumer != consumer) return false;
    if (edge->value == value) return true;
  }
  return false;
}

static void add_edge(builder *b, stage_lists *lists, lp_value *value, int32_t consumer) {
  int32_t producer = index_of(value->def);
  if (!value->scratch) value->scratch = (void *)(intptr_t)++lists->value_count;
  int32_t id = (int32_t)(intptr_t)value->scratch - 1;
  if (has_edge(lists, id, consumer)) return;
  double bytes = producer_is_free(lists, producer) ? 0 : lp_plan_value_bytes(&b->sizes, value->type);
  lp_vec_push(&lists->edges, ((lp_plan_edge){producer, consumer, id, bytes, value}));
}

/* An operator is free when none of its operands depends on an input: position tables, masks. */
static bool is_free(const stage_lists *lists, const lp_op *op) {
  if (lp_op_has(op, LP_STATEFUL)) return false;
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = sent_value(op->in[i].value);
    if (!value || lp_value_is_constant(value)) continue;
    if (!producer_is_free(lists, index_of(value->def))) return false;
  }
  return true;
}

/* An operator that only @prefill has costs nothing in @decode and needs nothing there. */
static void add_absent_op(builder *b, stage_lists *lists, lp_op *op) {
  lp_plan_op item = {.op = op, .state = -1, .layer = (int32_t)lp_op_i64(op, "layer", -1), .free = true};
  item.weights = LP_NEW_ARRAY(b->arena, int32_t, 1);
  lp_vec_push(&lists->ops, item);
  op->scratch = (void *)(intptr_t)lists->ops.count;
}

static void add_op(builder *b, stage_lists *lists, lp_op *op, bool draws) {
  lp_plan_op item = {.op = op, .draws = draws, .state = -1, .layer = (int32_t)lp_op_i64(op, "layer", -1)};
  int32_t state = join_states(b, op);
  if (state >= 0) item.state = b->group_id[find_group(b, state)];
  item.free = is_free(lists, op);
  lp_arena_mark before = lp_arena_here(b->module->arena); /* evaluates the closed forms */
  const lp_poly *zero = lp_dim_const(b->module, 0);
  bool reads_only = lists->is_decode && lp_op_bool(op, "once", false);
  lp_cost cost = reads_only ? (lp_cost){zero, zero, zero, zero, zero, zero} : lp_op_cost(b->module, op);
  lp_plan_op_price(&b->sizes, &cost, &item);
  int32_t index = (int32_t)lists->ops.count;
  const lp_op *part = b->part ? b->part->part[index] : NULL;
  if (part && !reads_only) {
    cost = lp_op_cost(b->shards->module, part);
    lp_plan_op_price_part(&b->sizes, part, &cost, &item);
  }
  fill_weights(b, &item, part);
  if (b->arena != b->module->arena) lp_arena_rewind(b->module->arena, before);
  lp_vec_push(&lists->ops, item);
  op->scratch = (void *)(intptr_t)(index + 1);
  for (int32_t i = 0; i < op->in_count && !reads_only; i++) {
    lp_value *value = sent_value(op->in[i].value);
    if (value && !lp_value_is_constant(value)) add_edge(b, lists, value, index);
  }
}

static bool is_needed(const lp_op *op, const bool *absent) {
  if (lp_op_has(op, LP_TERMINATOR) || lp_op_has(op, LP_STATEFUL)) return true;
  for (int32_t i = 0; i < op->out_count; i++)
    for (const lp_use *use = op->out[i]->uses; use; use = use->next)
      if (!absent[use->owner->order] && !lp_op_bool(use->owner, "once", false)) return true;
  return false;
}

/* Marks, by order, the operators that only caches filled once need. @decode reads these caches instead. */
static bool *find_absent(lp_block *block, lp_arena *arena) {
  lp_block_renumber(block);
  bool *absent = LP_NEW_ARRAY(arena, bool, block->last ? block->last->order + 1 : 1);
  for (const lp_op *op = block->last; op; op = op->prev)
    absent[op->order] = lp_op_is_placeable(op) && !is_needed(op, absent);
  return absent;
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

/* An exit head belongs to the layer that it reads, wherever the exporter placed it in the file. */
static void settle_exit_heads(lp_plan_problem *problem) {
  for (int32_t i = 0; i < problem->edge_count;) {
    int32_t consumer = problem->edges[i].consumer, layer = -1;
    for (; i < problem->edge_count && problem->edges[i].consumer == consumer; i++) {
      int32_t producer = problem->edges[i].producer;
      if (producer >= 0 && problem->ops[producer].layer > layer) layer = problem->ops[producer].layer;
    }
    if (lp_streq(lp_op_str(problem->ops[consumer].op, "layer_kind", NULL), "exit_head"))
      problem->ops[consumer].layer = layer;
  }
}

/* Marks the operators that an operator of a layer depends on. */
static void mark_read_by_layers(const lp_plan_problem *problem, bool *read) {
  for (int32_t i = problem->edge_count; i-- > 0;) { /* sorted by consumer: the readers of an operator come first */
    const lp_plan_edge *edge = &problem->edges[i];
    bool reader = problem->ops[edge->consumer].layer >= 0 || read[edge->consumer];
    if (edge->producer >= 0 && reader) read[edge->producer] = true;
  }
}

/* An operator outside the layers belongs to the last layer that it depends on, if a layer depends on it. Other
 * operators come before the first layer or after the last. */
static void settle_layers(lp_plan_problem *problem) {
  int32_t count = 0, edge = 0;
  settle_exit_heads(problem);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (problem->ops[i].layer >= count) count = problem->ops[i].layer + 1;
  bool *read = lp_alloc(((size_t)problem->op_count + 1) * sizeof *read), inside = false;
  memset(read, 0, ((size_t)problem->op_count + 1) * sizeof *read);
  mark_read_by_layers(problem, read);
  for (int32_t i = 0; i < problem->op_count; i++) {
    lp_plan_op *item = &problem->ops[i];
    int32_t last = -1;
    for (; edge < problem->edge_count && problem->edges[edge].consumer == i; edge++) {
      int32_t producer = problem->edges[edge].producer;
      if (producer >= 0 && problem->ops[producer].layer > last) last = problem->ops[producer].layer;
    }
    if (item->layer >= 0)
      inside = true;
    else if (inside && !lp_streq(lp_op_str(item->op, "layer_kind", ""), "embedding"))
      item->layer = read[i] ? last : count;
  }
  free(read);
  problem->layer_count = count;
}

/* The ranks gather a result right after the operator that computes it. */
static void add_gathers(builder *b, stage_lists *lists) {
  for (int32_t i = 0; b->part && i < b->part->gather_count; i++) {
    const lp_shard_gather *gather = &b->part->gather[i];
    lp_plan_op *item = &lists->ops.data[gather->op];
    if (!item->free) lp_plan_op_gather(&b->sizes, gather->gather->out[0]->type, item);
  }
}

static void build_stage(builder *b, lp_stage stage, lp_block *block, lp_plan_problem *out) {
  b->part = b->shards ? &b->shards->stage[stage] : NULL;
  lp_plan_sizes_set(&b->sizes, b->module, b->request, stage, b->part, b->arena);
  stage_lists lists = {.is_decode = stage == LP_STAGE_DECODE};
  const lp_op *end = lp_block_terminator(block);
  lp_value *result = end && b->request->generation ? sent_value(lp_op_in(end, 0)) : NULL;
  const lp_op *drawn = result ? result->def : NULL;
  while (drawn && lp_op_has(drawn, LP_ALIAS))
    drawn = drawn->in[0].value->def;
  const bool *absent = lists.is_decode && b->fills_once ? find_absent(block, b->arena) : NULL;
  LP_FOR_OPS(op, block) {
    if (!lp_op_is_placeable(op)) continue;
    if (absent && absent[op->order])
      add_absent_op(b, &lists, op);
    else
      add_op(b, &lists, op, op == drawn);
  }
  add_gathers(b, &lists);
  *out = (lp_plan_problem){.stage = stage, .result = -1, .result_bytes = 4 * (double)b->request->batch};
  if (result) out->result = index_of(result->def);
  out->op_count = (int32_t)lists.ops.count;
  out->edge_count = (int32_t)lists.edges.count;
  out->value_count = lists.value_count;
  if (out->op_count) out->ops = lp_arena_copy(b->arena, lists.ops.data, lists.ops.count * sizeof *lists.ops.data);
  if (out->edge_count)
    out->edges = lp_arena_copy(b->arena, lists.edges.data, lists.edges.count * sizeof *lists.edges.data);
  lp_vec_free(&lists.ops);
  lp_vec_free(&lists.edges);
  lp_block_forget(block);
  settle_layers(out);
  lp_plan_pin(out, b->request);
}

static lp_block *plan_block(const lp_module *module, lp_stage stage, int32_t plan) {
  if (plan == 0) return lp_plan_stage_block(module, stage);
  const lp_op *func = lp_plan_func(module, stage, plan);
  return func ? func->region : NULL;
}

/* A plan may say so; a model that reads a source reads it whole. */
static bool takes_whole_prompts(const lp_module *module, int32_t plan) {
  const lp_op *prefill = lp_plan_func(module, LP_STAGE_PREFILL, plan), *main = lp_module_find_func(module, "main");
  const lp_op *func = prefill ? prefill : main;
  const lp_attr *roles = func ? lp_op_attr(func, "input_roles") : NULL;
  for (int32_t i = 0; roles && roles->kind == LP_ATTR_STRS && i < roles->count; i++)
    if (lp_has_prefix(roles->ss[i], "source")) return true;
  return func && lp_op_bool(func, LP_WHOLE_PROMPTS, false);
}

/* Longer than any limit: what must not move takes so long. */
static const double barred_ms = 1e9;

/* What moving a group's cache carries. Each rank has the heads of its own, so their caches do not move. */
static const double *move_sizes(builder *b) {
  const lp_link *link = b->request->link;
  const double *prompt = group_sizes(b, b->module, (double)b->request->isl);
  if (!b->shards || !link) return prompt;
  const double rate = fmax(link->figure[LP_LINK_UP], link->figure[LP_LINK_DOWN]) / 8;
  double *barred = LP_NEW_ARRAY(b->arena, double, b->group_count);
  for (int32_t i = 0; i < b->group_count; i++)
    barred[i] = prompt[i] > 0 ? rate * barred_ms / 1e3 : 0;
  return barred;
}

static void share_totals(builder *b, lp_plan_problem out[LP_STAGE_COUNT]) {
  const double *sizes[LP_SIDE_COUNT];
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    double *copy = LP_NEW_ARRAY(b->arena, double, b->weight_size[side].count);
    for (size_t i = 0; i < b->weight_size[side].count; i++)
      copy[i] = b->weight_size[side].data[i];
    sizes[side] = copy;
    lp_vec_free(&b->weight_size[side]);
  }
  const double tokens = (double)(b->request->isl + b->request->osl);
  const double *full = group_sizes(b, b->module, tokens);
  const double *of_rank = b->shards ? group_sizes(b, b->shards->module, tokens) : full;
  const double *prompt = move_sizes(b);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    out[stage].weight_count = (int32_t)lp_map_count(b->weights);
    out[stage].state_count = b->group_count;
    out[stage].state_size[LP_SIDE_DEVICE] = full;
    out[stage].state_size[LP_SIDE_CLOUD] = of_rank;
    out[stage].state_prompt_size = prompt;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      out[stage].weight_size[side] = sizes[side];
  }
}

lp_status lp_plan_build(lp_module *module, const lp_compile_request *request, lp_arena *arena,
                        lp_plan_problem out[LP_STAGE_COUNT], lp_diag *diag) {
  return lp_plan_build_of(module, request, 0, arena, out, diag);
}

lp_status lp_plan_build_of(lp_module *module, const lp_compile_request *request, int32_t plan, lp_arena *arena,
                           lp_plan_problem out[LP_STAGE_COUNT], lp_diag *diag) {
  lp_block *blocks[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!(blocks[stage] = plan_block(module, (lp_stage)stage, plan)))
      return lp_error(diag, LP_LOC_FILE(module->name), "there is no function '@main' to plan");
  builder b = {.module = module, .request = request, .arena = arena};
  if (request->ranks > 1 && request->cloud)
    LP_TRY(lp_shard_view_make(module, blocks, LP_STAGE_COUNT, request->ranks, &b.shards, diag));
  b.weights = lp_map_create();
  count_states(&b);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    LP_FOR_OPS(op, blocks[stage])
      join_states(&b, op);
  number_groups(&b);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    build_stage(&b, (lp_stage)stage, blocks[stage], &out[stage]);
  share_totals(&b, out);
  if (takes_whole_prompts(module, plan)) lp_plan_take_whole_prompts(out, arena);
  lp_map_free(b.weights);
  lp_shard_view_free(b.shards);
  return LP_OK;
}

void lp_plan_sides(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *side[LP_STAGE_COUNT], lp_arena *arena) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    side[stage] = LP_NEW_ARRAY(arena, lp_side, problem[stage].op_count);
    for (int32_t i = 0; i < problem[stage].op_count; i++)
      if (lp_op_place(problem[stage].ops[i].op, "side") > LP_SIDE_DEVICE) side[stage][i] = LP_SIDE_CLOUD;
  }
}
