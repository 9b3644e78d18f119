/* Closed forms of a plan problem: finds which operators, values, weights and KV caches are alike, and prices each
 * class at a request. */
#include "passes/plan/forms.h"
#include "base/map.h"
#include "base/poly.h"
#include "base/side.h"
#include "passes/plan/numbers.h"

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* Classes under construction: things with the same text are one class. */
typedef struct {
  lp_plan_classes *out;
  lp_map *known; /* text -> class + 1 */
  lp_buf text;
} classifier;

static classifier classify_begin(lp_plan_classes *out, int32_t things, lp_arena *arena) {
  out->class_of = LP_NEW_ARRAY(arena, int32_t, things);
  out->first = LP_NEW_ARRAY(arena, int32_t, things);
  out->count = 0;
  return (classifier){.out = out, .known = lp_map_create()};
}

/* Adds the thing that c->text describes to its class. */
static void classify(classifier *c, int32_t thing) {
  uintptr_t known = (uintptr_t)lp_map_get(c->known, lp_buf_text(&c->text));
  if (!known) {
    c->out->first[c->out->count] = thing;
    known = (uintptr_t)++c->out->count;
    lp_map_put(c->known, lp_buf_text(&c->text), (void *)known);
  }
  c->out->class_of[thing] = (int32_t)known - 1;
  lp_buf_clear(&c->text);
}

static void classify_end(classifier *c) {
  lp_map_free(c->known);
  lp_buf_free(&c->text);
}

static void put_poly(classifier *c, const lp_module *module, const lp_poly *poly) {
  if (poly) lp_poly_print(poly, &module->symbols, &c->text);
  lp_buf_puts(&c->text, ";");
}

static void put_type(classifier *c, const lp_module *module, const lp_value *value) {
  if (!value) {
    lp_buf_puts(&c->text, "-|");
    return;
  }
  lp_buf_printf(&c->text, "%s[", lp_dtype_name(value->type.dtype));
  for (int32_t i = 0; i < value->type.rank; i++)
    put_poly(c, module, value->type.dim[i]);
  lp_buf_puts(&c->text, "]|");
}

/* Writes everything that the operator's numbers depend on: kind, types, closed forms, and the attributes of
 * attention. */
static void describe_op(classifier *c, const lp_module *module, const lp_plan_op *item, const lp_cost *cost) {
  const lp_op *op = item->op;
  lp_buf_printf(&c->text, "%d %d %d %d %s %" PRId64 " %" PRId64 " %" PRId64 "|", (int)op->kind, item->free, item->draws,
                item->state >= 0, lp_op_str(op, "layout", ""), lp_op_i64(op, "heads", -1),
                lp_op_i64(op, "kv_heads", -1), lp_op_i64(op, "head_dim", -1));
  for (int32_t i = 0; i < op->in_count; i++)
    put_type(c, module, lp_op_in(op, i));
  lp_buf_puts(&c->text, "->");
  for (int32_t i = 0; i < op->out_count; i++)
    put_type(c, module, lp_op_out(op, i));
  const lp_poly *const forms[] = {cost->flops,        cost->bytes_read, cost->bytes_written,
                                  cost->weight_bytes, cost->macs,       cost->elements};
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    put_poly(c, module, forms[i]);
}

static void classify_ops(lp_plan_forms *forms, lp_module *module, lp_stage stage, lp_arena *arena) {
  const lp_plan_problem *problem = &forms->problem[stage];
  classifier c = classify_begin(&forms->ops[stage], problem->op_count, arena);
  forms->cost[stage] = LP_NEW_ARRAY(arena, lp_cost, problem->op_count);
  for (int32_t i = 0; i < problem->op_count; i++) {
    lp_cost cost = lp_op_cost(module, problem->ops[i].op);
    describe_op(&c, module, &problem->ops[i], &cost);
    classify(&c, i);
    forms->cost[stage][forms->ops[stage].class_of[i]] = cost;
  }
  classify_end(&c);
}

static void classify_edges(lp_plan_forms *forms, lp_stage stage, lp_arena *arena) {
  const lp_plan_problem *problem = &forms->problem[stage];
  classifier c = classify_begin(&forms->edges[stage], problem->edge_count, arena);
  for (int32_t i = 0; i < problem->edge_count; i++) {
    const lp_plan_edge *edge = &problem->edges[i];
    bool free = edge->producer >= 0 && problem->ops[edge->producer].free;
    if (!free) put_type(&c, forms->module, edge->data);
    classify(&c, i);
  }
  classify_end(&c);
}

/* ---- weights and KV caches --------------------------------------------------------------------------------------- */

/* Notes the operator at its weights, which are in the order of its operands and their forms. */
static void find_weights_of(lp_plan_forms *forms, const lp_plan_op *item) {
  const int32_t *weight = item->weights;
  for (int32_t operand = 0; operand < item->op->in_count; operand++) {
    if (!lp_value_is_constant(item->op->in[operand].value)) continue;
    lp_weight_form form[LP_WEIGHT_FORMS];
    int32_t count = lp_plan_weight_forms(item->op, operand, form);
    for (int32_t k = 0; k < count; k++) {
      forms->weight_at[*weight].op = item->op;
      forms->weight_at[*weight].operand = operand;
      forms->weight_at[*weight++].form = form[k];
    }
  }
}

static void find_weights(lp_plan_forms *forms, lp_arena *arena) {
  forms->weight_at = lp_arena_array(arena, (size_t)forms->problem[0].weight_count, sizeof *forms->weight_at);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < forms->problem[stage].op_count; i++)
      find_weights_of(forms, &forms->problem[stage].ops[i]);
}

static void classify_weights(lp_plan_forms *forms, lp_arena *arena) {
  int32_t count = forms->problem[0].weight_count;
  find_weights(forms, arena);
  classifier c = classify_begin(&forms->weights, count, arena);
  for (int32_t i = 0; i < count; i++) {
    const lp_op *op = forms->weight_at[i].op;
    lp_buf_printf(&c.text, "%d ", op ? (int)forms->weight_at[i].form : -1);
    if (op) put_type(&c, forms->module, op->in[forms->weight_at[i].operand].value);
    classify(&c, i);
  }
  classify_end(&c);
}

static const lp_op *find_state(const lp_module *module, int64_t index) {
  LP_FOR_OPS(op, lp_module_body(module))
    if (op->kind == LP_OP_STATE && lp_op_i64(op, "index", -1) == index) return op;
  return NULL;
}

/* The caches of a group: those that its operators append to. */
static void find_states(lp_plan_forms *forms, lp_arena *arena) {
  const lp_plan_problem *problem = &forms->problem[LP_STAGE_PREFILL];
  forms->states_of = lp_arena_array(arena, (size_t)problem->state_count, sizeof *forms->states_of);
  for (int32_t group = 0; group < problem->state_count; group++)
    forms->states_of[group].op = LP_NEW_ARRAY(arena, const lp_op *, problem->op_count);
  LP_FOR_EACH(const lp_plan_op, item, problem->ops, problem->op_count) {
    if (item->state < 0 || lp_op_state(item->op) < 0) continue;
    const lp_op *state = find_state(forms->module, lp_op_i64(item->op, "state", -1));
    int32_t *count = &forms->states_of[item->state].count;
    if (state) forms->states_of[item->state].op[(*count)++] = state;
  }
}

static void classify_states(lp_plan_forms *forms, lp_arena *arena) {
  int32_t count = forms->problem[0].state_count;
  find_states(forms, arena);
  classifier c = classify_begin(&forms->states, count, arena);
  for (int32_t group = 0; group < count; group++) {
    for (int32_t i = 0; i < forms->states_of[group].count; i++) {
      const lp_op *state = forms->states_of[group].op[i];
      const lp_attr *shape = lp_op_attr(state, "shape");
      lp_buf_printf(&c.text, "%s[", lp_op_str(state, "dtype", "f32"));
      for (int32_t k = 0; shape && shape->kind == LP_ATTR_POLYS && k < shape->count; k++)
        put_poly(&c, forms->module, shape->polys[k]);
    }
    classify(&c, group);
  }
  classify_end(&c);
}

lp_status lp_plan_forms_create(lp_module *module, const lp_compile_request *request, lp_arena *arena,
                               lp_plan_forms **out, lp_diag *diag) {
  lp_plan_forms *forms = LP_NEW(arena, lp_plan_forms);
  forms->module = module;
  LP_TRY(lp_plan_build(module, request, arena, forms->problem, diag));
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    classify_ops(forms, module, (lp_stage)stage, arena);
    classify_edges(forms, (lp_stage)stage, arena);
  }
  classify_weights(forms, arena);
  classify_states(forms, arena);
  *out = forms;
  return LP_OK;
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static void price_stage(const lp_plan_forms *forms, const lp_compile_request *request, lp_stage stage, lp_arena *arena,
                        lp_plan_prices *out) {
  const lp_plan_problem *problem = &forms->problem[stage];
  const lp_plan_classes *ops = &forms->ops[stage], *edges = &forms->edges[stage];
  lp_plan_sizes sizes;
  lp_plan_sizes_set(&sizes, forms->module, request, stage, NULL, arena);
  out->op[stage] = LP_NEW_ARRAY(arena, lp_plan_op, ops->count);
  out->value[stage] = LP_NEW_ARRAY(arena, double, edges->count);
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    out->ms[stage][side] = LP_NEW_ARRAY(arena, double, ops->count);
    out->activation[stage][side] = LP_NEW_ARRAY(arena, double, ops->count);
  }
  for (int32_t i = 0; i < ops->count; i++) {
    lp_plan_op *item = &out->op[stage][i];
    *item = problem->ops[ops->first[i]];
    lp_plan_op_price(&sizes, &forms->cost[stage][i], item);
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      out->ms[stage][side][i] = item->ms[side];
      if (problem->whole_prompts) item->activation[side] = item->whole_activation[side];
      if (!item->free && item->state < 0) out->activation[stage][side][i] = 2 * item->activation[side];
    }
  }
  for (int32_t i = 0; i < edges->count; i++) {
    const lp_plan_edge *edge = &problem->edges[edges->first[i]];
    bool free = edge->producer >= 0 && problem->ops[edge->producer].free;
    out->value[stage][i] = free ? 0 : lp_plan_value_bytes(&sizes, edge->data->type);
  }
}

static double group_bytes(const lp_plan_forms *forms, const lp_compile_request *request, int32_t group, int64_t tokens,
                          lp_arena *arena) {
  double sum = 0;
  for (int32_t i = 0; i < forms->states_of[group].count; i++)
    sum += lp_plan_state_bytes(forms->module, request, forms->states_of[group].op[i], (double)tokens, arena);
  return sum;
}

void lp_plan_forms_price(const lp_plan_forms *forms, const lp_compile_request *request, lp_arena *arena,
                         lp_plan_prices *out) {
  *out = (lp_plan_prices){.result_bytes = 4 * (double)request->batch};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    price_stage(forms, request, (lp_stage)stage, arena, out);
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    out->weight[side] = LP_NEW_ARRAY(arena, double, forms->weights.count);
    for (int32_t i = 0; i < forms->weights.count; i++) {
      int32_t weight = forms->weights.first[i];
      if (forms->weight_at[weight].op)
        out->weight[side][i] = lp_plan_weight_bytes(request, (lp_side)side, forms->weight_at[weight].op,
                                                    forms->weight_at[weight].operand, forms->weight_at[weight].form);
    }
  }
  out->state = LP_NEW_ARRAY(arena, double, forms->states.count);
  out->state_prompt = LP_NEW_ARRAY(arena, double, forms->states.count);
  for (int32_t i = 0; i < forms->states.count; i++) {
    out->state[i] = group_bytes(forms, request, forms->states.first[i], request->isl + request->osl, arena);
    out->state_prompt[i] = group_bytes(forms, request, forms->states.first[i], request->isl, arena);
  }
}

/* Expands the numbers of classes to the things of each class. */
static double *spread(const lp_plan_classes *classes, int32_t things, const double *of_class, lp_arena *arena) {
  double *all = LP_NEW_ARRAY(arena, double, things);
  for (int32_t i = 0; i < things; i++)
    all[i] = of_class[classes->class_of[i]];
  return all;
}

static void copy_numbers(const lp_plan_op *from, lp_plan_op *to) {
  to->macs = from->macs;
  to->elements = from->elements;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    to->flops[side] = from->flops[side];
    to->bytes[side] = from->bytes[side];
    to->weight_bytes[side] = from->weight_bytes[side];
    to->activation[side] = from->activation[side];
    to->whole_activation[side] = from->whole_activation[side];
    to->ms[side] = from->ms[side];
    to->low_ms[side] = from->low_ms[side];
    to->high_ms[side] = from->high_ms[side];
  }
}

void lp_plan_forms_problem(const lp_plan_forms *forms, const lp_plan_prices *prices, lp_arena *arena,
                           lp_plan_problem out[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *from = &forms->problem[stage];
    lp_plan_problem *to = &out[stage];
    *to = *from;
    to->result_bytes = prices->result_bytes;
    to->ops = from->op_count ? lp_arena_copy(arena, from->ops, (size_t)from->op_count * sizeof *from->ops) : NULL;
    to->edges =
        from->edge_count ? lp_arena_copy(arena, from->edges, (size_t)from->edge_count * sizeof *from->edges) : NULL;
    for (int32_t i = 0; i < to->op_count; i++)
      copy_numbers(&prices->op[stage][forms->ops[stage].class_of[i]], &to->ops[i]);
    for (int32_t i = 0; i < to->edge_count; i++)
      to->edges[i].bytes = prices->value[stage][forms->edges[stage].class_of[i]];
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      to->weight_size[side] =
          stage ? out[0].weight_size[side] : spread(&forms->weights, from->weight_count, prices->weight[side], arena);
    const double *states =
        stage ? out[0].state_size[0] : spread(&forms->states, from->state_count, prices->state, arena);
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      to->state_size[side] = states;
    to->state_prompt_size =
        stage ? out[0].state_prompt_size : spread(&forms->states, from->state_count, prices->state_prompt, arena);
  }
}
