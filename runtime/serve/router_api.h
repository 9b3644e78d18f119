/* The router's API in JSON, for clients that only ask where a request should go. The caller releases *out with free().
 * LP_USAGE: the request is wrong. */
#ifndef LP_SERVE_ROUTER_API_H
#define LP_SERVE_ROUTER_API_H

#include "runtime/serve/dispatch.h"

/* Handles a body of `size` bytes: a request for a decision (`decides`), or the outcome of one. */
LP_MUST_USE lp_status lp_router_post(lp_dispatcher *dispatcher, bool decides, const char *body, size_t size, char **out,
                                     lp_diag *diag);
/* Explains the decision with the number in the text. */
LP_MUST_USE lp_status lp_router_explain(lp_dispatcher *dispatcher, const char *number, char **out, lp_diag *diag);

#endif
