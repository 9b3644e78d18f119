/* The cloud's site: another OpenAI-compatible API. Every request to it asks for a stream, and the site passes each
 * piece of text on at once. */
#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "runtime/router/curl_library.h"
#include "runtime/serve/place/logprobs.h"

/* Bytes: of an event, of an error's body, and of an answer beside those for each token that was asked for. */
enum { MOST_LINE = 1 << 20, MOST_ERROR = 1 << 16, MOST_REST = 1 << 20, MOST_TOKEN = 1 << 12 };

typedef struct {
  lp_site_server site;
  const lp_serve_config *config;
  atomic_int here; /* requests */
} api_site;

/* One answer while it is received. */
typedef struct {
  const lp_completion *request;
  lp_buf line;
  lp_piece_sink *sink;
  void *user;
  const volatile int *stop;
  lp_usage *usage;
  CURL *curl;
  const lp_serve_config *config;
  int64_t bytes, most_bytes;
  double begun_ms, heard_ms; /* heard: the last event; comments do not count */
  int64_t pieces;            /* events with text; the tokens of an answer unless it tells their number */
  bool done, aborted;        /* done: [DONE] was seen */
  bool counted, ended[LP_MOST_CHOICES];
  char error[160];
} stream;

enum { MOST_CALLS = 64 };

/* Calls of tools, in parts: [{"index":0,"id":"...","function":{"name":"...","arguments":"..."}}]. */
static size_t read_calls(const lp_json *list, lp_tool_call calls[MOST_CALLS]) {
  size_t count = 0;
  for (; count < lp_json_count(list) && count < MOST_CALLS; count++) {
    lp_json call = lp_json_item(list, count), function = lp_json_member(&call, "function"),
            index = lp_json_member(&call, "index"), id = lp_json_member(&call, "id"),
            name = lp_json_member(&function, "name"), arguments = lp_json_member(&function, "arguments");
    calls[count] = (lp_tool_call){.index = (int64_t)count,
                                  .id = lp_json_text_or(&id, NULL),
                                  .name = lp_json_text_or(&name, NULL),
                                  .arguments = lp_json_text_or(&arguments, "")};
    if (lp_json_is_given(&index) && lp_json_i64(&index, 0, INT32_MAX, &calls[count].index, NULL) != LP_OK) break;
  }
  return count;
}

static lp_finish finish_of(const char *reason) {
  return lp_streq(reason, "length")           ? LP_FINISH_LENGTH
         : lp_streq(reason, "tool_calls")     ? LP_FINISH_TOOLS
         : lp_streq(reason, "content_filter") ? LP_FINISH_FILTER
         : lp_streq(reason, "error")          ? LP_FINISH_ERROR
                                              : LP_FINISH_STOP;
}

/* A choice of an event: {"index":0,"delta":{"content":"..."}}, or with "text". */
static void take_choice(stream *s, const lp_json *choice) {
  lp_json delta = lp_json_member(choice, "delta"), content = lp_json_member(&delta, "content"),
          plain = lp_json_member(choice, "text"), index_at = lp_json_member(choice, "index"),
          calls_at = lp_json_member(&delta, "tool_calls");
  const char *finish = lp_json_text_or(LP_MEMBER(choice, "finish_reason"), NULL);
  lp_tool_call calls[MOST_CALLS];
  lp_logprobs logprobs = {0};
  int32_t index = 0;
  if (lp_json_is_given(&index_at) && lp_json_i32(&index_at, 0, s->request->choices - 1, &index, NULL) != LP_OK) {
    (void)snprintf(s->error, sizeof s->error, "the answer has a choice that was not asked for");
    return;
  }
  if (finish) s->usage->finish[index] = finish_of(finish);
  lp_logprobs_read(LP_MEMBER(choice, "logprobs"), s->request->chat, &logprobs);
  const lp_piece piece = {.choice = index,
                          .text = lp_json_text_or(&content, lp_json_text_or(&plain, "")),
                          .logprobs = logprobs.data,
                          .logprob_count = logprobs.count,
                          .calls = calls,
                          .call_count = read_calls(&calls_at, calls),
                          .machine = s->request->machines ? s->config->url : NULL};
  if (piece.text[0] || piece.logprob_count > 0 || piece.call_count > 0) {
    s->pieces++;
    if (!s->ended[index] && !s->sink(s->user, &piece)) s->ended[index] = true;
  }
  lp_logprobs_free(&logprobs);
}

static void take_usage(stream *s, const lp_json *usage) {
  lp_json prompt = lp_json_member(usage, "prompt_tokens"), tokens = lp_json_member(usage, "completion_tokens");
  if (lp_json_is_given(&prompt)) (void)!lp_json_i64(&prompt, 0, INT64_MAX, &s->usage->prompt_tokens, NULL);
  lp_json details = lp_json_member(usage, "prompt_tokens_details"), cached = lp_json_member(&details, "cached_tokens");
  if (lp_json_is_given(&cached)) (void)!lp_json_i64(&cached, 0, INT64_MAX, &s->usage->cached_tokens, NULL);
  if (lp_json_is_given(&tokens) && lp_json_i64(&tokens, 0, INT64_MAX, &s->usage->tokens, NULL) == LP_OK)
    s->counted = true;
}

static bool all_ended(const stream *s) {
  for (int32_t i = 0; i < s->request->choices; i++)
    if (!s->ended[i]) return false;
  return true;
}

static bool take_json(stream *s, const lp_json *root) {
  lp_json choices = lp_json_member(root, "choices"), error = lp_json_member(root, "error");
  const char *failed = lp_json_text_or(LP_MEMBER(&error, "message"), NULL);
  if (failed) (void)snprintf(s->error, sizeof s->error, "%.150s", failed);
  for (size_t i = 0; i < lp_json_count(&choices) && s->error[0] == 0; i++)
    take_choice(s, LP_ITEM(&choices, i));
  take_usage(s, LP_MEMBER(root, "usage"));
  s->aborted = all_ended(s);
  return !s->aborted && s->error[0] == 0;
}

/* The text after "data: "; false: the answer ends here. */
static bool take_event(stream *s, const char *data, size_t size) {
  lp_json_document *document = NULL;
  if (lp_streq(data, "[DONE]")) {
    s->done = true;
    return true;
  }
  if (lp_json_parse("event", data, size, LP_JSON_ALLOW_DUPLICATES | LP_JSON_REFUSE_NUL, &document, NULL) != LP_OK) {
    (void)snprintf(s->error, sizeof s->error, "an event is not JSON");
    return false;
  }
  lp_json root = lp_json_root("event", document);
  bool more = take_json(s, &root);
  lp_json_free(document);
  return more;
}

/* Tells whether the answer is longer than it may be. */
static bool is_too_long(stream *s, long http, size_t size) {
  int64_t most = http == 200 ? s->most_bytes : MOST_ERROR;
  s->bytes += (int64_t)size;
  if (s->bytes <= most && s->line.size < MOST_LINE) return false;
  (void)snprintf(s->error, sizeof s->error, "the answer is too long (HTTP status %ld)", http);
  return true;
}

static size_t receive(char *data, size_t size, size_t count, void *user) {
  stream *s = user;
  long http = 0;
  (void)lp_curl_library_get()->easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &http);
  if (is_too_long(s, http, size * count)) return 0;
  for (size_t i = 0; i < size * count; i++) {
    if (data[i] != '\n' && s->line.size < MOST_LINE) lp_buf_append(&s->line, &data[i], 1);
    if (data[i] != '\n' || http != 200) continue; /* the body of an error is kept unchanged */
    if (s->line.size > 0 && s->line.data[s->line.size - 1] == '\r') s->line.data[--s->line.size] = 0;
    bool is_data = s->line.size > 0 && lp_has_prefix(s->line.data, "data:");
    size_t skip = is_data && s->line.data[5] == ' ' ? 6 : 5;
    if (is_data) s->heard_ms = lp_now_ms();
    if (is_data && !take_event(s, s->line.data + skip, s->line.size - skip)) return 0;
    lp_buf_clear(&s->line);
  }
  return size * count;
}

/* Ends the transfer when the server ends, and at the limits of time. libcurl calls this at least once a second. */
static int watch(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up) {
  stream *s = user;
  const lp_serve_config *config = s->config;
  double now_ms = lp_now_ms();
  (void)total, (void)now, (void)up_total, (void)up;
  if (now_ms - s->heard_ms > config->timeout_ms)
    (void)snprintf(s->error, sizeof s->error, "the answer has made no progress for %g s", config->timeout_ms / 1000);
  else if (now_ms - s->begun_ms > config->total_ms)
    (void)snprintf(s->error, sizeof s->error, "the answer has taken more than %g s", config->total_ms / 1000);
  return s->error[0] != 0 || lp_flag_get(s->stop);
}

static struct curl_slist *headers_of(const lp_serve_config *config, const lp_completion *request) {
  struct curl_slist *headers = lp_curl_library_get()->slist_append(NULL, "Content-Type: application/json");
  LP_OWNED(lp_buf_free) lp_buf line = {0};
  char context[LP_TRACE_CONTEXT + 1];
  lp_traceparent_write(request->trace, request->of_place, context);
  lp_buf_printf(&line, "traceparent: %s", context);
  headers = lp_curl_library_get()->slist_append(headers, line.data);
  lp_buf_clear(&line);
  if (!config->cloud_key) return headers;
  lp_buf_printf(&line, "Authorization: Bearer %s", config->cloud_key);
  headers = lp_curl_library_get()->slist_append(headers, line.data);
  return headers;
}

static void put_prompt(lp_json_writer *json, const lp_completion *request) {
  if (request->prompt_tokens.count == 0) {
    lp_json_put_text(json, "prompt", request->prompt);
    return;
  }
  lp_json_put_array(json, "prompt");
  for (size_t i = 0; i < request->prompt_tokens.count; i++)
    lp_json_put_integer(json, NULL, request->prompt_tokens.data[i]);
  lp_json_put_end(json);
}

/* The request as it came, except for the members that this site sets. Release with free(). */
static char *body_of(const api_site *self, const lp_completion *request) {
  static const char *const ours[] = {"model",          "stream",   "max_tokens", "max_completion_tokens",
                                     "stream_options", "keywords", "local_only", "budget_usd",
                                     "machines",       "prompt"};
  lp_json root = lp_json_root("the request", request->document);
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "model", self->config->model);
  for (size_t i = 0; i < lp_json_count(&root); i++) {
    lp_json member = lp_json_entry(&root, i);
    bool is_ours = false;
    for (size_t k = 0; k < LP_COUNT(ours); k++)
      is_ours |= lp_streq(member.key, ours[k]);
    if (!is_ours) lp_json_put_value(&json, member.key, member.value);
  }
  if (!request->chat) put_prompt(&json, request);
  lp_json_put_bool(&json, "stream", true);
  lp_json_put_object(&json, "stream_options");
  lp_json_put_bool(&json, "include_usage", true);
  lp_json_put_end(&json);
  lp_json_put_integer(&json, "max_tokens", request->max_tokens);
  lp_json_put_end(&json);
  return out.data;
}

/* Tells whether the body of an error says that the prompt exceeds the model's context, as OpenAI, vLLM and llama.cpp
 * write it. */
static bool tells_too_long(const lp_buf *body) {
  lp_json_document *document = NULL;
  if (lp_json_parse("error", lp_buf_text(body), body->size, LP_JSON_ALLOW_DUPLICATES | LP_JSON_REFUSE_NUL, &document,
                    NULL) != LP_OK)
    return false;
  lp_json root = lp_json_root("error", document), error = lp_json_member(&root, "error"),
          code = lp_json_member(&error, "code"), type = lp_json_member(&error, "type"),
          message = lp_json_member(lp_json_is_given(&error) ? &error : &root, "message");
  bool found = lp_json_equals(&code, "context_length_exceeded") || lp_json_equals(&type, "exceed_context_size_error") ||
               strstr(lp_json_text_or(&message, ""), "maximum context length") != NULL;
  lp_json_free(document);
  return found;
}

/* The result of a finished transfer. A status 400 or 422 means that the request is wrong. */
static lp_status judge(const api_site *self, const stream *s, CURLcode code, const char *curl_error, lp_diag *diag) {
  lp_loc loc = {.file = self->config->url};
  long http = 0;
  (void)lp_curl_library_get()->easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &http);
  if (s->aborted || lp_flag_get(s->stop)) return LP_OK;
  if (s->error[0] != 0) return lp_error(diag, loc, "%s", s->error);
  if (code != CURLE_OK)
    return lp_error(diag, loc, "%s", curl_error[0] != 0 ? curl_error : lp_curl_library_get()->easy_strerror(code));
  s->usage->is_too_long = http == 400 && tells_too_long(&s->line);
  if (s->usage->is_too_long) return lp_error(diag, loc, "%.120s", lp_buf_text(&s->line));
  if (http == 400 || http == 422) return lp_error_as(LP_USAGE, diag, loc, "%.120s", lp_buf_text(&s->line));
  if (http != 200) return lp_error(diag, loc, "answers with HTTP status %ld", http);
  if (!s->done) return lp_error(diag, loc, "the answer is incomplete");
  return LP_OK;
}

/* The most bytes of events for each token; each of its likely alternatives takes some more. */
static int64_t most_token(const lp_completion *request) {
  int32_t top = request->decoding.top_logprobs;
  return MOST_TOKEN + (top > 0 ? top * 512 : 0);
}

static lp_status ask(api_site *self, const lp_completion *request, const volatile int *stop, lp_piece_sink *sink,
                     void *user, lp_usage *usage, lp_diag *diag) {
  *usage = (lp_usage){.prompt_tokens = -1};
  stream s = {.request = request,
              .sink = sink,
              .user = user,
              .stop = stop,
              .usage = usage,
              .curl = lp_curl_library_get()->easy_init(),
              .config = self->config,
              .most_bytes = MOST_REST + most_token(request) * request->max_tokens * request->choices,
              .begun_ms = lp_now_ms(),
              .heard_ms = lp_now_ms()};
  if (!s.curl) return lp_error(diag, LP_LOC_FILE(self->config->url), "libcurl does not start");
  char error[CURL_ERROR_SIZE] = "", *body = body_of(self, request);
  struct curl_slist *headers = headers_of(self->config, request);
  lp_buf url = {0};
  lp_buf_printf(&url, "%s%s", self->config->url, request->chat ? "/chat/completions" : "/completions");
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_URL, url.data);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_HTTPHEADER, headers);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_POSTFIELDS, body);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_NOSIGNAL, 1L);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_ERRORBUFFER, error);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_CONNECTTIMEOUT_MS, (long)ceil(self->config->timeout_ms));
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_WRITEFUNCTION, receive);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_WRITEDATA, &s);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_XFERINFOFUNCTION, watch);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_XFERINFODATA, &s);
  (void)lp_curl_library_get()->easy_setopt(s.curl, CURLOPT_NOPROGRESS, 0L);
  CURLcode code = lp_curl_library_get()->easy_perform(s.curl);
  lp_status status = judge(self, &s, code, error, diag);
  if (!s.counted) usage->tokens = s.pieces;
  lp_curl_library_get()->easy_cleanup(s.curl);
  lp_curl_library_get()->slist_free_all(headers);
  free(body);
  lp_buf_free(&url);
  lp_buf_free(&s.line);
  return status;
}

static lp_status complete(lp_site_server *site, const lp_completion *request, const volatile int *stop,
                          lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag) {
  api_site *self = (api_site *)site;
  if (request->only_counts)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "an API does not count the tokens of a prompt");
  (void)atomic_fetch_add(&self->here, 1);
  lp_status status = ask(self, request, stop, sink, user, usage, diag);
  (void)atomic_fetch_sub(&self->here, 1);
  return status;
}

static void tell(lp_site_server *site, lp_site_state *out) {
  api_site *self = (api_site *)site;
  *out = (lp_site_state){.up = true, .requests = atomic_load(&self->here), .generating = -1};
}

static void close_api(lp_site_server *site) {
  free(site);
}

lp_status lp_site_api(const lp_serve_config *config, lp_site_server **out, lp_diag *diag) {
  if (!lp_curl_library_get()) return lp_error(diag, LP_LOC_FILE(config->url), "libcurl.so.4 is not there");
  api_site *self = lp_alloc(sizeof *self);
  *self = (api_site){.site = {.name = lp_route_name(LP_ROUTE_CLOUD),
                              .model = config->model,
                              .complete = complete,
                              .tell = tell,
                              .close = close_api},
                     .config = config};
  *out = &self->site;
  return LP_OK;
}
