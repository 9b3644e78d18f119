/* A decider that asks a language model with an OpenAI-compatible API for one token with its log-probabilities: POST
 * {url}/completions or, where there are none, {url}/chat/completions. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/utf8.h"
#include "runtime/router/curl_library.h"
#include "runtime/router/labels.h"

enum { ALTERNATIVES = 20, MOST_ANSWER = 1 << 20 };

/* A connection and its last answer. */
typedef struct {
  CURL *curl;
  lp_buf answer;
  char error[CURL_ERROR_SIZE];
} transfer;

typedef struct {
  lp_decider decider;
  const lp_curl_library *functions;
  struct curl_slist *headers;
  char *url[2], *model; /* [chats] */
  atomic_bool chats;    /* the API has completions of chats only */
  double timeout_ms;
  pthread_mutex_t lock;    /* guards `idle` */
  LP_VEC(transfer *) idle; /* connections that no call uses */
} endpoint;

static size_t receive(char *data, size_t size, size_t count, void *user) {
  lp_buf *answer = user;
  if (answer->size + size * count > MOST_ANSWER) return 0; /* curl reports a write error */
  lp_buf_append(answer, data, size * count);
  return size * count;
}

/* A question: the text to continue, and what is wanted of it. */
typedef struct {
  const char *prompt;
  size_t size;
  int64_t tokens;
  bool logprobs;
} question;

static void put_message(lp_json_writer *json, const char *prompt) {
  lp_json_put_array(json, "messages");
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "role", "user");
  lp_json_put_text(json, "content", prompt);
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static void put_request(const endpoint *self, bool chats, const question *of, lp_buf *out) {
  lp_json_writer json = lp_json_writer_begin(out, (lp_json_style){.has_no_space = true});
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "model", self->model);
  if (chats)
    put_message(&json, of->prompt);
  else
    lp_json_put_text(&json, "prompt", of->prompt);
  if (chats && of->logprobs) lp_json_put_bool(&json, "logprobs", true);
  lp_json_put_integer(&json, "max_tokens", of->tokens);
  lp_json_put_integer(&json, "temperature", 0);
  if (of->logprobs) lp_json_put_integer(&json, chats ? "top_logprobs" : "logprobs", ALTERNATIVES);
  lp_json_put_end(&json);
}

/* *http: the status of the answer, 0 if there is none. */
static lp_status ask(const endpoint *self, bool chats, transfer *t, const question *of, long *http, lp_diag *diag) {
  lp_buf body = {0};
  const char *url = self->url[chats];
  *http = 0;
  if (!lp_utf8_valid(of->prompt, of->size)) return lp_error(diag, LP_LOC_FILE(url), "the keywords are not UTF-8");
  put_request(self, chats, of, &body);
  lp_buf_clear(&t->answer);
  t->error[0] = 0;
  (void)self->functions->easy_setopt(t->curl, CURLOPT_URL, url);
  (void)self->functions->easy_setopt(t->curl, CURLOPT_POSTFIELDS, body.data);
  CURLcode code = self->functions->easy_perform(t->curl);
  lp_buf_free(&body);
  (void)self->functions->easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, http);
  if (code != CURLE_OK)
    return lp_error(diag, LP_LOC_FILE(url), "%s", t->error[0] != 0 ? t->error : self->functions->easy_strerror(code));
  return *http == 200 ? LP_OK : lp_error(diag, LP_LOC_FILE(url), "answers with HTTP status %ld", *http);
}

/* An API that refuses a completion may have completions of chats only, as those of most instruct models; then it is
 * asked for these from then on. */
static lp_status ask_either(endpoint *self, transfer *t, const question *of, bool *chats, lp_diag *diag) {
  long http = 0;
  *chats = atomic_load(&self->chats);
  if (*chats) return ask(self, true, t, of, &http, diag);
  LP_OWNED(lp_diag_free_at) lp_diag *first = lp_diag_create();
  lp_status status = ask(self, false, t, of, &http, first);
  bool refused = http == 400 || http == 404 || http == 405 || http == 410 || http == 501;
  if (refused) {
    LP_OWNED(lp_diag_free_at) lp_diag *second = lp_diag_create();
    *chats = ask(self, true, t, of, &http, second) == LP_OK;
    if (*chats) status = LP_OK;
    if (*chats) atomic_store(&self->chats, true);
  }
  const lp_diag_entry *why = lp_diag_get(first, 0);
  if (status != LP_OK) status = lp_error(diag, LP_LOC_FILE(self->url[0]), "%s", why ? why->text : "no answer");
  return status;
}

static void add_token(const char *token, double logprob, unsigned offered, double probability[LP_ROUTE_COUNT]) {
  lp_route route = lp_label_of_token(token, offered);
  if (route != LP_ROUTE_COUNT && logprob <= 0) probability[route] += exp(logprob);
}

/* An alternative of a completion is a member {token: logprob}, of which two tokens with the same text are two; one of a
 * chat is an object {"token": ..., "logprob": ...}. */
static lp_status read_alternative(const lp_json *top, size_t index, unsigned offered,
                                  double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  bool of_chat = lp_json_is(top, LP_JSON_ARRAY);
  lp_json entry = of_chat ? lp_json_item(top, index) : lp_json_entry(top, index);
  lp_json token = lp_json_member(&entry, "token"), number = of_chat ? lp_json_member(&entry, "logprob") : entry;
  double logprob = 0;
  LP_TRY(lp_json_number(&number, -INFINITY, INFINITY, &logprob, diag));
  add_token(of_chat ? lp_json_text_or(&token, "") : entry.key, logprob, offered, probability);
  return LP_OK;
}

/* Reads choices[0].logprobs.top_logprobs[0] or, as of chats and of some servers' completions,
 * choices[0].logprobs.content[0].top_logprobs. */
static lp_status read_answer(const char *url, const lp_buf *answer, unsigned offered,
                             double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(url, lp_buf_text(answer), answer->size, LP_JSON_ALLOW_DUPLICATES | LP_JSON_REFUSE_NUL, &document,
                       diag));
  lp_json root = lp_json_root(url, document), choices = lp_json_member(&root, "choices");
  lp_json choice = lp_json_item(&choices, 0), logprobs = lp_json_member(&choice, "logprobs");
  lp_json lists = lp_json_member(&logprobs, "top_logprobs"), top = lp_json_item(&lists, 0);
  lp_json content = lp_json_member(&logprobs, "content"), first = lp_json_item(&content, 0);
  if (lp_json_is(&content, LP_JSON_ARRAY)) top = lp_json_member(&first, "top_logprobs");
  lp_status status = LP_OK;
  if (!lp_json_is(&top, LP_JSON_OBJECT) && !lp_json_is(&top, LP_JSON_ARRAY))
    status = lp_error(diag, LP_LOC_FILE(url), "the answer holds no log-probabilities");
  for (size_t i = 0; i < lp_json_count(&top) && status == LP_OK; i++)
    status = read_alternative(&top, i, offered, probability, diag);
  return status;
}

static void free_transfer(const endpoint *self, transfer *t) {
  if (t->curl) self->functions->easy_cleanup(t->curl);
  lp_buf_free(&t->answer);
  free(t);
}

/* NULL: libcurl does not start. */
static transfer *create_transfer(const endpoint *self) {
  const lp_curl_library *library = self->functions;
  transfer *t = lp_alloc(sizeof *t);
  CURL *curl = t->curl = library->easy_init();
  if (!curl) {
    free(t);
    return NULL;
  }
  (void)library->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)library->easy_setopt(curl, CURLOPT_HTTPHEADER, self->headers);
  (void)library->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ceil(self->timeout_ms));
  (void)library->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  (void)library->easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  (void)library->easy_setopt(curl, CURLOPT_ERRORBUFFER, t->error);
  (void)library->easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  (void)library->easy_setopt(curl, CURLOPT_WRITEDATA, &t->answer);
  return t;
}

static transfer *take_transfer(endpoint *self) {
  (void)pthread_mutex_lock(&self->lock);
  transfer *t = self->idle.count > 0 ? self->idle.data[--self->idle.count] : NULL;
  (void)pthread_mutex_unlock(&self->lock);
  return t ? t : create_transfer(self);
}

static void give_back(endpoint *self, transfer *t) {
  (void)pthread_mutex_lock(&self->lock);
  lp_vec_push(&self->idle, t);
  (void)pthread_mutex_unlock(&self->lock);
}

static lp_status score(lp_decider *decider, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT],
                       lp_diag *diag) {
  endpoint *self = (endpoint *)decider;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    probability[route] = 0;
  transfer *t = take_transfer(self);
  bool chats = false;
  if (!t) return lp_error(diag, LP_LOC_FILE(self->url[0]), "libcurl does not start");
  lp_buf text = {0};
  lp_prompt_text(prompt, &text);
  const question of = {.prompt = text.data, .size = text.size, .tokens = 1, .logprobs = true};
  lp_status status = ask_either(self, t, &of, &chats, diag);
  lp_buf_free(&text);
  if (status == LP_OK) status = read_answer(self->url[chats], &t->answer, prompt->offered, probability, diag);
  if (status == LP_OK) status = lp_label_normalise(prompt->offered, probability, diag);
  give_back(self, t);
  return status;
}

/* Reads choices[0].text, or choices[0].message.content of a chat. */
static lp_status read_text(const char *url, const lp_buf *answer, lp_buf *out, lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(url, lp_buf_text(answer), answer->size, LP_JSON_ALLOW_DUPLICATES | LP_JSON_REFUSE_NUL, &document,
                       diag));
  lp_json root = lp_json_root(url, document), choices = lp_json_member(&root, "choices");
  lp_json choice = lp_json_item(&choices, 0), plain = lp_json_member(&choice, "text");
  lp_json message = lp_json_member(&choice, "message"), content = lp_json_member(&message, "content");
  const char *text = lp_json_text_or(&plain, lp_json_text_or(&content, NULL));
  if (text) lp_buf_puts(out, text);
  return text ? LP_OK : lp_error(diag, LP_LOC_FILE(url), "the answer holds no text");
}

static lp_status write_text(lp_decider *decider, const char *prompt, lp_buf *out, lp_diag *diag) {
  endpoint *self = (endpoint *)decider;
  const question of = {.prompt = prompt, .size = strlen(prompt), .tokens = LP_KEYWORD_TOKENS};
  transfer *t = take_transfer(self);
  bool chats = false;
  if (!t) return lp_error(diag, LP_LOC_FILE(self->url[0]), "libcurl does not start");
  lp_status status = ask_either(self, t, &of, &chats, diag);
  if (status == LP_OK) status = read_text(self->url[chats], &t->answer, out, diag);
  give_back(self, t);
  return status;
}

static void close_endpoint(lp_decider *decider) {
  LP_OWNED(lp_free_at) endpoint *self = (endpoint *)decider;
  for (size_t i = 0; i < self->idle.count; i++)
    free_transfer(self, self->idle.data[i]);
  lp_vec_free(&self->idle);
  self->functions->slist_free_all(self->headers);
  (void)pthread_mutex_destroy(&self->lock);
  free(self->url[false]);
  free(self->url[true]);
  free(self->model);
}

static void set_headers(endpoint *self, const char *key) {
  self->headers = self->functions->slist_append(NULL, "Content-Type: application/json");
  if (!key) return;
  LP_OWNED(lp_buf_free) lp_buf line = {0};
  lp_buf_printf(&line, "Authorization: Bearer %s", key);
  self->headers = self->functions->slist_append(self->headers, line.data);
}

lp_status lp_decider_endpoint(const lp_endpoint_options *options, lp_decider **out, lp_diag *diag) {
  const lp_curl_library *library = lp_curl_library_get();
  if (!library) return lp_error(diag, LP_LOC_FILE(options->url), "libcurl.so.4 is not there");
  endpoint *self = lp_alloc(sizeof *self);
  *self = (endpoint){.decider = {"endpoint", score, close_endpoint, true, write_text},
                     .functions = library,
                     .timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : 300};
  lp_buf plain = {0}, chat = {0};
  lp_buf_printf(&plain, "%s/completions", options->url);
  lp_buf_printf(&chat, "%s/chat/completions", options->url);
  self->url[false] = plain.data;
  self->url[true] = chat.data;
  self->model = lp_strdup(options->model);
  (void)pthread_mutex_init(&self->lock, NULL);
  set_headers(self, options->key);
  *out = &self->decider;
  return LP_OK;
}
