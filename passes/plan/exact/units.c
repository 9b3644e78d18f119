/* The exact scheduler's units, holdings and order: an lp_plan_problem reduced to its decisions. */
#include "base/map.h"
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>

typedef LP_VEC(int32_t) numbers;

static int32_t *keep(lp_arena *arena, const numbers *list, int32_t *count) {
  *count = (int32_t)list->count;
  return list->count ? lp_arena_copy(arena, list->data, list->count * sizeof *list->data) : NULL;
}

static bool contains(const numbers *list, int32_t item) {
  for (size_t i = 0; i < list->count; i++)
    if (list->data[i] == item) return true;
  return false;
}

static void add_once(numbers *list, int32_t item) {
  if (!contains(list, item)) lp_vec_push(list, item);
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* The edges of a stage by consumer, and the number of readers of each value. */
typedef struct {
  const lp_plan_problem *problem;
  int32_t *first;               /* [op_count + 1] */
  int32_t *readers;             /* [value_count] */
  double *least_out, *most_out; /* [op_count] bytes of an operator's results that are read */
} stage_edges;

static stage_edges index_edges(const lp_plan_problem *problem, lp_arena *arena) {
  stage_edges e = {.problem = problem,
                   .first = LP_NEW_ARRAY(arena, int32_t, problem->op_count + 1),
                   .readers = LP_NEW_ARRAY(arena, int32_t, problem->value_count),
                   .least_out = LP_NEW_ARRAY(arena, double, problem->op_count),
                   .most_out = LP_NEW_ARRAY(arena, double, problem->op_count)};
  for (int32_t i = 0; i < problem->op_count; i++)
    e.least_out[i] = INFINITY;
  LP_FOR_EACH(const lp_plan_edge, edge, problem->edges, problem->edge_count) {
    if (edge->producer < 0) continue;
    e.least_out[edge->producer] = fmin(e.least_out[edge->producer], edge->bytes);
    e.most_out[edge->producer] = fmax(e.most_out[edge->producer], edge->bytes);
  }
  int32_t edge = 0;
  for (int32_t i = 0; i <= problem->op_count; i++) {
    while (edge < problem->edge_count && problem->edges[edge].consumer < i)
      e.readers[problem->edges[edge++].value]++;
    e.first[i] = edge;
  }
  return e;
}

static bool is_free(const lp_plan_problem *problem, int32_t op) {
  return op >= 0 && problem->ops[op].free;
}

/* The producer of a view (a reshape) that is the producer's only reader, or -1. A view costs nothing and is as large
 * as its operand, so it is never worse on its producer's side. */
static int32_t view_of(const stage_edges *e, int32_t index) {
  const lp_plan_problem *problem = e->problem;
  const lp_plan_op *op = &problem->ops[index];
  if (e->first[index + 1] - e->first[index] != 1 || op->weight_count || op->ms[0] > 0 || op->ms[1] > 0) return -1;
  if (op->bytes[0] > 0 || op->bytes[1] > 0) return -1;
  const lp_plan_edge *edge = &problem->edges[e->first[index]];
  if (edge->producer < 0 || is_free(problem, edge->producer) || e->readers[edge->value] != 1) return -1;
  const lp_plan_op *from = &problem->ops[edge->producer];
  if ((op->state >= 0 && op->state != from->state) || (op->pin >= 0 && op->pin != from->pin)) return -1;
  return e->least_out[index] < edge->bytes || e->most_out[index] > edge->bytes ? -1 : edge->producer;
}

static void number_units(lp_exact *x, lp_stage stage, const stage_edges *e) {
  const lp_plan_problem *problem = e->problem;
  int32_t *of = LP_NEW_ARRAY(x->arena, int32_t, problem->op_count), count = 0;
  int32_t *first = LP_NEW_ARRAY(x->arena, int32_t, problem->op_count);
  for (int32_t i = 0; i < problem->op_count; i++) {
    if (problem->ops[i].free) {
      of[i] = -1;
      continue;
    }
    int32_t from = view_of(e, i);
    if (from < 0) first[count] = i;
    of[i] = from >= 0 ? of[from] : count++;
  }
  x->first_op[stage] = first;
  x->unit_of[stage] = of;
  x->unit_count[stage] = count;
  x->unit[stage] = LP_NEW_ARRAY(x->arena, lp_exact_unit, count);
}

void lp_exact_join(const lp_exact *x, lp_stage stage, lp_side *side) {
  for (int32_t i = 0; i < x->problem[stage].op_count; i++)
    if (x->unit_of[stage][i] >= 0) side[i] = side[x->first_op[stage][x->unit_of[stage][i]]];
}

void lp_exact_join_views(const lp_plan_problem *problem, lp_arena *scratch, lp_side *side) {
  const stage_edges edges = index_edges(problem, scratch);
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t from = problem->ops[i].free ? -1 : view_of(&edges, i);
    if (from >= 0) side[i] = side[from];
  }
}

static void fill_units(lp_exact *x, lp_stage stage) {
  const lp_plan_problem *problem = &x->problem[stage];
  for (int32_t i = 0; i < x->unit_count[stage]; i++)
    x->unit[stage][i].pin = -1;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *op = &problem->ops[i];
    if (op->free) continue;
    lp_exact_unit *unit = &x->unit[stage][x->unit_of[stage][i]];
    if (op->pin >= 0) unit->pin = op->pin;
    unit->is_result |= i == problem->result;
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      unit->ms[side] += op->ms[side];
      if (op->state < 0) unit->activation[side] = fmax(unit->activation[side], op->activation[side]);
    }
  }
}

/* Lists the values between units. */
static void fill_values(lp_exact *x, lp_stage stage, const stage_edges *e) {
  const lp_plan_problem *problem = e->problem;
  int32_t count = x->unit_count[stage];
  numbers *in = LP_NEW_ARRAY(x->arena, numbers, count), *out = LP_NEW_ARRAY(x->arena, numbers, count);
  x->value[stage] = LP_NEW_ARRAY(x->arena, lp_exact_value, problem->value_count);
  for (int32_t i = 0; i < problem->value_count; i++)
    x->value[stage][i].last = -1;
  LP_FOR_EACH(const lp_plan_edge, edge, problem->edges, problem->edge_count) {
    if (problem->ops[edge->consumer].free || is_free(problem, edge->producer)) continue;
    int32_t to = x->unit_of[stage][edge->consumer], from = edge->producer < 0 ? -1 : x->unit_of[stage][edge->producer];
    if (to == from) continue;
    lp_exact_value *value = &x->value[stage][edge->value];
    value->bytes = edge->bytes;
    value->last = to > value->last ? to : value->last;
    add_once(&in[to], edge->value);
    if (from >= 0) add_once(&out[from], edge->value);
  }
  for (int32_t i = 0; i < count; i++) {
    lp_exact_unit *unit = &x->unit[stage][i];
    unit->in = keep(x->arena, &in[i], &unit->in_count);
    unit->out = keep(x->arena, &out[i], &unit->out_count);
    lp_vec_free(&in[i]);
    lp_vec_free(&out[i]);
  }
}

/* ---- holdings ---------------------------------------------------------------------------------------------------- */

/* A thing that a side may hold, before things with the same users are joined. */
typedef struct {
  numbers user[LP_STAGE_COUNT];
  lp_exact_holding holding;
} item;

typedef struct {
  lp_exact *x;
  item *weight, *state, *free_op[LP_STAGE_COUNT];
  lp_map *seen; /* users -> holding + 1 */
  LP_VEC(lp_exact_holding) joined;
  numbers *unit_hold[LP_STAGE_COUNT];
} holder;

/* Lists the things that operator `op` of unit `unit` makes its side hold: its weights, and the free operators that it
 * reads. */
static void use(holder *h, const stage_edges *e, lp_stage stage, int32_t op, int32_t unit) {
  const lp_plan_op *item_op = &e->problem->ops[op];
  for (int32_t i = 0; i < item_op->weight_count; i++)
    add_once(&h->weight[item_op->weights[i]].user[stage], unit);
  for (int32_t i = e->first[op]; i < e->first[op + 1]; i++) {
    int32_t from = e->problem->edges[i].producer;
    if (!is_free(e->problem, from) || contains(&h->free_op[stage][from].user[stage], unit)) continue;
    lp_vec_push(&h->free_op[stage][from].user[stage], unit);
    use(h, e, stage, from, unit);
  }
}

static void note_users(holder *h, const stage_edges *e, lp_stage stage) {
  const lp_plan_problem *problem = e->problem;
  h->free_op[stage] = LP_NEW_ARRAY(h->x->arena, item, problem->op_count);
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *op = &problem->ops[i];
    for (int side = 0; op->free && side < LP_SIDE_COUNT; side++)
      h->free_op[stage][i].holding.ms[stage][side] = op->ms[side];
    if (op->free) continue;
    int32_t unit = h->x->unit_of[stage][i];
    use(h, e, stage, i, unit);
    if (op->state >= 0) add_once(&h->state[op->state].user[stage], unit);
  }
}

static void free_item(item *it) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_vec_free(&it->user[stage]);
}

static void add_to(lp_exact_holding *sum, const lp_exact_holding *one) {
  sum->move_bytes += one->move_bytes;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    sum->bytes[side] += one->bytes[side];
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      sum->ms[stage][side] += one->ms[stage][side];
  }
}

/* KV caches are never joined with anything, because they bind their users to one side. */
static void join(holder *h, item *it) {
  lp_buf key = {0};
  lp_buf_puts(&key, it->holding.is_state ? "s" : "w");
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_exact_holding *holding = &it->holding;
    const numbers *user = &it->user[stage];
    holding->first[stage] = holding->last[stage] = user->count ? user->data[0] : -1;
    lp_buf_puts(&key, "|");
    for (size_t i = 0; i < user->count; i++) {
      if (user->data[i] < holding->first[stage]) holding->first[stage] = user->data[i];
      if (user->data[i] > holding->last[stage]) holding->last[stage] = user->data[i];
      lp_buf_printf(&key, "%" PRId32 ",", user->data[i]);
    }
  }
  bool used = it->user[0].count || it->user[1].count;
  size_t known = used ? (size_t)(uintptr_t)lp_map_get(h->seen, lp_buf_text(&key)) : 0;
  if (known) {
    add_to(&h->joined.data[known - 1], &it->holding);
  } else if (used) {
    lp_vec_push(&h->joined, it->holding);
    lp_map_put(h->seen, lp_buf_text(&key), (void *)(uintptr_t)h->joined.count);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      for (size_t i = 0; i < it->user[stage].count; i++)
        lp_vec_push(&h->unit_hold[stage][it->user[stage].data[i]], (int32_t)h->joined.count - 1);
  }
  lp_buf_free(&key);
  free_item(it);
}

/* A form of a weight that neither side stores is no holding. */
static void join_weight(holder *h, item *it) {
  if (it->holding.bytes[0] > 0 || it->holding.bytes[1] > 0)
    join(h, it);
  else
    free_item(it);
}

static void size_items(holder *h) {
  const lp_plan_problem *problem = h->x->problem;
  for (int32_t i = 0; i < problem->weight_count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      h->weight[i].holding.bytes[side] = problem->weight_size[side][i];
  for (int32_t i = 0; i < problem->state_count; i++) {
    lp_exact_holding *holding = &h->state[i].holding;
    holding->is_state = true;
    holding->move_bytes = problem->state_prompt_size[i];
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      holding->bytes[side] = problem->state_size[side][i] * lp_plan_sessions(h->x->request, (lp_side)side);
  }
}

static void keep_holdings(holder *h) {
  lp_exact *x = h->x;
  x->holding_count = (int32_t)h->joined.count;
  if (x->holding_count) x->holding = lp_arena_copy(x->arena, h->joined.data, h->joined.count * sizeof *h->joined.data);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++) {
      x->unit[stage][i].hold = keep(x->arena, &h->unit_hold[stage][i], &x->unit[stage][i].hold_count);
      lp_vec_free(&h->unit_hold[stage][i]);
    }
}

static void build_holdings(lp_exact *x, const stage_edges edges[LP_STAGE_COUNT]) {
  const lp_plan_problem *problem = x->problem;
  holder h = {.x = x,
              .weight = LP_NEW_ARRAY(x->arena, item, problem->weight_count),
              .state = LP_NEW_ARRAY(x->arena, item, problem->state_count),
              .seen = lp_map_create()};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    h.unit_hold[stage] = LP_NEW_ARRAY(x->arena, numbers, x->unit_count[stage]);
    note_users(&h, &edges[stage], (lp_stage)stage);
  }
  size_items(&h);
  for (int32_t i = 0; i < problem->weight_count; i++)
    join_weight(&h, &h.weight[i]);
  for (int32_t i = 0; i < problem->state_count; i++)
    join(&h, &h.state[i]);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < problem[stage].op_count; i++)
      join(&h, &h.free_op[stage][i]);
  keep_holdings(&h);
  lp_vec_free(&h.joined);
  lp_map_free(h.seen);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* The unit of prefill after which a unit of decode comes: the one with its weights. */
static int32_t partner(const lp_exact *x, const lp_exact_unit *unit, int32_t least) {
  for (int32_t i = 0; i < unit->hold_count; i++) {
    int32_t first = x->holding[unit->hold[i]].first[LP_STAGE_PREFILL];
    if (first > least) least = first;
  }
  return least;
}

static void order_steps(lp_exact *x) {
  int32_t decode = 0, least = -1;
  x->step = LP_NEW_ARRAY(x->arena, lp_exact_step, x->unit_count[0] + x->unit_count[1]);
  for (int32_t i = 0; i <= x->unit_count[0]; i++) {
    if (i < x->unit_count[0]) x->step[x->step_count++] = (lp_exact_step){LP_STAGE_PREFILL, i};
    for (; decode < x->unit_count[1]; decode++) {
      least = partner(x, &x->unit[1][decode], least);
      if (least > i) break;
      x->step[x->step_count++] = (lp_exact_step){LP_STAGE_DECODE, decode};
    }
  }
  for (int32_t i = 0; i < x->holding_count; i++)
    x->holding[i].first_step = -1;
  for (int32_t k = 0; k < x->step_count; k++) {
    const lp_exact_unit *unit = &x->unit[x->step[k].stage][x->step[k].unit];
    for (int32_t i = 0; i < unit->hold_count; i++) {
      lp_exact_holding *holding = &x->holding[unit->hold[i]];
      if (holding->first_step < 0) holding->first_step = k;
    }
  }
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* Memory can bind only if everything together does not fit. */
static double binding_memory(const lp_exact *x, lp_side side) {
  double limit = lp_plan_memory_limit(x->request, side), all = 0, activation = 0;
  for (int32_t i = 0; i < x->holding_count; i++)
    all += x->holding[i].bytes[side];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      activation = fmax(activation, x->unit[stage][i].activation[side]);
  return all + 2 * activation > limit ? limit : 0;
}

/* A message costs a constant and an amount per byte. */
static void set_link(lp_exact *x) {
  const struct lp_link *link = x->request->link;
  const double bytes = 1 << 20;
  if (!link) return;
  x->rtt_half = lp_link_up_ms(link, 0);
  x->ms_per_byte[LP_SIDE_DEVICE] = (lp_link_up_ms(link, bytes) - x->rtt_half) / bytes;
  x->ms_per_byte[LP_SIDE_CLOUD] = (lp_link_down_ms(link, bytes) - x->rtt_half) / bytes;
}

void lp_exact_build(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request, lp_arena *arena,
                    lp_exact *out) {
  stage_edges edges[LP_STAGE_COUNT];
  *out = (lp_exact){.problem = problem, .request = request, .arena = arena};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    edges[stage] = index_edges(&problem[stage], arena);
    number_units(out, (lp_stage)stage, &edges[stage]);
    fill_units(out, (lp_stage)stage);
    fill_values(out, (lp_stage)stage, &edges[stage]);
  }
  build_holdings(out, edges);
  order_steps(out);
  lp_plan_weights_get(request, &out->weights);
  set_link(out);
  out->limit_ms[LP_STAGE_PREFILL] = request->ttft_ms;
  out->limit_ms[LP_STAGE_DECODE] = request->tpot_ms;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    out->limit_bytes[side] = binding_memory(out, (lp_side)side);
}
