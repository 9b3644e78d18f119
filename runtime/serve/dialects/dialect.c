/* What the dialects have in common. */
#include "runtime/serve/dialects/dialect.h"

void lp_translation_free(lp_translation *translation) {
  lp_buf_free(&translation->body);
  lp_buf_free(&translation->history);
}

static bool is_word(const char *words, const char *word) {
  char spaced[48];
  const bool fits = (size_t)snprintf(spaced, sizeof spaced, " %s ", word) < sizeof spaced;
  return fits && !strchr(word, ' ') && strstr(words, spaced);
}

lp_status lp_dialect_check(const lp_json *of, const char *words, lp_diag *diag) {
  if (lp_json_is_given(of) && !lp_json_is(of, LP_JSON_OBJECT))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%s' must be an object", of->key ? of->key : "the request");
  for (size_t i = 0; i < lp_json_count(of); i++) {
    lp_json at = lp_json_entry(of, i);
    if (lp_json_is_given(&at) && !is_word(words, at.key))
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'%.60s' is not supported", at.key);
  }
  return LP_OK;
}

void lp_dialect_copy(lp_json_writer *to, const char *as, const lp_json *body, const char *key) {
  lp_json at = lp_json_member(body, key);
  if (lp_json_is_given(&at)) lp_json_put_value(to, as, at.value);
}

lp_status lp_dialect_content(lp_json_writer *to, const char *as, const lp_json *content, const char *types,
                             lp_diag *diag) {
  if (!lp_json_is(content, LP_JSON_ARRAY)) {
    if (content->value)
      lp_json_put_value(to, as, content->value);
    else
      lp_json_put_null(to, as);
    return LP_OK;
  }
  lp_json_put_array(to, as);
  for (size_t i = 0; i < lp_json_count(content); i++) {
    lp_json part = lp_json_item(content, i), text = lp_json_member(&part, "text");
    const char *type = lp_json_text_or(LP_MEMBER(&part, "type"), "?");
    if (!is_word(types, type)) return lp_json_error(&part, diag, "the type '%.40s' is not supported, only text", type);
    if (!lp_json_is(&text, LP_JSON_TEXT)) return lp_json_error(&part, diag, "'text' is missing");
    lp_json_put_object(to, NULL);
    lp_json_put_text(to, "type", "text");
    lp_json_put_value(to, "text", text.value);
    lp_json_put_end(to);
  }
  lp_json_put_end(to);
  return LP_OK;
}

void lp_dialect_message(lp_json_writer *to, const char *role, const char *text) {
  lp_json_put_object(to, NULL);
  lp_json_put_text(to, "role", role);
  lp_json_put_text(to, "content", text);
  lp_json_put_end(to);
}

void lp_dialect_call(lp_json_writer *to, const char *id, const char *name, const lp_json *arguments) {
  const char *spelled = lp_json_text_or(arguments, NULL);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_json_writer json = lp_answer_begin(&text);
  if (!spelled && arguments->value) lp_json_put_value(&json, NULL, arguments->value);
  lp_json_put_object(to, NULL);
  lp_json_put_text(to, "id", id);
  lp_json_put_text(to, "type", "function");
  lp_json_put_object(to, "function");
  lp_json_put_text(to, "name", name);
  lp_json_put_text(to, "arguments", spelled ? spelled : text.size > 0 ? text.data : "{}");
  lp_json_put_end(to);
  lp_json_put_end(to);
}

void lp_dialect_function(lp_json_writer *to, const lp_json *tool, const char *schema) {
  lp_json_put_object(to, NULL);
  lp_json_put_text(to, "type", "function");
  lp_json_put_object(to, "function");
  lp_dialect_copy(to, "name", tool, "name");
  lp_dialect_copy(to, "description", tool, "description");
  lp_dialect_copy(to, "parameters", tool, schema);
  lp_json_put_end(to);
  lp_json_put_end(to);
}

void lp_dialect_choose(lp_json_writer *to, const lp_json *choice) {
  lp_json_put_object(to, "tool_choice");
  lp_json_put_text(to, "type", "function");
  lp_json_put_object(to, "function");
  lp_dialect_copy(to, "name", choice, "name");
  lp_json_put_end(to);
  lp_json_put_end(to);
}

void lp_dialect_value(lp_json_writer *to, const char *key, const char *text) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  if (lp_json_parse("arguments", text, strlen(text), LP_JSON_ALLOW_DUPLICATES, &document, NULL) == LP_OK) {
    lp_json root = lp_json_root("arguments", document);
    lp_json_put_value(to, key, root.value);
  } else {
    lp_json_put_object(to, key);
    lp_json_put_end(to);
  }
}

lp_json_writer lp_dialect_event(lp_buf *out, const char *type) {
  lp_buf_printf(out, "event: %s\ndata: ", type);
  lp_json_writer json = lp_answer_begin(out);
  lp_json_put_object(&json, NULL);
  lp_json_put_text(&json, "type", type);
  return json;
}

void lp_dialect_event_end(lp_json_writer *json) {
  lp_json_put_end(json);
  lp_buf_puts(json->out, "\n\n");
}
