/* Paths, methods and keys: what each request asks for, and whether it may. */
#include "runtime/serve/http/paths.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/units.h"
#include "runtime/serve/answer.h"
#include "runtime/serve/dispatch.h"
#include "runtime/serve/http/guard.h"
#include "runtime/serve/http/head.h"
#include "runtime/serve/http/requests.h"
#include "runtime/serve/states.h"

/* ---- the router's paths ------------------------------------------------------------------------------------------ */

/* The router's API, for clients that send their requests themselves: decide, report the outcome, explain. The caller
 * releases *out with free(). LP_USAGE: the request is wrong. */

static lp_status wrong(lp_diag *diag, const char *text) {
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "%s", text);
}

/* Opens the object; the caller closes it. */
static lp_json_writer describe(int64_t id, const lp_router_request *request, const lp_decision *decision, lp_buf *out) {
  lp_json_writer json = lp_answer_begin(out);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "id", id);
  lp_json_put_text(&json, "keywords", request->keywords);
  lp_json_put_text(&json, "route", lp_route_name(decision->route));
  lp_json_put_text(&json, "source", lp_decision_source_name(decision->source));
  lp_json_put_number(&json, "propensity", decision->propensity);
  lp_json_put_object(&json, "probability");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(request->offered, route))
      lp_json_put_number(&json, lp_route_name(route), decision->probability[route]);
  lp_json_put_end(&json);
  return json;
}

/* Reads "offered": the sites that may be chosen; without it, all sites of the server. */
static lp_status read_offered(const lp_json *body, unsigned *offered, lp_diag *diag) {
  lp_json list = lp_json_member(body, "offered");
  unsigned given = 0;
  if (!list.value) return LP_OK;
  for (size_t i = 0; lp_json_is(&list, LP_JSON_ARRAY) && i < lp_json_count(&list); i++) {
    lp_route route;
    if (!lp_route_parse(lp_json_text_or(LP_ITEM(&list, i), ""), &route) || !lp_route_offered(*offered, route))
      return wrong(diag, "'offered' must be a list of places that the server has");
    given |= 1u << route;
  }
  if (given == 0) return wrong(diag, "'offered' must be a list of places that the server has");
  *offered = given;
  return LP_OK;
}

static lp_status decide(lp_dispatcher *self, uint64_t owner, const lp_json *body, char **out, lp_diag *diag) {
  lp_json keywords = lp_json_member(body, "keywords");
  lp_router_request request = {
      .keywords = lp_json_text_or(&keywords, NULL), .offered = lp_dispatcher_offered(self), .owner = owner};
  lp_decision decision;
  lp_buf text = {0};
  int64_t id = 0;
  if (!request.keywords) return wrong(diag, "'keywords' must be text");
  LP_TRY(read_offered(body, &request.offered, diag));
  LP_TRY(lp_dispatcher_decide(self, &request, &decision, &id, diag));
  lp_json_writer json = describe(id, &request, &decision, &text);
  lp_json_put_end(&json);
  *out = text.data;
  return LP_OK;
}

static lp_status note_outcome(lp_dispatcher *self, uint64_t owner, const lp_json *body, char **out, lp_diag *diag) {
  lp_json id_at = lp_json_member(body, "id"), good = lp_json_member(body, "good");
  int64_t id = 0;
  double reward = 0;
  lp_buf text = {0};
  if (lp_json_i64(&id_at, 1, INT64_MAX, &id, NULL) != LP_OK) return wrong(diag, "'id' must be a decision's number");
  if (lp_json_number(LP_MEMBER(body, "reward"), -3600, 3600, &reward, NULL) != LP_OK)
    return wrong(diag, "'reward' must be a number of seconds, at most an hour");
  if (good.value && !lp_json_is(&good, LP_JSON_BOOL)) return wrong(diag, "'good' must be true or false");
  LP_TRY(lp_dispatcher_outcome(self, owner, id, reward, !good.value || lp_json_is_true(&good), diag));
  lp_json_writer json = lp_answer_begin(&text);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "id", id);
  lp_json_put_end(&json);
  *out = text.data;
  return LP_OK;
}

/* Handles a body: a request for a decision (`decides`), or the outcome of one. */
static lp_status post_decision(lp_dispatcher *self, uint64_t owner, bool decides, const lp_buf *body, char **out,
                               lp_diag *diag) {
  lp_json_document *document = NULL;
  if (lp_body_parse(lp_buf_text(body), body->size, &document, diag) != LP_OK) return LP_USAGE;
  lp_json root = lp_json_root("the request", document);
  lp_status status = decides ? decide(self, owner, &root, out, diag) : note_outcome(self, owner, &root, out, diag);
  lp_json_free(document);
  return status;
}

static char *describe_stored(const lp_stored *stored) {
  lp_buf text = {0};
  lp_json_writer json = describe(stored->id, &stored->request, &stored->decision, &text);
  if (stored->has_outcome) {
    lp_json_put_number(&json, "reward", stored->reward);
    lp_json_put_bool(&json, "good", stored->good);
  } else {
    lp_json_put_null(&json, "reward");
    lp_json_put_null(&json, "good");
  }
  lp_json_put_end(&json);
  return text.data;
}

/* Explains the decision with the number in the text. */
static lp_status explain_decision(lp_dispatcher *self, uint64_t owner, const char *number, char **out, lp_diag *diag) {
  int64_t id = 0;
  lp_stored stored;
  if (lp_parse_i64(number, 1, INT64_MAX, &id, NULL, LP_LOC_NONE) != LP_OK)
    return wrong(diag, "the path must end in a decision's number");
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_status status = lp_dispatcher_stored(self, owner, id, arena, &stored, diag);
  if (status == LP_OK) *out = describe_stored(&stored);
  return status;
}

extern const char lp_serve_page_css[], lp_serve_page_js[];

/* The page at `/`: one HTML document, freed by the caller, that reads /v1/status and sends requests as any client. */
static char *page_html(void) {
  lp_buf out = {0};
  lp_buf_puts(&out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<link rel=\"icon\" href=\"data:,\">\n<title>llmpart serve</title>\n<style>\n");
  lp_buf_puts(&out, lp_serve_page_css);
  lp_buf_puts(&out, "</style>\n</head>\n<body>\n<main id=\"page\"></main>\n"
                    "<noscript>The page requires JavaScript; /v1/status has the same as JSON.</noscript>\n<script>\n");
  lp_buf_puts(&out, lp_serve_page_js);
  lp_buf_puts(&out, "</script>\n</body>\n</html>\n");
  return out.data;
}

/* ---- paths: *taken: the answer belongs to the thread that makes it ----------------------------------------------- */

/* Sets the models of places, NULL where there is none, and returns that of embeddings. */
static const char *get_models(const lp_exchange *a, const char *model[LP_ROUTE_COUNT]) {
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    model[route] = lp_dispatcher_model(a->with->dispatcher, route);
  const lp_embedder *embedder = lp_dispatcher_embedder(a->with->dispatcher);
  return embedder ? lp_embedder_model(embedder) : NULL;
}

static enum MHD_Result complete_text(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest;
  return lp_request_complete(to, a, false, taken);
}

static enum MHD_Result complete_chat(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest;
  return lp_request_complete(to, a, true, taken);
}

static enum MHD_Result complete_other(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest;
  return lp_request_translate(to, a, taken);
}

static enum MHD_Result embed(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  return lp_request_embed(to, a);
}

static enum MHD_Result list_models(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  const char *model[LP_ROUTE_COUNT], *embeddings = get_models(a, model);
  return lp_peer_reply(to, MHD_HTTP_OK, lp_answer_models(model, embeddings));
}

static enum MHD_Result reply_no_model(const lp_peer *to, const char *const model[LP_ROUTE_COUNT],
                                      const char *embeddings, const char *id) {
  LP_OWNED(lp_buf_free) lp_buf why = {0};
  lp_answer_name_models(model, embeddings, id, &why);
  enum MHD_Result result = lp_peer_reply_no_model(to, lp_buf_text(&why));
  return result;
}

static enum MHD_Result show_model(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)taken;
  const char *model[LP_ROUTE_COUNT], *embeddings = get_models(a, model);
  if (lp_answer_has_model(model, embeddings, rest)) return lp_peer_reply(to, MHD_HTTP_OK, lp_answer_model(rest));
  return reply_no_model(to, model, embeddings, rest);
}

/* ---- Ollama's paths of models ------------------------------------------------------------------------------------ */

static enum MHD_Result list_tags(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  const char *model[LP_ROUTE_COUNT];
  (void)get_models(a, model);
  return lp_peer_reply(to, MHD_HTTP_OK, lp_ollama_tags(model));
}

static enum MHD_Result show_tag(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  lp_json_document *document = NULL;
  char name[256] = "";
  const char *model[LP_ROUTE_COUNT], *embeddings = get_models(a, model);
  if (lp_body_parse(lp_buf_text(&a->body), a->body.size, &document, NULL) == LP_OK) {
    lp_json root = lp_json_root("the request", document), other = lp_json_member(&root, "name");
    (void)lp_ollama_model(lp_json_text_or(LP_MEMBER(&root, "model"), lp_json_text_or(&other, "")), name, sizeof name);
  }
  lp_json_free(document);
  if (lp_answer_has_model(model, embeddings, name)) return lp_peer_reply(to, MHD_HTTP_OK, lp_ollama_show(name));
  return reply_no_model(to, model, embeddings, name);
}

static enum MHD_Result tell_version(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)a, (void)rest, (void)taken;
  return lp_peer_reply(to, MHD_HTTP_OK, lp_strdup("{\"version\":\"" LP_VERSION "\"}"));
}

static enum MHD_Result tell_health(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)a, (void)rest, (void)taken;
  return lp_peer_reply(to, MHD_HTTP_OK, lp_answer_status("ok"));
}

static enum MHD_Result tell_ready(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  if (lp_flag_get(&a->server->drains)) return lp_peer_reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
  bool ready = false;
  char *json = lp_states_ready(a->with->dispatcher, &ready);
  return lp_peer_reply(to, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, json);
}

static enum MHD_Result tell_status(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  return lp_peer_reply(to, MHD_HTTP_OK, lp_states_status(a->with->dispatcher));
}

/* The page may load and contact nothing but this server, and no other page may frame it. */
static enum MHD_Result show_page(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)a, (void)rest, (void)taken;
  char *html = page_html();
  struct MHD_Response *response = to->http->create_response_from_buffer(strlen(html), html, MHD_RESPMEM_MUST_FREE);
  if (response)
    (void)to->http->add_response_header(response, "Content-Security-Policy",
                                        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                        "img-src data:; connect-src 'self'; frame-ancestors 'none'");
  return lp_peer_queue(to, MHD_HTTP_OK, "text/html; charset=utf-8", response);
}

static enum MHD_Result tell_metrics(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  lp_buf text = {0};
  lp_states_print(a->with->dispatcher, &text);
  lp_limits_print(a->server->limits, &a->with->config->keys, &text);
  return lp_peer_queue(to, MHD_HTTP_OK, "text/plain; version=0.0.4",
                       to->http->create_response_from_buffer(text.size, text.data, MHD_RESPMEM_MUST_FREE));
}

/* Takes `json` and `diag`. */
static enum MHD_Result reply_router(const lp_peer *to, lp_status status, char *json, lp_diag *diag) {
  enum MHD_Result result = MHD_NO;
  if (status == LP_OK)
    result = lp_peer_reply(to, MHD_HTTP_OK, json);
  else
    result = lp_peer_reply_error(to, status == LP_USAGE ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE,
                                 lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
  return result;
}

static enum MHD_Result ask_router(const lp_peer *to, lp_exchange *a, bool decides) {
  lp_diag *diag = lp_diag_create();
  char *json = NULL;
  lp_status status = post_decision(a->with->dispatcher, lp_request_owner(a), decides, &a->body, &json, diag);
  return reply_router(to, status, json, diag);
}

static enum MHD_Result router_decide(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  return ask_router(to, a, true);
}

static enum MHD_Result router_outcome(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)rest, (void)taken;
  return ask_router(to, a, false);
}

static enum MHD_Result router_explain(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken) {
  (void)taken;
  lp_diag *diag = lp_diag_create();
  char *json = NULL;
  lp_status status = explain_decision(a->with->dispatcher, lp_request_owner(a), rest, &json, diag);
  return reply_router(to, status, json, diag);
}

/* A path that ends in '/' takes the rest of the URL, except the page's. */
typedef struct {
  const char *url, *method;
  bool open; /* needs no key */
  enum MHD_Result (*act)(const lp_peer *to, lp_exchange *a, const char *rest, bool *taken);
  const lp_dialect *dialect; /* NULL: OpenAI's chat */
} path;

static const path paths[] = {{"/v1/completions", "POST", false, complete_text, NULL},
                             {"/v1/chat/completions", "POST", false, complete_chat, NULL},
                             {"/v1/responses", "POST", false, complete_other, &lp_dialect_responses},
                             {"/v1/messages", "POST", false, complete_other, &lp_dialect_messages},
                             {"/v1/messages/count_tokens", "POST", false, complete_other, &lp_dialect_count},
                             {"/api/chat", "POST", false, complete_other, &lp_dialect_chat},
                             {"/api/generate", "POST", false, complete_other, &lp_dialect_generate},
                             {"/api/tags", "GET", false, list_tags, &lp_dialect_chat},
                             {"/api/show", "POST", false, show_tag, &lp_dialect_chat},
                             {"/api/version", "GET", true, tell_version, &lp_dialect_chat},
                             {"/v1/embeddings", "POST", false, embed, NULL},
                             {"/v1/models", "GET", false, list_models, NULL},
                             {"/v1/models/", "GET", false, show_model, NULL},
                             {"/v1/router/decide", "POST", false, router_decide, NULL},
                             {"/v1/router/outcome", "POST", false, router_outcome, NULL},
                             {"/v1/router/explain/", "GET", false, router_explain, NULL},
                             {"/v1/status", "GET", false, tell_status, NULL},
                             {"/metrics", "GET", false, tell_metrics, NULL},
                             {"/", "GET", true, show_page, NULL},
                             {"/health", "GET", true, tell_health, NULL},
                             {"/healthz", "GET", true, tell_health, NULL},
                             {"/readyz", "GET", true, tell_ready, NULL}};

static bool takes_rest(const path *at) {
  return lp_has_suffix(at->url, "/") && !lp_streq(at->url, "/");
}

static const path *find_path(const char *url) {
  for (size_t i = 0; i < LP_COUNT(paths); i++)
    if (takes_rest(&paths[i]) ? lp_has_prefix(url, paths[i].url) : lp_streq(url, paths[i].url)) return &paths[i];
  return NULL;
}

static enum MHD_Result reply_wrong_method(const lp_peer *to, const path *at) {
  const char *wanted = lp_streq(at->method, "POST") ? "wanted POST" : "wanted GET";
  char *json = lp_peer_error(to, MHD_HTTP_METHOD_NOT_ALLOWED, wanted);
  struct MHD_Response *response = to->http->create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_FREE);
  const char *allowed = lp_streq(at->method, "POST") ? "POST" : "GET, HEAD";
  if (response) (void)to->http->add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
  return lp_peer_queue(to, MHD_HTTP_METHOD_NOT_ALLOWED, "application/json", response);
}

/* A browser asks with OPTIONS whether a page of another site may send a request with a key or a body of JSON. */
static enum MHD_Result reply_preflight(const lp_peer *to, const path *at) {
  struct MHD_Response *response = to->http->create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  (void)to->http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, at->method);
  (void)to->http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
                                      "Authorization, X-Api-Key, Content-Type, X-Llmpart-Up, X-Llmpart-Down");
  (void)to->http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
  return lp_peer_queue(to, MHD_HTTP_NO_CONTENT, "text/plain", response);
}

static lp_guard_request read_headers(const lp_peer *to, const char *method) {
  return (lp_guard_request){method, lp_peer_header(to, MHD_HTTP_HEADER_HOST),
                            lp_peer_header(to, MHD_HTTP_HEADER_ORIGIN),
                            lp_peer_header(to, MHD_HTTP_HEADER_CONTENT_TYPE)};
}

/* Finds the path, and refuses what its head refuses: *found is NULL, and *result the reply. */
static void find_allowed(lp_peer *to, const char *url, const char *method, lp_exchange *a, const path **found,
                         enum MHD_Result *result) {
  const lp_serve_config *config = a->with->config;
  const lp_guard_request request = read_headers(to, method);
  const bool is_shared = request.origin && lp_guard_shares(config, request.origin);
  if (is_shared) to->origin = request.origin;
  const char *why = NULL;
  const path *at = find_path(url);
  *found = NULL;
  to->dialect = at ? at->dialect : NULL;
  unsigned refusal = at && !at->open ? lp_guard_refuses(config, &request, &why) : 0;
  if (!at)
    *result = lp_peer_reply_error(to, MHD_HTTP_NOT_FOUND, "there is no such path");
  else if (is_shared && lp_streq(method, "OPTIONS"))
    *result = reply_preflight(to, at);
  else if (!lp_streq(lp_streq(method, "HEAD") ? "GET" : method, at->method)) /* the library sends no body to HEAD */
    *result = reply_wrong_method(to, at);
  else if (refusal)
    *result = lp_peer_reply_error(to, refusal, why);
  else if (!at->open && !lp_request_is_allowed(to, a))
    *result = lp_peer_reply_error(to, MHD_HTTP_UNAUTHORIZED, "the key is missing or wrong");
  else
    *found = at;
}

enum { MOST_FIELDS = 128 };

typedef struct {
  lp_head_field field[MOST_FIELDS];
  size_t count;
} field_list;

static enum MHD_Result take_field(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
  field_list *list = user;
  (void)kind;
  if (list->count < MOST_FIELDS) list->field[list->count++] = (lp_head_field){name, value};
  return MHD_YES;
}

bool lp_paths_refuse(struct MHD_Connection *connection, const lp_request_head *head, lp_exchange *a,
                     enum MHD_Result *result) {
  lp_peer to = {.http = a->server->http, .connection = connection, .closes = true};
  field_list list = {.count = 0};
  const path *found = NULL;
  (void)to.http->get_connection_values(connection, MHD_HEADER_KIND, take_field, &list);
  const lp_head_verdict verdict = lp_head_judge(list.field, list.count, head->version, a->with->config->max_body);
  if (head->is_beyond)
    *result = lp_peer_reply_error(&to, MHD_HTTP_SERVICE_UNAVAILABLE, "there are too many connections");
  else if (list.count == MOST_FIELDS)
    *result = lp_peer_reply_error(&to, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "the request has too many headers");
  else if (verdict.status)
    *result = lp_peer_reply_error(&to, verdict.status, verdict.why);
  else if (verdict.is_early)
    find_allowed(&to, head->url, head->method, a, &found, result);
  else
    return false;
  return !found;
}

enum MHD_Result lp_paths_reply(struct MHD_Connection *connection, const char *url, const char *method, lp_exchange *a,
                               bool *taken) {
  lp_peer to = {.http = a->server->http, .connection = connection};
  const path *found = NULL;
  enum MHD_Result result = MHD_NO;
  find_allowed(&to, url, method, a, &found, &result);
  return found ? found->act(&to, a, url + strlen(found->url), taken) : result;
}
