/* Applies the hard constraints of places, and keeps estimates of their delays. */
#include "runtime/serve/estimates.h"

#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/map.h"

/* Tokens of an answer before one was seen, the weight of a new one, and bytes of a prompt for each token. */
static const double first_tokens = 128, token_rate = 0.1, token_bytes = 4;
enum { MOST_CLASSES = 1024 }; /* of requests; each has a mean length of answers */

struct lp_estimates {
  const lp_serve_config *config;
  lp_backends *backends;
  pthread_mutex_t lock; /* guards what follows */
  lp_estimator estimator;
  double mean_tokens; /* of answers */
  lp_map *of_class;   /* keywords: a double, owned, the mean of their answers */
};

/* Without a file all places have the same figures, and what is seen of each corrects them. */
static lp_backends *usual_backends(const lp_serve_config *config) {
  lp_backends *backends = lp_alloc(sizeof *backends);
  *backends =
      (lp_backends){.arena = lp_arena_create(), .token_bytes = token_bytes, .up_bps = INFINITY, .down_bps = INFINITY};
  const bool there[LP_ROUTE_COUNT] = {[LP_ROUTE_EDGE] = config->edge.bundle != NULL,
                                      [LP_ROUTE_SPLIT] = config->split.bundle != NULL,
                                      [LP_ROUTE_CLOUD] = config->url != NULL};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    backends->of[route] =
        (lp_route_backend){.there = there[route],
                           .healthy = true,
                           .model = {.model = lp_route_name(route), .ttft_s = 0.1, .prompt_s = 0.0005, .tpot_s = 0.02}};
  backends->of[LP_ROUTE_EDGE].slots = config->edge.parallel;
  backends->of[LP_ROUTE_SPLIT].slots = config->split.parallel;
  return backends;
}

/* Refuses keys whose user the radio profile does not have. */
static lp_status check_users(const lp_serve_config *config, const lp_backends *backends, lp_diag *diag) {
  for (size_t i = 0; i < config->keys.count; i++)
    LP_TRY(lp_backends_check_user(backends, config->keys.data[i].user, LP_LOC_FILE(config->keys.data[i].name), diag));
  return LP_OK;
}

lp_status lp_estimates_open(const lp_serve_config *config, lp_estimates **out, lp_diag *diag) {
  lp_backends *backends = NULL;
  if (config->backends) LP_TRY(lp_backends_load(config->backends, &backends, diag));
  if (!backends) backends = usual_backends(config);
  lp_status status = check_users(config, backends, diag);
  if (status != LP_OK) lp_backends_free(backends);
  if (status != LP_OK) return status;
  lp_estimates *self = lp_alloc(sizeof *self);
  *self = (lp_estimates){.config = config,
                         .backends = backends,
                         .estimator = lp_estimator_make(0, 0),
                         .mean_tokens = first_tokens,
                         .of_class = lp_map_create()};
  (void)pthread_mutex_init(&self->lock, NULL);
  *out = self;
  return LP_OK;
}

void lp_estimates_close(lp_estimates *self) {
  if (!self) return;
  lp_backends_free(self->backends);
  for (size_t i = 0; i < lp_map_count(self->of_class); i++)
    free(lp_map_value_at(self->of_class, i));
  lp_map_free(self->of_class);
  (void)pthread_mutex_destroy(&self->lock);
  free(self);
}

static double prompt_bytes(const lp_completion *asked) {
  double bytes = (asked->prompt ? (double)strlen(asked->prompt) : 0) + token_bytes * (double)asked->prompt_tokens.count;
  for (size_t i = 0; i < asked->count; i++)
    bytes += (double)strlen(asked->messages[i].content);
  return bytes;
}

/* The expected tokens of one answer. With the lock held. */
static double expected_tokens(const lp_estimates *self, const lp_completion *asked) {
  const double *mean = asked->keywords ? lp_map_get(self->of_class, asked->keywords) : NULL;
  return fmin(mean ? *mean : self->mean_tokens, (double)asked->max_tokens);
}

/* With the lock held. */
static void learn_tokens(lp_estimates *self, const lp_completion *asked, double tokens) {
  self->mean_tokens += token_rate * (tokens - self->mean_tokens);
  if (!asked->keywords) return;
  double *mean = lp_map_get(self->of_class, asked->keywords);
  if (!mean && lp_map_count(self->of_class) >= MOST_CLASSES) return;
  if (!mean) {
    (void)lp_map_put(self->of_class, asked->keywords, mean = lp_alloc(sizeof *mean));
    *mean = tokens;
  }
  *mean += token_rate * (tokens - *mean);
}

bool lp_estimates_is_too_long(const lp_estimates *self, const lp_demand *demand) {
  return lp_backends_is_too_long(self->backends, demand);
}

unsigned lp_estimates_weigh(lp_estimates *self, const lp_completion *asked, lp_demand *demand,
                            lp_router_request *request, lp_buf *keywords, lp_buf *why) {
  double wait_s[LP_ROUTE_COUNT];
  unsigned there = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (self->backends->of[route].there) there |= 1u << route;
  (void)pthread_mutex_lock(&self->lock);
  *demand = (lp_demand){.prompt_tokens = ceil(prompt_bytes(asked) / token_bytes),
                        .tokens = expected_tokens(self, asked) * asked->choices,
                        .most_tokens = (double)asked->max_tokens * asked->choices,
                        .local_only = asked->local_only,
                        .budget_usd = asked->budget_usd,
                        .up_bps = asked->up_bps,
                        .down_bps = asked->down_bps,
                        .user = asked->user};
  lp_delay_estimate(self->backends, &self->estimator, demand, lp_now_ms() / 1000, wait_s, request->delay_s);
  (void)pthread_mutex_unlock(&self->lock);
  if (asked->described.size > 0) lp_size_keyword(demand->tokens / asked->choices, keywords);
  const char *queue =
      lp_queue_keyword(wait_s[LP_ROUTE_EDGE], request->delay_s[LP_ROUTE_EDGE], request->delay_s[LP_ROUTE_CLOUD]);
  if (queue) lp_buf_printf(keywords, ", %s", queue);
  const unsigned admitted = lp_backends_admit(self->backends, demand, why) | (asked->local_only ? 0 : ~there);
  request->offered &= admitted;
  return admitted;
}

void lp_estimates_begin(lp_estimates *self, const lp_demand *demand, lp_route route) {
  (void)pthread_mutex_lock(&self->lock);
  lp_estimator_begin(&self->estimator, self->backends, demand, route);
  (void)pthread_mutex_unlock(&self->lock);
}

void lp_estimates_end(lp_estimates *self, const lp_completion *asked, const lp_demand *demand, lp_route route,
                      const lp_usage *usage, double service_s) {
  lp_demand made = *demand;
  if (usage->prompt_tokens > 0) made.prompt_tokens = (double)usage->prompt_tokens;
  if (usage->tokens > 0) made.tokens = (double)usage->tokens;
  (void)pthread_mutex_lock(&self->lock);
  lp_estimator_answer(&self->estimator, self->backends, demand, &made, route, lp_now_ms() / 1000, service_s);
  if (service_s >= 0 && usage->tokens > 0) learn_tokens(self, asked, (double)usage->tokens / asked->choices);
  (void)pthread_mutex_unlock(&self->lock);
}
