/* The thread of late draws: see late.h. */
#include "runtime/engine/late.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

/* The priority of a thread that shall take a tenth of a core which others want, and all of one that is free. */
enum { NICE = 10 };

/* The client that has had the least time is next; among its jobs, the one that entered first. */
static engine_job *choose(lp_engine *engine) {
  engine_job *best = NULL;
  double least = 0;
  LP_FOR_VEC_REFS(engine_job, job, &engine->jobs) {
    if (job->late != ENGINE_LATE_WAITS || job->cancelled) continue;
    const double had = engine_client_of(engine, job->call->request->client)->late_ms;
    if (!best || had < least || (had == least && job->ticket < best->ticket)) best = job, least = had;
  }
  return best;
}

static void slice(lp_engine *engine, engine_job *job) {
  engine->drawing = job;
  (void)pthread_mutex_unlock(&engine->lock);
  const double begin = lp_now_ms();
  engine_job_draw_on(job);
  const double took = lp_now_ms() - begin;
  (void)pthread_mutex_lock(&engine->lock);
  engine->drawing = NULL;
  engine_client_of(engine, job->call->request->client)->late_ms += took;
  if (job->result != ENGINE_LATE) job->late = ENGINE_LATE_DONE;
  if (job->result != ENGINE_LATE || job->cancelled) (void)pthread_cond_signal(&engine->work);
  (void)pthread_cond_signal(&engine->drawn);
}

static void *work(void *user) {
  lp_engine *engine = user;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread only, on Linux */
  (void)pthread_mutex_lock(&engine->lock);
  while (!engine->ends) {
    engine_job *job = choose(engine);
    if (job)
      slice(engine, job);
    else
      (void)pthread_cond_wait(&engine->late, &engine->lock);
  }
  (void)pthread_mutex_unlock(&engine->lock);
  return NULL;
}

lp_status engine_late_start(lp_engine *engine, lp_diag *diag) {
  if (!engine->runs_late) engine->runs_late = pthread_create(&engine->late_thread, NULL, work, engine) == 0;
  return engine->runs_late ? LP_OK : lp_error(diag, LP_LOC_NONE, "the system starts no thread");
}

void engine_late_stop(lp_engine *engine) {
  (void)pthread_mutex_lock(&engine->lock);
  engine->ends = true;
  (void)pthread_cond_signal(&engine->late);
  (void)pthread_mutex_unlock(&engine->lock);
  if (engine->runs_late) (void)pthread_join(engine->late_thread, NULL);
}

void engine_late_put(lp_engine *engine, engine_job *job) {
  job->late = ENGINE_LATE_WAITS;
  (void)pthread_cond_signal(&engine->late);
}

void engine_late_withdraw(lp_engine *engine, engine_job *job) {
  while (engine->drawing == job)
    (void)pthread_cond_wait(&engine->drawn, &engine->lock);
  job->late = ENGINE_NOT_LATE;
}
