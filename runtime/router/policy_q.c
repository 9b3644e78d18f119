/* Q-learning of one step. The next request does not depend on this decision, so Q is a mean reward.
 *
 * "q-table" keeps it in a table. "dqn" is a network with hashed keywords as inputs, one hidden layer and the reward of
 * each route as outputs. Adam trains it on a memory of the latest outcomes. Rewards are divided by their running
 * deviation, so that their unit does not matter. */
#include <gsl/gsl_cblas.h>
#include <math.h>

#include "base/random.h"
#include "runtime/router/router.h"
#include "runtime/router/words.h"

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_policy policy;
  lp_replay *values; /* an EMA pool is the table */
  lp_explorer explorer;
} table;

static void decide_by_table(lp_policy *policy, const lp_router_request *request, lp_decision *out) {
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

static void learn_in_table(lp_policy *policy, const lp_router_request *request, lp_route route, double reward,
                           bool good) {
  table *self = (table *)policy;
  (void)lp_replay_add(self->values, 0, &(lp_experience){request->keywords, route, reward, good, 1});
}

static void close_table(lp_policy *policy) {
  lp_replay_free(((table *)policy)->values);
  free(policy);
}

lp_policy *lp_policy_table(double rate, const lp_exploration *exploration) {
  table *self = lp_alloc(sizeof *self);
  *self = (table){{"q-table", decide_by_table, learn_in_table, close_table, false, NULL},
                  lp_replay_create(LP_REPLAY_EMA, rate),
                  {*exploration, 0}};
  return &self->policy;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

enum { INPUTS = 64, HIDDEN = 32, MEMORY = 1024, BATCH = 32 };
enum {
  W1 = 0,
  B1 = W1 + HIDDEN * INPUTS,
  W2 = B1 + HIDDEN,
  B2 = W2 + LP_ROUTE_COUNT * HIDDEN,
  WEIGHTS = B2 + LP_ROUTE_COUNT
};

typedef struct {
  double input[INPUTS];
  lp_route route;
  double reward;
} outcome;

typedef struct {
  lp_policy policy;
  lp_explorer explorer;
  double weight[WEIGHTS], first_moment[WEIGHTS], second_moment[WEIGHTS];
  outcome memory[MEMORY];
  uint64_t seen, updates;
  double mean, spread; /* of rewards so far */
} network;

/* Each word sets two of the inputs; a constant input carries the bias. */
static void encode(const char *keywords, double input[INPUTS]) {
  for (int i = 0; i < INPUTS; i++)
    input[i] = 0;
  for (lp_word word = lp_next_word(&keywords); word.size > 0; word = lp_next_word(&keywords)) {
    uint64_t hash = lp_hash_bytes(word.text, word.size, 0);
    input[hash % INPUTS] = 1;
    input[(hash >> 32) % INPUTS] = 1;
  }
}

static void forward(const network *self, const double *input, double *hidden, double *value) {
  cblas_dcopy(HIDDEN, self->weight + B1, 1, hidden, 1);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, HIDDEN, INPUTS, 1, self->weight + W1, INPUTS, input, 1, 1, hidden, 1);
  for (int i = 0; i < HIDDEN; i++)
    hidden[i] = fmax(hidden[i], 0);
  cblas_dcopy(LP_ROUTE_COUNT, self->weight + B2, 1, value, 1);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, LP_ROUTE_COUNT, HIDDEN, 1, self->weight + W2, HIDDEN, hidden, 1, 1, value,
              1);
}

/* Adds the gradient of half the squared error of one outcome. */
static void backward(const network *self, const outcome *of, double *gradient) {
  double hidden[HIDDEN], value[LP_ROUTE_COUNT], into[HIDDEN];
  forward(self, of->input, hidden, value);
  double error = value[of->route] - (of->reward - self->mean) / self->spread;
  cblas_daxpy(HIDDEN, error, hidden, 1, gradient + W2 + (int)of->route * HIDDEN, 1);
  gradient[B2 + (int)of->route] += error;
  for (int i = 0; i < HIDDEN; i++)
    into[i] = hidden[i] > 0 ? error * self->weight[W2 + (int)of->route * HIDDEN + i] : 0;
  cblas_dger(CblasRowMajor, HIDDEN, INPUTS, 1, into, 1, of->input, 1, gradient + W1, INPUTS);
  cblas_daxpy(HIDDEN, 1, into, 1, gradient + B1, 1);
}

/* Kingma and Ba, "Adam", 2015. */
static void adam(network *self, const double *gradient) {
  const double rate = 0.01, beta1 = 0.9, beta2 = 0.999;
  double t = (double)++self->updates;
  double step = rate * sqrt(1 - pow(beta2, t)) / (1 - pow(beta1, t));
  for (int i = 0; i < WEIGHTS; i++) {
    self->first_moment[i] += (1 - beta1) * (gradient[i] - self->first_moment[i]);
    self->second_moment[i] += (1 - beta2) * (gradient[i] * gradient[i] - self->second_moment[i]);
    self->weight[i] -= step * self->first_moment[i] / (sqrt(self->second_moment[i]) + 1e-8);
  }
}

static void decide(lp_policy *policy, const lp_router_request *request, lp_decision *out) {
  network *self = (network *)policy;
  double input[INPUTS], hidden[HIDDEN], value[LP_ROUTE_COUNT];
  encode(request->keywords, input);
  forward(self, input, hidden, value);
  *out = (lp_decision){0};
  lp_route best = LP_ROUTE_COUNT;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(request->offered, route) && (best == LP_ROUTE_COUNT || value[route] > value[best]))
      best = route;
  out->probability[best] = 1;
  lp_explorer_draw(&self->explorer, request->offered, best, LP_DECIDED_MODEL, out);
}

static void scale(network *self, double reward) {
  double count = (double)(self->seen + 1), before = self->mean;
  self->mean += (reward - self->mean) / count;
  double variance = self->spread * self->spread;
  variance += ((reward - before) * (reward - self->mean) - variance) / count;
  self->spread = fmax(sqrt(fmax(variance, 0)), 1e-3);
}

static void learn(lp_policy *policy, const lp_router_request *request, lp_route route, double reward, bool good) {
  (void)good;
  network *self = (network *)policy;
  scale(self, reward);
  outcome *slot = &self->memory[self->seen++ % MEMORY];
  encode(request->keywords, slot->input);
  slot->route = route;
  slot->reward = reward;
  uint64_t kept = self->seen < MEMORY ? self->seen : MEMORY;
  double gradient[WEIGHTS] = {0};
  for (uint64_t i = 0; i < BATCH; i++)
    backward(self, &self->memory[lp_random_bits(self->explorer.options.seed + 1, self->seen, i) % kept], gradient);
  cblas_dscal(WEIGHTS, 1 / (double)BATCH, gradient, 1);
  adam(self, gradient);
}

static void close_network(lp_policy *policy) {
  free(policy);
}

lp_policy *lp_policy_network(const lp_exploration *exploration) {
  network *self = lp_alloc(sizeof *self);
  *self = (network){
      .policy = {"dqn", decide, learn, close_network, false, NULL}, .explorer = {*exploration, 0}, .spread = 1};
  for (int i = 0; i < WEIGHTS; i++) { /* He's uniform initialisation; biases start at 0 */
    double fan_in = i < B1 ? (double)INPUTS / 8 : i >= W2 && i < B2 ? (double)HIDDEN : 0;
    double bound = fan_in > 0 ? sqrt(6 / fan_in) : 0;
    self->weight[i] = bound * (2 * lp_random_uniform(exploration->seed, 1u << 20, (uint64_t)i) - 1) * 0.5;
  }
  return &self->policy;
}
