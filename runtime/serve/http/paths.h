/* The paths of the API. */
#ifndef LP_SERVE_HTTP_PATHS_H
#define LP_SERVE_HTTP_PATHS_H

#include "runtime/serve/http/exchange.h"

/* Replies to a request, of which the exchange has the body. *taken: as in lp_exchange_answer. */
enum MHD_Result lp_paths_reply(struct MHD_Connection *connection, const char *url, const char *method,
                               lp_exchange *exchange, bool *taken);

#endif
