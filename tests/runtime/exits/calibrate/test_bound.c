/* Upper bounds of shares, compared with values that mpmath computed to 25 digits, and their coverage in simulation. */
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "runtime/exits/calibrate/calibrate.h"
#include "tests/suite.h"

LP_TEST(bound_is_clopper_and_pearsons) {
  static const struct {
    double count, of, confidence, want;
  } cases[] = {
      {0, 299, 0.95, 0.0099691467929},   {3, 100, 0.95, 0.0757107937498}, {10, 1000, 0.95, 0.0169031751206},
      {2.5, 40.5, 0.95, 0.164177611663}, {99, 100, 0.95, 0.999487198584}, {5, 100, 0.99, 0.125851730698},
  };
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    double found = lp_upper_bound(cases[i].count, cases[i].of, cases[i].confidence);
    ck_assert_msg(fabs(found - cases[i].want) < 1e-10, "%g of %g: %.12f", cases[i].count, cases[i].of, found);
  }
  ck_assert_double_eq(lp_upper_bound(7, 7, 0.95), 1);
}

/* The rule of three: 299 tokens without a disagreement bound 1 % at 95 %. */
LP_TEST(least_sample_is_just_enough) {
  static const double risks[] = {0.2, 0.05, 0.01, 0.001};
  ck_assert_double_eq(lp_least_sample(0.01, 0.95), 299);
  for (size_t i = 0; i < LP_COUNT(risks); i++) {
    double least = lp_least_sample(risks[i], 0.95);
    ck_assert_double_lt(lp_upper_bound(0, least, 0.95), risks[i]);
    ck_assert_double_ge(lp_upper_bound(0, least - 1, 0.95), risks[i]);
  }
}

/* Disagreements that are all in one of ten clusters have about ten times the variance. Spread evenly they have none,
 * which counts as that of independent tokens. */
LP_TEST(design_effect_tells_clusters) {
  int64_t of[10], together[10] = {10}, apart[10];
  for (int i = 0; i < 10; i++)
    of[i] = 10, apart[i] = 1;
  lp_clusters dense = {.count = together, .of = of, .clusters = 10};
  lp_clusters even = {.count = apart, .of = of, .clusters = 10};
  ck_assert_double_eq_tol(lp_design_effect(&dense), 10.0 / 9 * (81 + 9) / (100 * 0.1 * 0.9), 1e-12);
  ck_assert_double_eq(lp_design_effect(&even), 1);
  ck_assert_double_gt(lp_cluster_bound(&dense, 0.95), lp_cluster_bound(&even, 0.95));
  ck_assert_double_gt(lp_cluster_bound(&even, 0.95), lp_upper_bound(10, 100, 0.95));
  int64_t none[10] = {0};
  lp_clusters clean = {.count = none, .of = of, .clusters = 10};
  ck_assert_double_eq(lp_cluster_bound(&clean, 0.95), lp_upper_bound(0, 100, 0.95));
  lp_clusters one = {.count = together, .of = of, .clusters = 1};
  ck_assert_double_eq(lp_cluster_bound(&one, 0.95), 1);
}

/* Documents with different shares: the bound must lie above the true share in 95 of 100 samples or more. */
LP_TEST(bound_covers_clustered_tokens) {
  enum { DRAWS = 2000, CLUSTERS = 60, TOKENS = 50 };
  static const double shares[] = {0.002, 0.04}; /* half of the documents each */
  int64_t count[CLUSTERS], of[CLUSTERS];
  lp_clusters seen = {.count = count, .of = of, .clusters = CLUSTERS};
  int covered = 0;
  for (uint64_t draw = 0; draw < DRAWS; draw++) {
    for (uint64_t i = 0; i < CLUSTERS; i++) {
      double share = shares[lp_random_uniform(draw, i, TOKENS) < 0.5];
      count[i] = 0;
      of[i] = TOKENS;
      for (uint64_t at = 0; at < TOKENS; at++)
        count[i] += lp_random_uniform(draw, i, at) < share;
    }
    covered += lp_cluster_bound(&seen, 0.95) >= (shares[0] + shares[1]) / 2;
  }
  ck_assert_msg(covered >= DRAWS * 94 / 100, "%d of %d", covered, DRAWS);
}
