/* Counts, references within a schema, and alternatives that exclude each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/writer.h"
#include "runtime/grammar/builder.h"

enum { MOST_HOPS = 64, MOST_ONE_OF = 64 };

lp_status lp_builder_count(lp_builder *b, const lp_json *schema, const char *key, bool caps, int64_t most,
                           int64_t *out) {
  lp_json at = lp_json_member(schema, key);
  double count = 0;
  if (!lp_json_is_given(&at)) return LP_OK;
  const bool good = lp_json_number(&at, 0, INFINITY, &count, NULL) == LP_OK && count == floor(count);
  if (!good || (!caps && count > (double)most))
    return lp_json_error(schema, b->diag, "the schema's '%s' must be a whole number up to %" PRId64, key, most);
  *out = count > (double)most ? most : (int64_t)count;
  return LP_OK;
}

/* A key of a path: %XX is a byte there, ~1 a slash, and ~0 a tilde (RFC 6901). */
static char *read_key(const char *from, size_t size) {
  char *key = lp_alloc(size + 1), *to = key;
  for (size_t i = 0; i < size; i++) {
    const char digits[] = {i + 2 < size ? from[i + 1] : 0, i + 2 < size ? from[i + 2] : 0, 0};
    char *end = NULL;
    unsigned long byte = from[i] == '%' ? strtoul(digits, &end, 16) : 0;
    bool escaped = byte > 0 && end == digits + 2;
    *to++ = escaped ? (char)byte : from[i];
    i += escaped ? 2 : 0;
  }
  size = (size_t)(to - key);
  to = key;
  for (size_t i = 0; i < size; i++) {
    bool escaped = key[i] == '~' && i + 1 < size && (key[i + 1] == '0' || key[i + 1] == '1');
    *to++ = !escaped ? key[i] : key[i + 1] == '1' ? '/' : '~';
    i += escaped;
  }
  *to = 0;
  return key;
}

const lp_json_value *lp_builder_target(const lp_builder *b, const char *path) {
  const lp_json_value *at = b->root.value;
  if (path[0] != '#') return NULL;
  for (const char *from = path + 1; at && *from == '/';) {
    const char *end = strchrnul(++from, '/');
    char *key = read_key(from, (size_t)(end - from));
    lp_json object = {.value = at}, found = lp_json_member(&object, key);
    free(key);
    at = found.value;
    from = end;
  }
  return at;
}

bool lp_builder_requires(const lp_json *schema, const char *key) {
  lp_json list = lp_json_member(schema, "required");
  for (size_t i = 0; i < lp_json_count(&list); i++) {
    lp_json item = lp_json_item(&list, i);
    if (lp_json_equals(&item, key)) return true;
  }
  return false;
}

lp_json lp_builder_resolve(const lp_builder *b, const lp_json *schema) {
  lp_json at = *schema;
  for (int i = 0; i < MOST_HOPS; i++) {
    lp_json reference = lp_json_member(&at, "$ref");
    const char *path = lp_json_text_or(&reference, NULL);
    if (!path) break;
    at = (lp_json){.value = lp_builder_target(b, path)};
  }
  return at;
}

static bool is_equal(const lp_json_value *a, const lp_json_value *b) {
  lp_buf text[2] = {{0}, {0}};
  for (int i = 0; i < 2; i++) {
    lp_json_writer json = lp_json_writer_begin(&text[i], (lp_json_style){.has_no_space = true});
    lp_json_put_value(&json, NULL, i == 0 ? a : b);
  }
  const bool same = lp_streq(lp_buf_text(&text[0]), lp_buf_text(&text[1]));
  lp_buf_free(&text[0]);
  lp_buf_free(&text[1]);
  return same;
}

const lp_json_value *lp_builder_literal(const lp_json *schema, size_t index) {
  lp_json only = lp_json_member(schema, "const"), values = lp_json_member(schema, "enum");
  return only.value ? (index == 0 ? only.value : NULL) : lp_json_item(&values, index).value;
}

/* Tells whether both list values, and none in common. */
static bool has_other_values(const lp_json *one, const lp_json *other) {
  if (!lp_builder_literal(one, 0) || !lp_builder_literal(other, 0)) return false;
  for (size_t i = 0; lp_builder_literal(one, i); i++)
    for (size_t k = 0; lp_builder_literal(other, k); k++)
      if (is_equal(lp_builder_literal(one, i), lp_builder_literal(other, k))) return false;
  return true;
}

/* Tells whether no value fits both: they have other types, other values, or a property with other values. */
static bool is_disjoint(const lp_builder *b, const lp_json *one, const lp_json *other) {
  const lp_json first = lp_builder_resolve(b, one), second = lp_builder_resolve(b, other);
  lp_json type = lp_json_member(&first, "type"), type_of_second = lp_json_member(&second, "type"),
          properties = lp_json_member(&first, "properties"), others = lp_json_member(&second, "properties");
  const char *name = lp_json_text_or(&type, NULL), *name_of_second = lp_json_text_or(&type_of_second, NULL);
  const bool numbers = name && name_of_second && strchr("in", name[0]) && strchr("in", name_of_second[0]);
  if (name && name_of_second && !lp_streq(name, name_of_second) && !numbers) return true;
  if (has_other_values(&first, &second)) return true;
  for (size_t i = 0; lp_json_is(&properties, LP_JSON_OBJECT) && i < lp_json_count(&properties); i++) {
    lp_json property = lp_json_entry(&properties, i), same = lp_json_member(&others, property.key);
    if (lp_builder_requires(&first, property.key) && lp_builder_requires(&second, property.key) &&
        has_other_values(&property, &same))
      return true;
  }
  return false;
}

lp_status lp_builder_check_disjoint(lp_builder *b, const lp_json *list) {
  if (lp_json_count(list) > MOST_ONE_OF)
    return lp_json_error(list, b->diag, "the schema's 'oneOf' has more than %d schemas", MOST_ONE_OF);
  for (size_t i = 0; i < lp_json_count(list); i++)
    for (size_t k = 0; k < i; k++) {
      lp_json one = lp_json_item(list, k), other = lp_json_item(list, i);
      if (!is_disjoint(b, &one, &other))
        return lp_json_error(list, b->diag,
                             "the schema's keyword 'oneOf' is not supported where a value may fit two of its schemas, "
                             "here those at %zu and %zu: use 'anyOf'",
                             k, i);
    }
  return LP_OK;
}
