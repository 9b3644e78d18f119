/* A request's JSON. Unknown members are ignored, as other servers of this API do; known ones that are not supported
 * are an error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/serve/serve_internal.h"

#define NONE ((lp_loc){0})

static lp_status read_number(const json_t *body, const char *key, double least, double most, double *out,
                             lp_diag *diag) {
  json_t *value = json_object_get(body, key);
  if (!value || json_is_null(value)) return LP_OK;
  double number = json_number_value(value);
  if (!json_is_number(value) || !(number >= least && number <= most))
    return lp_error(diag, NONE, "'%s' must be a number from %g to %g", key, least, most);
  *out = number;
  return LP_OK;
}

/* Text, or a list of parts that are text. */
static const char *read_content(const json_t *content, lp_completion *out) {
  const json_t *part;
  size_t index;
  if (!json_is_array(content)) return json_string_value(content);
  lp_buf text = {0};
  json_array_foreach(content, index, part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    const char *piece = json_string_value(json_object_get(part, "text"));
    if (!type || strcmp(type, "text") != 0 || !piece) {
      lp_buf_free(&text);
      return NULL;
    }
    lp_buf_puts(&text, piece);
  }
  lp_buf_puts(&text, "");
  char *whole = text.data;
  lp_vec_push(&out->joined, whole);
  return whole;
}

static lp_status read_messages(lp_completion *out, lp_diag *diag) {
  json_t *list = json_object_get(out->body, "messages"), *message;
  size_t index;
  if (!json_is_array(list) || json_array_size(list) == 0)
    return lp_error(diag, NONE, "'messages' must be a list of at least one message");
  out->messages = lp_alloc(json_array_size(list) * sizeof *out->messages);
  json_array_foreach(list, index, message) {
    lp_chat_message *to = &out->messages[out->count];
    to->role = json_string_value(json_object_get(message, "role"));
    to->content = read_content(json_object_get(message, "content"), out);
    if (!to->role || !to->content)
      return lp_error(diag, NONE, "'messages[%zu]' must have 'role' and 'content', both text", index);
    out->count++;
  }
  return LP_OK;
}

/* Does a value ask for nothing? Clients send some keys with what is usual. */
static bool is_usual(const char *key, const json_t *value) {
  if (!value || json_is_null(value) || json_is_false(value)) return true;
  if (lp_has_suffix(key, "_penalty")) return json_is_number(value) && !(json_number_value(value) != 0);
  if (lp_streq(key, "n") || lp_streq(key, "best_of")) return json_is_integer(value) && json_integer_value(value) == 1;
  if (lp_streq(key, "response_format")) return lp_streq(json_string_value(json_object_get(value, "type")), "text");
  if (json_is_array(value)) return json_array_size(value) == 0;
  return json_is_object(value) && json_object_size(value) == 0;
}

/* What other servers can do and this one cannot. */
static lp_status refuse_unknown(const json_t *body, lp_diag *diag) {
  static const char *const keys[] = {"tools",           "functions",  "logprobs",          "suffix",
                                     "response_format", "logit_bias", "frequency_penalty", "presence_penalty",
                                     "best_of",         "echo",       "top_logprobs",      "n"};
  for (size_t i = 0; i < LP_COUNT(keys); i++)
    if (!is_usual(keys[i], json_object_get(body, keys[i])))
      return lp_error(diag, NONE, lp_streq(keys[i], "n") ? "'%s' must be 1" : "'%s' is not supported", keys[i]);
  return LP_OK;
}

/* 'stop': text, or a list of texts. */
static lp_status read_stop(lp_completion *out, lp_diag *diag) {
  enum { MOST = 16 };
  json_t *stop = json_object_get(out->body, "stop");
  if (!stop || json_is_null(stop)) return LP_OK;
  size_t count = json_is_array(stop) ? json_array_size(stop) : 1;
  if (count > MOST) return lp_error(diag, NONE, "'stop' has %zu texts, at most %d are taken", count, MOST);
  out->stop = lp_alloc((count + 1) * sizeof *out->stop);
  for (; out->stop_count < count; out->stop_count++) {
    const char *text = json_string_value(json_is_array(stop) ? json_array_get(stop, out->stop_count) : stop);
    if (!text || text[0] == 0)
      return lp_error(diag, NONE, "'stop' must be text, or a list of texts, none of them empty");
    out->stop[out->stop_count] = text;
  }
  return LP_OK;
}

static lp_status read_stream(lp_completion *out, lp_diag *diag) {
  json_t *stream = json_object_get(out->body, "stream");
  if (stream && !json_is_boolean(stream) && !json_is_null(stream))
    return lp_error(diag, NONE, "'stream' must be true or false");
  out->stream = json_is_true(stream);
  out->stream_usage = json_is_true(json_object_get(json_object_get(out->body, "stream_options"), "include_usage"));
  return LP_OK;
}

static lp_status read_settings(const lp_serve_config *config, lp_completion *out, lp_diag *diag) {
  double most = (double)config->max_tokens, temperature = 1, top_p = 1, seed = 0;
  LP_TRY(read_number(out->body, "max_tokens", 1, (double)config->max_tokens, &most, diag));
  LP_TRY(read_number(out->body, "max_completion_tokens", 1, (double)config->max_tokens, &most, diag));
  LP_TRY(read_number(out->body, "temperature", 0, 2, &temperature, diag));
  LP_TRY(read_number(out->body, "top_p", 1e-6, 1, &top_p, diag));
  LP_TRY(read_number(out->body, "seed", -9007199254740992.0, 9007199254740992.0, &seed, diag));
  out->max_tokens = (int64_t)most;
  out->sampling = (lp_sampling){.temperature = temperature, .top_p = top_p, .seed = (uint64_t)(int64_t)seed};
  LP_TRY(read_stop(out, diag));
  return read_stream(out, diag);
}

static size_t text_size(const lp_completion *request) {
  size_t size = request->prompt ? strlen(request->prompt) : 0;
  for (size_t i = 0; i < request->count; i++)
    size += strlen(request->messages[i].content);
  return size;
}

lp_status lp_completion_read(const lp_serve_config *config, bool chat, const char *body, size_t size,
                             lp_completion *out, lp_diag *diag) {
  json_error_t error;
  *out = (lp_completion){.chat = chat};
  out->body = json_loadb(body, size, JSON_REJECT_DUPLICATES, &error);
  if (!out->body)
    return lp_error(diag, NONE, "the body is not JSON: line %d, column %d: %s", error.line, error.column, error.text);
  if (!json_is_object(out->body)) return lp_error(diag, NONE, "the body must be a JSON object");
  out->model = json_string_value(json_object_get(out->body, "model"));
  if (!out->model) return lp_error(diag, NONE, "'model' is missing: edge, cloud or auto");
  LP_TRY(refuse_unknown(out->body, diag));
  if (chat) LP_TRY(read_messages(out, diag));
  json_t *prompt = json_object_get(out->body, "prompt");
  out->prompt = json_string_value(json_array_size(prompt) == 1 ? json_array_get(prompt, 0) : prompt);
  if (!chat && (!out->prompt || out->prompt[0] == 0))
    return lp_error(diag, NONE, "'prompt' must be text that is not empty");
  out->keywords = json_string_value(json_object_get(out->body, "keywords"));
  if (!out->keywords)
    out->keywords = text_size(out) < 200 ? "short prompt" : text_size(out) < 2000 ? "prompt" : "long prompt";
  return read_settings(config, out, diag);
}

void lp_completion_free(lp_completion *completion) {
  json_decref(completion->body);
  free(completion->messages);
  free(completion->stop);
  for (size_t i = 0; i < completion->joined.count; i++)
    free(completion->joined.data[i]);
  lp_vec_free(&completion->joined);
  *completion = (lp_completion){0};
}
