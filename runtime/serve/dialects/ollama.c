/* Ollama's API: lines of JSON, options in an object of their own, and calls whose arguments are objects. */
#include <math.h>
#include <time.h>

#include "runtime/serve/dialects/dialect.h"

/* ---- requests ---------------------------------------------------------------------------------------------------- */

const char *lp_ollama_model(const char *name, char *room, size_t size) {
  const size_t length = strlen(name) - (lp_has_suffix(name, ":latest") ? strlen(":latest") : 0);
  (void)snprintf(room, size, "%.*s", (int)length, name);
  return room;
}

static lp_status put_options(lp_json_writer *to, const lp_json *body, lp_diag *diag) {
  static const char *const names[][2] = {{"temperature", "temperature"},
                                         {"top_k", "top_k"},
                                         {"top_p", "top_p"},
                                         {"min_p", "min_p"},
                                         {"seed", "seed"},
                                         {"stop", "stop"},
                                         {"repeat_penalty", "repetition_penalty"},
                                         {"presence_penalty", "presence_penalty"},
                                         {"frequency_penalty", "frequency_penalty"}};
  lp_json options = lp_json_member(body, "options"), predict = lp_json_member(&options, "num_predict");
  double most = 1; /* what is no number is refused as max_tokens; less than 1 sets no limit */
  /* the others say how Ollama computes */
  LP_TRY(lp_dialect_check(&options,
                          " temperature top_k top_p min_p seed stop repeat_penalty presence_penalty frequency_penalty "
                          "num_predict num_ctx num_keep num_batch num_gpu num_thread main_gpu low_vram use_mmap "
                          "use_mlock numa repeat_last_n penalize_newline ",
                          diag));
  for (size_t i = 0; i < LP_COUNT(names); i++)
    lp_dialect_copy(to, names[i][1], &options, names[i][0]);
  (void)!lp_json_number(&predict, -INFINITY, INFINITY, &most, NULL);
  if (lp_json_is_given(&predict) && most >= 1) lp_json_put_value(to, "max_tokens", predict.value);
  return LP_OK;
}

/* "json", or a schema. */
static void put_format(lp_json_writer *to, const lp_json *body) {
  lp_json format = lp_json_member(body, "format");
  if (!lp_json_is_given(&format) || lp_json_equals(&format, "")) return;
  lp_json_put_object(to, "response_format");
  if (lp_json_is(&format, LP_JSON_OBJECT)) {
    lp_json_put_text(to, "type", "json_schema");
    lp_json_put_object(to, "json_schema");
    lp_json_put_value(to, "schema", format.value);
    lp_json_put_end(to);
  } else {
    lp_json_put_text(to, "type", lp_json_equals(&format, "json") ? "json_object" : "?");
  }
  lp_json_put_end(to);
}

static lp_status put_common(lp_json_writer *to, const lp_json *body, lp_diag *diag) {
  lp_json model = lp_json_member(body, "model"), stream = lp_json_member(body, "stream"),
          think = lp_json_member(body, "think"), images = lp_json_member(body, "images");
  char room[256];
  if (lp_json_is_given(&think) && !lp_json_is(&think, LP_JSON_BOOL) ? true : lp_json_is_true(&think))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'think' is not supported, except false");
  if (lp_json_count(&images) > 0) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'images' is not supported");
  lp_json_put_text(to, "model", lp_ollama_model(lp_json_text_or(&model, ""), room, sizeof room));
  lp_json_put_bool(to, "stream", !lp_json_is(&stream, LP_JSON_BOOL) || lp_json_is_true(&stream));
  put_format(to, body);
  return put_options(to, body, diag);
}

static lp_status put_message(lp_json_writer *to, const lp_json *message, lp_diag *diag) {
  lp_json calls = lp_json_member(message, "tool_calls"), images = lp_json_member(message, "images");
  if (lp_json_count(&images) > 0) return lp_json_error(message, diag, "'images' is not supported");
  lp_json_put_object(to, NULL);
  lp_dialect_copy(to, "role", message, "role");
  lp_dialect_copy(to, "content", message, "content");
  lp_dialect_copy(to, "name", message, "tool_name");
  if (lp_json_count(&calls) > 0) lp_json_put_array(to, "tool_calls");
  for (size_t i = 0; i < lp_json_count(&calls); i++) {
    lp_json call = lp_json_item(&calls, i), function = lp_json_member(&call, "function");
    char id[32];
    (void)snprintf(id, sizeof id, "call_%zu", i);
    lp_dialect_call(to, id, lp_json_text_or(LP_MEMBER(&function, "name"), NULL), LP_MEMBER(&function, "arguments"));
  }
  if (lp_json_count(&calls) > 0) lp_json_put_end(to);
  lp_json_put_end(to);
  return LP_OK;
}

static lp_status put_chat(lp_json_writer *to, const lp_json *body, lp_diag *diag) {
  lp_json messages = lp_json_member(body, "messages");
  LP_TRY(lp_dialect_check(body, " model messages tools format options stream keep_alive think ", diag));
  LP_TRY(put_common(to, body, diag));
  lp_json_put_array(to, "messages");
  LP_FOR_ITEMS(message, &messages)
    LP_TRY(put_message(to, &message, diag));
  lp_json_put_end(to);
  lp_dialect_copy(to, "tools", body, "tools");
  return LP_OK;
}

static lp_status put_generate(lp_json_writer *to, const lp_json *body, bool raw, lp_diag *diag) {
  lp_json prompt = lp_json_member(body, "prompt"), system = lp_json_member(body, "system");
  LP_TRY(lp_dialect_check(body, " model prompt images format options system stream raw keep_alive think ", diag));
  LP_TRY(put_common(to, body, diag));
  const char *text = lp_json_text_or(&prompt, ""), *of_system = lp_json_text_or(&system, "");
  if (raw) {
    lp_json_put_text(to, "prompt", text);
    return LP_OK;
  }
  lp_json_put_array(to, "messages");
  if (of_system[0]) lp_dialect_message(to, "system", of_system);
  lp_dialect_message(to, "user", text);
  lp_json_put_end(to);
  return LP_OK;
}

static lp_status translate_chat(const lp_json *body, const char *earlier, lp_translation *out, lp_diag *diag) {
  (void)earlier;
  out->chat = true;
  lp_json_writer json = lp_answer_begin(&out->body);
  lp_json_put_object(&json, NULL);
  LP_TRY(put_chat(&json, body, diag));
  lp_json_put_end(&json);
  return LP_OK;
}

static lp_status translate_generate(const lp_json *body, const char *earlier, lp_translation *out, lp_diag *diag) {
  (void)earlier;
  out->chat = out->plain = !lp_json_is_true(LP_MEMBER(body, "raw"));
  lp_json_writer json = lp_answer_begin(&out->body);
  lp_json_put_object(&json, NULL);
  LP_TRY(put_generate(&json, body, !out->chat, diag));
  lp_json_put_end(&json);
  return LP_OK;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static lp_json_writer begin_line(const lp_telling *t, lp_buf *out) {
  const time_t created = (time_t)t->head.created;
  struct tm utc;
  char when[32];
  (void)gmtime_r(&created, &utc);
  (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
  lp_json_writer json = lp_answer_begin(out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "model", t->head.model);
  lp_json_put_text(&json, "created_at", when);
  return json;
}

/* The answer's part of a line: a message with its calls, or a text. */
static void put_answer(lp_json_writer *json, bool chat, const char *text, const lp_whole_choice *with_calls) {
  if (!chat) {
    lp_json_put_text(json, "response", text);
    return;
  }
  lp_json_put_object(json, "message");
  lp_json_put_text(json, "role", "assistant");
  lp_json_put_text(json, "content", text);
  if (with_calls && with_calls->calls.count > 0) {
    lp_json_put_array(json, "tool_calls");
    LP_FOR_VEC(const lp_whole_call, call, &with_calls->calls) {
      lp_json_put_object(json, NULL);
      lp_json_put_object(json, "function");
      lp_json_put_text(json, "name", lp_buf_text(&call->name));
      lp_dialect_value(json, "arguments", lp_buf_text(&call->arguments));
      lp_json_put_end(json);
      lp_json_put_end(json);
    }
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
}

static void put_end(lp_json_writer *json, const lp_telling *t) {
  const double first_ms = t->first_ms > 0 ? t->first_ms : t->total_ms, queue_ms = t->usage->queue_ms;
  const double ns = 1e6;
  lp_json_put_bool(json, "done", true);
  lp_json_put_text(json, "done_reason", t->whole->finish == LP_FINISH_LENGTH ? "length" : "stop");
  lp_json_put_integer(json, "total_duration", (int64_t)(t->total_ms * ns));
  lp_json_put_integer(json, "load_duration", (int64_t)(queue_ms * ns));
  if (t->usage->prompt_tokens >= 0) lp_json_put_integer(json, "prompt_eval_count", t->usage->prompt_tokens);
  lp_json_put_integer(json, "prompt_eval_duration", (int64_t)((first_ms > queue_ms ? first_ms - queue_ms : 0) * ns));
  lp_json_put_integer(json, "eval_count", t->usage->tokens);
  lp_json_put_integer(json, "eval_duration", (int64_t)((t->total_ms - first_ms) * ns));
  lp_json_put_end(json);
}

static void tell_whole(const lp_telling *t, bool chat, lp_buf *out) {
  lp_json_writer json = begin_line(t, out);
  put_answer(&json, chat, lp_buf_text(&t->whole->text), t->whole);
  put_end(&json, t);
}

static void tell_piece(const lp_telling *t, bool chat, const char *text, lp_buf *out) {
  if (!text[0]) return;
  lp_json_writer json = begin_line(t, out);
  put_answer(&json, chat, text, NULL);
  lp_json_put_bool(&json, "done", false);
  lp_json_document_end(&json);
}

static void tell_end(const lp_telling *t, bool chat, lp_buf *out) {
  if (t->whole->calls.count > 0) {
    lp_json_writer json = begin_line(t, out);
    put_answer(&json, chat, "", t->whole);
    lp_json_put_bool(&json, "done", false);
    lp_json_document_end(&json);
  }
  lp_json_writer json = begin_line(t, out);
  put_answer(&json, chat, "", NULL);
  put_end(&json, t);
  lp_buf_puts(out, "\n");
}

static void chat_whole(const lp_telling *t, lp_buf *out) {
  tell_whole(t, true, out);
}

static void chat_piece(lp_telling *t, const char *text, lp_buf *out) {
  tell_piece(t, true, text, out);
}

static void chat_end(lp_telling *t, lp_buf *out) {
  tell_end(t, true, out);
}

static void generate_whole(const lp_telling *t, lp_buf *out) {
  tell_whole(t, false, out);
}

static void generate_piece(lp_telling *t, const char *text, lp_buf *out) {
  tell_piece(t, false, text, out);
}

static void generate_end(lp_telling *t, lp_buf *out) {
  tell_end(t, false, out);
}

/* The errors of Ollama, for its other paths. */
static char *error_of(unsigned status, const char *text) {
  (void)status;
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "error", text);
  lp_json_put_end(&json);
  return out.data;
}

static void fail(lp_telling *t, const char *why, lp_buf *out) {
  (void)t;
  LP_OWNED(lp_free_at) char *json = error_of(500, why);
  lp_buf_printf(out, "%s\n", json);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static void put_details(lp_json_writer *json) {
  static const char *const empty[] = {"parent_model", "family", "parameter_size", "quantization_level"};
  lp_json_put_object(json, "details");
  lp_json_put_text(json, "format", "llmpart");
  for (size_t i = 0; i < LP_COUNT(empty); i++)
    lp_json_put_text(json, empty[i], "");
  lp_json_put_array(json, "families");
  lp_json_put_end(json);
  lp_json_put_end(json);
}

char *lp_ollama_tags(const char *const model[LP_ROUTE_COUNT]) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_array(&json, "models");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    bool before = !model[route];
    for (lp_route other = 0; other < route && !before; other++)
      before = model[other] && lp_streq(model[route], model[other]);
    if (before) continue;
    lp_json_put_object(&json, NULL);
    lp_json_put_text(&json, "name", model[route]);
    lp_json_put_text(&json, "model", model[route]);
    lp_json_put_text(&json, "modified_at", "1970-01-01T00:00:00Z");
    lp_json_put_integer(&json, "size", 0);
    lp_json_put_text(&json, "digest", "");
    put_details(&json);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

char *lp_ollama_show(const char *model) {
  lp_buf out = {0};
  lp_json_writer json = lp_answer_begin(&out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "modelfile", "");
  lp_json_put_text(&json, "parameters", "");
  lp_json_put_text(&json, "template", "");
  put_details(&json);
  lp_json_put_object(&json, "model_info");
  lp_json_put_text(&json, "general.basename", model);
  lp_json_put_end(&json);
  lp_json_put_array(&json, "capabilities");
  lp_json_put_text(&json, NULL, "completion");
  lp_json_put_text(&json, NULL, "tools");
  lp_json_put_end(&json);
  lp_json_put_end(&json);
  return out.data;
}

const lp_dialect lp_dialect_chat = {translate_chat,        chat_whole, chat_piece, chat_end, fail, error_of,
                                    "application/x-ndjson"};
const lp_dialect lp_dialect_generate = {translate_generate, generate_whole,        generate_piece, generate_end, fail,
                                        error_of,           "application/x-ndjson"};
