/* Turns for clients: see turns.h. */
#include "runtime/serve/place/turns.h"

#include <time.h>

#include "base/clock.h"

/* A client gets further turns while it has less than SHARE times those that are free (Choudhury and Hahne, "Dynamic
 * queue length thresholds", 1998): n clients that take what they get leave 1 in SHARE n + 1 free. */
enum { SHARE = 7 };

/* A request that waits, on the stack of its thread. */
struct lp_turn {
  const lp_turns_request *request;
  pthread_cond_t changed;
  bool given, refused;
};

void lp_turns_init(lp_turns *self, int count, int queue) {
  *self = (lp_turns){.count = count, .free = count, .queue = queue};
  (void)pthread_mutex_init(&self->lock, NULL);
}

void lp_turns_destroy(lp_turns *self) {
  lp_vec_free(&self->turns);
  lp_vec_free(&self->clients);
  (void)pthread_mutex_destroy(&self->lock);
}

/* ---- clients: with the lock held --------------------------------------------------------------------------------- */

static lp_turns_client *client_of(lp_turns *self, uint64_t id) {
  int64_t turn = self->clients.count > 0 ? INT64_MAX : 0;
  for (size_t i = 0; i < self->clients.count; i++) {
    if (self->clients.data[i].id == id) return &self->clients.data[i];
    if (self->clients.data[i].served < turn) turn = self->clients.data[i].served;
  }
  lp_turns_client fresh = {.id = id, .served = turn};
  lp_vec_push(&self->clients, fresh);
  return &self->clients.data[self->clients.count - 1];
}

static void forget_if_idle(lp_turns *self, lp_turns_client *client) {
  if (client->held == 0 && client->waiting == 0) *client = self->clients.data[--self->clients.count];
}

static int turns_of(const lp_turns *self, const lp_turns_request *request) {
  return request->turns < self->count ? request->turns : self->count;
}

/* ---- those that wait: with the lock held ------------------------------------------------------------------------- */

static void leave(lp_turns *self, const lp_turn *turn) {
  const int turns = turns_of(self, turn->request);
  size_t kept = 0;
  for (size_t i = 0; i < self->turns.count; i++)
    if (self->turns.data[i] != turn) self->turns.data[kept++] = self->turns.data[i];
  self->turns.count = kept;
  self->waiting -= turns;
  client_of(self, turn->request->client)->waiting -= turns;
}

/* The waiting request that is next, even if too few turns are free for it; NULL: no client may take a free turn. */
static lp_turn *next(lp_turns *self) {
  lp_turn *found = NULL;
  int64_t least = 0;
  LP_FOR_VEC_REFS(lp_turn, turn, &self->turns) {
    const lp_turns_client *client = client_of(self, turn->request->client);
    if (client->held >= SHARE * self->free || (found && client->served >= least)) continue;
    found = turn;
    least = client->served;
  }
  return found;
}

static void give(lp_turns *self) {
  for (lp_turn *turn; (turn = next(self)) && turns_of(self, turn->request) <= self->free;) {
    lp_turns_client *client = client_of(self, turn->request->client);
    leave(self, turn);
    client->held += turns_of(self, turn->request);
    client->served += turn->request->tokens;
    self->free -= turns_of(self, turn->request);
    turn->given = true;
    (void)pthread_cond_signal(&turn->changed);
  }
}

/* Refuses the newest request of the client that waits for the most turns. At least one request must wait. */
static void refuse_one(lp_turns *self) {
  lp_turn *found = self->turns.data[0];
  int most = 0;
  for (size_t i = 0; i < self->turns.count; i++) {
    const int waiting = client_of(self, self->turns.data[i]->request->client)->waiting;
    if (waiting >= most) found = self->turns.data[i];
    if (waiting >= most) most = waiting;
  }
  leave(self, found);
  found->refused = true;
  (void)pthread_cond_signal(&found->changed);
}

/* Waits until the turn is given or refused, or the time is over. */
static void await(lp_turns *self, lp_turn *turn, double until_ms) {
  double left_ms = until_ms - lp_now_ms();
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  int64_t ns = until.tv_nsec + (int64_t)(left_ms > 0 ? left_ms * 1e6 : 0);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  while (!turn->given && !turn->refused)
    if (pthread_cond_timedwait(&turn->changed, &self->lock, &until) != 0) break;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

lp_turns_result lp_turns_take(lp_turns *self, const lp_turns_request *request, double until_ms) {
  lp_turn own = {.request = request};
  (void)pthread_cond_init(&own.changed, NULL);
  (void)pthread_mutex_lock(&self->lock);
  lp_vec_push(&self->turns, &own);
  self->waiting += turns_of(self, request);
  client_of(self, request->client)->waiting += turns_of(self, request);
  give(self);
  while (self->waiting > self->queue)
    refuse_one(self);
  await(self, &own, until_ms);
  if (!own.given && !own.refused) leave(self, &own);
  forget_if_idle(self, client_of(self, request->client));
  (void)pthread_mutex_unlock(&self->lock);
  (void)pthread_cond_destroy(&own.changed);
  return own.given ? LP_TURNS_TAKEN : own.refused ? LP_TURNS_FULL : LP_TURNS_LATE;
}

void lp_turns_give(lp_turns *self, const lp_turns_request *request) {
  (void)pthread_mutex_lock(&self->lock);
  lp_turns_client *client = client_of(self, request->client);
  client->held -= turns_of(self, request);
  self->free += turns_of(self, request);
  forget_if_idle(self, client);
  give(self);
  (void)pthread_mutex_unlock(&self->lock);
}
