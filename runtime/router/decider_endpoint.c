/* A language model with an OpenAI-compatible API: POST {url}/completions, one token with its log-probabilities. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/router/curl_library.h"
#include "runtime/router/labels.h"

enum { ALTERNATIVES = 20, MOST_ANSWER = 1 << 20 };

typedef struct {
  lp_decider decider;
  const lp_curl_library *functions;
  CURL *curl;
  struct curl_slist *headers;
  char *url, *model;
  lp_buf answer;
  char curl_error[CURL_ERROR_SIZE];
} endpoint;

static size_t receive(char *data, size_t size, size_t count, void *user) {
  lp_buf *answer = user;
  if (answer->size + size * count > MOST_ANSWER) return 0; /* curl reports a write error */
  lp_buf_append(answer, data, size * count);
  return size * count;
}

static lp_status ask(endpoint *self, const lp_prompt *prompt, lp_diag *diag) {
  lp_buf text = {0};
  lp_prompt_text(prompt, &text);
  json_t *request = json_pack("{s:s, s:s, s:i, s:i, s:i}", "model", self->model, "prompt", text.data, "max_tokens", 1,
                              "temperature", 0, "logprobs", ALTERNATIVES);
  lp_buf_free(&text);
  char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
  json_decref(request);
  if (!body) return lp_error(diag, (lp_loc){.file = self->url}, "the keywords are not UTF-8");
  lp_buf_clear(&self->answer);
  self->curl_error[0] = 0;
  (void)self->functions->easy_setopt(self->curl, CURLOPT_POSTFIELDS, body);
  CURLcode code = self->functions->easy_perform(self->curl);
  free(body);
  long http = 0;
  (void)self->functions->easy_getinfo(self->curl, CURLINFO_RESPONSE_CODE, &http);
  if (code != CURLE_OK)
    return lp_error(diag, (lp_loc){.file = self->url}, "%s",
                    self->curl_error[0] != 0 ? self->curl_error : self->functions->easy_strerror(code));
  if (http != 200) return lp_error(diag, (lp_loc){.file = self->url}, "answers with HTTP status %ld", http);
  return LP_OK;
}

static void add_token(const char *token, double logprob, unsigned offered, double probability[LP_ROUTE_COUNT]) {
  lp_route route = lp_label_of_token(token, offered);
  if (route != LP_ROUTE_COUNT && logprob <= 0) probability[route] += exp(logprob);
}

/* choices[0].logprobs.top_logprobs[0]: {token: logprob, ...}. */
static lp_status read_answer(const endpoint *self, unsigned offered, double probability[LP_ROUTE_COUNT],
                             lp_diag *diag) {
  json_error_t error;
  json_t *root = json_loadb(self->answer.data, self->answer.size, 0, &error);
  if (!root) return lp_error(diag, (lp_loc){.file = self->url}, "the answer is not JSON: %s", error.text);
  json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
  json_t *top = json_array_get(json_object_get(json_object_get(choice, "logprobs"), "top_logprobs"), 0);
  const char *token;
  json_t *logprob;
  json_object_foreach(top, token, logprob) add_token(token, json_number_value(logprob), offered, probability);
  lp_status status = LP_OK;
  if (!json_is_object(top))
    status = lp_error(diag, (lp_loc){.file = self->url}, "the answer holds no log-probabilities");
  json_decref(root);
  return status;
}

static lp_status score(lp_decider *decider, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT],
                       lp_diag *diag) {
  endpoint *self = (endpoint *)decider;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    probability[route] = 0;
  lp_status status = ask(self, prompt, diag);
  if (status == LP_OK) status = read_answer(self, prompt->offered, probability, diag);
  if (status == LP_OK) status = lp_label_normalise(prompt->offered, probability, diag);
  return status;
}

static void close_endpoint(lp_decider *decider) {
  endpoint *self = (endpoint *)decider;
  self->functions->slist_free_all(self->headers);
  if (self->curl) self->functions->easy_cleanup(self->curl);
  free(self->url);
  free(self->model);
  lp_buf_free(&self->answer);
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
  if (!library) return lp_error(diag, (lp_loc){.file = options->url}, "libcurl.so.4 is not there");
  endpoint *self = lp_alloc(sizeof *self);
  *self =
      (endpoint){.decider = {"endpoint", score, close_endpoint}, .functions = library, .curl = library->easy_init()};
  lp_buf url = {0};
  lp_buf_printf(&url, "%s/completions", options->url);
  self->url = url.data;
  self->model = lp_strdup(options->model);
  if (!self->curl) {
    close_endpoint(&self->decider);
    return lp_error(diag, (lp_loc){.file = options->url}, "libcurl does not start");
  }
  set_headers(self, options->key);
  CURL *curl = self->curl;
  double timeout = options->timeout_ms > 0 ? options->timeout_ms : 300;
  (void)library->easy_setopt(curl, CURLOPT_URL, self->url);
  (void)library->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)library->easy_setopt(curl, CURLOPT_HTTPHEADER, self->headers);
  (void)library->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ceil(timeout));
  (void)library->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  (void)library->easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  (void)library->easy_setopt(curl, CURLOPT_ERRORBUFFER, self->curl_error);
  (void)library->easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  (void)library->easy_setopt(curl, CURLOPT_WRITEDATA, &self->answer);
  *out = &self->decider;
  return LP_OK;
}
