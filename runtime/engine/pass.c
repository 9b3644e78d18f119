/* Runs one pass over the chosen sequences, and draws the next token of those that need one. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/engine/job.h"

static void fail(engine_job *job, const lp_diag *diag) {
  const lp_diag_entry *why = lp_diag_get(diag, 0);
  if (!job->error) job->error = lp_strdup(why ? why->text : "the pass failed");
  job->failed = true;
}

/* Handles the status of an operation on all jobs: a failure fails all of them. */
static bool together(const lp_engine *engine, lp_status status, const lp_diag *diag) {
  for (size_t i = 0; status != LP_OK && i < engine->chosen.count; i++)
    fail(engine->chosen.data[i], diag);
  return status == LP_OK;
}

/* Reserves the KV caches. A job without memory fails and leaves the pass. */
static void reserve(lp_engine *engine) {
  size_t kept = 0;
  lp_diag *diag = lp_diag_create();
  for (size_t i = 0; i < engine->chosen.count; i++) {
    engine_job *job = engine->chosen.data[i];
    lp_diag_clear(diag);
    if (lp_states_reserve(&job->executor->states, engine->member.data[i].sym, diag) != LP_OK) fail(job, diag);
  }
  for (size_t i = 0; i < engine->chosen.count; i++) /* failed jobs move to the end */
    if (!engine->chosen.data[i]->failed) {
      engine_job *job = engine->chosen.data[i];
      lp_batch_member member = engine->member.data[i];
      engine->chosen.data[i] = engine->chosen.data[kept];
      engine->member.data[i] = engine->member.data[kept];
      engine->chosen.data[kept] = job;
      engine->member.data[kept++] = member;
    }
  engine->member.count = kept;
  lp_diag_free(diag);
}

static lp_status fill(const lp_engine *engine, size_t i, const lp_step *step, lp_diag *diag) {
  const engine_job *job = engine->chosen.data[i];
  lp_span to;
  LP_TRY(lp_batch_buffer(engine->batch, i, step->buffer, step, &to, diag));
  size_t width = lp_element_size(step->tensor.dtype);
  if (to.size != (size_t)job->rows * width)
    return lp_error(diag, LP_LOC_NONE, "'%.80s' has %zu bytes for %" PRId64 " tokens", step->tensor.name, to.size,
                    job->rows);
  for (int64_t k = 0; k < job->rows; k++) {
    int32_t token = job->text.data[job->done + k];
    if (width == sizeof(int32_t))
      ((int32_t *)to.data)[k] = token;
    else
      ((int64_t *)to.data)[k] = token;
  }
  return LP_OK;
}

/* Tells whether the pass runs the last token of the job's text, after which the next one is drawn. */
static bool draws(const engine_job *job) {
  return !job->failed && job->done + job->rows == (int64_t)job->text.count;
}

static void draw(lp_engine *engine, size_t i, const lp_step *step, lp_diag *diag) {
  engine_job *job = engine->chosen.data[i];
  lp_logits logits;
  lp_diag_clear(diag);
  lp_status status = lp_batch_logits(engine->batch, i, step, false, &logits, diag);
  if (status == LP_OK)
    status = engine_decoder_draw(&job->decoder, logits.row, job->text.count, &job->drawn, &job->is_complete, diag);
  if (status != LP_OK) fail(job, diag);
  job->has_drawn = status == LP_OK && !job->is_complete;
}

static lp_status read_logits(lp_engine *engine, const lp_step *step, lp_diag *diag) {
  size_t count = engine->member.count;
  bool *selected = lp_alloc(count), any = false;
  for (size_t i = 0; i < count; i++)
    any |= selected[i] = draws(engine->chosen.data[i]);
  lp_status status = any ? lp_batch_fetch(engine->batch, step->buffer, step, selected, diag) : LP_OK;
  for (size_t i = 0; status == LP_OK && i < count; i++)
    if (selected[i]) draw(engine, i, step, diag);
  free(selected);
  return status;
}

static lp_status run_step(lp_engine *engine, const lp_step *step, lp_diag *diag) {
  const lp_manifest *manifest = &engine->bundle->manifest;
  switch (step->kind) {
  case LP_STEP_INPUT:
    for (size_t i = 0; i < engine->member.count; i++)
      LP_TRY(fill(engine, i, step, diag));
    return lp_batch_bring(engine->batch, step->buffer, step, diag);
  case LP_STEP_RUN:
    return lp_batch_run(engine->batch, step, diag);
  case LP_STEP_OUTPUT:
    return step->port == lp_manifest_output(manifest, LP_ROLE_LOGITS) ? read_logits(engine, step, diag) : LP_OK;
  case LP_STEP_SEND:
  case LP_STEP_MOVE:
    break;
  }
  return lp_error(diag, LP_LOC_FILE(manifest->file), "a step crosses the link");
}

static lp_status run_steps(lp_engine *engine, int32_t index, lp_diag *diag) {
  const lp_program *program = &engine->bundle->manifest.programs[index];
  LP_TRY(lp_batch_begin(engine->batch, index, engine->member.data, engine->member.count, diag));
  for (int32_t k = 0; k < program->step_count; k++)
    LP_TRY(run_step(engine, &program->step[k], diag));
  return LP_OK;
}

void engine_pass_run(lp_engine *engine) {
  lp_diag *diag = lp_diag_create();
  double begin = lp_now_ms();
  int64_t rows = 0;
  for (size_t i = 0; i < engine->chosen.count; i++) {
    engine_job *job = engine->chosen.data[i];
    job->has_drawn = job->is_complete = false;
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
  lp_diag_free(diag);
}
