#include "tests/passes/plan/random_plan.h"
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/objective.h"

#include <math.h>
#include <stdlib.h>

double random_plan_number(random_plan *plan) {
  plan->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
  uint64_t z = plan->state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int32_t below(random_plan *plan, int32_t count) {
  return (int32_t)(random_plan_number(plan) * count);
}

static bool chance(random_plan *plan, double share) {
  return random_plan_number(plan) < share;
}

static double between(random_plan *plan, double low, double high) {
  return low + (high - low) * random_plan_number(plan);
}

enum { MOST_OPS = 96 };

/* ---- operators --------------------------------------------------------------------------------------------------- */

/* `state`: the cache that it writes; -1: none */
static lp_op *dummy_op(random_plan *plan, int32_t state) {
  lp_op *op = LP_NEW(plan->arena, lp_op);
  op->kind = state >= 0 ? LP_OP_KV_APPEND : LP_OP_LINEAR;
  op->attr = LP_NEW(plan->arena, lp_attr);
  op->attr[0] = (lp_attr){.name = "state", .kind = LP_ATTR_I64, .i = state};
  op->attr_count = state >= 0;
  return op;
}

/* The form of a graph, which both stages share; sizes and times are each stage's own. */
typedef struct {
  int32_t count;
  bool free[MOST_OPS];
  int32_t state[MOST_OPS], in[MOST_OPS][2], in_count[MOST_OPS];
} form;

static form random_form(random_plan *plan, int32_t most) {
  form f = {.count = 2 + below(plan, most - 1)};
  bool caches = chance(plan, 0.6);
  for (int32_t i = 0; i < f.count; i++) {
    f.state[i] = -1;
    f.free[i] = i == 0 && chance(plan, 0.3);
    if (f.free[i]) continue;
    f.in_count[i] = 1 + below(plan, 2);
    for (int32_t k = 0; k < f.in_count[i]; k++)
      f.in[i][k] = i == 0 || chance(plan, 0.15) ? -1 : chance(plan, 0.6) ? i - 1 : below(plan, i);
    if (f.in_count[i] == 2 && f.in[i][0] == f.in[i][1]) f.in_count[i] = 1;
    if (caches && i > 0 && chance(plan, 0.4)) f.state[i] = below(plan, 2);
  }
  return f;
}

static int32_t add_op(form *f, int32_t left, int32_t right) {
  f->state[f->count] = -1;
  f->in_count[f->count] = right == left ? 1 : 2;
  f->in[f->count][0] = left;
  f->in[f->count][1] = right;
  return f->count++;
}

/* One operator, parallel branches that all read its result, and operators that join the branches in pairs. */
static form wide_form(random_plan *plan, int32_t branches, int32_t depth) {
  form f = {0};
  int32_t end[MOST_OPS], ends = branches, shared = add_op(&f, -1, -1);
  for (int32_t i = 0; i < branches; i++)
    end[i] = shared;
  for (int32_t level = 0; level < depth; level++)
    for (int32_t i = 0; i < branches; i++) {
      end[i] = add_op(&f, end[i], chance(plan, 0.2) ? shared : end[i]);
      if (level && chance(plan, 0.05)) f.state[f.count - 1] = below(plan, 2);
    }
  while (ends > 1) {
    for (int32_t i = 0; i < ends / 2; i++)
      end[i] = add_op(&f, end[2 * i], end[2 * i + 1]);
    if (ends % 2) end[ends / 2] = end[ends - 1];
    ends = (ends + 1) / 2;
  }
  return f;
}

static void fill_op(random_plan *plan, const form *f, int32_t index, lp_plan_op *out) {
  *out = (lp_plan_op){.op = dummy_op(plan, f->state[index]),
                      .state = f->state[index],
                      .layer = index / 2,
                      .free = f->free[index],
                      .pin = -1};
  double work = between(plan, 0.1, 2);
  out->ms[LP_SIDE_DEVICE] = work * between(plan, 1, 8);
  out->ms[LP_SIDE_CLOUD] = work * between(plan, 0.1, 1.2);
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    out->weight_bytes[side] = 0;
    out->bytes[side] = out->activation[side] = out->whole_activation[side] = between(plan, 0, 30);
  }
  if (!f->free[index] && chance(plan, 0.1)) out->pin = (int8_t)below(plan, 2);
  int32_t *weights = LP_NEW_ARRAY(plan->arena, int32_t, 2);
  weights[out->weight_count++] = index;
  if (chance(plan, 0.2)) weights[out->weight_count++] = f->count; /* one that several read */
  out->weights = weights;
}

static void fill_edges(random_plan *plan, const form *f, lp_plan_problem *out) {
  double bytes[MOST_OPS + 1];
  out->edges = LP_NEW_ARRAY(plan->arena, lp_plan_edge, 2 * f->count);
  for (int32_t i = 0; i <= f->count; i++)
    bytes[i] = between(plan, 0, 400);
  for (int32_t i = 0; i < f->count; i++)
    for (int32_t k = 0; k < f->in_count[i]; k++) {
      int32_t from = f->in[i][k];
      out->edges[out->edge_count++] =
          (lp_plan_edge){from, i, from + 1, from >= 0 && f->free[from] ? 0 : bytes[from + 1], NULL};
    }
}

static void fill_stage(random_plan *plan, const form *f, lp_stage stage) {
  lp_plan_problem *out = &plan->problem[stage];
  *out = (lp_plan_problem){.stage = stage,
                           .op_count = f->count,
                           .value_count = f->count + 1,
                           .layer_count = (f->count + 1) / 2,
                           .weight_count = f->count + 1,
                           .state_count = 2,
                           .result = f->count - 1,
                           .result_bytes = 4};
  out->ops = LP_NEW_ARRAY(plan->arena, lp_plan_op, f->count);
  for (int32_t i = 0; i < f->count; i++)
    fill_op(plan, f, i, &out->ops[i]);
  for (int32_t i = 0; i < f->count; i++) /* a cache binds its users to one side */
    for (int32_t k = 0; k < i; k++)
      if (f->state[i] >= 0 && f->state[k] == f->state[i]) out->ops[i].pin = out->ops[k].pin;
  fill_edges(plan, f, out);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void share_sizes(random_plan *plan, const form *f) {
  int32_t count = f->count;
  bool used[2] = {false};
  double *size[LP_SIDE_COUNT], *state = LP_NEW_ARRAY(plan->arena, double, 2);
  double *prompt = LP_NEW_ARRAY(plan->arena, double, 2);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    size[side] = LP_NEW_ARRAY(plan->arena, double, count + 1);
  for (int32_t i = 0; i <= count; i++) {
    size[0][i] = between(plan, 10, 100);
    size[1][i] = chance(plan, 0.5) ? size[0][i] : size[0][i] / 2;
  }
  for (int32_t i = 0; i < count; i++)
    if (f->state[i] >= 0) used[f->state[i]] = true;
  for (int32_t i = 0; i < 2; i++) {
    state[i] = used[i] ? between(plan, 10, 60) : 0;
    prompt[i] = state[i] * 0.75;
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    plan->problem[stage].state_prompt_size = prompt;
    for (int side = 0; side < LP_SIDE_COUNT; side++) {
      plan->problem[stage].state_size[side] = state;
      plan->problem[stage].weight_size[side] = size[side];
    }
  }
}

/* Limits between those that hardly any placement meets and those that all meet; some limits are absent. */
static void set_limits(random_plan *plan) {
  static const char *const objectives[] = {"cost",    "cost",   "cost",
                                           "latency", "energy", "cost+1e-6*latency+1e-6*energy"};
  lp_compile_request *r = &plan->request;
  double device[LP_STAGE_COUNT] = {0}, bytes = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < plan->problem[stage].op_count; i++)
      device[stage] += plan->problem[stage].ops[i].ms[LP_SIDE_DEVICE];
  for (int32_t i = 0; i < plan->problem[0].weight_count; i++)
    bytes += plan->problem[0].weight_size[LP_SIDE_DEVICE][i];
  if (chance(plan, 0.7)) r->ttft_ms = device[LP_STAGE_PREFILL] * between(plan, 0.3, 1.1);
  if (chance(plan, 0.8)) r->tpot_ms = device[LP_STAGE_DECODE] * between(plan, 0.3, 1.1);
  if (chance(plan, 0.5)) plan->device.figure[LP_HW_MEMORY] = bytes * between(plan, 0.3, 1.4);
  if (chance(plan, 0.2)) plan->cloud.figure[LP_HW_MEMORY] = bytes * between(plan, 0.3, 1.4);
  r->objective = objectives[below(plan, (int32_t)LP_COUNT(objectives))];
  if (chance(plan, 0.2)) r->sessions = 4;
}

static random_plan *create(uint64_t seed) {
  random_plan *plan = lp_alloc(sizeof *plan);
  plan->arena = lp_arena_create();
  plan->state = seed;
  plan->device = (lp_machine){.name = "device"};
  plan->cloud = (lp_machine){.name = "cloud"};
  plan->cloud.figure[LP_HW_PRICE] = between(plan, 1e-6, 1e-4);
  if (chance(plan, 0.2)) plan->device.figure[LP_HW_PRICE] = between(plan, 1e-7, 1e-5);
  plan->cloud.figure[LP_HW_POWER] = between(plan, 50, 400);
  plan->device.figure[LP_HW_POWER] = between(plan, 1, 30);
  plan->link.figure[LP_LINK_RTT] = chance(plan, 0.2) ? 0 : between(plan, 0, 3);
  plan->link.figure[LP_LINK_UP] = between(plan, 2e5, 1e7);
  plan->link.figure[LP_LINK_DOWN] = between(plan, 2e5, 1e7);
  plan->request = (lp_compile_request){.device = &plan->device,
                                       .cloud = &plan->cloud,
                                       .link = &plan->link,
                                       .isl = 4,
                                       .osl = 1 + below(plan, 20),
                                       .batch = 1,
                                       .generation = true};
  return plan;
}

static random_plan *fill_plan(random_plan *plan, const form *f) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    fill_stage(plan, f, (lp_stage)stage);
  share_sizes(plan, f);
  set_limits(plan);
  return plan;
}

random_plan *random_plan_create(uint64_t seed, int32_t most) {
  random_plan *plan = create(seed);
  form f = random_form(plan, most);
  return fill_plan(plan, &f);
}

random_plan *random_plan_create_wide(uint64_t seed, int32_t branches, int32_t depth) {
  random_plan *plan = create(seed);
  form f = wide_form(plan, branches, depth);
  return fill_plan(plan, &f);
}

void random_plan_free(random_plan *plan) {
  lp_arena_free(plan->arena);
  free(plan);
}

/* ---- every placement --------------------------------------------------------------------------------------------- */

/* The units of choice: operators that are not free, and all operators of a KV cache together. */
static int32_t list_choices(const lp_plan_problem *problem, int32_t choice[]) {
  int32_t count = 0, of_state[2] = {-1, -1};
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t state = problem->ops[i].state;
    choice[i] = -1;
    if (problem->ops[i].free) continue;
    choice[i] = state >= 0 && of_state[state] >= 0 ? of_state[state] : count++;
    if (state >= 0) of_state[state] = choice[i];
  }
  return count;
}

static bool fill(const lp_plan_problem *problem, const int32_t choice[], uint64_t bits, lp_side *side) {
  for (int32_t i = 0; i < problem->op_count; i++) {
    side[i] = choice[i] >= 0 && bits >> choice[i] & 1 ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    if (problem->ops[i].pin >= 0 && choice[i] >= 0 && problem->ops[i].pin != (int)side[i]) return false;
  }
  return true;
}

void random_plan_forbid_streams(random_plan *plan) {
  plan->problem[LP_STAGE_PREFILL].result = -1;
}

static bool is_within(const lp_plan_result *result, const random_plan *plan, double most) {
  return result->feasible && lp_plan_objective_value(result, &plan->request) <= most;
}

/* Tells whether a placement is wanted instead of the best one so far. An infinite `most` asks for the best one. */
static bool is_better(const lp_plan_result *result, const lp_plan_result *best, const random_plan *plan, double most) {
  if (isinf(most)) return lp_plan_compare(result, best, &plan->request) < 0;
  if (!is_within(result, plan, most)) return false;
  return !is_within(best, plan, most) || result->e2e_ms < best->e2e_ms;
}

static lp_plan_result try_all(random_plan *plan, double most) {
  lp_side *side[LP_STAGE_COUNT];
  int32_t choice[LP_STAGE_COUNT][16], count[LP_STAGE_COUNT];
  lp_plan_result best = {0};
  bool any = false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    side[stage] = LP_NEW_ARRAY(plan->arena, lp_side, 16);
    count[stage] = list_choices(&plan->problem[stage], choice[stage]);
  }
  for (uint64_t bits = 0; bits < (uint64_t)1 << (count[0] + count[1]); bits++) {
    lp_plan_result result;
    if (!fill(&plan->problem[0], choice[0], bits, side[0])) continue;
    if (!fill(&plan->problem[1], choice[1], bits >> count[0], side[1])) continue;
    lp_plan_evaluate(plan->problem, &plan->request, side, &result);
    if (any && !is_better(&result, &best, plan, most)) continue;
    any = true;
    best = result;
  }
  return best;
}

lp_plan_result random_plan_try_all(random_plan *plan) {
  return try_all(plan, INFINITY);
}

lp_plan_result random_plan_try_fastest(random_plan *plan, double most) {
  return try_all(plan, most);
}
