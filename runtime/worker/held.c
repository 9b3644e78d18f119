/* Drops and closes sessions and contexts: see held.h. */

#include "runtime/worker/held.h"
#include "base/clock.h"
#include "runtime/exec/executor.h"
#include "runtime/exits/context.h"
#include "runtime/link/link.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/store.h"
#include "runtime/worker/stream.h"

void worker_session_drop_mail(worker_session *session) {
  for (size_t i = 0; i < session->mail.count; i++)
    lp_inbound_release(&session->mail.data[i].in);
  session->mail.count = session->mail_bytes = 0;
}

void worker_session_drop(worker_session *session) {
  lp_executor_forget(session->executor);
  session->dropped = true;
  session->next = -1;
  if (session->queued.gathers) worker_stream_end(session); /* its device is told now, else when it is to go on */
  worker_queue_drop(session);
}

static void tell_session(const lp_worker *worker, const worker_session *session) {
  const lp_worker_session ended = {.traceparent = session->traceparent,
                                   .begin_ms = session->opened_ms,
                                   .end_ms = lp_now_ms(),
                                   .busy_ms = session->spent_ms,
                                   .replies = session->replies,
                                   .tokens = session->position};
  if (worker->options->on_session) worker->options->on_session(worker->options->user, &ended);
}

void worker_session_close(lp_worker *worker, worker_session *session) {
  tell_session(worker, session);
  for (size_t i = 0; i < worker->sessions.count; i++)
    if (worker->sessions.data[i] == session) worker->sessions.data[i] = worker->sessions.data[--worker->sessions.count];
  worker_queue_drop(session);
  worker_stream_end(session);
  worker_session_drop_mail(session);
  lp_vec_free(&session->mail);
  lp_buf_free(&session->queued.payload);
  lp_executor_free(session->executor);
  free(session);
}

void worker_context_drop(lp_worker *worker, worker_context *context) {
  if (worker_store_save(worker, context)) {
    worker_context_close(worker, context);
    return;
  }
  lp_context_drop(context->context);
  context->lost = true;
}

void worker_context_close(lp_worker *worker, worker_context *context) {
  for (size_t i = 0; i < worker->contexts.count; i++)
    if (worker->contexts.data[i] == context) worker->contexts.data[i] = worker->contexts.data[--worker->contexts.count];
  lp_context_free(context->context);
  free(context->question.draft);
  free(context);
}

void worker_context_close_all(lp_worker *worker) {
  while (worker->contexts.count > 0) {
    (void)worker_store_save(worker, worker->contexts.data[0]);
    worker_context_close(worker, worker->contexts.data[0]);
  }
}
