/* A worker on a thread of this process. */
#include "runtime/library/internal.h"

#include <pthread.h>

#include "base/clock.h"

struct llmpart_worker {
  const llmpart_bundle *bundle;
  lp_arena *text; /* strings of the options, and the address */
  lp_worker_options options;
  lp_place_addresses peers;
  lp_diag *diag;
  lp_status status;
  volatile int stop;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  const char *address; /* NULL: it does not listen yet */
  bool ended;
};

static const char *copy_text(lp_arena *arena, const char *text) {
  return text ? lp_arena_strdup(arena, text) : NULL;
}

/* The place to serve, and how to reach the others. */
static lp_status read_place(llmpart_worker *self, const llmpart_worker_options *from) {
  const lp_bundle *bundle = self->bundle->bundle;
  const bool more = lp_bundle_place_count(bundle) > LP_SIDE_COUNT;
  if (more != (from->place != NULL))
    return lp_error_as(LP_USAGE, self->diag, LP_LOC_FILE(self->bundle->path),
                       more ? "the bundle has more than two places: a worker wants the `place` that it serves"
                            : "the bundle has two sides: a worker has no `place`");
  for (lp_place i = LP_SIDE_DEVICE + 1; more && i < lp_bundle_place_count(bundle); i++)
    if (lp_streq(from->place, lp_bundle_place_name(bundle, i))) self->options.place = i;
  if (more && self->options.place == LP_SIDE_DEVICE)
    return lp_error_as(LP_USAGE, self->diag, LP_LOC_FILE(self->bundle->path), "no worker can serve the place '%.60s'",
                       from->place);
  if (!from->peers) return LP_OK;
  LP_TRY(lp_place_addresses_read(from->peers, bundle, self->text, false, &self->peers, self->diag));
  self->options.peers = self->peers.place;
  self->options.peer_count = self->peers.count;
  const char *key = from->peer_key_file ? from->peer_key_file : from->key_file;
  lp_link_security *security = &self->options.peer_security;
  *security = (lp_link_security){.key_file = copy_text(self->text, key),
                                 .ca_file = copy_text(self->text, from->peer_ca_file),
                                 .server_name = copy_text(self->text, from->peer_tls_name)};
  if (!from->peer_ca_file) return LP_OK;
  security->cert_file = copy_text(self->text, from->cert_file);
  security->cert_key_file = copy_text(self->text, from->cert_key_file);
  return LP_OK;
}

static lp_status read_options(llmpart_worker *self, const llmpart_worker_options *given) {
  llmpart_worker_options from = {0};
  LP_TRY(lp_library_options(given, &from, sizeof from, "llmpart_worker_options", self->diag));
  if (from.threads < 0 || from.most_sessions < 0)
    return lp_error_as(LP_USAGE, self->diag, LP_LOC_NONE, "threads and most_sessions are 0 or more");
  self->options.listen = from.listen ? copy_text(self->text, from.listen) : "127.0.0.1:0";
  self->options.threads = from.threads;
  self->options.most_sessions = from.most_sessions;
  self->options.security = (lp_link_security){.key_file = copy_text(self->text, from.key_file),
                                              .cert_file = copy_text(self->text, from.cert_file),
                                              .cert_key_file = copy_text(self->text, from.cert_key_file),
                                              .client_ca_file = copy_text(self->text, from.client_ca_file)};
  LP_TRY(read_place(self, &from));
  return lp_library_need_cloud(self->bundle, "a worker", self->diag);
}

static void note_listening(void *user, const char *host, int port) {
  llmpart_worker *self = user;
  pthread_mutex_lock(&self->mutex);
  if (lp_has_prefix(host, "unix:"))
    self->address = lp_arena_strdup(self->text, host);
  else
    self->address = lp_arena_format(self->text, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->mutex);
}

static void *serve(void *user) {
  llmpart_worker *self = user;
  self->status = lp_worker_serve(self->bundle->bundle, &self->options, &self->stop, self->diag);
  pthread_mutex_lock(&self->mutex);
  self->ended = true;
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->mutex);
  return NULL;
}

/* Starts the thread and waits until it listens or has failed. */
static lp_status start(llmpart_worker *self) {
  int problem = pthread_create(&self->thread, NULL, serve, self);
  if (problem) return lp_error(self->diag, LP_LOC_NONE, "cannot start a thread: %s", strerror(problem));
  pthread_mutex_lock(&self->mutex);
  while (!self->address && !self->ended)
    pthread_cond_wait(&self->changed, &self->mutex);
  bool listens = self->address != NULL;
  pthread_mutex_unlock(&self->mutex);
  if (listens) return LP_OK;
  pthread_join(self->thread, NULL);
  return self->status;
}

static bool release(llmpart_worker *self, lp_status status) {
  bool ok = lp_library_end(self->diag, status);
  pthread_cond_destroy(&self->changed);
  pthread_mutex_destroy(&self->mutex);
  lp_arena_free(self->text);
  free(self);
  return ok;
}

llmpart_worker *llmpart_worker_start(const llmpart_bundle *bundle, const llmpart_worker_options *options) {
  llmpart_worker *self = lp_alloc(sizeof *self);
  *self = (llmpart_worker){.bundle = bundle, .text = lp_arena_create(), .diag = lp_library_begin()};
  pthread_mutex_init(&self->mutex, NULL);
  pthread_cond_init(&self->changed, NULL);
  self->options = (lp_worker_options){.on_listening = note_listening, .user = self};
  lp_status status = read_options(self, options);
  if (status == LP_OK) status = start(self);
  if (status == LP_OK) return self;
  (void)release(self, status);
  return NULL;
}

const char *llmpart_worker_address(const llmpart_worker *worker) {
  return worker->address;
}

bool llmpart_worker_stop(llmpart_worker *worker) {
  if (!worker) return true;
  lp_flag_set(&worker->stop);
  pthread_join(worker->thread, NULL);
  return release(worker, worker->status);
}
