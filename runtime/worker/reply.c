/* Messages to devices that need no payload: see reply.h. */
#include "runtime/worker/reply.h"

#include "runtime/link/link.h"
#include "runtime/worker/figures.h"

void worker_post(lp_worker *worker, uint32_t peer, const Lp__Wire__Message *message) {
  const char *why = "";
  (void)lp_wire_send(worker->wire, peer, message, NULL, 0, &why);
}

static void post_failure(lp_worker *worker, uint32_t peer, uint64_t session, const char *text, bool lost) {
  Lp__Wire__Failure failure = LP__WIRE__FAILURE__INIT;
  failure.session = session;
  failure.lost = lost;
  failure.text = (char *)(uintptr_t)text; /* protobuf-c only reads it */
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_FAILURE;
  message.failure = &failure;
  worker_note_failure(worker);
  worker_post(worker, peer, &message);
}

void worker_refuse(lp_worker *worker, uint32_t peer, uint64_t session, const char *text) {
  post_failure(worker, peer, session, text, false);
}

void worker_tell_lost(lp_worker *worker, uint32_t peer, uint64_t session, const char *text) {
  post_failure(worker, peer, session, text, true);
}

void worker_refuse_with(lp_worker *worker, uint32_t peer, uint64_t session, const lp_diag *diag) {
  const lp_diag_entry *entry = lp_diag_get(diag, 0);
  worker_refuse(worker, peer, session, entry ? entry->text : "unknown failure");
}
