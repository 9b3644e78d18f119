/* Admission and eviction: see budget.h. */
#include "runtime/worker/budget.h"
#include "runtime/exits/context.h"
#include "runtime/worker/held.h"

enum { MOST_SESSIONS = 4096 };

static size_t most_sessions(const lp_worker *worker) {
  return worker->options->most_sessions > 0 ? (size_t)worker->options->most_sessions : MOST_SESSIONS;
}

bool worker_is_full(const lp_worker *worker) {
  return worker->sessions.count + worker->contexts.count >= most_sessions(worker);
}

lp_status worker_admit(const lp_worker *worker, lp_diag *diag) {
  if (!worker_is_full(worker)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "the cloud is full: %zu sessions are open", most_sessions(worker));
}

size_t worker_bytes_held(const lp_worker *worker, const void *except) {
  size_t total = 0;
  for (size_t i = 0; i < worker->sessions.count; i++)
    if (worker->sessions.data[i] != except) total += worker->sessions.data[i]->executor->states.region_bytes;
  for (size_t i = 0; i < worker->contexts.count; i++)
    if (worker->contexts.data[i] != except) total += lp_context_bytes(worker->contexts.data[i]->context);
  return total;
}

void worker_tell_held(lp_worker *worker) {
  if (!worker->options->on_held) return;
  size_t open = worker->sessions.count + worker->contexts.count, bytes = worker_bytes_held(worker, NULL);
  if (open == worker->told_open && bytes == worker->told_bytes) return;
  worker->told_open = open;
  worker->told_bytes = bytes;
  worker->options->on_held(worker->options->user, open, bytes);
}

typedef struct {
  worker_session *session;
  worker_context *context;
  double used_ms;
} holder;

/* The session or context unused for longest; both NULL: all are in use. */
static holder oldest(const lp_worker *worker, const void *keep) {
  holder found = {0};
  for (size_t i = 0; i < worker->sessions.count; i++) {
    worker_session *session = worker->sessions.data[i];
    if (session == keep || session->queued.waits || session->executor->states.region_bytes == 0) continue;
    if (!found.session || session->used_ms < found.used_ms)
      found = (holder){.session = session, .used_ms = session->used_ms};
  }
  for (size_t i = 0; i < worker->contexts.count; i++) {
    worker_context *context = worker->contexts.data[i];
    if (context == keep || context->question.waits || lp_context_bytes(context->context) == 0) continue;
    if ((!found.session && !found.context) || context->used_ms < found.used_ms)
      found = (holder){.context = context, .used_ms = context->used_ms};
  }
  return found;
}

lp_status worker_make_room(lp_worker *worker, size_t wanted, const void *keep, lp_diag *diag) {
  int64_t budget = worker->options->context_budget;
  if (budget <= 0) return LP_OK;
  if (wanted > (size_t)budget)
    return lp_error(diag, LP_LOC_NONE, "a KV cache of %zu bytes exceeds the context budget of %" PRId64, wanted,
                    budget);
  while (wanted + worker_bytes_held(worker, keep) > (size_t)budget) {
    holder victim = oldest(worker, keep);
    if (!victim.session && !victim.context)
      return lp_error(diag, LP_LOC_NONE, "the context budget of %" PRId64 " bytes is in use", budget);
    if (victim.session)
      worker_session_drop(victim.session);
    else
      worker_context_drop(worker, victim.context);
  }
  return LP_OK;
}
