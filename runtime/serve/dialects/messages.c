/* Anthropic's messages: contents in blocks, of text, of calls, and of their results. */

#include "runtime/serve/dialects/dialect.h"

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static bool has_type(const lp_json *block, const char *type) {
  return lp_json_equals(LP_MEMBER(block, "type"), type);
}

/* The results of calls are messages of their own before the rest of a user's. */
static lp_status put_results(lp_json_writer *to, const lp_json *content, lp_diag *diag) {
  for (size_t i = 0; lp_json_is(content, LP_JSON_ARRAY) && i < lp_json_count(content); i++) {
    lp_json block = lp_json_item(content, i), result = lp_json_member(&block, "content");
    if (!has_type(&block, "tool_result")) continue;
    lp_json_put_object(to, NULL);
    lp_json_put_text(to, "role", "tool");
    lp_dialect_copy(to, "tool_call_id", &block, "tool_use_id");
    if (result.value)
      LP_TRY(lp_dialect_content(to, "content", &result, " text ", diag));
    else
      lp_json_put_text(to, "content", "");
    lp_json_put_end(to);
  }
  return LP_OK;
}

static void put_calls(lp_json_writer *to, const lp_json *content) {
  bool any = false;
  for (size_t i = 0; lp_json_is(content, LP_JSON_ARRAY) && i < lp_json_count(content); i++) {
    lp_json block = lp_json_item(content, i), input = lp_json_member(&block, "input");
    if (!has_type(&block, "tool_use")) continue;
    if (!any) lp_json_put_array(to, "tool_calls");
    lp_dialect_call(to, lp_json_text_of(&block, "id"), lp_json_text_of(&block, "name"), &input);
    any = true;
  }
  if (any) lp_json_put_end(to);
}

/* The texts of a content as a list of parts; *any: there are some. Thoughts are left out. */
static lp_status put_texts(lp_json_writer *to, const lp_json *content, bool *any, lp_diag *diag) {
  static const char others[] = " tool_use tool_result thinking redacted_thinking ";
  *any = false;
  LP_FOR_ITEMS(block, content) {
    const char *type = lp_json_text_of(&block, "type"), *text = lp_json_text_of(&block, "text");
    char word[40];
    (void)snprintf(word, sizeof word, " %s ", type ? type : "?");
    if (strstr(others, word)) continue;
    if (!lp_streq(word, " text "))
      return lp_json_error(&block, diag, "the type '%.40s' is not supported, only text and tools", type ? type : "?");
    if (!text) return lp_json_error(&block, diag, "'text' is missing");
    if (!*any) lp_json_put_array(to, "content");
    *any = true;
    lp_json_put_object(to, NULL);
    lp_json_put_text(to, "type", "text");
    lp_json_put_text(to, "text", text);
    lp_json_put_end(to);
  }
  if (*any) lp_json_put_end(to);
  return LP_OK;
}

static bool has_results_only(const lp_json *content) {
  LP_FOR_ITEMS(block, content)
    if (!has_type(&block, "tool_result")) return false;
  return lp_json_count(content) > 0;
}

static lp_status put_message(lp_json_writer *to, const lp_json *message, lp_diag *diag) {
  lp_json content = lp_json_member(message, "content");
  const bool is_list = lp_json_is(&content, LP_JSON_ARRAY);
  LP_TRY(put_results(to, &content, diag));
  if (is_list && has_results_only(&content)) return LP_OK;
  lp_json_put_object(to, NULL);
  lp_dialect_copy(to, "role", message, "role");
  bool any = false;
  if (is_list)
    LP_TRY(put_texts(to, &content, &any, diag));
  else
    lp_dialect_copy(to, "content", message, "content");
  if (is_list && !any) lp_json_put_text(to, "content", "");
  put_calls(to, &content);
  lp_json_put_end(to);
  return LP_OK;
}

static lp_status put_tools(lp_json_writer *to, const lp_json *body, lp_diag *diag) {
  lp_json tools = lp_json_member(body, "tools"), choice = lp_json_member(body, "tool_choice"),
          single = lp_json_member(&choice, "disable_parallel_tool_use");
  if (lp_json_count(&tools) == 0) return LP_OK;
  lp_json_put_array(to, "tools");
  for (size_t i = 0; i < lp_json_count(&tools); i++) {
    lp_json tool = lp_json_item(&tools, i), type = lp_json_member(&tool, "type");
    if (lp_json_is_given(&type) && !lp_json_equals(&type, "custom"))
      return lp_json_error(&tool, diag, "the type '%.40s' is not supported, only tools of the client",
                           lp_json_text_or(&type, "?"));
    lp_dialect_function(to, &tool, "input_schema");
  }
  lp_json_put_end(to);
  if (has_type(&choice, "tool")) {
    lp_dialect_choose(to, &choice);
  } else if (lp_json_is_given(&choice)) {
    const char *type = lp_json_text_of(&choice, "type");
    lp_json_put_text(to, "tool_choice", !type ? "?" : lp_streq(type, "any") ? "required" : type);
  }
  if (lp_json_is_true(&single)) lp_json_put_bool(to, "parallel_tool_calls", false);
  return LP_OK;
}

static lp_status put_request(const lp_json *body, lp_json_writer *to, lp_diag *diag) {
  lp_json system = lp_json_member(body, "system"), messages = lp_json_member(body, "messages"),
          thinking = lp_json_member(body, "thinking");
  LP_TRY(lp_dialect_check(body,
                          " model max_tokens messages system stop_sequences stream temperature top_p top_k tools "
                          "tool_choice metadata thinking service_tier keywords local_only budget_usd ",
                          diag));
  if (lp_json_is_given(&thinking) && !has_type(&thinking, "disabled"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'thinking' is not supported, except with the type 'disabled'");
  static const char *const same[] = {"model", "max_tokens", "stream",     "temperature", "top_p",
                                     "top_k", "keywords",   "local_only", "budget_usd"};
  for (size_t i = 0; i < LP_COUNT(same); i++)
    lp_dialect_copy(to, same[i], body, same[i]);
  lp_dialect_copy(to, "stop", body, "stop_sequences");
  lp_json_put_array(to, "messages");
  if (lp_json_is_given(&system)) {
    lp_json_put_object(to, NULL);
    lp_json_put_text(to, "role", "system");
    LP_TRY(lp_dialect_content(to, "content", &system, " text ", diag));
    lp_json_put_end(to);
  }
  LP_FOR_ITEMS(message, &messages)
    LP_TRY(put_message(to, &message, diag));
  lp_json_put_end(to);
  return put_tools(to, body, diag);
}

static lp_status translate(const lp_json *body, const char *earlier, lp_translation *out, lp_diag *diag) {
  (void)earlier;
  out->chat = true;
  lp_json_writer json = lp_answer_begin(&out->body);
  lp_json_put_object(&json, NULL);
  LP_TRY(put_request(body, &json, diag));
  lp_json_put_end(&json);
  return LP_OK;
}

static lp_status translate_count(const lp_json *body, const char *earlier, lp_translation *out, lp_diag *diag) {
  out->counts = true;
  return translate(body, earlier, out, diag);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void put_usage(lp_json_writer *json, const lp_usage *usage) {
  const int64_t cached = usage->cached_tokens,
                prompt = usage->prompt_tokens > cached ? usage->prompt_tokens - cached : 0;
  lp_json_put_object(json, "usage");
  lp_json_put_integer(json, "input_tokens", prompt);
  lp_json_put_integer(json, "cache_creation_input_tokens", 0);
  lp_json_put_integer(json, "cache_read_input_tokens", cached);
  lp_json_put_integer(json, "output_tokens", usage->tokens);
  lp_json_put_end(json);
}

static void put_stop(lp_json_writer *json, const lp_telling *t, bool has_ended) {
  static const char *const reasons[] = {[LP_FINISH_STOP] = "end_turn",
                                        [LP_FINISH_LENGTH] = "max_tokens",
                                        [LP_FINISH_TOOLS] = "tool_use",
                                        [LP_FINISH_FILTER] = "refusal",
                                        [LP_FINISH_ERROR] = "end_turn"};
  const char *stop = has_ended ? t->usage->stopped_by : NULL;
  lp_json_put_text(json, "stop_reason", !has_ended ? NULL : stop ? "stop_sequence" : reasons[t->whole->finish]);
  lp_json_put_text(json, "stop_sequence", stop);
}

static void put_id(lp_json_writer *json, const lp_telling *t) {
  char id[sizeof t->id + 8];
  (void)snprintf(id, sizeof id, "msg_%s", t->id);
  lp_json_put_text(json, "id", id);
  lp_json_put_text(json, "type", "message");
  lp_json_put_text(json, "role", "assistant");
  lp_json_put_text(json, "model", t->head.model);
}

/* Opens a block; the caller closes it. */
static void open_call(lp_json_writer *json, const char *key, const lp_whole_call *call) {
  lp_json_put_object(json, key);
  lp_json_put_text(json, "type", "tool_use");
  lp_json_put_text(json, "id", lp_buf_text(&call->id));
  lp_json_put_text(json, "name", lp_buf_text(&call->name));
}

static void whole(const lp_telling *t, lp_buf *out) {
  lp_json_writer json = lp_answer_begin(out);
  lp_json_put_object(&json, NULL);
  put_id(&json, t);
  lp_json_put_array(&json, "content");
  if (t->whole->text.size > 0) {
    lp_json_put_object(&json, NULL);
    lp_json_put_text(&json, "type", "text");
    lp_json_put_text(&json, "text", lp_buf_text(&t->whole->text));
    lp_json_put_end(&json);
  }
  for (size_t i = 0; i < t->whole->calls.count; i++) {
    open_call(&json, NULL, &t->whole->calls.data[i]);
    lp_dialect_value(&json, "input", lp_buf_text(&t->whole->calls.data[i].arguments));
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  put_stop(&json, t, true);
  put_usage(&json, t->usage);
  lp_json_put_end(&json);
}

static void whole_count(const lp_telling *t, lp_buf *out) {
  lp_json_writer json = lp_answer_begin(out);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "input_tokens", t->usage->prompt_tokens);
  lp_json_put_end(&json);
}

static void begin(lp_telling *t, lp_buf *out) {
  if (t->has_begun) return;
  t->has_begun = true;
  lp_json_writer json = lp_dialect_event(out, "message_start");
  lp_json_put_object(&json, "message");
  put_id(&json, t);
  lp_json_put_array(&json, "content");
  lp_json_put_end(&json);
  put_stop(&json, t, false);
  put_usage(&json, t->usage);
  lp_json_put_end(&json);
  lp_dialect_event_end(&json);
}

/* An event of a block with an object `key` of one member. */
static void block_event(lp_buf *out, const char *type, int64_t index, const char *key, const char *of_type,
                        const char *member, const char *text) {
  lp_json_writer json = lp_dialect_event(out, type);
  lp_json_put_integer(&json, "index", index);
  if (key) {
    lp_json_put_object(&json, key);
    lp_json_put_text(&json, "type", of_type);
    lp_json_put_text(&json, member, text);
    lp_json_put_end(&json);
  }
  lp_dialect_event_end(&json);
}

static void piece(lp_telling *t, const char *text, lp_buf *out) {
  begin(t, out);
  if (!text[0]) return;
  if (!t->has_text) block_event(out, "content_block_start", 0, "content_block", "text", "text", "");
  t->has_text = true;
  block_event(out, "content_block_delta", 0, "delta", "text_delta", "text", text);
}

static void end(lp_telling *t, lp_buf *out) {
  int64_t index = t->has_text;
  begin(t, out);
  if (t->has_text) block_event(out, "content_block_stop", 0, NULL, NULL, NULL, NULL);
  for (size_t i = 0; i < t->whole->calls.count; i++, index++) {
    const lp_whole_call *call = &t->whole->calls.data[i];
    lp_json_writer json = lp_dialect_event(out, "content_block_start");
    lp_json_put_integer(&json, "index", index);
    open_call(&json, "content_block", call);
    lp_dialect_value(&json, "input", "{}");
    lp_json_put_end(&json);
    lp_dialect_event_end(&json);
    block_event(out, "content_block_delta", index, "delta", "input_json_delta", "partial_json",
                lp_buf_text(&call->arguments));
    block_event(out, "content_block_stop", index, NULL, NULL, NULL, NULL);
  }
  lp_json_writer json = lp_dialect_event(out, "message_delta");
  lp_json_put_object(&json, "delta");
  put_stop(&json, t, true);
  lp_json_put_end(&json);
  put_usage(&json, t->usage);
  lp_dialect_event_end(&json);
  json = lp_dialect_event(out, "message_stop");
  lp_dialect_event_end(&json);
}

static void put_error(lp_json_writer *json, const char *type, const char *text) {
  lp_json_put_object(json, "error");
  lp_json_put_text(json, "type", type);
  lp_json_put_text(json, "message", text);
  lp_json_put_end(json);
}

static void fail(lp_telling *t, const char *why, lp_buf *out) {
  (void)t;
  lp_json_writer json = lp_dialect_event(out, "error");
  put_error(&json, "api_error", why);
  lp_dialect_event_end(&json);
}

static char *error(unsigned status, const char *text) {
  const char *type = status == 401   ? "authentication_error"
                     : status == 403 ? "permission_error"
                     : status == 404 ? "not_found_error"
                     : status == 413 ? "request_too_large"
                     : status == 429 ? "rate_limit_error"
                     : status == 503 ? "overloaded_error"
                     : status >= 500 ? "api_error"
                                     : "invalid_request_error";
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "type", "error");
  put_error(&json, type, text);
  lp_json_put_end(&json);
  return out.data;
}

const lp_dialect lp_dialect_messages = {translate, whole, piece, end, fail, error, "text/event-stream"};
const lp_dialect lp_dialect_count = {translate_count, whole_count, piece, end, fail, error, "text/event-stream"};
