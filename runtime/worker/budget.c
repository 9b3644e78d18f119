/* Admission and eviction: see budget.h. */
#include "runtime/worker/budget.h"
#include "base/clock.h"
#include "runtime/exits/context.h"
#include "runtime/worker/held.h"

/* Limits where the options have none. */
enum { MOST_SESSIONS = 4096, MOST_OF_PEER = 64, MOST_ROWS_OF_PEER = 1 << 18 };
/* A session that was used within this time generates, and keeps its caches. Were it dropped for another, that one would
 * be dropped for the next, and none would end. */
static const double active_ms = 1000;

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

/* ---- quotas of a connection -------------------------------------------------------------------------------------- */

static int64_t limit_of(int64_t option, int64_t usual) {
  return option > 0 ? option : usual;
}

lp_status worker_admit_peer(const lp_worker *worker, uint32_t peer, lp_diag *diag) {
  int64_t open = 0, most = limit_of(worker->options->connection.sessions, MOST_OF_PEER);
  for (size_t i = 0; i < worker->sessions.count; i++)
    open += worker->sessions.data[i]->peer == peer;
  for (size_t i = 0; i < worker->contexts.count; i++)
    open += worker->contexts.data[i]->peer == peer;
  if (open < most) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "the connection has %" PRId64 " open sessions, and may have no more", open);
}

/* The KV caches and the waiting payloads of the connection, without the session `except`. */
static size_t bytes_of_peer(const lp_worker *worker, uint32_t peer, const worker_session *except) {
  size_t total = 0;
  for (size_t i = 0; i < worker->sessions.count; i++) {
    const worker_session *session = worker->sessions.data[i];
    if (session->peer == peer && session != except)
      total += session->executor->states.region_bytes + session->queued.payload.size;
  }
  for (size_t i = 0; i < worker->contexts.count; i++)
    if (worker->contexts.data[i]->peer == peer) total += lp_context_bytes(worker->contexts.data[i]->context);
  return total;
}

static lp_status admit_bytes(const lp_worker *worker, uint32_t peer, const worker_session *session, size_t more,
                             lp_diag *diag) {
  int64_t most = worker->options->connection.bytes;
  size_t all = 0;
  if (most <= 0 || (lp_size_add(bytes_of_peer(worker, peer, session), more, &all) && all <= (size_t)most)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "the connection's sessions would take more than %" PRId64 " bytes", most);
}

lp_status worker_admit_run(const lp_worker *worker, const worker_session *session, int64_t rows, size_t payload,
                           size_t cache, lp_diag *diag) {
  int64_t waiting = 0, most = limit_of(worker->options->connection.rows, MOST_ROWS_OF_PEER);
  for (size_t i = 0; i < worker->sessions.count; i++) {
    const worker_session *other = worker->sessions.data[i];
    if (other != session && other->peer == session->peer && (other->queued.gathers || other->queued.waits))
      waiting += other->queued.sym[LP_SYM_B] * other->queued.sym[LP_SYM_S];
  }
  if (rows > most - waiting)
    return lp_error(diag, LP_LOC_NONE,
                    "%" PRId64 " rows asked for and %" PRId64 " waiting; the connection may have %" PRId64, rows,
                    waiting, most);
  size_t more = 0;
  if (!lp_size_add(payload, cache, &more)) return lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
  return admit_bytes(worker, session->peer, session, more, diag);
}

lp_status worker_admit_context(const lp_worker *worker, uint32_t peer, size_t cache, lp_diag *diag) {
  LP_TRY(worker_admit_peer(worker, peer, diag));
  return admit_bytes(worker, peer, NULL, cache, diag);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

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

static bool is_active(const worker_session *session, double now_ms) {
  return session->queued.waits || now_ms - session->used_ms < active_ms;
}

/* The session or context unused for longest; both NULL: all are in use. */
static holder oldest(const lp_worker *worker, const void *keep) {
  holder found = {0};
  double now_ms = lp_now_ms();
  for (size_t i = 0; i < worker->sessions.count; i++) {
    worker_session *session = worker->sessions.data[i];
    if (session == keep || is_active(session, now_ms) || session->executor->states.region_bytes == 0) continue;
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
