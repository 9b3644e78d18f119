/* Means and intervals over runs, by hand. */
#include "runtime/simulate/statistics.h"
#include "tests/suite.h"

#include <math.h>

/* The means of three runs are 1, 2 and 3; Student's t for 2 degrees of freedom at 97.5 % is 4.302653. */
LP_TEST(intervals_of_students_t) {
  enum { RUNS = 3 };
  lp_sim_tally tallies[RUNS];
  for (int i = 0; i < RUNS; i++) {
    lp_sim_tally_begin(&tallies[i], 0);
    lp_sim_tally_add(&tallies[i], 0, SIM_DELAY, i + 0.5);
    lp_sim_tally_add(&tallies[i], 1, SIM_DELAY, i + 1.5);
  }
  lp_sim_estimate found = lp_sim_estimate_of(tallies, RUNS, SIM_DELAY);
  ck_assert_double_eq_tol(found.mean, 2, 1e-12);
  ck_assert_double_eq_tol(found.half, 4.302653 / sqrt(3), 1e-6);
  found = lp_sim_estimate_part(tallies, RUNS, SIM_DELAY, 1);
  ck_assert_double_eq_tol(found.mean, 2.5, 1e-12);
  ck_assert_double_eq_tol(found.half, 4.302653 / sqrt(3), 1e-6);
  found = lp_sim_estimate_of(tallies, 1, SIM_DELAY); /* the parts: 0.5 and 1.5; t for 1 is 12.706205 */
  ck_assert_double_eq_tol(found.mean, 1, 1e-12);
  ck_assert_double_eq_tol(found.half, 12.706205 / 2, 1e-6);
  ck_assert_double_eq(lp_sim_estimate_part(tallies, 1, SIM_DELAY, 1).half, 0);
  for (int i = 0; i < RUNS; i++)
    lp_sim_tally_end(&tallies[i]);
}
