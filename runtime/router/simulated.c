/* Adapts the policies that learn to the simulator: see simulated.h. */
#include "runtime/router/simulated.h"

#include <stdlib.h>

#include "runtime/router/backends.h"

typedef enum { FIXED_MODEL, CHOSEN_MODEL, EMBEDDED_MODEL } model_kind;

/* A policy of router.h in the simulator's interface. */
typedef struct {
  const char *name, *summary, *policy;
  lp_replay_mode replay;
  model_kind model;
  bool explores_outside; /* the policy has no such state */
} learner;

static const learner learners[] = {
    {"router", "learns in context: examples of mean rewards", "router", LP_REPLAY_EMA, CHOSEN_MODEL, false},
    {"router-paper", "learns in context: the example of the greatest reward", "router", LP_REPLAY_REWARD, CHOSEN_MODEL,
     false},
    {"latest", "only the newest example", "latest", LP_REPLAY_LATEST, CHOSEN_MODEL, false},
    {"greedy", "examples of the greatest reward, without exploration", "greedy", LP_REPLAY_REWARD, CHOSEN_MODEL, false},
    {"q-table", "tabular Q-learning", "q-table", LP_REPLAY_EMA, FIXED_MODEL, false},
    {"dqn", "a network that learns Q", "dqn", LP_REPLAY_EMA, FIXED_MODEL, false},
    {"oracle-explore", "the oracle, exploring as the learners do", "oracle", LP_REPLAY_EMA, FIXED_MODEL, true},
    {"router-embedded", "as router, the embedded model reads the examples", "router", LP_REPLAY_EMA, EMBEDDED_MODEL,
     false},
    {"router-embedded-paper", "as router-paper, the embedded model reads the examples", "router", LP_REPLAY_REWARD,
     EMBEDDED_MODEL, false},
};

/* The data of a simulator's policy. */
typedef struct {
  const learner *is;
  const lp_policy_spec *spec;
} entry;

struct lp_router_sim {
  lp_policy_spec spec;
  entry entries[LP_COUNT(learners)];
  lp_sim_policy policy[LP_COUNT(learners)];
  const lp_sim_policy **all;
  size_t count;
};

/* A policy in one run. */
typedef struct {
  lp_policy *policy;
  lp_explorer explorer;
  bool explores;
} run;

static lp_router_request request_of(const lp_sim_request *from, char keywords[128]) {
  const char *queue =
      lp_queue_keyword(from->wait_s[LP_SITE_EDGE], from->delay_s[LP_SITE_EDGE], from->delay_s[LP_SITE_CLOUD]);
  (void)snprintf(keywords, 128, "%.64s%s%s%s", from->task_name, from->quality ? ", asks for quality" : "",
                 queue ? ", " : "", queue ? queue : "");
  lp_router_request request = {.keywords = keywords, .offered = 1u << LP_ROUTE_EDGE | 1u << LP_ROUTE_CLOUD};
  request.rule = from->quality ? LP_ROUTE_CLOUD : LP_ROUTE_EDGE;
  request.delay_s[LP_ROUTE_EDGE] = from->delay_s[LP_SITE_EDGE];
  request.delay_s[LP_ROUTE_CLOUD] = from->delay_s[LP_SITE_CLOUD];
  return request;
}

static lp_site decide(void *state, const lp_sim_request *from) {
  run *self = state;
  char keywords[128];
  lp_router_request request = request_of(from, keywords);
  const double mean[LP_ROUTE_COUNT] = {from->expected_reward[LP_SITE_EDGE], from->expected_reward[LP_SITE_CLOUD], 0};
  request.mean_reward = mean;
  lp_decision decision;
  self->policy->decide(self->policy, &request, &decision);
  if (self->explores) lp_explorer_draw(&self->explorer, request.offered, decision.route, decision.source, &decision);
  return decision.route == LP_ROUTE_CLOUD ? LP_SITE_CLOUD : LP_SITE_EDGE;
}

static void learn(void *state, const lp_sim_request *from, const lp_sim_outcome *outcome) {
  lp_policy *policy = ((run *)state)->policy;
  char keywords[128];
  lp_router_request request = request_of(from, keywords);
  lp_route route = outcome->site == LP_SITE_CLOUD ? LP_ROUTE_CLOUD : LP_ROUTE_EDGE;
  policy->learn(policy, &request, route, outcome->reward, outcome->met);
}

static void release(void *state) {
  run *self = state;
  self->policy->close(self->policy);
  free(self);
}

static lp_status open_policy(const entry *of, uint64_t seed, lp_policy **out, lp_diag *diag) {
  lp_policy_spec spec = *of->spec;
  const char *chosen = spec.model ? spec.model : "lookup";
  spec.policy = of->is->policy;
  spec.model = of->is->model == EMBEDDED_MODEL ? "embedded" : chosen;
  spec.options = (lp_router_options){.replay = of->is->replay, .exploration = {.epsilon = 0.1, .seed = seed}};
  return lp_policy_open(&spec, out, diag);
}

/* lp_router_sim_open has opened the same model, so this fails only if the model has been removed since; then the rule
 * decides. */
static void *create(const void *context, uint64_t seed) {
  const entry *of = context;
  run *self = lp_alloc(sizeof *self);
  self->explores = of->is->explores_outside;
  self->explorer.options = (lp_exploration){.epsilon = 0.1, .seed = seed};
  if (open_policy(of, seed, &self->policy, NULL) != LP_OK) self->policy = lp_policy_fixed("rule", seed);
  return self;
}

static void append(lp_router_sim *sim, const learner *is) {
  size_t at = (size_t)(is - learners);
  sim->entries[at] = (entry){is, &sim->spec};
  sim->policy[at] = (lp_sim_policy){.name = is->name,
                                    .summary = is->summary,
                                    .asks_model = is->model != FIXED_MODEL,
                                    .context = &sim->entries[at],
                                    .create = create,
                                    .decide = decide,
                                    .learn = learn,
                                    .free = release};
  sim->all[sim->count++] = &sim->policy[at];
}

/* Opens each model once, so that its errors are reported before the simulation runs. */
static lp_status try_models(const lp_router_sim *sim, lp_diag *diag) {
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < LP_COUNT(learners); i++) {
    lp_policy *tried = NULL;
    if (!sim->entries[i].is || learners[i].model == FIXED_MODEL || learners[i].replay != LP_REPLAY_EMA) continue;
    status = open_policy(&sim->entries[i], 0, &tried, diag);
    if (status == LP_OK) tried->close(tried);
  }
  return status;
}

lp_status lp_router_sim_open(const lp_policy_spec *spec, lp_router_sim **out, lp_diag *diag) {
  lp_router_sim *sim = lp_alloc(sizeof *sim);
  *sim = (lp_router_sim){.spec = *spec};
  sim->all = lp_alloc((lp_sim_plain_policies.count + LP_COUNT(learners)) * sizeof(lp_sim_policy *));
  for (size_t i = 0; i < lp_sim_plain_policies.count; i++)
    sim->all[sim->count++] = lp_sim_plain_policies.policy[i];
  for (size_t i = 0; i < LP_COUNT(learners); i++)
    if (learners[i].model != EMBEDDED_MODEL || spec->embedded) append(sim, &learners[i]);
  lp_status status = try_models(sim, diag);
  *out = status == LP_OK ? sim : NULL;
  if (status != LP_OK) lp_router_sim_close(sim);
  return status;
}

lp_sim_policies lp_router_sim_policies(const lp_router_sim *sim) {
  return (lp_sim_policies){sim->all, sim->count};
}

void lp_router_sim_close(lp_router_sim *sim) {
  if (!sim) return;
  free(sim->all);
  free(sim);
}
