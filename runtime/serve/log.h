/* One JSON line for each request, and for each change of a worker. */
#pragma once

#include "runtime/serve/dispatch.h"

typedef struct lp_log lp_log;
/* Appends to a file; "-" is stderr. Any number of threads may write. */
LP_MUST_USE lp_status lp_log_open(const char *path, lp_log **out, lp_diag *diag);
void lp_log_close(lp_log *log); /* NULL is allowed */

/* Writes the line of a request that has ended; `log` NULL: nothing. `key`: the name of its key; NULL: none. `error`
 * NULL: it was answered. */
void lp_log_request(lp_log *log, const char *id, const char *key, const lp_completion *request,
                    const lp_dispatched *course, const char *error);

/* Writes the line of a worker that has gone down or come up. `route`: the name of its place. */
void lp_log_worker(lp_log *log, const char *route, const lp_worker_state *worker);
