/* Grids on which sums of times and of the objective are exact. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>

/* A power of two, so small that rounding to its multiples changes no sum that matters, and so large that sums up to
 * `total` are exact. */
static double grid_of(double total) {
  int exponent = 0;
  if (!(total > 0) || isinf(total)) return 0;
  (void)frexp(total, &exponent);
  return ldexp(1, exponent - 46);
}

lp_exact_grids lp_exact_grids_of(const lp_exact *x) {
  lp_exact_grids grids = {0};
  double objective = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double total = 0;
    for (int32_t i = 0; i < x->unit_count[stage]; i++)
      for (int side = 0; side < LP_SIDE_COUNT; side++) {
        total += x->unit[stage][i].ms[side];
        objective += x->weights.busy[stage][side] * x->unit[stage][i].ms[side];
      }
    grids.ms[stage] = grid_of(total + x->limit_ms[stage]);
    objective += x->weights.link[stage] * total;
  }
  grids.objective = grid_of(objective);
  return grids;
}

double lp_exact_on_grid(double value, double grid) {
  return grid > 0 ? nearbyint(value / grid) * grid : value;
}
