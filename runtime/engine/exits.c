/* Tokens from early exits, and questions to the worker: see exits.h. */
#include "runtime/engine/exits.h"

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/engine/remote.h"
#include "runtime/exits/halves.h"

/* After it has lost the worker, the engine waits this long before it dials again. */
static const double pause_ms = 1000;

static int32_t sends_of(const lp_program *program, const lp_step *until) {
  int32_t count = 0;
  for (const lp_step *step = program->step; step < until; step++)
    count += step->kind == LP_STEP_SEND && step->side == LP_SIDE_DEVICE;
  return count;
}

bool engine_exits_fits(const lp_bundle *bundle, const char **why) {
  lp_halves halves;
  if (!lp_halves_find(bundle, &halves, why)) return false;
  const lp_program *program = &bundle->manifest.programs[halves.decode];
  *why = "too many tensors cross the link";
  return sends_of(program, program->step + program->step_count) <= ENGINE_MOST_CROSSING;
}

/* ---- exits ------------------------------------------------------------------------------------------------------- */

/* Tells whether the job needs a token of this pass, and has none yet. */
static bool lacks_token(const engine_job *job) {
  return engine_job_draws(job) && job->result == ENGINE_NO_TOKEN;
}

bool engine_exits_wanted(const lp_engine *engine) {
  for (size_t i = 0; i < engine->member.count; i++)
    if (lacks_token(engine->chosen.data[i])) return true;
  return false;
}

/* The jobs that look at an exit. */
typedef struct {
  lp_engine *engine;
  const lp_step *step;
  int32_t layer;
  size_t *job; /* [count] */
  size_t count;
} looking;

/* One of them, on any thread of the pool. What an unsure exit says is kept, in case that nobody else answers. */
static void look(void *user, int64_t index) {
  static const lp_sampling greedy = {.top_p = 1};
  const looking *of = user;
  lp_engine *engine = of->engine;
  engine_job *job = engine->chosen.data[of->job[index]];
  int32_t vocab = engine->bundle->manifest.vocab;
  lp_logits logits;
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_status status = lp_batch_logits(engine->batch, of->job[index], of->step, false, &logits, diag);
  if (status != LP_OK) {
    engine_job_fail(job, diag);
  } else if (lp_sampler_draw(&greedy, logits.row, vocab, 0, 0, &job->decoder.scratch).confidence >= engine->theta) {
    (void)!engine_job_draw(job, logits.row, of->layer, diag);
  } else {
    if (!job->logits) job->logits = lp_alloc((size_t)vocab * sizeof *job->logits);
    memcpy(job->logits, logits.row, (size_t)vocab * sizeof *job->logits);
    job->unsure = of->layer;
  }
}

lp_status engine_exits_take(lp_engine *engine, const lp_step *step, lp_diag *diag) {
  const lp_manifest *manifest = &engine->bundle->manifest;
  size_t count = engine->member.count;
  int32_t exit = lp_manifest_exit(manifest, step->port);
  if (exit < 0) return LP_OK; /* another output */
  looking all = {.engine = engine, .step = step, .layer = manifest->exits[exit].layer};
  bool *selected = lp_alloc(count);
  all.job = lp_alloc(count * sizeof *all.job);
  for (size_t i = 0; i < count; i++) {
    selected[i] = lacks_token(engine->chosen.data[i]);
    if (selected[i]) all.job[all.count++] = i;
  }
  lp_status status = all.count > 0 ? lp_batch_fetch(engine->batch, step->buffer, step, selected, diag) : LP_OK;
  if (status == LP_OK) lp_pool_each(engine->pool, look, &all, (int64_t)all.count);
  free(selected);
  free(all.job);
  return status;
}

lp_status engine_exits_keep(lp_engine *engine, int32_t program, const lp_step *step, lp_diag *diag) {
  int32_t index = sends_of(&engine->bundle->manifest.programs[program], step);
  LP_TRY(lp_batch_fetch(engine->batch, step->buffer, step, NULL, diag));
  for (size_t i = 0; i < engine->member.count; i++) {
    lp_span made;
    LP_TRY(lp_batch_buffer(engine->batch, i, step->buffer, step, &made, diag));
    lp_buf_append(&engine->chosen.data[i]->crossing[index], made.data, made.size);
  }
  return LP_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static int32_t program_there(const engine_job *job) {
  return job->sent == 0 ? job->call->prefill : job->call->decode;
}

/* Sends the rows that the worker lacks. */
static lp_status send_rows(lp_engine *engine, size_t sequence, lp_diag *diag) {
  engine_job *job = engine->chosen.data[sequence];
  int32_t index = program_there(job);
  const lp_program *program = &engine->bundle->manifest.programs[index];
  int64_t all = job->done + job->rows;
  memcpy(job->remote_symbols, engine->member.data[sequence].sym, sizeof job->remote_symbols);
  job->remote_symbols[LP_SYM_P] = job->sent;
  job->remote_symbols[LP_SYM_S] = all - job->sent;
  for (int32_t k = 0; k < program->step_count; k++) {
    const lp_step *step = &program->step[k];
    if (step->kind != LP_STEP_SEND || step->side != LP_SIDE_DEVICE) continue;
    const lp_buf *rows = &job->crossing[sends_of(program, step)];
    size_t skipped = rows->size / (size_t)all * (size_t)job->sent;
    LP_TRY(engine_remote_send(engine, sequence, index, k, rows->data + skipped, rows->size - skipped, diag));
  }
  return LP_OK;
}

/* Takes the token, or the logits from which it is drawn here. */
static lp_status take_answer(lp_engine *engine, size_t sequence, lp_diag *diag) {
  const lp_manifest *manifest = &engine->bundle->manifest;
  engine_job *job = engine->chosen.data[sequence];
  int32_t index = program_there(job);
  const lp_program *program = &manifest->programs[index];
  for (int32_t k = 0; k < program->step_count; k++) {
    const lp_step *step = &program->step[k];
    bool is_logits = step->port == lp_manifest_output(manifest, LP_ROLE_LOGITS);
    if (step->kind != LP_STEP_OUTPUT || step->side != LP_SIDE_CLOUD) continue;
    if (job->wants_logits)
      LP_TRY(engine_remote_take_output(engine, sequence, index, k, diag));
    else if (is_logits)
      LP_TRY(engine_remote_draw(engine, sequence, index, k, diag));
  }
  if (!engine_job_has_failed(job)) {
    job->sent = job->done + job->rows;
    if (job->wants_logits) (void)!engine_job_draw(job, job->logits, 0, diag);
    return LP_OK;
  }
  if (job->result == ENGINE_NO_ROOM) return LP_OK; /* it begins again when there is some: memory.h */
  engine_job_forget_failure(job); /* the worker cannot go on: it gets all rows with the next question */
  job->sent = 0;
  engine_remote_forget(engine->remote, job);
  return LP_OK;
}

static lp_status ask(lp_engine *engine, lp_diag *diag) {
  if (lp_now_ms() < engine->quiet_until_ms) return LP_FAILED;
  LP_TRY(engine_remote_begin(engine, diag));
  for (size_t i = 0; i < engine->member.count; i++)
    if (engine->chosen.data[i]->asks) LP_TRY(send_rows(engine, i, diag));
  for (size_t i = 0; i < engine->member.count; i++)
    if (engine->chosen.data[i]->asks) LP_TRY(take_answer(engine, i, diag));
  return LP_OK;
}

void engine_exits_ask(lp_engine *engine) {
  size_t asking = 0;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  for (size_t i = 0; i < engine->chosen.count; i++) {
    engine_job *job = engine->chosen.data[i];
    job->asks = i < engine->member.count && lacks_token(job);
    if (job->connection != engine->connection) job->session = 0, job->sent = 0;
    job->connection = engine->connection;
    asking += job->asks;
  }
  bool lost = asking > 0 && ask(engine, quiet) != LP_OK;
  if (lost && lp_now_ms() >= engine->quiet_until_ms) {
    engine->connection++; /* the sessions of all jobs are gone */
    engine->quiet_until_ms = lp_now_ms() + pause_ms;
    engine_remote_drop(engine->remote);
  }
  for (size_t i = 0; i < engine->member.count && asking > 0; i++) {
    engine_job *job = engine->chosen.data[i];
    lp_diag_clear(quiet);
    if (job->asks && lacks_token(job)) (void)!engine_job_draw(job, job->logits, job->unsure, quiet);
  }
}
