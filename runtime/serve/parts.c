/* Opens, shares and closes the parts of dispatchers. */
#include "runtime/serve/parts.h"

#include "base/clock.h"
#include "runtime/router/judge.h"

/* The time after which the policy has learned what other servers of the same pool have seen. */
static const double follow_ms = 1000;

struct lp_part {
  int users;               /* dispatchers */
  uint64_t digest;         /* of what the configuration says of it */
  lp_serve_config *config; /* that it was opened with */
  void *self;
};

/* ---- the router -------------------------------------------------------------------------------------------------- */

void lp_learner_learn(lp_learner *self, const lp_router_request *request, lp_route route, double reward, bool good) {
  if (!self->policy->parallel) (void)pthread_mutex_lock(&self->lock);
  self->policy->learn(self->policy, request, route, reward, good);
  if (!self->policy->parallel) (void)pthread_mutex_unlock(&self->lock);
}

void lp_learner_decide(lp_learner *self, lp_router_request *request, lp_decision *decision) {
  if (!self->policy->parallel) (void)pthread_mutex_lock(&self->lock);
  self->policy->decide(self->policy, request, decision);
  if (!self->policy->parallel) (void)pthread_mutex_unlock(&self->lock);
}

static void learn_stored(void *user, const lp_stored *stored) {
  lp_learner_learn(user, &stored->request, stored->decision.route, stored->reward, stored->good);
}

static void *follow(void *user) {
  lp_learner *self = user;
  while (lp_watcher_wait(&self->follower, follow_ms)) {
    lp_diag *quiet = lp_diag_create(); /* what cannot be read now is read later */
    (void)!lp_store_follow(self->store, learn_stored, self, quiet);
    lp_diag_free(quiet);
  }
  return NULL;
}

static lp_status fill_learner(const lp_serve_config *config, lp_learner *self, lp_diag *diag) {
  if (config->pool) LP_TRY(lp_store_open(config->pool, &self->store, diag));
  LP_TRY(lp_policy_open_taught(&config->policy, self->store, 0, &self->policy, diag));
  if (config->model_keywords && !self->policy->describe)
    return lp_error(diag, LP_LOC_NONE,
                    "'keywords: model' requires the policy 'router' with a language model: a bundle, or an API");
  if (!self->store) return LP_OK;
  LP_TRY(lp_store_follow(self->store, learn_stored, self, diag));
  lp_watcher_start(&self->follower, follow, self);
  return LP_OK;
}

static void close_learner(lp_learner *self) {
  lp_watcher_end(&self->follower);
  if (self->policy) self->policy->close(self->policy);
  lp_store_close(self->store);
  (void)pthread_mutex_destroy(&self->lock);
  free(self);
}

static lp_status open_learner(const lp_serve_config *config, void **out, lp_diag *diag) {
  lp_learner *self = lp_alloc(sizeof *self);
  (void)pthread_mutex_init(&self->lock, NULL);
  lp_status status = fill_learner(config, self, diag);
  *out = self;
  if (status != LP_OK) close_learner(self);
  return status;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static lp_status open_place(const lp_serve_config *config, lp_route route, void **out, lp_diag *diag) {
  lp_site_server *site = NULL;
  lp_status status = route == LP_ROUTE_CLOUD
                         ? lp_site_api(config, &site, diag)
                         : lp_site_bundle(route == LP_ROUTE_EDGE ? &config->edge : &config->split, route, &site, diag);
  LP_TRY(status);
  lp_serve_place *self = lp_alloc(sizeof *self);
  self->site = site;
  lp_breaker_init(&self->breaker);
  *out = self;
  return LP_OK;
}

static lp_status open_embedder(const lp_serve_config *config, void **out, lp_diag *diag) {
  lp_embedder *self = NULL;
  lp_status status = lp_embedder_open(&config->embeddings, &self, diag);
  *out = self;
  return status;
}

static lp_status open_spans(const lp_serve_config *config, void **out, lp_diag *diag) {
  lp_spans *self = NULL;
  const lp_spans_options options = {.url = config->traces, .key = config->traces_key, .service = "llmpart serve"};
  lp_status status = lp_spans_open(&options, &self, diag);
  *out = self;
  return status;
}

static lp_metrics *create_metrics(void) {
  lp_metrics *metrics = lp_alloc(sizeof *metrics);
  (void)pthread_mutex_init(&metrics->lock, NULL);
  metrics->tracking.since_s = lp_now_ms() / 1000;
  return metrics;
}

static void free_metrics(lp_metrics *metrics) {
  (void)pthread_mutex_destroy(&metrics->lock);
  free(metrics);
}

static lp_status open_self(const lp_serve_config *config, int which, void **out, lp_diag *diag) {
  if (which == LP_PART_EMBEDDER) return open_embedder(config, out, diag);
  if (which == LP_PART_LEARNER) return open_learner(config, out, diag);
  if (which == LP_PART_SPANS) return open_spans(config, out, diag);
  if (which != LP_PART_METRICS) return open_place(config, (lp_route)which, out, diag);
  *out = create_metrics();
  return LP_OK;
}

static void close_place(lp_serve_place *place) {
  place->site->close(place->site);
  lp_breaker_destroy(&place->breaker);
  free(place);
}

static void close_self(int which, void *self) {
  if (which == LP_PART_EMBEDDER)
    lp_embedder_close(self);
  else if (which == LP_PART_LEARNER)
    close_learner(self);
  else if (which == LP_PART_SPANS)
    lp_spans_close(self);
  else if (which == LP_PART_METRICS)
    free_metrics(self);
  else
    close_place(self);
}

/* What the configuration says of a part; 0: it has none. */
static uint64_t digest_of(const lp_serve_config *config, int which) {
  const struct {
    bool there;
    uint64_t digest;
  } of[LP_PART_COUNT] = {[LP_ROUTE_EDGE] = {config->edge.bundle != NULL, config->edge.digest},
                         [LP_ROUTE_SPLIT] = {config->split.bundle != NULL, config->split.digest},
                         [LP_ROUTE_CLOUD] = {config->url != NULL, config->cloud_digest},
                         [LP_PART_EMBEDDER] = {config->embeddings.bundle != NULL, config->embeddings.digest},
                         [LP_PART_LEARNER] = {true, config->router_digest},
                         [LP_PART_SPANS] = {config->traces != NULL, config->traces_digest},
                         [LP_PART_METRICS] = {true, 0}};
  return of[which].there ? of[which].digest | 1 : 0;
}

static void release(int which, lp_part *part) {
  if (!part || --part->users > 0) return;
  close_self(which, part->self);
  lp_serve_config_free(part->config);
  free(part);
}

static lp_status open_part(lp_serve_config *config, int which, lp_part **out, lp_diag *diag) {
  void *self = NULL;
  LP_TRY(open_self(config, which, &self, diag));
  *out = lp_alloc(sizeof **out);
  **out = (lp_part){1, digest_of(config, which), lp_serve_config_share(config), self};
  return LP_OK;
}

static void *self_of(const lp_parts *parts, int which) {
  return parts->part[which] ? parts->part[which]->self : NULL;
}

lp_status lp_parts_open(lp_serve_config *config, const lp_parts *earlier, lp_parts *out, lp_buf *opened,
                        lp_diag *diag) {
  static const char *const name[LP_PART_COUNT] = {
      [LP_ROUTE_EDGE] = "edge",          [LP_ROUTE_SPLIT] = "split",   [LP_ROUTE_CLOUD] = "cloud",
      [LP_PART_EMBEDDER] = "embeddings", [LP_PART_LEARNER] = "router", [LP_PART_SPANS] = "traces"};
  for (int i = 0; i < LP_PART_COUNT; i++) {
    const uint64_t digest = digest_of(config, i);
    lp_part *before = earlier ? earlier->part[i] : NULL;
    if (before && before->digest == digest) {
      out->part[i] = before;
      before->users++;
    } else {
      if (earlier && (before || digest)) lp_buf_printf(opened, "%s'%s'", opened->size > 0 ? ", " : "", name[i]);
      if (digest) LP_TRY(open_part(config, i, &out->part[i], diag));
    }
  }
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    out->place[route] = self_of(out, (int)route);
  out->embedder = self_of(out, LP_PART_EMBEDDER);
  out->learner = self_of(out, LP_PART_LEARNER);
  out->spans = self_of(out, LP_PART_SPANS);
  out->metrics = self_of(out, LP_PART_METRICS);
  return LP_OK;
}

void lp_parts_close(lp_parts *parts) {
  for (int i = 0; i < LP_PART_COUNT; i++)
    release(i, parts->part[i]);
}
