/* The model of embeddings, and the turns of the requests that use it. */
#include "runtime/serve/place/embedder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum { ASK_MS = 100 }; /* between questions whether a waiting request is abandoned */

struct lp_embedder {
  const lp_serve_bundle *config;
  lp_sides sides;
  lp_session *session; /* of the request whose turn it is */
  int64_t width;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t turned;
  uint64_t drawn, turn;  /* numbers of turns: the next one to draw, and the one that runs */
  LP_VEC(uint64_t) left; /* numbers whose requests did not wait for their turn */
  lp_embedder_load load;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static lp_status open_bundle(lp_embedder *self, lp_diag *diag) {
  const lp_serve_bundle *config = self->config;
  const lp_sides_options options = {
      .bundle = config->bundle, .in_process = true, .trust = config->trust, .threads = (int32_t)config->threads};
  const lp_generate_options session = {.threads = (int32_t)config->threads};
  LP_TRY(lp_sides_open(&options, &self->sides, diag));
  LP_TRY(lp_bundle_embedding_width(self->sides.bundle, &self->width, diag));
  return lp_session_open(self->sides.bundle, &session, &self->session, diag);
}

lp_status lp_embedder_open(const lp_serve_bundle *config, lp_embedder **out, lp_diag *diag) {
  lp_embedder *self = lp_alloc(sizeof *self);
  *self = (lp_embedder){.config = config};
  (void)pthread_mutex_init(&self->lock, NULL);
  (void)pthread_cond_init(&self->turned, NULL);
  lp_status status = open_bundle(self, diag);
  if (status == LP_OK)
    *out = self;
  else
    lp_embedder_close(self);
  return status;
}

void lp_embedder_close(lp_embedder *self) {
  if (!self) return;
  lp_session_close(self->session);
  lp_sides_close(&self->sides);
  lp_vec_free(&self->left);
  (void)pthread_cond_destroy(&self->turned);
  (void)pthread_mutex_destroy(&self->lock);
  free(self);
}

const char *lp_embedder_model(const lp_embedder *self) {
  return self->config->model ? self->config->model : lp_bundle_name(self->sides.bundle);
}

int64_t lp_embedder_width(const lp_embedder *self) {
  return self->width;
}

lp_embedder_load lp_embedder_now(lp_embedder *self) {
  (void)pthread_mutex_lock(&self->lock);
  lp_embedder_load load = self->load;
  (void)pthread_mutex_unlock(&self->lock);
  return load;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

lp_status lp_embedder_check(const lp_embedder *self, const lp_tokens *tokens, lp_diag *diag) {
  int32_t vocab = lp_bundle_vocab(self->sides.bundle);
  int64_t context = lp_bundle_context_length(self->sides.bundle);
  if (tokens->count == 0) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'input' has a text without tokens");
  if (context > 0 && (int64_t)tokens->count > context)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "'input' has a text of %zu tokens; this model's maximum context length is %" PRId64,
                       tokens->count, context);
  for (size_t i = 0; i < tokens->count; i++)
    if (tokens->data[i] >= vocab)
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'input' has token %" PRId32 ", and the vocabulary %" PRId32,
                         tokens->data[i], vocab);
  return LP_OK;
}

lp_status lp_embedder_encode(const lp_embedder *self, const char *text, lp_tokens *out, lp_diag *diag) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(self->sides.bundle);
  if (!tokenizer)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "'input' is text, and the bundle has no tokenizer: send token numbers, or compile it with "
                       "--tokenizer=FILE");
  if (lp_tokenizer_encode(tokenizer, text, strlen(text), true, out, diag) != LP_OK) return LP_USAGE;
  return lp_embedder_check(self, out, diag);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* Tells why a request is given up; NULL: it is not. */
static const char *reason_to_end(const lp_embedder_request *request, double until_ms) {
  struct pollfd client = {.fd = request->client, .events = POLLRDHUP};
  if (lp_flag_get(request->stop)) return "the server ends";
  if (lp_now_ms() >= until_ms) return "the answer has taken too long";
  bool gone = poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  return gone ? "the client has disconnected" : NULL;
}

/* With the lock held: lets the next request run that still waits. */
static void pass_turn(lp_embedder *self) {
  bool skips = true;
  self->turn++;
  while (skips) {
    skips = false;
    for (size_t i = 0; i < self->left.count && !skips; i++)
      if (self->left.data[i] == self->turn) {
        self->left.data[i] = self->left.data[--self->left.count];
        self->turn++;
        skips = true;
      }
  }
  (void)pthread_cond_broadcast(&self->turned);
}

/* Waits until no request that came before runs or waits. */
static const char *await_turn(lp_embedder *self, const lp_embedder_request *request, double until_ms) {
  const char *why = NULL;
  (void)pthread_mutex_lock(&self->lock);
  uint64_t mine = self->drawn++;
  while (self->turn != mine && !why) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ASK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000L;
    }
    (void)pthread_cond_timedwait(&self->turned, &self->lock, &until);
    why = self->turn != mine ? reason_to_end(request, until_ms) : NULL;
  }
  if (why) lp_vec_push(&self->left, mine);
  (void)pthread_mutex_unlock(&self->lock);
  return why;
}

static void end_turn(lp_embedder *self) {
  (void)pthread_mutex_lock(&self->lock);
  pass_turn(self);
  (void)pthread_mutex_unlock(&self->lock);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Takes turns with other requests, one for each text. */
static lp_status run_texts(lp_embedder *self, const lp_embedder_request *request, float *out, double *queue_ms,
                           lp_diag *diag) {
  double begun_ms = lp_now_ms(), until_ms = begun_ms + self->config->total_ms;
  for (size_t i = 0; i < request->count; i++) {
    const char *why = reason_to_end(request, until_ms);
    if (!why) why = await_turn(self, request, until_ms);
    if (why) return lp_error(diag, LP_LOC_NONE, "%s", why);
    if (i == 0) *queue_ms = lp_now_ms() - begun_ms;
    lp_status status = lp_session_embed(self->session, request->text[i].data, request->text[i].count,
                                        out + i * (size_t)self->width, diag);
    end_turn(self);
    LP_TRY(status);
  }
  return LP_OK;
}

lp_status lp_embedder_run(lp_embedder *self, const lp_embedder_request *request, float *out, double *queue_ms,
                          lp_diag *diag) {
  int64_t most = self->config->parallel + self->config->queue, tokens = 0;
  for (size_t i = 0; i < request->count; i++)
    tokens += (int64_t)request->text[i].count;
  (void)pthread_mutex_lock(&self->lock);
  bool saturated = self->load.requests >= most;
  self->load.requests++;
  (void)pthread_mutex_unlock(&self->lock);
  lp_status status = LP_FAILED;
  if (saturated)
    lp_report_error(diag, LP_LOC_NONE, "the embeddings are saturated: they have %" PRId64 " requests", most);
  else
    status = run_texts(self, request, out, queue_ms, diag);
  (void)pthread_mutex_lock(&self->lock);
  self->load.requests--;
  if (status == LP_OK) {
    self->load.answered++;
    self->load.texts += (int64_t)request->count;
    self->load.tokens += tokens;
  } else {
    self->load.failed++;
  }
  (void)pthread_mutex_unlock(&self->lock);
  return status;
}
