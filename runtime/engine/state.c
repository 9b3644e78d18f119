/* Where a job is in its life, what its passes gave it, and the clients that jobs belong to. */
#include <assert.h>

#include "runtime/engine/state.h"

engine_client *engine_client_of(lp_engine *engine, uint64_t id) {
  for (size_t i = 0; i < engine->clients.count; i++)
    if (engine->clients.data[i].id == id) return &engine->clients.data[i];
  return NULL;
}

void engine_job_enter(engine_job *job, engine_stage stage) {
  static const unsigned allowed[] = {
      [ENGINE_WAITING] = 1u << ENGINE_ADMITTED | 1u << ENGINE_ENDED,
      [ENGINE_ADMITTED] = 1u << ENGINE_FOLLOWING | 1u << ENGINE_RUNNING | 1u << ENGINE_WAITING | 1u << ENGINE_ENDED,
      [ENGINE_FOLLOWING] = 1u << ENGINE_ADMITTED | 1u << ENGINE_WAITING | 1u << ENGINE_ENDED,
      [ENGINE_RUNNING] = 1u << ENGINE_WAITING | 1u << ENGINE_ENDED,
      [ENGINE_ENDED] = 0};
  assert(job->stage == stage || allowed[job->stage] >> stage & 1);
  job->stage = stage;
}

bool engine_job_may_run(const engine_job *job) {
  return job->late == ENGINE_NOT_LATE && (job->stage == ENGINE_ADMITTED || job->stage == ENGINE_RUNNING);
}

bool engine_job_is_admitted(const engine_job *job) {
  return job->stage == ENGINE_ADMITTED || job->stage == ENGINE_RUNNING || job->stage == ENGINE_FOLLOWING;
}

bool engine_job_has_failed(const engine_job *job) {
  return job->result == ENGINE_FAILED || job->result == ENGINE_NO_ROOM;
}

bool engine_job_draws(const engine_job *job) {
  return !engine_job_has_failed(job) && job->done + job->rows == (int64_t)job->text.count;
}

static void set_result(engine_job *job, engine_draw draw) {
  static const engine_result results[] = {[ENGINE_DRAW_TOKEN] = ENGINE_DRAWN,
                                          [ENGINE_DRAW_COMPLETE] = ENGINE_COMPLETE,
                                          [ENGINE_DRAW_LATER] = ENGINE_LATE,
                                          [ENGINE_DRAW_TOO_MUCH] = ENGINE_TOO_MUCH};
  job->result = results[draw];
  job->drawn.exit = job->exit;
}

lp_status engine_job_draw(engine_job *job, const float *logits, int32_t exit, lp_diag *diag) {
  engine_draw draw;
  lp_status status = engine_decoder_draw(&job->decoder, logits, job->text.count, &job->drawn, &draw, diag);
  job->exit = exit;
  if (status == LP_OK)
    set_result(job, draw);
  else
    engine_job_fail(job, diag);
  return status;
}

void engine_job_draw_on(engine_job *job) {
  engine_draw draw;
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  if (engine_decoder_go_on(&job->decoder, &job->drawn, &draw, diag) == LP_OK)
    set_result(job, draw);
  else
    engine_job_fail(job, diag);
}

void engine_job_fail(engine_job *job, const lp_diag *diag) {
  const lp_diag_entry *why = lp_diag_get(diag, 0);
  if (!job->error) job->error = lp_strdup(why ? why->text : "the pass failed");
  if (job->result != ENGINE_NO_ROOM) job->result = ENGINE_FAILED;
}

void engine_job_forget_failure(engine_job *job) {
  free(job->error);
  job->error = NULL;
  job->result = ENGINE_NO_TOKEN;
}
