/* Runs one pass over the chosen sequences, and draws the next token of those that need one. */

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/engine/exits.h"
#include "runtime/engine/job.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"

/* Handles the status of an operation on all jobs: a failure fails all of them. */
static bool together(const lp_engine *engine, lp_status status, const lp_diag *diag) {
  for (size_t i = 0; status != LP_OK && i < engine->chosen.count; i++)
    engine_job_fail(engine->chosen.data[i], diag);
  return status == LP_OK;
}

/* Reserves the KV caches, and copies the rows of other prompts. A job without memory fails and leaves the pass. */
static void reserve(lp_engine *engine) {
  size_t kept = 0;
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  for (size_t i = 0; i < engine->chosen.count; i++) {
    engine_job *job = engine->chosen.data[i];
    lp_diag_clear(diag);
    const int64_t *sym = engine->member.data[i].sym;
    lp_status status = lp_states_reserve(&job->executor->states, sym, diag);
    if (status == LP_OK && job->from) status = engine_prefix_copy(job, diag);
    if (status != LP_OK) engine_job_fail(job, diag);
  }
  for (size_t i = 0; i < engine->chosen.count; i++) /* failed jobs move to the end */
    if (!engine_job_has_failed(engine->chosen.data[i])) {
      engine_job *job = engine->chosen.data[i];
      lp_batch_member member = engine->member.data[i];
      engine->chosen.data[i] = engine->chosen.data[kept];
      engine->member.data[i] = engine->member.data[kept];
      engine->chosen.data[kept] = job;
      engine->member.data[kept++] = member;
    }
  engine->member.count = kept;
}

/* The tokens of the job's part of this pass, in integers of `width` bytes. */
static void put_ids(const engine_job *job, size_t width, void *out) {
  for (int64_t k = 0; k < job->rows; k++) {
    int32_t token = job->text.data[job->done + k];
    if (width == sizeof(int32_t))
      ((int32_t *)out)[k] = token;
    else
      ((int64_t *)out)[k] = token;
  }
}

static lp_status fill(const lp_engine *engine, size_t i, const lp_step *step, lp_diag *diag) {
  const engine_job *job = engine->chosen.data[i];
  lp_span to;
  LP_TRY(lp_batch_buffer(engine->batch, i, step->buffer, step, &to, diag));
  size_t width = lp_element_size(step->tensor.dtype);
  if (to.size != (size_t)job->rows * width)
    return lp_error(diag, LP_LOC_NONE, "'%.80s' has %zu bytes for %" PRId64 " tokens", step->tensor.name, to.size,
                    job->rows);
  put_ids(job, width, to.data);
  return LP_OK;
}

/* The jobs of a pass that draw here. */
typedef struct {
  lp_engine *engine;
  const lp_step *step; /* NULL: from logits of the worker */
  size_t *job;         /* [count] */
  size_t count;
} drawing;

/* Draws for one of them, on any thread of the pool: over a large vocabulary that takes as long as some layers. */
static void draw(void *user, int64_t index) {
  const drawing *of = user;
  lp_engine *engine = of->engine;
  const lp_step *step = of->step;
  size_t i = of->job[index];
  engine_job *job = engine->chosen.data[i];
  lp_logits logits = {.row = job->logits};
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_status status = step ? lp_batch_logits(engine->batch, i, step, false, &logits, diag) : LP_OK;
  if (status == LP_OK)
    (void)!engine_job_draw(job, logits.row, 0, diag); /* the job keeps its failure */
  else
    engine_job_fail(job, diag);
}

static lp_status read_logits(lp_engine *engine, const lp_step *step, lp_diag *diag) {
  size_t count = engine->member.count;
  bool *selected = lp_alloc(count);
  drawing all = {.engine = engine, .step = step, .job = lp_alloc(count * sizeof *all.job)};
  for (size_t i = 0; i < count; i++) {
    selected[i] = engine_job_draws(engine->chosen.data[i]);
    if (selected[i]) all.job[all.count++] = i;
  }
  lp_status status = all.count > 0 ? lp_batch_fetch(engine->batch, step->buffer, step, selected, diag) : LP_OK;
  if (status == LP_OK) lp_pool_each(engine->pool, draw, &all, (int64_t)all.count);
  free(selected);
  free(all.job);
  return status;
}

/* ---- with a worker ----------------------------------------------------------------------------------------------- */

/* Sends the buffer of a step of the device to the worker, for every sequence. */
static lp_status send(lp_engine *engine, int32_t program, int32_t index, const lp_step *step, lp_diag *diag) {
  LP_TRY(lp_batch_fetch(engine->batch, step->buffer, step, NULL, diag));
  for (size_t i = 0; i < engine->member.count; i++) {
    lp_span made;
    LP_TRY(lp_batch_buffer(engine->batch, i, step->buffer, step, &made, diag));
    LP_TRY(engine_remote_send(engine, i, program, index, made.data, made.size, diag));
  }
  return LP_OK;
}

/* The tokens that the cloud's side reads. */
static lp_status send_tokens(lp_engine *engine, int32_t program, int32_t index, const lp_step *step, lp_diag *diag) {
  size_t width = lp_element_size(step->tensor.dtype);
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < engine->member.count; i++) {
    const engine_job *job = engine->chosen.data[i];
    lp_span ids = {.data = lp_alloc((size_t)job->rows * width), .size = (size_t)job->rows * width};
    put_ids(job, width, ids.data);
    status = engine_remote_send(engine, i, program, index, ids.data, ids.size, diag);
    free(ids.data);
  }
  return status;
}

/* Receives what a step of the cloud sends to the device. */
static lp_status take(lp_engine *engine, int32_t program, int32_t index, const lp_step *step, lp_diag *diag) {
  for (size_t i = 0; i < engine->member.count; i++) {
    lp_span to;
    LP_TRY(lp_batch_buffer(engine->batch, i, step->to_buffer, step, &to, diag));
    LP_TRY(engine_remote_take(engine, i, program, index, to, diag));
  }
  return lp_batch_bring(engine->batch, step->to_buffer, step, diag);
}

/* Receives the token of each sequence, or the logits from which it is drawn here. */
static lp_status take_output(lp_engine *engine, int32_t program, int32_t index, const lp_step *step, lp_diag *diag) {
  bool is_logits = step->port == lp_manifest_output(&engine->bundle->manifest, LP_ROLE_LOGITS);
  size_t count = engine->member.count;
  drawing here = {.engine = engine, .job = lp_alloc(count * sizeof *here.job)};
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < count; i++) {
    const engine_job *job = engine->chosen.data[i];
    if (job->wants_logits)
      status = engine_remote_take_output(engine, i, program, index, diag);
    else if (is_logits)
      status = engine_remote_draw(engine, i, program, index, diag);
    if (job->wants_logits && is_logits && !engine_job_has_failed(job)) here.job[here.count++] = i;
  }
  if (status == LP_OK) lp_pool_each(engine->pool, draw, &here, (int64_t)here.count);
  free(here.job);
  return status;
}

/* The device's part of a step of the cloud. */
static lp_status attend(lp_engine *engine, int32_t program, int32_t index, const lp_step *step, lp_diag *diag) {
  switch (step->kind) {
  case LP_STEP_INPUT:
    return send_tokens(engine, program, index, step, diag);
  case LP_STEP_SEND:
    return take(engine, program, index, step, diag);
  case LP_STEP_OUTPUT:
    return take_output(engine, program, index, step, diag);
  case LP_STEP_RUN:
  case LP_STEP_MOVE:
  case LP_STEP_GATHER:
    break;
  }
  return LP_OK;
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

static lp_status run_step(lp_engine *engine, int32_t program, int32_t index, const lp_step *step, lp_diag *diag) {
  const lp_manifest *manifest = &engine->bundle->manifest;
  const bool exits = engine->theta > 0;
  if (step->side == LP_SIDE_CLOUD && engine->remote) return exits ? LP_OK : attend(engine, program, index, step, diag);
  switch (step->kind) {
  case LP_STEP_INPUT:
    for (size_t i = 0; i < engine->member.count; i++)
      LP_TRY(fill(engine, i, step, diag));
    return lp_batch_bring(engine->batch, step->buffer, step, diag);
  case LP_STEP_RUN: /* heads of early exits run only where these are used */
    return step->exit < 0 || (exits && engine_exits_wanted(engine)) ? lp_batch_run(engine->batch, step, diag) : LP_OK;
  case LP_STEP_OUTPUT:
    if (exits) return engine_exits_take(engine, step, diag);
    return step->port == lp_manifest_output(manifest, LP_ROLE_LOGITS) ? read_logits(engine, step, diag) : LP_OK;
  case LP_STEP_SEND:
    if (exits) return engine_exits_keep(engine, program, step, diag);
    if (engine->remote) return send(engine, program, index, step, diag);
    break;
  case LP_STEP_MOVE:
  case LP_STEP_GATHER:
    break;
  }
  return lp_error(diag, LP_LOC_FILE(manifest->file), "a step crosses the link");
}

static lp_status run_steps(lp_engine *engine, int32_t index, lp_diag *diag) {
  const lp_program *program = &engine->bundle->manifest.programs[index];
  const bool exits = engine->theta > 0;
  if (engine->remote && !exits) LP_TRY(engine_remote_begin(engine, diag));
  LP_TRY(lp_batch_begin(engine->batch, index, engine->member.data, engine->member.count, diag));
  for (int32_t k = 0; k < program->step_count; k++)
    LP_TRY(run_step(engine, index, k, &program->step[k], diag));
  if (exits) engine_exits_ask(engine);
  for (size_t i = 0; engine->remote && !exits && program->takes_part[LP_SIDE_CLOUD] && i < engine->member.count; i++)
    if (!engine->chosen.data[i]->told) LP_TRY(engine_remote_send(engine, i, index, -1, NULL, 0, diag));
  return LP_OK;
}

void engine_pass_run(lp_engine *engine) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  double begin = lp_now_ms();
  int64_t rows = 0;
  LP_FOR_VEC_REFS(engine_job, job, &engine->chosen) {
    job->result = ENGINE_NO_TOKEN;
    job->asks = true;
    job->wants_logits = engine->draws_remotely && engine_job_draws(job) && engine_decoder_needs_logits(&job->decoder);
    if (job->call->begun_ms == 0) job->call->begun_ms = begin;
    rows += job->rows;
  }
  reserve(engine);
  if (engine->member.count > 0) {
    const engine_job *first = engine->chosen.data[0];
    int32_t program = first->done == 0 ? first->call->prefill : first->call->decode;
    bool ran = together(engine, run_steps(engine, program, diag), diag);
    lp_diag_clear(diag);
    if (together(engine, lp_batch_end(engine->batch, diag), diag) && ran)
      lp_pace_note(&engine->pace, rows, lp_now_ms() - begin);
  }
}
