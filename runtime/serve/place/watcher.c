/* Waits that another thread can end. */
#include "runtime/serve/place/watcher.h"

#include <stdint.h>
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
