#include "runtime/router/simulated.h"

#include "runtime/router/backends.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PLAIN = 16 };

static char *bundle; /* of the embedded model, or NULL */

static lp_request request_of(const lp_sim_request *from, char keywords[128]) {
  const char *queue = lp_queue_keyword(from->wait_s[LP_AT_EDGE], from->delay_s[LP_AT_EDGE], from->delay_s[LP_AT_CLOUD]);
  (void)snprintf(keywords, 128, "%.64s%s%s%s", from->task_name, from->quality ? ", asks for quality" : "",
                 queue != NULL ? ", " : "", queue != NULL ? queue : "");
  lp_request request = {.keywords = keywords, .offered = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_CLOUD};
  request.rule = from->quality ? LP_ROUTE_CLOUD : LP_ROUTE_EDGE;
  request.delay_s[LP_ROUTE_EDGE] = from->delay_s[LP_AT_EDGE];
  request.delay_s[LP_ROUTE_CLOUD] = from->delay_s[LP_AT_CLOUD];
  return request;
}

static lp_place decide(void *state, const lp_sim_request *from) {
  lp_policy *policy = state;
  char keywords[128];
  lp_request request = request_of(from, keywords);
  lp_decision decision;
  policy->decide(policy, &request, &decision);
  return decision.route == LP_ROUTE_CLOUD ? LP_AT_CLOUD : LP_AT_EDGE;
}

static void learn(void *state, const lp_sim_request *from, const lp_sim_outcome *outcome) {
  lp_policy *policy = state;
  char keywords[128];
  lp_request request = request_of(from, keywords);
  lp_route route = outcome->place == LP_AT_CLOUD ? LP_ROUTE_CLOUD : LP_ROUTE_EDGE;
  policy->learn(policy, &request, route, outcome->reward, outcome->met);
}

static void release(void *state) {
  ((lp_policy *)state)->close(state);
}

/* What cannot fail after lp_router_sim_policies tried it once. */
static void *open_policy(const char *name, const char *model, lp_replay_mode replay, uint64_t seed) {
  lp_policy_spec spec = {.policy = name, .model = model, .embedded = bundle};
  spec.options = (lp_router_options){.replay = replay, .exploration = {.epsilon = 0.1, .seed = seed}};
  lp_policy *policy = NULL;
  if (lp_policy_open(&spec, &policy, NULL) != LP_OK) policy = lp_policy_fixed("rule", seed);
  return policy;
}

static void *create_router(uint64_t seed) {
  return open_policy("router", "lookup", LP_REPLAY_EMA, seed);
}

static void *create_paper(uint64_t seed) {
  return open_policy("router", "lookup", LP_REPLAY_REWARD, seed);
}

static void *create_latest(uint64_t seed) {
  return open_policy("latest", "lookup", LP_REPLAY_LATEST, seed);
}

static void *create_greedy(uint64_t seed) {
  return open_policy("greedy", "lookup", LP_REPLAY_REWARD, seed);
}

static void *create_table(uint64_t seed) {
  return open_policy("q-table", NULL, LP_REPLAY_EMA, seed);
}

static void *create_network(uint64_t seed) {
  return open_policy("dqn", NULL, LP_REPLAY_EMA, seed);
}

static void *create_embedded(uint64_t seed) {
  return open_policy("router", "embedded", LP_REPLAY_EMA, seed);
}

static void *create_embedded_paper(uint64_t seed) {
  return open_policy("router", "embedded", LP_REPLAY_REWARD, seed);
}

#define LEARNER(text, says, make)                                                                                      \
  {.name = (text), .summary = (says), .create = (make), .decide = decide, .learn = learn, .free = release}
static const lp_sim_policy learners[] = {
    LEARNER("router", "learns in context: examples of mean rewards", create_router),
    LEARNER("router-paper", "learns in context: the example of the greatest reward", create_paper),
    LEARNER("latest", "the newest example alone", create_latest),
    LEARNER("greedy", "examples of the greatest reward, without exploration", create_greedy),
    LEARNER("q-table", "tabular Q-learning", create_table),
    LEARNER("dqn", "a network that learns Q", create_network),
    LEARNER("router-embedded", "as router, the embedded model reads the examples", create_embedded),
    LEARNER("router-embedded-paper", "as router-paper, the embedded model reads the examples", create_embedded_paper),
};
enum { WITHOUT_MODEL = LP_COUNT(learners) - 2 };

lp_status lp_router_sim_policies(const char *embedded, lp_sim_policies *out, lp_diag *diag) {
  static const lp_sim_policy *table[MOST_PLAIN + LP_COUNT(learners)];
  size_t count = 0;
  for (; count < lp_sim_plain_policies.count && count < MOST_PLAIN; ++count)
    table[count] = lp_sim_plain_policies.policy[count];
  for (size_t i = 0; i < (embedded != NULL ? LP_COUNT(learners) : WITHOUT_MODEL); ++i)
    table[count++] = &learners[i];
  *out = (lp_sim_policies){table, count};
  free(bundle);
  bundle = embedded != NULL ? lp_strdup(embedded) : NULL;
  lp_decider *tried = NULL;
  if (embedded == NULL) return LP_OK;
  lp_status status = lp_decider_embedded(embedded, &tried, diag);
  if (status == LP_OK) tried->close(tried);
  return status;
}
