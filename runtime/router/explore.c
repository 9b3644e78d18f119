/* Exploration: epsilon-greedy. As in P3 the draw is uniform over all offered routes, so it may give the best one
 * too. */
#include <math.h>

#include "base/random.h"
#include "runtime/router/router.h"

static int count_offered(unsigned offered) {
  int count = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    count += lp_route_offered(offered, route);
  return count;
}

static lp_route nth_offered(unsigned offered, int n) {
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route) && n-- == 0) return route;
  return LP_ROUTE_EDGE;
}

void lp_explorer_draw(lp_explorer *explorer, unsigned offered, lp_route best, lp_decision_source source,
                      lp_decision *out) {
  const lp_exploration *options = &explorer->options;
  double epsilon = options->epsilon, at = (double)explorer->count;
  if (options->half_life > 0) epsilon *= exp2(-at / options->half_life);
  int count = count_offered(offered);
  out->route = best;
  out->source = count == 1 ? LP_DECIDED_ONLY : source;
  if (count > 1 && lp_random_uniform(options->seed, explorer->count, 0) < epsilon) {
    out->route = nth_offered(offered, (int)(lp_random_uniform(options->seed, explorer->count, 1) * count));
    out->source = LP_DECIDED_EXPLORE;
  }
  out->propensity = count == 1 ? 1 : epsilon / count + (out->route == best ? 1 - epsilon : 0);
  explorer->count++;
}
