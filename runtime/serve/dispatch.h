/* The dispatcher takes a request from its decision to its outcome. Any number of threads may use it at once. */
#pragma once

#include "runtime/router/store.h"
#include "runtime/serve/metrics.h"
#include "runtime/serve/place/embedder.h"
#include "runtime/serve/place/site.h"

typedef struct lp_dispatcher lp_dispatcher;

/* Opens the parts of the configuration (parts.h), which must outlive the dispatcher. Those of which it says the same as
 * the configuration of `earlier` are taken over from there; `opened` receives the names of the others. NULL: there is
 * no earlier one. */
LP_MUST_USE lp_status lp_dispatcher_open(lp_serve_config *config, const lp_dispatcher *earlier, lp_dispatcher **out,
                                         lp_buf *opened, lp_diag *diag);
void lp_dispatcher_close(lp_dispatcher *dispatcher);
/* The course of a request. `route`, `model` and `decision` are set before the first piece. */
typedef struct {
  lp_route route;      /* that answered, or failed last */
  const char *model;   /* of its place; borrowed from the dispatcher */
  int64_t decision;    /* the number in the pool; 0: none is kept */
  lp_decision decided; /* with the first route */
  bool fell_back;
  unsigned allowed;              /* the routes that may answer, also those that are down */
  bool no_model;                 /* the request names no model or place of the server */
  bool too_long;                 /* the prompt exceeds the context of every place that may answer */
  double seconds[LP_TIME_COUNT]; /* NaN: there is none */
  lp_usage usage;
} lp_dispatched;

/* Takes an answer. `forget` drops the pieces that it has taken, since another place begins the answer again; NULL: the
 * client has them. */
typedef struct {
  lp_piece_sink *sink;
  void (*forget)(void *user);
  void *user;
} lp_taker;
/* Answers a request. LP_USAGE: the request is wrong. */
LP_MUST_USE lp_status lp_dispatch(lp_dispatcher *dispatcher, const lp_completion *request, const volatile int *stop,
                                  const lp_taker *taker, lp_dispatched *out, lp_diag *diag);
/* The model of a route's place; NULL: there is no such place. */
const char *lp_dispatcher_model(const lp_dispatcher *dispatcher, lp_route route);
/* The state of an offered route's place; up also depends on its circuit breaker. */
void lp_dispatcher_tell(lp_dispatcher *dispatcher, lp_route route, lp_site_state *out);
lp_embedder *lp_dispatcher_embedder(const lp_dispatcher *dispatcher); /* borrowed; NULL: there is none */
lp_spans *lp_dispatcher_spans(const lp_dispatcher *dispatcher);       /* borrowed; NULL: none are kept */
lp_metrics *lp_dispatcher_metrics(lp_dispatcher *dispatcher);         /* borrowed */
const lp_serve_prediction *
lp_dispatcher_prediction(const lp_dispatcher *dispatcher); /* borrowed; NULL: there is none */

/* Only the decision, or only the outcome, for clients that send their requests themselves. LP_USAGE: the request is
 * wrong. */
unsigned lp_dispatcher_offered(const lp_dispatcher *dispatcher); /* a bit for each route */
unsigned lp_dispatcher_up(lp_dispatcher *dispatcher);            /* the offered routes with a site that is up */
LP_MUST_USE lp_status lp_dispatcher_decide(lp_dispatcher *dispatcher, lp_router_request *request, lp_decision *decision,
                                           int64_t *id, lp_diag *diag); /* id 0: there is no pool */
/* Of a decision that `owner` asked for; LP_USAGE: there is none. */
LP_MUST_USE lp_status lp_dispatcher_outcome(lp_dispatcher *dispatcher, uint64_t owner, int64_t id, double reward,
                                            bool good, lp_diag *diag);
LP_MUST_USE lp_status lp_dispatcher_stored(lp_dispatcher *dispatcher, uint64_t owner, int64_t id, lp_arena *arena,
                                           lp_stored *out, lp_diag *diag);
