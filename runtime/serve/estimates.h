/* The hard constraints of places and estimates of their delays, which learn from outcomes: the dispatcher's use of
 * runtime/router/backends.h. Any number of threads may use them. */
#pragma once

#include "runtime/router/backends.h"
#include "runtime/serve/place/site.h"

typedef struct lp_estimates lp_estimates;
/* `config` outlives the estimates. */
LP_MUST_USE lp_status lp_estimates_open(const lp_serve_config *config, lp_estimates **out, lp_diag *diag);
void lp_estimates_close(lp_estimates *estimates); /* NULL is allowed */

/* Removes from request->offered the places that may not take the request (health is the matter of the caller), and
 * returns those that may, offered or not. Sets request->delay_s, and appends to `keywords` the expected size of the
 * answer, if the request has no keywords of its own, and the edge's queue. `why` receives the reasons. */
unsigned lp_estimates_weigh(lp_estimates *estimates, const lp_completion *asked, lp_demand *demand,
                            lp_router_request *request, lp_buf *keywords, lp_buf *why);
/* Tells whether a place is refused for its context. */
bool lp_estimates_is_too_long(const lp_estimates *estimates, const lp_demand *demand);
/* A request goes to a place, and comes back after `service_s` there, its wait excluded; negative: it failed. The sizes
 * of answers are learned for each asked->keywords. */
void lp_estimates_begin(lp_estimates *estimates, const lp_demand *demand, lp_route route);
void lp_estimates_end(lp_estimates *estimates, const lp_completion *asked, const lp_demand *demand, lp_route route,
                      const lp_usage *usage, double service_s);
