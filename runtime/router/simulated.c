/* Adapts the policies that learn to the simulator: see simulated.h. */
#include "runtime/router/simulated.h"

#include <math.h>

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
    {"quickest", "the place of the least estimated delay, which outcomes correct", "quickest", LP_REPLAY_EMA,
     FIXED_MODEL, false},
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

/* The estimates for a request at its decision, until it is learned. */
typedef struct {
  int64_t index;
  double wait_s[LP_ROUTE_COUNT], delay_s[LP_ROUTE_COUNT];
} waiting;

/* A policy in one run. */
typedef struct {
  lp_policy *policy;
  lp_explorer explorer;
  bool explores;
  bool weighs; /* `backends` are there, as the first decision found the places */
  lp_backends backends;
  lp_estimator estimator;
  LP_VEC(waiting) waiting;
} run;

/* The places as a server would know them: their figures for one request on its own, and their limits. */
static lp_backends backends_of(const lp_sim_request *from) {
  const lp_sim_scenario *s = from->scenario;
  lp_backends out = {.token_bytes = s->token_bytes};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    const lp_sim_station *form = &s->station[route];
    int64_t slots = form->replicas * form->slots;
    out.of[route] = (lp_route_backend){.there = lp_route_offered(s->there, route),
                                       .healthy = true,
                                       .model = lp_sim_figures(s, (lp_site)route),
                                       .slots = form->slots < LP_SIM_UNLIMITED ? slots : 0};
  }
  out.of[LP_ROUTE_CLOUD].backhaul_s = s->backhaul_s;
  const lp_sim_station *split = &s->station[LP_SITE_SPLIT];
  if (split->pass.count == 0) out.of[LP_ROUTE_SPLIT].row_bytes = split->crossing.row_bytes;
  return out;
}

static lp_demand demand_of(const lp_sim_request *from, double tokens) {
  return (lp_demand){.prompt_tokens = from->prompt_tokens, .tokens = tokens, .budget_usd = INFINITY};
}

/* Describes a request as runtime/serve/estimates.c does. */
static lp_router_request request_of(const lp_sim_request *from, const waiting *at, lp_buf *keywords) {
  lp_buf_printf(keywords, "%.64s%s", from->task_name, from->quality ? ", asks for quality" : "");
  lp_size_keyword(from->expected_tokens, keywords);
  const char *queue =
      lp_queue_keyword(at->wait_s[LP_ROUTE_EDGE], at->delay_s[LP_ROUTE_EDGE], at->delay_s[LP_ROUTE_CLOUD]);
  if (queue) lp_buf_printf(keywords, ", %s", queue);
  lp_router_request request = {.keywords = lp_buf_text(keywords), .offered = from->offered};
  request.rule = from->quality ? LP_ROUTE_CLOUD : LP_ROUTE_EDGE;
  memcpy(request.delay_s, at->delay_s, sizeof request.delay_s);
  return request;
}

static lp_site decide(void *state, const lp_sim_request *from) {
  run *self = state;
  if (!self->weighs) self->backends = backends_of(from), self->weighs = true;
  self->backends.up_bps = from->up_bps;
  self->backends.down_bps = from->down_bps;
  const lp_demand demand = demand_of(from, from->expected_tokens);
  waiting now = {.index = from->index};
  lp_buf keywords = {0};
  lp_delay_estimate(&self->backends, &self->estimator, &demand, from->now_s, now.wait_s, now.delay_s);
  lp_router_request request = request_of(from, &now, &keywords);
  request.mean_reward = from->expected_reward;
  lp_decision decision;
  self->policy->decide(self->policy, &request, &decision);
  if (self->explores) lp_explorer_draw(&self->explorer, request.offered, decision.route, decision.source, &decision);
  lp_buf_free(&keywords);
  lp_vec_push(&self->waiting, now);
  return (lp_site)decision.route;
}

static void begin(void *state, const lp_sim_request *from, lp_site site) {
  run *self = state;
  if (!self->weighs) return; /* the request named its place, and none was decided before */
  const lp_demand demand = demand_of(from, from->expected_tokens);
  lp_estimator_begin(&self->estimator, &self->backends, &demand, (lp_route)site);
}

/* Removes and returns what was estimated for a request; false: it named its place. */
static bool take(run *self, const lp_sim_request *from, waiting *out) {
  for (size_t i = 0; i < self->waiting.count; i++) {
    if (self->waiting.data[i].index != from->index) continue;
    *out = self->waiting.data[i];
    self->waiting.data[i] = self->waiting.data[--self->waiting.count];
    return true;
  }
  return false;
}

static void learn(void *state, const lp_sim_request *from, const lp_sim_outcome *outcome) {
  run *self = state;
  const lp_demand demand = demand_of(from, from->expected_tokens), made = demand_of(from, outcome->tokens);
  const lp_route route = (lp_route)outcome->site;
  if (self->weighs)
    lp_estimator_answer(&self->estimator, &self->backends, &demand, &made, route, outcome->at_s, outcome->service_s);
  waiting then;
  if (!take(self, from, &then)) return;
  LP_OWNED(lp_buf_free) lp_buf keywords = {0};
  lp_router_request request = request_of(from, &then, &keywords);
  self->policy->learn(self->policy, &request, route, outcome->reward, outcome->met);
}

static void lose(void *state, const lp_sim_request *from, lp_site site) {
  run *self = state;
  const lp_demand demand = demand_of(from, from->expected_tokens);
  waiting then;
  if (self->weighs) lp_estimator_end(&self->estimator, &self->backends, &demand, (lp_route)site, from->now_s, -1);
  (void)take(self, from, &then);
}

static void release(void *state) {
  LP_OWNED(lp_free_at) run *self = state;
  self->policy->close(self->policy);
  lp_vec_free(&self->waiting);
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
  self->estimator = lp_estimator_make(0, 0);
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
                                    .begin = begin,
                                    .lose = lose,
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
