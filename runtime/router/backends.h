/* The backends of the routes: their constraints on requests, and estimates of their delays. Times in s. */
#pragma once

#include "runtime/router/router.h"
#include "runtime/service/service.h"

/* ---- backends and requests (backends.c) -------------------------------------------------------------------------- */

typedef struct {
  bool there, healthy;
  lp_service_model model;
  double backhaul_s;   /* of every answer */
  double row_bytes;    /* of a split: hidden states of a position on the user's link; 0: `model` counts them */
  int64_t context;     /* limit on the tokens of prompt and answer together; 0: none */
  int64_t slots;       /* limit on concurrent requests; 0: none */
  double usd_per_mtok; /* price of a token, of the prompt or the answer */
} lp_route_backend;

/* The backends of all routes, and the link to the users. */
typedef struct {
  lp_arena *arena; /* owns the texts */
  lp_route_backend of[LP_ROUTE_COUNT];
  double token_bytes, up_bps, down_bps; /* INFINITY: the radio link takes no time */
  /* Of a radio profile: rates of the users of one drop, [users]; their medians are up_bps and down_bps. */
  int64_t users;
  double *user_up_bps, *user_down_bps;
} lp_backends;

/* A YAML file: `service` (edge, cloud, and maybe split), `split` (a report or bundle), `edge`, `cloud` and `split_plan`
 * with their limits, `backhaul`, `link`. docs/router.md shows one. Release with lp_backends_free. */
LP_MUST_USE lp_status lp_backends_load(const char *path, lp_backends **out, lp_diag *diag);
/* Refuses a user that the backends' radio profile does not have; 0 is allowed. */
LP_MUST_USE lp_status lp_backends_check_user(const lp_backends *backends, int64_t user, lp_loc loc, lp_diag *diag);
void lp_backends_free(lp_backends *backends); /* NULL is allowed */

/* The facts about a request that are known before the decision. */
typedef struct {
  double prompt_tokens, tokens; /* expected tokens of the answer */
  double most_tokens;           /* the most tokens of the answer; 0: as expected */
  bool local_only;              /* the request may not leave the edge */
  double budget_usd;            /* INFINITY: none */
  double up_bps, down_bps;      /* of the user's own link; 0: as that of `user` */
  int64_t user;                 /* of the backends' radio profile, from 1; 0: the rates of the backends */
} lp_demand;

/* The hard constraints: bit 1 << route for each route that may take the request. `why` (may be NULL) receives the
 * reason for each other route: "edge: is down; cloud: the request may not leave the edge". */
unsigned lp_backends_admit(const lp_backends *backends, const lp_demand *demand, lp_buf *why);
/* Tells whether a route that is up, and that the request may take, is refused for its context. */
bool lp_backends_is_too_long(const lp_backends *backends, const lp_demand *demand);

/* ---- estimates (estimate.c) -------------------------------------------------------------------------------------- */

/* The experience with a backend: the ratio of its observed times to its figures, and its load. */
typedef struct {
  double ratio;  /* moving average of observed over predicted time in service; 1 when nothing is known */
  double seen_s; /* time of the last observation */
  int64_t here;  /* requests that run or wait */
  double work_s; /* sum of their predicted times in service */
} lp_load;

typedef struct {
  double rate;        /* weight of a new observation; 0: 0.2 */
  double half_life_s; /* half-life of an observation, in s; 0: 300 */
  lp_load of[LP_ROUTE_COUNT];
} lp_estimator;

/* Sets all ratios to 1 and all loads to 0. */
lp_estimator lp_estimator_make(double rate, double half_life_s);
/* Estimates wait_s[] and delay_s[] of each route for a request that arrives now: queue + (TTFT + (n - 1) TPOT) x ratio
 * + backhaul + times on the radio link, with the hidden states of all positions but the last. 0 for a route without a
 * backend. Pure. */
void lp_delay_estimate(const lp_backends *backends, const lp_estimator *estimator, const lp_demand *demand, double at_s,
                       double wait_s[LP_ROUTE_COUNT], double delay_s[LP_ROUTE_COUNT]);
/* Notes that a request was sent to a route, or came back after `observed_s` in service, its wait excluded; negative: it
 * failed, and its time is not counted. Both calls take the same demand. */
void lp_estimator_begin(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand, lp_route route);
void lp_estimator_end(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand, lp_route route,
                      double at_s, double observed_s);

/* The same for an answer whose prompt and length in `made` differ from those of `demand`, which were expected: the time
 * is compared with the prediction for what was made. */
void lp_estimator_answer(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand,
                         const lp_demand *made, lp_route route, double at_s, double observed_s);

/* Prepares a request for the decision while `busy` others are at the edge: removes from request->offered the routes
 * with a backend that does not admit it, sets request->delay_s, and appends the keyword of the edge's queue to
 * `keywords`. `why` is that of lp_backends_admit. */
void lp_backends_weigh(const lp_backends *backends, const lp_demand *demand, int64_t busy, lp_router_request *request,
                       lp_buf *keywords, lp_buf *why);

/* The keyword of a queue, by the ratio of the wait at the edge to the extra time of the cloud: "queue short" (below
 * 1/4), "queue middle" (1/2), "queue long" (1), "queue overlong"; NULL: there is no queue. `edge_s` and `cloud_s` are
 * complete delays. */
const char *lp_queue_keyword(double wait_s, double edge_s, double cloud_s);
/* Appends P3's expected output size, Eq. (8), as a keyword: rounded to a power of two, so that requests of one kind
 * share it. */
void lp_size_keyword(double tokens, lp_buf *keywords);
