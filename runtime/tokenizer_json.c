/* Reading JSON for the tokenizer: every value is asked for by type, and a message names its place in the file. */
#include "runtime/tokenizer_internal.h"

static const char *kind_name(json_type type) {
  switch (type) {
  case JSON_OBJECT: return "an object";
  case JSON_ARRAY: return "an array";
  case JSON_STRING: return "a string";
  case JSON_INTEGER: return "an integer";
  case JSON_REAL: return "a number";
  case JSON_TRUE:
  case JSON_FALSE: return "a boolean";
  case JSON_NULL: return "null";
  }
  return "nothing";
}

lp_status lp_json_parse(lp_loader *loader, const char *data, size_t size, json_t **out) {
  json_error_t error;
  *out = json_loadb(data, size, JSON_ALLOW_NUL, &error);
  if (*out != NULL) return LP_OK;
  lp_loc loc = {.file = loader->file, .line = error.line, .col = error.column};
  return lp_error(loader->diag, loc, "not valid JSON: %s", error.text);
}

const char *lp_json_path(lp_loader *loader, const char *path, const char *key) {
  if (path[0] == '\0') return lp_arena_strdup(loader->tokenizer->arena, key);
  return lp_arena_format(loader->tokenizer->arena, "%s.%s", path, key);
}

const char *lp_json_path_at(lp_loader *loader, const char *path, size_t index) {
  return lp_arena_format(loader->tokenizer->arena, "%s[%zu]", path, index);
}

lp_status lp_json_expect(lp_loader *loader, const json_t *json, json_type type, const char *path) {
  if (json_typeof(json) == type) return LP_OK;
  return lp_error(loader->diag, LP_LOC_FILE(loader->file), "'%s': expected %s, found %s", path, kind_name(type),
                  kind_name(json_typeof(json)));
}

lp_status lp_json_member(lp_loader *loader, const json_t *object, const char *path, const char *key, json_type type,
                         const json_t **out) {
  *out = json_object_get(object, key);
  if (*out == NULL)
    return lp_error(loader->diag, LP_LOC_FILE(loader->file), "'%s' lacks the member '%s'",
                    path[0] == '\0' ? "the file" : path, key);
  if (json_typeof(*out) == type) return LP_OK;
  return lp_json_expect(loader, *out, type, lp_json_path(loader, path, key));
}

lp_status lp_json_text(lp_loader *loader, const json_t *object, const char *path, const char *key, const char **out,
                       size_t *size) {
  const json_t *json;
  LP_TRY(lp_json_member(loader, object, path, key, JSON_STRING, &json));
  *size = json_string_length(json);
  *out = lp_arena_copy(loader->tokenizer->arena, json_string_value(json), *size + 1); /* may hold NUL bytes */
  return LP_OK;
}

lp_status lp_json_bool(lp_loader *loader, const json_t *object, const char *path, const char *key, bool fallback,
                       bool *out) {
  const json_t *json = json_object_get(object, key);
  *out = fallback;
  if (json == NULL || json_is_null(json)) return LP_OK;
  *out = json_is_true(json);
  return json_is_boolean(json) ? LP_OK : lp_json_expect(loader, json, JSON_TRUE, lp_json_path(loader, path, key));
}

lp_status lp_json_count(lp_loader *loader, const json_t *json, const char *path, int64_t max, int64_t *out) {
  LP_TRY(lp_json_expect(loader, json, JSON_INTEGER, path));
  *out = json_integer_value(json);
  if (*out >= 0 && *out <= max) return LP_OK;
  return lp_error(loader->diag, LP_LOC_FILE(loader->file),
                  "'%s': expected an integer from 0 to %" PRId64 ", found %" PRId64, path, max, *out);
}
