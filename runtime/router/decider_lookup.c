/* Decides without a model: by what the prompt's examples say of the query's own keywords. */
#include <stdlib.h>
#include <string.h>

#include "runtime/router/router.h"

static bool mean_of_route(const lp_prompt *prompt, lp_route route, bool same_keywords, double *mean) {
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < prompt->count; ++i) {
    const lp_experience *e = &prompt->examples[i];
    if (e->route != route || (same_keywords && strcmp(e->keywords, prompt->keywords) != 0)) continue;
    sum += e->reward;
    ++count;
  }
  *mean = count > 0 ? sum / count : 0;
  return count > 0;
}

/* LP_ROUTE_COUNT when no offered route is known. */
static lp_route best_known(const lp_prompt *prompt, bool same_keywords) {
  lp_route best = LP_ROUTE_COUNT;
  double most = 0, mean;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; ++route) {
    if (!lp_route_offered(prompt->offered, route) || !mean_of_route(prompt, route, same_keywords, &mean)) continue;
    if (best != LP_ROUTE_COUNT && mean <= most) continue;
    best = route;
    most = mean;
  }
  return best;
}

static lp_status score(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  (void)self;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; ++route)
    probability[route] = 0;
  lp_route best = best_known(prompt, true);
  if (best == LP_ROUTE_COUNT) best = best_known(prompt, false);
  if (best == LP_ROUTE_COUNT) return lp_error(diag, (lp_loc){0}, "nothing is known yet of the routes that are offered");
  probability[best] = 1;
  return LP_OK;
}

static void close_lookup(lp_decider *self) {
  (void)self; /* it holds nothing */
}

lp_decider *lp_decider_lookup(void) {
  static lp_decider lookup = {"lookup", score, close_lookup};
  return &lookup;
}
