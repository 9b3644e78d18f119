/* Tabular Q-learning of one step: the next request does not depend on this decision, so Q is a mean reward. */
#include <stdlib.h>

#include "runtime/router/router.h"

typedef struct {
  lp_policy policy;
  lp_replay *values; /* an EMA pool is the table */
  lp_explorer explorer;
} table;

static void decide(lp_policy *policy, const lp_router_request *request, lp_decision *out) {
  table *self = (table *)policy;
  *out = (lp_decision){0};
  lp_route best = LP_ROUTE_COUNT;
  double most = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(request->offered, route)) continue;
    double value = 0; /* Q starts at 0 */
    (void)lp_replay_find(self->values, request->keywords, route, &value);
    if (best != LP_ROUTE_COUNT && value <= most) continue;
    best = route;
    most = value;
  }
  out->probability[best] = 1;
  lp_explorer_draw(&self->explorer, request->offered, best, LP_DECIDED_RULE, out);
}

static void learn(lp_policy *policy, const lp_router_request *request, lp_route route, double reward, bool good) {
  table *self = (table *)policy;
  (void)lp_replay_add(self->values, &(lp_experience){request->keywords, route, reward, good, 1});
}

static void close_table(lp_policy *policy) {
  lp_replay_free(((table *)policy)->values);
  free(policy);
}

lp_policy *lp_policy_table(double rate, const lp_exploration *exploration) {
  table *self = lp_alloc(sizeof *self);
  *self = (table){{"q-table", decide, learn, close_table}, lp_replay_create(LP_REPLAY_EMA, rate), {*exploration, 0}};
  return &self->policy;
}
