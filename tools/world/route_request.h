/* The request of `llmpart route`, from its flags. */
#ifndef LP_ROUTE_REQUEST_H
#define LP_ROUTE_REQUEST_H

#include "runtime/router/backends.h"

typedef struct {
  const char *keywords, *offer, *rule;
  const char *backends; /* a file, or NULL: the other members then mean nothing */
  double prompt_tokens, tokens, most_tokens, budget_usd;
  bool local_only;
  int64_t busy; /* number of requests at the edge */
} lp_route_flags;

/* The request, and the routes that constraints refused. */
typedef struct {
  lp_router_request request;
  lp_buf keywords, refused; /* the texts to which the request refers */
} lp_route_request;

/* Returns LP_USAGE for contradictory flags, LP_FAILED when no route is left. Release with lp_route_request_free. */
LP_MUST_USE lp_status lp_route_request_make(const lp_route_flags *flags, lp_route_request *out, lp_diag *diag);
void lp_route_request_free(lp_route_request *request);

#endif
