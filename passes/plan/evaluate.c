/* Evaluates a placement: every operator's time on its side, every message of the turns, memory, cost. */
#include "passes/plan/evaluate.h"
#include "base/side.h"
#include "passes/passes.h"
#include "passes/plan/device.h"
#include "passes/plan/exits.h"
#include "passes/plan/objective.h"
#include "passes/plan/plan.h"

#include <math.h>

/* The time of all messages of one direction: each message costs half a round trip, and their bytes cost the
 * bandwidth. */
static double link_ms(const lp_compile_request *request, lp_side from, double messages, double bytes) {
  if (!request->link || messages <= 0) return 0;
  if (from == LP_SIDE_DEVICE)
    return lp_link_up_ms(request->link, bytes) + (messages - 1) * lp_link_up_ms(request->link, 0);
  return lp_link_down_ms(request->link, bytes) + (messages - 1) * lp_link_down_ms(request->link, 0);
}

/* Free operators run on every side that needs them. */
void lp_plan_mark_needed(const lp_plan_problem *problem, const lp_side *side, unsigned char *needed) {
  static const unsigned char bit[LP_SIDE_COUNT] = {1 << LP_SIDE_DEVICE, 1 << LP_SIDE_CLOUD};
  for (int32_t i = 0; i < problem->op_count; i++) {
    needed[i] = 0;
    if (!problem->ops[i].free) needed[i] = bit[side[i]];
  }
  for (int32_t i = problem->edge_count; i-- > 0;) {
    const lp_plan_edge *edge = &problem->edges[i];
    if (edge->producer >= 0 && problem->ops[edge->producer].free) needed[edge->producer] |= needed[edge->consumer];
  }
}

static void hold_weights(const lp_plan_problem *problem, const unsigned char *needed, unsigned char *held) {
  for (int32_t i = 0; i < problem->op_count; i++)
    for (int32_t k = 0; k < problem->ops[i].weight_count; k++)
      held[problem->ops[i].weights[k]] |= needed[i];
}

/* Adds up times and weights of a stage. */
static void sum_operators(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena, unsigned char *held,
                          lp_plan_stage_sum *sum) {
  unsigned char *needed = LP_NEW_ARRAY(arena, unsigned char, problem->op_count);
  lp_plan_mark_needed(problem, side, needed);
  hold_weights(problem, needed, held);
  for (int32_t i = 0; i < problem->op_count; i++)
    for (int where = 0; where < LP_SIDE_COUNT; where++)
      if (needed[i] & (1u << where)) sum->busy_ms[where] += problem->ops[i].ms[where];
}

static lp_side producer_side(const lp_plan_edge *edge, const lp_side *side) {
  return edge->producer < 0 ? LP_SIDE_DEVICE : side[edge->producer];
}

void lp_plan_find_crossings(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena,
                            lp_plan_crossings *out) {
  int32_t *turn = LP_NEW_ARRAY(arena, int32_t, problem->op_count), turns = lp_plan_turns(problem, side, turn);
  bool *sends = LP_NEW_ARRAY(arena, bool, turns + 1), *crossed = LP_NEW_ARRAY(arena, bool, problem->value_count);
  *out = (lp_plan_crossings){.edge = LP_NEW_ARRAY(arena, bool, problem->edge_count)};
  for (int32_t i = 0; i < problem->edge_count; i++) {
    const lp_plan_edge *edge = &problem->edges[i];
    if (crossed[edge->value] || problem->ops[edge->consumer].free) continue;
    if (edge->producer >= 0 && problem->ops[edge->producer].free) continue;
    if (producer_side(edge, side) == side[edge->consumer]) continue;
    crossed[edge->value] = out->edge[i] = true;
    sends[edge->producer < 0 ? 0 : turn[edge->producer]] = true;
    out->count++;
  }
  if (problem->result >= 0 && side[problem->result] == LP_SIDE_CLOUD && !problem->ops[problem->result].free) {
    sends[turn[problem->result]] = true;
    out->result = true;
    out->count++;
  }
  for (int32_t i = 0; i < turns; i++)
    out->messages[i % 2 ? LP_SIDE_CLOUD : LP_SIDE_DEVICE] += sends[i];
}

static void sum_messages(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena, lp_plan_stage_sum *sum) {
  lp_plan_crossings crossings;
  lp_plan_find_crossings(problem, side, arena, &crossings);
  for (int32_t i = 0; i < problem->edge_count; i++)
    if (crossings.edge[i]) sum->bytes[producer_side(&problem->edges[i], side)] += problem->edges[i].bytes;
  if (crossings.result) sum->bytes[LP_SIDE_CLOUD] += problem->result_bytes;
  sum->crossings = crossings.count;
  for (int where = 0; where < LP_SIDE_COUNT; where++)
    sum->messages[where] = crossings.messages[where];
}

/* ---- KV caches and memory ---------------------------------------------------------------------------------------- */

lp_side *lp_plan_state_sides(const lp_plan_problem *problem, const lp_side *side, lp_arena *arena) {
  lp_side *sides = LP_NEW_ARRAY(arena, lp_side, problem->state_count);
  for (int32_t i = 0; i < problem->op_count; i++)
    if (problem->ops[i].state >= 0) sides[problem->ops[i].state] = side[i];
  return sides;
}

static void sum_moves(const lp_plan_problem *problem, const lp_side *before, const lp_side *after, lp_plan_sums *sums) {
  for (int32_t i = 0; i < problem->state_count; i++)
    if (before[i] != after[i]) sums->move_bytes[before[i]] += problem->state_prompt_size[i];
}

unsigned char *lp_plan_mark_weights(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT],
                                    lp_arena *arena) {
  unsigned char *held = LP_NEW_ARRAY(arena, unsigned char, problem[0].weight_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    unsigned char *needed = LP_NEW_ARRAY(arena, unsigned char, problem[stage].op_count);
    lp_plan_mark_needed(&problem[stage], side[stage], needed);
    hold_weights(&problem[stage], needed, held);
  }
  return held;
}

/* Activations: twice the bytes that the largest operator reads and writes. plan-memory stays below this bound. */
static void sum_activations(const lp_plan_problem *problem, const lp_side *side, double total[LP_SIDE_COUNT]) {
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *op = &problem->ops[i];
    if (op->free || op->state >= 0) continue;
    double bytes = 2 * op->activation[side[i]];
    if (bytes > total[side[i]]) total[side[i]] = bytes;
  }
}

static void sum_memory(const lp_plan_problem problem[LP_STAGE_COUNT], const unsigned char *held,
                       lp_side *const state_side[LP_STAGE_COUNT], lp_plan_sums *sums) {
  for (int32_t i = 0; i < problem[0].weight_count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      if (held[i] & (1u << side)) sums->weight_bytes[side] += problem[0].weight_size[side][i];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < problem[0].state_count; i++)
      if (!stage || state_side[0][i] != state_side[1][i])
        sums->cache_bytes[state_side[stage][i]] += problem[0].state_size[state_side[stage][i]][i];
}

/* ---- constraints ------------------------------------------------------------------------------------------------- */

const char *const lp_plan_limit_names[LP_LIMIT_COUNT] = {
    [LP_LIMIT_DEVICE_MEMORY] = "device_memory",
    [LP_LIMIT_CLOUD_MEMORY] = "cloud_memory",
    [LP_LIMIT_TTFT] = "ttft",
    [LP_LIMIT_TPOT] = "tpot",
};

double lp_plan_memory_limit(const lp_compile_request *request, lp_side side) {
  if (side == LP_SIDE_DEVICE && request->device_memory > 0) return (double)request->device_memory;
  const struct lp_machine *machine = side == LP_SIDE_CLOUD ? request->cloud : request->device;
  return machine ? machine->figure[LP_HW_MEMORY] : 0;
}

double lp_plan_strain(const lp_plan_result *result, const lp_compile_request *request, lp_plan_limit *out) {
  const struct {
    double value, limit; /* limit 0: none */
  } all[LP_LIMIT_COUNT] = {
      [LP_LIMIT_DEVICE_MEMORY] = {result->device_memory_bytes, lp_plan_memory_limit(request, LP_SIDE_DEVICE)},
      [LP_LIMIT_CLOUD_MEMORY] = {result->cloud_memory_bytes, lp_plan_memory_limit(request, LP_SIDE_CLOUD)},
      [LP_LIMIT_TTFT] = {result->ttft_ms, request->ttft_ms},
      [LP_LIMIT_TPOT] = {result->tpot_ms, request->tpot_ms},
  };
  double worst = 0;
  for (int i = 0; i < LP_LIMIT_COUNT; i++) {
    double ratio = all[i].limit > 0 ? all[i].value / all[i].limit : 0;
    if (ratio <= worst) continue;
    worst = ratio;
    *out = (lp_plan_limit)i;
  }
  return worst;
}

/* ---- the evaluation ---------------------------------------------------------------------------------------------- */

static double price(const struct lp_machine *machine) {
  return machine ? machine->figure[LP_HW_PRICE] : 0;
}

static double power(const struct lp_machine *machine) {
  return machine ? machine->figure[LP_HW_POWER] : 0;
}

static void sum_request(const lp_plan_stage_sum sum[LP_STAGE_COUNT], const double link[LP_STAGE_COUNT],
                        const lp_compile_request *request, lp_plan_result *out) {
  const lp_plan_stage_sum *first = &sum[LP_STAGE_PREFILL], *next = &sum[LP_STAGE_DECODE];
  double steps = lp_plan_steps(request, LP_STAGE_DECODE);
  out->prefill_device_ms = first->busy_ms[LP_SIDE_DEVICE];
  out->prefill_cloud_ms = first->busy_ms[LP_SIDE_CLOUD];
  out->decode_device_ms = next->busy_ms[LP_SIDE_DEVICE];
  out->decode_cloud_ms = next->busy_ms[LP_SIDE_CLOUD];
  out->prefill_link_ms = link[LP_STAGE_PREFILL];
  out->decode_link_ms = link[LP_STAGE_DECODE];
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    out->messages_prefill += (int64_t)first->messages[side];
    out->messages_decode += (int64_t)next->messages[side];
  }
  out->ttft_ms = out->prefill_device_ms + out->prefill_cloud_ms + out->prefill_link_ms;
  out->tpot_ms = out->decode_device_ms + out->decode_cloud_ms + out->decode_link_ms;
  out->crossings_prefill = first->crossings;
  out->crossings_decode = next->crossings;
  out->bytes_up = first->bytes[LP_SIDE_DEVICE] + steps * next->bytes[LP_SIDE_DEVICE];
  out->bytes_down = first->bytes[LP_SIDE_CLOUD] + steps * next->bytes[LP_SIDE_CLOUD];
  out->device_busy_ms = out->prefill_device_ms + steps * out->decode_device_ms;
  out->cloud_busy_ms = out->prefill_cloud_ms +
                       steps * out->decode_cloud_ms / lp_plan_shared_runs(request, LP_STAGE_DECODE, LP_SIDE_CLOUD);
  out->cost_usd = 1e-3 * (out->cloud_busy_ms * price(request->cloud) + out->device_busy_ms * price(request->device));
  out->energy_j = 1e-3 * (out->cloud_busy_ms * power(request->cloud) + out->device_busy_ms * power(request->device));
  double tokens = (double)request->batch * (double)(request->osl > 0 ? request->osl : 1);
  out->cost_per_mtok_usd = out->cost_usd / tokens * 1e6;
  out->e2e_ms = out->ttft_ms + steps * out->tpot_ms;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* Tells whether the stage takes one value from the device. */
static bool takes_one_input(const lp_plan_problem *problem) {
  int32_t value = -1;
  LP_FOR_EACH(const lp_plan_edge, edge, problem->edges, problem->edge_count) {
    if (edge->producer >= 0 || problem->ops[edge->consumer].free) continue;
    if (value >= 0 && edge->value != value) return false;
    value = edge->value;
  }
  return value >= 0;
}

static bool has_result(const lp_plan_problem *problem) {
  return problem->result >= 0 && !problem->ops[problem->result].free;
}

bool lp_plan_streams(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT]) {
  const lp_plan_problem *first = &problem[LP_STAGE_PREFILL], *next = &problem[LP_STAGE_DECODE];
  if (!has_result(first) || !has_result(next) || side[LP_STAGE_PREFILL][first->result] != LP_SIDE_CLOUD) return false;
  for (int32_t i = 0; i < next->op_count; i++)
    if (!next->ops[i].free && side[LP_STAGE_DECODE][i] != LP_SIDE_CLOUD) return false;
  return takes_one_input(next);
}

bool lp_plan_link_streams(const lp_plan_sums *sums, const lp_compile_request *request) {
  return sums->streams && request->link;
}

/* A token travels while the next one is made, and the cloud waits only where the link is slower than it is. A wait of
 * less than a thousandth is a difference of two times that are as good as equal. */
static double stall_ms(const lp_plan_sums *sums, const lp_compile_request *request) {
  const lp_plan_stage_sum *decode = &sums->stage[LP_STAGE_DECODE];
  lp_link link = *request->link;
  link.figure[LP_LINK_RTT] = 0;
  const double ms = lp_link_down_ms(&link, decode->bytes[LP_SIDE_CLOUD]), busy_ms = decode->busy_ms[LP_SIDE_CLOUD];
  return ms > 1.001 * busy_ms ? ms - busy_ms : 0;
}

static void follow_stream(const lp_plan_sums *sums, const lp_compile_request *request,
                          lp_plan_stage_sum sum[LP_STAGE_COUNT], double link[LP_STAGE_COUNT]) {
  lp_plan_stage_sum *decode = &sum[LP_STAGE_DECODE];
  if (!lp_plan_link_streams(sums, request)) return;
  decode->bytes[LP_SIDE_DEVICE] = decode->messages[LP_SIDE_DEVICE] = 0;
  decode->crossings = 1;
  link[LP_STAGE_DECODE] = stall_ms(sums, request);
}

bool lp_plan_may_stream(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                        double *stall) {
  lp_arena *arena = lp_arena_create();
  lp_side *side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    side[stage] = LP_NEW_ARRAY(arena, lp_side, problem[stage].op_count);
    for (int32_t i = 0; i < problem[stage].op_count; i++)
      side[stage][i] = LP_SIDE_CLOUD;
  }
  const lp_plan_sums sums = lp_plan_sum_up(problem, side);
  lp_arena_free(arena);
  const bool streams = lp_plan_link_streams(&sums, request);
  if (streams) *stall = stall_ms(&sums, request);
  return streams;
}

bool lp_plan_make_streamed(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                           lp_arena *arena, lp_plan_problem out[LP_STAGE_COUNT], double *stall) {
  if (!lp_plan_may_stream(problem, request, stall)) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *from = &problem[stage];
    out[stage] = *from;
    out[stage].ops = lp_arena_copy(arena, from->ops, (size_t)from->op_count * sizeof *from->ops);
    for (int32_t i = 0; i < from->op_count; i++) {
      lp_plan_op *op = &out[stage].ops[i];
      if (op->free || (stage == LP_STAGE_PREFILL && i != from->result)) continue;
      if (op->pin == LP_SIDE_DEVICE) return false;
      op->pin = LP_SIDE_CLOUD;
    }
  }
  lp_plan_problem *decode = &out[LP_STAGE_DECODE];
  int32_t kept = 0;
  lp_plan_edge *edges = LP_NEW_ARRAY(arena, lp_plan_edge, decode->edge_count);
  for (int32_t i = 0; i < decode->edge_count; i++)
    if (decode->edges[i].producer >= 0) edges[kept++] = decode->edges[i];
  decode->edges = edges;
  decode->edge_count = kept;
  decode->result = -1;
  return true;
}

/* Adds the moves of KV caches. The moves of one direction are one message at the end of prefill, before the token. */
static void add_moves(const double bytes[LP_SIDE_COUNT], const lp_compile_request *request, lp_plan_result *out) {
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    out->kv_move_ms += link_ms(request, (lp_side)side, bytes[side] > 0, bytes[side]);
  out->ttft_ms += out->kv_move_ms;
  out->e2e_ms += out->kv_move_ms;
  out->bytes_up += bytes[LP_SIDE_DEVICE];
  out->bytes_down += bytes[LP_SIDE_CLOUD];
}

void lp_plan_conclude(const lp_plan_sums *sums, const lp_compile_request *request, lp_plan_result *out) {
  double memory[LP_SIDE_COUNT], link[LP_STAGE_COUNT] = {0};
  lp_plan_stage_sum sum[LP_STAGE_COUNT];
  *out = (lp_plan_result){0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    sum[stage] = sums->stage[stage];
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      link[stage] += link_ms(request, (lp_side)side, sum[stage].messages[side], sum[stage].bytes[side]);
  }
  follow_stream(sums, request, sum, link);
  lp_plan_exits_follow(request, sum, link, out);
  sum_request((const lp_plan_stage_sum *)sum, link, request, out);
  add_moves(sums->move_bytes, request, out);
  lp_plan_device_share(request, out);
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    memory[i] = sums->weight_bytes[i] + sums->activation_bytes[i] +
                sums->cache_bytes[i] * lp_plan_sessions(request, (lp_side)i);
  out->device_weight_bytes = sums->weight_bytes[LP_SIDE_DEVICE];
  out->cloud_weight_bytes = sums->weight_bytes[LP_SIDE_CLOUD];
  out->device_memory_bytes = memory[LP_SIDE_DEVICE];
  out->cloud_memory_bytes = memory[LP_SIDE_CLOUD];
  lp_plan_limit binding = LP_LIMIT_NONE;
  out->feasible = lp_plan_strain(out, request, &binding) <= 1;
  out->binding = out->feasible ? LP_LIMIT_NONE : binding;
}

lp_plan_sums lp_plan_sum_up(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT]) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_plan_sums sums = {0};
  unsigned char *held = LP_NEW_ARRAY(arena, unsigned char, problem[0].weight_count);
  lp_side *state_side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    sum_operators(&problem[stage], side[stage], arena, held, &sums.stage[stage]);
    sum_messages(&problem[stage], side[stage], arena, &sums.stage[stage]);
    sum_activations(&problem[stage], side[stage], sums.activation_bytes);
    state_side[stage] = lp_plan_state_sides(&problem[stage], side[stage], arena);
  }
  sum_moves(&problem[0], state_side[0], state_side[1], &sums);
  sum_memory(problem, held, state_side, &sums);
  sums.streams = lp_plan_streams(problem, side);
  return sums;
}

void lp_plan_evaluate(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                      lp_side *const side[LP_STAGE_COUNT], lp_plan_result *out) {
  const lp_plan_sums sums = lp_plan_sum_up(problem, side);
  lp_plan_conclude(&sums, request, out);
}

double lp_plan_probability(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                           lp_side *const side[LP_STAGE_COUNT]) {
  if (!request->link || request->link->state_count == 0) return NAN;
  const lp_plan_sums sums = lp_plan_sum_up(problem, side);
  lp_compile_request changed = *request;
  int32_t met = 0;
  for (int32_t i = 0; i < request->link->state_count; i++) {
    const lp_link link = lp_link_in_state(request->link, i);
    lp_plan_result result;
    changed.link = &link;
    lp_plan_conclude(&sums, &changed, &result);
    met += !(request->ttft_ms > 0 && !(result.ttft_ms <= request->ttft_ms * (1 + 1e-9))) &&
           !(request->tpot_ms > 0 && !(result.tpot_ms <= request->tpot_ms * (1 + 1e-9)));
  }
  return (double)met / (double)request->link->state_count;
}

static int compare_numbers(double a, double b) {
  return (a > b) - (a < b);
}

int lp_plan_compare(const lp_plan_result *a, const lp_plan_result *b, const lp_compile_request *request) {
  if (a->feasible != b->feasible) return a->feasible ? -1 : 1;
  lp_plan_limit limit = LP_LIMIT_NONE;
  if (!a->feasible) return compare_numbers(lp_plan_strain(a, request, &limit), lp_plan_strain(b, request, &limit));
  int order = compare_numbers(lp_plan_objective_value(a, request), lp_plan_objective_value(b, request));
  return order ? order : compare_numbers(a->e2e_ms, b->e2e_ms);
}
