#include "runtime/serve/dispatch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/router/judge.h"
#include "runtime/serve/stop.h"

struct lp_dispatcher {
  const lp_serve_config *config;
  lp_site_server *site[LP_ROUTE_COUNT]; /* NULL: there is none */
  lp_policy *policy;
  lp_store *store;      /* NULL: none */
  pthread_mutex_t lock; /* of the policy */
  lp_metrics metrics;
};

unsigned lp_dispatcher_offered(const lp_dispatcher *self) {
  unsigned routes = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (self->site[route]) routes |= 1u << route;
  return routes;
}

unsigned lp_dispatcher_up(const lp_dispatcher *self) {
  unsigned routes = lp_dispatcher_offered(self);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    const lp_site_server *site = self->site[route];
    if (site && site->is_up && !site->is_up(site)) routes &= ~(1u << route);
  }
  return routes;
}

static lp_status open_router(lp_dispatcher *self, lp_diag *diag) {
  if (self->config->pool) LP_TRY(lp_store_open(self->config->pool, &self->store, diag));
  return lp_policy_open_taught(&self->config->policy, self->store, 0, &self->policy, diag);
}

lp_status lp_dispatcher_open(const lp_serve_config *config, lp_dispatcher **out, lp_diag *diag) {
  lp_dispatcher *self = lp_alloc(sizeof *self);
  *self = (lp_dispatcher){.config = config};
  (void)pthread_mutex_init(&self->lock, NULL);
  (void)pthread_mutex_init(&self->metrics.lock, NULL);
  lp_status status = LP_OK;
  if (config->bundle) status = lp_site_bundle(config, &self->site[LP_ROUTE_EDGE], diag);
  if (status == LP_OK && config->url) status = lp_site_api(config, &self->site[LP_ROUTE_CLOUD], diag);
  if (status == LP_OK) status = open_router(self, diag);
  if (status == LP_OK)
    *out = self;
  else
    lp_dispatcher_close(self);
  return status;
}

void lp_dispatcher_close(lp_dispatcher *self) {
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (self->site[route]) self->site[route]->close(self->site[route]);
  if (self->policy) self->policy->close(self->policy);
  lp_store_close(self->store);
  (void)pthread_mutex_destroy(&self->lock);
  (void)pthread_mutex_destroy(&self->metrics.lock);
  free(self);
}

lp_metrics *lp_dispatcher_metrics(lp_dispatcher *self) {
  return &self->metrics;
}

/* ---- decisions and outcomes -------------------------------------------------------------------------------------- */

lp_status lp_dispatcher_decide(lp_dispatcher *self, lp_router_request *request, lp_decision *decision, int64_t *id,
                               lp_diag *diag) {
  *id = 0;
  request->rule = self->config->rule;
  (void)pthread_mutex_lock(&self->lock);
  self->policy->decide(self->policy, request, decision);
  (void)pthread_mutex_unlock(&self->lock);
  return self->store ? lp_store_decision(self->store, request, decision, id, diag) : LP_OK;
}

static void learn_of(lp_dispatcher *self, const lp_router_request *request, lp_route route, double reward, bool good) {
  (void)pthread_mutex_lock(&self->lock);
  self->policy->learn(self->policy, request, route, reward, good);
  (void)pthread_mutex_unlock(&self->lock);
}

lp_status lp_dispatcher_stored(lp_dispatcher *self, int64_t id, lp_arena *arena, lp_stored *out, lp_diag *diag) {
  if (!self->store) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no decision is kept: the server has no pool");
  return lp_store_get(self->store, id, arena, out, diag) == LP_OK ? LP_OK : LP_USAGE;
}

lp_status lp_dispatcher_outcome(lp_dispatcher *self, int64_t id, double reward, bool good, lp_diag *diag) {
  lp_arena *arena = lp_arena_create();
  lp_stored stored;
  lp_status status = lp_dispatcher_stored(self, id, arena, &stored, diag);
  if (status == LP_OK && lp_store_outcome(self->store, id, reward, good, diag) != LP_OK) status = LP_USAGE;
  if (status == LP_OK) learn_of(self, &stored.request, stored.decision.route, reward, good);
  lp_arena_free(arena);
  return status;
}

/* ---- one request ------------------------------------------------------------------------------------------------- */

/* Notes that a piece was passed on: after the first one, the other site may not answer. */
typedef struct {
  lp_piece_sink *sink;
  void *user;
  bool begun;
} counted;

static bool hand_on(void *user, const char *text) {
  counted *to = user;
  to->begun = true;
  return to->sink(to->user, text);
}

/* Sets the route that the request names, or the routes from which the router may choose. */
static lp_status offer(const lp_dispatcher *self, const lp_completion *asked, lp_router_request *request,
                       lp_diag *diag) {
  lp_route named;
  *request = (lp_router_request){.keywords = asked->keywords, .offered = lp_dispatcher_offered(self)};
  if (lp_route_parse(asked->model, &named)) {
    if (!lp_route_offered(request->offered, named))
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "the server has no '%s'", asked->model);
    request->offered = 1u << named;
  } else if (!lp_streq(asked->model, "auto")) {
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "there is no model '%.80s': wanted %s, %s or auto", asked->model,
                       lp_route_name(LP_ROUTE_EDGE), lp_route_name(LP_ROUTE_CLOUD));
  }
  return LP_OK;
}

/* A failure of a site has the reward of an answer that came too late. */
static void conclude(lp_dispatcher *self, const lp_router_request *request, lp_route route, int64_t id, double delay_s,
                     bool good) {
  double reward = good ? self->config->target_s - delay_s : -self->config->target_s;
  learn_of(self, request, route, reward, good);
  if (id <= 0) return;
  lp_diag *quiet = lp_diag_create(); /* if the pool cannot be written, only the experience is lost */
  lp_metrics_keep(&self->metrics, lp_store_outcome(self->store, id, reward, good, quiet) == LP_OK);
  lp_diag_free(quiet);
}

/* Decides. A request is answered even if the pool, as on a full disk, does not take the decision, which then has the
 * number 0. */
static void decide(lp_dispatcher *self, lp_router_request *request, lp_decision *decision, int64_t *id) {
  lp_diag *quiet = lp_diag_create();
  bool kept = lp_dispatcher_decide(self, request, decision, id, quiet) == LP_OK;
  if (!kept) *id = 0;
  if (self->store) lp_metrics_keep(&self->metrics, kept);
  lp_diag_free(quiet);
}

static lp_route other_of(lp_route route) {
  return route == LP_ROUTE_EDGE ? LP_ROUTE_CLOUD : LP_ROUTE_EDGE;
}

/* Lets one site answer, up to a stop sequence. */
static lp_status ask(lp_dispatcher *self, lp_route route, const lp_completion *asked, const volatile int *stop,
                     counted *to, lp_usage *usage, lp_diag *diag) {
  lp_site_server *site = self->site[route];
  lp_stopper stopper = {.request = asked, .sink = hand_on, .user = to};
  lp_status status = site->complete(site, asked, stop, lp_stopper_put, &stopper, usage, diag);
  if (stopper.stopped) usage->cut = false;
  lp_stopper_end(&stopper, status == LP_OK);
  return status;
}

lp_status lp_dispatch(lp_dispatcher *self, const lp_completion *asked, const volatile int *stop, lp_piece_sink *sink,
                      void *user, lp_route *route, int64_t *id, lp_usage *usage, lp_diag *diag) {
  lp_router_request request;
  lp_decision decision;
  counted to = {sink, user, false};
  *id = 0;
  LP_TRY(offer(self, asked, &request, diag));
  decide(self, &request, &decision, id);
  *route = decision.route;
  double begun = lp_now_ms();
  lp_metrics_begin(&self->metrics);
  lp_diag *first = lp_diag_create();
  lp_status status = ask(self, *route, asked, stop, &to, usage, first);
  if (status != LP_USAGE && !lp_flag_get(stop))
    conclude(self, &request, decision.route, *id, (lp_now_ms() - begun) / 1000, status == LP_OK);
  const lp_diag_entry *why = lp_diag_get(first, 0);
  if (status == LP_FAILED && !to.begun && !lp_flag_get(stop) && lp_route_offered(request.offered, other_of(*route))) {
    *route = other_of(*route);
    status = ask(self, *route, asked, stop, &to, usage, diag);
  } else if (status != LP_OK) {
    status = lp_error_as(status, diag, LP_LOC_NONE, "%s: %s", lp_route_name(*route), why ? why->text : "no answer");
  }
  lp_diag_free(first);
  lp_metrics_end(&self->metrics, *route, usage, status == LP_OK, *route != decision.route,
                 (lp_now_ms() - begun) / 1000);
  return status;
}
