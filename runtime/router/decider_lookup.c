/* Decides without a model, by the prompt's rules: it takes the best known route for the query's own keywords if its
 * reward was good, and else the best route by the nearest examples. */

#include "runtime/router/router.h"
#include "runtime/router/words.h"

/* The mean reward of the route's examples that share most words with the query; examples with the same keywords are
 * nearer than all others. False: the route has no example. */
static bool worth(const lp_prompt *prompt, lp_route route, double *out) {
  double sum = 0;
  int count = 0, nearest = -1;
  LP_FOR_EACH(const lp_experience, e, prompt->examples, prompt->count) {
    if (e->route != route) continue;
    int likeness = lp_words_shared(prompt->keywords, e->keywords);
    if (likeness < nearest) continue;
    if (likeness > nearest) sum = count = 0;
    nearest = likeness;
    sum += e->reward;
    count++;
  }
  *out = count > 0 ? sum / count : 0;
  return count > 0;
}

/* The example with the greatest reward among those with the query's own keywords and an offered route; NULL: none. */
static const lp_experience *best_of_same(const lp_prompt *prompt) {
  const lp_experience *best = NULL;
  LP_FOR_EACH(const lp_experience, e, prompt->examples, prompt->count) {
    if (!lp_route_offered(prompt->offered, e->route) || strcmp(e->keywords, prompt->keywords) != 0) continue;
    if (!best || e->reward > best->reward) best = e;
  }
  return best;
}

/* The best route by examples of similar requests, for routes that equal requests did not try. LP_ROUTE_COUNT: there is
 * none. */
static lp_route best_of_nearest(const lp_prompt *prompt) {
  lp_route best = LP_ROUTE_COUNT;
  double most = 0, reward;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(prompt->offered, route) || !worth(prompt, route, &reward)) continue;
    if (best != LP_ROUTE_COUNT && reward <= most) continue;
    best = route;
    most = reward;
  }
  return best;
}

static lp_status score(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  (void)self;
  const lp_experience *same = best_of_same(prompt);
  lp_route best = same && same->good ? same->route : best_of_nearest(prompt);
  if (best == LP_ROUTE_COUNT) return lp_error(diag, (lp_loc){0}, "nothing is known yet of the routes that are offered");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    probability[route] = route == best;
  return LP_OK;
}

static void close_lookup(lp_decider *self) {
  (void)self; /* the decider has no state */
}

lp_decider *lp_decider_lookup(void) {
  static lp_decider lookup = {"lookup", score, close_lookup, true, NULL};
  return &lookup;
}
