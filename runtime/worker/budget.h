/* Admission: how many sessions and contexts the worker holds, and how many bytes they take. A session whose device runs
 * its text again after a loss ("yields") takes the memory of the rows that it has; any other one, and a context, what
 * it needs at most.
 *
 * To make room the worker drops the one unused for longest. It keeps one that waits for rows or for a pass, and a
 * session that was used within the last second, because it generates; but not one that only keeps rows for others. If
 * these leave too little for a session that yields, those of them that yield and were opened after it give way, the
 * youngest first. So the oldest session always goes on: its capacity fits the budget. */
#pragma once

#include "runtime/worker/state.h"

/* Tells whether the worker has as many sessions and contexts as its options allow, and none that only keeps rows. */
bool worker_is_full(const lp_worker *worker);
/* Tells whether there is a place for one more; closes a session that only keeps rows to make one. */
bool worker_has_place(lp_worker *worker);
/* Makes a place for one more: a worker without any closes a context without a connection. Fails when there is none. */
LP_MUST_USE lp_status worker_admit(lp_worker *worker, lp_diag *diag);
/* Fails when the connection or its client has as many sessions and contexts as its quota allows. */
LP_MUST_USE lp_status worker_admit_peer(const lp_worker *worker, uint32_t peer, lp_diag *diag);
/* Fails when a run of sym[b] * sym[s] rows, with `payload` bytes to wait for a pass and the KV caches that it needs,
 * exceeds the quotas of the session's connection or client. Within these, too, younger sessions that yield give way to
 * an older one, and a session that yields and gets no room loses its KV caches. */
LP_MUST_USE lp_status worker_admit_run(lp_worker *worker, worker_session *session, const int64_t *sym, size_t payload,
                                       lp_diag *diag);
/* The same for a payload that comes before its turn (mail.h). */
LP_MUST_USE lp_status worker_admit_letter(const lp_worker *worker, const worker_session *session, size_t bytes,
                                          lp_diag *diag);
/* The same for a context with `cache` bytes that the connection opens. */
LP_MUST_USE lp_status worker_admit_context(const lp_worker *worker, uint32_t peer, size_t cache, lp_diag *diag);
/* The most bytes that all of them may hold: by default half of the machine's memory. */
size_t worker_budget(const lp_worker *worker);
/* Bytes that all sessions and contexts hold, without the session or context `except`; NULL excepts none. */
size_t worker_bytes_held(const lp_worker *worker, const void *except);
/* Drops sessions and contexts, but not `keep`, until `wanted` bytes for `keep` fit the budget. Fails, and may
 * have dropped some, when the sessions and contexts in use leave too little. */
LP_MUST_USE lp_status worker_make_room(lp_worker *worker, size_t wanted, const void *keep, lp_diag *diag);
/* The same for the KV caches of a session at sym[b] and sym[c], which a run fills up to sym[p] + sym[s]. A session that
 * yields and gets no room loses its KV caches. If `later` is given, and younger sessions give way after the pass that
 * begins, it fails without a word, changes nothing, and sets *later. */
LP_MUST_USE lp_status worker_make_session_room(lp_worker *worker, worker_session *session, const int64_t *sym,
                                               bool *later, lp_diag *diag);
/* Calls options->on_held if the number of sessions and contexts, or their bytes, have changed. */
void worker_tell_held(lp_worker *worker);
