/* What sessions and contexts send from this place to others. */
#pragma once

#include "runtime/worker/state.h"

/* Begins a session with this route, or none (0): nothing was sent, nothing waits. */
void worker_forward_begin(worker_session *session, uint64_t route);
/* Sends the result of step `step` to the place that it names, under the session's route. `busy_ms`: places computed for
 * it. Never waits; a loss is learnt later. */
void worker_forward(lp_worker *worker, worker_session *session, int32_t step, const void *payload, size_t size,
                    double busy_ms);
/* Sends the rows that the context has made, from position `from` on, to the next place of the chain. */
void worker_forward_rows(lp_worker *worker, const worker_context *context, int64_t from, double busy_ms);
/* Tells whether the next place of the chain is still to get what was sent to it. */
bool worker_forward_is_busy(const lp_worker *worker);
/* Starts a courier to each place that this one sends to, by the addresses of the options. */
LP_MUST_USE lp_status worker_forward_start(lp_worker *worker, lp_diag *diag);
void worker_forward_stop(lp_worker *worker);
/* Tells the devices whose sessions sent to a place that was lost, and the user once for each outage. */
void worker_forward_tend(lp_worker *worker);
