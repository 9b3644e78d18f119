/* The edge's site: a bundle in this process. It answers one request at a time; a limited number may wait. */
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "runtime/serve/site.h"
#include "runtime/serve/supervise.h"

typedef struct {
  lp_site_server site;
  lp_sides sides;
  lp_supervisor supervisor; /* of the worker that `sides` started */
  int32_t threads;
  int64_t queue;
  double total_ms; /* the longest time of an answer, waiting included */
  pthread_mutex_t turn;
  atomic_int here;
} bundle_site;

typedef struct {
  const lp_completion *request;
  const lp_tokenizer *tokenizer;
  lp_text_stream text;
  lp_piece_sink *sink;
  void *user;
  const volatile int *stop;
  volatile int enough; /* the client has disconnected, or the server ends */
  double until_ms;     /* the answer's deadline */
  bool late;           /* it has passed before the answer was complete */
} listener;

static void hand_on(void *user, int64_t index, const lp_generated *token) {
  listener *to = user;
  lp_buf piece = {0};
  if (index != 0) return;
  lp_text_stream_put(&to->text, to->tokenizer, token->token, &piece);
  if (piece.size > 0 && !to->sink(to->user, piece.data)) to->enough = 1;
  if (lp_flag_get(to->stop)) lp_flag_set(&to->enough);
  lp_buf_free(&piece);
}

/* Tells whether the client has disconnected, the server ends, or the deadline has passed. It is called before each part
 * of a prompt and each token. */
static bool is_abandoned(void *user) {
  listener *to = user;
  struct pollfd client = {.fd = to->request->client, .events = POLLRDHUP};
  to->late |= lp_now_ms() >= to->until_ms;
  return lp_flag_get(to->stop) || to->late ||
         (poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

static lp_status encode(const bundle_site *self, const lp_completion *request, lp_tokens *out, lp_diag *diag) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(self->sides.bundle);
  if (!request->chat) return lp_tokenizer_encode(tokenizer, request->prompt, strlen(request->prompt), true, out, diag);
  if (!lp_tokenizer_has_chat_template(tokenizer))
    return lp_error(diag, LP_LOC_NONE, "the model has no chat template: use /v1/completions");
  return lp_tokenizer_encode_chat(tokenizer, request->messages, request->count, out, diag);
}

/* The request's own values count. Where it has no temperature, those that the model's files state apply, and without
 * these the API's default temperature of 1. The model's top_k and top_p belong to its temperature, as in `llmpart
 * run`. */
static lp_sampling sampling_of(const lp_bundle *bundle, const lp_completion *request) {
  lp_sampling sampling = lp_bundle_sampling(bundle);
  if (!isnan(request->sampling.temperature))
    sampling = (lp_sampling){.temperature = request->sampling.temperature, .top_p = 1};
  else if (sampling.temperature == 0)
    sampling = (lp_sampling){.temperature = 1, .top_p = 1};
  if (!isnan(request->sampling.top_p)) sampling.top_p = request->sampling.top_p;
  if (request->sampling.top_k >= 0) sampling.top_k = (int32_t)request->sampling.top_k;
  sampling.seed = request->sampling.seed;
  return sampling;
}

static lp_status generate(const bundle_site *self, const lp_completion *request, const lp_tokens *ids, int64_t most,
                          listener *to, lp_usage *usage, lp_diag *diag) {
  lp_generate_options options = {.cloud = self->sides.cloud,
                                 .sampling = sampling_of(self->sides.bundle, request),
                                 .max_tokens = most,
                                 .threads = self->threads,
                                 .stop = &to->enough,
                                 .is_abandoned = is_abandoned,
                                 .abandon_user = to};
  lp_session *session = NULL;
  lp_generation made = {0};
  LP_TRY(lp_session_open(self->sides.bundle, &options, &session, diag));
  lp_status status = lp_session_generate(session, ids->data, 1, (int64_t)ids->count, hand_on, to, &made, diag);
  size_t count = made.tokens.count;
  bool ended = count > 0 && lp_bundle_is_stop(self->sides.bundle, made.tokens.data[count - 1].token);
  *usage = (lp_usage){(int64_t)ids->count, (int64_t)count, (int64_t)count >= most && !ended};
  lp_generation_free(&made);
  lp_session_close(session);
  return status;
}

/* Waits for the requests before this one. False: the deadline has passed. */
static bool await_turn(bundle_site *self, const listener *to) {
  double left_ms = to->until_ms - lp_now_ms();
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  int64_t ns = until.tv_nsec + (int64_t)(left_ms > 0 ? left_ms * 1e6 : 0);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  return pthread_mutex_timedlock(&self->turn, &until) == 0;
}

static lp_status take_turn(bundle_site *self, const lp_completion *request, const lp_tokens *ids, int64_t most,
                           listener *to, lp_usage *usage, lp_diag *diag) {
  lp_status status = LP_OK;
  to->late = !await_turn(self, to);
  if (!to->late) {
    if (!is_abandoned(to)) status = generate(self, request, ids, most, to, usage, diag);
    (void)pthread_mutex_unlock(&self->turn);
  }
  if (status != LP_OK || !to->late) return status;
  return lp_error(diag, LP_LOC_NONE, "the answer has taken more than %g s", self->total_ms / 1000);
}

static lp_status answer(bundle_site *self, const lp_completion *request, const volatile int *stop, lp_piece_sink *sink,
                        void *user, lp_usage *usage, lp_diag *diag) {
  lp_tokens ids = {0};
  int64_t context = lp_bundle_context_length(self->sides.bundle), most = request->max_tokens;
  listener to = {.request = request,
                 .tokenizer = lp_bundle_tokenizer(self->sides.bundle),
                 .sink = sink,
                 .user = user,
                 .stop = stop,
                 .until_ms = lp_now_ms() + self->total_ms};
  lp_status status = encode(self, request, &ids, diag) == LP_OK ? LP_OK : LP_USAGE;
  if (status == LP_OK && ids.count == 0) status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "the prompt has no tokens");
  if (status == LP_OK && context > 0 && (int64_t)ids.count >= context)
    status = lp_error(diag, LP_LOC_NONE, "the prompt has %zu tokens, the model's context %" PRId64, ids.count, context);
  if (context > 0 && most > context - (int64_t)ids.count) most = context - (int64_t)ids.count;
  if (status == LP_OK) status = take_turn(self, request, &ids, most, &to, usage, diag);
  lp_text_stream_free(&to.text);
  lp_vec_free(&ids);
  return status;
}

static lp_status complete(lp_site_server *site, const lp_completion *request, const volatile int *stop,
                          lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag) {
  bundle_site *self = (bundle_site *)site;
  int before = atomic_fetch_add(&self->here, 1);
  lp_status status = LP_FAILED;
  if (before > self->queue)
    lp_report_error(diag, LP_LOC_NONE, "the edge is saturated: it has %d requests", before);
  else if (!lp_supervisor_is_up(&self->supervisor))
    lp_report_error(diag, LP_LOC_NONE, "the worker does not answer; another one is started if it stays silent");
  else
    status = answer(self, request, stop, sink, user, usage, diag);
  (void)atomic_fetch_sub(&self->here, 1);
  return status;
}

static void close_bundle(lp_site_server *site) {
  bundle_site *self = (bundle_site *)site;
  lp_supervisor_end(&self->supervisor);
  lp_sides_close(&self->sides);
  (void)pthread_mutex_destroy(&self->turn);
  free(self);
}

static lp_status open_bundle(bundle_site *self, const char *path, const char *trust, lp_diag *diag) {
  LP_TRY(
      lp_sides_open(&(lp_sides_options){.bundle = path, .trust = trust, .threads = self->threads}, &self->sides, diag));
  if (lp_bundle_reads_source(self->sides.bundle))
    return lp_error(diag, LP_LOC_FILE(path), "the model has an encoder, which cannot be served; use 'llmpart run'");
  if (!lp_bundle_tokenizer(self->sides.bundle))
    return lp_error(diag, LP_LOC_FILE(path), "the bundle has no tokenizer; compile it with --tokenizer=FILE");
  if (self->sides.worker.pid > 0)
    lp_supervisor_start(&self->supervisor, &self->sides.worker, &(lp_worker_request){path, trust, self->threads});
  return LP_OK;
}

static bool is_up(const lp_site_server *site) {
  return lp_supervisor_is_up(&((const bundle_site *)site)->supervisor);
}

lp_status lp_site_bundle(const lp_serve_config *config, lp_site_server **out, lp_diag *diag) {
  bundle_site *self = lp_alloc(sizeof *self);
  *self = (bundle_site){.site = {.complete = complete, .is_up = is_up, .close = close_bundle},
                        .threads = (int32_t)config->threads,
                        .queue = config->queue,
                        .total_ms = config->edge_total_ms};
  (void)pthread_mutex_init(&self->turn, NULL);
  lp_status status = open_bundle(self, config->bundle, config->trust, diag);
  if (status == LP_OK)
    *out = &self->site;
  else
    close_bundle(&self->site);
  return status;
}
