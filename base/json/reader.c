/* Values of a document, each with its place. */
#include "base/json/document.h"

lp_json lp_json_root(const char *file, const lp_json_document *document) {
  return (lp_json){.file = file, .value = &document->root};
}

static bool is(const lp_json_value *value, lp_json_kind kind) {
  return value && value->kind == kind;
}

static bool has_text(const lp_json_value *value, const char *text) {
  return value->size == strlen(text) && memcmp(value->text, text, value->size) == 0;
}

static void (*watcher)(void *user, const lp_json *member);
static void *watcher_user;

void lp_json_watch(void (*asked)(void *user, const lp_json *member), void *user) {
  watcher = asked;
  watcher_user = user;
}

lp_json lp_json_member(const lp_json *object, const char *key) {
  lp_json member = {.parent = object, .file = object->file, .key = key};
  for (uint32_t i = 0; is(object->value, LP_JSON_OBJECT) && i < object->value->size && !member.value; i++)
    if (has_text(&object->value->items[2 * (size_t)i], key)) member.value = &object->value->items[2 * (size_t)i + 1];
  if (watcher) watcher(watcher_user, &member);
  return member;
}

lp_json lp_json_entry(const lp_json *object, size_t index) {
  const lp_json_value *key = &object->value->items[2 * index];
  return (lp_json){.parent = object, .file = object->file, .key = key->text, .value = key + 1};
}

lp_json lp_json_item(const lp_json *array, size_t index) {
  bool has = is(array->value, LP_JSON_ARRAY) && index < array->value->size;
  return (lp_json){
      .parent = array, .file = array->file, .index = index, .value = has ? &array->value->items[index] : NULL};
}

size_t lp_json_count(const lp_json *at) {
  return is(at->value, LP_JSON_OBJECT) || is(at->value, LP_JSON_ARRAY) ? at->value->size : 0;
}

bool lp_json_is(const lp_json *at, lp_json_kind kind) {
  return is(at->value, kind);
}

bool lp_json_is_given(const lp_json *at) {
  return at->value && at->value->kind != LP_JSON_NULL;
}

bool lp_json_is_true(const lp_json *at) {
  return is(at->value, LP_JSON_BOOL) && at->value->truth;
}

bool lp_json_equals(const lp_json *at, const char *text) {
  return is(at->value, LP_JSON_TEXT) && has_text(at->value, text);
}

const char *lp_json_text_or(const lp_json *at, const char *otherwise) {
  bool has = is(at->value, LP_JSON_TEXT) && strlen(at->value->text) == at->value->size;
  return has ? at->value->text : otherwise;
}

const char *lp_json_text_of(const lp_json *object, const char *key) {
  lp_json at = lp_json_member(object, key);
  return lp_json_text_or(&at, NULL);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void print_path(const lp_json *at, lp_buf *out) {
  if (!at->parent) return;
  print_path(at->parent, out);
  if (!at->key)
    lp_buf_printf(out, "[%zu]", at->index);
  else
    lp_buf_printf(out, "%s%.80s", out->size > 0 ? "." : "", at->key);
}

lp_status lp_json_error(const lp_json *at, lp_diag *diag, const char *format, ...) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  print_path(at, &text);
  if (text.size > 0) lp_buf_puts(&text, ": ");
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  lp_buf_puts(&text, message);
  return lp_error(diag, LP_LOC_FILE(at->file), "%s", lp_buf_text(&text));
}

static lp_status wanted(const lp_json *at, const char *what, lp_diag *diag) {
  static const char *const names[] = {
      [LP_JSON_NULL] = "null",          [LP_JSON_BOOL] = "a boolean", [LP_JSON_INTEGER] = "an integer",
      [LP_JSON_REAL] = "a real number", [LP_JSON_TEXT] = "a string",  [LP_JSON_ARRAY] = "an array",
      [LP_JSON_OBJECT] = "an object"};
  return lp_json_error(at, diag, "wanted %s, found %s", what, at->value ? names[at->value->kind] : "nothing");
}

/* ---- values of a kind -------------------------------------------------------------------------------------------- */

lp_status lp_json_object(const lp_json *at, lp_diag *diag) {
  return is(at->value, LP_JSON_OBJECT) ? LP_OK : wanted(at, "an object", diag);
}

lp_status lp_json_array(const lp_json *at, lp_diag *diag) {
  return is(at->value, LP_JSON_ARRAY) ? LP_OK : wanted(at, "an array", diag);
}

lp_status lp_json_bytes(const lp_json *at, const char **out, size_t *size, lp_diag *diag) {
  if (!is(at->value, LP_JSON_TEXT)) return wanted(at, "a string", diag);
  *out = at->value->text;
  *size = at->value->size;
  return LP_OK;
}

lp_status lp_json_text(const lp_json *at, const char **out, lp_diag *diag) {
  if (!is(at->value, LP_JSON_TEXT)) return wanted(at, "a string", diag);
  *out = at->value->text;
  return strlen(*out) == at->value->size ? LP_OK : lp_json_error(at, diag, "the string holds \\u0000");
}

lp_status lp_json_bool(const lp_json *at, bool *out, lp_diag *diag) {
  if (!is(at->value, LP_JSON_BOOL)) return wanted(at, "a boolean", diag);
  *out = at->value->truth;
  return LP_OK;
}

lp_status lp_json_i64(const lp_json *at, int64_t min, int64_t max, int64_t *out, lp_diag *diag) {
  if (!is(at->value, LP_JSON_INTEGER)) return wanted(at, "an integer", diag);
  *out = at->value->integer;
  if (*out >= min && *out <= max) return LP_OK;
  return lp_json_error(at, diag, "%" PRId64 " lies outside of %" PRId64 "..%" PRId64, *out, min, max);
}

lp_status lp_json_number(const lp_json *at, double min, double max, double *out, lp_diag *diag) {
  bool integer = is(at->value, LP_JSON_INTEGER);
  if (!integer && !is(at->value, LP_JSON_REAL)) return wanted(at, "a number", diag);
  double value = integer ? (double)at->value->integer : at->value->real;
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
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  lp_status status = lp_poly_parse(arena, symbols, text, out, inner, LP_LOC_NONE);
  if (status != LP_OK || !*out) {
    const lp_diag_entry *first = lp_diag_get(inner, 0);
    status = lp_json_error(at, diag, "'%.60s' is no polynomial: %s", text, first ? first->text : "unreadable");
  } else if (symbols->names.count > known) {
    status = lp_json_error(at, diag, "'%.60s' uses '%.40s', which `symbols` does not list", text,
                           symbols->names.data[known]);
  }
  return status;
}

static uint64_t digest_of(const lp_json_value *value, const char *except, uint64_t seed) {
  const bool nests = value->kind == LP_JSON_ARRAY || value->kind == LP_JSON_OBJECT;
  const double number = value->kind == LP_JSON_INTEGER ? (double)value->integer : value->real;
  const bool numeric = value->kind == LP_JSON_INTEGER || value->kind == LP_JSON_REAL;
  if (value->kind == LP_JSON_TEXT) return lp_hash_bytes(value->text, value->size, seed);
  if (numeric) return lp_hash_bytes(&number, sizeof number, seed);
  if (!nests) return lp_hash_bytes(value->kind == LP_JSON_BOOL && value->truth ? "t" : "f", 1, seed);
  const uint32_t each = value->kind == LP_JSON_OBJECT ? 2 : 1;
  for (uint32_t i = 0; i < value->size * each; i += each) {
    const lp_json_value *key = &value->items[i];
    if (except && each == 2 && lp_streq(key->text, except)) continue;
    for (uint32_t part = 0; part < each; part++)
      seed = digest_of(&value->items[i + part], NULL, seed);
  }
  return lp_hash_bytes(value->kind == LP_JSON_ARRAY ? "]" : "}", 1, seed);
}

uint64_t lp_json_digest(const lp_json *root, const char *except) {
  return root->value ? digest_of(root->value, except, 0) : 0;
}
