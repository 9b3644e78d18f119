/* Jobs and the clients that they belong to. */
#include "runtime/engine/job.h"

#include "runtime/engine/memory.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"

#include <assert.h>
#include <string.h>

engine_client *engine_client_of(lp_engine *engine, uint64_t id) {
  for (size_t i = 0; i < engine->clients.count; i++)
    if (engine->clients.data[i].id == id) return &engine->clients.data[i];
  return NULL;
}

void engine_client_enter(lp_engine *engine, uint64_t id, int32_t jobs) {
  engine_client *found = engine_client_of(engine, id), fresh = {.id = id, .served = engine->turn};
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

bool engine_job_draws(const engine_job *job) {
  return !job->failed && job->done + job->rows == (int64_t)job->text.count;
}

void engine_job_fail(engine_job *job, const lp_diag *diag) {
  const lp_diag_entry *why = lp_diag_get(diag, 0);
  if (!job->error) job->error = lp_strdup(why ? why->text : "the pass failed");
  job->failed = true;
}

void engine_job_end(lp_engine *engine, engine_job *job) {
  size_t at = 0;
  while (engine->jobs.data[at] != job)
    at++;
  memmove(&engine->jobs.data[at], &engine->jobs.data[at + 1], (--engine->jobs.count - at) * sizeof *engine->jobs.data);
  if (job->admitted) engine_memory_release(engine, job);
  if (job->executor) engine_prefix_keep(engine, job);
  if (job->connection != engine->connection) job->session = 0; /* it was lost */
  if (engine->remote) engine_remote_forget(engine->remote, job);
  job->executor = NULL;
  leave_client(engine, job->call->request->client);
  job->ended = true;
  (void)pthread_cond_signal(&job->call->changed);
}
