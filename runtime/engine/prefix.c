/* Shares the rows of prompts that begin alike: see prefix.h. */
#include "runtime/engine/prefix.h"

#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/engine/remote.h"

/* Prompts share a multiple of GRAIN rows, and compute at least LEFT, since passes over few rows may round differently.
 * At most MOST_KEPT prompts are kept, with a worker MOST_KEPT_THERE; without a budget in usual_bytes. */
enum { GRAIN = 32, LEFT = 16, MOST_KEPT = 64, MOST_KEPT_THERE = 16 };
static const size_t usual_bytes = (size_t)256 << 20;

bool engine_prefix_fits(const lp_bundle *bundle, bool remote) {
  const lp_manifest *manifest = &bundle->manifest;
  return lp_states_have_rows(manifest, LP_SIDE_DEVICE) && (!remote || lp_states_have_rows(manifest, LP_SIDE_CLOUD));
}

/* Tokens of the job's text that are its prompt, and not an answer that began elsewhere. */
static size_t prompt_of(const engine_job *job) {
  return job->call->request->length - job->call->request->answered;
}

static uint64_t tenant_of(const engine_job *job) {
  return job->call->request->tenant;
}

/* The rows of its prompt that the job has. */
static int64_t prompt_rows(const engine_job *job) {
  int64_t most = (int64_t)prompt_of(job);
  return job->done < most ? job->done : most;
}

/* The rows that a prompt and another text have in common, of `rows` rows of the other one, in whole grains. */
static int64_t common_rows(const int32_t *prompt, size_t length, const lp_tokens *text, int64_t rows) {
  int64_t most = (int64_t)length - LEFT, same = 0;
  if (rows < most) most = rows;
  while (same < most && prompt[same] == text->data[same])
    same++;
  return same / GRAIN * GRAIN;
}

static int64_t shared_rows(const engine_job *job, const lp_tokens *text, int64_t rows) {
  return common_rows(job->text.data, prompt_of(job), text, rows);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* `session` has the worker's rows, if there is one. */
static void offer(const lp_engine *engine, engine_job *job, const lp_executor *from, uint64_t session, int64_t rows) {
  if (rows <= job->done || (engine->remote && session == 0)) return;
  job->from = &from->states;
  job->from_session = session;
  job->done = rows;
}

/* The rows of the job's prompt that another one will have, if a pass may run it next. */
static int64_t rows_to_come(const engine_job *job, const engine_job *other) {
  int64_t all = (int64_t)prompt_of(other);
  return engine_job_may_run(other) && other->done < all ? shared_rows(job, &other->text, all) : 0;
}

static void find(lp_engine *engine, engine_job *job) {
  int64_t to_come = 0;
  bool is_before = true; /* jobs before this one are begun in their turn, and do not wait for it */
  job->done = 0;
  job->from = NULL;
  job->from_session = 0;
  engine_job_enter(job, ENGINE_ADMITTED);
  if (job->own_rows || !engine->shares) return;
  LP_FOR_VEC(engine_prefix, kept, &engine->kept) {
    if (kept->tenant != tenant_of(job)) continue;
    int64_t rows = shared_rows(job, &kept->text, (int64_t)kept->text.count);
    if (rows > job->done) kept->used = ++engine->ticket;
    offer(engine, job, kept->executor, kept->session, rows);
  }
  LP_FOR_VEC_REFS(engine_job, other, &engine->jobs) {
    is_before = is_before && other != job;
    if (tenant_of(other) != tenant_of(job)) continue;
    if (other->stage == ENGINE_RUNNING)
      offer(engine, job, other->executor, other->session, shared_rows(job, &other->text, prompt_rows(other)));
    int64_t rows = other->stage == ENGINE_RUNNING || is_before ? rows_to_come(job, other) : 0;
    if (rows > to_come) to_come = rows;
  }
  if (to_come > job->done) engine_job_enter(job, ENGINE_FOLLOWING);
}

void engine_prefix_find(lp_engine *engine) {
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs)
    if (job->stage == ENGINE_ADMITTED || job->stage == ENGINE_FOLLOWING) find(engine, job);
}

int64_t engine_prefix_rows_of(const lp_engine *engine, uint64_t tenant, const int32_t *prompt, size_t length) {
  int64_t most = 0;
  for (size_t i = 0; engine->shares && i < engine->kept.count; i++) {
    const lp_tokens *text = &engine->kept.data[i].text;
    if (engine->kept.data[i].tenant != tenant) continue;
    const int64_t rows = common_rows(prompt, length, text, (int64_t)text->count);
    if (rows > most) most = rows;
  }
  for (size_t i = 0; engine->shares && i < engine->jobs.count; i++) {
    const engine_job *job = engine->jobs.data[i];
    if (tenant_of(job) != tenant) continue;
    const int64_t rows = common_rows(prompt, length, &job->text, (int64_t)prompt_of(job));
    if (rows > most) most = rows;
  }
  return most;
}

lp_status engine_prefix_copy(engine_job *job, lp_diag *diag) {
  const lp_states *from = job->from;
  job->from = NULL;
  return lp_states_copy_rows(from, &job->executor->states, job->done, diag);
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void drop(lp_engine *engine, size_t index) {
  engine_prefix *kept = &engine->kept.data[index];
  engine->kept_bytes -= kept->bytes;
  if (engine->remote) engine_remote_forget_session(engine->remote, kept->session);
  lp_executor_free(kept->executor);
  lp_vec_free(&kept->text);
  *kept = engine->kept.data[--engine->kept.count];
}

bool engine_prefix_drop_oldest(lp_engine *engine) {
  size_t oldest = 0;
  if (engine->kept.count == 0) return false;
  for (size_t i = 1; i < engine->kept.count; i++)
    if (engine->kept.data[i].used < engine->kept.data[oldest].used) oldest = i;
  drop(engine, oldest);
  return true;
}

static bool has_room(const lp_engine *engine, size_t bytes) {
  size_t all = engine->held + engine->kept_bytes + bytes;
  if (engine->kept_bytes > usual_bytes && engine->kv_bytes == 0) return false;
  return engine->kv_bytes == 0 || all <= (size_t)engine->kv_bytes;
}

void engine_prefix_make_room(lp_engine *engine, size_t bytes) {
  while (!has_room(engine, bytes) && engine_prefix_drop_oldest(engine)) {
  }
}

void engine_prefix_free(lp_engine *engine) {
  while (engine->kept.count > 0)
    drop(engine, 0);
  lp_vec_free(&engine->kept);
}

/* Tells whether kept rows begin with those of the job. */
static bool is_kept(lp_engine *engine, const engine_job *job, int64_t rows) {
  LP_FOR_VEC(engine_prefix, kept, &engine->kept) {
    int64_t same = 0;
    if (kept->tenant != tenant_of(job)) continue;
    while (same < rows && same < (int64_t)kept->text.count && kept->text.data[same] == job->text.data[same])
      same++;
    if (same < rows) continue;
    kept->used = ++engine->ticket;
    return true;
  }
  return false;
}

/* Tells whether the worker has room for a session more: it copies the rows before the job's own session is closed. */
static bool has_session(const lp_engine *engine, const engine_job *job) {
  return job->session != 0 && job->end != ENGINE_END_LOST &&
         engine->jobs.count + engine->kept.count + 2 <= ENGINE_MOST_SESSIONS;
}

void engine_prefix_keep(lp_engine *engine, engine_job *job) {
  bool can = engine->shares && job->stage == ENGINE_RUNNING && !engine_job_has_failed(job) &&
             (!engine->remote || has_session(engine, job));
  int64_t rows = can ? prompt_rows(job) / GRAIN * GRAIN : 0;
  if (rows == 0 || is_kept(engine, job, rows)) {
    lp_executor_free(job->executor);
    return;
  }
  lp_states *states = &job->executor->states;
  const int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_C] = states->capacity};
  if (states->paged) lp_states_trim(states, sym, rows);
  engine_prefix kept = {
      .tenant = tenant_of(job), .executor = job->executor, .bytes = job->call->bytes, .used = ++engine->ticket};
  (void)lp_states_bytes_of_rows(states, sym, rows, &kept.bytes); /* it knows the size of the whole */
  for (int64_t i = 0; i < rows; i++)
    lp_vec_push(&kept.text, job->text.data[i]);
  if (engine->remote) kept.session = engine_remote_keep(engine->remote, job, rows);
  if (engine->kept.count >= (engine->remote ? MOST_KEPT_THERE : MOST_KEPT)) (void)engine_prefix_drop_oldest(engine);
  lp_vec_push(&engine->kept, kept);
  engine->kept_bytes += kept.bytes;
  engine_prefix_make_room(engine, 0);
}
