/* Messages to devices that need no payload: see reply.h. */
#include "runtime/worker/reply.h"

#include "runtime/link/link.h"
#include "runtime/worker/figures.h"

void worker_post(lp_worker *worker, uint32_t peer, const Lp__Wire__Message *message) {
  const char *why = "";
  (void)lp_wire_send(worker->wire, peer, message, NULL, 0, &why);
}

static void post_failure(lp_worker *worker, uint32_t peer, Lp__Wire__Failure failure, const char *text) {
  failure.text = (char *)(uintptr_t)text; /* protobuf-c only reads it */
  Lp__Wire__Message message = LP_WIRE_MESSAGE(FAILURE, .failure = &failure);
  worker_note_failure(worker);
  worker_post(worker, peer, &message);
}

void worker_refuse(lp_worker *worker, uint32_t peer, uint64_t session, const char *text) {
  Lp__Wire__Failure failure = LP__WIRE__FAILURE__INIT;
  failure.session = session;
  post_failure(worker, peer, failure, text);
}

void worker_tell_lost(lp_worker *worker, uint32_t peer, uint64_t session, const char *text) {
  Lp__Wire__Failure failure = LP__WIRE__FAILURE__INIT;
  failure.session = session;
  failure.lost = true;
  post_failure(worker, peer, failure, text);
}

void worker_refuse_with(lp_worker *worker, uint32_t peer, uint64_t session, const lp_diag *diag) {
  const lp_diag_entry *entry = lp_diag_get(diag, 0);
  worker_refuse(worker, peer, session, entry ? entry->text : "unknown failure");
}

void worker_refuse_session(lp_worker *worker, const worker_session *session, const lp_diag *diag) {
  Lp__Wire__Failure failure = LP__WIRE__FAILURE__INIT;
  failure.session = session->id;
  failure.room = session->yields && session->dropped;
  const lp_diag_entry *entry = diag ? lp_diag_get(diag, 0) : NULL;
  post_failure(worker, session->peer, failure, entry ? entry->text : "its KV caches gave way to an older session's");
}
