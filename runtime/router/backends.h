/* The backends of the routes: which requests each may take, and how long it will take for them. Times in s. */
#ifndef LP_ROUTER_BACKENDS_H
#define LP_ROUTER_BACKENDS_H

#include "runtime/router/router.h"
#include "runtime/service/service.h"

/* ---- backends and requests (backends.c) -------------------------------------------------------------------------- */

typedef struct {
  bool there, healthy;
  lp_service_model model;
  double backhaul_s;   /* of every answer */
  int64_t context;     /* tokens of prompt and answer together; 0: any */
  int64_t slots;       /* requests at a time; 0: any */
  double usd_per_mtok; /* of prompt and answer alike */
} lp_route_backend;

/* The backends of all routes, and the link to the users. */
typedef struct {
  lp_arena *arena; /* owns the texts */
  lp_route_backend of[LP_ROUTE_COUNT];
  double token_bytes, up_bps, down_bps; /* INFINITY: no time on the air */
} lp_backends;

/* A YAML file: `service` (edge and cloud), `split` (a report or bundle), `edge`, `cloud` and `split_plan` with their
 * limits, `backhaul`, `link`. docs/router.md shows one. Release with lp_backends_free. */
LP_MUST_USE lp_status lp_backends_load(const char *path, lp_backends **out, lp_diag *diag);
void lp_backends_free(lp_backends *backends); /* NULL is allowed */

/* What is known of a request before anything is decided. */
typedef struct {
  double prompt_tokens, tokens; /* of the answer: what is expected */
  double most_tokens;           /* what it may become; 0: as expected */
  bool local_only;              /* it may not leave the edge */
  double budget_usd;            /* INFINITY: none */
} lp_demand;

/* The hard constraints: bit 1 << route for each route that may take the request. `why` (may be NULL) says of every
 * other one what speaks against it: "edge: is down; cloud: the request may not leave the edge". */
unsigned lp_backends_admit(const lp_backends *backends, const lp_demand *demand, lp_buf *why);
double lp_backend_cost_usd(const lp_route_backend *backend, const lp_demand *demand);

/* ---- estimates (estimate.c) -------------------------------------------------------------------------------------- */

/* What experience says of a backend: how much longer it takes than its figures say, and what waits there. */
typedef struct {
  double ratio;  /* moving average of observed to predicted time in service; 1 when nothing is known */
  double seen_s; /* when it was last observed */
  int64_t here;  /* requests that run or wait */
  double work_s; /* their predicted times in service together */
} lp_load;

typedef struct {
  double rate;        /* weight of a new observation; 0: 0.2 */
  double half_life_s; /* what is not seen again is half forgotten after this time; 0: 300 */
  lp_load of[LP_ROUTE_COUNT];
} lp_estimator;

/* All ratios 1, nothing there. */
lp_estimator lp_estimator_make(double rate, double half_life_s);
/* wait_s[] and delay_s[] of each route for a request that came now: queue + (TTFT + (n - 1) TPOT) x ratio + backhaul +
 * the times on the air. Pure. 0 where no backend is there. */
void lp_delay_estimate(const lp_backends *backends, const lp_estimator *estimator, const lp_demand *demand, double at_s,
                       double wait_s[LP_ROUTE_COUNT], double delay_s[LP_ROUTE_COUNT]);
/* The request goes there / is back after `observed_s` in service (without its wait; negative: it failed, which tells no
 * time). The same demand both times. */
void lp_estimator_begin(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand, lp_route route);
void lp_estimator_end(lp_estimator *estimator, const lp_backends *backends, const lp_demand *demand, lp_route route,
                      double at_s, double observed_s);

/* Weighs a request while `busy` others are at the edge: takes the routes that no backend admits from request->offered,
 * sets request->delay_s, and adds the keyword of the edge's queue to `keywords`. `why` as of lp_backends_admit. */
void lp_backends_weigh(const lp_backends *backends, const lp_demand *demand, int64_t busy, lp_router_request *request,
                       lp_buf *keywords, lp_buf *why);

/* The keyword of a queue: how much of the cloud's longer answer the wait at the edge takes, "queue short" (below 1/4),
 * "queue middle" (1/2), "queue long" (1), "queue overlong"; NULL: there is none. `edge_s` and `cloud_s` are whole
 * delays. */
const char *lp_queue_keyword(double wait_s, double edge_s, double cloud_s);

#endif
