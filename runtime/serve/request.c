/* Reads a request's JSON. */
#include "runtime/serve/request.h"

#include <math.h>

static const char source[] = "the request"; /* the name of the body in diagnostics; clients see only their text */

/* Reads a text, or a list of parts that are texts. NULL: it is neither. */
static const char *read_content(const lp_json *content, lp_completion *out) {
  if (!lp_json_is(content, LP_JSON_ARRAY)) return lp_json_text_or(content, NULL);
  lp_buf text = {0};
  for (size_t i = 0; i < lp_json_count(content); i++) {
    lp_json part = lp_json_item(content, i), type = lp_json_member(&part, "type"), at = lp_json_member(&part, "text");
    const char *piece = lp_json_text_or(&at, NULL);
    if (!lp_json_equals(&type, "text") || !piece) {
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

/* Why a message cannot be read: a part that is no text, or something that lacks. */
static lp_status refuse_message(const lp_json *message, size_t index, lp_diag *diag) {
  lp_json content = lp_json_member(message, "content");
  for (size_t i = 0; lp_json_is(&content, LP_JSON_ARRAY) && i < lp_json_count(&content); i++) {
    lp_json part = lp_json_item(&content, i), type = lp_json_member(&part, "type");
    const char *name = lp_json_text_or(&type, NULL);
    if (name && !lp_streq(name, "text"))
      return lp_error(diag, LP_LOC_NONE,
                      "'messages[%zu].content[%zu]' has the type '%.40s', and only text is supported", index, i, name);
  }
  return lp_error(diag, LP_LOC_NONE, "'messages[%zu]' must have 'role' and 'content', both text", index);
}

/* Messages of tools and calls of them, which may have no content. */
static bool has_role_of_tools(const lp_json *message) {
  lp_json role = lp_json_member(message, "role"), calls = lp_json_member(message, "tool_calls");
  return lp_json_equals(&role, "tool") || lp_json_count(&calls) > 0;
}

/* Tells whether a message has members that a template may read from the body: "name", "reasoning_content", ... */
static bool has_more(const lp_json *message) {
  for (size_t i = 0; i < lp_json_count(message); i++) {
    lp_json at = lp_json_entry(message, i);
    if (!lp_streq(at.key, "role") && !lp_streq(at.key, "content") && lp_json_is_given(&at)) return true;
  }
  return false;
}

/* Members of other servers: a message that the model goes on with, and calls as they were before tools. */
static lp_status refuse_members(const lp_json *message, size_t index, lp_diag *diag) {
  static const char *const keys[] = {"function_call", "prefix", "partial"};
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    lp_json at = lp_json_member(message, keys[i]);
    bool off = lp_json_is(&at, LP_JSON_BOOL) && !lp_json_is_true(&at);
    if (lp_json_is_given(&at) && !off)
      return lp_error(diag, LP_LOC_NONE, "'messages[%zu].%s' is not supported%s", index, keys[i],
                      i == 0 ? ": use 'tool_calls'" : "");
  }
  return LP_OK;
}

/* Templates read the members of calls and of their functions, which must have some. */
static lp_status check_calls(const lp_json *message, size_t index, lp_diag *diag) {
  lp_json calls = lp_json_member(message, "tool_calls");
  for (size_t i = 0; i < lp_json_count(&calls); i++) {
    lp_json call = lp_json_item(&calls, i), function = lp_json_member(&call, "function");
    if (!lp_json_is(&calls, LP_JSON_ARRAY) || !lp_json_is(&call, LP_JSON_OBJECT) ||
        (function.value && !lp_json_is(&function, LP_JSON_OBJECT)))
      return lp_error(diag, LP_LOC_NONE, "'messages[%zu].tool_calls' must be a list of objects with a 'function'",
                      index);
  }
  return LP_OK;
}

static lp_status read_messages(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json list = lp_json_member(body, "messages");
  size_t count = lp_json_is(&list, LP_JSON_ARRAY) ? lp_json_count(&list) : 0;
  if (count == 0) return lp_error(diag, LP_LOC_NONE, "'messages' must be a list of at least one message");
  out->messages = lp_alloc(count * sizeof *out->messages);
  for (; out->count < count; out->count++) {
    lp_json message = lp_json_item(&list, out->count), content = lp_json_member(&message, "content");
    lp_chat_message *to = &out->messages[out->count];
    bool of_tools = has_role_of_tools(&message);
    if (!lp_json_is(&message, LP_JSON_OBJECT)) return refuse_message(&message, out->count, diag);
    LP_TRY(check_calls(&message, out->count, diag));
    *to = (lp_chat_message){lp_json_text_or(LP_MEMBER(&message, "role"), NULL), read_content(&content, out)};
    if (of_tools && !lp_json_is_given(&content)) to->content = "";
    out->has_more |= of_tools || has_more(&message);
    LP_TRY(refuse_members(&message, out->count, diag));
    if (!to->role || !to->content) return refuse_message(&message, out->count, diag);
  }
  return LP_OK;
}

/* Reads variables for the chat template, such as {"enable_thinking": false}. */
static lp_status read_template_variables(const lp_json *body, lp_completion *out, lp_diag *diag) {
  static const char *const taken[] = {
      "messages", "tools", "documents", "add_generation_prompt", "chat_template", "continue_final_message"};
  lp_json given = lp_json_member(body, "chat_template_kwargs");
  if (!lp_json_is_given(&given)) return LP_OK;
  if (!out->chat) return lp_error(diag, LP_LOC_NONE, "'chat_template_kwargs' belongs to chats");
  if (!lp_json_is(&given, LP_JSON_OBJECT))
    return lp_error(diag, LP_LOC_NONE, "'chat_template_kwargs' must be an object of the template's variables");
  for (size_t i = 0; i < LP_COUNT(taken); i++) {
    lp_json at = lp_json_member(&given, taken[i]);
    if (at.value) return lp_error(diag, LP_LOC_NONE, "'chat_template_kwargs.%s' is not supported", taken[i]);
  }
  if (lp_json_count(&given) > 0) out->template_variables = given.value;
  return LP_OK;
}

/* Reads 'stop': a text, or a list of texts. */
static lp_status read_stop(const lp_json *body, lp_completion *out, lp_diag *diag) {
  enum { MOST = 16 };
  lp_json stop = lp_json_member(body, "stop");
  if (!lp_json_is_given(&stop)) return LP_OK;
  bool is_list = lp_json_is(&stop, LP_JSON_ARRAY);
  size_t count = is_list ? lp_json_count(&stop) : 1;
  if (count > MOST) return lp_error(diag, LP_LOC_NONE, "'stop' has %zu texts, at most %d are taken", count, MOST);
  out->stop = lp_alloc((count + 1) * sizeof *out->stop);
  for (; out->stop_count < count; out->stop_count++) {
    lp_json item = lp_json_item(&stop, out->stop_count);
    const char *text = lp_json_text_or(is_list ? &item : &stop, NULL);
    if (!text || !text[0])
      return lp_error(diag, LP_LOC_NONE, "'stop' must be text, or a list of texts, none of them empty");
    out->stop[out->stop_count] = text;
  }
  return LP_OK;
}

static lp_status read_stream(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json stream = lp_json_member(body, "stream"), options = lp_json_member(body, "stream_options"),
          usage = lp_json_member(&options, "include_usage"), machines = lp_json_member(body, "machines");
  if (lp_json_is_given(&stream) && !lp_json_is(&stream, LP_JSON_BOOL))
    return lp_error(diag, LP_LOC_NONE, "'stream' must be true or false");
  if (lp_json_is_given(&options) && !lp_json_is(&options, LP_JSON_OBJECT))
    return lp_error(diag, LP_LOC_NONE, "'stream_options' must be an object");
  out->stream = lp_json_is_true(&stream);
  if (lp_json_is_given(&machines) && !lp_json_is(&machines, LP_JSON_BOOL))
    return lp_error(diag, LP_LOC_NONE, "'machines' must be true or false");
  out->stream_usage = lp_json_is_true(&usage);
  out->machines = lp_json_is_true(&machines);
  return LP_OK;
}

/* More tokens than the server gives are cut to what it gives. */
static lp_status read_most(const lp_serve_config *config, const lp_json *body, const char *key, lp_completion *out,
                           lp_diag *diag) {
  int64_t wanted = out->max_tokens;
  LP_TRY(lp_request_count(body, key, 1, INT32_MAX, &wanted, diag));
  if (wanted > config->max_tokens)
    (void)snprintf(out->note, sizeof out->note, "'%s' %" PRId64 " is cut to %" PRId64 ", the limit of this server", key,
                   wanted, config->max_tokens);
  out->max_tokens = wanted < config->max_tokens ? wanted : config->max_tokens;
  return LP_OK;
}

static lp_status read_settings(const lp_serve_config *config, const lp_json *body, lp_completion *out, lp_diag *diag) {
  out->max_tokens = config->max_tokens;
  LP_TRY(read_most(config, body, "max_tokens", out, diag));
  LP_TRY(read_most(config, body, "max_completion_tokens", out, diag));
  LP_TRY(lp_request_options(body, out, diag));
  LP_TRY(read_stop(body, out, diag));
  return read_stream(body, out, diag);
}

static size_t text_size(const lp_completion *request) {
  size_t size = (request->prompt ? strlen(request->prompt) : 0) + 4 * request->prompt_tokens.count;
  for (size_t i = 0; i < request->count; i++)
    size += strlen(request->messages[i].content);
  return size;
}

/* Describes the request to a router, in the words that P3's keywords have: its task, the length of its prompt; the
 * expected size of the answer follows where it is known (estimates.c). The system prompt tells
 * applications apart best; its text must not leave this machine, so only its hash is told. */
static void describe(const lp_json *body, size_t length, lp_completion *out) {
  const char *system = NULL, *last = out->count > 0 ? out->messages[out->count - 1].content : out->prompt;
  for (size_t i = 0; i < out->count && !system; i++)
    if (lp_streq(out->messages[i].role, "system") || lp_streq(out->messages[i].role, "developer"))
      system = out->messages[i].content;
  lp_json format = lp_json_member(body, "response_format"), tools = lp_json_member(body, "tools");
  const char *task = lp_json_is_given(&tools)      ? "tools"
                     : lp_json_is_given(&format)   ? "json"
                     : last && strstr(last, "```") ? "code"
                     : out->chat                   ? "chat"
                                                   : "text";
  lp_buf_puts(&out->described, task);
  if (system) lp_buf_printf(&out->described, " %08" PRIx64, lp_hash_bytes(system, strlen(system), 0) >> 32);
  lp_buf_printf(&out->described, ", %s", length < 200 ? "short prompt" : length < 2000 ? "prompt" : "long prompt");
}

/* Reads [12, 345, ...]; false: the list holds something else. */
static bool read_tokens(const lp_json *list, lp_tokens *out) {
  size_t count = lp_json_is(list, LP_JSON_ARRAY) ? lp_json_count(list) : 0;
  for (size_t i = 0; i < count; i++) {
    lp_json item = lp_json_item(list, i);
    int64_t token = 0;
    if (!lp_json_is(&item, LP_JSON_INTEGER) || lp_json_i64(&item, 0, INT32_MAX, &token, NULL) != LP_OK) return false;
    lp_vec_push(out, (int32_t)token);
  }
  return count > 0;
}

/* A prompt is text or a list of token numbers. */
static lp_status read_prompt(const lp_json *at, lp_completion *out, lp_diag *diag) {
  out->prompt = lp_json_text_or(at, NULL);
  out->prompt_tokens.count = 0;
  if (out->prompt && out->prompt[0]) return LP_OK;
  if (!read_tokens(at, &out->prompt_tokens))
    return lp_error(diag, LP_LOC_NONE, "'prompt' must be text that is not empty, or a list of token numbers");
  out->prompt = "";
  return LP_OK;
}

lp_status lp_completion_take_prompt(lp_completion *completion, size_t index, lp_diag *diag) {
  lp_json body = lp_json_root(source, completion->document), prompt = lp_json_member(&body, "prompt"),
          first = lp_json_item(&prompt, 0), item = lp_json_item(&prompt, index);
  bool is_list = lp_json_count(&prompt) > 0 && !lp_json_is(&first, LP_JSON_INTEGER);
  return read_prompt(lp_json_is(&prompt, LP_JSON_ARRAY) && is_list ? &item : &prompt, completion, diag);
}

/* The member is a prompt, or a list of prompts. */
static lp_status read_prompts(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json prompt = lp_json_member(body, "prompt"), first = lp_json_item(&prompt, 0);
  bool is_list = lp_json_is(&prompt, LP_JSON_ARRAY) && lp_json_count(&prompt) > 0;
  out->prompts = out->chat || !is_list || lp_json_is(&first, LP_JSON_INTEGER) ? 1 : lp_json_count(&prompt);
  if (out->chat) return LP_OK;
  if (out->prompts > LP_MOST_ANSWERS)
    return lp_error(diag, LP_LOC_NONE, "'prompt' has %zu prompts, at most %d are taken", out->prompts, LP_MOST_ANSWERS);
  for (size_t i = out->prompts; i-- > 0;)
    LP_TRY(lp_completion_take_prompt(out, i, diag));
  return LP_OK;
}

int32_t lp_completion_answers(const lp_completion *completion) {
  return completion->choices * (int32_t)completion->prompts;
}

lp_status lp_body_parse(const char *body, size_t size, lp_json_document **out, lp_diag *diag) {
  lp_diag *found = lp_diag_create();
  lp_status status = lp_json_parse(source, body, size, LP_JSON_REFUSE_NUL, out, found);
  if (status != LP_OK) {
    const lp_diag_entry *why = lp_diag_get(found, 0);
    status = lp_error(diag, LP_LOC_NONE, "line %d, column %d: %s", why->loc.line, why->loc.col, why->text);
  }
  lp_diag_free(found);
  LP_TRY(status);
  lp_json root = lp_json_root(source, *out);
  if (lp_json_is(&root, LP_JSON_OBJECT)) return LP_OK;
  lp_json_free(*out);
  *out = NULL;
  return lp_error(diag, LP_LOC_NONE, "the body must be a JSON object");
}

/* The hard constraints of a request: members that OpenAI's API lacks. */
static lp_status read_limits(const lp_json *body, lp_completion *out, lp_diag *diag) {
  lp_json local = lp_json_member(body, "local_only");
  if (lp_json_is_given(&local) && !lp_json_is(&local, LP_JSON_BOOL))
    return lp_error(diag, LP_LOC_NONE, "'local_only' must be true or false");
  out->local_only = lp_json_is_true(&local);
  out->budget_usd = INFINITY;
  return lp_request_number(body, "budget_usd", 0, 1e9, &out->budget_usd, diag);
}

lp_status lp_completion_read(const lp_serve_config *config, bool chat, const char *body, size_t size,
                             lp_completion *out, lp_diag *diag) {
  *out = (lp_completion){.chat = chat};
  LP_TRY(lp_body_parse(body, size, &out->document, diag));
  lp_json root = lp_json_root(source, out->document), model = lp_json_member(&root, "model");
  const bool is_given = lp_json_is_given(&model) && !lp_json_equals(&model, "");
  const int places = (config->edge.bundle != NULL) + (config->split.bundle != NULL) + (config->url != NULL);
  out->model = is_given || places != 1 ? lp_json_text_or(&model, NULL) : "auto";
  if (!out->model)
    return lp_error(diag, LP_LOC_NONE, "'model' is missing: %s, %s or auto", lp_route_name(LP_ROUTE_EDGE),
                    lp_route_name(LP_ROUTE_CLOUD));
  LP_TRY(lp_members_of_completion(&root, diag));
  const char *other = chat ? "prompt" : "messages";
  if (lp_json_is_given(LP_MEMBER(&root, other)))
    return lp_error(diag, LP_LOC_NONE, "'%s' belongs to %s", other, chat ? "completions" : "chats");
  if (chat) LP_TRY(read_messages(&root, out, diag));
  LP_TRY(read_template_variables(&root, out, diag));
  LP_TRY(read_prompts(&root, out, diag));
  const lp_json keywords = lp_json_member(&root, "keywords");
  out->keywords = lp_json_text_or(&keywords, NULL);
  if (!out->keywords) {
    if (lp_json_is_given(&keywords)) return lp_error(diag, LP_LOC_NONE, "'keywords' must be text");
    describe(&root, text_size(out), out);
    out->keywords = lp_buf_text(&out->described);
  }
  LP_TRY(read_limits(&root, out, diag));
  LP_TRY(read_settings(config, &root, out, diag));
  if (lp_completion_answers(out) <= LP_MOST_ANSWERS) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "%zu prompts with 'n' %" PRId32 " are %" PRId32 " answers, at most %d are given",
                  out->prompts, out->choices, lp_completion_answers(out), LP_MOST_ANSWERS);
}

void lp_completion_free(lp_completion *completion) {
  lp_json_free(completion->document);
  free(completion->messages);
  free(completion->stop);
  free(completion->bias);
  lp_vec_free(&completion->prompt_tokens);
  lp_buf_free(&completion->described);
  for (size_t i = 0; i < completion->joined.count; i++)
    free(completion->joined.data[i]);
  lp_vec_free(&completion->joined);
  *completion = (lp_completion){0};
}
