/* Sessions of devices: messages of the kinds Open and Step, and replies to them. */
#pragma once

#include "runtime/link/link.pb-c.h"
#include "runtime/worker/state.h"

worker_session *worker_session_find(const lp_worker *worker, uint32_t peer, uint64_t id); /* NULL: not open */
LP_MUST_USE lp_status worker_session_open(lp_worker *worker, uint32_t peer, const Lp__Wire__Open *open, lp_diag *diag);
worker_session *worker_session_routed(const lp_worker *worker, uint64_t route); /* NULL: no session has it */
/* Takes a step with its payload, which `in` carries, and runs on until the next payload is needed. Sends replies on the
 * way. A step below 0 carries none. */
LP_MUST_USE lp_status worker_session_step(lp_worker *worker, worker_session *session, const Lp__Wire__Step *step,
                                          const lp_inbound *in, lp_diag *diag);
/* Checks the program and the symbol values of a step, before a run begins with them. */
LP_MUST_USE lp_status worker_session_check(const lp_worker *worker, const Lp__Wire__Step *step, lp_diag *diag);
/* Drops the KV caches of sessions unused for longer than the idle time of the options. Returns when the next
 * is due, by lp_now_ms; INFINITY: never. */
double worker_session_drop_idle(lp_worker *worker);

/* ---- replies of batched passes ----------------------------------------------------------------------------------- */

/* Tells whether tokens are drawn here from the result of an output step. */
bool worker_session_draws(const lp_worker *worker, const worker_session *session, const lp_step *step);
/* Tells whether the result of a send or output step leaves this place as it is. */
bool worker_session_sends(const worker_session *session, const lp_step *step);
/* Adds a part's share to the result of step `index`, and sends the result when the run ends with this part. */
LP_MUST_USE lp_status worker_session_emit(lp_worker *worker, worker_session *session, int32_t index,
                                          const lp_batch_member *part, const lp_span *made, lp_diag *diag);
/* Draws the tokens of the part's sequences from the logits of step `index`, and sends those of all sequences when the
 * run ends with this part. */
LP_MUST_USE lp_status worker_session_draw(lp_worker *worker, worker_session *session, int32_t index,
                                          const lp_batch_member *part, const lp_logits *logits, lp_diag *diag);
/* Ends the session's run and tells the device why. */
void worker_session_fail(lp_worker *worker, worker_session *session, const lp_diag *diag);
