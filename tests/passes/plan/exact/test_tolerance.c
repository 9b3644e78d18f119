/* The tolerance of the exact scheduler: the plan stays within it, and is hardly ever slower than the fastest plan of
 * all placements within it. */
#include "base/side.h"
#include "passes/plan/objective.h"
#include "tests/passes/plan/random_plan.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

enum { GRAPHS = 400, MOST_OPS = 7 };

static lp_plan_result plan_within(random_plan *plan, double tolerance, lp_plan_proof *proof) {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  plan->request.tolerance = tolerance;
  lp_status status = lp_plan_choose(plan->problem, "exact", &plan->request, side, proof, plan->arena, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  lp_plan_evaluate(plan->problem, &plan->request, side, &result);
  return result;
}

/* The proof keeps the best plan and its bound. */
static void check_cheapest(random_plan *plan, const lp_plan_proof *proof, double least) {
  lp_plan_result result;
  ck_assert_double_le(proof->lower_bound, least * (1 + 1e-9));
  if (!proof->cheapest[0]) return;
  lp_plan_evaluate(plan->problem, &plan->request, proof->cheapest, &result);
  ck_assert(result.feasible);
  ck_assert_double_eq_tol(lp_plan_objective_value(&result, &plan->request), least, 1e-9 * least);
}

LP_TEST(finds_the_fastest_plan_within_it) {
  static const double tolerances[] = {0.01, 0.1, 0.5};
  int hastened = 0, slower = 0, tried = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    const double tolerance = tolerances[seed % LP_COUNT(tolerances)];
    lp_plan_result best = random_plan_try_all(plan);
    lp_plan_proof proof;
    lp_plan_result found = plan_within(plan, tolerance, &proof);
    ck_assert_int_eq(found.feasible, best.feasible);
    if (best.feasible) {
      double least = lp_plan_objective_value(&best, &plan->request), most = least * (1 + tolerance);
      lp_plan_result fastest = random_plan_try_fastest(plan, most * (1 + 1e-12));
      tried++;
      ck_assert_double_le(lp_plan_objective_value(&found, &plan->request), most * (1 + 1e-9));
      ck_assert_double_ge(found.e2e_ms, fastest.e2e_ms * (1 - 1e-9));
      check_cheapest(plan, &proof, least);
      hastened += proof.cheapest[0] != NULL;
      slower += found.e2e_ms > fastest.e2e_ms * (1 + 1e-6);
    }
    random_plan_free(plan);
  }
  printf("%d plans, %d faster than the best one, %d slower than the fastest within the tolerance\n", tried, hastened,
         slower);
  ck_assert_int_ge(hastened, tried / 20);
  ck_assert_int_le(slower, tried / 40);
}

/* Without a tolerance the plan is the best one, as everywhere where a request does not ask for one. */
LP_TEST(none_means_the_best_plan) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    random_plan *plan = random_plan_create(seed, MOST_OPS);
    lp_plan_proof proof;
    (void)plan_within(plan, 0, &proof);
    ck_assert_ptr_null(proof.cheapest[0]);
    random_plan_free(plan);
  }
}
