/* What the keywords of a schema say: counts, references, listed values; and whether values fit it. */
#include <math.h>

#include "base/json/writer.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/values.h"

enum { MOST_STEPS = 100000 }; /* of an automaton to look at a listed value */

/* Keywords of JSON Schema that restrict a value in a way that this folder does not follow. Others restrict nothing, as
 * the standard says of keywords that are unknown (JSON Schema 2020-12, core, 4.3.1). */
static bool is_refused(const lp_json *member) {
  static const char keys[] =
      " contains minContains maxContains unevaluatedItems unevaluatedProperties $dynamicRef $recursiveRef ";
  char word[40];
  const bool is_listed = (size_t)snprintf(word, sizeof word, " %s ", member->key) < sizeof word &&
                         !strchr(member->key, ' ') && strstr(keys, word);
  const bool closes = strncmp(member->key, "unevaluated", 11) == 0 && lp_json_is(member, LP_JSON_BOOL);
  return is_listed && !closes; /* nothing is made that an object or a list does not list */
}

lp_status lp_builder_check_keywords(lp_builder *b, const lp_json *schema) {
  if (!lp_json_is(schema, LP_JSON_OBJECT)) return lp_json_error(schema, b->diag, "a schema must be an object");
  for (size_t i = 0; i < lp_json_count(schema); i++) {
    lp_json member = lp_json_entry(schema, i);
    if (is_refused(&member))
      return lp_json_error(schema, b->diag, "the schema's keyword '%.40s' is not supported", member.key);
    if (lp_streq(member.key, "required") && lp_json_count(&member) > LP_MOST_COUNT)
      return lp_json_error(schema, b->diag, "the schema's 'required' has more than %d names", LP_MOST_COUNT);
  }
  return LP_OK;
}

lp_status lp_builder_too_large(lp_builder *b, const lp_json *at) {
  return lp_json_error(at, b->diag,
                       "the schema is too large: it has too many schemas within each other, or too many "
                       "of 'if', 'anyOf', 'oneOf' or 'dependencies' that hold at once");
}

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

lp_status lp_builder_none(lp_builder *b, const lp_json *schema, const char *why, int32_t *out) {
  const lp_status noted = lp_diag_count(b->none) == 0 ? lp_json_error(schema, b->none, "%s", why) : LP_FAILED;
  *out = -1;
  return noted == LP_OK ? LP_FAILED : LP_OK;
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
  if (path[0] != '#' || (path[1] && path[1] != '/')) return NULL; /* names of anchors are not looked for */
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
  LP_FOR_ITEMS(item, &list)
    if (lp_json_equals(&item, key)) return true;
  return false;
}

bool lp_builder_is_equal(lp_builder *of, const lp_json_value *a, const lp_json_value *b) {
  const bool numbers = !isnan(lp_value_number(a)) && !isnan(lp_value_number(b));
  of->tried++;
  if (numbers && (a->kind != b->kind || a->kind == LP_JSON_REAL)) return lp_value_number(a) == lp_value_number(b);
  if (a->kind != b->kind) return false;
  if (numbers) return a->integer == b->integer;
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

bool lp_builder_accepts(lp_builder *b, int32_t node, const char *text) {
  if (node < 0) return false;
  b->grammar->root = node;
  lp_automaton *automaton = lp_automaton_create(b->grammar, NULL);
  lp_automaton_grant(automaton, MOST_STEPS, true);
  const bool good = lp_automaton_take(automaton, text, strlen(text)) == LP_MATCH_YES && lp_automaton_can_end(automaton);
  lp_automaton_free(automaton);
  return good;
}

const lp_json_value *lp_builder_literal(const lp_json *schema, size_t index) {
  lp_json only = lp_json_member(schema, "const"), values = lp_json_member(schema, "enum");
  return only.value ? (index == 0 ? only.value : NULL) : lp_json_item(&values, index).value;
}
