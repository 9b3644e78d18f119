/* What a placement comes to: every operator's time on its side, every message of the turns, memory, cost. */
#include "passes/plan_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  double busy_ms[LP_PLACE_COUNT];
  double link_ms, bytes_up, bytes_down;
  int64_t crossings, messages;
} stage_sum;

static double link_ms(const lp_request *request, lp_place from, double bytes) {
  if (!request->link) return 0;
  return from == LP_PLACE_DEVICE ? lp_link_up_ms(request->link, bytes) : lp_link_down_ms(request->link, bytes);
}

/* Free operators run on every side that needs them. */
void lp_plan_mark_needed(const lp_plan_problem *problem, const lp_place *side, unsigned char *needed) {
  static const unsigned char bit[LP_PLACE_COUNT] = {1 << LP_PLACE_DEVICE, 1 << LP_PLACE_CLOUD};
  for (int32_t i = 0; i < problem->op_count; i++) {
    needed[i] = 0;
    if (!problem->ops[i].free) needed[i] = bit[side[i]];
  }
  for (int32_t i = problem->edge_count; i-- > 0;) {
    const lp_plan_edge *edge = &problem->edges[i];
    if (edge->producer >= 0 && problem->ops[edge->producer].free) needed[edge->producer] |= needed[edge->consumer];
  }
}

static void sum_operators(const lp_plan_problem *problem, const lp_place *side, lp_arena *arena, stage_sum *sum) {
  unsigned char *needed = LP_NEW_ARRAY(arena, unsigned char, problem->op_count);
  lp_plan_mark_needed(problem, side, needed);
  for (int32_t i = 0; i < problem->op_count; i++)
    for (int place = 0; place < LP_PLACE_COUNT; place++)
      if (needed[i] & (1u << place)) sum->busy_ms[place] += problem->ops[i].ms[place];
}

/* Bytes of each turn's message; -1 where the turn sends nothing. A value goes once, however many read it. */
static void sum_messages(const lp_plan_problem *problem, const lp_place *side, const lp_request *request,
                         lp_arena *arena, stage_sum *sum) {
  lp_plan_order order;
  lp_plan_order_make(problem, side, arena, &order);
  double *message = LP_NEW_ARRAY(arena, double, order.turns + 1);
  bool *crossed = LP_NEW_ARRAY(arena, bool, problem->value_count);
  for (int32_t i = 0; i <= order.turns; i++)
    message[i] = -1;
  for (int32_t i = 0; i < problem->edge_count; i++) {
    const lp_plan_edge *edge = &problem->edges[i];
    if (crossed[edge->value] || problem->ops[edge->consumer].free) continue;
    if (edge->producer >= 0 && problem->ops[edge->producer].free) continue;
    lp_place from = edge->producer < 0 ? LP_PLACE_DEVICE : side[edge->producer];
    if (from == side[edge->consumer]) continue;
    crossed[edge->value] = true;
    int32_t turn = edge->producer < 0 ? 0 : order.turn[edge->producer];
    message[turn] = (message[turn] < 0 ? 0 : message[turn]) + edge->bytes;
    sum->crossings++;
  }
  if (problem->result >= 0 && side[problem->result] == LP_PLACE_CLOUD && !problem->ops[problem->result].free) {
    int32_t turn = order.turn[problem->result];
    message[turn] = (message[turn] < 0 ? 0 : message[turn]) + problem->result_bytes;
    sum->crossings++;
  }
  for (int32_t i = 0; i < order.turns; i++) {
    if (message[i] < 0) continue;
    lp_place from = i % 2 ? LP_PLACE_CLOUD : LP_PLACE_DEVICE;
    sum->link_ms += link_ms(request, from, message[i]);
    *(from == LP_PLACE_DEVICE ? &sum->bytes_up : &sum->bytes_down) += message[i];
    sum->messages++;
  }
}

/* ---- KV caches and memory ------------------------------------------------------------------------------------------ */

/* The side of each group of caches in a stage. */
static lp_place *state_sides(const lp_plan_problem *problem, const lp_place *side, lp_arena *arena) {
  lp_place *sides = LP_NEW_ARRAY(arena, lp_place, problem->state_count);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (problem->ops[i].state >= 0) sides[problem->ops[i].state] = side[i];
  return sides;
}

/* All moves of one direction travel as one message at the end of prefill, before the token. */
static void sum_moves(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_request *request,
                      lp_place *const side[LP_STAGE_COUNT], lp_arena *arena, lp_plan_result *out) {
  const lp_place *before = state_sides(&problem[LP_STAGE_PREFILL], side[LP_STAGE_PREFILL], arena);
  const lp_place *after = state_sides(&problem[LP_STAGE_DECODE], side[LP_STAGE_DECODE], arena);
  double bytes[LP_PLACE_COUNT] = {0, 0}; /* by the side they leave */
  for (int32_t i = 0; i < problem[0].state_count; i++)
    if (before[i] != after[i]) bytes[before[i]] += problem[0].state_prompt_size[i];
  for (int place = 0; place < LP_PLACE_COUNT; place++)
    if (bytes[place] > 0) out->kv_move_ms += link_ms(request, (lp_place)place, bytes[place]);
  out->ttft_ms += out->kv_move_ms;
  out->e2e_ms += out->kv_move_ms;
  out->bytes_up += bytes[LP_PLACE_DEVICE];
  out->bytes_down += bytes[LP_PLACE_CLOUD];
}

static void sum_weights(const lp_plan_problem problem[LP_STAGE_COUNT], lp_place *const side[LP_STAGE_COUNT],
                        lp_arena *arena, double total[LP_PLACE_COUNT]) {
  unsigned char *held = LP_NEW_ARRAY(arena, unsigned char, problem[0].weight_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    unsigned char *needed = LP_NEW_ARRAY(arena, unsigned char, problem[stage].op_count);
    lp_plan_mark_needed(&problem[stage], side[stage], needed);
    for (int32_t i = 0; i < problem[stage].op_count; i++)
      for (int32_t k = 0; k < problem[stage].ops[i].weight_count; k++)
        held[problem[stage].ops[i].weights[k]] |= needed[i];
  }
  for (int32_t i = 0; i < problem[0].weight_count; i++)
    for (int place = 0; place < LP_PLACE_COUNT; place++)
      if (held[i] & (1u << place)) total[place] += problem[0].weight_size[place][i];
}

/* Activations: twice what the largest operator reads and writes, a bound that plan-memory stays below. */
static double activation_bytes(const lp_plan_problem *problem, const lp_place *side, lp_place place) {
  double largest = 0;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *op = &problem->ops[i];
    if (op->free || side[i] != place || op->state >= 0) continue;
    largest = fmax(largest, op->bytes[place] - op->weight_bytes[place]);
  }
  return 2 * largest;
}

static void sum_memory(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_request *request,
                       lp_place *const side[LP_STAGE_COUNT], lp_arena *arena, lp_plan_result *out) {
  double weights[LP_PLACE_COUNT] = {0, 0}, total[LP_PLACE_COUNT];
  sum_weights(problem, side, arena, weights);
  for (int place = 0; place < LP_PLACE_COUNT; place++) {
    double activations = 0;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      activations = fmax(activations, activation_bytes(&problem[stage], side[stage], (lp_place)place));
    total[place] = weights[place] + activations;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_place *sides = state_sides(&problem[stage], side[stage], arena);
    const lp_place *earlier = stage ? state_sides(&problem[0], side[0], arena) : NULL;
    for (int32_t i = 0; i < problem[0].state_count; i++)
      if (!earlier || earlier[i] != sides[i])
        total[sides[i]] += problem[0].state_size[i] * lp_plan_sessions(request, sides[i]);
  }
  out->device_weight_bytes = weights[LP_PLACE_DEVICE];
  out->cloud_weight_bytes = weights[LP_PLACE_CLOUD];
  out->device_memory_bytes = total[LP_PLACE_DEVICE];
  out->cloud_memory_bytes = total[LP_PLACE_CLOUD];
}

/* ---- constraints ---------------------------------------------------------------------------------------------------- */

enum { CONSTRAINT_COUNT = 4 };

typedef struct {
  const char *name;
  double value, limit; /* limit 0: none */
} constraint;

double lp_plan_memory_limit(const lp_request *request, lp_place place) {
  if (place == LP_PLACE_DEVICE && request->device_memory > 0) return (double)request->device_memory;
  const struct lp_machine *machine = place == LP_PLACE_CLOUD ? request->cloud : request->device;
  return machine ? machine->figure[LP_HW_MEMORY] : 0;
}

static void list_constraints(const lp_plan_result *result, const lp_request *request,
                             constraint out[CONSTRAINT_COUNT]) {
  const constraint all[CONSTRAINT_COUNT] = {
      {"device_memory", result->device_memory_bytes, lp_plan_memory_limit(request, LP_PLACE_DEVICE)},
      {"cloud_memory", result->cloud_memory_bytes, lp_plan_memory_limit(request, LP_PLACE_CLOUD)},
      {"ttft", result->ttft_ms, request->ttft_ms},
      {"tpot", result->tpot_ms, request->tpot_ms}};
  memcpy(out, all, sizeof all);
}

/* The largest of value / limit: at most 1 when feasible. */
static double worst_ratio(const lp_plan_result *result, const lp_request *request, const char **name) {
  constraint all[CONSTRAINT_COUNT];
  list_constraints(result, request, all);
  double worst = 0;
  for (int i = 0; i < CONSTRAINT_COUNT; i++) {
    double ratio = all[i].limit > 0 ? all[i].value / all[i].limit : 0;
    if (ratio <= worst) continue;
    worst = ratio;
    *name = all[i].name;
  }
  return worst;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

static double price(const struct lp_machine *machine) {
  return machine ? machine->figure[LP_HW_PRICE] : 0;
}

static double power(const struct lp_machine *machine) {
  return machine ? machine->figure[LP_HW_POWER] : 0;
}

static void sum_request(const stage_sum sum[LP_STAGE_COUNT], const lp_request *request, lp_plan_result *out) {
  const stage_sum *first = &sum[LP_STAGE_PREFILL], *next = &sum[LP_STAGE_DECODE];
  double steps = lp_plan_steps(request, LP_STAGE_DECODE);
  out->prefill_device_ms = first->busy_ms[LP_PLACE_DEVICE];
  out->prefill_cloud_ms = first->busy_ms[LP_PLACE_CLOUD];
  out->prefill_link_ms = first->link_ms;
  out->decode_device_ms = next->busy_ms[LP_PLACE_DEVICE];
  out->decode_cloud_ms = next->busy_ms[LP_PLACE_CLOUD];
  out->decode_link_ms = next->link_ms;
  out->ttft_ms = out->prefill_device_ms + out->prefill_cloud_ms + out->prefill_link_ms;
  out->tpot_ms = out->decode_device_ms + out->decode_cloud_ms + out->decode_link_ms;
  out->crossings_prefill = first->crossings;
  out->crossings_decode = next->crossings;
  out->messages_prefill = first->messages;
  out->messages_decode = next->messages;
  out->bytes_up = first->bytes_up + steps * next->bytes_up;
  out->bytes_down = first->bytes_down + steps * next->bytes_down;
  out->device_busy_ms = out->prefill_device_ms + steps * out->decode_device_ms;
  out->cloud_busy_ms = out->prefill_cloud_ms +
                       steps * out->decode_cloud_ms / lp_plan_shared_runs(request, LP_STAGE_DECODE, LP_PLACE_CLOUD);
  out->cost_usd = 1e-3 * (out->cloud_busy_ms * price(request->cloud) + out->device_busy_ms * price(request->device));
  out->energy_j = 1e-3 * (out->cloud_busy_ms * power(request->cloud) + out->device_busy_ms * power(request->device));
  double tokens = (double)request->batch * (double)(request->osl > 0 ? request->osl : 1);
  out->cost_per_mtok_usd = out->cost_usd / tokens * 1e6;
  out->e2e_ms = out->ttft_ms + steps * out->tpot_ms;
}

void lp_plan_evaluate(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_request *request,
                      lp_place *const side[LP_STAGE_COUNT], lp_plan_result *out) {
  lp_arena *arena = lp_arena_create();
  stage_sum sum[LP_STAGE_COUNT] = {0};
  *out = (lp_plan_result){0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    sum_operators(&problem[stage], side[stage], arena, &sum[stage]);
    sum_messages(&problem[stage], side[stage], request, arena, &sum[stage]);
  }
  sum_request(sum, request, out);
  sum_moves(problem, request, side, arena, out);
  sum_memory(problem, request, side, arena, out);
  const char *binding = NULL;
  out->feasible = worst_ratio(out, request, &binding) <= 1;
  out->binding = out->feasible ? NULL : binding;
  lp_arena_free(arena);
}

static int compare_numbers(double a, double b) {
  return (a > b) - (a < b);
}

int lp_plan_compare(const lp_plan_result *a, const lp_plan_result *b, const lp_request *request) {
  if (a->feasible != b->feasible) return a->feasible ? -1 : 1;
  const char *name = NULL;
  if (!a->feasible) return compare_numbers(worst_ratio(a, request, &name), worst_ratio(b, request, &name));
  int order = compare_numbers(lp_plan_objective_value(a, request), lp_plan_objective_value(b, request));
  return order ? order : compare_numbers(a->e2e_ms, b->e2e_ms);
}
