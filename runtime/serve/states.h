/* The states of places, as JSON and for Prometheus. */
#pragma once

#include "runtime/serve/dispatch.h"
#include "runtime/serve/log.h"

/* The body of /readyz, which names no addresses because it needs no key: whether the server takes requests, and the
 * state of each place. *ready: it does. The caller releases the result with free(). */
char *lp_states_ready(lp_dispatcher *dispatcher, bool *ready);
/* The body of /v1/status: places with their workers, queues and counts, and the last requests with their decisions and
 * times. Times are in ms. */
char *lp_states_status(lp_dispatcher *dispatcher);
/* Appends the body of /metrics: counts and times of requests, and the KV caches of places. */
void lp_states_print(lp_dispatcher *dispatcher, lp_buf *out);

/* Judges whether the load fits the prediction, if there is one, and says so once when that changes. */
void lp_states_judge(lp_dispatcher *dispatcher, lp_diag *diag);

/* The workers that were down when they were last looked at. */
typedef struct {
  bool down[LP_ROUTE_COUNT][LP_MOST_WORKERS];
} lp_workers_seen;
/* Writes a line for each worker that has gone down or come up since the last call. */
void lp_states_log(lp_dispatcher *dispatcher, lp_log *log, lp_workers_seen *seen);
