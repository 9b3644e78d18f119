/* The model of embeddings, and the passes over the texts of requests. */
#include "runtime/serve/place/embedder.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"

/* ASK_MS: between questions whether a waiting request is abandoned. A pass has at most MOST_TEXTS texts, and MOST_ROWS
 * tokens unless its first text has more. */
enum { ASK_MS = 100, MOST_TEXTS = 64, MOST_ROWS = 256 };

typedef struct queued_request queued_request;

struct lp_embedder {
  const lp_serve_bundle *config;
  lp_sides sides;
  lp_session *session; /* of the thread that runs a pass */
  int64_t width;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t turned;
  bool runs; /* a thread runs a pass */
  LP_VEC(queued_request *) queue;
  size_t next; /* the request with which the next pass begins */
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
  lp_vec_free(&self->queue);
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

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* A request in the queue, on the stack of its thread, which runs passes for all while none runs. */
struct queued_request {
  const lp_embedder_request *asked;
  float *out;
  size_t taken, done; /* texts that passes have taken, and run */
  double begun_ms;    /* when a pass took the first one; 0: none has */
  char *error;        /* NULL: none */
};

typedef struct {
  queued_request *of[MOST_TEXTS];
  lp_embed_text text[MOST_TEXTS];
  size_t count;
  int64_t rows, passes; /* tokens; passes that it took */
} embedder_pass;

/* Adds the request's next text, if there is one and the pass has room; any first text fits. */
static bool add_text(const lp_embedder *self, queued_request *request, embedder_pass *pass) {
  if (request->taken >= request->asked->count || request->error || pass->count >= MOST_TEXTS) return false;
  const lp_tokens *text = &request->asked->text[request->taken];
  if (pass->count > 0 && pass->rows + (int64_t)text->count > MOST_ROWS) return false;
  if (request->begun_ms == 0) request->begun_ms = lp_now_ms();
  pass->of[pass->count] = request;
  pass->text[pass->count++] = (lp_embed_text){
      .token = text->data, .count = text->count, .out = request->out + request->taken * (size_t)self->width};
  pass->rows += (int64_t)text->count;
  request->taken++;
  return true;
}

/* Takes a text of each request in turn, until there is no room. The next pass begins with the request after the last.
 */
static void choose(lp_embedder *self, embedder_pass *pass) {
  size_t count = self->queue.count, first = self->next;
  bool any = true;
  pass->count = 0;
  pass->rows = pass->passes = 0;
  while (any) {
    any = false;
    for (size_t i = 0; i < count; i++)
      if (add_text(self, self->queue.data[(first + i) % count], pass)) {
        any = true;
        self->next = (first + i + 1) % count;
      }
  }
}

/* A text that fails may fail the others of its pass, which then run by themselves. */
static void run_texts(lp_embedder *self, embedder_pass *pass, char *error[MOST_TEXTS]) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  bool together = lp_session_embed_all(self->session, pass->text, pass->count, &pass->passes, diag) == LP_OK;
  for (size_t i = 0; i < pass->count; i++) {
    lp_diag_clear(diag);
    error[i] = NULL;
    if (together || lp_session_embed_all(self->session, &pass->text[i], 1, &pass->passes, diag) == LP_OK) continue;
    const lp_diag_entry *why = lp_diag_get(diag, 0);
    error[i] = lp_strdup(why ? why->text : "the pass failed");
  }
}

/* With the lock held, which it releases meanwhile. */
static void run_pass(lp_embedder *self) {
  embedder_pass pass;
  char *error[MOST_TEXTS];
  choose(self, &pass);
  self->runs = true;
  (void)pthread_mutex_unlock(&self->lock);
  run_texts(self, &pass, error);
  (void)pthread_mutex_lock(&self->lock);
  self->runs = false;
  self->load.passes += pass.passes;
  for (size_t i = 0; i < pass.count; i++) {
    pass.of[i]->done++;
    if (error[i] && pass.of[i]->error)
      free(error[i]);
    else if (error[i])
      pass.of[i]->error = error[i];
  }
  (void)pthread_cond_broadcast(&self->turned);
}

/* Tells why a request is given up; NULL: it is not. */
static const char *reason_to_end(const lp_embedder_request *request, double until_ms) {
  struct pollfd client = {.fd = request->client, .events = POLLRDHUP};
  if (lp_flag_get(request->stop)) return "the server ends";
  if (lp_now_ms() >= until_ms) return "the answer has taken too long";
  bool gone = poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  return gone ? "the client has disconnected" : NULL;
}

static void await_pass(lp_embedder *self) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += ASK_MS * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  (void)pthread_cond_timedwait(&self->turned, &self->lock, &until);
}

static void leave(lp_embedder *self, const queued_request *request) {
  size_t at = 0;
  while (self->queue.data[at] != request)
    at++;
  memmove(&self->queue.data[at], &self->queue.data[at + 1], (--self->queue.count - at) * sizeof *self->queue.data);
  if (self->next > at) self->next--;
}

/* Waits until all texts have run, or there is a reason to end. A pass has pointers to the request, so the request stays
 * until the pass has ended. */
static lp_status run_request(lp_embedder *self, const lp_embedder_request *asked, float *out, double *queue_ms,
                             lp_diag *diag) {
  queued_request request = {.asked = asked, .out = out};
  double submitted_ms = lp_now_ms(), until_ms = submitted_ms + self->config->total_ms;
  const char *why = NULL;
  (void)pthread_mutex_lock(&self->lock);
  lp_vec_push(&self->queue, &request);
  while (!why && !request.error && request.done < asked->count) {
    why = reason_to_end(asked, until_ms);
    if (!why && self->runs)
      await_pass(self);
    else if (!why)
      run_pass(self);
  }
  while (request.done < request.taken)
    await_pass(self);
  leave(self, &request);
  (void)pthread_mutex_unlock(&self->lock);
  *queue_ms = (request.begun_ms > 0 ? request.begun_ms : lp_now_ms()) - submitted_ms;
  lp_status status = LP_OK;
  if (why || request.error) status = lp_error(diag, LP_LOC_NONE, "%s", request.error ? request.error : why);
  free(request.error);
  return status;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

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
    status = run_request(self, request, out, queue_ms, diag);
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
