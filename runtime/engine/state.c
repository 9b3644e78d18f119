/* Where a job is in its life, and what its passes gave it. */
#include <assert.h>
#include <stdlib.h>

#include "runtime/engine/state.h"

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
  return job->stage == ENGINE_ADMITTED || job->stage == ENGINE_RUNNING;
}

bool engine_job_is_admitted(const engine_job *job) {
  return engine_job_may_run(job) || job->stage == ENGINE_FOLLOWING;
}

bool engine_job_has_failed(const engine_job *job) {
  return job->result == ENGINE_FAILED || job->result == ENGINE_NO_ROOM;
}

bool engine_job_draws(const engine_job *job) {
  return !engine_job_has_failed(job) && job->done + job->rows == (int64_t)job->text.count;
}

lp_status engine_job_draw(engine_job *job, const float *logits, int32_t exit, lp_diag *diag) {
  bool complete = false;
  lp_status status = engine_decoder_draw(&job->decoder, logits, job->text.count, &job->drawn, &complete, diag);
  job->drawn.exit = exit;
  if (status == LP_OK)
    job->result = complete ? ENGINE_COMPLETE : ENGINE_DRAWN;
  else
    engine_job_fail(job, diag);
  return status;
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
