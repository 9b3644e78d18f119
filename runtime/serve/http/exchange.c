/* Makes answers, whole or streamed, and replies with them. */
#include "runtime/serve/http/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "runtime/link/address.h"
#include "runtime/serve/answer.h"
#include "runtime/serve/embeddings.h"
#include "runtime/serve/prompts.h"

/* ---- events of streams ------------------------------------------------------------------------------------------- */

enum { POLL_MS = 50, READER_MS = 60000, END_MS = 3000 };

/* Waits until the pipe takes more; false: it has taken nothing for too long. */
static bool await_reader(int pipe, const volatile int *stop, double since_ms) {
  struct pollfd writable = {.fd = pipe, .events = POLLOUT};
  if (lp_now_ms() - since_ms > (lp_flag_get(stop) ? END_MS : READER_MS)) return false;
  return poll(&writable, 1, POLL_MS) >= 0 || errno == EINTR;
}

static bool write_all(int pipe, const volatile int *stop, const char *text, size_t size) {
  double since_ms = lp_now_ms();
  for (size_t at = 0; at < size;) {
    ssize_t wrote = write(pipe, text + at, size - at);
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR) && await_reader(pipe, stop, since_ms)) continue;
    if (wrote <= 0) return false;
    at += (size_t)wrote;
  }
  return true;
}

/* Writes an event with this JSON, which it frees, to a non-blocking pipe. Waits while the pipe is full: up to a minute,
 * and up to 3 s once `*stop` is set, which another thread or a signal handler does. False: the client has left, or has
 * read nothing for so long. SIGPIPE must be ignored. */
static bool write_event(int pipe, const volatile int *stop, char *json) {
  LP_OWNED(lp_buf_free) lp_buf event = {0};
  lp_buf_printf(&event, "data: %s\n\n", json);
  free(json);
  return write_all(pipe, stop, event.data, event.size);
}

lp_exchange *lp_exchange_create(lp_http_server *of) {
  lp_exchange *a = lp_alloc(sizeof *a);
  *a = (lp_exchange){.server = of, .created = (int64_t)time(NULL), .pipe = -1};
  (void)pthread_mutex_lock(&of->lock);
  a->with = of->settings;
  a->with->users++;
  (void)snprintf(a->id, sizeof a->id, "%" PRIu64, of->count++);
  of->requests++;
  (void)pthread_mutex_unlock(&of->lock);
  return a;
}

static void free_limits(const lp_exchange *a) {
  const lp_usage *usage = &a->course.usage;
  int64_t prompt = usage->prompt_tokens > 0 ? usage->prompt_tokens : 0;
  if (a->limited > 0) lp_limits_end(a->server->limits, a->key, a->limited, lp_now_ms(), prompt + usage->tokens);
}

void lp_exchange_free(lp_exchange *a) {
  free_limits(a);
  lp_completion_free(&a->request);
  lp_translation_free(&a->translation);
  lp_json_free(a->asked);
  lp_buf_free(&a->body);
  lp_whole_drop(&a->whole, 0, LP_MOST_ANSWERS);
  free(a->error);
  (void)pthread_mutex_lock(&a->server->lock);
  a->with->users--;
  (void)pthread_mutex_unlock(&a->server->lock);
  free(a);
}

static lp_told tell(const lp_exchange *a) {
  lp_told now = {.route = lp_route_name(a->course.route), .of_place = a->course.usage.note};
  (void)snprintf(now.note, sizeof now.note, "%s", a->request.note);
  if (a->course.decision != 0) (void)snprintf(now.decision, sizeof now.decision, "%" PRId64, a->course.decision);
  return now;
}

/* The headers of a stream are told here, since the course of the answer changes from here on. */
static void set_begun(lp_exchange *a) {
  a->told = tell(a);
  (void)pthread_mutex_lock(&a->server->lock);
  a->begun = true;
  (void)pthread_cond_broadcast(&a->server->changed);
  (void)pthread_mutex_unlock(&a->server->lock);
}

static lp_answer_head head_of(const lp_exchange *a) {
  return (lp_answer_head){&a->request, a->id, a->course.model, a->created};
}

/* ---- other dialects ---------------------------------------------------------------------------------------------- */

static lp_telling *tell_of(lp_exchange *a) {
  lp_telling *t = &a->telling;
  if (!t->id[0]) {
    lp_span_draw_id(t->id);
    lp_span_draw_id(t->id + LP_SPAN_ID);
  }
  t->head = head_of(a);
  t->asked = a->asked;
  t->whole = &a->whole.choice[0];
  t->usage = &a->course.usage;
  t->total_ms = lp_now_ms() - a->begun_ms;
  return t;
}

static bool write_events(const lp_exchange *a, lp_buf *events) {
  const bool wrote = events->size == 0 || write_all(a->pipe, &a->server->stop, events->data, events->size);
  lp_buf_free(events);
  return wrote;
}

static bool tell_piece(lp_exchange *a, const lp_piece *piece) {
  lp_buf events = {0};
  a->dialect->piece(tell_of(a), piece->text, &events);
  return write_events(a, &events);
}

static void tell_end(lp_exchange *a) {
  lp_buf events = {0};
  if (a->status == LP_OK)
    a->dialect->end(tell_of(a), &events);
  else if (a->begun)
    a->dialect->fail(tell_of(a), a->error, &events);
  (void)write_events(a, &events);
}

/* Keeps the conversation with this answer for a request that goes on with it. */
static void keep_history(lp_exchange *a) {
  const lp_whole_choice *whole = &a->whole.choice[0];
  lp_buf *history = &a->translation.history;
  char id[sizeof a->telling.id + 8];
  if (!a->translation.keeps || a->status != LP_OK) return;
  lp_buf_puts(history, history->size > 0 ? "," : "");
  lp_answer_put_message(whole, history);
  (void)snprintf(id, sizeof id, "resp_%s", tell_of(a)->id);
  lp_kept_put(a->server->kept, a->client, id, lp_buf_text(history), history->size);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static bool take_piece(void *user, const lp_piece *piece) {
  lp_exchange *a = user;
  if (a->telling.first_ms == 0) a->telling.first_ms = lp_now_ms() - a->begun_ms;
  if (a->pipe < 0 || a->dialect) lp_whole_put(&a->whole, piece);
  if (a->pipe < 0) return true;
  if (!a->begun) set_begun(a);
  if (a->dialect) return tell_piece(a, piece);
  bool *has_role = &a->has_role[piece->choice];
  size_t *characters = &a->whole.choice[piece->choice].characters;
  const lp_answer_head head = head_of(a);
  bool wrote = write_event(a->pipe, &a->server->stop, lp_answer_chunk(&head, piece, !*has_role, *characters));
  *has_role = true;
  for (size_t i = 0; i < piece->logprob_count; i++)
    *characters += piece->logprobs[i].characters;
  return wrote;
}

static void forget_pieces(void *user, int32_t first, int32_t count) {
  lp_exchange *a = user;
  lp_whole_drop(&a->whole, first, count);
}

static void end_choice(void *user, int32_t choice, lp_finish finish) {
  lp_exchange *a = user;
  a->whole.choice[choice].finish = finish;
}

static const char *name_of_key(const lp_exchange *a) {
  return a->key ? a->key->name : NULL;
}

/* Adds the span of the whole request. */
static void trace(const lp_exchange *a, const char *path, const char *route, double begun_ms) {
  const lp_completion *request = &a->request;
  const lp_usage *usage = &a->course.usage;
  const lp_span_attribute attributes[] = {
      {.key = "http.request.method", .text = "POST"},
      {.key = "http.route", .text = path},
      {.key = "llmpart.request_id", .text = a->id},
      {.key = "llmpart.route", .text = route},
      {.key = "gen_ai.request.model", .text = request->model},
      {.key = "gen_ai.usage.input_tokens", .number = usage->prompt_tokens > 0 ? usage->prompt_tokens : 0},
      {.key = "gen_ai.usage.output_tokens", .number = usage->tokens}};
  lp_spans_add(lp_dispatcher_spans(a->with->dispatcher), &(lp_span_record){.trace = request->trace,
                                                                           .id = request->span,
                                                                           .parent = request->caller,
                                                                           .name = attributes[1].text,
                                                                           .kind = LP_SPAN_SERVER,
                                                                           .begin_ms = begun_ms,
                                                                           .end_ms = lp_now_ms(),
                                                                           .error = a->error,
                                                                           .attribute = attributes,
                                                                           .count = LP_COUNT(attributes)});
}

static void make_answer(lp_exchange *a) {
  double begun_ms = a->begun_ms = lp_now_ms();
  lp_diag *diag = lp_diag_create();
  const lp_prompts_taker taker = {take_piece, a->pipe < 0 ? forget_pieces : NULL, end_choice, a};
  a->status = lp_prompts_answer(a->with->dispatcher, &a->request, &a->server->stop, &taker, &a->course, diag);
  const lp_diag_entry *why = lp_diag_get(diag, 0);
  if (a->status == LP_OK && lp_flag_get(&a->server->stop)) {
    a->status = LP_FAILED;
    a->error = lp_strdup("the server ends");
  } else if (a->status != LP_OK) {
    a->error = lp_strdup(why ? why->text : "no answer");
  }
  lp_diag_free(diag);
  keep_history(a);
  trace(a, a->request.chat ? "/v1/chat/completions" : "/v1/completions", lp_route_name(a->course.route), begun_ms);
  lp_log_request(a->with->log, a->id, name_of_key(a), &a->request, &a->course, a->error);
}

static void write_ends(lp_exchange *a) {
  const volatile int *stop = &a->server->stop;
  const lp_answer_head head = head_of(a);
  bool wrote = true;
  for (int32_t i = 0; wrote && i < lp_completion_answers(&a->request); i++)
    wrote = write_event(a->pipe, stop, lp_answer_chunk_end(&head, i, a->whole.choice[i].finish));
  if (wrote && a->request.stream_usage)
    wrote = write_event(a->pipe, stop, lp_answer_chunk_usage(&head, &a->course.usage));
  if (wrote) (void)write_event(a->pipe, stop, lp_strdup("[DONE]"));
}

/* Ends a stream. A stream that fails in its middle ends with an error event and without [DONE]. */
static void write_end(lp_exchange *a) {
  if (a->dialect)
    tell_end(a);
  else if (a->status == LP_OK)
    write_ends(a);
  else if (a->begun)
    (void)write_event(a->pipe, &a->server->stop, lp_answer_error("server_error", a->error));
}

/* The thread of an answer. It owns the answer once that has begun; until then the connection's thread waits for it. */
static void *stream_answer(void *user) {
  lp_exchange *a = user;
  lp_http_server *of = a->server;
  make_answer(a);
  if (a->status == LP_OK && !a->begun) set_begun(a); /* it has no text at all */
  write_end(a);
  (void)close(a->pipe);
  bool is_mine = a->begun;
  (void)pthread_mutex_lock(&of->lock);
  while (is_mine && !a->seen)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  a->ended = true;
  (void)pthread_cond_broadcast(&of->changed);
  (void)pthread_mutex_unlock(&of->lock);
  if (is_mine) lp_exchange_free(a);
  (void)pthread_mutex_lock(&of->lock); /* the server may end from here on */
  of->answers--;
  (void)pthread_cond_broadcast(&of->changed);
  (void)pthread_mutex_unlock(&of->lock);
  return NULL;
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

static void add_headers(const lp_peer *to, struct MHD_Response *response, const lp_told *of) {
  const char *const header[][2] = {{"X-Llmpart-Route", of->route},
                                   {"X-Llmpart-Decision", of->decision},
                                   {"X-Llmpart-Note", of->note},
                                   {"X-Llmpart-Note", of->of_place ? of->of_place : ""}};
  for (size_t i = 0; response && i < LP_COUNT(header); i++)
    if (header[i][1][0]) (void)to->http->add_response_header(response, header[i][0], header[i][1]);
}

static enum MHD_Result reply_failure(const lp_peer *to, const lp_exchange *a) {
  if (a->course.too_long && !a->dialect)
    return lp_peer_reply(to, MHD_HTTP_BAD_REQUEST,
                         lp_answer_too_long(a->request.chat ? "messages" : "prompt", a->error));
  if (a->course.no_model) return lp_peer_reply_no_model(to, a->error);
  return lp_peer_reply_error(to, a->status == LP_USAGE ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE, a->error);
}

static enum MHD_Result answer_whole(const lp_peer *to, lp_exchange *a) {
  make_answer(a);
  if (a->status != LP_OK) return reply_failure(to, a);
  const lp_answer_head head = head_of(a);
  lp_buf text = {0};
  if (a->dialect) a->dialect->whole(tell_of(a), &text);
  char *json = a->dialect ? text.data : lp_answer_whole(&head, &a->whole, &a->course.usage);
  struct MHD_Response *response = to->http->create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_FREE);
  const lp_told now = tell(a);
  add_headers(to, response, &now);
  return lp_peer_queue(to, MHD_HTTP_OK, "application/json", response);
}

/* The same for embeddings, which are no course of the dispatcher: only tokens and times are known. */
static char *make_embeddings(lp_exchange *a, char **model) {
  const lp_embeddings_request request = {lp_buf_text(&a->body), a->body.size, a->request.client, &a->server->stop};
  lp_embeddings_answer answer = {0};
  double begun_ms = lp_now_ms();
  lp_diag *diag = lp_diag_create();
  a->status = lp_embeddings_answer_to(lp_dispatcher_embedder(a->with->dispatcher), &request, &answer, diag);
  if (a->status != LP_OK) a->error = lp_strdup(lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
  a->request.model = answer.model ? answer.model : "";
  a->course.no_model = answer.no_model;
  a->course.usage.prompt_tokens = answer.tokens;
  for (lp_time time = 0; time < LP_TIME_COUNT; time++)
    a->course.seconds[time] = NAN;
  a->course.seconds[LP_TIME_QUEUE] = answer.queue_ms / 1000;
  a->course.seconds[LP_TIME_TOTAL] = (lp_now_ms() - begun_ms) / 1000;
  trace(a, "/v1/embeddings", "embeddings", begun_ms);
  lp_log_request(a->with->log, a->id, name_of_key(a), &a->request, &a->course, a->error);
  *model = answer.model;
  return answer.json;
}

enum MHD_Result lp_exchange_embed(const lp_peer *to, lp_exchange *a) {
  char *model = NULL, *json = make_embeddings(a, &model);
  enum MHD_Result result = a->status == LP_OK ? lp_peer_reply(to, MHD_HTTP_OK, json) : reply_failure(to, a);
  a->request.model = NULL;
  free(model);
  return result;
}

static bool begin_stream(lp_exchange *a, int *reads) {
  int ends[2];
  pthread_t thread;
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  (void)fcntl(ends[1], F_SETFL, O_NONBLOCK); /* for await_reader */
  a->pipe = ends[1];
  *reads = ends[0];
  (void)pthread_mutex_lock(&a->server->lock);
  a->server->answers++;
  (void)pthread_mutex_unlock(&a->server->lock);
  if (pthread_create(&thread, NULL, stream_answer, a) == 0) return pthread_detach(thread) == 0;
  (void)close(ends[0]);
  (void)close(ends[1]);
  (void)pthread_mutex_lock(&a->server->lock);
  a->server->answers--;
  (void)pthread_mutex_unlock(&a->server->lock);
  return false;
}

/* *taken: the thread that makes the answer owns it. */
static enum MHD_Result answer_stream(const lp_peer *to, lp_exchange *a, bool *taken) {
  int reads = -1;
  lp_http_server *of = a->server;
  if (!begin_stream(a, &reads)) return lp_peer_reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "no thread is left");
  lp_told now = {0};
  (void)pthread_mutex_lock(&of->lock);
  while (!a->begun && !a->ended)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  *taken = a->begun;
  if (*taken) {
    now = a->told;
    a->seen = true; /* the answer may be freed from here on */
    (void)pthread_cond_broadcast(&of->changed);
  }
  (void)pthread_mutex_unlock(&of->lock);
  if (!*taken) {
    (void)close(reads);
    return reply_failure(to, a);
  }
  struct MHD_Response *response = to->http->create_response_from_pipe(reads);
  if (!response) {
    (void)close(reads); /* so that the writer does not wait */
    return MHD_NO;
  }
  (void)to->http->add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
  add_headers(to, response, &now);
  return lp_peer_queue(to, MHD_HTTP_OK, to->dialect ? to->dialect->stream_type : "text/event-stream", response);
}

enum MHD_Result lp_exchange_answer(const lp_peer *to, lp_exchange *a, bool *taken) {
  return a->request.stream ? answer_stream(to, a, taken) : answer_whole(to, a);
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

uint64_t lp_peer_host(const lp_http_library *http, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = http->get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info && info->client_addr ? lp_address_host(info->client_addr) : 0;
}

const char *lp_peer_header(const lp_peer *to, const char *name) {
  return to->http->lookup_connection_value(to->connection, MHD_HEADER_KIND, name);
}

static void share(const lp_peer *to, struct MHD_Response *response) {
  const lp_http_library *http = to->http;
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, to->origin);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS,
                                  "X-Llmpart-Route, X-Llmpart-Decision, X-Llmpart-Note, Retry-After");
}

enum MHD_Result lp_peer_queue(const lp_peer *to, unsigned status, const char *type, struct MHD_Response *response) {
  if (!response) return MHD_NO;
  (void)to->http->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (to->closes) (void)to->http->add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (to->origin) share(to, response);
  enum MHD_Result result = to->http->queue_response(to->connection, status, response);
  to->http->destroy_response(response);
  return result;
}

static enum MHD_Result reply_text(const lp_peer *to, unsigned status, const char *type, char *text) {
  return lp_peer_queue(to, status, type,
                       to->http->create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

enum MHD_Result lp_peer_reply(const lp_peer *to, unsigned status, char *json) {
  return reply_text(to, status, "application/json", json);
}

char *lp_peer_error(const lp_peer *to, unsigned status, const char *text) {
  if (to->dialect) return to->dialect->error(status, text);
  return lp_answer_error(status < 500 ? "invalid_request_error" : "server_error", text);
}

enum MHD_Result lp_peer_reply_no_model(const lp_peer *to, const char *text) {
  if (to->dialect) return lp_peer_reply_error(to, MHD_HTTP_NOT_FOUND, text);
  return lp_peer_reply(to, MHD_HTTP_NOT_FOUND, lp_answer_no_model(text));
}

enum MHD_Result lp_peer_reply_error(const lp_peer *to, unsigned status, const char *text) {
  return lp_peer_reply(to, status, lp_peer_error(to, status, text));
}
