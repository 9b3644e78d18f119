/* The figures of the parts: times, weights, caches and activations by place, and what several parts share. */
#include "passes/plan/places/model.h"
#include "passes/plan/objective.h"

#include <math.h>

/* A set of parts, as bits. */
typedef struct {
  uint64_t *word;
} part_set;

/* A weight or a free operator: the parts that need it, and the first operator that does. */
typedef struct {
  part_set user[LP_STAGE_COUNT];
  int32_t first_op[LP_STAGE_COUNT]; /* -1: none */
} thing;

typedef struct {
  lp_places_model *m;
  const lp_plan_problem *shape; /* [stage] */
  int32_t words, *part_of;      /* part_of[op] */
  thing *weight, *free_op[LP_STAGE_COUNT];
  part_set key[LP_PLACES_SHARED][LP_STAGE_COUNT]; /* of the holdings */
} builder;

/* ---- users ------------------------------------------------------------------------------------------------------- */

static thing *create_things(builder *b, int32_t count) {
  thing *list = LP_NEW_ARRAY(b->m->arena, thing, count + 1);
  for (int32_t i = 0; i < count; i++)
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      list[i].user[stage].word = LP_NEW_ARRAY(b->m->arena, uint64_t, b->words);
      list[i].first_op[stage] = -1;
    }
  return list;
}

static void add_user(builder *b, thing *to, int stage, int32_t op) {
  const int32_t part = b->part_of[op];
  to->user[stage].word[part / 64] |= (uint64_t)1 << (part % 64);
  if (to->first_op[stage] < 0 || op < to->first_op[stage]) to->first_op[stage] = op;
}

static void add_users(builder *b, thing *to, const thing *from, int stage) {
  for (int32_t i = 0; i < b->words; i++)
    to->user[stage].word[i] |= from->user[stage].word[i];
  const int32_t own = from->first_op[stage];
  if (own >= 0 && (to->first_op[stage] < 0 || own < to->first_op[stage])) to->first_op[stage] = own;
}

static void find_users(builder *b, int stage) {
  const lp_plan_problem *p = &b->shape[stage];
  thing *free_op = b->free_op[stage] = create_things(b, p->op_count);
  for (int32_t i = p->edge_count; i-- > 0;) { /* sorted by consumer: the users of an operator come first */
    const int32_t from = p->edges[i].producer, to = p->edges[i].consumer;
    if (from < 0 || !p->ops[from].free) continue;
    if (p->ops[to].free)
      add_users(b, &free_op[from], &free_op[to], stage);
    else
      add_user(b, &free_op[from], stage, to);
  }
  for (int32_t i = 0; i < p->op_count; i++)
    for (int32_t k = 0; k < p->ops[i].weight_count; k++)
      if (p->ops[i].free)
        add_users(b, &b->weight[p->ops[i].weights[k]], &free_op[i], stage);
      else
        add_user(b, &b->weight[p->ops[i].weights[k]], stage, i);
}

/* ---- things ------------------------------------------------------------------------------------------------------ */

static bool is_empty(const builder *b, const part_set *set) {
  for (int32_t i = 0; i < b->words; i++)
    if (set->word[i]) return false;
  return true;
}

/* The part that alone uses the thing; -1: several do, -2: none does. */
static int32_t only_user(const builder *b, const thing *it) {
  int32_t found = -2;
  for (int32_t part = 0; part < b->m->part_count; part++) {
    const uint64_t bit = (uint64_t)1 << (part % 64);
    if (!((it->user[0].word[part / 64] | it->user[1].word[part / 64]) & bit)) continue;
    if (found >= 0) return -1;
    found = part;
  }
  return found;
}

static void set_range(const builder *b, const thing *it, lp_places_holding *h, int stage) {
  h->first[stage] = h->last[stage] = -1;
  for (int32_t part = 0; part < b->m->part_count; part++) {
    if (!(it->user[stage].word[part / 64] >> (part % 64) & 1)) continue;
    if (h->first[stage] < 0) h->first[stage] = part;
    h->last[stage] = part;
  }
}

/* The holding of all things with the same users; NULL: there are too many. */
static lp_places_holding *holding_of(builder *b, const thing *it) {
  lp_places_model *m = b->m;
  const size_t size = (size_t)b->words * sizeof(uint64_t);
  for (int32_t h = 0; h < m->holding_count; h++)
    if (memcmp(b->key[h][0].word, it->user[0].word, size) == 0 &&
        memcmp(b->key[h][1].word, it->user[1].word, size) == 0)
      return &m->holding[h];
  if (m->holding_count == LP_PLACES_SHARED) return NULL;
  lp_places_holding *h = &m->holding[m->holding_count];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    b->key[m->holding_count][stage] = it->user[stage];
    set_range(b, it, h, stage);
    for (int32_t part = 0; part < m->part_count; part++)
      if (it->user[stage].word[part / 64] >> (part % 64) & 1)
        m->part[part].shared[stage] = (uint8_t)(m->part[part].shared[stage] | (1U << m->holding_count));
  }
  m->holding_count++;
  return h;
}

static lp_status refuse_shared(lp_diag *diag) {
  return lp_error(diag, LP_LOC_FILE("--place"),
                  "more than %d groups of weights and tables are shared by several layers, too many to plan over more "
                  "than two places",
                  LP_PLACES_SHARED);
}

/* Adds bytes that both stages use to the operators that use them first. */
static void add_both(lp_places_model *m, const int32_t first_op[LP_STAGE_COUNT], int place, double bytes) {
  if (first_op[0] == first_op[1]) {
    m->op_both[first_op[0] * LP_PLACES_MAX + place] += bytes;
    return;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    m->op_bytes[stage][first_op[stage] * LP_PLACES_MAX + place] += bytes / 2;
}

static lp_status add_weight(builder *b, int32_t index, lp_diag *diag) {
  lp_places_model *m = b->m;
  const thing *it = &b->weight[index];
  const int32_t part = only_user(b, it);
  lp_places_holding *h = part == -1 ? holding_of(b, it) : NULL;
  const bool in[] = {!is_empty(b, &it->user[0]), !is_empty(b, &it->user[1])};
  const int use = in[0] && in[1] ? LP_PLACES_BOTH : in[0] ? LP_STAGE_PREFILL : LP_STAGE_DECODE;
  if (part == -1 && !h) return refuse_shared(diag);
  for (int p = 0; p < m->count; p++) {
    const double bytes = m->problem->of[p]->weight_size[lp_places_side(p)][index];
    if (h) h->bytes[p] += bytes;
    if (part < 0) continue;
    m->part[part].weight_bytes[use][p] += bytes;
    if (use == LP_PLACES_BOTH)
      add_both(m, it->first_op, p, bytes);
    else
      m->op_bytes[use][it->first_op[use] * LP_PLACES_MAX + p] += bytes;
  }
  return LP_OK;
}

static lp_status add_free_op(builder *b, int stage, int32_t index, lp_diag *diag) {
  lp_places_model *m = b->m;
  const thing *it = &b->free_op[stage][index];
  const int32_t part = only_user(b, it);
  if (part == -2) return LP_OK;
  lp_places_holding *h = part == -1 ? holding_of(b, it) : NULL;
  if (part == -1 && !h) return refuse_shared(diag);
  for (int p = 0; p < m->count; p++) {
    const double ms = lp_places_op(m->problem, p, stage, index)->ms[lp_places_side(p)];
    if (h) h->ms[stage][p] += ms;
    if (part < 0) continue;
    m->part[part].ms[stage][p] += ms;
    m->op_ms[stage][it->first_op[stage] * LP_PLACES_MAX + p] += ms;
  }
  return LP_OK;
}

static lp_status add_things(builder *b, lp_diag *diag) {
  for (int32_t i = 0; i < b->shape[0].weight_count; i++)
    LP_TRY(add_weight(b, i, diag));
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < b->shape[stage].op_count; i++)
      if (b->shape[stage].ops[i].free) LP_TRY(add_free_op(b, stage, i, diag));
  return LP_OK;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static void add_op(builder *b, int stage, int32_t index) {
  lp_places_model *m = b->m;
  lp_places_part *part = &m->part[b->part_of[index]];
  part->allowed[stage] = (uint8_t)(part->allowed[stage] & lp_places_allowed(m->problem, stage, index));
  for (int p = 0; p < m->count; p++) {
    const lp_side side = lp_places_side(p);
    const lp_plan_op *op = lp_places_op(m->problem, p, stage, index);
    part->ms[stage][p] += op->ms[side];
    m->op_ms[stage][index * LP_PLACES_MAX + p] += op->ms[side];
    if (op->state < 0) part->activation[stage][p] = fmax(part->activation[stage][p], 2 * op->whole_activation[side]);
  }
}

/* Values that leave a part, once each, and those that stay within it; the first operator has no part before it. */
static void add_values(builder *b, int stage) {
  lp_places_model *m = b->m;
  const lp_plan_problem *p = &b->shape[stage];
  bool *crossed = LP_NEW_ARRAY(m->arena, bool, p->value_count);
  LP_FOR_EACH(const lp_plan_edge, edge, p->edges, p->edge_count) {
    if (p->ops[edge->consumer].free || (edge->producer >= 0 && p->ops[edge->producer].free)) continue;
    if (edge->producer < 0) m->has_input[stage] = true;
    if (edge->producer >= 0 && b->part_of[edge->producer] == b->part_of[edge->consumer]) continue;
    if (!crossed[edge->value]) m->part[b->part_of[edge->consumer]].hop_bytes[stage] += edge->bytes;
    crossed[edge->value] = true;
  }
}

/* The root of an operator's group of connected ones. */
static int32_t root_of(int32_t *group, int32_t op) {
  while (group[op] != op)
    op = group[op] = group[group[op]];
  return op;
}

/* Where the operators of a part hang together, two places within it need a message. */
static void set_inner(builder *b, int stage, double least_message) {
  const lp_plan_problem *p = &b->shape[stage];
  int32_t *group = LP_NEW_ARRAY(b->m->arena, int32_t, p->op_count);
  int32_t *groups = LP_NEW_ARRAY(b->m->arena, int32_t, b->m->part_count);
  int32_t *ops = LP_NEW_ARRAY(b->m->arena, int32_t, b->m->part_count);
  for (int32_t i = 0; i < p->op_count; i++)
    group[i] = i;
  for (int32_t i = 0; i < p->edge_count; i++) {
    const int32_t from = p->edges[i].producer, to = p->edges[i].consumer;
    if (from < 0 || p->ops[from].free || p->ops[to].free || b->part_of[from] != b->part_of[to]) continue;
    group[root_of(group, from)] = root_of(group, to);
  }
  for (int32_t i = 0; i < p->op_count; i++) {
    if (p->ops[i].free) continue;
    ops[b->part_of[i]]++;
    groups[b->part_of[i]] += group[i] == i;
  }
  for (int32_t i = 0; i < b->m->part_count; i++) {
    b->m->part[i].divides[stage] = ops[i] > 1;
    b->m->part[i].inner_ms[stage] = groups[i] == 1 ? least_message : 0;
  }
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

static lp_status add_states(builder *b, lp_diag *diag) {
  lp_places_model *m = b->m;
  for (int32_t state = 0; state < b->shape[0].state_count; state++) {
    int32_t user[LP_STAGE_COUNT] = {-1, -1};
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      for (int32_t i = b->shape[stage].op_count; i-- > 0;)
        if (b->shape[stage].ops[i].state == state) user[stage] = i;
    if (user[0] < 0 && user[1] < 0 && !(b->shape[0].state_size[LP_SIDE_DEVICE][state] > 0)) continue;
    if (user[0] < 0 || user[1] < 0)
      return lp_error(diag, LP_LOC_FILE("--place"),
                      "a KV cache is used in one stage only, which cannot be planned over more than two places");
    lp_places_part *part = &m->part[b->part_of[user[0]]];
    part->move_bytes += b->shape[0].state_prompt_size[state];
    for (int p = 0; p < m->count; p++) {
      const lp_side side = lp_places_side(p);
      const double bytes = m->problem->of[p]->state_size[side][state] * lp_plan_sessions(m->problem->request, side);
      part->cache_bytes[p] += bytes;
      add_both(m, user, p, bytes);
    }
    if (user[0] == user[1]) m->op_moves[user[0]] += b->shape[0].state_prompt_size[state];
  }
  return LP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

double lp_places_hop_ms(const lp_places_model *m, int from, int to, double bytes) {
  return from == to ? 0 : m->message_ms[from][to] + bytes * m->ms_per_byte[from][to];
}

static double set_links(lp_places_model *m) {
  const double bytes = 1 << 20;
  double least = INFINITY;
  for (int from = 0; from < m->count; from++)
    for (int to = 0; to < m->count; to++) {
      if (from == to) continue;
      m->message_ms[from][to] = lp_places_link_ms(m->problem->places, from, to, 0);
      m->ms_per_byte[from][to] =
          (lp_places_link_ms(m->problem->places, from, to, bytes) - m->message_ms[from][to]) / bytes;
      least = fmin(least, m->message_ms[from][to]);
    }
  return m->count > 1 ? least : 0;
}

static void set_objective(lp_places_model *m) {
  lp_compile_request request = *m->problem->request;
  for (int p = 0; p < m->count; p++) {
    lp_plan_weights weights;
    request.device = m->problem->places->place[0].machine;
    request.cloud = m->problem->places->place[p].machine;
    lp_plan_weights_get(&request, &weights);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      m->busy[stage][p] = weights.busy[stage][lp_places_side(p)];
      m->link[stage] = weights.link[stage];
    }
    m->move = weights.move;
    m->limit_bytes[p] = lp_places_memory(m->problem, p);
  }
  for (int p = 0; p < m->count; p++) {
    double all = 0;
    for (int32_t i = 0; i < m->part_count; i++)
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
        all += m->busy[stage][p] * m->part[i].ms[stage][p];
    if (all > 0 && (!(m->scale > 0) || all < m->scale)) m->scale = all;
  }
  m->limit_ms[LP_STAGE_PREFILL] = request.ttft_ms;
  m->limit_ms[LP_STAGE_DECODE] = request.tpot_ms;
}

/* The least activation of a place that runs a whole part. */
static void set_least_activation(lp_places_model *m) {
  for (int p = 0; p < m->count; p++) {
    m->least_activation[p] = INFINITY;
    for (int32_t i = 0; i < m->part_count; i++)
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
        m->least_activation[p] = fmin(m->least_activation[p], m->part[i].activation[stage][p]);
  }
}

static double grid_of(double total) {
  int exponent = 0;
  if (!(total > 0) || isinf(total)) return 0;
  (void)frexp(total, &exponent);
  return ldexp(1, exponent - 44);
}

static void set_grids(lp_places_model *m) {
  double objective = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double total = m->limit_ms[stage];
    for (int32_t i = 0; i < m->part_count; i++)
      for (int p = 0; p < m->count; p++) {
        total += m->part[i].ms[stage][p];
        objective += m->busy[stage][p] * m->part[i].ms[stage][p];
      }
    m->grid_ms[stage] = grid_of(total);
    objective += m->link[stage] * total;
  }
  m->grid_objective = grid_of(objective);
}

static void create_parts(builder *b) {
  lp_places_model *m = b->m;
  int32_t *first = LP_NEW_ARRAY(m->arena, int32_t, b->shape[0].op_count + 1);
  m->part_count = lp_places_divide(b->shape, m->arena, first);
  m->part = LP_NEW_ARRAY(m->arena, lp_places_part, m->part_count);
  b->words = (m->part_count + 63) / 64;
  b->part_of = LP_NEW_ARRAY(m->arena, int32_t, b->shape[0].op_count + 1);
  for (int32_t i = 0; i < m->part_count; i++) {
    m->part[i].first_op = first[i];
    m->part[i].end_op = first[i + 1];
    m->part[i].allowed[0] = m->part[i].allowed[1] = (uint8_t)((1U << m->count) - 1);
    for (int32_t op = first[i]; op < first[i + 1]; op++)
      b->part_of[op] = i;
  }
}

lp_status lp_places_model_build(const lp_places_problem *problem, lp_arena *arena, lp_places_model **out,
                                lp_diag *diag) {
  lp_places_model *m = *out = LP_NEW(arena, lp_places_model);
  *m = (lp_places_model){.problem = problem, .arena = arena, .count = problem->places->count};
  builder b = {.m = m, .shape = problem->of[0]};
  if (b.shape[0].op_count != b.shape[1].op_count || b.shape[0].op_count == 0)
    return lp_error(diag, LP_LOC_FILE("--place"), "the stages of the model have no operators, or not the same ones");
  create_parts(&b);
  const double least_message = set_links(m);
  b.weight = create_things(&b, b.shape[0].weight_count);
  m->op_both = LP_NEW_ARRAY(arena, double, b.shape[0].op_count *LP_PLACES_MAX);
  m->op_moves = LP_NEW_ARRAY(arena, double, b.shape[0].op_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    m->op_ms[stage] = LP_NEW_ARRAY(arena, double, b.shape[stage].op_count *LP_PLACES_MAX);
    m->op_bytes[stage] = LP_NEW_ARRAY(arena, double, b.shape[stage].op_count *LP_PLACES_MAX);
    find_users(&b, stage);
    for (int32_t i = 0; i < b.shape[stage].op_count; i++)
      if (!b.shape[stage].ops[i].free) add_op(&b, stage, i);
    add_values(&b, stage);
    set_inner(&b, stage, least_message);
    m->result_bytes[stage] = b.shape[stage].result_bytes;
    m->has_result[stage] = b.shape[stage].result >= 0 && !b.shape[stage].ops[b.shape[stage].result].free;
  }
  LP_TRY(add_things(&b, diag));
  LP_TRY(add_states(&b, diag));
  set_objective(m);
  set_least_activation(m);
  set_grids(m);
  return LP_OK;
}

lp_compile_request lp_places_request_of(const lp_places_problem *problem, int place) {
  lp_compile_request own = *problem->request;
  own.cloud = problem->places->place[place].machine;
  own.link = problem->places->link[0][place];
  if (problem->places->place[place].dtype) own.dtype_cloud = problem->places->place[place].dtype;
  own.pin_count = 0; /* pins name places, not sides */
  own.code[LP_SIDE_CLOUD] = problem->places->place[place].code;
  own.code_lacks_bf16[LP_SIDE_CLOUD] = problem->places->place[place].lacks_bf16;
  return own;
}
