/* Batched passes: the queued runs of sessions and the questions of contexts, several in one pass over the weights. */
#pragma once

#include "runtime/worker/state.h"

bool worker_pass_is_due(const lp_worker *worker); /* tells whether a run or a question waits in the queue */
/* Runs one pass over the first request in the queue and others that can share the pass. Requests that the pass does not
 * finish go to the end of the queue. Returns the rows of the pass. */
int64_t worker_pass_run(lp_worker *worker);
void worker_pass_free(lp_worker *worker); /* frees the memory of passes */
