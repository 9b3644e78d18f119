/* The routes, their names, and exploration among them. */
#include "base/random.h"
#include "runtime/router/router.h"
#include "runtime/service/service.h"

#include <math.h>

/* A route has the number and the name of its site. */
_Static_assert((int)LP_ROUTE_EDGE == LP_SITE_EDGE && (int)LP_ROUTE_CLOUD == LP_SITE_CLOUD &&
                   (int)LP_ROUTE_SPLIT == LP_SITE_SPLIT,
               "routes are sites");

const char *lp_route_name(lp_route route) {
  return lp_site_names[route];
}

bool lp_route_parse(const char *name, lp_route *out) {
  for (lp_route i = 0; i < LP_ROUTE_COUNT; i++) {
    if (!lp_streq(name, lp_route_name(i))) continue;
    *out = i;
    return true;
  }
  return false;
}

bool lp_route_offered(unsigned offered, lp_route route) {
  return (offered >> route & 1u) != 0;
}

const char *lp_decision_source_name(lp_decision_source source) {
  static const char *const sources[] = {"only", "model", "cache", "explore", "rule", "fallback"};
  return sources[source];
}

/* ---- exploration: epsilon-greedy --------------------------------------------------------------------------------- */

/* As in P3 the draw is uniform over all offered routes, so it may give the best one too. */
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
