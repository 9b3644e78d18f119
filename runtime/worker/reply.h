/* Messages to devices that need no payload. They fail silently: a device that has disconnected needs no answer. */
#pragma once

#include "runtime/link/link.pb-c.h"
#include "runtime/worker/state.h"

void worker_post(lp_worker *worker, uint32_t peer, const Lp__Wire__Message *message);
/* Tells a device that its request fails; `session` 0: the message concerns no session. */
void worker_refuse(lp_worker *worker, uint32_t peer, uint64_t session, const char *text);
/* Tells the device that what the session sent to another place, or holds, is lost: it opens another session. */
void worker_tell_lost(lp_worker *worker, uint32_t peer, uint64_t session, const char *text);
/* The same as worker_refuse with the first entry of `diag` as text. */
void worker_refuse_with(lp_worker *worker, uint32_t peer, uint64_t session, const lp_diag *diag);
/* The same for a session; also tells whether its text can run again later, since it has lost its KV caches and its
 * device knows how (link.proto). `diag` NULL: that is all there is to say. */
void worker_refuse_session(lp_worker *worker, const worker_session *session, const lp_diag *diag);
