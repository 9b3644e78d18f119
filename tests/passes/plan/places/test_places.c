/* Plans over places: the evaluation equals that of two sides, and the search finds the optimum of all placements of
 * small chains, with bounds that hold. */
#include "base/side.h"
#include "passes/plan/objective.h"
#include "passes/plan/places/model.h"
#include "tests/passes/plan/random_plan.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 5, WEIGHTS = OPS + 2 };

/* A small chain over up to four places, the last two of which may be of one kind. */
typedef struct {
  random_plan *numbers; /* the source of random numbers, and the arena */
  lp_machine machine[4];
  lp_link link[4][4];
  lp_places places;
  lp_compile_request request;
  lp_plan_problem problem[4][LP_STAGE_COUNT];
  lp_places_problem all;
} chain;

static double between(chain *c, double low, double high) {
  return low + (high - low) * random_plan_number(c->numbers);
}

static bool chance(chain *c, double share) {
  return random_plan_number(c->numbers) < share;
}

static void fill_places(chain *c, int count, bool alike) {
  c->places.count = count;
  for (int p = 0; p < count; p++) {
    const bool copy = alike && p == count - 1;
    c->machine[p] = (lp_machine){.name = "machine"};
    c->machine[p].figure[LP_HW_PRICE] = p ? between(c, 1e-6, 1e-4) : chance(c, 0.3) ? between(c, 1e-7, 1e-5) : 0;
    c->machine[p].figure[LP_HW_POWER] = between(c, 1, 300);
    if (chance(c, 0.6)) c->machine[p].figure[LP_HW_MEMORY] = between(c, 60, 350);
    if (copy) c->machine[p] = c->machine[p - 1];
    c->places.place[p] =
        (lp_places_member){.name = "place", .machine = &c->machine[p], .kind = copy ? p - 1 : p, .member = copy};
  }
  for (int a = 0; a < count; a++)
    for (int b = a + 1; b < count; b++) {
      lp_link *link = &c->link[a][b];
      link->figure[LP_LINK_RTT] = chance(c, 0.2) ? 0 : between(c, 0, 3);
      link->figure[LP_LINK_UP] = between(c, 2e5, 1e7);
      link->figure[LP_LINK_DOWN] = alike && a == count - 2 ? link->figure[LP_LINK_UP] : between(c, 2e5, 1e7);
      const bool copy = alike && b == count - 1 && a < count - 2;
      c->places.link[a][b] = c->places.link[b][a] = copy ? &c->link[a][b - 1] : link;
      c->places.is_down[b][a] = true;
    }
}

/* Each operator reads the one before; with `branches`, some read an older one as well, so that parts have several
 * operators. */
static void fill_shape(chain *c, int stage, int32_t ops, bool branches, lp_plan_problem *out) {
  lp_plan_edge *edges = LP_NEW_ARRAY(c->numbers->arena, lp_plan_edge, 3 * OPS);
  *out = (lp_plan_problem){.stage = (lp_stage)stage,
                           .op_count = ops,
                           .value_count = OPS + 1,
                           .weight_count = WEIGHTS,
                           .state_count = OPS,
                           .layer_count = ops,
                           .result = ops - 1,
                           .result_bytes = 4,
                           .edges = edges};
  for (int32_t i = 1; i < ops; i++) { /* operator 0 is free and has no operands */
    const int32_t from = i == 1 ? -1 : i - 1;
    edges[out->edge_count++] = (lp_plan_edge){from, i, from + 1, between(c, 0, 400), NULL};
    if (i > 1) edges[out->edge_count++] = (lp_plan_edge){0, i, 1, 0, NULL};
    if (i > 3 && branches && chance(c, 0.5))
      edges[out->edge_count++] = (lp_plan_edge){i - 2, i, i - 1, between(c, 0, 400), NULL};
  }
  for (int32_t i = 0; i < out->edge_count; i++) /* a value has one size */
    for (int32_t k = 0; k < i; k++)
      if (edges[k].value == edges[i].value) edges[i].bytes = edges[k].bytes;
}

static void fill_ops(chain *c, int place, int stage, const int32_t state[OPS], const lp_plan_problem *shape) {
  lp_plan_problem *out = &c->problem[place][stage];
  *out = *shape;
  out->ops = LP_NEW_ARRAY(c->numbers->arena, lp_plan_op, out->op_count);
  for (int32_t i = 0; i < out->op_count; i++) {
    int32_t *weights = LP_NEW_ARRAY(c->numbers->arena, int32_t, 2);
    lp_op *op = LP_NEW(c->numbers->arena, lp_op);
    op->kind = state[i] >= 0 ? LP_OP_KV_APPEND : LP_OP_LINEAR;
    lp_plan_op *item = &out->ops[i];
    *item = (lp_plan_op){.op = op, .state = state[i], .layer = i, .free = i == 0, .pin = -1, .weights = weights};
    weights[item->weight_count++] = i;
    if (i == 1 || i == out->op_count - 1) weights[item->weight_count++] = OPS; /* tied */
    const double work = between(c, 0.1, 2);
    item->ms[LP_SIDE_DEVICE] = work * between(c, 1, 8);
    item->ms[LP_SIDE_CLOUD] = work * between(c, 0.1, 2);
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      item->bytes[side] = item->activation[side] = item->whole_activation[side] = between(c, 0, 30);
  }
}

/* The device's figures are the same beside each other place. */
static void copy_device(chain *c, int stage) {
  for (int p = 2; p < c->places.count; p++)
    for (int32_t i = 0; i < c->problem[p][stage].op_count; i++) {
      c->problem[p][stage].ops[i].ms[LP_SIDE_DEVICE] = c->problem[1][stage].ops[i].ms[LP_SIDE_DEVICE];
      c->problem[p][stage].ops[i].bytes[LP_SIDE_DEVICE] = c->problem[1][stage].ops[i].bytes[LP_SIDE_DEVICE];
      c->problem[p][stage].ops[i].activation[LP_SIDE_DEVICE] = c->problem[1][stage].ops[i].activation[LP_SIDE_DEVICE];
      c->problem[p][stage].ops[i].whole_activation[LP_SIDE_DEVICE] =
          c->problem[1][stage].ops[i].whole_activation[LP_SIDE_DEVICE];
    }
}

static void fill_sizes(chain *c) {
  double *weight[LP_SIDE_COUNT], *state = LP_NEW_ARRAY(c->numbers->arena, double, OPS);
  double *prompt = LP_NEW_ARRAY(c->numbers->arena, double, OPS);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    weight[side] = LP_NEW_ARRAY(c->numbers->arena, double, WEIGHTS);
  for (int32_t i = 0; i < WEIGHTS; i++) {
    weight[0][i] = between(c, 10, 90);
    weight[1][i] = chance(c, 0.5) ? weight[0][i] : weight[0][i] / 2;
  }
  for (int32_t i = 0; i < OPS; i++) {
    bool used = false;
    for (int32_t k = 0; k < c->problem[1][0].op_count; k++)
      used = used || c->problem[1][0].ops[k].state == i;
    state[i] = used ? between(c, 5, 40) : 0;
    prompt[i] = 0.75 * state[i];
  }
  for (int p = 1; p < c->places.count; p++)
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      c->problem[p][stage].state_prompt_size = prompt;
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        c->problem[p][stage].state_size[side] = state;
        c->problem[p][stage].weight_size[side] = weight[side];
      }
    }
}

static void fill_request(chain *c) {
  static const char *const objectives[] = {"cost", "cost", "latency", "energy", "cost+1e-6*latency"};
  double device[LP_STAGE_COUNT] = {0, 0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < c->problem[1][stage].op_count; i++)
      device[stage] += c->problem[1][stage].ops[i].ms[LP_SIDE_DEVICE];
  c->request = (lp_compile_request){.device = &c->machine[0],
                                    .cloud = &c->machine[1],
                                    .link = &c->link[0][1],
                                    .isl = 4,
                                    .osl = 1 + (int64_t)between(c, 0, 20),
                                    .batch = 1,
                                    .generation = true};
  const size_t choices = LP_COUNT(objectives);
  c->request.objective = objectives[(size_t)between(c, 0, (double)choices)];
  if (chance(c, 0.6)) c->request.ttft_ms = device[0] * between(c, 0.4, 1.3);
  if (chance(c, 0.7)) c->request.tpot_ms = device[1] * between(c, 0.4, 1.3);
  if (chance(c, 0.2)) c->request.sessions = 4;
}

static chain *chain_create(uint64_t seed, int places, int32_t ops, bool branches) {
  chain *c = lp_alloc(sizeof *c);
  *c = (chain){.numbers = random_plan_create(seed, 4)};
  const bool alike = places > 2 && chance(c, 0.5), caches = chance(c, 0.6);
  int32_t state[OPS];
  for (int32_t i = 0; i < OPS; i++)
    state[i] = i > 0 && caches && chance(c, 0.6) ? i : -1;
  fill_places(c, places, alike);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_plan_problem shape;
    if (stage == 0) fill_shape(c, stage, ops, branches, &shape);
    if (stage == 1) shape = c->problem[1][0]; /* the stages have the same edges */
    shape.stage = (lp_stage)stage;
    for (int p = 1; p < places; p++)
      if (alike && p == places - 1)
        c->problem[p][stage] = c->problem[p - 1][stage];
      else
        fill_ops(c, p, stage, state, &shape);
    copy_device(c, stage);
  }
  fill_sizes(c);
  fill_request(c);
  c->all = (lp_places_problem){.places = &c->places, .request = &c->request};
  for (int p = 0; p < places; p++)
    c->all.of[p] = c->problem[p ? p : 1];
  return c;
}

static void chain_free(chain *c) {
  random_plan_free(c->numbers);
  free(c);
}

static bool keeps_pins(const chain *c, uint8_t *const place[LP_STAGE_COUNT]) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 1; i < c->all.of[0][stage].op_count; i++)
      if (!(lp_places_allowed(&c->all, stage, i) >> place[stage][i] & 1)) return false;
  return true;
}

/* The best of all placements that keep the pins. Operator 0 is free. */
static lp_places_result try_all(const chain *c) {
  const int32_t ops = c->all.of[0][0].op_count, choices = 2 * (ops - 1);
  uint8_t first[OPS] = {0}, next[OPS] = {0}, *place[] = {first, next};
  lp_places_result best = {0};
  bool found = false;
  int64_t count = 1;
  for (int32_t i = 0; i < choices; i++)
    count *= c->places.count;
  for (int64_t number = 0; number < count; number++) {
    lp_places_result result;
    int64_t rest = number;
    for (int32_t i = 0; i < choices; i++, rest /= c->places.count)
      place[i % 2][1 + i / 2] = (uint8_t)(rest % c->places.count);
    if (!keeps_pins(c, place)) continue;
    lp_places_evaluate(&c->all, place, &result);
    if (!found || lp_places_compare(&c->all, &result, &best) < 0) best = result;
    found = true;
  }
  return best;
}

static bool is_near(double a, double b) {
  return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

static void solve(const chain *c, bool pairs, lp_places_plan *out) {
  const lp_places_options options = {.pairs = pairs};
  const lp_status status = lp_places_solve(&c->all, &options, c->numbers->arena, out, NULL);
  ck_assert_int_eq(status, out->result.feasible ? LP_OK : LP_INFEASIBLE);
  lp_places_result again;
  lp_places_evaluate(&c->all, out->place, &again);
  ck_assert(is_near(again.objective, out->result.objective));
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

START_TEST(evaluation_equals_that_of_two_sides) {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    random_plan *plan = random_plan_create(seed, 8);
    random_plan_forbid_streams(plan); /* which only two sides have */
    const lp_places places = {
        .place = {{.name = "a", .machine = &plan->device}, {.name = "b", .machine = &plan->cloud, .kind = 1}},
        .count = 2,
        .link = {{NULL, &plan->link}, {&plan->link, NULL}},
        .is_down = {{false, false}, {true, false}}};
    const lp_places_problem problem = {
        .places = &places, .request = &plan->request, .of = {plan->problem, plan->problem}};
    lp_side *side[LP_STAGE_COUNT];
    uint8_t *place[LP_STAGE_COUNT];
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      side[stage] = LP_NEW_ARRAY(plan->arena, lp_side, plan->problem[stage].op_count);
      place[stage] = LP_NEW_ARRAY(plan->arena, uint8_t, plan->problem[stage].op_count);
      for (int32_t i = 0; i < plan->problem[stage].op_count; i++) {
        place[stage][i] = random_plan_number(plan) < 0.5;
        side[stage][i] = place[stage][i] ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
      }
    }
    if (seed % 10 == 0) plan->request.osl = 0; /* only prefill */
    lp_plan_result wanted;
    lp_places_result found;
    lp_plan_evaluate(plan->problem, &plan->request, side, &wanted);
    lp_places_evaluate(&problem, place, &found);
    ck_assert(is_near(found.ttft_ms, wanted.ttft_ms) && is_near(found.tpot_ms, wanted.tpot_ms));
    ck_assert(is_near(found.cost_usd, wanted.cost_usd) && is_near(found.energy_j, wanted.energy_j));
    ck_assert(is_near(found.cost_per_mtok_usd, wanted.cost_per_mtok_usd));
    ck_assert(is_near(found.e2e_ms, wanted.e2e_ms) && is_near(found.kv_move_ms, wanted.kv_move_ms));
    ck_assert(is_near(found.memory_bytes[0], wanted.device_memory_bytes));
    ck_assert(is_near(found.memory_bytes[1], wanted.cloud_memory_bytes));
    ck_assert_int_eq(found.messages[1][0][1] + found.messages[1][1][0], (int)wanted.messages_decode);
    ck_assert_int_eq(found.feasible, wanted.feasible);
    random_plan_free(plan);
  }
}
END_TEST

/* With one operator in each part, the search is the whole problem. */
START_TEST(chains_have_the_optimum_of_all_placements) {
  int feasible = 0, infeasible = 0;
  for (uint64_t seed = 1; seed <= 120; seed++) {
    const int places = 3 + (seed % 3 == 0);
    chain *c = chain_create(seed, places, places == 4 ? 4 : 5, false);
    const lp_places_result best = try_all(c);
    lp_places_plan plan;
    solve(c, false, &plan);
    ck_assert_int_eq(plan.model->part_count, c->all.of[0][0].op_count - 1);
    ck_assert_msg(plan.result.feasible == best.feasible, "seed %d: feasible is %d", (int)seed, best.feasible);
    if (best.feasible) {
      ck_assert_msg(is_near(plan.result.objective, best.objective), "seed %d: %.12g, wanted %.12g", (int)seed,
                    plan.result.objective, best.objective);
      ck_assert(plan.complete && is_near(plan.lower_bound, best.objective));
      ck_assert(plan.dual_bound <= best.objective * (1 + 1e-9));
      feasible++;
    } else {
      ck_assert(isinf(plan.lower_bound)); /* that no plan meets the limits is proved */
      infeasible++;
    }
    chain_free(c);
  }
  ck_assert_int_gt(feasible, 60);
  ck_assert_int_gt(infeasible, 5);
}
END_TEST

/* Where parts have several operators, plans that divide them may be better. The bound counts these, too. */
START_TEST(bounds_hold_for_divided_parts) {
  int divided = 0;
  for (uint64_t seed = 1; seed <= 120; seed++) {
    chain *c = chain_create(seed, 3, 5, true);
    const lp_places_result best = try_all(c);
    lp_places_plan plan;
    solve(c, true, &plan);
    divided += plan.model->part_count < c->all.of[0][0].op_count - 1;
    if (best.feasible) ck_assert(plan.lower_bound <= best.objective * (1 + 1e-9));
    if (best.feasible) ck_assert(plan.dual_bound <= best.objective * (1 + 1e-9));
    if (plan.result.feasible) ck_assert(best.feasible && plan.result.objective >= best.objective * (1 - 1e-9));
    if (plan.complete) ck_assert(is_near(plan.result.objective, best.objective));
    for (int32_t i = 0; i < plan.pair_count; i++)
      ck_assert_int_le(lp_places_compare(&c->all, &plan.result, &plan.pair[i].result), 0);
    chain_free(c);
  }
  ck_assert_int_gt(divided, 40);
}
END_TEST

/* Pins some operators to some places, and tells machines of one kind apart where that is needed. */
static void pin_some(chain *c) {
  const int last = c->places.count - 1;
  const bool alike = c->places.place[last].member > 0, apart = chance(c, 0.5);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const int32_t ops = c->all.of[0][stage].op_count;
    uint8_t *allowed = LP_NEW_ARRAY(c->numbers->arena, uint8_t, ops);
    for (int32_t i = 0; i < ops; i++) {
      unsigned mask = (1U << c->places.count) - 1;
      if (chance(c, 0.5)) mask = 1U << (unsigned)between(c, 0, c->places.count);
      if (chance(c, 0.2)) mask |= 1U << (unsigned)between(c, 0, c->places.count);
      if (alike && !apart && mask >> (last - 1)) mask |= 3U << (last - 1);
      allowed[i] = (uint8_t)mask;
    }
    if (stage == 1) memcpy(allowed, c->all.allowed[0], (size_t)ops);
    c->all.allowed[stage] = allowed;
  }
  if (!apart) return;
  c->places.place[last].kind = last;
  c->places.place[last].member = 0;
}

/* Pins only forbid plans: none is cheaper than without them, and the bounds hold. */
START_TEST(pins_never_cost_less) {
  int feasible = 0, dearer = 0, conflicts = 0;
  for (uint64_t seed = 1; seed <= 160; seed++) {
    const bool branches = seed % 2;
    const int places = 3 + (seed % 4 == 0);
    chain *c = chain_create(seed, places, places == 4 ? 4 : 5, branches);
    lp_places_plan unpinned, plan;
    solve(c, true, &unpinned);
    pin_some(c);
    solve(c, true, &plan);
    const lp_places_result best = try_all(c);
    ck_assert(keeps_pins(c, plan.place));
    for (int32_t i = 0; i < plan.model->part_count; i++)
      conflicts += !plan.model->part[i].allowed[0];
    if (best.feasible) {
      ck_assert(unpinned.lower_bound <= best.objective * (1 + 1e-9));
      ck_assert_msg(plan.lower_bound <= best.objective * (1 + 1e-9), "seed %d: the bound is %.12g, a plan %.12g",
                    (int)seed, plan.lower_bound, best.objective);
      ck_assert(plan.dual_bound <= best.objective * (1 + 1e-9));
    }
    if (plan.result.feasible) {
      ck_assert(best.feasible && plan.result.objective >= best.objective * (1 - 1e-9));
      ck_assert(plan.result.objective >= unpinned.lower_bound * (1 - 1e-9));
      dearer += plan.result.objective > unpinned.result.objective * (1 + 1e-6);
      feasible++;
    }
    if (plan.complete) ck_assert(is_near(plan.result.objective, best.objective));
    if (!branches) ck_assert(plan.result.feasible == best.feasible && (plan.complete || !best.feasible));
    for (int32_t i = 0; i < plan.pair_count; i++)
      ck_assert_int_le(lp_places_compare(&c->all, &plan.result, &plan.pair[i].result), 0);
    chain_free(c);
  }
  ck_assert_int_gt(feasible, 40);
  ck_assert_int_gt(dearer, 30);
  ck_assert_int_gt(conflicts, 2);
}
END_TEST

START_TEST(two_places_cost_what_the_two_place_planner_finds) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    chain *c = chain_create(seed, 2, 5, false);
    c->problem[0][0].result = c->problem[1][0].result = -1; /* only the two-place planner knows of streams */
    lp_places_plan plan;
    lp_side *side[LP_STAGE_COUNT];
    lp_plan_result wanted;
    solve(c, false, &plan);
    const lp_status status = lp_plan_choose(c->problem[1], "exact", &c->request, side, NULL, c->numbers->arena, NULL);
    ck_assert(status == LP_OK || status == LP_INFEASIBLE);
    lp_plan_evaluate(c->problem[1], &c->request, side, &wanted);
    ck_assert_int_eq(plan.result.feasible, wanted.feasible);
    if (wanted.feasible) {
      ck_assert_msg(is_near(plan.result.objective, lp_plan_objective_value(&wanted, &c->request)),
                    "seed %d: %.12g, the two-place planner has %.12g", (int)seed, plan.result.objective,
                    lp_plan_objective_value(&wanted, &c->request));
      feasible++;
    }
    chain_free(c);
  }
  ck_assert_int_gt(feasible, 150);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("places");
  TCase *tests = tcase_create("places");
  tcase_set_timeout(tests, 0);
  tcase_add_test(tests, evaluation_equals_that_of_two_sides);
  tcase_add_test(tests, chains_have_the_optimum_of_all_placements);
  tcase_add_test(tests, bounds_hold_for_divided_parts);
  tcase_add_test(tests, pins_never_cost_less);
  tcase_add_test(tests, two_places_cost_what_the_two_place_planner_finds);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
