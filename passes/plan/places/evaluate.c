/* Prices a placement over any number of places, as evaluate.c of the planner does for two sides. */
#include "base/side.h"
#include "passes/plan/objective.h"
#include "passes/plan/places/model.h"

#include <math.h>

lp_side lp_places_side(int place) {
  return place == 0 ? LP_SIDE_DEVICE : LP_SIDE_CLOUD;
}

const lp_plan_op *lp_places_op(const lp_places_problem *problem, int place, int stage, int32_t index) {
  return &problem->of[place][stage].ops[index];
}

double lp_places_link_ms(const lp_places *places, int from, int to, double bytes) {
  const lp_link *link = places->link[from][to];
  if (!link || from == to) return 0;
  return places->is_down[from][to] ? lp_link_down_ms(link, bytes) : lp_link_up_ms(link, bytes);
}

double lp_places_memory(const lp_places_problem *problem, int place) {
  if (place == 0) return lp_plan_memory_limit(problem->request, LP_SIDE_DEVICE);
  return problem->places->place[place].machine->figure[LP_HW_MEMORY];
}

/* ---- operators and messages -------------------------------------------------------------------------------------- */

typedef struct {
  const lp_places_problem *problem;
  const lp_plan_problem *shape; /* of the stage: operators and edges, without figures */
  const uint8_t *place;
  int stage;
  lp_arena *arena;
  lp_places_result *out;
} pricer;

/* For each operator the places that run it; free operators run wherever they are needed. */
static uint8_t *mark_needed(const pricer *r) {
  uint8_t *needed = LP_NEW_ARRAY(r->arena, uint8_t, r->shape->op_count);
  for (int32_t i = 0; i < r->shape->op_count; i++)
    if (!r->shape->ops[i].free) needed[i] = (uint8_t)(1U << r->place[i]);
  for (int32_t i = r->shape->edge_count; i-- > 0;) {
    const lp_plan_edge *edge = &r->shape->edges[i];
    if (edge->producer >= 0 && r->shape->ops[edge->producer].free)
      needed[edge->producer] = (uint8_t)(needed[edge->producer] | needed[edge->consumer]);
  }
  return needed;
}

/* Adds up times; marks the weights that each place holds. */
static void sum_operators(const pricer *r, uint8_t *held) {
  const uint8_t *needed = mark_needed(r);
  for (int32_t i = 0; i < r->shape->op_count; i++) {
    const lp_plan_op *op = &r->shape->ops[i];
    for (int p = 0; p < r->problem->places->count; p++)
      if (needed[i] & (1U << p))
        r->out->busy_ms[r->stage][p] += lp_places_op(r->problem, p, r->stage, i)->ms[lp_places_side(p)];
    for (int32_t k = 0; k < op->weight_count; k++)
      held[op->weights[k]] = (uint8_t)(held[op->weights[k]] | needed[i]);
  }
}

/* A message is of a turn, from one place to another. A value crosses to a place once, however many operators there
 * read it. */
static void sum_messages(const pricer *r) {
  const int count = r->problem->places->count;
  int32_t *turn = LP_NEW_ARRAY(r->arena, int32_t, r->shape->op_count),
          turns = lp_plan_place_turns(r->shape, r->place, turn);
  bool *sends = LP_NEW_ARRAY(r->arena, bool, (turns + 1) * count * count);
  uint8_t *crossed = LP_NEW_ARRAY(r->arena, uint8_t, r->shape->value_count);
  LP_FOR_EACH(const lp_plan_edge, edge, r->shape->edges, r->shape->edge_count) {
    if (r->shape->ops[edge->consumer].free || (edge->producer >= 0 && r->shape->ops[edge->producer].free)) continue;
    int from = edge->producer < 0 ? 0 : r->place[edge->producer], to = r->place[edge->consumer];
    if (from == to || (crossed[edge->value] & (1U << to))) continue;
    crossed[edge->value] = (uint8_t)(crossed[edge->value] | (1U << to));
    sends[((edge->producer < 0 ? 0 : turn[edge->producer]) * count + from) * count + to] = true;
    r->out->bytes[r->stage][from][to] += edge->bytes;
  }
  const int32_t result = r->shape->result;
  if (result >= 0 && r->place[result] != 0 && !r->shape->ops[result].free) {
    sends[(turn[result] * count + r->place[result]) * count] = true;
    r->out->bytes[r->stage][r->place[result]][0] += r->shape->result_bytes;
  }
  for (int32_t i = 0; i < turns * count * count; i++)
    r->out->messages[r->stage][i / count % count][i % count] += sends[i];
}

/* All messages of one direction: each costs a constant, and their bytes the bandwidth. */
static double link_ms(const lp_places *places, int from, int to, double messages, double bytes) {
  if (messages <= 0) return 0;
  return lp_places_link_ms(places, from, to, bytes) + (messages - 1) * lp_places_link_ms(places, from, to, 0);
}

/* ---- caches and memory ------------------------------------------------------------------------------------------- */

static void find_states(const pricer *r, uint8_t *at) {
  for (int32_t i = 0; i < r->shape->op_count; i++)
    if (r->shape->ops[i].state >= 0) at[r->shape->ops[i].state] = r->place[i];
}

static void sum_activations(const pricer *r, double total[LP_PLACES_MAX]) {
  for (int32_t i = 0; i < r->shape->op_count; i++) {
    const int p = r->place[i];
    const lp_side side = lp_places_side(p);
    const lp_plan_op *op = lp_places_op(r->problem, p, r->stage, i);
    if (!op->free && op->state < 0) total[p] = fmax(total[p], 2 * op->whole_activation[side]);
  }
}

static void sum_memory(const lp_places_problem *problem, const uint8_t *held, uint8_t *const state[LP_STAGE_COUNT],
                       const double activation[LP_PLACES_MAX], lp_places_result *out) {
  for (int p = 0; p < problem->places->count; p++) {
    const lp_plan_problem *own = problem->of[p];
    const lp_side side = lp_places_side(p);
    double caches = 0;
    for (int32_t i = 0; i < own->weight_count; i++)
      if (held[i] & (1U << p)) out->weight_bytes[p] += own->weight_size[side][i];
    for (int32_t i = 0; i < own->state_count; i++)
      if (state[0][i] == p || state[1][i] == p) caches += own->state_size[side][i];
    out->memory_bytes[p] = out->weight_bytes[p] + activation[p] + caches * lp_plan_sessions(problem->request, side);
  }
}

static void sum_moves(const lp_places_problem *problem, uint8_t *const state[LP_STAGE_COUNT], lp_places_result *out) {
  const lp_places *places = problem->places;
  for (int32_t i = 0; i < problem->of[0]->state_count; i++)
    if (state[0][i] != state[1][i]) out->move_bytes[state[0][i]][state[1][i]] += problem->of[0]->state_prompt_size[i];
  for (int from = 0; from < places->count; from++)
    for (int to = 0; to < places->count; to++)
      out->kv_move_ms += link_ms(places, from, to, out->move_bytes[from][to] > 0, out->move_bytes[from][to]);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The largest value / limit over all constraints, and the constraint; -1: there is no limit. */
static double strain_of(const lp_places_problem *problem, const lp_places_result *result, int32_t *binding) {
  double worst = 0;
  *binding = -1;
  for (int32_t i = 0; i < LP_PLACES_LIMITS; i++) {
    double value = 0, limit = 0;
    if (i == LP_PLACES_TTFT)
      value = result->ttft_ms, limit = problem->request->ttft_ms;
    else if (i == LP_PLACES_TPOT)
      value = result->tpot_ms, limit = problem->request->tpot_ms;
    else if (i < problem->places->count)
      value = result->memory_bytes[i], limit = lp_places_memory(problem, i);
    if (!(limit > 0) || value / limit <= worst) continue;
    worst = value / limit;
    *binding = i;
  }
  return worst;
}

static void conclude(const lp_places_problem *problem, lp_places_result *out) {
  const lp_places *places = problem->places;
  const lp_compile_request *request = problem->request;
  const double steps = lp_plan_steps(request, LP_STAGE_DECODE);
  double total[LP_STAGE_COUNT] = {0, 0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int from = 0; from < places->count; from++)
      for (int to = 0; to < places->count; to++)
        out->link_ms[stage] += link_ms(places, from, to, out->messages[stage][from][to], out->bytes[stage][from][to]);
    for (int p = 0; p < places->count; p++)
      total[stage] += out->busy_ms[stage][p];
    total[stage] += out->link_ms[stage];
  }
  for (int p = 0; p < places->count; p++) {
    const lp_machine *machine = places->place[p].machine;
    out->request_ms[p] =
        out->busy_ms[LP_STAGE_PREFILL][p] +
        steps * out->busy_ms[LP_STAGE_DECODE][p] / lp_plan_shared_runs(request, LP_STAGE_DECODE, lp_places_side(p));
    out->cost_usd += 1e-3 * out->request_ms[p] * machine->figure[LP_HW_PRICE];
    out->energy_j += 1e-3 * out->request_ms[p] * machine->figure[LP_HW_POWER];
  }
  out->ttft_ms = total[LP_STAGE_PREFILL] + out->kv_move_ms;
  out->tpot_ms = total[LP_STAGE_DECODE];
  out->e2e_ms = out->ttft_ms + steps * out->tpot_ms;
  out->cost_per_mtok_usd =
      out->cost_usd / ((double)request->batch * (double)(request->osl > 0 ? request->osl : 1)) * 1e6;
  const lp_plan_result figures = {.cost_usd = out->cost_usd, .e2e_ms = out->e2e_ms, .energy_j = out->energy_j};
  out->objective = lp_plan_objective_value(&figures, request);
  int32_t binding = -1;
  out->feasible = strain_of(problem, out, &binding) <= 1;
  out->binding = out->feasible ? -1 : binding;
}

void lp_places_evaluate(const lp_places_problem *problem, uint8_t *const place[LP_STAGE_COUNT], lp_places_result *out) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  uint8_t *held = LP_NEW_ARRAY(arena, uint8_t, problem->of[0]->weight_count), *state[LP_STAGE_COUNT];
  double activation[LP_PLACES_MAX] = {0};
  *out = (lp_places_result){0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const pricer r = {problem, &problem->of[0][stage], place[stage], stage, arena, out};
    state[stage] = LP_NEW_ARRAY(arena, uint8_t, problem->of[0]->state_count);
    sum_operators(&r, held);
    sum_messages(&r);
    find_states(&r, state[stage]);
    sum_activations(&r, activation);
  }
  sum_memory(problem, held, state, activation, out);
  sum_moves(problem, state, out);
  conclude(problem, out);
}

static int compare_numbers(double a, double b) {
  return (a > b) - (a < b);
}

int lp_places_compare(const lp_places_problem *problem, const lp_places_result *a, const lp_places_result *b) {
  int32_t binding;
  if (a->feasible != b->feasible) return a->feasible ? -1 : 1;
  if (!a->feasible) return compare_numbers(strain_of(problem, a, &binding), strain_of(problem, b, &binding));
  int order = compare_numbers(a->objective, b->objective);
  return order ? order : compare_numbers(a->e2e_ms, b->e2e_ms);
}
