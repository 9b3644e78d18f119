/* Computes upper bounds of a share: calibrate.h states them. */
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "runtime/exits/calibrate/calibrate.h"

/* Uses bisection, since the quantile function of GSL ends the process for some extreme shapes. */
double lp_upper_bound(double count, double of, double confidence) {
  if (count >= of) return 1;
  double low = count / of, high = 1;
  for (int i = 0; i < 200 && high - low > 1e-15; i++) {
    double middle = low + (high - low) / 2;
    /* P(X <= count) of a binomial is the upper tail of a beta distribution. */
    if (gsl_cdf_beta_Q(middle, count + 1, of - count) > 1 - confidence)
      low = middle;
    else
      high = middle;
  }
  return high;
}

double lp_least_sample(double risk, double confidence) {
  return floor(log1p(-confidence) / log1p(-risk)) + 1;
}

typedef struct {
  double count, of;
} totals;

static totals sum(const lp_clusters *seen) {
  totals all = {0};
  for (size_t i = 0; i < seen->clusters; i++) {
    all.count += (double)seen->count[i];
    all.of += (double)seen->of[i];
  }
  return all;
}

double lp_design_effect(const lp_clusters *seen) {
  totals all = sum(seen);
  double share = all.count / all.of, squares = 0, clusters = (double)seen->clusters;
  if (all.count == 0 || all.count >= all.of || seen->clusters < 2) return 1;
  for (size_t i = 0; i < seen->clusters; i++) {
    double off = (double)seen->count[i] - share * (double)seen->of[i];
    squares += off * off;
  }
  double effect = clusters / (clusters - 1) * squares / (all.of * share * (1 - share));
  return effect > 1 ? effect : 1;
}

double lp_cluster_bound(const lp_clusters *seen, double confidence) {
  totals all = sum(seen);
  if (all.count == 0) return lp_upper_bound(0, all.of, confidence);
  if (seen->clusters < 2) return 1;
  double narrow = gsl_cdf_tdist_Pinv(confidence, all.of - 1),
         wide = gsl_cdf_tdist_Pinv(confidence, (double)seen->clusters - 1);
  double of = all.of / lp_design_effect(seen) * (narrow / wide) * (narrow / wide);
  return lp_upper_bound(of * (all.count / all.of), of, confidence);
}
