/* The exact scheduler: it equals an exhaustive search where that is possible, and is never worse than another
 * scheduler. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/objective.h"
#include "passes/plan/pin.h"
#include "passes/plan/schedulers.h"
#include "tests/passes/plan/llama_study.h"
#include "tests/passes/plan/random_plan.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

LP_CASE(.timeout = 120);

static lp_plan_result plan_with(random_plan *plan, const char *scheduler, lp_plan_proof *proof) {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  lp_status status = lp_plan_choose(plan->problem, scheduler, &plan->request, side, proof, plan->arena, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  lp_plan_evaluate(plan->problem, &plan->request, side, &result);
  return result;
}

enum { GRAPHS = 300, MOST_OPS = 7 };

LP_TEST(equals_trying_everything) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_proof proof;
    lp_plan_result best = random_plan_try_all(plan), found = plan_with(plan, "exact", &proof);
    double wanted = lp_plan_objective_value(&best, &plan->request);
    double have = lp_plan_objective_value(&found, &plan->request);
    ck_assert_msg(found.feasible == best.feasible, "seed %d: feasible %d, wanted %d", (int)seed, found.feasible,
                  best.feasible);
    if (best.feasible) {
      feasible++;
      ck_assert_msg(fabs(have - wanted) <= 1e-9 * wanted, "seed %d: %.12g, wanted %.12g", (int)seed, have, wanted);
      ck_assert(proof.known && proof.complete);
      ck_assert_double_le(proof.dual_bound, wanted * (1 + 1e-9));
      ck_assert(fabs(proof.lower_bound - wanted) <= 1e-9 * wanted);
    }
    random_plan_free(plan);
  }
  ck_assert_int_ge(feasible, 200);
}

/* The seeds of random cases begin after the first of these; the soak has all of them, else a quarter is taken. */
enum { SEEDS_FROM = 1000, SEEDS = 1000 };
static uint64_t last_seed(void) {
  return SEEDS_FROM + (lp_part("soak") ? SEEDS : SEEDS / 4);
}

/* It finds a feasible plan if another scheduler does, at no higher cost. */
LP_TEST(is_never_worse_than_any_other) {
  static const char *const others[] = {"greedy", "layer", "cloud-only", "device-only"};
  for (uint64_t seed = SEEDS_FROM + 1; seed <= last_seed(); seed++) {
    random_plan *plan = random_plan_create(seed, 12);
    lp_plan_result found = plan_with(plan, "exact", NULL);
    for (size_t i = 0; i < LP_COUNT(others); i++) {
      lp_plan_result other = plan_with(plan, others[i], NULL);
      double least = lp_plan_objective_value(&other, &plan->request),
             have = lp_plan_objective_value(&found, &plan->request);
      ck_assert_msg(!other.feasible || found.feasible, "seed %d: %s is feasible", (int)seed, others[i]);
      ck_assert_msg(!other.feasible || have <= least * (1 + 1e-12), "seed %d: %s is better", (int)seed, others[i]);
    }
    random_plan_free(plan);
  }
}

/* Makes Algorithm 1 feasible: gives it limits of TTFT and TPOT in steps up to the true ones, and takes the cheapest of
 * its plans and cloud-only that meets the true limits with communication and memory. */
static bool greedy_made_feasible(random_plan *plan, double *cost) {
  enum { STEPS = 50 };
  lp_plan_result best = plan_with(plan, "cloud-only", NULL);
  const double bound_ms[LP_STAGE_COUNT] = {plan->request.ttft_ms, plan->request.tpot_ms};
  lp_side *side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(plan->arena, lp_side, plan->problem[stage].op_count);
  for (int i = 1; i <= STEPS; i++) {
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      (void)lp_greedy_place_stage(&plan->problem[stage], bound_ms[stage] * i / (double)STEPS, side[stage]);
      lp_plan_settle(&plan->problem[stage], side[stage]);
    }
    lp_plan_result result;
    lp_plan_evaluate(plan->problem, &plan->request, side, &result);
    if (lp_plan_compare(&result, &best, &plan->request) < 0) best = result;
  }
  *cost = best.cost_usd;
  return best.feasible;
}

/* Random cases with a round trip of 1 ms or more: feasible whenever the cloud by itself is, and at least 15 % cheaper
 * on average than Algorithm 1 made feasible. */
LP_TEST(is_cheaper_than_algorithm_1) {
  double saved = 0;
  int cases = 0;
  for (uint64_t seed = SEEDS_FROM + 1; seed <= last_seed(); seed++) {
    random_plan *plan = random_plan_create(seed, 12);
    plan->link.figure[LP_LINK_RTT] = 1 + 9 * random_plan_number(plan);
    plan->request.objective = "cost";
    lp_plan_result found = plan_with(plan, "exact", NULL), cloud = plan_with(plan, "cloud-only", NULL);
    ck_assert_msg(found.feasible || !cloud.feasible, "seed %d: the cloud alone is feasible", (int)seed);
    double greedy = 0;
    if (greedy_made_feasible(plan, &greedy)) {
      ck_assert(found.feasible);
      ck_assert_double_le(found.cost_usd, greedy * (1 + 1e-12));
      saved += greedy > 0 ? 1 - found.cost_usd / greedy : 0;
      cases++;
    }
    random_plan_free(plan);
  }
  printf("%.1f %% cheaper than Algorithm 1 made feasible, mean of %d cases\n", 100 * saved / cases, cases);
  ck_assert_uint_ge((uint64_t)cases, (last_seed() - SEEDS_FROM) * 3 / 10);
  ck_assert_double_ge(saved / cases, 0.15);
}

/* The check value of the planner's goals counts only linear and attention operators. */
LP_TEST(reaches_the_check_value) {
  llama_study s = llama_study_open_7b(2, "snapdragon-8s-gen3-p1,compute_utilisation=0.39,memory_utilisation=0.39",
                                      "a100-p1,compute_utilisation=0.8,memory_utilisation=0.8",
                                      "rtt=0,up=100Mbit/s,down=100Mbit/s");
  s.request.tpot_ms = 20;
  s.request.osl = 1; /* kv 512 in decode */
  ck_assert_int_eq(lp_plan_build(s.module, &s.request, s.arena, s.problem, NULL), LP_OK);
  s.request.osl = 2;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s.problem[stage].op_count; i++) {
      lp_plan_op *op = &s.problem[stage].ops[i];
      bool counted = op->op->kind == LP_OP_LINEAR || op->op->kind == LP_OP_ATTENTION;
      for (int where = 0; where < LP_SIDE_COUNT && !counted; where++)
        op->ms[where] = 0;
    }
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  ck_assert_int_eq(lp_plan_choose(s.problem, "exact", &s.request, side, NULL, s.arena, NULL), LP_OK);
  lp_plan_evaluate(s.problem, &s.request, side, &result);
  ck_assert_double_eq_tol(result.decode_cloud_ms, 0.3266548700, 1e-9);
  ck_assert_double_eq_tol(result.tpot_ms, 19.5949248, 1e-6);
  llama_study_close(&s);
}

/* The planner finds plans and the checker proves them: plans are compared with the cheapest one known, whose cost a
 * longer search found and proved to within 0.7 %. */
static void expect_cost(const lp_plan_result *result, double cheapest) {
  ck_assert(result->feasible);
  ck_assert_double_le(result->cost_usd, 1.005 * cheapest);
}

LP_TEST(plans_80_layers) {
  llama_study s = llama_study_open_7b(80, "snapdragon-8s-gen3-p1", "a100,price_usd_per_s=4e-5", "lan");
  s.request.ttft_ms = 400;
  s.request.tpot_ms = 100;
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_proof proof;
  ck_assert_int_eq(lp_plan_choose(s.problem, "exact", &s.request, side, &proof, s.arena, NULL), LP_OK);
  lp_plan_result result;
  lp_plan_evaluate(s.problem, &s.request, side, &result);
  expect_cost(&result, 4.47529936e-6);
  ck_assert(proof.known);
  ck_assert_double_le(lp_plan_gap(&proof, &result, &s.request), 0.05);
  llama_study_close(&s);
}

/* The TTFT limit is a hundredth of the way from the fastest plan's to the cheapest's: plans that are good at the
 * search's prices break it. */
LP_TEST(finds_a_plan_where_limits_are_tight) {
  llama_study s =
      llama_study_open_7b(32, "snapdragon-8s-gen3-p1,memory=24GiB", "a100,price_usd_per_s=4e-5", "loopback");
  s.request.isl = 2048;
  s.request.osl = 128;
  s.request.sessions = 64;
  s.request.device_memory = (int64_t)24 << 30;
  s.request.ttft_ms = 1732.4;
  s.request.tpot_ms = 42.57;
  ck_assert_int_eq(lp_plan_build(s.module, &s.request, s.arena, s.problem, NULL), LP_OK);
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result cheapest, fastest;
  ck_assert_int_eq(lp_plan_choose(s.problem, "exact", &s.request, side, NULL, s.arena, NULL), LP_OK);
  lp_plan_evaluate(s.problem, &s.request, side, &cheapest);
  s.request.objective = "latency";
  ck_assert_int_eq(lp_plan_choose(s.problem, "exact", &s.request, side, NULL, s.arena, NULL), LP_OK);
  lp_plan_evaluate(s.problem, &s.request, side, &fastest);
  ck_assert(cheapest.feasible && fastest.feasible);
  ck_assert_double_lt(cheapest.cost_usd, fastest.cost_usd);
  llama_study_close(&s);
}

/* Plans the study's request again, since its numbers have changed. */
static void expect_plan(llama_study *s, double cheapest) {
  ck_assert_int_eq(lp_plan_build(s->module, &s->request, s->arena, s->problem, NULL), LP_OK);
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  ck_assert_int_eq(lp_plan_choose(s->problem, "exact", &s->request, side, NULL, s->arena, NULL), LP_OK);
  lp_plan_evaluate(s->problem, &s->request, side, &result);
  expect_cost(&result, cheapest);
}

/* Decode's best plan goes from side to side in each layer, over a link that is hardly slower than a side's memory. */
LP_TEST(finds_plans_that_often_change_sides) {
  llama_study s = llama_study_open_7b(8, "jetson-orin", "h100", "loopback");
  s.request.isl = 8192;
  s.request.osl = 128;
  s.request.ttft_ms = 1345;
  s.request.tpot_ms = 22.1;
  expect_plan(&s, 1.05386069e-4);
  llama_study_close(&s);
}

/* Decode's limit has time for four messages over LTE, and memory is scarce: plans of two and of four messages have the
 * least bounds of all, so that leaving out those of none gains nothing. */
LP_TEST(finds_plans_of_few_messages) {
  llama_study s = llama_study_open_7b(6, "snapdragon-8s-gen3-p1", "a100", "lte");
  s.request.isl = 2048;
  s.request.osl = 128;
  s.request.ttft_ms = 5600;
  s.request.tpot_ms = 112.94;
  s.request.device_memory = 1691143373;
  expect_plan(&s, 1.37827444e-4);
  llama_study_close(&s);
}

/* The plan of a llama of `layers` layers on a snapdragon and an a100 with so much memory on the device. */
static lp_plan_result plan_with_memory(int64_t layers, double ttft_ms, double tpot_ms, double bytes) {
  llama_study s = llama_study_open_7b(layers, "snapdragon-8s-gen3-p1", "a100", "lan");
  s.request.osl = 128;
  s.request.ttft_ms = ttft_ms;
  s.request.tpot_ms = tpot_ms;
  s.request.device_memory = (int64_t)bytes;
  ck_assert_int_eq(lp_plan_build(s.module, &s.request, s.arena, s.problem, NULL), LP_OK);
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  ck_assert_int_eq(lp_plan_choose(s.problem, "exact", &s.request, side, NULL, s.arena, NULL), LP_OK);
  lp_plan_evaluate(s.problem, &s.request, side, &result);
  llama_study_close(&s);
  return result;
}

/* Cuts give a memory a price, but the best plan keeps its limit anyway: it is found as without a limit. */
LP_TEST(memory_that_hardly_binds_changes_no_plan) {
  const lp_plan_result ample = plan_with_memory(8, 150, 38, 64.0 * (1 << 30));
  expect_cost(&ample, 7.93264694e-5);
  const lp_plan_result limited = plan_with_memory(8, 150, 38, 1.05 * ample.device_memory_bytes);
  ck_assert_double_le(fabs(limited.cost_usd - ample.cost_usd), 1e-9 * ample.cost_usd);
}

/* The same in more layers, first where the memory has no price, then where it has one. Takes minutes under
 * AddressSanitizer. */
#if !defined(__SANITIZE_ADDRESS__)
LP_TEST(enough_memory_changes_no_plan) {
  static const double gib[] = {24, 12, 11.5};
  for (size_t i = 0; i < LP_COUNT(gib); i++) {
    const lp_plan_result plan = plan_with_memory(32, 600, 150, gib[i] * (1 << 30));
    expect_cost(&plan, 2.34692129e-4);
  }
}
#endif

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

typedef struct {
  llama_study *study;
  lp_side *side[LP_STAGE_COUNT];
  double best;                         /* objective of the cheapest pair of blocks that is feasible; infinite: none */
  lp_exact_block pair[LP_STAGE_COUNT]; /* that pair */
  int shown;
} block_watcher;

static double see_blocks(void *user, const lp_exact_block block[LP_STAGE_COUNT]) {
  block_watcher *w = user;
  lp_plan_result result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    for (int32_t i = 0; i < w->study->problem[stage].op_count; i++) {
      const int32_t slice = block[stage].slice[i];
      bool inside = slice >= block[stage].from && slice < block[stage].to;
      w->side[stage][i] = inside == block[stage].cloud ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
    lp_plan_settle(&w->study->problem[stage], w->side[stage]);
  }
  lp_plan_evaluate(w->study->problem, &w->study->request, w->side, &result);
  w->shown++;
  const double objective = lp_plan_objective_value(&result, &w->study->request);
  if (!result.feasible || objective >= w->best) return w->best;
  w->best = objective;
  memcpy(w->pair, block, sizeof w->pair);
  return w->best;
}

static block_watcher watch_blocks(llama_study *s) {
  block_watcher w = {.study = s, .best = INFINITY};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    w.side[stage] = LP_NEW_ARRAY(s->arena, lp_side, s->problem[stage].op_count);
  return w;
}

static int32_t list_blocks(const llama_study *s, int stage, int32_t layers, lp_exact_block *out) {
  int32_t count = 0, *layer = LP_NEW_ARRAY(s->arena, int32_t, s->problem[stage].op_count);
  for (int32_t i = 0; i < s->problem[stage].op_count; i++)
    layer[i] = s->problem[stage].ops[i].layer;
  for (int32_t from = -1; from <= layers; from++)
    for (int32_t to = from + 1; to <= layers + 1; to++)
      for (int cloud = 0; cloud < 2; cloud++)
        out[count++] = (lp_exact_block){layer, from, to, cloud};
  return count;
}

/* Tells whether operators before and after a place use one cache. */
static bool divides_cache(const lp_plan_problem *problem, int32_t at) {
  for (int32_t i = 0; i < at; i++)
    for (int32_t k = at; k < problem->op_count; k++)
      if (problem->ops[i].state >= 0 && problem->ops[i].state == problem->ops[k].state) return true;
  return false;
}

/* The least objective with one border at any operator in a stage, beside the pair's other stage; infinite: none meets
 * the limits. */
static double best_with_any_operator(llama_study *s, const block_watcher *shown, int stage) {
  block_watcher all = watch_blocks(s);
  const int32_t ops = s->problem[stage].op_count;
  lp_exact_block pair[LP_STAGE_COUNT] = {shown->pair[0], shown->pair[1]};
  int32_t *index = LP_NEW_ARRAY(s->arena, int32_t, ops);
  for (int32_t i = 0; i < ops; i++)
    index[i] = i;
  for (int32_t at = 0; at < ops; at++)
    for (int cloud = 0; cloud < 2 && !divides_cache(&s->problem[stage], at); cloud++) {
      pair[stage] = (lp_exact_block){index, at, ops, cloud};
      (void)see_blocks(&all, pair);
    }
  return all.best;
}

/* The pairs shown have the best of all pairs among them, although few are shown. */
static void check_blocks(double ttft_ms, double tpot_ms, double device_memory) {
  enum { LAYERS = 5 };
  llama_study s = llama_study_open_7b(LAYERS, "snapdragon-8s-gen3-p1", "a100,price_usd_per_s=4e-5", "lan");
  s.request.osl = 128;
  s.request.ttft_ms = ttft_ms;
  s.request.tpot_ms = tpot_ms;
  s.request.device_memory = (int64_t)device_memory;
  ck_assert_int_eq(lp_plan_build(s.module, &s.request, s.arena, s.problem, NULL), LP_OK);
  block_watcher all = watch_blocks(&s), shown = watch_blocks(&s);
  lp_exact_block list[LP_STAGE_COUNT][(LAYERS + 2) * (LAYERS + 3)];
  int32_t count = list_blocks(&s, 0, LAYERS, list[0]);
  ck_assert_int_eq(count, LP_COUNT(list[0]));
  ck_assert_int_eq(list_blocks(&s, 1, LAYERS, list[1]), count);
  for (int32_t i = 0; i < count; i++)
    for (int32_t k = 0; k < count; k++)
      (void)see_blocks(&all, (lp_exact_block[]){list[0][i], list[1][k]});
  lp_exact x;
  lp_exact_build(s.problem, &s.request, s.arena, &x);
  lp_exact_blocks(&x, INFINITY, see_blocks, &shown);
  ck_assert(!isinf(all.best));
  ck_assert_msg(shown.best <= all.best * (1 + 1e-9), "TTFT %g: %.12g, wanted %.12g", ttft_ms, shown.best, all.best);
  ck_assert_int_lt(shown.shown, all.shown / 10);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const double best = best_with_any_operator(&s, &shown, stage);
    ck_assert_msg(shown.best <= best * (1 + 1e-9), "TTFT %g: %.12g, an operator more or less: %.12g", ttft_ms,
                  shown.best, best);
  }
  llama_study_close(&s);
}

static double count_blocks(void *user, const lp_exact_block block[LP_STAGE_COUNT]) {
  (void)block;
  ++*(int *)user;
  return INFINITY;
}

/* Where no pair of blocks meets the limits exactly, although all of them seem to, not all are evaluated. */
LP_TEST(pairs_of_blocks_in_vain_come_to_an_end) {
  llama_study s = llama_study_open_7b(12, "snapdragon-8s-gen3-p1", "a100", "lan");
  ck_assert_int_eq(lp_plan_build(s.module, &s.request, s.arena, s.problem, NULL), LP_OK);
  lp_exact x;
  int seen = 0;
  lp_exact_build(s.problem, &s.request, s.arena, &x);
  lp_exact_blocks(&x, INFINITY, count_blocks, &seen);
  ck_assert_int_ge(seen, 2000);
  ck_assert_int_le(seen, 2000 + 2 * 24); /* and the blocks with a border of a unit, once for each stage */
  llama_study_close(&s);
}

LP_TEST(seeds_have_the_best_pair_of_blocks) {
  static const double ttft_ms[] = {0, 200, 150, 120, 100}, tpot_ms[] = {0, 30, 25, 20, 15};
  for (size_t i = 0; i < LP_COUNT(ttft_ms); i++)
    for (size_t k = 0; k < LP_COUNT(tpot_ms); k++) {
      check_blocks(ttft_ms[i], tpot_ms[k], 64e9);
      check_blocks(ttft_ms[i], tpot_ms[k], 1.5e9);
    }
}
