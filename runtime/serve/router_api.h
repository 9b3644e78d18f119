/* The router's API in JSON, for clients that only ask where a request should go. *out is released with free().
 * LP_USAGE: the question is wrong. */
#ifndef LP_SERVE_ROUTER_API_H
#define LP_SERVE_ROUTER_API_H

#include "runtime/serve/dispatch.h"

/* A body of `size` bytes: a question (`decides`), or what came of a decision. */
LP_MUST_USE lp_status lp_router_post(lp_dispatcher *dispatcher, bool decides, const char *body, size_t size, char **out,
                                     lp_diag *diag);
/* The decision whose number the text is. */
LP_MUST_USE lp_status lp_router_explain(lp_dispatcher *dispatcher, const char *number, char **out, lp_diag *diag);

#endif
