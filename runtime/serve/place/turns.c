/* Turns in order: see turns.h. */
#include "runtime/serve/place/turns.h"

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* A request that waits, on the stack of its thread. */
struct lp_turn {
  pthread_cond_t changed;
  bool given;
  lp_turn *next;
};

void lp_turns_init(lp_turns *self, int count) {
  *self = (lp_turns){.free = count};
  (void)pthread_mutex_init(&self->lock, NULL);
}

void lp_turns_destroy(lp_turns *self) {
  (void)pthread_mutex_destroy(&self->lock);
}

static void append(lp_turns *self, lp_turn *turn) {
  if (self->last)
    self->last->next = turn;
  else
    self->first = turn;
  self->last = turn;
}

static void leave(lp_turns *self, const lp_turn *turn) {
  lp_turn *before = NULL;
  for (lp_turn *at = self->first; at != turn; at = at->next)
    before = at;
  if (before)
    before->next = turn->next;
  else
    self->first = turn->next;
  if (self->last == turn) self->last = before;
}

/* Waits until the turn is given or the time is over. With the lock held. */
static void await(lp_turns *self, lp_turn *turn, double until_ms) {
  double left_ms = until_ms - lp_now_ms();
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  int64_t ns = until.tv_nsec + (int64_t)(left_ms > 0 ? left_ms * 1e6 : 0);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  while (!turn->given)
    if (pthread_cond_timedwait(&turn->changed, &self->lock, &until) != 0) break;
}

bool lp_turns_take(lp_turns *self, double until_ms) {
  lp_turn own = {.given = false};
  (void)pthread_mutex_lock(&self->lock);
  if (self->free > 0) {
    self->free--;
    own.given = true;
  } else {
    (void)pthread_cond_init(&own.changed, NULL);
    append(self, &own);
    self->waiting++;
    await(self, &own, until_ms);
    self->waiting--;
    if (!own.given) leave(self, &own);
    (void)pthread_cond_destroy(&own.changed);
  }
  (void)pthread_mutex_unlock(&self->lock);
  return own.given;
}

void lp_turns_give(lp_turns *self) {
  (void)pthread_mutex_lock(&self->lock);
  lp_turn *turn = self->first;
  if (turn) {
    self->first = turn->next;
    if (!self->first) self->last = NULL;
    turn->given = true;
    (void)pthread_cond_signal(&turn->changed);
  } else {
    self->free++;
  }
  (void)pthread_mutex_unlock(&self->lock);
}
