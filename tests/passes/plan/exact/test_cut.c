/* Minimum cuts on graphs of any form: their bounds hold, and plans of graphs with too many frontiers come from them. */
#include "base/side.h"
#include "passes/plan/exact/cut_prices.h"
#include "passes/plan/pin.h"
#include "tests/passes/plan/random_plan.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

LP_CASE(.timeout = 120);

typedef struct {
  lp_cut_search search; /* first: handed on as itself */
  random_plan *plan;
  lp_exact x;
  lp_side *side[LP_STAGE_COUNT];
  double best;
} cut_study;

static double see(lp_cut_search *search, unsigned char *const of_unit[LP_STAGE_COUNT], double bound) {
  cut_study *s = (cut_study *)search;
  (void)bound;
  lp_plan_result result;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < s->plan->problem[stage].op_count; i++) {
      int32_t unit = s->x.unit_of[stage][i];
      s->side[stage][i] = unit >= 0 && of_unit[stage][unit] ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
    }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_plan_settle(&s->plan->problem[stage], s->side[stage]);
  lp_plan_evaluate(s->plan->problem, &s->plan->request, s->side, &result);
  if (result.feasible) s->best = fmin(s->best, lp_plan_objective_value(&result, &s->plan->request));
  return s->best;
}

static lp_cut_search search_cuts(random_plan *plan, double effort) {
  cut_study s = {.search = {.see = see, .known = INFINITY, .effort = effort}, .plan = plan, .best = INFINITY};
  lp_cut cut;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s.side[stage] = LP_NEW_ARRAY(plan->arena, lp_side, plan->problem[stage].op_count);
  lp_exact_build(plan->problem, &plan->request, plan->arena, &s.x);
  lp_cut_create(&s.x, &cut);
  lp_cut_search_prices(&cut, &s.search);
  s.search.known = s.best;
  return s.search;
}

enum { GRAPHS = 300, MOST_OPS = 7 };

LP_TEST(proves_no_more_than_is_true) {
  int feasible = 0, close = 0, complete = 0;
  for (uint64_t seed = 5001; seed <= 5000 + GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    random_plan_forbid_streams(plan);
    lp_plan_result best = random_plan_try_all(plan);
    double wanted = lp_plan_objective_value(&best, &plan->request);
    lp_cut_search found = search_cuts(plan, 1e9);
    if (best.feasible) {
      feasible++;
      ck_assert_msg(found.known >= wanted * (1 - 1e-9), "seed %d: %.12g, wanted %.12g", (int)seed, found.known, wanted);
      ck_assert_msg(found.bound <= wanted * (1 + 1e-9), "seed %d: bound %.12g above %.12g", (int)seed, found.bound,
                    wanted);
      ck_assert_msg(!found.complete || found.known <= wanted * (1 + 1e-9), "seed %d: %.12g, wanted %.12g", (int)seed,
                    found.known, wanted);
      close += found.bound >= 0.9 * wanted;
      complete += found.complete;
    }
    random_plan_free(plan);
  }
  printf("%d feasible, %d bounds within 10 %%, %d complete\n", feasible, close, complete);
  ck_assert_int_ge(feasible, 200);
  ck_assert_int_ge(close, 100);
  ck_assert_int_ge(complete, 50);
}

static lp_plan_result plan_with(random_plan *plan, const char *scheduler, lp_plan_proof *proof) {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  lp_status status = lp_plan_choose(plan->problem, scheduler, &plan->request, side, proof, plan->arena, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  lp_plan_evaluate(plan->problem, &plan->request, side, &result);
  return result;
}

/* The least objective of some placements at random, those that do not fit aside. */
static double try_some(random_plan *plan, int count) {
  lp_side *side[LP_STAGE_COUNT];
  double least = INFINITY;
  for (int i = 0; i < count; i++) {
    double share = random_plan_number(plan);
    lp_plan_result result;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      side[stage] = LP_NEW_ARRAY(plan->arena, lp_side, plan->problem[stage].op_count);
      for (int32_t k = 0; k < plan->problem[stage].op_count; k++)
        side[stage][k] = random_plan_number(plan) < share ? LP_SIDE_CLOUD : LP_SIDE_DEVICE;
      lp_plan_settle(&plan->problem[stage], side[stage]);
    }
    lp_plan_evaluate(plan->problem, &plan->request, side, &result);
    if (result.feasible) least = fmin(least, lp_plan_objective_value(&result, &plan->request));
  }
  return least;
}

/* Branches side by side have more frontiers than can be kept, if messages cost anything. */
LP_TEST(places_wide_graphs) {
  static const char *const others[] = {"greedy", "layer", "cloud-only", "device-only"};
  int proved = 0, wide = 0;
  double gaps = 0;
  for (uint64_t seed = 1; seed <= 25; seed++) {
    random_plan *plan = random_plan_create_wide(seed, 16, 3);
    lp_exact x;
    lp_exact_graph graph;
    lp_exact_build(plan->problem, &plan->request, plan->arena, &x);
    bool counts_link = x.weights.link[LP_STAGE_PREFILL] > 0 || x.limit_ms[LP_STAGE_PREFILL] > 0;
    ck_assert(!counts_link || !lp_exact_graph_build(&x, LP_STAGE_PREFILL, &graph));
    wide += counts_link;
    lp_plan_proof proof;
    lp_plan_result found = plan_with(plan, "exact", &proof);
    double have = lp_plan_objective_value(&found, &plan->request);
    for (size_t i = 0; i < LP_COUNT(others); i++) {
      lp_plan_result other = plan_with(plan, others[i], NULL);
      double least = lp_plan_objective_value(&other, &plan->request);
      ck_assert_msg(!other.feasible || (found.feasible && have <= least * (1 + 1e-12)), "seed %d: %s is better",
                    (int)seed, others[i]);
    }
    ck_assert(found.feasible == proof.known);
    if (found.feasible) {
      ck_assert_double_le(proof.dual_bound, proof.lower_bound * (1 + 1e-9));
      ck_assert_double_le(proof.lower_bound, have * (1 + 1e-9));
      ck_assert_double_ge(try_some(plan, 300), proof.lower_bound * (1 - 1e-9));
      gaps += have > 0 ? 1 - proof.lower_bound / have : 0;
      proved++;
    }
    random_plan_free(plan);
  }
  printf("wide graphs: mean gap %.2g %% over %d\n", 100 * gaps / proved, proved);
  ck_assert_int_ge(proved, 15);
  ck_assert_int_ge(wide, 10);
  ck_assert_double_le(gaps / proved, 0.1);
}
