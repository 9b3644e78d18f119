/* Contexts of early exits: messages of the kinds Join, Rows, Ask and Leave. */
#pragma once

#include "runtime/worker/state.h"

/* Handles a message of these kinds; false: it is of another kind. */
bool worker_context_handle(lp_worker *worker, const lp_inbound *in);
/* Drops the questions of a peer that has disconnected. */
void worker_context_forget_peer(lp_worker *worker, uint32_t peer);
/* Drops and closes contexts that are idle for too long, and reminds devices of rows that questions wait for.
 * Returns when the next of these is due, by lp_now_ms; INFINITY: never. */
double worker_context_tend(lp_worker *worker);

/* ---- for batched passes ------------------------------------------------------------------------------------------ */

/* The pending question of a context. */
lp_question worker_context_question(const worker_context *context);
/* All passes of the question have run: judges it and answers. */
void worker_context_finish(lp_worker *worker, worker_context *context);
/* Tells the device why its question fails. */
void worker_context_fail(lp_worker *worker, worker_context *context, const lp_diag *diag);
