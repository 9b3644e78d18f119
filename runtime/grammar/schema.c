/* JSON schemas as grammars. Each rule is built from its end, so that a node's successor exists before it. */
#include <stdlib.h>
#include <string.h>

#include "base/json/writer.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/grammar.h"

/* Limits: digits of a number, spaces of an indentation, characters and items that a keyword may count. */
enum { MOST_DIGITS = 15, MOST_SPACES = 16, MOST_COUNT = 1024, MOST_DEPTH = 64, MOST_LOOKED_AT = 128 };

/* A definition that was built, or is being built. */
typedef struct {
  const lp_json_value *schema;
  int32_t node; /* a split to the rule, so that a rule can call itself before it is complete */
} built;

/* A string or a list that was built: the same again is the same node, so that equal alternatives are one. */
typedef struct {
  char open;
  int32_t item; /* of a list */
  int64_t least, most;
  int32_t node;
} counted;

typedef struct {
  lp_grammar *grammar;
  lp_json root;
  lp_diag *diag;
  LP_VEC(built) rules;
  LP_VEC(counted) counted;
  int32_t done; /* the node that ends every rule */
  /* Rules of their own, which call each other. */
  int32_t space, string, character, number, integer, value, object, array;
} builder;

static int32_t text(builder *b, const char *of, int32_t next) {
  return lp_grammar_text(b->grammar, of, strlen(of), next);
}

static int32_t call(builder *b, int32_t rule, int32_t next) {
  return lp_grammar_call(b->grammar, rule, next);
}

static int32_t either(builder *b, int32_t one, int32_t other) {
  return lp_grammar_split(b->grammar, one, other);
}

static int32_t range(builder *b, int low, int high, int32_t next) {
  return lp_grammar_byte(b->grammar, (uint8_t)low, (uint8_t)high, next);
}

/* A rule that can be called before it is defined. */
static int32_t declare(builder *b) {
  return either(b, 0, 0);
}

static void define(builder *b, int32_t rule, int32_t node) {
  b->grammar->nodes.data[rule].next = b->grammar->nodes.data[rule].other = node;
}

/* ---- plain JSON -------------------------------------------------------------------------------------------------- */

/* Nothing, a space, or a new line and an indentation. */
static int32_t space_rule(builder *b) {
  int32_t next = b->done;
  for (int i = 0; i < MOST_SPACES; i++)
    next = either(b, b->done, range(b, ' ', ' ', next));
  return either(b, b->done, either(b, range(b, ' ', ' ', b->done), range(b, '\n', '\n', next)));
}

/* A character of a string: a plain one or an escape. */
static int32_t character_rule(builder *b) {
  static const char escapes[] = "\"\\/bfnrt";
  int32_t any = -1;
  for (int i = 0; i < LP_PLAIN_FORMS; i++) {
    const int *form = lp_plain_forms[i];
    int32_t next = b->done;
    for (int k = 6; k >= 0; k -= 2)
      if (form[k + 1]) next = range(b, form[k], form[k + 1], next);
    any = i == 0 ? next : either(b, any, next);
  }
  int32_t escaped = range(b, escapes[0], escapes[0], b->done);
  for (size_t i = 1; escapes[i]; i++)
    escaped = either(b, escaped, range(b, escapes[i], escapes[i], b->done));
  return either(b, any, range(b, '\\', '\\', escaped));
}

/* Looks among those that were built last, since equal alternatives are near each other. -1: it is not there. */
static int32_t find_counted(const builder *b, char open, int32_t item, int64_t least, int64_t most) {
  for (size_t i = b->counted.count, end = i > MOST_LOOKED_AT ? i - MOST_LOOKED_AT : 0; i-- > end;) {
    const counted *at = &b->counted.data[i];
    if (at->open == open && at->item == item && at->least == least && at->most == most) return at->node;
  }
  return -1;
}

static int32_t string_rule(builder *b, int64_t least, int64_t most) {
  int32_t next = range(b, '"', '"', b->done), end = next;
  if (most < 0) {
    int32_t loop = declare(b);
    define(b, loop, either(b, end, call(b, b->character, loop)));
    next = loop;
  }
  for (int64_t i = most < 0 ? least : most; i > 0; i--) {
    next = call(b, b->character, next);
    if (i > least) next = either(b, end, next);
  }
  return range(b, '"', '"', next);
}

/* Up to `most` digits. */
static int32_t digits(builder *b, int most, int32_t next) {
  int32_t node = next;
  for (int i = 0; i < most; i++)
    node = either(b, next, range(b, '0', '9', node));
  return node;
}

static int32_t whole(builder *b, int32_t next) {
  int32_t some = either(b, range(b, '0', '0', next), range(b, '1', '9', digits(b, MOST_DIGITS - 1, next)));
  return either(b, some, range(b, '-', '-', some));
}

static int32_t number_rule(builder *b) {
  int32_t power = range(b, '0', '9', digits(b, 1, b->done));
  int32_t sign = either(b, power, either(b, range(b, '+', '+', power), range(b, '-', '-', power)));
  int32_t exponent = either(b, b->done, either(b, range(b, 'e', 'e', sign), range(b, 'E', 'E', sign)));
  int32_t fraction = range(b, '.', '.', range(b, '0', '9', digits(b, MOST_DIGITS - 1, exponent)));
  return whole(b, either(b, exponent, fraction));
}

/* ITEM, ITEM, ... between brackets; `least` and `most` count the items, `most` < 0: any number. */
static int32_t list_rule(builder *b, char open, char close, int32_t item, int64_t least, int64_t most) {
  int32_t end = call(b, b->space, range(b, close, close, b->done));
  int32_t next = end;
  if (most < 0) {
    int32_t loop = declare(b);
    int32_t more = call(b, b->space, range(b, ',', ',', call(b, b->space, call(b, item, loop))));
    define(b, loop, either(b, end, more));
    next = loop;
  }
  for (int64_t i = (most < 0 ? (least > 0 ? least : 1) : most); i > 0; i--) {
    next = call(b, b->space, call(b, item, next));
    if (i > 1) next = range(b, ',', ',', next);
    if (i > least) next = either(b, end, next);
  }
  return range(b, open, open, next);
}

static void define_plain(builder *b) {
  b->done = lp_grammar_return(b->grammar);
  b->space = space_rule(b);
  b->character = character_rule(b);
  b->string = string_rule(b, 0, -1);
  b->integer = whole(b, b->done);
  b->number = number_rule(b);
  b->value = declare(b);
  b->array = list_rule(b, '[', ']', b->value, 0, -1);
  int32_t member =
      call(b, b->string, call(b, b->space, range(b, ':', ':', call(b, b->space, call(b, b->value, b->done)))));
  b->object = list_rule(b, '{', '}', member, 0, -1);
  int32_t any = either(b, b->string, either(b, b->number, either(b, b->object, b->array)));
  any = either(b, any,
               either(b, text(b, "true", b->done), either(b, text(b, "false", b->done), text(b, "null", b->done))));
  define(b, b->value, any);
}

/* ---- schemas ----------------------------------------------------------------------------------------------------- */

static lp_status build(builder *b, const lp_json *schema, int depth, int32_t *out);

/* Keywords of JSON Schema and OpenAPI that restrict a value in a way that this file does not follow. Others restrict
 * nothing, as the standard says of keywords that are unknown (JSON Schema 2020-12, core, 4.3.1). */
static bool is_refused(const char *key) {
  static const char keys[] =
      " multipleOf maximum exclusiveMaximum minimum exclusiveMinimum pattern format contains minContains maxContains "
      "prefixItems additionalItems unevaluatedItems unevaluatedProperties maxProperties minProperties "
      "patternProperties "
      "propertyNames dependentSchemas dependentRequired dependencies if then else not oneOf discriminator $dynamicRef "
      "$recursiveRef contentEncoding contentMediaType contentSchema ";
  char word[40];
  return (size_t)snprintf(word, sizeof word, " %s ", key) < sizeof word && !strchr(key, ' ') && strstr(keys, word);
}

static lp_status check_keywords(builder *b, const lp_json *schema) {
  for (size_t i = 0; i < lp_json_count(schema); i++) {
    lp_json member = lp_json_entry(schema, i);
    if (is_refused(member.key))
      return lp_error(b->diag, LP_LOC_NONE, "the schema's keyword '%.40s' is not supported", member.key);
  }
  lp_json nullable = lp_json_member(schema, "nullable"), unique = lp_json_member(schema, "uniqueItems");
  if (lp_json_is_true(&nullable))
    return lp_error(b->diag, LP_LOC_NONE, "the schema's keyword 'nullable' is not supported: use a type 'null'");
  if (lp_json_is_true(&unique))
    return lp_error(b->diag, LP_LOC_NONE, "the schema's keyword 'uniqueItems' is not supported");
  return LP_OK;
}

static lp_status read_count(builder *b, const lp_json *schema, const char *key, int64_t *out) {
  lp_json at = lp_json_member(schema, key);
  if (!lp_json_is_given(&at) || lp_json_i64(&at, 0, MOST_COUNT, out, NULL) == LP_OK) return LP_OK;
  return lp_error(b->diag, LP_LOC_NONE, "the schema's '%s' must be a whole number up to %d", key, MOST_COUNT);
}

/* Any of the nodes, in a tree of splits, since an expansion follows chains of limited length. `count` > 0. */
static int32_t any_of(builder *b, const int32_t *node, size_t count) {
  return count == 1 ? node[0] : either(b, any_of(b, node, count / 2), any_of(b, node + count / 2, count - count / 2));
}

static lp_status build_any_of(builder *b, const lp_json *list, int depth, int32_t *out) {
  LP_VEC(int32_t) nodes = {0};
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < lp_json_count(list); i++) {
    lp_json item = lp_json_item(list, i);
    int32_t one = 0;
    status = build(b, &item, depth + 1, &one);
    lp_vec_push(&nodes, one);
  }
  if (status == LP_OK && (nodes.count == 0 || nodes.count > MOST_COUNT))
    status = lp_error(b->diag, LP_LOC_NONE, "the schema has a list of %zu alternatives, wanted 1 to %d", nodes.count,
                      MOST_COUNT);
  if (status == LP_OK) *out = any_of(b, nodes.data, nodes.count);
  lp_vec_free(&nodes);
  return status;
}

static bool is_required(const lp_json *schema, const char *key) {
  lp_json list = lp_json_member(schema, "required");
  for (size_t i = 0; i < lp_json_count(&list); i++) {
    lp_json item = lp_json_item(&list, i);
    if (lp_json_equals(&item, key)) return true;
  }
  return false;
}

static lp_status check_required(builder *b, const lp_json *schema, const lp_json *properties) {
  lp_json list = lp_json_member(schema, "required");
  for (size_t i = 0; i < lp_json_count(&list); i++) {
    lp_json item = lp_json_item(&list, i);
    const char *name = lp_json_text_or(&item, NULL);
    lp_json found = lp_json_member(properties, name ? name : "");
    if (!name || !lp_json_is_given(&found))
      return lp_error(b->diag, LP_LOC_NONE, "the schema requires '%.40s', which 'properties' lacks", name ? name : "?");
  }
  return LP_OK;
}

/* "KEY": VALUE, then `next`. */
static lp_status build_property(builder *b, const lp_json *property, int depth, int32_t next, int32_t *out) {
  int32_t value;
  lp_buf key = {0};
  LP_TRY(build(b, property, depth + 1, &value));
  lp_json_quote(property->key, &key);
  next = range(b, ':', ':', call(b, b->space, call(b, value, next)));
  *out = lp_grammar_text(b->grammar, lp_buf_text(&key), key.size, next);
  lp_buf_free(&key);
  return LP_OK;
}

/* The properties in their order; those that are not required may be left out. */
static lp_status build_properties(builder *b, const lp_json *schema, const lp_json *properties, int depth,
                                  int32_t *out) {
  int32_t end = call(b, b->space, range(b, '}', '}', b->done));
  int32_t first = end, later = end; /* what follows before, and after, the first property that is there */
  LP_TRY(check_required(b, schema, properties));
  for (size_t i = lp_json_count(properties); i-- > 0;) {
    lp_json property = lp_json_entry(properties, i);
    int32_t node;
    LP_TRY(build_property(b, &property, depth, later, &node));
    int32_t as_first = call(b, b->space, node), as_later = range(b, ',', ',', call(b, b->space, node));
    bool optional = !is_required(schema, property.key);
    first = optional ? either(b, as_first, first) : as_first;
    later = optional ? either(b, as_later, later) : as_later;
  }
  *out = range(b, '{', '{', first);
  return LP_OK;
}

static lp_status build_object(builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json properties = lp_json_member(schema, "properties"), more = lp_json_member(schema, "additionalProperties");
  if (lp_json_count(&properties) > MOST_COUNT)
    return lp_error(b->diag, LP_LOC_NONE, "the schema's 'properties' has %zu members, at most %d are taken",
                    lp_json_count(&properties), MOST_COUNT);
  bool none = lp_json_is(&more, LP_JSON_BOOL) && !lp_json_is_true(&more);
  if (lp_json_count(&properties) > 0 || none || (lp_json_is_given(&properties) && !lp_json_is_given(&more)))
    return build_properties(b, schema, &properties, depth, out);
  int32_t value = b->value;
  LP_TRY(check_required(b, schema, &properties));
  if (lp_json_is(&more, LP_JSON_OBJECT)) LP_TRY(build(b, &more, depth + 1, &value));
  int32_t member = call(b, b->string, range(b, ':', ':', call(b, b->space, call(b, value, b->done))));
  *out = list_rule(b, '{', '}', member, 0, -1);
  return LP_OK;
}

static lp_status build_array(builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json items = lp_json_member(schema, "items");
  int64_t least = 0, most = -1;
  int32_t item = b->value;
  LP_TRY(read_count(b, schema, "minItems", &least));
  LP_TRY(read_count(b, schema, "maxItems", &most));
  if (most >= 0 && least > most) return lp_error(b->diag, LP_LOC_NONE, "the schema's 'minItems' exceeds 'maxItems'");
  if (lp_json_is_given(&items)) LP_TRY(build(b, &items, depth + 1, &item));
  *out = find_counted(b, '[', item, least, most);
  if (*out < 0) {
    *out = list_rule(b, '[', ']', item, least, most);
    lp_vec_push(&b->counted, ((counted){'[', item, least, most, *out}));
  }
  return LP_OK;
}

static lp_status build_string(builder *b, const lp_json *schema, int32_t *out) {
  int64_t least = 0, most = -1;
  LP_TRY(read_count(b, schema, "minLength", &least));
  LP_TRY(read_count(b, schema, "maxLength", &most));
  if (most >= 0 && least > most) return lp_error(b->diag, LP_LOC_NONE, "the schema's 'minLength' exceeds 'maxLength'");
  *out = least == 0 && most < 0 ? b->string : find_counted(b, '"', -1, least, most);
  if (*out < 0) {
    *out = string_rule(b, least, most);
    lp_vec_push(&b->counted, ((counted){'"', -1, least, most, *out}));
  }
  return LP_OK;
}

static lp_status build_type(builder *b, const lp_json *schema, const char *type, int depth, int32_t *out) {
  if (lp_streq(type, "object")) return build_object(b, schema, depth, out);
  if (lp_streq(type, "array")) return build_array(b, schema, depth, out);
  if (lp_streq(type, "string")) return build_string(b, schema, out);
  *out = lp_streq(type, "number")    ? b->number
         : lp_streq(type, "integer") ? b->integer
         : lp_streq(type, "boolean") ? either(b, text(b, "true", b->done), text(b, "false", b->done))
         : lp_streq(type, "null")    ? text(b, "null", b->done)
                                     : -1;
  return *out >= 0 ? LP_OK : lp_error(b->diag, LP_LOC_NONE, "the schema's type '%.40s' is unknown", type);
}

/* 'type': a name, or a list of names. */
static lp_status build_types(builder *b, const lp_json *schema, const lp_json *type, int depth, int32_t *out) {
  const char *only = lp_json_text_or(type, NULL);
  if (only) return build_type(b, schema, only, depth, out);
  int32_t node = -1;
  for (size_t i = 0; i < lp_json_count(type); i++) {
    lp_json item = lp_json_item(type, i);
    int32_t one;
    LP_TRY(build_type(b, schema, lp_json_text_or(&item, ""), depth, &one));
    node = node < 0 ? one : either(b, node, one);
  }
  *out = node;
  return node >= 0 ? LP_OK : lp_error(b->diag, LP_LOC_NONE, "the schema's 'type' must be a name or a list of names");
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

/* "#", "#/$defs/NAME" and other paths of keys. */
static lp_status build_reference(builder *b, const char *path, int depth, int32_t *out) {
  const lp_json_value *at = b->root.value;
  bool good = path[0] == '#';
  for (const char *from = path + 1; good && *from == '/';) {
    const char *end = strchrnul(++from, '/');
    char *key = read_key(from, (size_t)(end - from));
    lp_json object = {.value = at}, found = lp_json_member(&object, key);
    free(key);
    at = found.value;
    good = at != NULL;
    from = end;
  }
  if (!good) return lp_error(b->diag, LP_LOC_NONE, "the schema's '$ref' finds nothing at '%.80s'", path);
  lp_json target = {.parent = NULL, .value = at};
  for (size_t i = 0; i < b->rules.count; i++)
    if (b->rules.data[i].schema == at) {
      *out = b->rules.data[i].node;
      return LP_OK;
    }
  const built rule = {at, declare(b)};
  int32_t node;
  lp_vec_push(&b->rules, rule);
  LP_TRY(build(b, &target, depth + 1, &node));
  define(b, rule.node, node);
  *out = rule.node;
  return LP_OK;
}

/* The type that keywords imply. */
static const char *implied_type(const lp_json *schema) {
  static const char *const signs[][2] = {
      {"properties", "object"}, {"required", "object"}, {"additionalProperties", "object"},
      {"items", "array"},       {"minItems", "array"},  {"maxItems", "array"},
      {"minLength", "string"},  {"maxLength", "string"}};
  for (size_t i = 0; i < LP_COUNT(signs); i++) {
    lp_json at = lp_json_member(schema, signs[i][0]);
    if (lp_json_is_given(&at)) return signs[i][1];
  }
  return NULL;
}

/* Fails when a schema has several of the keywords of which this file follows one. Literal values may have a type. */
static lp_status check_alone(builder *b, const lp_json *schema) {
  static const char *const keys[] = {"$ref", "anyOf", "allOf", "enum", "const", "type"};
  const char *first = NULL, *second = implied_type(schema);
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    lp_json at = lp_json_member(schema, keys[i]);
    bool literal = first && (lp_streq(first, "enum") || lp_streq(first, "const"));
    if (!at.value || (lp_streq(keys[i], "type") && (literal || !first))) continue;
    if (first) second = keys[i];
    first = first ? first : keys[i];
  }
  if (!first || !second) return LP_OK;
  return lp_error(b->diag, LP_LOC_NONE, "the schema has '%s' beside other keywords, which is not supported", first);
}

static bool has_type(const lp_json_value *value, const lp_json *type) {
  static const char *const names[] = {
      [LP_JSON_NULL] = "null",   [LP_JSON_BOOL] = "boolean", [LP_JSON_INTEGER] = "integer", [LP_JSON_REAL] = "number",
      [LP_JSON_TEXT] = "string", [LP_JSON_ARRAY] = "array",  [LP_JSON_OBJECT] = "object"};
  if (lp_json_equals(type, names[value->kind])) return true;
  if (value->kind == LP_JSON_INTEGER && lp_json_equals(type, "number")) return true;
  for (size_t i = 0; i < lp_json_count(type); i++) {
    lp_json item = lp_json_item(type, i);
    if (has_type(value, &item)) return true;
  }
  return false;
}

/* ---- literal values ---------------------------------------------------------------------------------------------- */

typedef LP_VEC(char *) texts;

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The remaining bytes of `count` sorted texts as a trie. Their first `at` bytes are equal. A byte then has few possible
 * values, even when there are many texts. */
static int32_t trie(builder *b, char *const *text_of, size_t count, size_t at) {
  const char *first = text_of[0], *last = text_of[count - 1];
  size_t same = at;
  while (first[same] && first[same] == last[same])
    same++;
  LP_VEC(int32_t) ways = {0};
  size_t from = 0;
  while (from < count && !text_of[from][same]) /* equal texts end here */
    from++;
  if (from > 0) lp_vec_push(&ways, b->done);
  while (from < count) {
    size_t to = from + 1;
    char byte = text_of[from][same];
    while (to < count && text_of[to][same] == byte)
      to++;
    int32_t rest = trie(b, text_of + from, to - from, same + 1);
    lp_vec_push(&ways, range(b, (uint8_t)byte, (uint8_t)byte, rest));
    from = to;
  }
  int32_t node = lp_grammar_text(b->grammar, first + at, same - at, any_of(b, ways.data, ways.count));
  lp_vec_free(&ways);
  return node;
}

/* One of the values that have the type, if there is one, as JSON without spaces. */
static lp_status build_literals(builder *b, const lp_json *values, const lp_json *type, int32_t *out) {
  texts all = {0};
  for (size_t i = 0; i < lp_json_count(values); i++) {
    const lp_json_value *value = lp_json_item(values, i).value;
    if (lp_json_is_given(type) && !has_type(value, type)) continue;
    lp_buf json = {0};
    lp_json_writer writer = lp_json_writer_begin(&json, (lp_json_style){.has_no_space = true});
    lp_json_put_value(&writer, NULL, value);
    lp_vec_push(&all, json.data);
  }
  if (all.count > 0) {
    qsort(all.data, all.count, sizeof *all.data, by_bytes);
    *out = trie(b, all.data, all.count, 0);
  }
  for (size_t i = 0; i < all.count; i++)
    free(all.data[i]);
  lp_status status =
      all.count > 0 ? LP_OK : lp_error(b->diag, LP_LOC_NONE, "the schema's 'enum' lists no values of its type");
  lp_vec_free(&all);
  return status;
}

/* ---- any schema -------------------------------------------------------------------------------------------------- */

static lp_status build(builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json type = lp_json_member(schema, "type"), values = lp_json_member(schema, "enum"),
          only = lp_json_member(schema, "const"), any = lp_json_member(schema, "anyOf"),
          all = lp_json_member(schema, "allOf"), reference = lp_json_member(schema, "$ref");
  if (depth > MOST_DEPTH || b->grammar->nodes.count > LP_GRAMMAR_MOST_NODES)
    return lp_error(b->diag, LP_LOC_NONE, "the schema is too large");
  *out = b->value;
  if (lp_json_is(schema, LP_JSON_BOOL) && lp_json_is_true(schema)) return LP_OK;
  if (!lp_json_is(schema, LP_JSON_OBJECT)) return lp_error(b->diag, LP_LOC_NONE, "a schema must be an object");
  LP_TRY(check_keywords(b, schema));
  LP_TRY(check_alone(b, schema));
  if (lp_json_is_given(&reference)) return build_reference(b, lp_json_text_or(&reference, ""), depth, out);
  if (lp_json_is_given(&any)) return build_any_of(b, &any, depth, out);
  if (lp_json_is_given(&all)) {
    lp_json one = lp_json_item(&all, 0);
    if (lp_json_count(&all) == 1) return build(b, &one, depth + 1, out);
    return lp_error(b->diag, LP_LOC_NONE, "the schema's 'allOf' has several schemas, which is not supported");
  }
  if (only.value) {
    const lp_json_value list = {.kind = LP_JSON_ARRAY, .size = 1, .items = only.value};
    const lp_json values_of = {.value = &list};
    return build_literals(b, &values_of, &type, out);
  }
  if (lp_json_is_given(&values)) return build_literals(b, &values, &type, out);
  if (lp_json_is_given(&type)) return build_types(b, schema, &type, depth, out);
  const char *implied = implied_type(schema);
  return implied ? build_type(b, schema, implied, depth, out) : LP_OK;
}

/* ---- grammars ---------------------------------------------------------------------------------------------------- */

static builder begin(lp_diag *diag) {
  builder b = {.grammar = lp_alloc(sizeof(lp_grammar)), .diag = diag};
  define_plain(&b);
  return b;
}

/* Fails for a grammar without texts, and for one with too many alternatives in a place. */
static lp_status check_texts(builder *b) {
  const lp_match match = lp_grammar_explore(b->grammar);
  if (match == LP_MATCH_NO)
    return lp_error(b->diag, LP_LOC_NONE, "the schema's '$ref' refers to itself, and accepts no value");
  if (match != LP_MATCH_YES)
    return lp_error(b->diag, LP_LOC_NONE, "the schema has too many alternatives that begin alike");
  lp_grammar_sign(b->grammar);
  return LP_OK;
}

/* The text may begin with a space, as many vocabularies have tokens with one before the bracket. */
static lp_status end(builder *b, lp_status status, int32_t root, lp_grammar **out) {
  lp_vec_free(&b->rules);
  lp_vec_free(&b->counted);
  b->grammar->root = root;
  if (status == LP_OK) status = check_texts(b);
  if (status == LP_OK) b->grammar->root = either(b, root, range(b, ' ', ' ', root));
  *out = status == LP_OK ? b->grammar : NULL;
  if (status != LP_OK) lp_grammar_free(b->grammar);
  return status;
}

lp_status lp_grammar_of_schema(const lp_json *schema, lp_grammar **out, lp_diag *diag) {
  builder b = begin(diag);
  int32_t root = b.object;
  b.root = *schema;
  lp_status status = lp_json_is_given(schema) ? build(&b, schema, 0, &root) : LP_OK;
  return end(&b, status, root, out);
}

static lp_status build_tool(builder *b, const lp_json *tool, const char *wanted, int32_t *out) {
  lp_json function = lp_json_member(tool, "function"), name_at = lp_json_member(&function, "name"),
          parameters = lp_json_member(&function, "parameters");
  const char *name = lp_json_text_or(&name_at, NULL);
  if (!name) return lp_error(b->diag, LP_LOC_NONE, "a tool must have 'function' with a 'name'");
  if (wanted && !lp_streq(name, wanted)) return LP_OK;
  int32_t arguments = text(b, "{}", b->done); /* of a function without parameters */
  b->root = parameters;
  if (lp_json_count(&parameters) > 0) LP_TRY(build(b, &parameters, 0, &arguments));
  lp_buf quoted = {0};
  lp_json_quote(name, &quoted);
  int32_t node = text(b, ", \"arguments\": ", call(b, arguments, range(b, '}', '}', b->done)));
  node = text(b, "{\"name\": ", lp_grammar_text(b->grammar, lp_buf_text(&quoted), quoted.size, node));
  lp_buf_free(&quoted);
  *out = *out < 0 ? node : either(b, *out, node);
  return LP_OK;
}

lp_status lp_grammar_of_tools(const lp_json *tools, const char *name, lp_grammar **out, lp_diag *diag) {
  builder b = begin(diag);
  int32_t root = -1;
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < lp_json_count(tools); i++) {
    lp_json tool = lp_json_item(tools, i);
    status = build_tool(&b, &tool, name, &root);
  }
  if (status == LP_OK && root < 0)
    status = lp_error(diag, LP_LOC_NONE, "'tools' has no function '%.80s'", name ? name : "");
  return end(&b, status, root, out);
}
