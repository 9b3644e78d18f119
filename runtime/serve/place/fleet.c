/* Each server keeps one key, SERVER:NAME, with its view of all workers as JSON, which ends a while after the server
 * does. The set SERVERS holds the names. */
#include "runtime/serve/place/fleet.h"

#ifdef LP_REDIS
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "runtime/link/address.h"
#include "runtime/serve/place/redis.h"
#include "runtime/serve/place/watcher.h"

#define SERVERS "llmpart:servers"
#define SERVER "llmpart:server:"
static const double tell_ms = 200, longest_pause_ms = 5000;
static const int live_ms = 2000; /* a server that is not heard of for this time is gone */
static const struct timeval patience = {.tv_sec = 1};

struct lp_fleet {
  const lp_serve_fleet *config;
  lp_fleet_workers workers;
  lp_fleet_view *sum; /* [workers.count] of the others */
  lp_watcher watcher;
  redisContext *redis; /* NULL: not connected */
  char *name, *host;
  int port;
  atomic_int servers;
};

/* ---- the connection ---------------------------------------------------------------------------------------------- */

static void disconnect(lp_fleet *self) {
  if (self->redis) redisFree(self->redis);
  self->redis = NULL;
  atomic_store(&self->servers, 0);
}

static bool connect_to(lp_fleet *self) {
  if (self->redis) return true;
  self->redis = lp_redis_connect(self->config, self->host, self->port, patience);
  if (!self->redis) disconnect(self);
  return self->redis != NULL;
}

/* ---- what the API tells ------------------------------------------------------------------------------------------ */

static void write_view(const lp_fleet *self, lp_buf *out) {
  lp_json_writer json = lp_json_writer_begin(out, (lp_json_style){.has_no_space = true});
  lp_json_put_flat_object(&json, NULL);
  for (size_t i = 0; i < self->workers.count; i++) {
    lp_fleet_view mine = self->workers.mine(self->workers.user, i);
    lp_json_put_flat_object(&json, self->workers.address[i]);
    lp_json_put_integer(&json, "requests", mine.requests);
    lp_json_put_bool(&json, "down", mine.down);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
}

static void add_view(lp_fleet *self, const char *text, size_t size) {
  lp_diag *quiet = lp_diag_create(); /* what is no view of a server is passed over */
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  if (lp_json_parse("a server's view", text, size, LP_JSON_REFUSE_NUL, &document, quiet) == LP_OK) {
    lp_json root = lp_json_root("a server's view", document);
    for (size_t i = 0; i < self->workers.count; i++) {
      lp_json worker = lp_json_member(&root, self->workers.address[i]);
      lp_json requests = lp_json_member(&worker, "requests"), down = lp_json_member(&worker, "down");
      int32_t count = 0;
      if (lp_json_i32(&requests, 0, 1 << 20, &count, quiet) == LP_OK) self->sum[i].requests += count;
      if (lp_json_is_true(&down)) self->sum[i].down = true;
    }
  }
  lp_diag_free(quiet);
}

/* ---- an exchange ------------------------------------------------------------------------------------------------- */

/* Sends this server's view and reads the names of all servers; NULL: the connection failed. */
static redisReply *tell(lp_fleet *self) {
  LP_OWNED(lp_buf_free) lp_buf view = {0};
  write_view(self, &view);
  (void)redisAppendCommand(self->redis, "SET " SERVER "%s %s PX %d", self->name, lp_buf_text(&view), live_ms);
  (void)redisAppendCommand(self->redis, "SADD " SERVERS " %s", self->name);
  (void)redisAppendCommand(self->redis, "SMEMBERS " SERVERS);
  return lp_redis_last_reply(self->redis, 3);
}

/* Adds the view of another server, or removes the name of one that is gone; false: the connection failed. */
static bool hear(lp_fleet *self, const char *name, int *servers) {
  redisReply *reply = redisCommand(self->redis, "GET " SERVER "%s", name);
  bool good = lp_redis_is_good(reply);
  if (good && reply->type == REDIS_REPLY_STRING) {
    add_view(self, reply->str, reply->len);
    ++*servers;
  } else if (good) {
    freeReplyObject(redisCommand(self->redis, "SREM " SERVERS " %s", name));
  }
  freeReplyObject(reply);
  return good;
}

static bool exchange(lp_fleet *self) {
  memset(self->sum, 0, self->workers.count * sizeof self->sum[0]);
  redisReply *names = connect_to(self) ? tell(self) : NULL;
  bool good = names && names->type == REDIS_REPLY_ARRAY;
  int servers = 1;
  for (size_t i = 0; good && i < names->elements; i++)
    if (names->element[i]->type == REDIS_REPLY_STRING && !lp_streq(names->element[i]->str, self->name))
      good = hear(self, names->element[i]->str, &servers);
  if (names) freeReplyObject(names);
  if (good)
    atomic_store(&self->servers, servers);
  else
    disconnect(self);
  for (size_t i = 0; i < self->workers.count; i++)
    self->workers.others(self->workers.user, i, good ? self->sum[i] : (lp_fleet_view){0});
  return good;
}

static void *meet(void *user) {
  lp_fleet *self = user;
  double pause_ms = 0;
  while (lp_watcher_wait(&self->watcher, pause_ms)) {
    bool good = exchange(self);
    pause_ms = good || pause_ms <= 0 ? tell_ms : pause_ms * 2;
    if (pause_ms > longest_pause_ms) pause_ms = longest_pause_ms;
  }
  return NULL;
}

/* ---- the fleet --------------------------------------------------------------------------------------------------- */

/* The configured name, or HOST-PROCESS. */
static char *own_name(const char *name) {
  char host[256] = "server", own[280];
  if (name) return lp_strdup(name);
  (void)gethostname(host, sizeof host - 1);
  (void)snprintf(own, sizeof own, "%s-%ld", host, (long)getpid());
  return lp_strdup(own);
}

lp_status lp_fleet_open(const lp_serve_fleet *config, const lp_fleet_workers *workers, lp_fleet **out, lp_diag *diag) {
  char *host;
  int port;
  LP_TRY(lp_address_split(config->redis, &host, &port, diag));
  lp_fleet *self = lp_alloc(sizeof *self);
  *self = (lp_fleet){.config = config, .workers = *workers, .host = host, .port = port};
  self->name = own_name(config->name);
  self->sum = lp_alloc((workers->count + 1) * sizeof self->sum[0]);
  lp_watcher_start(&self->watcher, meet, self);
  *out = self;
  return LP_OK;
}

void lp_fleet_close(lp_fleet *self) {
  if (!self) return;
  lp_watcher_end(&self->watcher);
  disconnect(self);
  free(self->sum);
  free(self->name);
  free(self->host);
  free(self);
}

int lp_fleet_servers(const lp_fleet *self) {
  return self ? atomic_load(&self->servers) : 0;
}

#else
lp_status lp_fleet_open(const lp_serve_fleet *config, const lp_fleet_workers *workers, lp_fleet **out, lp_diag *diag) {
  (void)workers, *out = NULL;
  return lp_error(diag, (lp_loc){.file = config->redis}, "this llmpart was built without hiredis");
}

void lp_fleet_close(lp_fleet *self) {
  (void)self;
}

int lp_fleet_servers(const lp_fleet *self) {
  (void)self;
  return 0;
}
#endif
