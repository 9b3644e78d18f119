/* Waits that another thread can end. */
#include "runtime/serve/place/watcher.h"
#include "base/clock.h"

#include <signal.h>
#include <time.h>

void lp_watcher_start(lp_watcher *self, void *(*watch)(void *user), void *user) {
  (void)pthread_mutex_init(&self->lock, NULL);
  (void)pthread_cond_init(&self->changed, NULL);
  self->runs = pthread_create(&self->thread, NULL, watch, user) == 0;
  if (self->runs) return;
  (void)pthread_cond_destroy(&self->changed);
  (void)pthread_mutex_destroy(&self->lock);
}

bool lp_watcher_wait(lp_watcher *self, double ms) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  int64_t ns = until.tv_nsec + (int64_t)(ms * 1e6);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  (void)pthread_mutex_lock(&self->lock);
  while (!self->ends && !self->woken)
    if (pthread_cond_timedwait(&self->changed, &self->lock, &until) != 0) break;
  bool ends = self->ends;
  self->woken = false;
  (void)pthread_mutex_unlock(&self->lock);
  return !ends;
}

static void set(lp_watcher *self, bool *flag) {
  (void)pthread_mutex_lock(&self->lock);
  *flag = true;
  (void)pthread_cond_broadcast(&self->changed);
  (void)pthread_mutex_unlock(&self->lock);
}

void lp_watcher_wake(lp_watcher *self) {
  if (self->runs) set(self, &self->woken);
}

void lp_watcher_end(lp_watcher *self) {
  if (!self->runs) return;
  set(self, &self->ends);
  (void)pthread_join(self->thread, NULL);
  (void)pthread_cond_destroy(&self->changed);
  (void)pthread_mutex_destroy(&self->lock);
  self->runs = false;
}

/* ---- a worker of this process ------------------------------------------------------------------------------------ */

static const double look_ms = 50, longest_pause_ms = 10000, steady_ms = 30000;
/* A worker is asked for a sign of life every ask_ms. One that gives none within answer_ms is down, until it gives one;
 * after hung_ms without any it is killed, and another one is started. */
static const double ask_ms = 500, answer_ms = 1500, hung_ms = 10000;

/* Asks the worker for a sign of life when it is time. A worker that is stopped or hangs is marked down, and killed in
 * the end. */
static void ask(lp_supervisor *self) {
  if (lp_now_ms() - self->asked_ms < ask_ms) return;
  bool up = lp_worker_answers(self->worker, answer_ms);
  self->asked_ms = lp_now_ms();
  if (up) self->heard_ms = self->asked_ms;
  atomic_store(&self->down, !up);
  if (self->asked_ms - self->heard_ms > hung_ms) (void)kill(self->worker->pid, SIGKILL);
}

/* Each start that does not last doubles the pause before the next one. */
static void *watch(void *user) {
  lp_supervisor *self = user;
  double pause_ms = look_ms, started_ms = lp_now_ms();
  self->heard_ms = self->asked_ms = started_ms;
  while (lp_watcher_wait(&self->watcher, look_ms)) {
    if (!lp_worker_has_ended(self->worker)) {
      ask(self);
      continue;
    }
    atomic_store(&self->down, true);
    if (lp_now_ms() - started_ms > steady_ms) pause_ms = look_ms;
    if (!lp_watcher_wait(&self->watcher, pause_ms)) break;
    pause_ms = pause_ms * 2 < longest_pause_ms ? pause_ms * 2 : longest_pause_ms;
    lp_diag *quiet = lp_diag_create();
    started_ms = lp_now_ms();
    bool up = lp_worker_revive(&self->request, self->worker, quiet) == LP_OK;
    lp_diag_free(quiet);
    self->heard_ms = self->asked_ms = lp_now_ms();
    if (up) atomic_store(&self->down, false);
  }
  return NULL;
}

void lp_supervisor_start(lp_supervisor *self, lp_worker_process *worker, const lp_worker_request *request) {
  *self = (lp_supervisor){.worker = worker, .request = *request};
  lp_watcher_start(&self->watcher, watch, self);
}

bool lp_supervisor_is_up(const lp_supervisor *self) {
  return !atomic_load(&self->down);
}

void lp_supervisor_end(lp_supervisor *self) {
  lp_watcher_end(&self->watcher);
}
