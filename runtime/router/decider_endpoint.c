/* A decider that asks a language model with an OpenAI-compatible API: POST {url}/completions for one token with its
 * log-probabilities. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

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
  char *url, *model;
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

static void put_request(const endpoint *self, const char *prompt, lp_buf *out) {
  lp_json_writer json = lp_json_writer_begin(out, (lp_json_style){.has_no_space = true});
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "model", self->model);
  lp_json_put_text(&json, "prompt", prompt);
  lp_json_put_integer(&json, "max_tokens", 1);
  lp_json_put_integer(&json, "temperature", 0);
  lp_json_put_integer(&json, "logprobs", ALTERNATIVES);
  lp_json_put_end(&json);
}

static lp_status ask(const endpoint *self, transfer *t, const lp_prompt *prompt, lp_diag *diag) {
  lp_buf text = {0}, body = {0};
  lp_prompt_text(prompt, &text);
  bool is_utf8 = lp_utf8_valid(text.data, text.size);
  if (is_utf8) put_request(self, text.data, &body);
  lp_buf_free(&text);
  if (!is_utf8) return lp_error(diag, LP_LOC_FILE(self->url), "the keywords are not UTF-8");
  lp_buf_clear(&t->answer);
  t->error[0] = 0;
  (void)self->functions->easy_setopt(t->curl, CURLOPT_POSTFIELDS, body.data);
  CURLcode code = self->functions->easy_perform(t->curl);
  lp_buf_free(&body);
  long http = 0;
  (void)self->functions->easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
  if (code != CURLE_OK)
    return lp_error(diag, LP_LOC_FILE(self->url), "%s",
                    t->error[0] != 0 ? t->error : self->functions->easy_strerror(code));
  if (http != 200) return lp_error(diag, LP_LOC_FILE(self->url), "answers with HTTP status %ld", http);
  return LP_OK;
}

static void add_token(const char *token, double logprob, unsigned offered, double probability[LP_ROUTE_COUNT]) {
  lp_route route = lp_label_of_token(token, offered);
  if (route != LP_ROUTE_COUNT && logprob <= 0) probability[route] += exp(logprob);
}

/* Reads choices[0].logprobs.top_logprobs[0]: {token: logprob, ...}. Two tokens with the same text are two members with
 * the same key. */
static lp_status read_answer(const endpoint *self, const lp_buf *answer, unsigned offered,
                             double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(self->url, lp_buf_text(answer), answer->size, LP_JSON_ALLOW_DUPLICATES | LP_JSON_REFUSE_NUL,
                       &document, diag));
  lp_json root = lp_json_root(self->url, document), choices = lp_json_member(&root, "choices");
  lp_json choice = lp_json_item(&choices, 0), logprobs = lp_json_member(&choice, "logprobs");
  lp_json lists = lp_json_member(&logprobs, "top_logprobs"), top = lp_json_item(&lists, 0);
  lp_status status = LP_OK;
  if (lp_json_object(&top, NULL) != LP_OK)
    status = lp_error(diag, LP_LOC_FILE(self->url), "the answer holds no log-probabilities");
  for (size_t i = 0; i < lp_json_count(&top) && status == LP_OK; i++) {
    lp_json entry = lp_json_entry(&top, i);
    double logprob = 0;
    status = lp_json_number(&entry, -INFINITY, INFINITY, &logprob, diag);
    if (status == LP_OK) add_token(entry.key, logprob, offered, probability);
  }
  lp_json_free(document);
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
  (void)library->easy_setopt(curl, CURLOPT_URL, self->url);
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
  if (!t) return lp_error(diag, LP_LOC_FILE(self->url), "libcurl does not start");
  lp_status status = ask(self, t, prompt, diag);
  if (status == LP_OK) status = read_answer(self, &t->answer, prompt->offered, probability, diag);
  if (status == LP_OK) status = lp_label_normalise(prompt->offered, probability, diag);
  give_back(self, t);
  return status;
}

static void close_endpoint(lp_decider *decider) {
  endpoint *self = (endpoint *)decider;
  for (size_t i = 0; i < self->idle.count; i++)
    free_transfer(self, self->idle.data[i]);
  lp_vec_free(&self->idle);
  self->functions->slist_free_all(self->headers);
  (void)pthread_mutex_destroy(&self->lock);
  free(self->url);
  free(self->model);
  free(self);
}

static void set_headers(endpoint *self, const char *key) {
  self->headers = self->functions->slist_append(NULL, "Content-Type: application/json");
  if (!key) return;
  lp_buf line = {0};
  lp_buf_printf(&line, "Authorization: Bearer %s", key);
  self->headers = self->functions->slist_append(self->headers, line.data);
  lp_buf_free(&line);
}

lp_status lp_decider_endpoint(const lp_endpoint_options *options, lp_decider **out, lp_diag *diag) {
  const lp_curl_library *library = lp_curl_library_get();
  if (!library) return lp_error(diag, LP_LOC_FILE(options->url), "libcurl.so.4 is not there");
  endpoint *self = lp_alloc(sizeof *self);
  *self = (endpoint){.decider = {"endpoint", score, close_endpoint, true},
                     .functions = library,
                     .timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : 300};
  lp_buf url = {0};
  lp_buf_printf(&url, "%s/completions", options->url);
  self->url = url.data;
  self->model = lp_strdup(options->model);
  (void)pthread_mutex_init(&self->lock, NULL);
  set_headers(self, options->key);
  *out = &self->decider;
  return LP_OK;
}
