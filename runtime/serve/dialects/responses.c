/* OpenAI's responses: requests. An input is a text, or a list of messages, calls and their results. */
#include "runtime/serve/dialects/responses.h"

static bool is_type(const lp_json *item, const char *type) {
  const char *own = lp_json_text_of(item, "type");
  return lp_streq(own ? own : "message", type);
}

static lp_status put_message(lp_json_writer *to, const lp_json *item, lp_diag *diag) {
  lp_json content = lp_json_member(item, "content");
  const char *role = lp_json_text_of(item, "role");
  if (!role || !lp_json_is_given(&content)) return lp_json_error(item, diag, "'role' and 'content' are wanted");
  lp_json_put_object(to, NULL);
  lp_json_put_text(to, "role", lp_streq(role, "developer") ? "system" : role);
  LP_TRY(lp_dialect_content(to, "content", &content, " input_text output_text text ", diag));
  lp_json_put_end(to);
  return LP_OK;
}

/* Calls that follow each other are one message; returns the number of them. */
static size_t put_calls(lp_json_writer *to, const lp_json *input, size_t first) {
  size_t i = first;
  lp_json_put_object(to, NULL);
  lp_json_put_text(to, "role", "assistant");
  lp_json_put_null(to, "content");
  lp_json_put_array(to, "tool_calls");
  for (; i < lp_json_count(input); i++) {
    lp_json item = lp_json_item(input, i), arguments = lp_json_member(&item, "arguments");
    if (!is_type(&item, "function_call")) break;
    lp_dialect_call(to, lp_json_text_of(&item, "call_id"), lp_json_text_of(&item, "name"), &arguments);
  }
  lp_json_put_end(to);
  lp_json_put_end(to);
  return i - first;
}

static lp_status put_result(lp_json_writer *to, const lp_json *item, lp_diag *diag) {
  lp_json_put_object(to, NULL);
  lp_json_put_text(to, "role", "tool");
  lp_dialect_copy(to, "tool_call_id", item, "call_id");
  LP_TRY(lp_dialect_content(to, "content", LP_MEMBER(item, "output"), " input_text output_text text ", diag));
  lp_json_put_end(to);
  return LP_OK;
}

/* The input as messages. */
static lp_status put_input(lp_json_writer *to, const lp_json *input, lp_diag *diag) {
  const char *only = lp_json_text_or(input, NULL);
  if (only) lp_dialect_message(to, "user", only);
  if (only) return LP_OK;
  for (size_t i = 0; i < lp_json_count(input); i++) {
    lp_json item = lp_json_item(input, i);
    if (is_type(&item, "message"))
      LP_TRY(put_message(to, &item, diag));
    else if (is_type(&item, "function_call"))
      i += put_calls(to, input, i) - 1;
    else if (is_type(&item, "function_call_output"))
      LP_TRY(put_result(to, &item, diag));
    else if (!is_type(&item, "reasoning"))
      return lp_json_error(&item, diag, "the type '%.40s' is not supported", lp_json_text_of(&item, "type"));
  }
  return LP_OK;
}

static lp_status put_tools(lp_json_writer *to, const lp_json *body, lp_diag *diag) {
  lp_json tools = lp_json_member(body, "tools"), choice = lp_json_member(body, "tool_choice");
  if (lp_json_count(&tools) > 0) lp_json_put_array(to, "tools");
  LP_FOR_ITEMS(tool, &tools) {
    if (!is_type(&tool, "function"))
      return lp_json_error(&tool, diag, "the type '%.40s' is not supported, only functions of the client",
                           lp_json_text_of(&tool, "type") ? lp_json_text_of(&tool, "type") : "?");
    lp_dialect_function(to, &tool, "parameters");
  }
  if (lp_json_count(&tools) > 0) lp_json_put_end(to);
  if (is_type(&choice, "function"))
    lp_dialect_choose(to, &choice);
  else
    lp_dialect_copy(to, "tool_choice", body, "tool_choice");
  lp_dialect_copy(to, "parallel_tool_calls", body, "parallel_tool_calls");
  return LP_OK;
}

static void put_format(lp_json_writer *to, const lp_json *body) {
  lp_json text = lp_json_member(body, "text"), format = lp_json_member(&text, "format");
  if (!lp_json_is_given(&format)) return;
  lp_json_put_object(to, "response_format");
  lp_dialect_copy(to, "type", &format, "type");
  if (is_type(&format, "json_schema")) {
    lp_json_put_object(to, "json_schema");
    lp_dialect_copy(to, "name", &format, "name");
    lp_dialect_copy(to, "schema", &format, "schema");
    lp_json_put_end(to);
  }
  lp_json_put_end(to);
}

/* Members that change an answer in a way that is not supported. */
static lp_status check(const lp_json *body, lp_diag *diag) {
  lp_json reasoning = lp_json_member(body, "reasoning"), effort = lp_json_member(&reasoning, "effort"),
          background = lp_json_member(body, "background"), truncation = lp_json_member(body, "truncation");
  LP_TRY(lp_dialect_check(body,
                          " model input instructions max_output_tokens temperature top_p tools tool_choice "
                          "parallel_tool_calls text previous_response_id store metadata stream stream_options user "
                          "safety_identifier prompt_cache_key prompt_cache_retention service_tier include truncation "
                          "reasoning background max_tool_calls keywords local_only budget_usd ",
                          diag));
  const char *wrong = lp_json_is_given(&effort) && !lp_json_equals(&effort, "none")               ? "reasoning.effort"
                      : lp_json_is_true(&background)                                              ? "background"
                      : lp_json_is_given(&truncation) && !lp_json_equals(&truncation, "disabled") ? "truncation"
                                                                                                  : NULL;
  return wrong ? lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%s' is not supported", wrong) : LP_OK;
}

/* The messages of the request and of those before it; instructions are of this request alone. */
static lp_status put_history(const lp_json *body, const char *earlier, lp_buf *out, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf own = {0};
  lp_json_writer json = lp_answer_begin(&own);
  lp_json_put_array(&json, NULL);
  lp_status status = put_input(&json, LP_MEMBER(body, "input"), diag);
  if (status == LP_OK) lp_json_put_end(&json);
  if (earlier) lp_buf_puts(out, earlier);
  if (status == LP_OK && own.size > 2) {
    lp_buf_puts(out, earlier && earlier[0] ? "," : "");
    lp_buf_append(out, own.data + 1, own.size - 2); /* without its brackets */
  }
  return status;
}

static lp_status translate(const lp_json *body, const char *earlier, lp_translation *out, lp_diag *diag) {
  static const char *const same[] = {"model", "stream", "temperature", "top_p", "keywords", "local_only", "budget_usd"};
  lp_json store = lp_json_member(body, "store");
  const char *instructions = lp_json_text_of(body, "instructions");
  LP_TRY(check(body, diag));
  LP_TRY(put_history(body, earlier, &out->history, diag));
  out->chat = true;
  out->keeps = !lp_json_is(&store, LP_JSON_BOOL) || lp_json_is_true(&store);
  lp_json_writer json = lp_answer_begin(&out->body);
  lp_json_put_object(&json, NULL);
  for (size_t i = 0; i < LP_COUNT(same); i++)
    lp_dialect_copy(&json, same[i], body, same[i]);
  lp_dialect_copy(&json, "max_tokens", body, "max_output_tokens");
  lp_json_put_array(&json, "messages");
  if (instructions) lp_dialect_message(&json, "system", instructions);
  if (out->history.size > 0) lp_buf_printf(&out->body, "%s%s", instructions ? "," : "", lp_buf_text(&out->history));
  lp_json_put_end(&json);
  LP_TRY(put_tools(&json, body, diag));
  put_format(&json, body);
  lp_json_put_end(&json);
  return LP_OK;
}

const lp_dialect lp_dialect_responses = {translate,         lp_responses_whole, lp_responses_piece, lp_responses_end,
                                         lp_responses_fail, lp_responses_error, "text/event-stream"};
