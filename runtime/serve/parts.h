/* What a dispatcher opens: places, embeddings, the router with its pool, spans and counts. When the configuration is
 * read again, the new dispatcher takes over those of which the configuration says the same as before; the others end
 * with the last dispatcher that has them. One thread opens and closes parts; any number use them. */
#pragma once

#include "runtime/router/store.h"
#include "runtime/serve/metrics.h"
#include "runtime/serve/place/breaker.h"
#include "runtime/serve/place/embedder.h"
#include "runtime/serve/place/site.h"
#include "runtime/serve/place/watcher.h"

typedef struct {
  lp_site_server *site;
  lp_breaker breaker;
} lp_serve_place;

/* A policy, and the pool from which it learns what other servers have seen. */
typedef struct {
  lp_policy *policy;
  lp_store *store; /* NULL: none */
  lp_watcher follower;
  pthread_mutex_t lock; /* of a policy that is not parallel */
} lp_learner;

/* A part of each route's place, then the others. */
enum { LP_PART_EMBEDDER = LP_ROUTE_COUNT, LP_PART_LEARNER, LP_PART_SPANS, LP_PART_METRICS, LP_PART_COUNT };
typedef struct lp_part lp_part;
typedef struct {
  lp_part *part[LP_PART_COUNT]; /* NULL: the configuration has none */
  lp_serve_place *place[LP_ROUTE_COUNT];
  lp_embedder *embedder;
  lp_learner *learner;
  lp_spans *spans;
  lp_metrics *metrics;
} lp_parts;

/* `earlier` NULL: all are opened. After a failure `out` has what was opened, which is to be closed. `opened` names the
 * parts, beside those that are always there, that were opened although `earlier` has one. */
LP_MUST_USE lp_status lp_parts_open(lp_serve_config *config, const lp_parts *earlier, lp_parts *out, lp_buf *opened,
                                    lp_diag *diag);
void lp_parts_close(lp_parts *parts);

void lp_learner_learn(lp_learner *self, const lp_router_request *request, lp_route route, double reward, bool good);
void lp_learner_decide(lp_learner *self, lp_router_request *request, lp_decision *decision);
