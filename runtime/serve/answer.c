/* The API's JSON. */
#include <stdlib.h>
#include <time.h>

#include "runtime/serve/serve_internal.h"

static char *dump(json_t *root) {
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  return text ? text : lp_strdup("{}");
}

const char *lp_answer_finish(const lp_usage *usage) {
  return usage->cut ? "length" : "stop";
}

static json_t *head(const lp_completion *request, const char *object, const char *id, const char *model) {
  return json_pack("{s:s+, s:s, s:I, s:s}", "id", request->chat ? "chatcmpl-" : "cmpl-", id, "object", object,
                   "created", (json_int_t)time(NULL), "model", model);
}

static json_t *count_tokens(const lp_usage *usage) {
  return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)usage->prompt_tokens, "completion_tokens",
                   (json_int_t)usage->tokens, "total_tokens",
                   (json_int_t)usage->prompt_tokens + (json_int_t)usage->tokens);
}

char *lp_answer_whole(const lp_completion *request, const char *id, const char *model, const char *text,
                      const lp_usage *usage) {
  json_t *root = head(request, request->chat ? "chat.completion" : "text_completion", id, model);
  json_t *choice = json_pack("{s:i, s:n, s:s}", "index", 0, "logprobs", "finish_reason", lp_answer_finish(usage));
  if (request->chat)
    json_object_set_new(choice, "message", json_pack("{s:s, s:s}", "role", "assistant", "content", text));
  else
    json_object_set_new(choice, "text", json_string(text));
  json_object_set_new(root, "choices", json_pack("[o]", choice));
  if (usage->prompt_tokens >= 0) json_object_set_new(root, "usage", count_tokens(usage));
  return dump(root);
}

char *lp_answer_chunk_usage(const lp_completion *request, const char *id, const char *model, const lp_usage *usage) {
  json_t *root = head(request, request->chat ? "chat.completion.chunk" : "text_completion", id, model);
  json_object_set_new(root, "choices", json_array());
  json_object_set_new(root, "usage", usage->prompt_tokens >= 0 ? count_tokens(usage) : json_null());
  return dump(root);
}

static json_t *delta(const char *text, bool first) {
  return json_pack("{s:s*, s:s}", "role", first ? "assistant" : NULL, "content", text);
}

char *lp_answer_chunk(const lp_completion *request, const char *id, const char *model, const char *text, bool first,
                      const char *finish) {
  json_t *root = head(request, request->chat ? "chat.completion.chunk" : "text_completion", id, model);
  json_t *choice = json_pack("{s:i, s:s?}", "index", 0, "finish_reason", finish);
  if (request->chat)
    json_object_set_new(choice, "delta", finish ? json_object() : delta(text, first));
  else
    json_object_set_new(choice, "text", json_string(text));
  json_object_set_new(root, "choices", json_pack("[o]", choice));
  return dump(root);
}

char *lp_answer_error(const char *type, const char *text) {
  return dump(json_pack("{s:{s:s, s:s, s:n, s:n}}", "error", "message", text, "type", type, "param", "code"));
}

char *lp_answer_models(const lp_serve_config *config) {
  const char *const names[] = {"auto", config->bundle ? "edge" : NULL, config->url ? "cloud" : NULL};
  json_t *list = json_array();
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (names[i])
      json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:s}", "id", names[i], "object", "model", "created", 0,
                                            "owned_by", "llmpart"));
  return dump(json_pack("{s:s, s:o}", "object", "list", "data", list));
}
