/* HTTP: paths, requests, answers. A thread of its own makes each streamed answer, which goes out through a pipe. The
 * status line waits for the first piece, so that a failure before it still has a status of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "runtime/link/address.h"
#include "runtime/serve/answer.h"
#include "runtime/serve/dispatch.h"
#include "runtime/serve/events.h"
#include "runtime/serve/guard.h"
#include "runtime/serve/http_library.h"
#include "runtime/serve/log.h"
#include "runtime/serve/router_api.h"
#include "runtime/serve/trace.h"

enum { POLL_MS = 50, MOST_CONNECTIONS = 256, IDLE_S = 120, END_MS = 3000 };

typedef struct {
  const lp_serve_config *config;
  lp_dispatcher *dispatcher;
  lp_log *log;         /* NULL: none */
  volatile int drains; /* no new request is taken */
  volatile int stop;   /* answers end at the next piece */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int answers;  /* threads that stream */
  int requests; /* that are not answered to their last byte */
  uint64_t count;
} server;

static const lp_http_library *http; /* before the first request */

/* ---- one answer -------------------------------------------------------------------------------------------------- */

/* A request's body while it is received, then its answer. Two threads own it while the answer streams. */
typedef struct {
  server *server;
  lp_buf body;
  bool too_long;
  lp_completion request;
  char id[24];
  int64_t created; /* Unix time */
  lp_dispatched course;
  int pipe;       /* the pipe of the stream; -1: the answer is not streamed */
  lp_whole whole; /* of a stream only the characters are counted */
  bool has_role[LP_MOST_CHOICES];
  bool begun, seen, ended; /* guarded by server->lock; seen: the connection has seen that the answer began */
  lp_status status;
  char *error; /* NULL: none */
} answer;

static void answer_free(answer *a) {
  lp_completion_free(&a->request);
  lp_buf_free(&a->body);
  lp_whole_free(&a->whole);
  free(a->error);
  free(a);
}

static void set_begun(answer *a) {
  (void)pthread_mutex_lock(&a->server->lock);
  a->begun = true;
  (void)pthread_cond_broadcast(&a->server->changed);
  (void)pthread_mutex_unlock(&a->server->lock);
}

static lp_answer_head head_of(const answer *a) {
  return (lp_answer_head){&a->request, a->id, a->course.model, a->created};
}

static bool take_piece(void *user, const lp_piece *piece) {
  answer *a = user;
  if (a->pipe < 0) {
    lp_whole_put(&a->whole, piece);
    return true;
  }
  if (!a->begun) set_begun(a);
  bool *has_role = &a->has_role[piece->choice];
  size_t *characters = &a->whole.choice[piece->choice].characters;
  const lp_answer_head head = head_of(a);
  bool wrote = lp_events_write(a->pipe, &a->server->stop, lp_answer_chunk(&head, piece, !*has_role, *characters));
  *has_role = true;
  for (size_t i = 0; i < piece->told_count; i++)
    *characters += piece->told[i].characters;
  return wrote;
}

static void make_answer(answer *a) {
  lp_diag *diag = lp_diag_create();
  a->status = lp_dispatch(a->server->dispatcher, &a->request, &a->server->stop, take_piece, a, &a->course, diag);
  const lp_diag_entry *why = lp_diag_get(diag, 0);
  if (a->status == LP_OK && lp_flag_get(&a->server->stop)) {
    a->status = LP_FAILED;
    a->error = lp_strdup("the server ends");
  } else if (a->status != LP_OK) {
    a->error = lp_strdup(why ? why->text : "no answer");
  }
  lp_diag_free(diag);
  lp_log_request(a->server->log, a->id, &a->request, &a->course, a->error);
}

static void write_ends(answer *a) {
  const volatile int *stop = &a->server->stop;
  const lp_answer_head head = head_of(a);
  bool wrote = true;
  for (int32_t i = 0; wrote && i < a->request.choices; i++)
    wrote = lp_events_write(a->pipe, stop, lp_answer_chunk_end(&head, i, a->course.usage.finish[i]));
  if (wrote && a->request.stream_usage)
    wrote = lp_events_write(a->pipe, stop, lp_answer_chunk_usage(&head, &a->course.usage));
  if (wrote) (void)lp_events_write(a->pipe, stop, lp_strdup("[DONE]"));
}

/* Ends a stream. A stream that fails in its middle ends with an error event and without [DONE]. */
static void write_end(answer *a) {
  if (a->status == LP_OK)
    write_ends(a);
  else if (a->begun)
    (void)lp_events_write(a->pipe, &a->server->stop, lp_answer_error("server_error", a->error));
}

/* The thread of an answer. It owns the answer once that has begun; until then the connection's thread waits for it. */
static void *stream_answer(void *user) {
  answer *a = user;
  server *of = a->server;
  make_answer(a);
  if (a->status == LP_OK && !a->begun) set_begun(a); /* it has no text at all */
  write_end(a);
  (void)close(a->pipe);
  bool is_mine = a->begun;
  (void)pthread_mutex_lock(&of->lock);
  while (is_mine && !a->seen)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  a->ended = true;
  of->answers--;
  (void)pthread_cond_broadcast(&of->changed);
  (void)pthread_mutex_unlock(&of->lock);
  if (is_mine) answer_free(a);
  return NULL;
}

/* ---- responses --------------------------------------------------------------------------------------------------- */

/* The client of a request. */
typedef struct {
  struct MHD_Connection *connection;
  const char *origin; /* of the web page that may read the answer; NULL: no page, or one of this server */
} peer;

static void share_with(const char *origin, struct MHD_Response *response) {
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS,
                                  "X-Llmpart-Route, X-Llmpart-Decision");
}

/* Takes `response`. */
static enum MHD_Result queue(const peer *to, unsigned status, const char *type, struct MHD_Response *response) {
  if (!response) return MHD_NO;
  (void)http->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (to->origin) share_with(to->origin, response);
  enum MHD_Result result = http->queue_response(to->connection, status, response);
  http->destroy_response(response);
  return result;
}

/* Takes `json`. */
static enum MHD_Result reply(const peer *to, unsigned status, char *json) {
  return queue(to, status, "application/json",
               http->create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result reply_error(const peer *to, unsigned status, const char *text) {
  const char *type = status < 500 ? "invalid_request_error" : "server_error";
  return reply(to, status, lp_answer_error(type, text));
}

static void add_route(struct MHD_Response *response, const answer *a) {
  char id[24];
  (void)http->add_response_header(response, "X-Llmpart-Route", lp_route_name(a->course.route));
  if (a->course.decision == 0) return;
  (void)snprintf(id, sizeof id, "%" PRId64, a->course.decision);
  (void)http->add_response_header(response, "X-Llmpart-Decision", id);
}

static enum MHD_Result reply_failure(const peer *to, const answer *a) {
  return reply_error(to, a->status == LP_USAGE ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE, a->error);
}

static enum MHD_Result answer_whole(const peer *to, answer *a) {
  make_answer(a);
  if (a->status != LP_OK) return reply_failure(to, a);
  const lp_answer_head head = head_of(a);
  char *json = lp_answer_whole(&head, &a->whole, &a->course.usage);
  struct MHD_Response *response = http->create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_FREE);
  if (response) add_route(response, a);
  return queue(to, MHD_HTTP_OK, "application/json", response);
}

static bool begin_stream(answer *a, int *reads) {
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
static enum MHD_Result answer_stream(const peer *to, answer *a, bool *taken) {
  int reads = -1;
  server *of = a->server;
  if (!begin_stream(a, &reads)) return reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "no thread is left");
  char route[16], decision[24];
  (void)pthread_mutex_lock(&of->lock);
  while (!a->begun && !a->ended)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  *taken = a->begun;
  if (*taken) {
    (void)snprintf(route, sizeof route, "%s", lp_route_name(a->course.route));
    (void)snprintf(decision, sizeof decision, "%" PRId64, a->course.decision);
    a->seen = true; /* the answer may be freed from here on */
    (void)pthread_cond_broadcast(&of->changed);
  }
  (void)pthread_mutex_unlock(&of->lock);
  if (!*taken) {
    (void)close(reads);
    return reply_failure(to, a);
  }
  struct MHD_Response *response = http->create_response_from_pipe(reads);
  if (!response) {
    (void)close(reads); /* so that the writer does not wait */
    return MHD_NO;
  }
  (void)http->add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
  (void)http->add_response_header(response, "X-Llmpart-Route", route);
  if (!lp_streq(decision, "0")) (void)http->add_response_header(response, "X-Llmpart-Decision", decision);
  return queue(to, MHD_HTTP_OK, "text/event-stream", response);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Compares keys in a time that does not depend on their content. */
static bool is_allowed(const peer *to, const char *key) {
  const char *given = http->lookup_connection_value(to->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
  if (!key) return true;
  if (!given || !lp_has_prefix(given, "Bearer ")) return false;
  given += 7;
  size_t size = strlen(given), wanted = strlen(key);
  unsigned differs = size != wanted;
  for (size_t i = 0; i < size; i++)
    differs |= (unsigned)(given[i] ^ key[i % wanted]);
  return differs == 0;
}

static enum MHD_Result reply_too_long(const peer *to, const answer *a) {
  char limit[96];
  (void)snprintf(limit, sizeof limit, "the request is longer than %" PRId64 " bytes", a->server->config->max_body);
  return reply_error(to, MHD_HTTP_CONTENT_TOO_LARGE, limit);
}

/* A number for the client: its address, and the `user` of the request. */
static uint64_t client_of(const peer *to, const lp_completion *request) {
  const union MHD_ConnectionInfo *info = http->get_connection_info(to->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  const struct sockaddr_in *address = info ? (const struct sockaddr_in *)(const void *)info->client_addr : NULL;
  lp_json root = lp_json_root("the request", request->document), user = lp_json_member(&root, "user");
  const char *name = lp_json_text_or(&user, "");
  uint64_t id = lp_hash_bytes(name, strlen(name), 0);
  if (address && address->sin_family == AF_INET) id = lp_hash_bytes(&address->sin_addr, sizeof address->sin_addr, id);
  return id;
}

/* ---- paths: *taken: the answer belongs to the thread that makes it ----------------------------------------------- */

static enum MHD_Result complete(const peer *to, answer *a, bool chat, bool *taken) {
  if (lp_flag_get(&a->server->drains)) return reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
  lp_diag *diag = lp_diag_create();
  lp_status status =
      lp_completion_read(a->server->config, chat, lp_buf_text(&a->body), a->body.size, &a->request, diag);
  enum MHD_Result result = MHD_NO;
  if (status != LP_OK) result = reply_error(to, MHD_HTTP_BAD_REQUEST, lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
  if (status != LP_OK) return result;
  const union MHD_ConnectionInfo *info = http->get_connection_info(to->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  a->request.client = info ? info->connect_fd : -1;
  a->request.client_id = client_of(to, &a->request);
  lp_trace_read(http->lookup_connection_value(to->connection, MHD_HEADER_KIND, "traceparent"), a->request.trace);
  return a->request.stream ? answer_stream(to, a, taken) : answer_whole(to, a);
}

static enum MHD_Result complete_text(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest;
  return complete(to, a, false, taken);
}

static enum MHD_Result complete_chat(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest;
  return complete(to, a, true, taken);
}

static enum MHD_Result list_models(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  const char *model[LP_ROUTE_COUNT];
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    model[route] = lp_dispatcher_model(a->server->dispatcher, route);
  return reply(to, MHD_HTTP_OK, lp_answer_models(model));
}

static enum MHD_Result tell_health(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)a, (void)rest, (void)taken;
  return reply(to, MHD_HTTP_OK, lp_answer_status("ok"));
}

static enum MHD_Result tell_ready(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  if (lp_flag_get(&a->server->drains)) return reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
  unsigned up = lp_dispatcher_up(a->server->dispatcher);
  if (up == 0) return reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "the worker is being started again");
  bool degraded = up != lp_dispatcher_offered(a->server->dispatcher) ||
                  lp_metrics_degraded(lp_dispatcher_metrics(a->server->dispatcher));
  return reply(to, MHD_HTTP_OK, lp_answer_status(degraded ? "degraded" : "ready"));
}

static enum MHD_Result tell_metrics(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  lp_buf text = {0};
  lp_dispatcher *dispatcher = a->server->dispatcher;
  lp_metrics_print(lp_dispatcher_metrics(dispatcher), lp_dispatcher_offered(dispatcher), lp_dispatcher_up(dispatcher),
                   &text);
  return queue(to, MHD_HTTP_OK, "text/plain; version=0.0.4",
               http->create_response_from_buffer(text.size, text.data, MHD_RESPMEM_MUST_FREE));
}

/* Takes `json` and `diag`. */
static enum MHD_Result reply_router(const peer *to, lp_status status, char *json, lp_diag *diag) {
  enum MHD_Result result = MHD_NO;
  if (status == LP_OK)
    result = reply(to, MHD_HTTP_OK, json);
  else
    result = reply_error(to, status == LP_USAGE ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE,
                         lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
  return result;
}

static enum MHD_Result ask_router(const peer *to, answer *a, bool decides) {
  lp_diag *diag = lp_diag_create();
  char *json = NULL;
  lp_status status = lp_router_post(a->server->dispatcher, decides, lp_buf_text(&a->body), a->body.size, &json, diag);
  return reply_router(to, status, json, diag);
}

static enum MHD_Result router_decide(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  return ask_router(to, a, true);
}

static enum MHD_Result router_outcome(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  return ask_router(to, a, false);
}

static enum MHD_Result router_explain(const peer *to, answer *a, const char *rest, bool *taken) {
  (void)taken;
  lp_diag *diag = lp_diag_create();
  char *json = NULL;
  lp_status status = lp_router_explain(a->server->dispatcher, rest, &json, diag);
  return reply_router(to, status, json, diag);
}

/* A path that ends in '/' takes the rest of the URL. */
typedef struct {
  const char *url, *method;
  bool open; /* needs no key */
  enum MHD_Result (*act)(const peer *to, answer *a, const char *rest, bool *taken);
} path;

static const path paths[] = {{"/v1/completions", "POST", false, complete_text},
                             {"/v1/chat/completions", "POST", false, complete_chat},
                             {"/v1/models", "GET", false, list_models},
                             {"/v1/router/decide", "POST", false, router_decide},
                             {"/v1/router/outcome", "POST", false, router_outcome},
                             {"/v1/router/explain/", "GET", false, router_explain},
                             {"/metrics", "GET", false, tell_metrics},
                             {"/healthz", "GET", true, tell_health},
                             {"/readyz", "GET", true, tell_ready}};

static const path *find_path(const char *url) {
  for (size_t i = 0; i < LP_COUNT(paths); i++)
    if (lp_has_suffix(paths[i].url, "/") ? lp_has_prefix(url, paths[i].url) : lp_streq(url, paths[i].url))
      return &paths[i];
  return NULL;
}

static enum MHD_Result reply_wrong_method(const peer *to, const path *at) {
  char *json = lp_answer_error("invalid_request_error", lp_streq(at->method, "POST") ? "wanted POST" : "wanted GET");
  struct MHD_Response *response = http->create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_FREE);
  if (response) (void)http->add_response_header(response, MHD_HTTP_HEADER_ALLOW, at->method);
  return queue(to, MHD_HTTP_METHOD_NOT_ALLOWED, "application/json", response);
}

/* A browser asks with OPTIONS whether a page of another site may send a request with a key or a body of JSON. */
static enum MHD_Result reply_preflight(const peer *to, const path *at) {
  struct MHD_Response *response = http->create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, at->method);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
                                  "Authorization, Content-Type");
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
  return queue(to, MHD_HTTP_NO_CONTENT, "text/plain", response);
}

static lp_guard_request read_headers(struct MHD_Connection *connection, const char *method) {
  return (lp_guard_request){method, http->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
                            http->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN),
                            http->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE)};
}

static enum MHD_Result dispatch(struct MHD_Connection *connection, const char *url, const char *method, answer *a,
                                bool *taken) {
  const lp_serve_config *config = a->server->config;
  const lp_guard_request request = read_headers(connection, method);
  const bool is_shared = request.origin && lp_guard_shares(config, request.origin);
  const peer to = {connection, is_shared ? request.origin : NULL};
  const char *why = NULL;
  const path *found = find_path(url);
  if (!found) return reply_error(&to, MHD_HTTP_NOT_FOUND, "there is no such path");
  if (is_shared && lp_streq(method, "OPTIONS")) return reply_preflight(&to, found);
  if (!lp_streq(method, found->method)) return reply_wrong_method(&to, found);
  unsigned refusal = found->open ? 0 : lp_guard_refuses(config, &request, &why);
  if (refusal) return reply_error(&to, refusal, why);
  if (!found->open && !is_allowed(&to, config->key))
    return reply_error(&to, MHD_HTTP_UNAUTHORIZED, "the key is missing or wrong");
  if (a->too_long) return reply_too_long(&to, a);
  return found->act(&to, a, url + strlen(found->url), taken);
}

static answer *answer_create(server *of) {
  answer *a = lp_alloc(sizeof *a);
  *a = (answer){.server = of, .created = (int64_t)time(NULL), .pipe = -1};
  (void)pthread_mutex_lock(&of->lock);
  (void)snprintf(a->id, sizeof a->id, "%" PRIu64, of->count++);
  of->requests++;
  (void)pthread_mutex_unlock(&of->lock);
  return a;
}

/* Called for the head, for each part of the body, and at its end. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context) {
  server *of = user;
  answer *a = *context;
  (void)version;
  if (!a) {
    *context = answer_create(of);
    return MHD_YES;
  }
  if (*size > 0) {
    a->too_long |= a->body.size + *size > (size_t)of->config->max_body;
    if (!a->too_long) lp_buf_append(&a->body, data, *size);
    *size = 0;
    return MHD_YES;
  }
  bool taken = false;
  enum MHD_Result result = dispatch(connection, url, method, a, &taken);
  if (taken) *context = NULL;
  return result;
}

static void forget(void *user, struct MHD_Connection *connection, void **context,
                   enum MHD_RequestTerminationCode code) {
  server *of = user;
  (void)connection, (void)code;
  (void)pthread_mutex_lock(&of->lock);
  of->requests--;
  (void)pthread_mutex_unlock(&of->lock);
  if (*context) answer_free(*context);
  *context = NULL;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static lp_status find_address(const lp_serve_config *config, struct sockaddr_in *out, char **host, lp_diag *diag) {
  int port = 0;
  lp_diag *quiet = lp_diag_create();
  lp_status status = lp_address_split(config->listen, host, &port, quiet);
  lp_diag_free(quiet);
  *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const char *name = lp_streq(*host, "localhost") ? "127.0.0.1" : *host;
  if (status != LP_OK || inet_pton(AF_INET, name, &out->sin_addr) != 1)
    return lp_error(diag, LP_LOC_NONE, "'%s' is no address: wanted an IPv4 HOST:PORT", config->listen);
  if (!lp_address_is_loopback(*host) && !config->key)
    return lp_error(diag, LP_LOC_NONE, "'%s' is not a loopback address, so a key is required: 'key_env'",
                    config->listen);
  return LP_OK;
}

static struct MHD_Daemon *start(server *of, const struct sockaddr_in *address) {
  return http->start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL, handle, of,
                            MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_NOTIFY_COMPLETED, forget, of,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)IDLE_S, MHD_OPTION_END);
}

static int open_requests(server *of) {
  (void)pthread_mutex_lock(&of->lock);
  int requests = of->requests;
  (void)pthread_mutex_unlock(&of->lock);
  return requests;
}

/* Ends the current answers; streams end with an error event, which clients that read get before their connection
 * ends. */
static void wait_for_end(server *of, struct MHD_Daemon *daemon, const volatile int *stop) {
  while (!lp_flag_get(stop))
    (void)usleep(POLL_MS * 1000);
  int listener = http->quiesce_daemon(daemon); /* no new connections */
  if (listener >= 0) (void)close(listener);
  lp_flag_set(&of->drains);
  for (double since_ms = lp_now_ms(); open_requests(of) > 0 && lp_now_ms() - since_ms < of->config->drain_ms;)
    (void)usleep(POLL_MS * 1000);
  lp_flag_set(&of->stop);
  (void)pthread_mutex_lock(&of->lock);
  while (of->answers > 0)
    (void)pthread_cond_wait(&of->changed, &of->lock);
  (void)pthread_mutex_unlock(&of->lock);
  for (double since_ms = lp_now_ms(); open_requests(of) > 0 && lp_now_ms() - since_ms < (double)END_MS;)
    (void)usleep(POLL_MS * 1000);
}

static lp_status serve(server *of, const volatile int *stop, lp_serve_ready *ready, void *user, lp_diag *diag) {
  struct sockaddr_in address;
  char *host = NULL;
  lp_status status = find_address(of->config, &address, &host, diag);
  if (status == LP_OK && of->config->log) status = lp_log_open(of->config->log, &of->log, diag);
  if (status == LP_OK) status = lp_dispatcher_open(of->config, &of->dispatcher, diag);
  struct MHD_Daemon *daemon = status == LP_OK ? start(of, &address) : NULL;
  if (status == LP_OK && !daemon)
    status = lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", of->config->listen, strerror(errno));
  if (status == LP_OK) {
    ready(user, host, http->get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    wait_for_end(of, daemon, stop);
    http->stop_daemon(daemon);
  }
  if (of->dispatcher) lp_dispatcher_close(of->dispatcher);
  lp_log_close(of->log);
  free(host);
  return status;
}

/* The library; NULL: it is not installed. The first call may not run on two threads at once. */
static const lp_http_library *load_library(void) {
  static lp_http_library library;
  const lp_library_function functions[] = {{"MHD_start_daemon", &library.start_daemon},
                                           {"MHD_get_daemon_info", &library.get_daemon_info},
                                           {"MHD_quiesce_daemon", &library.quiesce_daemon},
                                           {"MHD_stop_daemon", &library.stop_daemon},
                                           {"MHD_get_connection_info", &library.get_connection_info},
                                           {"MHD_lookup_connection_value", &library.lookup_connection_value},
                                           {"MHD_create_response_from_buffer", &library.create_response_from_buffer},
                                           {"MHD_create_response_from_pipe", &library.create_response_from_pipe},
                                           {"MHD_add_response_header", &library.add_response_header},
                                           {"MHD_queue_response", &library.queue_response},
                                           {"MHD_destroy_response", &library.destroy_response}};
  return lp_library_load("libmicrohttpd.so.12", functions, LP_COUNT(functions)) ? &library : NULL;
}

lp_status lp_serve(const lp_serve_config *config, const volatile int *stop, lp_serve_ready *ready, void *user,
                   lp_diag *diag) {
  http = load_library();
  if (!http) {
    lp_status absent = lp_error(diag, LP_LOC_NONE, "there is no libmicrohttpd.so.12 to serve with");
    lp_note(diag, LP_LOC_NONE, "install it (Debian: libmicrohttpd12)");
    return absent;
  }
  server of = {.config = config};
  (void)signal(SIGPIPE, SIG_IGN); /* a client that leaves ends its answer, not the server */
  (void)pthread_mutex_init(&of.lock, NULL);
  (void)pthread_cond_init(&of.changed, NULL);
  lp_status status = serve(&of, stop, ready, user, diag);
  (void)pthread_cond_destroy(&of.changed);
  (void)pthread_mutex_destroy(&of.lock);
  return status;
}
