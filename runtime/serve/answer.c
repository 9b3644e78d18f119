#include "runtime/serve/answer.h"

const char *lp_finish_name(lp_finish finish) {
  static const char *const names[] = {[LP_FINISH_STOP] = "stop",
                                      [LP_FINISH_LENGTH] = "length",
                                      [LP_FINISH_TOOLS] = "tool_calls",
                                      [LP_FINISH_FILTER] = "content_filter",
                                      [LP_FINISH_ERROR] = "error"};
  return names[finish];
}

/* Opens the object; the caller closes it. */
static lp_json_writer begin(const lp_answer_head *head, const char *object, lp_buf *out) {
  LP_OWNED(lp_buf_free) lp_buf whole_id = {0};
  lp_json_writer json = lp_answer_begin(out);
  lp_buf_printf(&whole_id, "%s%s", head->request->chat ? "chatcmpl-" : "cmpl-", head->id);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "id", whole_id.data);
  lp_json_put_text(&json, "object", object);
  lp_json_put_integer(&json, "created", head->created);
  lp_json_put_text(&json, "model", head->model);
  return json;
}

static void put_usage(lp_json_writer *json, const lp_usage *usage) {
  lp_json_put_object(json, "usage");
  lp_json_put_integer(json, "prompt_tokens", usage->prompt_tokens);
  lp_json_put_integer(json, "completion_tokens", usage->tokens);
  lp_json_put_integer(json, "total_tokens", usage->prompt_tokens + usage->tokens);
  lp_json_put_object(json, "prompt_tokens_details");
  lp_json_put_integer(json, "cached_tokens", usage->cached_tokens);
  lp_json_put_end(json);
  lp_json_put_end(json);
}

/* `index` < 0: without that member. A call's later parts have neither id nor name. */
static void put_call(lp_json_writer *json, int64_t index, const char *id, const char *name, const char *arguments) {
  lp_json_put_object(json, NULL);
  if (index >= 0) lp_json_put_integer(json, "index", index);
  if (id) lp_json_put_text(json, "id", id);
  if (name) lp_json_put_text(json, "type", "function");
  lp_json_put_object(json, "function");
  if (name) lp_json_put_text(json, "name", name);
  lp_json_put_text(json, "arguments", arguments);
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static void put_message(lp_json_writer *json, const char *key, const lp_whole_choice *choice) {
  lp_json_put_object(json, key);
  lp_json_put_text(json, "role", "assistant");
  if (choice->calls.count > 0 && choice->text.size == 0)
    lp_json_put_null(json, "content");
  else
    lp_json_put_text(json, "content", lp_buf_text(&choice->text));
  if (choice->calls.count > 0) {
    lp_json_put_array(json, "tool_calls");
    LP_FOR_VEC(const lp_whole_call, call, &choice->calls)
      put_call(json, -1, lp_buf_text(&call->id), lp_buf_text(&call->name), lp_buf_text(&call->arguments));
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
}

void lp_answer_put_message(const lp_whole_choice *choice, lp_buf *out) {
  lp_json_writer json = lp_answer_begin(out);
  put_message(&json, NULL, choice);
}

char *lp_answer_whole(const lp_answer_head *head, const lp_whole *whole, const lp_usage *usage) {
  lp_buf out = {0};
  bool chat = head->request->chat;
  lp_json_writer json = begin(head, chat ? "chat.completion" : "text_completion", &out);
  lp_json_put_array(&json, "choices");
  for (int32_t i = 0; i < lp_completion_answers(head->request); i++) {
    const lp_whole_choice *choice = &whole->choice[i];
    lp_json_put_object(&json, NULL);
    lp_json_put_integer(&json, "index", i);
    if (head->request->decoding.top_logprobs >= 0)
      lp_logprobs_write(&json, choice->logprobs.data, choice->logprobs.count, chat, 0);
    else
      lp_json_put_null(&json, "logprobs");
    lp_json_put_text(&json, "finish_reason", lp_finish_name(choice->finish));
    if (chat)
      put_message(&json, "message", choice);
    else
      lp_json_put_text(&json, "text", lp_buf_text(&choice->text));
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  if (usage->prompt_tokens >= 0) put_usage(&json, usage);
  lp_json_put_end(&json);
  return out.data;
}

static lp_json_writer begin_chunk(const lp_answer_head *head, lp_buf *out) {
  lp_json_writer json = begin(head, head->request->chat ? "chat.completion.chunk" : "text_completion", out);
  lp_json_put_array(&json, "choices");
  return json;
}

char *lp_answer_chunk_usage(const lp_answer_head *head, const lp_usage *usage) {
  lp_buf out = {0};
  lp_json_writer json = begin_chunk(head, &out);
  lp_json_put_end(&json);
  if (usage->prompt_tokens >= 0)
    put_usage(&json, usage);
  else
    lp_json_put_null(&json, "usage");
  lp_json_put_end(&json);
  return out.data;
}

static void put_delta(lp_json_writer *json, const lp_piece *piece, bool first) {
  lp_json_put_object(json, "delta");
  if (first) lp_json_put_text(json, "role", "assistant");
  if (piece->text[0] || piece->call_count == 0) lp_json_put_text(json, "content", piece->text);
  if (piece->call_count > 0) {
    lp_json_put_array(json, "tool_calls");
    for (size_t i = 0; i < piece->call_count; i++)
      put_call(json, piece->calls[i].index, piece->calls[i].id, piece->calls[i].name, piece->calls[i].arguments);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
}

/* `finish` NULL: not the last chunk of the choice. */
static char *write_chunk(const lp_answer_head *head, const lp_piece *piece, bool first, size_t characters,
                         const char *finish) {
  lp_buf out = {0};
  lp_json_writer json = begin_chunk(head, &out);
  lp_json_put_object(&json, NULL);
  lp_json_put_integer(&json, "index", piece->choice);
  lp_json_put_text(&json, "finish_reason", finish);
  if (head->request->decoding.top_logprobs >= 0 && !finish)
    lp_logprobs_write(&json, piece->logprobs, piece->logprob_count, head->request->chat, characters);
  if (!head->request->chat) {
    lp_json_put_text(&json, "text", piece->text);
  } else if (finish) {
    lp_json_put_object(&json, "delta");
    lp_json_put_end(&json);
  } else {
    put_delta(&json, piece, first);
  }
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  if (piece->machine) lp_json_put_text(&json, "machine", piece->machine);
  lp_json_put_end(&json);
  return out.data;
}

char *lp_answer_chunk(const lp_answer_head *head, const lp_piece *piece, bool first, size_t characters) {
  return write_chunk(head, piece, first, characters, NULL);
}

char *lp_answer_chunk_end(const lp_answer_head *head, int32_t choice, lp_finish finish) {
  const lp_piece piece = {.choice = choice, .text = ""};
  return write_chunk(head, &piece, false, 0, lp_finish_name(finish));
}

static void put_text_or_null(lp_json_writer *json, const char *key, const char *text) {
  if (text)
    lp_json_put_text(json, key, text);
  else
    lp_json_put_null(json, key);
}

static char *write_error(const char *type, const char *text, const char *param, const char *code) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_object(&json, "error");
  lp_json_put_text(&json, "message", text);
  lp_json_put_text(&json, "type", type);
  put_text_or_null(&json, "param", param);
  put_text_or_null(&json, "code", code);
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

char *lp_answer_error(const char *type, const char *text) {
  return write_error(type, text, NULL, NULL);
}

char *lp_answer_too_long(const char *param, const char *text) {
  return write_error("invalid_request_error", text, param, "context_length_exceeded");
}

char *lp_answer_no_model(const char *text) {
  return write_error("invalid_request_error", text, "model", "model_not_found");
}

char *lp_answer_status(const char *status) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "status", status);
  lp_json_put_end(&json);
  return out.data;
}

static void put_model(lp_json_writer *json, const char *id) {
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "id", id);
  lp_json_put_text(json, "object", "model");
  lp_json_put_integer(json, "created", 0);
  lp_json_put_text(json, "owned_by", "llmpart");
  lp_json_put_end(json);
}

bool lp_answer_has_model(const char *const model[LP_ROUTE_COUNT], const char *embeddings, const char *id) {
  bool has = lp_streq(id, "auto") || (embeddings && lp_streq(id, embeddings));
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    has |= model[route] && (lp_streq(id, model[route]) || lp_streq(id, lp_route_name(route)));
  return has;
}

char *lp_answer_model(const char *id) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  put_model(&json, id);
  return out.data;
}

/* Tells whether no route before this one has its model. */
static bool is_first(const char *const model[LP_ROUTE_COUNT], lp_route route) {
  for (lp_route other = 0; other < route; other++)
    if (model[other] && lp_streq(model[route], model[other])) return false;
  return true;
}

void lp_answer_name_models(const char *const model[LP_ROUTE_COUNT], const char *embeddings, const char *id,
                           lp_buf *out) {
  lp_buf_printf(out, "there is no model '%.80s': wanted auto", id);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (model[route]) lp_buf_printf(out, ", %s", lp_route_name(route));
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (model[route] && is_first(model, route)) lp_buf_printf(out, ", %.80s", model[route]);
  if (embeddings) lp_buf_printf(out, ", %.80s", embeddings);
}

char *lp_answer_models(const char *const model[LP_ROUTE_COUNT], const char *embeddings) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "object", "list");
  lp_json_put_array(&json, "data");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (model[route] && is_first(model, route)) put_model(&json, model[route]);
  put_model(&json, "auto");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (model[route]) put_model(&json, lp_route_name(route));
  if (embeddings) put_model(&json, embeddings);
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

/* ---- answers that are not streamed ------------------------------------------------------------------------------- */

static lp_whole_call *call_of(lp_whole_choice *to, int64_t index) {
  for (size_t i = 0; i < to->calls.count; i++)
    if (to->calls.data[i].index == index) return &to->calls.data[i];
  const lp_whole_call fresh = {.index = index};
  lp_vec_push(&to->calls, fresh);
  return &to->calls.data[to->calls.count - 1];
}

void lp_whole_put(lp_whole *whole, const lp_piece *piece) {
  lp_whole_choice *to = &whole->choice[piece->choice];
  lp_buf_puts(&to->text, piece->text);
  for (size_t i = 0; i < piece->logprob_count; i++) {
    lp_answer_logprob copy = lp_answer_logprob_copy(&piece->logprobs[i]);
    lp_vec_push(&to->logprobs, copy);
  }
  LP_FOR_EACH(const lp_tool_call, part, piece->calls, piece->call_count) {
    lp_whole_call *call = call_of(to, part->index);
    if (part->id && call->id.size == 0) lp_buf_puts(&call->id, part->id);
    if (part->name) lp_buf_puts(&call->name, part->name);
    lp_buf_puts(&call->arguments, part->arguments);
  }
}

void lp_whole_drop(lp_whole *whole, int32_t first, int32_t count) {
  for (int32_t i = first; i < first + count; i++) {
    lp_whole_choice *choice = &whole->choice[i];
    for (size_t k = 0; k < choice->calls.count; k++) {
      lp_buf_free(&choice->calls.data[k].id);
      lp_buf_free(&choice->calls.data[k].name);
      lp_buf_free(&choice->calls.data[k].arguments);
    }
    lp_vec_free(&choice->calls);
    lp_logprobs_free(&choice->logprobs);
    lp_buf_free(&choice->text);
    *choice = (lp_whole_choice){0};
  }
}
