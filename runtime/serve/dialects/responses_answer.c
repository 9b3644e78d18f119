/* OpenAI's responses: answers, whole and as events. An answer is a list of items: a message, and calls of functions. */

#include "runtime/serve/dialects/responses.h"

typedef enum { IN_PROGRESS, COMPLETED, INCOMPLETE, FAILED } progress;

static const char *const words[] = {
    [IN_PROGRESS] = "in_progress", [COMPLETED] = "completed", [INCOMPLETE] = "incomplete", [FAILED] = "failed"};

static void put_id(lp_json_writer *json, const char *key, const char *kind, const lp_telling *t, size_t index) {
  char id[sizeof t->id + 32];
  (void)snprintf(id, sizeof id, "%s_%s%.0zu", kind, t->id, index);
  lp_json_put_text(json, key, id);
}

static void put_text_part(lp_json_writer *json, const char *key, const char *text) {
  lp_json_put_object(json, key);
  lp_json_put_text(json, "type", "output_text");
  lp_json_put_text(json, "text", text);
  lp_json_put_array(json, "annotations");
  lp_json_put_end(json);
  lp_json_put_array(json, "logprobs");
  lp_json_put_end(json);
  lp_json_put_end(json);
}

/* `text` NULL: the message has no part yet. */
static void put_message(lp_json_writer *json, const char *key, const lp_telling *t, progress status, const char *text) {
  lp_json_put_object(json, key);
  put_id(json, "id", "msg", t, 0);
  lp_json_put_text(json, "type", "message");
  lp_json_put_text(json, "status", words[status]);
  lp_json_put_text(json, "role", "assistant");
  lp_json_put_array(json, "content");
  if (text) put_text_part(json, NULL, text);
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static void put_call(lp_json_writer *json, const char *key, const lp_telling *t, size_t index, progress status) {
  const lp_whole_call *call = &t->whole->calls.data[index];
  lp_json_put_object(json, key);
  put_id(json, "id", "fc", t, index + 1);
  lp_json_put_text(json, "type", "function_call");
  lp_json_put_text(json, "status", words[status]);
  lp_json_put_text(json, "call_id", lp_buf_text(&call->id));
  lp_json_put_text(json, "name", lp_buf_text(&call->name));
  lp_json_put_text(json, "arguments", status == IN_PROGRESS ? "" : lp_buf_text(&call->arguments));
  lp_json_put_end(json);
}

static progress end_of(const lp_telling *t) {
  const lp_finish finish = t->whole->finish;
  return finish == LP_FINISH_STOP || finish == LP_FINISH_TOOLS ? COMPLETED : INCOMPLETE;
}

static bool has_message(const lp_telling *t) {
  return t->whole->text.size > 0 || t->whole->calls.count == 0;
}

static void put_output(lp_json_writer *json, const lp_telling *t, progress status) {
  lp_json_put_array(json, "output");
  if (status != IN_PROGRESS && has_message(t)) put_message(json, NULL, t, status, lp_buf_text(&t->whole->text));
  for (size_t i = 0; status != IN_PROGRESS && i < t->whole->calls.count; i++)
    put_call(json, NULL, t, i, COMPLETED);
  lp_json_put_end(json);
}

static void put_usage(lp_json_writer *json, const lp_usage *usage) {
  const int64_t prompt = usage->prompt_tokens > 0 ? usage->prompt_tokens : 0;
  lp_json_put_object(json, "usage");
  lp_json_put_integer(json, "input_tokens", prompt);
  lp_json_put_object(json, "input_tokens_details");
  lp_json_put_integer(json, "cached_tokens", usage->cached_tokens);
  lp_json_put_end(json);
  lp_json_put_integer(json, "output_tokens", usage->tokens);
  lp_json_put_object(json, "output_tokens_details");
  lp_json_put_integer(json, "reasoning_tokens", 0);
  lp_json_put_end(json);
  lp_json_put_integer(json, "total_tokens", prompt + usage->tokens);
  lp_json_put_end(json);
}

/* The members of the request that an answer repeats, or their defaults. */
static void put_request(lp_json_writer *json, const lp_telling *t) {
  static const struct {
    const char *key, *otherwise;
  } members[] = {{"instructions", "null"},
                 {"max_output_tokens", "null"},
                 {"parallel_tool_calls", "true"},
                 {"previous_response_id", "null"},
                 {"store", "true"},
                 {"temperature", "null"},
                 {"text", "{\"format\":{\"type\":\"text\"}}"},
                 {"tool_choice", "\"auto\""},
                 {"tools", "[]"},
                 {"top_p", "null"},
                 {"metadata", "{}"}};
  lp_json body = lp_json_root("the request", t->asked);
  for (size_t i = 0; i < LP_COUNT(members); i++) {
    lp_json at = lp_json_member(&body, members[i].key);
    if (lp_json_is_given(&at))
      lp_json_put_value(json, members[i].key, at.value);
    else
      lp_dialect_value(json, members[i].key, members[i].otherwise);
  }
}

static void put_response(lp_json_writer *json, const char *key, const lp_telling *t, progress status, const char *why) {
  lp_json_put_object(json, key);
  put_id(json, "id", "resp", t, 0);
  lp_json_put_text(json, "object", "response");
  lp_json_put_integer(json, "created_at", t->head.created);
  lp_json_put_text(json, "status", words[status]);
  lp_json_put_text(json, "model", t->head.model);
  if (why) {
    lp_json_put_object(json, "error");
    lp_json_put_text(json, "code", "server_error");
    lp_json_put_text(json, "message", why);
    lp_json_put_end(json);
  } else {
    lp_json_put_null(json, "error");
  }
  if (status == INCOMPLETE) {
    lp_json_put_object(json, "incomplete_details");
    lp_json_put_text(json, "reason", t->whole->finish == LP_FINISH_LENGTH ? "max_output_tokens" : "content_filter");
    lp_json_put_end(json);
  } else {
    lp_json_put_null(json, "incomplete_details");
  }
  put_output(json, t, status);
  put_request(json, t);
  if (status == COMPLETED || status == INCOMPLETE)
    put_usage(json, t->usage);
  else
    lp_json_put_null(json, "usage");
  lp_json_put_end(json);
}

void lp_responses_whole(const lp_telling *t, lp_buf *out) {
  lp_json_writer json = lp_answer_begin(out);
  put_response(&json, NULL, t, end_of(t), NULL);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static lp_json_writer event(lp_telling *t, lp_buf *out, const char *type) {
  lp_json_writer json = lp_dialect_event(out, type);
  lp_json_put_integer(&json, "sequence_number", t->events++);
  return json;
}

static void response_event(lp_telling *t, lp_buf *out, const char *type, progress status, const char *why) {
  lp_json_writer json = event(t, out, type);
  put_response(&json, "response", t, status, why);
  lp_dialect_event_end(&json);
}

static void begin(lp_telling *t, lp_buf *out) {
  if (t->has_begun) return;
  t->has_begun = true;
  response_event(t, out, "response.created", IN_PROGRESS, NULL);
  response_event(t, out, "response.in_progress", IN_PROGRESS, NULL);
}

/* An event of the message's only part. */
static lp_json_writer part_event(lp_telling *t, lp_buf *out, const char *type) {
  lp_json_writer json = event(t, out, type);
  put_id(&json, "item_id", "msg", t, 0);
  lp_json_put_integer(&json, "output_index", 0);
  lp_json_put_integer(&json, "content_index", 0);
  return json;
}

static void item_event(lp_telling *t, lp_buf *out, const char *type, int64_t index, progress status) {
  lp_json_writer json = event(t, out, type);
  lp_json_put_integer(&json, "output_index", index);
  if (index == 0 && t->has_text)
    put_message(&json, "item", t, status, status == IN_PROGRESS ? NULL : lp_buf_text(&t->whole->text));
  else
    put_call(&json, "item", t, (size_t)(index - t->has_text), status);
  lp_dialect_event_end(&json);
}

static void begin_text(lp_telling *t, lp_buf *out) {
  if (t->has_text) return;
  t->has_text = true;
  item_event(t, out, "response.output_item.added", 0, IN_PROGRESS);
  lp_json_writer json = part_event(t, out, "response.content_part.added");
  put_text_part(&json, "part", "");
  lp_dialect_event_end(&json);
}

static void text_event(lp_telling *t, lp_buf *out, const char *type, const char *key, const char *text) {
  lp_json_writer json = part_event(t, out, type);
  lp_json_put_text(&json, key, text);
  lp_json_put_array(&json, "logprobs");
  lp_json_put_end(&json);
  lp_dialect_event_end(&json);
}

void lp_responses_piece(lp_telling *t, const char *text, lp_buf *out) {
  begin(t, out);
  if (!text[0]) return;
  begin_text(t, out);
  text_event(t, out, "response.output_text.delta", "delta", text);
}

static void end_text(lp_telling *t, lp_buf *out) {
  const char *text = lp_buf_text(&t->whole->text);
  begin_text(t, out);
  text_event(t, out, "response.output_text.done", "text", text);
  lp_json_writer json = part_event(t, out, "response.content_part.done");
  put_text_part(&json, "part", text);
  lp_dialect_event_end(&json);
  item_event(t, out, "response.output_item.done", 0, end_of(t));
}

static void call_event(lp_telling *t, lp_buf *out, const char *type, size_t index, const char *key) {
  const lp_whole_call *call = &t->whole->calls.data[index];
  lp_json_writer json = event(t, out, type);
  put_id(&json, "item_id", "fc", t, index + 1);
  lp_json_put_integer(&json, "output_index", (int64_t)index + t->has_text);
  lp_json_put_text(&json, "name", lp_buf_text(&call->name));
  lp_json_put_text(&json, key, lp_buf_text(&call->arguments));
  lp_dialect_event_end(&json);
}

void lp_responses_end(lp_telling *t, lp_buf *out) {
  begin(t, out);
  if (has_message(t)) end_text(t, out);
  for (size_t i = 0; i < t->whole->calls.count; i++) {
    const int64_t index = (int64_t)i + t->has_text;
    item_event(t, out, "response.output_item.added", index, IN_PROGRESS);
    call_event(t, out, "response.function_call_arguments.delta", i, "delta");
    call_event(t, out, "response.function_call_arguments.done", i, "arguments");
    item_event(t, out, "response.output_item.done", index, COMPLETED);
  }
  const bool completed = end_of(t) == COMPLETED;
  response_event(t, out, completed ? "response.completed" : "response.incomplete", end_of(t), NULL);
}

void lp_responses_fail(lp_telling *t, const char *why, lp_buf *out) {
  begin(t, out);
  response_event(t, out, "response.failed", FAILED, why);
}

char *lp_responses_error(unsigned status, const char *text) {
  if (status == 404) return lp_answer_no_model(text);
  return lp_answer_error(status < 500 ? "invalid_request_error" : "server_error", text);
}
