/* Jobs and the clients that they belong to. */
#include "runtime/engine/job.h"

#include "runtime/engine/memory.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"
#include "runtime/exec/fair.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

engine_client *engine_client_of(lp_engine *engine, uint64_t id) {
  for (size_t i = 0; i < engine->clients.count; i++)
    if (engine->clients.data[i].id == id) return &engine->clients.data[i];
  return NULL;
}

void engine_client_enter(lp_engine *engine, uint64_t id, int32_t jobs) {
  engine_client *found = engine_client_of(engine, id), fresh = {.id = id, .served = lp_fair_enter(0, engine->turn)};
  if (!found) {
    lp_vec_push(&engine->clients, fresh);
    found = &engine->clients.data[engine->clients.count - 1];
  }
  found->jobs += jobs;
}

static void leave_client(lp_engine *engine, uint64_t id) {
  engine_client *found = engine_client_of(engine, id);
  assert(found); /* it has entered */
  if (--found->jobs == 0) *found = engine->clients.data[--engine->clients.count];
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

bool engine_job_is_admitted(const engine_job *job) {
  return job->stage == ENGINE_ADMITTED || job->stage == ENGINE_FOLLOWING || job->stage == ENGINE_RUNNING;
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

void engine_job_end(lp_engine *engine, engine_job *job) {
  size_t at = 0;
  while (engine->jobs.data[at] != job)
    at++;
  memmove(&engine->jobs.data[at], &engine->jobs.data[at + 1], (--engine->jobs.count - at) * sizeof *engine->jobs.data);
  if (engine_job_is_admitted(job)) engine_memory_release(engine, job);
  if (job->executor) engine_prefix_keep(engine, job);
  if (job->connection != engine->connection) job->session = 0; /* it was lost */
  if (engine->remote) engine_remote_forget(engine->remote, job);
  job->executor = NULL;
  leave_client(engine, job->call->request->client);
  engine_job_enter(job, ENGINE_ENDED);
  (void)pthread_cond_signal(&job->call->changed);
}
