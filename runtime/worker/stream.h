/* Streams. Where this place has all of a session's decode, it draws token after token, and the device only takes them.
 * This keeps the state of streams; worker_draw_on (worker.h) runs them. */
#pragma once

#include "runtime/link/link.pb-c.h"
#include "runtime/worker/state.h"

/* Begins the stream of a step, which was checked and begins a run. */
LP_MUST_USE lp_status worker_stream_begin(const lp_worker *worker, worker_session *session, const Lp__Wire__Step *step,
                                          lp_diag *diag);
/* Notes what was drawn for each sequence. Returns the number of the draw; 0: it belongs to no stream. */
int64_t worker_stream_note(worker_session *session, const lp_sample *sample, size_t batch);
/* The device has the first `draws` draws. */
void worker_stream_take(worker_session *session, int64_t draws);
/* Makes the step by which the stream goes on now: its symbols are `sym`, and `payload` receives its tokens. False: it
 * has ended, its run is under way, or the device has taken too few. */
bool worker_stream_next(const lp_worker *worker, const worker_session *session, Lp__Wire__Step *step,
                        int64_t sym[LP_MAX_SYMBOLS], lp_buf *payload);
void worker_stream_end(worker_session *session); /* frees its memory too */
