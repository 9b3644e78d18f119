/* Queued runs: runs of sessions that wait for a batched pass (pass.h). A run qualifies when the cloud takes all
 * payloads before it computes. A long prompt is divided over several passes. */
#ifndef LP_WORKER_QUEUE_H
#define LP_WORKER_QUEUE_H

#include "runtime/worker/state.h"

/* Tells whether a step takes a payload from the device. */
bool worker_step_takes_payload(const lp_step *step);
/* Tells whether runs of the program can be queued. */
bool worker_queue_fits(const lp_worker *worker, int32_t program);
/* Begins to gather the payloads of a run at the symbol values `sym`. */
void worker_queue_begin(lp_worker *worker, worker_session *session, const int64_t *sym);
/* Takes the payload of a step; with the last one the run enters the queue. */
LP_MUST_USE lp_status worker_queue_take(lp_worker *worker, worker_session *session, const lp_step *step,
                                        const lp_inbound *in, lp_diag *diag);
void worker_queue_drop(worker_session *session); /* forgets the run, if there is one */

/* The symbols of the tokens to run next: at most LP_PASS_ROWS where the run can be divided, else all of them. */
void worker_queue_part(const lp_worker *worker, const worker_session *session, int64_t sym[LP_MAX_SYMBOLS]);
/* Copies the payload that a step takes for the tokens of `sym`. `at` counts the bytes of the payloads of earlier
 * steps. */
LP_MUST_USE lp_status worker_queue_fill(const lp_worker *worker, const worker_session *session, const lp_step *step,
                                        const int64_t *sym, size_t *at, lp_span to, lp_diag *diag);
/* Tells whether the run ends with the tokens of `sym`. */
bool worker_queue_ends(const worker_session *session, const int64_t *sym);
/* Notes that a pass has run these tokens in `ms`. The run ends, or enters the queue again. */
void worker_queue_passed(lp_worker *worker, worker_session *session, const int64_t *sym, double ms);

#endif
