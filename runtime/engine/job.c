/* The beginning and the end of jobs. */
#include "runtime/engine/job.h"

#include "runtime/engine/late.h"
#include "runtime/engine/memory.h"
#include "runtime/engine/prefix.h"
#include "runtime/engine/remote.h"
#include "runtime/exec/fair.h"

#include <assert.h>

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

void engine_job_end(lp_engine *engine, engine_job *job) {
  size_t at = 0;
  engine_late_withdraw(engine, job);
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
