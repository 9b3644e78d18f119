/* The exact scheduler: equal to trying everything where that can be done, never worse than any other scheduler. */
#include "tests/passes/random_plan.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static lp_plan_result plan_with(random_plan *plan, const char *scheduler, lp_plan_proof *proof) {
  lp_place *side[LP_STAGE_COUNT];
  lp_plan_result result;
  lp_status status = lp_plan_choose(plan->problem, scheduler, &plan->request, side, proof, plan->arena, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  lp_plan_evaluate(plan->problem, &plan->request, side, &result);
  return result;
}

enum { GRAPHS = 600, MOST_OPS = 7 };

START_TEST(equals_trying_everything) {
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
END_TEST

int main(void) {
  Suite *suite = suite_create("exact");
  TCase *tests = tcase_create("exact");
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, equals_trying_everything);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
