/* The key PROMPT:DIGEST has the address of the worker to which a prompt with this beginning was sent last. */
#include "runtime/serve/place/visits.h"

#include "base/digest.h"

/* The tokens of the shortest beginning; a prompt computes at least LEFT of its own (engine/prefix.c). */
enum { FIRST = 32, LEFT = 16 };

int lp_visits_of(const char *model, const int32_t *prompt, size_t length, lp_visit *out) {
  int count = 0;
  size_t done = 0;
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, model, strlen(model) + 1);
  for (size_t rows = FIRST; rows + LEFT <= length && count < LP_MOST_VISITS; rows *= 2) {
    lp_sha256_update(&sha, prompt + done, (rows - done) * sizeof *prompt);
    lp_sha256 until = sha;
    lp_sha256_hex(&until, out[count].digest);
    out[count++].rows = (int64_t)rows;
    done = rows;
  }
  return count;
}

#ifdef LP_REDIS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/link/address.h"
#include "runtime/serve/place/redis.h"

#define PROMPT "llmpart:prompt:"
static const int live_ms = 600000;
static const struct timeval patience = {.tv_usec = 100000};
static const double quiet_ms = 2000; /* after a failure */

struct lp_visits {
  const lp_serve_fleet *config;
  const char *model;
  char *host;
  int port;
  pthread_mutex_t lock; /* guards what follows */
  redisContext *redis;  /* NULL: not connected */
  double quiet_until_ms;
};

lp_status lp_visits_open(const lp_serve_fleet *config, const char *model, lp_visits **out, lp_diag *diag) {
  char *host;
  int port;
  LP_TRY(lp_address_split(config->redis, &host, &port, diag));
  lp_visits *self = lp_alloc(sizeof *self);
  *self = (lp_visits){.config = config, .model = model, .host = host, .port = port};
  (void)pthread_mutex_init(&self->lock, NULL);
  *out = self;
  return LP_OK;
}

static void disconnect(lp_visits *self) {
  if (self->redis) redisFree(self->redis);
  self->redis = NULL;
}

void lp_visits_close(lp_visits *self) {
  if (!self) return;
  disconnect(self);
  (void)pthread_mutex_destroy(&self->lock);
  free(self->host);
  free(self);
}

static bool is_connected(lp_visits *self) {
  if (self->redis || lp_now_ms() < self->quiet_until_ms) return self->redis != NULL;
  self->redis = lp_redis_connect(self->config, self->host, self->port, patience);
  if (!self->redis) self->quiet_until_ms = lp_now_ms() + quiet_ms;
  return self->redis != NULL;
}

/* Begins a pause if a command has failed. */
static void note_reply(lp_visits *self, const redisReply *reply) {
  if (reply) return;
  disconnect(self);
  self->quiet_until_ms = lp_now_ms() + quiet_ms;
}

static redisReply *get_all(lp_visits *self, const lp_visit *visit, int count) {
  if (!is_connected(self)) return NULL;
  char key[LP_MOST_VISITS][sizeof PROMPT + sizeof visit->digest];
  const char *word[LP_MOST_VISITS + 1] = {"MGET"};
  for (int i = 0; i < count; i++) {
    (void)snprintf(key[i], sizeof key[i], PROMPT "%s", visit[i].digest);
    word[i + 1] = key[i];
  }
  redisReply *reply = redisCommandArgv(self->redis, count + 1, word, NULL);
  if (!lp_redis_is_good(reply) || reply->type != REDIS_REPLY_ARRAY || reply->elements != (size_t)count) {
    freeReplyObject(reply);
    reply = NULL;
  }
  note_reply(self, reply);
  return reply;
}

int64_t lp_visits_find(lp_visits *self, const int32_t *prompt, size_t length, char address[LP_MOST_ADDRESS]) {
  lp_visit visit[LP_MOST_VISITS];
  const int count = lp_visits_of(self->model, prompt, length, visit);
  int64_t rows = 0;
  if (count == 0) return 0;
  (void)pthread_mutex_lock(&self->lock);
  redisReply *reply = get_all(self, visit, count);
  for (int i = count; reply && rows == 0 && i-- > 0;) {
    const redisReply *item = reply->element[i];
    if (item->type != REDIS_REPLY_STRING || item->len >= LP_MOST_ADDRESS) continue;
    memcpy(address, item->str, item->len + 1);
    rows = visit[i].rows;
  }
  freeReplyObject(reply);
  (void)pthread_mutex_unlock(&self->lock);
  return rows;
}

void lp_visits_note(lp_visits *self, const int32_t *prompt, size_t length, const char *address) {
  lp_visit visit[LP_MOST_VISITS];
  const int count = lp_visits_of(self->model, prompt, length, visit);
  if (count == 0) return;
  (void)pthread_mutex_lock(&self->lock);
  if (is_connected(self)) {
    for (int i = 0; i < count; i++)
      (void)redisAppendCommand(self->redis, "SET " PROMPT "%s %s PX %d", visit[i].digest, address, live_ms);
    redisReply *reply = lp_redis_last_reply(self->redis, count);
    note_reply(self, reply);
    freeReplyObject(reply);
  }
  (void)pthread_mutex_unlock(&self->lock);
}

#else
lp_status lp_visits_open(const lp_serve_fleet *config, const char *model, lp_visits **out, lp_diag *diag) {
  (void)model, *out = NULL;
  return lp_error(diag, (lp_loc){.file = config->redis}, "this llmpart was built without hiredis");
}

void lp_visits_close(lp_visits *self) {
  (void)self;
}

int64_t lp_visits_find(lp_visits *self, const int32_t *prompt, size_t length, char address[LP_MOST_ADDRESS]) {
  (void)self, (void)prompt, (void)length, (void)address;
  return 0;
}

void lp_visits_note(lp_visits *self, const int32_t *prompt, size_t length, const char *address) {
  (void)self, (void)prompt, (void)length, (void)address;
}
#endif

/* ---- the choice of a worker -------------------------------------------------------------------------------------- */

/* The rows that a request in flight is worth: about the prompt that it still has to compute. */
enum { ROWS_OF_REQUEST = 64 };

static int64_t rows_of(const lp_worker_offer *offer) {
  return offer->rows > offer->visited ? offer->rows : offer->visited;
}

bool lp_worker_is_better(const lp_worker_offer *a, const lp_worker_offer *b) {
  const int64_t of_a = rows_of(a) - (int64_t)ROWS_OF_REQUEST * a->requests;
  const int64_t of_b = rows_of(b) - (int64_t)ROWS_OF_REQUEST * b->requests;
  return of_a != of_b ? of_a > of_b : a->requests < b->requests;
}

lp_choice_reason lp_worker_reason(const lp_worker_offer *offer, const bool *may, int count, int chosen) {
  const lp_worker_offer *of = &offer[chosen];
  if (of->rows > 0 && of->rows >= of->visited) return LP_CHOICE_PREFIX;
  if (of->visited > 0) return LP_CHOICE_VISITED;
  for (int i = 0; i < count; i++)
    if (may[i] && rows_of(&offer[i]) > 0) return LP_CHOICE_QUEUE;
  return LP_CHOICE_FEWEST;
}
