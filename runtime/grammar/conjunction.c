/* Schemas that must hold at once, by `allOf` or because keywords stand beside each other, as one schema. */
#include <math.h>

#include "base/json/writer.h"
#include "runtime/grammar/values.h"

/* Limits: schemas within each other that are looked at, pairs of schemas, bytes of joined schemas, and characters of a
 * key that is compared with a pattern. */
enum { MOST_DEPTH = 64, MOST_PAIRS = 4096, MOST_BYTES = 32 << 20, MOST_KEY = 256 };

static const lp_json_value *member_of(const lp_json_value *of, const char *key) {
  const lp_json object = {.value = of};
  return lp_json_member(&object, key).value;
}

static size_t count_of(const lp_json_value *of) {
  const lp_json at = {.value = of};
  return lp_json_count(&at);
}

/* ---- keywords of two schemas ------------------------------------------------------------------------------------- */

typedef struct {
  lp_builder *b;
  const lp_json *at; /* the schema that is read, for reports */
  int depth;         /* of schemas around it */
  bool never;        /* no value fits */
  LP_VEC(const lp_json_value *) plain, literal, except, any, one_of;
} joining;

static lp_status conflict(joining *j, const char *key) {
  return lp_json_error(j->at, j->b->diag, "the schema has two '%s' that hold at once, which is not supported", key);
}

typedef enum { MORE, LESS, SAME, MULTIPLE, TRUE } how;

static lp_status choose(joining *j, const char *key, how way, const lp_json_value *one, const lp_json_value *other,
                        const lp_json_value **out) {
  const double x = lp_value_number(one), y = lp_value_number(other);
  *out = one;
  if (lp_builder_is_equal(j->b, one, other)) return LP_OK;
  if (one->kind == LP_JSON_BOOL && other->kind == LP_JSON_BOOL && way != SAME) {
    *out = one->truth ? one : other;
    return LP_OK;
  }
  if (isnan(x) || isnan(y) || way == SAME || way == TRUE) return conflict(j, key);
  if (way == MULTIPLE && fmod(x, y) != 0 && fmod(y, x) != 0) return conflict(j, key);
  if (way == LESS ? y < x : y > x) *out = other;
  return LP_OK;
}

static void join_types(joining *j, const lp_json_value *one, const lp_json_value *other, lp_values *out) {
  static const char *const names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
  LP_OWNED(lp_free_at) lp_values list = {0};
  if (!one || !other) {
    if (one || other) lp_value_put(out, "type", one ? one : other);
    return;
  }
  bool number = false;
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    if (!lp_value_has_type(one, names[i]) || !lp_value_has_type(other, names[i]) ||
        (number && lp_streq(names[i], "integer")))
      continue;
    number |= lp_streq(names[i], "number");
    const lp_json_value name = {.kind = LP_JSON_TEXT, .size = (uint32_t)strlen(names[i]), .text = names[i]};
    lp_vec_push(&list, name);
  }
  j->never |= list.count == 0;
  lp_value_put(out, "type", list.count == 1 ? &list.data[0] : lp_value_pack(j->b, LP_JSON_ARRAY, &list));
}

static void join_required(joining *j, const lp_json_value *one, const lp_json_value *other, lp_values *out) {
  const lp_json_value *of[] = {one, other};
  lp_values list = {0};
  for (int i = 0; i < 2; i++)
    for (size_t k = 0; k < count_of(of[i]); k++)
      lp_vec_push(&list, of[i]->items[k]);
  if (list.count > 0) lp_value_put(out, "required", lp_value_pack(j->b, LP_JSON_ARRAY, &list));
}

static bool is_too_large(const joining *j) {
  return j->b->pairs.count > MOST_PAIRS || lp_arena_bytes(j->b->arena) > MOST_BYTES || j->b->tried > LP_MOST_TRIED ||
         j->plain.count > LP_MOST_COUNT;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* *out: a key has the pattern. */
static lp_status has_pattern(joining *j, const char *key, const char *pattern, bool *out) {
  const lp_json at = {.parent = j->at, .key = pattern};
  LP_OWNED(lp_buf_free) lp_buf quoted = {0};
  int32_t node = -1;
  if (is_too_large(j)) return lp_builder_too_large(j->b, j->at);
  lp_json_quote(key, &quoted);
  const bool is_plain = quoted.size == strlen(key) + 2 && quoted.size <= MOST_KEY; /* without escapes */
  lp_status status = is_plain ? lp_builder_pattern(j->b, &at, pattern, &node) : conflict(j, "patternProperties");
  if (status == LP_OK) *out = lp_builder_accepts(j->b, node, lp_buf_text(&quoted));
  return status;
}

/* *out: the schema of names accepts a key. */
static lp_status is_name(joining *j, const lp_json_value *names, const char *key, bool *out) {
  const lp_json at = {.parent = j->at, .key = "propertyNames", .value = names};
  lp_json joined = at;
  LP_OWNED(lp_buf_free) lp_buf quoted = {0};
  int32_t node = -1;
  LP_TRY(lp_builder_conjoin(j->b, &at, j->depth + 1, &joined.value));
  LP_TRY(j->b->build(j->b, &joined, j->depth, &node));
  lp_json_quote(key, &quoted);
  j->b->tried += LP_TRIED_VALUE;
  *out = lp_builder_accepts(j->b, node, lp_buf_text(&quoted));
  return LP_OK;
}

/* What a schema says of the value of a key; NULL: nothing. */
static lp_status find_property(joining *j, const lp_json_value *of, const char *key, const lp_json_value **out) {
  const lp_json patterns = {.value = member_of(of, "patternProperties")};
  *out = member_of(member_of(of, "properties"), key);
  bool listed = *out != NULL;
  for (size_t i = 0; lp_json_is(&patterns, LP_JSON_OBJECT) && i < lp_json_count(&patterns); i++) {
    const lp_json entry = lp_json_entry(&patterns, i);
    bool has = false;
    LP_TRY(has_pattern(j, key, entry.key, &has));
    if (has) *out = lp_value_both(j->b, *out, entry.value);
    listed |= has;
  }
  if (!listed) *out = member_of(of, "additionalProperties");
  const lp_json_value *names = member_of(of, "propertyNames");
  bool named = true;
  if (names) LP_TRY(is_name(j, names, key, &named));
  if (!named) *out = &lp_value_nothing;
  return LP_OK;
}

static lp_status put_property(joining *j, const lp_json_value *one, const lp_json_value *other, const char *key,
                              lp_values *out) {
  const lp_json_value *first, *second;
  for (size_t i = 0; i + 1 < out->count; i += 2)
    if (lp_streq(out->data[i].text, key)) return LP_OK;
  if (out->count / 2 >= LP_MOST_COUNT)
    return lp_json_error(j->at, j->b->diag, "the schema has more than %d 'properties'", LP_MOST_COUNT);
  LP_TRY(find_property(j, one, key, &first));
  LP_TRY(find_property(j, other, key, &second));
  lp_value_put(out, key, lp_value_both(j->b, first, second));
  return LP_OK;
}

/* Tells whether "unevaluatedProperties" excludes a key that is required: no schema says anything of it. */
static lp_status is_excluded(joining *j, const char *key, bool *out) {
  const lp_json_value *rule = NULL;
  *out = false;
  for (size_t i = 0; i < j->plain.count; i++)
    *out |= lp_value_is_bool(member_of(j->plain.data[i], "unevaluatedProperties"), false);
  for (size_t i = 0; *out && !rule && i < j->plain.count; i++)
    LP_TRY(find_property(j, j->plain.data[i], key, &rule));
  *out = *out && !rule;
  return LP_OK;
}

/* With alternatives left, one of these may still list the key. */
static lp_status put_required(joining *j, const lp_json_value *one, const lp_json_value *other, const char *key,
                              lp_values *out) {
  bool excluded;
  LP_TRY(is_excluded(j, key, &excluded));
  if (!excluded) return put_property(j, one, other, key, out);
  if (j->any.count + j->one_of.count == 0) lp_value_put(out, key, &lp_value_nothing);
  return LP_OK;
}

/* The properties that either lists or requires. */
static lp_status join_properties(joining *j, const lp_json_value *one, const lp_json_value *other, lp_values *out) {
  const lp_json_value *const of[] = {one, other};
  lp_values properties = {0};
  lp_status status = LP_OK;
  for (int i = 0; i < 2; i++) {
    const lp_json listed = {.parent = j->at, .key = "properties", .value = member_of(of[i], "properties")};
    if (lp_json_is_given(&listed) && status == LP_OK) status = lp_json_object(&listed, j->b->diag);
    for (size_t k = 0; status == LP_OK && k < lp_json_count(&listed); k++)
      status = put_property(j, one, other, lp_json_entry(&listed, k).key, &properties);
  }
  const bool lists = member_of(one, "properties") || member_of(other, "properties");
  for (int i = 0; i < 2; i++) {
    const lp_json required = {.value = member_of(of[i], "required")};
    for (size_t k = 0; status == LP_OK && k < lp_json_count(&required); k++) {
      const char *key = lp_json_text_or(LP_ITEM(&required, k), NULL);
      status = key ? put_required(j, one, other, key, &properties)
                   : lp_json_error(j->at, j->b->diag, "the schema's 'required' must be a list of names");
    }
  }
  if (lists || properties.count > 0)
    lp_value_put(out, "properties", lp_value_pack(j->b, LP_JSON_OBJECT, &properties));
  else
    lp_vec_free(&properties);
  return status;
}

/* What they say of keys that they do not list. */
static lp_status join_more(joining *j, const lp_json_value *one, const lp_json_value *other, lp_values *out) {
  const lp_json_value *patterns[] = {member_of(one, "patternProperties"), member_of(other, "patternProperties")};
  const lp_json_value *more[] = {member_of(one, "additionalProperties"), member_of(other, "additionalProperties")};
  const int has = count_of(patterns[0]) > 0 ? 0 : 1; /* the one with patterns */
  if (count_of(patterns[0]) > 0 && count_of(patterns[1]) > 0 && !lp_builder_is_equal(j->b, patterns[0], patterns[1]))
    return conflict(j, "patternProperties");
  const bool alike = count_of(patterns[0]) == count_of(patterns[1]);
  lp_values list = {0};
  for (size_t i = 0; i < count_of(patterns[has]); i++) {
    const lp_json at = {.value = patterns[has]}, entry = lp_json_entry(&at, i);
    lp_value_put(&list, entry.key, lp_value_both(j->b, entry.value, alike ? NULL : more[1 - has]));
  }
  if (list.count > 0) lp_value_put(out, "patternProperties", lp_value_pack(j->b, LP_JSON_OBJECT, &list));
  const lp_json_value *rest = lp_value_both(j->b, more[0], more[1]);
  if (rest != &lp_value_anything) lp_value_put(out, "additionalProperties", rest);
  const lp_json_value *names = lp_value_both(j->b, member_of(one, "propertyNames"), member_of(other, "propertyNames"));
  if (names != &lp_value_anything) lp_value_put(out, "propertyNames", names);
  return LP_OK;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* The schema of item `index` that is one of the first, or of those after them (`rest`); NULL: any. */
static const lp_json_value *item_of(const lp_json_value *of, size_t index, bool rest) {
  const lp_json_value *items = member_of(of, "items"), *prefix = member_of(of, "prefixItems");
  const bool is_old =
      items && items->kind == LP_JSON_ARRAY; /* "items" was "prefixItems", and "additionalItems" "items" */
  if (is_old) prefix = items;
  if (!rest && index < count_of(prefix)) return &prefix->items[index];
  return is_old ? member_of(of, "additionalItems") : items;
}

static size_t first_items(const lp_json_value *of) {
  const lp_json_value *items = member_of(of, "items");
  return count_of(items && items->kind == LP_JSON_ARRAY ? items : member_of(of, "prefixItems"));
}

static void join_items(joining *j, const lp_json_value *one, const lp_json_value *other, lp_values *out) {
  const size_t of_one = first_items(one), of_other = first_items(other), count = of_one > of_other ? of_one : of_other;
  lp_values first = {0};
  for (size_t i = 0; i < count; i++) {
    const lp_json_value *item = lp_value_both(j->b, item_of(one, i, false), item_of(other, i, false));
    lp_vec_push(&first, *item);
  }
  if (count > 0) lp_value_put(out, "prefixItems", lp_value_pack(j->b, LP_JSON_ARRAY, &first));
  const lp_json_value *rest = lp_value_both(j->b, item_of(one, 0, true), item_of(other, 0, true));
  if (rest != &lp_value_anything) lp_value_put(out, "items", rest);
}

/* ---- schemas ----------------------------------------------------------------------------------------------------- */

/* The keywords of both as one object, without alternatives and references; `one` may be NULL. */
static lp_status join(joining *j, const lp_json_value *one, const lp_json_value *other, const lp_json_value **out) {
  static const struct {
    const char *key;
    how way;
  } keywords[] = {{"minLength", MORE},        {"maxLength", LESS},
                  {"minimum", MORE},          {"maximum", LESS},
                  {"exclusiveMinimum", MORE}, {"exclusiveMaximum", LESS},
                  {"minItems", MORE},         {"maxItems", LESS},
                  {"minProperties", MORE},    {"maxProperties", LESS},
                  {"pattern", SAME},          {"format", SAME},
                  {"multipleOf", MULTIPLE},   {"uniqueItems", TRUE},
                  {"unevaluatedItems", SAME}, {"unevaluatedProperties", SAME}};
  lp_values object = {0};
  lp_status status = LP_OK;
  join_types(j, member_of(one, "type"), member_of(other, "type"), &object);
  for (size_t i = 0; status == LP_OK && i < LP_COUNT(keywords); i++) {
    const lp_json_value *x = member_of(one, keywords[i].key), *y = member_of(other, keywords[i].key), *of = x ? x : y;
    if (x && y) status = choose(j, keywords[i].key, keywords[i].way, x, y, &of);
    if (of) lp_value_put(&object, keywords[i].key, of);
  }
  join_required(j, member_of(one, "required"), member_of(other, "required"), &object);
  join_items(j, one, other, &object);
  if (status == LP_OK) status = join_properties(j, one, other, &object);
  if (status == LP_OK) status = join_more(j, one, other, &object);
  *out = lp_value_pack(j->b, LP_JSON_OBJECT, &object);
  return status;
}

/* What an object needs that has a key, by alternatives: the key is absent, or the rest holds. */
static void depend(joining *j, const lp_json *dependencies) {
  for (size_t i = 0; lp_json_is(dependencies, LP_JSON_OBJECT) && i < lp_json_count(dependencies); i++) {
    const lp_json entry = lp_json_entry(dependencies, i);
    const lp_json_value key = {.kind = LP_JSON_TEXT, .size = (uint32_t)strlen(entry.key), .text = entry.key};
    lp_values names = {0}, ways = {0};
    const lp_json_value *absent =
        lp_value_of_member(j->b, "properties", lp_value_of_member(j->b, entry.key, &lp_value_nothing));
    lp_vec_push(&names, key);
    for (size_t k = 0; lp_json_is(&entry, LP_JSON_ARRAY) && k < lp_json_count(&entry); k++)
      lp_vec_push(&names, entry.value->items[k]);
    const lp_json_value *present = lp_value_of_member(j->b, "required", lp_value_pack(j->b, LP_JSON_ARRAY, &names));
    lp_vec_push(&ways, *absent);
    lp_vec_push(&ways, *lp_value_both(j->b, present, lp_json_is(&entry, LP_JSON_ARRAY) ? NULL : entry.value));
    lp_vec_push(&j->any, lp_value_pack(j->b, LP_JSON_ARRAY, &ways));
  }
}

static lp_status gather(joining *j, const lp_json *schema, int depth);

/* What `not`, and `if` with `then` and `else`, add. Listed values that are not allowed have no schema. */
static lp_status gather_opposites(joining *j, const lp_json *schema, int depth) {
  const lp_json no = lp_json_member(schema, "not"), condition = lp_json_member(schema, "if");
  if (no.value && lp_json_count(&no) == 1 && lp_builder_literal(&no, 0)) {
    lp_vec_push(&j->except, no.value);
  } else if (no.value) {
    lp_json opposite = {.parent = schema, .key = "not"};
    LP_TRY(lp_builder_negate(j->b, &no, &opposite.value));
    LP_TRY(gather(j, &opposite, depth + 1));
  }
  const lp_json_value *then = member_of(schema->value, "then"), *other = member_of(schema->value, "else");
  if (!condition.value || (!then && !other)) return LP_OK;
  lp_values ways = {0};
  lp_vec_push(&ways, *lp_value_both(j->b, condition.value, then));
  const lp_json_value *otherwise = lp_value_of_member(j->b, "not", condition.value);
  lp_vec_push(&ways, *lp_value_both(j->b, otherwise, other));
  lp_vec_push(&j->any, lp_value_pack(j->b, LP_JSON_ARRAY, &ways));
  return LP_OK;
}

static lp_status gather(joining *j, const lp_json *schema, int depth) {
  static const char *const dependencies[] = {"dependencies", "dependentRequired", "dependentSchemas"};
  lp_json reference = lp_json_member(schema, "$ref"), all = lp_json_member(schema, "allOf"),
          any = lp_json_member(schema, "anyOf"), one_of = lp_json_member(schema, "oneOf");
  if (depth > MOST_DEPTH || is_too_large(j)) return lp_builder_too_large(j->b, schema);
  j->never |= lp_value_is_bool(schema->value, false);
  if (lp_json_is(schema, LP_JSON_BOOL)) return LP_OK;
  LP_TRY(lp_builder_check_keywords(j->b, schema));
  for (size_t i = 0; i < j->plain.count; i++)
    if (lp_value_is_same(j->plain.data[i], schema->value)) return LP_OK;
  lp_vec_push(&j->plain, schema->value);
  if (lp_json_is_given(&any)) lp_vec_push(&j->any, any.value);
  if (lp_json_is_given(&one_of)) lp_vec_push(&j->one_of, one_of.value);
  if (lp_builder_literal(schema, 0)) lp_vec_push(&j->literal, schema->value);
  for (size_t i = 0; i < LP_COUNT(dependencies); i++)
    depend(j, LP_MEMBER(schema, dependencies[i]));
  LP_TRY(gather_opposites(j, schema, depth));
  if (lp_json_is_given(&reference)) {
    const char *path = lp_json_text_or(&reference, "");
    const lp_json target = {.parent = schema, .key = path, .value = lp_builder_target(j->b, path)};
    if (!target.value) return lp_json_error(schema, j->b->diag, "the schema's '$ref' finds nothing at '%.80s'", path);
    LP_TRY(gather(j, &target, depth + 1));
  }
  if (lp_json_is_given(&all)) LP_TRY(lp_json_array(&all, j->b->diag));
  LP_FOR_ITEMS(item, &all)
    LP_TRY(gather(j, &item, depth + 1));
  return LP_OK;
}

/* Values are written as the grammar of a list has them. */
static bool accepts_value(lp_builder *b, int32_t node, const lp_json_value *value) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_json_writer json = lp_json_writer_begin(&text, (lp_json_style){.has_no_space = true});
  lp_json_put_value(&json, NULL, value);
  b->tried += LP_TRIED_VALUE;
  return b->tried <= LP_MOST_TRIED && lp_builder_accepts(b, node, lp_buf_text(&text));
}

static bool lists(lp_builder *b, const lp_json_value *schema, const lp_json_value *value) {
  const lp_json of = {.value = schema};
  size_t at = 0;
  while (b->tried <= LP_MOST_TRIED && lp_builder_literal(&of, at) &&
         !lp_builder_is_equal(b, lp_builder_literal(&of, at), value))
    at++;
  return lp_builder_literal(&of, at) != NULL;
}

/* Fails unless the values that are not allowed are of other types. */
static lp_status check_types(joining *j, const lp_json_value *plain) {
  static const char *const names[] = {"null", "boolean", "integer", "integer", "string", "array", "object"};
  const lp_json_value *type = member_of(plain, "type");
  for (size_t i = 0; i < j->except.count; i++) {
    const lp_json of = {.value = j->except.data[i]};
    for (size_t k = 0; lp_builder_literal(&of, k); k++)
      if (lp_value_has_type(type, names[lp_builder_literal(&of, k)->kind]))
        return lp_json_error(j->at, j->b->diag,
                             "the schema's keyword 'not' (or 'if') is not supported of values of its type");
  }
  return LP_OK;
}

/* A type that has few values lists them. */
static void list_truths(joining *j, const lp_json_value *plain) {
  static const lp_json_value values[] = {
      {.kind = LP_JSON_BOOL, .truth = true}, {.kind = LP_JSON_BOOL}, {.kind = LP_JSON_NULL}};
  static const lp_json_value list = {.kind = LP_JSON_ARRAY, .size = LP_COUNT(values), .items = values};
  static const char *const others[] = {"object", "array", "string", "number", "integer"};
  for (size_t i = 0; i < LP_COUNT(others); i++)
    if (lp_value_has_type(member_of(plain, "type"), others[i])) return;
  lp_vec_push(&j->literal, lp_value_of_member(j->b, "enum", &list));
}

/* The listed values that all schemas accept. */
static lp_status filter(joining *j, const lp_json_value *plain, const lp_json_value **out) {
  const lp_json of = {.parent = j->at, .value = plain}, first = {.value = j->literal.data[0]};
  lp_values list = {0};
  int32_t node = -1;
  LP_TRY(j->b->build(j->b, &of, j->depth, &node));
  for (size_t i = 0; lp_builder_literal(&first, i) && !is_too_large(j); i++) {
    const lp_json_value *value = lp_builder_literal(&first, i);
    bool fits = accepts_value(j->b, node, value);
    for (size_t k = 1; fits && k < j->literal.count; k++)
      fits = lists(j->b, j->literal.data[k], value);
    for (size_t k = 0; fits && k < j->except.count; k++)
      fits = !lists(j->b, j->except.data[k], value);
    if (fits) lp_vec_push(&list, *value);
  }
  if (is_too_large(j)) {
    lp_vec_free(&list);
    return lp_builder_too_large(j->b, j->at);
  }
  j->never |= list.count == 0;
  *out = lp_value_of_member(j->b, "enum", lp_value_pack(j->b, LP_JSON_ARRAY, &list));
  return LP_OK;
}

/* Of several lists of alternatives, those of the first, each together with all the rest. */
static const lp_json_value *distribute(joining *j, const lp_json_value *rest) {
  const bool exclusive = j->any.count == 0;
  const lp_json_value *alternatives = exclusive ? j->one_of.data[0] : j->any.data[0];
  lp_values list = {0};
  for (size_t i = 1; i < j->any.count; i++)
    rest = lp_value_both(j->b, rest, lp_value_of_member(j->b, "anyOf", j->any.data[i]));
  for (size_t i = 0; j->literal.count == 0 && i < j->except.count; i++)
    rest = lp_value_both(j->b, rest, lp_value_of_member(j->b, "not", j->except.data[i]));
  for (size_t i = exclusive; i < j->one_of.count; i++)
    rest = lp_value_both(j->b, rest, lp_value_of_member(j->b, "oneOf", j->one_of.data[i]));
  for (size_t i = 0; alternatives->kind == LP_JSON_ARRAY && i < alternatives->size; i++)
    lp_vec_push(&list, *lp_value_both(j->b, &alternatives->items[i], rest));
  return lp_value_of_member(j->b, exclusive ? "oneOf" : "anyOf", lp_value_pack(j->b, LP_JSON_ARRAY, &list));
}

lp_status lp_builder_conjoin(lp_builder *b, const lp_json *schema, int depth, const lp_json_value **out) {
  joining j = {.b = b, .at = schema, .depth = depth};
  const lp_json_value *plain = NULL;
  if (depth > MOST_DEPTH) return lp_builder_too_large(b, schema);
  lp_status status = gather(&j, schema, 0);
  for (size_t i = 0; status == LP_OK && i < j.plain.count; i++)
    status = join(&j, plain, j.plain.data[i], &plain);
  if (status == LP_OK && j.except.count > 0 && j.literal.count == 0) list_truths(&j, plain);
  if (status == LP_OK && !j.never && j.literal.count > 0) status = filter(&j, plain, &plain);
  const bool has_ways = j.any.count + j.one_of.count > 0;
  if (status == LP_OK && !has_ways && j.literal.count == 0) status = check_types(&j, plain);
  if (status == LP_OK) *out = j.never ? &lp_value_nothing : has_ways ? distribute(&j, plain) : plain;
  lp_vec_free(&j.plain);
  lp_vec_free(&j.literal);
  lp_vec_free(&j.except);
  lp_vec_free(&j.any);
  lp_vec_free(&j.one_of);
  return status;
}

lp_json lp_builder_resolve(lp_builder *b, const lp_json *schema, int depth) {
  lp_diag *const diag = b->diag;
  lp_json joined = *schema;
  if (!lp_json_is(schema, LP_JSON_OBJECT)) return joined;
  b->diag = NULL; /* what is wrong is reported where the schema is built */
  if (lp_builder_conjoin(b, schema, depth + 1, &joined.value) != LP_OK) joined.value = &lp_value_anything;
  b->diag = diag;
  return joined;
}
