/* Shares the budget of KV caches: see memory.h. */
#include "runtime/engine/memory.h"

#include <math.h>

#include "base/clock.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"

/* A worker without room is asked again after this time. */
static const double pause_ms = 100;

static bool bytes_of_rows(const lp_engine *engine, int64_t capacity, int64_t rows, size_t *bytes) {
  const int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_C] = capacity};
  return lp_states_bytes_of_rows(&engine->shape, sym, rows, bytes);
}

static size_t bytes_of(const lp_engine *engine, const engine_job *job, int64_t rows) {
  size_t bytes = 0;
  /* The whole capacity did not overflow. */
  return bytes_of_rows(engine, job->call->capacity, rows, &bytes) ? bytes : job->call->bytes;
}

lp_status engine_memory_size(const lp_engine *engine, engine_call *call, lp_diag *diag) {
  int64_t wanted = (int64_t)call->request->length + call->request->max_tokens;
  const int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_C] = wanted};
  size_t region = 0;
  call->most = wanted;
  call->capacity = lp_states_whole_pages(&engine->shape, sym);
  if (!bytes_of_rows(engine, call->capacity, wanted, &call->bytes) ||
      !lp_states_bytes(&engine->shape, (const int64_t[LP_MAX_SYMBOLS]){[LP_SYM_B] = 1, [LP_SYM_C] = call->capacity},
                       &region))
    return lp_error(diag, LP_LOC_NONE, "the KV cache asked for is too large");
  if (engine->kv_bytes > 0 && call->bytes > (size_t)engine->kv_bytes)
    return lp_error(diag, LP_LOC_NONE, "a KV cache for %" PRId64 " tokens takes %zu bytes, and the budget is %" PRId64,
                    wanted, call->bytes, engine->kv_bytes);
  return LP_OK;
}

/* Drops kept prompts for it, if the sequences leave room. */
static bool find_room(lp_engine *engine, size_t bytes) {
  if (engine->kv_bytes > 0 && (bytes > (size_t)engine->kv_bytes || engine->held > (size_t)engine->kv_bytes - bytes))
    return false;
  engine_prefix_make_room(engine, bytes);
  return true;
}

/* The rows for which a sequence is given memory next. */
static int64_t wanted_rows(const lp_engine *engine, const engine_job *job) {
  int64_t most = job->call->most, text = (int64_t)job->text.count;
  return !engine->shape.paged || text > most - LP_ROWS_AHEAD ? most : text + LP_ROWS_AHEAD;
}

static void give(lp_engine *engine, engine_job *job, int64_t rows, size_t bytes) {
  engine->held += bytes - job->bytes;
  job->bytes = bytes;
  job->granted = rows;
}

void engine_memory_release(lp_engine *engine, engine_job *job) {
  give(engine, job, 0, 0);
  if (engine->jobs.count == 0) engine->most_remote = SIZE_MAX;
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static engine_job *admitted_last(const lp_engine *engine) {
  engine_job *last = NULL;
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs)
    if (engine_job_is_admitted(job) && (!last || job->entered > last->entered)) last = job;
  return last;
}

void engine_memory_begin_again(lp_engine *engine, engine_job *job) {
  engine_memory_release(engine, job);
  if (job->connection != engine->connection) job->session = 0; /* it was lost */
  if (engine->remote) engine_remote_forget(engine->remote, job);
  engine_job_free_crossing(job);
  job->executor = NULL;
  job->from = NULL;
  job->done = job->turn = job->sent = 0;
  engine_job_enter(job, ENGINE_WAITING);
}

static void preempt(lp_engine *engine, engine_job *job) {
  engine_prefix_keep(engine, job);
  engine_memory_begin_again(engine, job);
  engine->preempted++;
}

/* The sequence that was admitted first never gives its memory back, since the budget holds the most that it needs. */
static void grow(lp_engine *engine, engine_job *job) {
  int64_t rows = wanted_rows(engine, job);
  size_t bytes = bytes_of(engine, job, rows);
  while (engine_job_is_admitted(job) && !find_room(engine, bytes - job->bytes))
    preempt(engine, admitted_last(engine));
  if (engine_job_is_admitted(job)) give(engine, job, rows, bytes);
}

/* ---- room at a worker -------------------------------------------------------------------------------------------- */

static size_t count_admitted(const lp_engine *engine) {
  size_t admitted = 0;
  for (size_t i = 0; i < engine->jobs.count; i++)
    admitted += engine_job_is_admitted(engine->jobs.data[i]);
  return admitted;
}

bool engine_memory_await_room(lp_engine *engine, engine_job *job) {
  if (job->result != ENGINE_NO_ROOM || engine_remote_is_lost(engine->remote)) return false;
  bool is_first = job->text.count == job->call->request->length; /* no token was drawn */
  engine->preempted += job->done > job->reused;
  if (is_first) engine->reused -= job->reused;
  if (is_first) job->reused = 0;
  engine_prefix_free(engine); /* the worker drops these first */
  lp_executor_free(job->executor);
  engine_memory_begin_again(engine, job);
  engine_job_forget_failure(job);
  engine->most_remote = count_admitted(engine);
  engine->room_ms = lp_now_ms() + pause_ms;
  return true;
}

static bool may_admit(lp_engine *engine, size_t admitted) {
  if (admitted < engine->most_remote) return true;
  if (lp_now_ms() < engine->room_ms) return false;
  engine->most_remote = admitted + 1;
  engine->room_ms = lp_now_ms() + pause_ms;
  return true;
}

double engine_memory_next_ms(const lp_engine *engine) {
  size_t admitted = count_admitted(engine);
  return admitted < engine->jobs.count && admitted >= engine->most_remote ? engine->room_ms : INFINITY;
}

/* ---- admission --------------------------------------------------------------------------------------------------- */

/* Admits jobs in their turn. One that does not fit keeps later ones waiting, so that a large one has its turn. */
static void admit(lp_engine *engine) {
  size_t admitted = count_admitted(engine);
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs) {
    if (job->stage != ENGINE_WAITING) continue;
    if (!may_admit(engine, admitted)) return;
    while (engine->remote && admitted + engine->kept.count >= ENGINE_MOST_SESSIONS)
      if (!engine_prefix_drop_oldest(engine)) return;
    int64_t rows = wanted_rows(engine, job);
    size_t bytes = bytes_of(engine, job, rows);
    if (!find_room(engine, bytes)) return;
    give(engine, job, rows, bytes);
    engine_job_enter(job, ENGINE_ADMITTED);
    admitted++;
    job->entered = ++engine->entered;
    job->executor = lp_executor_create(engine->bundle, LP_SIDE_DEVICE, engine->pool);
    job->executor->states.paged = engine->shape.paged;
  }
}

void engine_memory_share(lp_engine *engine) {
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs)
    if (engine_job_is_admitted(job) && (int64_t)job->text.count > job->granted) grow(engine, job);
  admit(engine);
}
