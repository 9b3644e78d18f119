#include "runtime/router/judge.h"

static void learn(void *user, const lp_stored *stored) {
  lp_policy *policy = user;
  policy->learn(policy, &stored->request, stored->decision.route, stored->reward, stored->good);
}

lp_status lp_policy_open_taught(const lp_policy_spec *spec, lp_store *pool, int64_t memory, lp_policy **out,
                                lp_diag *diag) {
  lp_policy_spec own = *spec;
  lp_policy *policy = NULL;
  int64_t before = 0;
  *out = NULL;
  if (pool) LP_TRY(lp_store_count(pool, &before, diag));
  own.options.exploration.seed += (uint64_t)before;
  LP_TRY(lp_policy_open(&own, &policy, diag));
  lp_status status = pool ? lp_store_each(pool, memory, learn, policy, diag) : LP_OK;
  if (status == LP_OK)
    *out = policy;
  else
    policy->close(policy);
  return status;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_policy *policy;
  lp_judgement *out;
  double weight, square, weighted; /* sums of the weights, of their squares, and of weights times rewards */
} walk;

static lp_route best_of(const lp_decision *decision, unsigned offered) {
  lp_route best = decision->route;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(offered, route) && decision->probability[route] > decision->probability[best]) best = route;
  return best;
}

static void visit(void *user, const lp_stored *stored) {
  walk *w = user;
  lp_decision decision;
  w->policy->decide(w->policy, &stored->request, &decision);
  w->out->decisions++;
  w->out->logged_reward += stored->reward;
  if (best_of(&decision, stored->request.offered) == stored->decision.route && stored->decision.propensity > 0) {
    double weight = 1 / stored->decision.propensity;
    w->out->agreed++;
    w->weight += weight;
    w->square += weight * weight;
    w->weighted += weight * stored->reward;
  }
  w->policy->learn(w->policy, &stored->request, stored->decision.route, stored->reward, stored->good);
}

lp_status lp_policy_judge(lp_policy *policy, lp_store *log, lp_judgement *out, lp_diag *diag) {
  *out = (lp_judgement){0};
  walk w = {.policy = policy, .out = out};
  lp_status status = lp_store_each(log, 0, visit, &w, diag);
  if (status != LP_OK || out->decisions == 0) return status;
  out->logged_reward /= (double)out->decisions;
  if (w.weight > 0) {
    out->ips_reward = w.weighted / (double)out->decisions;
    out->snips_reward = w.weighted / w.weight;
    out->effective = w.weight * w.weight / w.square;
  }
  return LP_OK;
}
