/* Located reading of JSON values. */
#include "base/json/json_reader.h"
#include "base/poly.h"

#include <stdlib.h>

lp_status lp_json_load(const char *file, const char *text, size_t size, json_t **out, lp_diag *diag) {
  json_error_t error;
  *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (*out) return LP_OK;
  lp_loc loc = {.file = file, .line = error.line > 0 ? error.line : 0, .col = error.column > 0 ? error.column : 0};
  return lp_error(diag, loc, "not valid JSON: %s", error.text);
}

lp_json lp_json_root(const char *file, const json_t *value) {
  return (lp_json){.file = file, .value = value};
}

lp_json lp_json_member(const lp_json *object, const char *key) {
  return (lp_json){.parent = object, .file = object->file, .key = key, .value = json_object_get(object->value, key)};
}

lp_json lp_json_item(const lp_json *array, size_t index) {
  return (lp_json){.parent = array, .file = array->file, .index = index, .value = json_array_get(array->value, index)};
}

size_t lp_json_count(const lp_json *array) {
  return json_is_object(array->value) ? json_object_size(array->value) : json_array_size(array->value);
}

static void print_path(const lp_json *at, lp_buf *out) {
  if (!at->parent) return;
  print_path(at->parent, out);
  if (!at->key)
    lp_buf_printf(out, "[%zu]", at->index);
  else
    lp_buf_printf(out, "%s%.80s", out->size > 0 ? "." : "", at->key);
}

lp_status lp_json_error(const lp_json *at, lp_diag *diag, const char *format, ...) {
  lp_buf text = {0};
  print_path(at, &text);
  if (text.size > 0) lp_buf_puts(&text, ": ");
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  lp_buf_puts(&text, message);
  lp_status status = lp_error(diag, LP_LOC_FILE(at->file), "%s", lp_buf_text(&text));
  lp_buf_free(&text);
  return status;
}

static const char *kind_of(const json_t *value) {
  if (!value) return "nothing";
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    return "an object";
  case JSON_ARRAY:
    return "an array";
  case JSON_STRING:
    return "a string";
  case JSON_INTEGER:
    return "an integer";
  case JSON_REAL:
    return "a real number";
  case JSON_TRUE:
  case JSON_FALSE:
    return "a boolean";
  case JSON_NULL:
    return "null";
  }
  return "an unknown value";
}

static lp_status wanted(const lp_json *at, const char *what, lp_diag *diag) {
  return lp_json_error(at, diag, "wanted %s, found %s", what, kind_of(at->value));
}

lp_status lp_json_object(const lp_json *at, lp_diag *diag) {
  return json_is_object(at->value) ? LP_OK : wanted(at, "an object", diag);
}

lp_status lp_json_array(const lp_json *at, lp_diag *diag) {
  return json_is_array(at->value) ? LP_OK : wanted(at, "an array", diag);
}

lp_status lp_json_text(const lp_json *at, const char **out, lp_diag *diag) {
  if (!json_is_string(at->value)) return wanted(at, "a string", diag);
  *out = json_string_value(at->value);
  return LP_OK;
}

lp_status lp_json_i64(const lp_json *at, int64_t min, int64_t max, int64_t *out, lp_diag *diag) {
  if (!json_is_integer(at->value)) return wanted(at, "an integer", diag);
  *out = json_integer_value(at->value);
  if (*out >= min && *out <= max) return LP_OK;
  return lp_json_error(at, diag, "%" PRId64 " lies outside of %" PRId64 "..%" PRId64, *out, min, max);
}

lp_status lp_json_number(const lp_json *at, double min, double max, double *out, lp_diag *diag) {
  if (!json_is_number(at->value)) return wanted(at, "a number", diag);
  double value = json_number_value(at->value);
  if (value < min || value > max)
    return lp_json_error(at, diag, "%g is outside of the range %g to %g", value, min, max);
  *out = value;
  return LP_OK;
}

lp_status lp_json_i32(const lp_json *at, int32_t min, int32_t max, int32_t *out, lp_diag *diag) {
  int64_t wide = 0;
  LP_TRY(lp_json_i64(at, min, max, &wide, diag));
  *out = (int32_t)wide;
  return LP_OK;
}

lp_status lp_json_choice(const lp_json *at, const char *const *names, size_t count, int32_t *out, lp_diag *diag) {
  const char *text = NULL;
  LP_TRY(lp_json_text(at, &text, diag));
  for (size_t i = 0; i < count; i++) {
    if (lp_streq(text, names[i])) {
      *out = (int32_t)i;
      return LP_OK;
    }
  }
  lp_status status = lp_json_error(at, diag, "unknown value '%.60s'", text);
  lp_note_near(diag, LP_LOC_FILE(at->file), text, names, count);
  return status;
}

lp_status lp_json_poly(const lp_json *at, lp_arena *arena, lp_symbols *symbols, const lp_poly **out, lp_diag *diag) {
  const char *text = NULL;
  size_t known = symbols->names.count;
  LP_TRY(lp_json_text(at, &text, diag));
  lp_diag *inner = lp_diag_create();
  lp_status status = lp_poly_parse(arena, symbols, text, out, inner, LP_LOC_NONE);
  if (status != LP_OK || !*out) {
    const lp_diag_entry *first = lp_diag_get(inner, 0);
    status = lp_json_error(at, diag, "'%.60s' is no polynomial: %s", text, first ? first->text : "unreadable");
  } else if (symbols->names.count > known) {
    status = lp_json_error(at, diag, "'%.60s' uses '%.40s', which `symbols` does not list", text,
                           symbols->names.data[known]);
  }
  lp_diag_free(inner);
  return status;
}
