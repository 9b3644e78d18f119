/* The policies that do not learn: by class, by queue, fixed, random, and the oracle. */
#include "runtime/simulate/simulate.h"

#include <gsl/gsl_rng.h>

/* ---- without state ----------------------------------------------------------------------------------------------- */

static lp_site to_edge(void *state, const lp_sim_request *request) {
  (void)state;
  (void)request;
  return LP_SITE_EDGE;
}

static lp_site to_cloud(void *state, const lp_sim_request *request) {
  (void)state;
  (void)request;
  return LP_SITE_CLOUD;
}

static lp_site by_class(void *state, const lp_sim_request *request) {
  (void)state;
  return request->quality ? LP_SITE_CLOUD : LP_SITE_EDGE;
}

/* Decides by class, but a request that may stay at the edge waits there for at most `patience` times the extra time of
 * the cloud. With 1 each request minimises its own delay; since a waiting request delays those after it, a value below
 * 1 gives a lower mean (Naor 1969). */
static lp_site by_queue(void *state, const lp_sim_request *request) {
  (void)state;
  if (request->quality) return LP_SITE_CLOUD;
  double wait = request->wait_s[LP_SITE_EDGE], alone = request->delay_s[LP_SITE_EDGE] - wait;
  return wait > request->patience * (request->delay_s[LP_SITE_CLOUD] - alone) ? LP_SITE_CLOUD : LP_SITE_EDGE;
}

static lp_site to_split(void *state, const lp_sim_request *request) {
  (void)state;
  return (request->offered >> LP_SITE_SPLIT & 1u) != 0 ? LP_SITE_SPLIT : LP_SITE_EDGE;
}

static lp_site by_oracle(void *state, const lp_sim_request *request) {
  (void)state;
  lp_site best = LP_SITE_EDGE;
  for (lp_site site = LP_SITE_CLOUD; site < LP_SITE_COUNT; site++)
    if ((request->offered >> site & 1u) != 0 && request->expected_reward[site] > request->expected_reward[best])
      best = site;
  return best;
}

/* ---- random ------------------------------------------------------------------------------------------------------ */

static void *coin_create(const void *context, uint64_t seed) {
  (void)context;
  gsl_rng *coin = gsl_rng_alloc(gsl_rng_mt19937);
  gsl_rng_set(coin, (unsigned long)(seed & 0xffffffff));
  return coin;
}

static lp_site by_coin(void *state, const lp_sim_request *request) {
  const double sites = (request->offered >> LP_SITE_SPLIT & 1u) != 0 ? 3 : 2;
  return (lp_site)(gsl_rng_uniform(state) * sites);
}

static void coin_free(void *state) {
  gsl_rng_free(state);
}

static const lp_sim_policy class_rule = {
    .name = "class", .summary = "to the cloud if quality is required", .decide = by_class};
static const lp_sim_policy queue_aware = {.name = "queue-aware",
                                          .summary = "as class, and to the cloud when the edge's queue is too long",
                                          .decide = by_queue};
static const lp_sim_policy edge_only = {.name = "edge-only", .summary = "never to the cloud", .decide = to_edge};
static const lp_sim_policy cloud_only = {.name = "cloud-only", .summary = "always to the cloud", .decide = to_cloud};
static const lp_sim_policy split_only = {
    .name = "split-only", .summary = "always to the split, if there is one", .decide = to_split};
static const lp_sim_policy at_random = {
    .name = "random", .summary = "to each place alike", .create = coin_create, .decide = by_coin, .free = coin_free};
static const lp_sim_policy oracle = {.name = "oracle",
                                     .summary = "the better reward, knowing the answer's length and quality beforehand",
                                     .decide = by_oracle};

static const lp_sim_policy *const plain[] = {&class_rule, &queue_aware, &edge_only, &cloud_only,
                                             &split_only, &at_random,   &oracle};
const lp_sim_policies lp_sim_plain_policies = {plain, LP_COUNT(plain)};
