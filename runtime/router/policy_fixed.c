/* Policies that never learn. The learners are compared with them. */

#include "runtime/router/router.h"

typedef struct fixed fixed;
typedef lp_route choose_fn(fixed *self, const lp_router_request *request);

struct fixed {
  lp_policy policy;
  choose_fn *choose;
  uint64_t seed, count;
};

/* `wanted`, or the first route that is offered. */
static lp_route or_offered(lp_route wanted, unsigned offered) {
  if (lp_route_offered(offered, wanted)) return wanted;
  lp_route route = 0;
  while (route < LP_ROUTE_COUNT - 1 && !lp_route_offered(offered, route))
    route++;
  return route;
}

static lp_route choose_rule(fixed *self, const lp_router_request *request) {
  (void)self;
  return or_offered(request->rule, request->offered);
}

static lp_route choose_edge(fixed *self, const lp_router_request *request) {
  (void)self;
  return or_offered(LP_ROUTE_EDGE, request->offered);
}

static lp_route choose_cloud(fixed *self, const lp_router_request *request) {
  (void)self;
  return or_offered(LP_ROUTE_CLOUD, request->offered);
}

static lp_route choose_split(fixed *self, const lp_router_request *request) {
  (void)self;
  return or_offered(LP_ROUTE_SPLIT, request->offered);
}

static lp_route choose_random(fixed *self, const lp_router_request *request) {
  lp_explorer explorer = {.options = {.epsilon = 1, .seed = self->seed}, .count = self->count++};
  lp_decision drawn = {0};
  lp_explorer_draw(&explorer, request->offered, or_offered(LP_ROUTE_EDGE, request->offered), LP_DECIDED_RULE, &drawn);
  return drawn.route;
}

/* The offered route with the greatest value; of equal ones the first. */
static lp_route greatest(const double *value, unsigned offered) {
  lp_route best = LP_ROUTE_COUNT;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route) && (best == LP_ROUTE_COUNT || value[route] > value[best])) best = route;
  return best;
}

static lp_route choose_oracle(fixed *self, const lp_router_request *request) {
  return request->mean_reward ? greatest(request->mean_reward, request->offered) : choose_rule(self, request);
}

static lp_route choose_quickest(fixed *self, const lp_router_request *request) {
  (void)self;
  double value[LP_ROUTE_COUNT];
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    value[route] = -request->delay_s[route];
  return greatest(value, request->offered);
}

static void decide(lp_policy *policy, const lp_router_request *request, lp_decision *out) {
  fixed *self = (fixed *)policy;
  *out = (lp_decision){.route = self->choose(self, request), .source = LP_DECIDED_RULE, .propensity = 1};
  out->probability[out->route] = 1;
}

static void learn(lp_policy *policy, const lp_router_request *request, lp_route route, double reward, bool good) {
  (void)policy, (void)request, (void)route, (void)reward, (void)good;
}

static void close_fixed(lp_policy *policy) {
  free(policy);
}

lp_policy *lp_policy_fixed(const char *name, uint64_t seed) {
  static const struct {
    const char *name;
    choose_fn *choose;
  } known[] = {{"rule", choose_rule},        {"edge", choose_edge},     {"cloud", choose_cloud},
               {"split", choose_split},      {"random", choose_random}, {"oracle", choose_oracle},
               {"quickest", choose_quickest}};
  for (size_t i = 0; i < LP_COUNT(known); i++) {
    if (!lp_streq(name, known[i].name)) continue;
    fixed *self = lp_alloc(sizeof *self);
    *self = (fixed){{known[i].name, decide, learn, close_fixed, false, NULL}, known[i].choose, seed, 0};
    return &self->policy;
  }
  return NULL;
}
