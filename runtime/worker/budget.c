/* Admission and eviction: see budget.h. */
#include "runtime/worker/budget.h"
#include "base/clock.h"
#include "base/cores.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exits/context.h"
#include "runtime/worker/figures.h"
#include "runtime/worker/held.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/reply.h"
#include "runtime/worker/store.h"

/* Limits where the options have none. */
enum { MOST_SESSIONS = 4096, MOST_OF_PEER = 64, MOST_ROWS_OF_PEER = 1 << 18, CONNECTIONS_OF_CLIENT = 4 };
/* A session that was used within this time generates, and keeps its caches. Were it dropped for another, that one would
 * be dropped for the next, and none would end. */
static const double active_ms = 1000;

static size_t most_sessions(const lp_worker *worker) {
  return worker->options->most_sessions > 0 ? (size_t)worker->options->most_sessions : MOST_SESSIONS;
}

static bool has_most(const lp_worker *worker) {
  return worker->sessions.count + worker->contexts.count >= most_sessions(worker);
}

/* The context of no connection that was unused for longest, and for a moment at least; NULL: there is none. */
static worker_context *oldest_orphan(const lp_worker *worker) {
  worker_context *found = NULL;
  double now_ms = lp_now_ms();
  LP_FOR_VEC_REFS(worker_context, context, &worker->contexts) {
    bool orphan = context->peer == 0 && !context->question.waits && now_ms - context->used_ms >= active_ms;
    if (orphan && (!found || context->used_ms < found->used_ms)) found = context;
  }
  return found;
}

/* The session that only keeps rows for others and was unused for longest, for a moment at least; NULL: none is. */
static worker_session *oldest_keeper(const lp_worker *worker) {
  worker_session *found = NULL;
  double now_ms = lp_now_ms();
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions) {
    bool idle = session->keeps && now_ms - session->used_ms >= active_ms;
    if (idle && (!found || session->used_ms < found->used_ms)) found = session;
  }
  return found;
}

bool worker_is_full(const lp_worker *worker) {
  return has_most(worker) && !oldest_keeper(worker);
}

bool worker_has_place(lp_worker *worker) {
  worker_session *keeper = has_most(worker) ? oldest_keeper(worker) : NULL;
  if (keeper) worker_session_close(worker, keeper);
  return !has_most(worker);
}

lp_status worker_admit(lp_worker *worker, lp_diag *diag) {
  if (worker_has_place(worker)) return LP_OK;
  worker_context *orphan = oldest_orphan(worker);
  if (!orphan) {
    worker_note_refusal(worker, WORKER_REFUSED_FULL);
    return lp_error(diag, LP_LOC_NONE, "the cloud is full: %zu sessions are open", most_sessions(worker));
  }
  (void)worker_store_save(worker, orphan);
  worker_context_close(worker, orphan);
  return LP_OK;
}

/* ---- quotas of a connection, and of a client --------------------------------------------------------------------- */

/* Whose sessions and contexts count: those of a connection, or of all connections of a client, or of the host of one
 * that is unknown. */
typedef struct {
  uint32_t peer;
  uint64_t owner; /* 0: the connection */
  const char *name;
  int64_t sessions, rows, bytes;
} quota;

static int64_t limit_of(int64_t option, int64_t usual) {
  return option > 0 ? option : usual;
}

static quota quota_of(const lp_worker *worker, uint32_t peer, bool client) {
  const lp_worker_quota *limits = client ? &worker->options->client : &worker->options->connection;
  int64_t factor = client ? CONNECTIONS_OF_CLIENT : 1;
  return (quota){.peer = peer,
                 .owner = client ? worker_peer_owner(worker, peer) : 0,
                 .name = client ? "client" : "connection",
                 .sessions = limit_of(limits->sessions, factor * MOST_OF_PEER),
                 .rows = limit_of(limits->rows, factor * MOST_ROWS_OF_PEER),
                 .bytes = limits->bytes};
}

/* The quotas that bind a connection: its own, and that of its client. */
static int quotas_of(const lp_worker *worker, uint32_t peer, quota out[2]) {
  out[0] = quota_of(worker, peer, false);
  out[1] = quota_of(worker, peer, true);
  return out[1].owner != 0 ? 2 : 1;
}

static bool counts_session(const lp_worker *worker, const quota *of, const worker_session *session) {
  return of->owner ? worker_peer_owner(worker, session->peer) == of->owner : session->peer == of->peer;
}

/* A client's contexts stay when its connections end. */
static bool counts_context(const lp_worker *worker, const quota *of, const worker_context *context) {
  if (!of->owner) return context->peer == of->peer;
  return context->who == of->owner || (context->peer != 0 && worker_peer_owner(worker, context->peer) == of->owner);
}

static lp_status admit_one(const lp_worker *worker, const quota *of, lp_diag *diag) {
  int64_t open = 0;
  for (size_t i = 0; i < worker->sessions.count; i++)
    open += counts_session(worker, of, worker->sessions.data[i]);
  for (size_t i = 0; i < worker->contexts.count; i++)
    open += counts_context(worker, of, worker->contexts.data[i]);
  if (open < of->sessions) return LP_OK;
  worker_note_refusal(worker, WORKER_REFUSED_SESSIONS);
  return lp_error(diag, LP_LOC_NONE, "the %s has %" PRId64 " open sessions, and may have no more", of->name, open);
}

lp_status worker_admit_peer(const lp_worker *worker, uint32_t peer, lp_diag *diag) {
  quota all[2];
  for (int i = 0, count = quotas_of(worker, peer, all); i < count; i++)
    LP_TRY(admit_one(worker, &all[i], diag));
  return LP_OK;
}

/* The KV caches that a session has, or will have when the run that it waits for begins. */
static size_t cache_of(const worker_session *session) {
  const lp_states *states = &session->executor->states;
  const int64_t *sym = session->queued.sym;
  size_t held = lp_states_held(states), wanted = 0;
  if (!session->queued.gathers || !lp_states_bytes_of_rows(states, sym, sym[LP_SYM_P] + sym[LP_SYM_S], &wanted))
    return held;
  return wanted > held ? wanted : held;
}

/* The KV caches and the waiting payloads that count, without the session `except`. */
static size_t bytes_of(const lp_worker *worker, const quota *of, const worker_session *except) {
  size_t total = 0;
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions)
    if (counts_session(worker, of, session) && session != except)
      total += cache_of(session) + session->queued.payload.size + session->mail_bytes +
               session->stream.given.count * sizeof *session->stream.given.data;
  for (size_t i = 0; i < worker->contexts.count; i++)
    if (counts_context(worker, of, worker->contexts.data[i]))
      total += lp_context_bytes(worker->contexts.data[i]->context);
  return total;
}

static bool has_bytes(const lp_worker *worker, const quota *of, const worker_session *session, size_t more) {
  size_t all = 0;
  return of->bytes <= 0 || (lp_size_add(bytes_of(worker, of, session), more, &all) && all <= (size_t)of->bytes);
}

static lp_status refuse_bytes(const lp_worker *worker, const quota *of, lp_diag *diag) {
  worker_note_refusal(worker, WORKER_REFUSED_MEMORY);
  return lp_error(diag, LP_LOC_NONE, "the %s's sessions would take more than %" PRId64 " bytes", of->name, of->bytes);
}

static lp_status admit_bytes(const lp_worker *worker, const quota *of, size_t more, lp_diag *diag) {
  return has_bytes(worker, of, NULL, more) ? LP_OK : refuse_bytes(worker, of, diag);
}

static lp_status admit_rows(const lp_worker *worker, const quota *of, const worker_session *session, int64_t rows,
                            lp_diag *diag) {
  int64_t waiting = 0;
  LP_FOR_VEC_REFS(worker_session, other, &worker->sessions)
    if (other != session && counts_session(worker, of, other) && (other->queued.gathers || other->queued.waits))
      waiting += other->queued.sym[LP_SYM_B] * other->queued.sym[LP_SYM_S];
  if (rows <= of->rows - waiting) return LP_OK;
  worker_note_refusal(worker, WORKER_REFUSED_ROWS);
  return lp_error(diag, LP_LOC_NONE, "%" PRId64 " rows asked for and %" PRId64 " waiting; the %s may have %" PRId64,
                  rows, waiting, of->name, of->rows);
}

/* The KV caches of a run, and those that the session may need at most: its capacity stays the same. */
typedef struct {
  size_t now, most;
} need;

static lp_status find_need(const worker_session *session, const int64_t *sym, need *out, lp_diag *diag) {
  const lp_states *states = &session->executor->states;
  int64_t rows = sym[LP_SYM_P] + sym[LP_SYM_S], held = states->rows;
  if (held == 0) rows += LP_ROWS_AHEAD;
  if (rows > sym[LP_SYM_C]) rows = sym[LP_SYM_C];
  if (rows < held) rows = held;
  if (lp_states_bytes_of_rows(states, sym, rows, &out->now) &&
      lp_states_bytes_of_rows(states, sym, sym[LP_SYM_C], &out->most))
    return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
}

static void drop_session(lp_worker *worker, worker_session *session) {
  if (lp_states_held(&session->executor->states) > 0) worker_note_dropped(worker, WORKER_OF_SESSION, false);
  worker_session_drop(session);
}

/* The youngest session after `session` that yields, is between two passes, and holds memory, or counts for some in the
 * quota `of`; NULL: there is none. `of` NULL: of all connections. */
static worker_session *youngest_after(const lp_worker *worker, const quota *of, const worker_session *session) {
  worker_session *found = NULL;
  for (size_t i = 0; session->yields && i < worker->sessions.count; i++) {
    worker_session *other = worker->sessions.data[i];
    bool between = !other->chosen && (other->next < 0 || other->queued.gathers);
    size_t bytes = of ? cache_of(other) : lp_states_held(&other->executor->states);
    if (!other->yields || other->number <= session->number || bytes == 0) continue;
    if (between && (!of || counts_session(worker, of, other)) && (!found || other->number > found->number))
      found = other;
  }
  return found;
}

/* Takes the memory of the youngest of them. One that has a run in the queue learns it now, others with their next one.
 */
static bool give_way(lp_worker *worker, const quota *of, const worker_session *session) {
  worker_session *other = youngest_after(worker, of, session);
  if (!other) return false;
  bool asked = other->queued.gathers;
  drop_session(worker, other);
  if (asked) worker_refuse_session(worker, other, NULL);
  return true;
}

/* A session whose capacity exceeds the quota has no use for the memory of others. */
static lp_status admit_cache(lp_worker *worker, const quota *of, worker_session *session, const need *needs,
                             size_t payload, lp_diag *diag) {
  size_t now, most;
  if (!lp_size_add(payload, needs->now, &now) || !lp_size_add(payload, needs->most, &most))
    return lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
  bool can = of->bytes <= 0 || most <= (size_t)of->bytes;
  while (!has_bytes(worker, of, session, now))
    if (!can || !give_way(worker, of, session)) {
      if (can && session->yields) drop_session(worker, session);
      return refuse_bytes(worker, of, diag);
    }
  return LP_OK;
}

lp_status worker_admit_run(lp_worker *worker, worker_session *session, const int64_t *sym, size_t payload,
                           lp_diag *diag) {
  quota all[2];
  need needs;
  LP_TRY(find_need(session, sym, &needs, diag));
  for (int i = 0, count = quotas_of(worker, session->peer, all); i < count; i++) {
    LP_TRY(admit_rows(worker, &all[i], session, sym[LP_SYM_B] * sym[LP_SYM_S], diag));
    LP_TRY(admit_cache(worker, &all[i], session, &needs, payload, diag));
  }
  return LP_OK;
}

lp_status worker_admit_letter(const lp_worker *worker, const worker_session *session, size_t bytes, lp_diag *diag) {
  quota all[2];
  for (int i = 0, count = quotas_of(worker, session->peer, all); i < count; i++)
    LP_TRY(admit_bytes(worker, &all[i], bytes, diag));
  return LP_OK;
}

lp_status worker_admit_context(const lp_worker *worker, uint32_t peer, size_t cache, lp_diag *diag) {
  quota all[2];
  for (int i = 0, count = quotas_of(worker, peer, all); i < count; i++) {
    LP_TRY(admit_one(worker, &all[i], diag));
    LP_TRY(admit_bytes(worker, &all[i], cache, diag));
  }
  return LP_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

size_t worker_budget(const lp_worker *worker) {
  int64_t budget = worker->options->context_budget;
  if (budget > 0) return (size_t)budget;
  bool on_gpu = worker->bundle && worker->bundle->side[worker->place].gpu;
  return on_gpu ? SIZE_MAX : (size_t)lp_machine_memory() / 2; /* a GPU's memory has its own limit */
}

size_t worker_bytes_held(const lp_worker *worker, const void *except) {
  size_t total = 0;
  for (size_t i = 0; i < worker->sessions.count; i++)
    if (worker->sessions.data[i] != except) total += lp_states_held(&worker->sessions.data[i]->executor->states);
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

/* Rows that are only kept are never active: they are computed again if they are needed. */
static bool is_active(const worker_session *session, double now_ms) {
  return session->queued.waits || (!session->keeps && now_ms - session->used_ms < active_ms);
}

/* The session or context unused for longest; both NULL: all are in use. */
static holder oldest(const lp_worker *worker, const void *keep) {
  holder found = {0};
  double now_ms = lp_now_ms();
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions) {
    if (session == keep || is_active(session, now_ms) || lp_states_held(&session->executor->states) == 0) continue;
    if (!found.session || session->used_ms < found.used_ms)
      found = (holder){.session = session, .used_ms = session->used_ms};
  }
  LP_FOR_VEC_REFS(worker_context, context, &worker->contexts) {
    if (context == keep || context->question.waits || lp_context_bytes(context->context) == 0) continue;
    if ((!found.session && !found.context) || context->used_ms < found.used_ms)
      found = (holder){.context = context, .used_ms = context->used_ms};
  }
  return found;
}

static bool fits(const lp_worker *worker, size_t wanted, const void *keep) {
  size_t held = worker_bytes_held(worker, keep), budget = worker_budget(worker);
  return held <= budget && wanted <= budget - held;
}

/* Drops those that are not in use until it fits; false: it does not fit. */
static bool drop_unused(lp_worker *worker, size_t wanted, const void *keep) {
  while (!fits(worker, wanted, keep)) {
    holder victim = oldest(worker, keep);
    if (!victim.session && !victim.context) return false;
    if (victim.session) {
      drop_session(worker, victim.session);
    } else {
      worker_note_dropped(worker, WORKER_OF_CONTEXT, false);
      worker_context_drop(worker, victim.context);
    }
  }
  return true;
}

static lp_status refuse_room(const lp_worker *worker, size_t wanted, lp_diag *diag) {
  size_t budget = worker_budget(worker);
  worker_note_refusal(worker, WORKER_REFUSED_BUDGET);
  if (wanted > budget)
    return lp_error(diag, LP_LOC_NONE, "a KV cache of %zu bytes exceeds the context budget of %zu", wanted, budget);
  return lp_error(diag, LP_LOC_NONE, "the context budget of %zu bytes is in use", budget);
}

lp_status worker_make_room(lp_worker *worker, size_t wanted, const void *keep, lp_diag *diag) {
  if (wanted <= worker_budget(worker) && drop_unused(worker, wanted, keep)) return LP_OK;
  return refuse_room(worker, wanted, diag);
}

/* Tells whether a younger session takes part in the pass that begins. */
static bool waits_for_pass(const lp_worker *worker, const worker_session *session) {
  for (size_t i = 0; session->yields && i < worker->sessions.count; i++) {
    const worker_session *other = worker->sessions.data[i];
    if (other->chosen && other->yields && other->number > session->number) return true;
  }
  return false;
}

lp_status worker_make_session_room(lp_worker *worker, worker_session *session, const int64_t *sym, bool *later,
                                   lp_diag *diag) {
  need needs;
  LP_TRY(find_need(session, sym, &needs, diag));
  if (needs.most > worker_budget(worker)) return refuse_room(worker, needs.most, diag);
  bool room = drop_unused(worker, needs.now, session);
  while (!room && give_way(worker, NULL, session))
    room = fits(worker, needs.now, session);
  if (room) return LP_OK;
  if (later && waits_for_pass(worker, session)) {
    *later = true;
    return LP_FAILED;
  }
  if (session->yields) drop_session(worker, session);
  return refuse_room(worker, needs.now, diag);
}
