/* Admission: how many sessions and contexts the worker holds, and how many bytes they take. To make room it drops the
 * one unused for longest; one that waits for rows or for a pass counts as used. */
#ifndef LP_WORKER_BUDGET_H
#define LP_WORKER_BUDGET_H

#include "runtime/worker/state.h"

/* Tells whether the worker has as many sessions and contexts as its options allow. */
bool worker_is_full(const lp_worker *worker);
LP_MUST_USE lp_status worker_admit(const lp_worker *worker, lp_diag *diag); /* fails when it is full */
/* Bytes that all sessions and contexts hold, without the session or context `except`; NULL excepts none. */
size_t worker_bytes_held(const lp_worker *worker, const void *except);
/* Drops sessions and contexts, but not `keep`, until `wanted` bytes for `keep` fit the budget. Fails when they
 * cannot. */
LP_MUST_USE lp_status worker_make_room(lp_worker *worker, size_t wanted, const void *keep, lp_diag *diag);
/* Calls options->on_held if the number of sessions and contexts, or their bytes, have changed. */
void worker_tell_held(lp_worker *worker);

#endif
