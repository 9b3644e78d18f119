#include "runtime/serve/answer.h"

#include <stdlib.h>
#include <time.h>

lp_json_writer lp_answer_begin(lp_buf *out) {
  return lp_json_writer_begin(out, (lp_json_style){.has_no_space = true, .marks_reals = true});
}

const char *lp_answer_finish(const lp_usage *usage) {
  return usage->cut ? "length" : "stop";
}

/* Opens the object; the caller closes it. */
static lp_json_writer begin(const lp_completion *request, const char *object, const char *id, const char *model,
                            lp_buf *out) {
  lp_buf whole_id = {0};
  lp_json_writer json = lp_answer_begin(out);
  lp_buf_printf(&whole_id, "%s%s", request->chat ? "chatcmpl-" : "cmpl-", id);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "id", whole_id.data);
  lp_json_put_text(&json, "object", object);
  lp_json_put_integer(&json, "created", (int64_t)time(NULL));
  lp_json_put_text(&json, "model", model);
  lp_buf_free(&whole_id);
  return json;
}

static void put_usage(lp_json_writer *json, const lp_usage *usage) {
  lp_json_put_object(json, "usage");
  lp_json_put_integer(json, "prompt_tokens", usage->prompt_tokens);
  lp_json_put_integer(json, "completion_tokens", usage->tokens);
  lp_json_put_integer(json, "total_tokens", usage->prompt_tokens + usage->tokens);
  lp_json_put_end(json);
}

char *lp_answer_whole(const lp_completion *request, const char *id, const char *model, const char *text,
                      const lp_usage *usage) {
  lp_buf out = {0};
  lp_json_writer json = begin(request, request->chat ? "chat.completion" : "text_completion", id, model, &out);
  lp_json_put_array(&json, "choices");
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "index", 0);
  lp_json_put_null(&json, "logprobs");
  lp_json_put_text(&json, "finish_reason", lp_answer_finish(usage));
  if (request->chat) {
    lp_json_put_object(&json, "message");
    lp_json_put_text(&json, "role", "assistant");
    lp_json_put_text(&json, "content", text);
    lp_json_put_end(&json);
  } else {
    lp_json_put_text(&json, "text", text);
  }
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  if (usage->prompt_tokens >= 0) put_usage(&json, usage);
  lp_json_put_end(&json);
  return out.data;
}

static lp_json_writer begin_chunk(const lp_completion *request, const char *id, const char *model, lp_buf *out) {
  lp_json_writer json = begin(request, request->chat ? "chat.completion.chunk" : "text_completion", id, model, out);
  lp_json_put_array(&json, "choices");
  return json;
}

char *lp_answer_chunk_usage(const lp_completion *request, const char *id, const char *model, const lp_usage *usage) {
  lp_buf out = {0};
  lp_json_writer json = begin_chunk(request, id, model, &out);
  lp_json_put_end(&json);
  if (usage->prompt_tokens >= 0)
    put_usage(&json, usage);
  else
    lp_json_put_null(&json, "usage");
  lp_json_put_end(&json);
  return out.data;
}

char *lp_answer_chunk(const lp_completion *request, const char *id, const char *model, const char *text, bool first,
                      const char *finish) {
  lp_buf out = {0};
  lp_json_writer json = begin_chunk(request, id, model, &out);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "index", 0);
  lp_json_put_text(&json, "finish_reason", finish);
  if (request->chat) {
    lp_json_put_object(&json, "delta");
    if (!finish && first) lp_json_put_text(&json, "role", "assistant");
    if (!finish) lp_json_put_text(&json, "content", text);
    lp_json_put_end(&json);
  } else {
    lp_json_put_text(&json, "text", text);
  }
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

char *lp_answer_error(const char *type, const char *text) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_object(&json, "error");
  lp_json_put_text(&json, "message", text);
  lp_json_put_text(&json, "type", type);
  lp_json_put_null(&json, "param");
  lp_json_put_null(&json, "code");
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

char *lp_answer_status(const char *status) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "status", status);
  lp_json_put_end(&json);
  return out.data;
}

char *lp_answer_models(const lp_serve_config *config) {
  const char *const names[] = {"auto", config->bundle ? lp_route_name(LP_ROUTE_EDGE) : NULL,
                               config->url ? lp_route_name(LP_ROUTE_CLOUD) : NULL};
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "object", "list");
  lp_json_put_array(&json, "data");
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    if (!names[i]) continue;
    lp_json_put_object(&json, NULL);
    lp_json_put_text(&json, "id", names[i]);
    lp_json_put_text(&json, "object", "model");
    lp_json_put_integer(&json, "created", 0);
    lp_json_put_text(&json, "owned_by", "llmpart");
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}
