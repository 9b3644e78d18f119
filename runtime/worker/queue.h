/* Queued runs: runs of sessions that wait for a batched pass (pass.h). A run qualifies when the cloud takes all
 * payloads before it computes. A long prompt and a large batch are divided over several passes. */
#pragma once

#include "runtime/worker/state.h"

/* Tells whether a step takes a payload from the device or another place. */
bool worker_step_takes_payload(const lp_worker *worker, const lp_step *step);
/* Tells whether runs of the program can be queued. */
bool worker_queue_fits(const lp_worker *worker, int32_t program);
/* Begins to gather the payloads of a run at the symbol values `sym`. */
void worker_queue_begin(lp_worker *worker, worker_session *session, const int64_t *sym);
/* Takes the payload of a step; with the last one the run enters the queue. */
LP_MUST_USE lp_status worker_queue_take(lp_worker *worker, worker_session *session, const lp_step *step,
                                        const lp_inbound *in, lp_diag *diag);
void worker_queue_drop(worker_session *session); /* forgets the run, if there is one */

/* Sets `part` to the rows to run next: at most `most` where the run can be divided, else all of them. Rows are divided
 * between sequences, and the tokens of one sequence when it has more than `most`. */
void worker_queue_part(const lp_worker *worker, const worker_session *session, int64_t most, lp_batch_member *part);
/* Copies the payload that a step takes for a part. `at` counts the bytes of the payloads of earlier steps. */
LP_MUST_USE lp_status worker_queue_fill(const lp_worker *worker, const worker_session *session, const lp_step *step,
                                        const lp_batch_member *part, size_t *at, lp_span to, lp_diag *diag);
/* Tells whether a part has the last token of its sequences, and whether the run ends with it. */
bool worker_queue_has_last(const worker_session *session, const lp_batch_member *part);
bool worker_queue_ends(const worker_session *session, const lp_batch_member *part);
/* The results of step `index` that earlier parts gave; a part appends its own. Lives until the run ends. */
lp_buf *worker_queue_result(const lp_worker *worker, worker_session *session, int32_t index);
/* Notes that a pass has run this part in `ms`. The run ends, or enters the queue again. */
void worker_queue_passed(lp_worker *worker, worker_session *session, const lp_batch_member *part, double ms);
