/* JSON schemas as grammars. */

#include "base/json/writer.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/builder.h"

enum { MOST_DEPTH = 64 };

static lp_status build(lp_builder *b, const lp_json *schema, int depth, int32_t *out);
static lp_status build_simple(lp_builder *b, const lp_json *schema, int depth, int32_t *out);
static lp_status build_any_of(lp_builder *b, const lp_json *list, const lp_json *of, int depth, int32_t *out);

/* ---- references -------------------------------------------------------------------------------------------------- */

/* A schema that others refer to, or that is joined of several: it is built once. Whatever was built for one that
 * accepts nothing may lead there, and is forgotten. `joins`: it is joined first. */
static lp_status build_rule(lp_builder *b, const lp_json *schema, bool joins, int depth, int32_t *out) {
  const lp_json_value *value = schema->value;
  for (size_t i = 0; i < b->rules.count; i++)
    if (b->rules.data[i].joins == joins && b->rules.data[i].schema == value->items) {
      *out = b->rules.data[i].node;
      return LP_OK;
    }
  const size_t index = b->rules.count;
  const lp_built rule = {value->items, joins, declare(b)};
  lp_json joined = *schema;
  int32_t node;
  lp_vec_push(&b->rules, rule);
  if (joins) LP_TRY(lp_builder_conjoin(b, schema, depth + 1, &joined.value));
  const lp_json any = lp_json_member(&joined, "anyOf");
  if (any.value && !lp_json_member(schema, "anyOf").value)
    LP_TRY(build_any_of(b, &any, schema, depth + 1, &node));
  else
    LP_TRY(joins ? build_simple(b, &joined, depth + 1, &node) : build(b, &joined, depth + 1, &node));
  if (node >= 0) {
    define(b, rule.node, node);
    *out = rule.node;
  } else {
    b->rules.count = index;
    *out = -1;
  }
  return LP_OK;
}

static lp_status build_reference(lp_builder *b, const lp_json *schema, const char *path, int depth, int32_t *out) {
  const lp_json_value *at = lp_builder_target(b, path);
  if (!at) return lp_json_error(schema, b->diag, "the schema's '$ref' finds nothing at '%.80s'", path);
  const lp_json root = {.file = NULL}, target = {.parent = &root, .key = path, .value = at};
  if (lp_json_count(&target) == 0) return build(b, &target, depth + 1, out);
  return build_rule(b, &target, false, depth, out);
}

/* ---- alternatives ------------------------------------------------------------------------------------------------ */

/* `of`: the schema that errors name, because its keywords were joined into this list; NULL: errors name the list. */
static lp_status build_any_of(lp_builder *b, const lp_json *list, const lp_json *of, int depth, int32_t *out) {
  LP_VEC(int32_t) nodes = {0};
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < lp_json_count(list); i++) {
    lp_json item = of ? *of : lp_json_item(list, i);
    item.value = &list->value->items[i];
    int32_t one = 0;
    status = build(b, &item, depth + 1, &one);
    if (one >= 0) lp_vec_push(&nodes, one);
  }
  if (status == LP_OK && (lp_json_count(list) == 0 || lp_json_count(list) > LP_MOST_COUNT))
    status = lp_json_error(list, b->diag, "the schema has a list of %zu alternatives, wanted 1 to %d",
                           lp_json_count(list), LP_MOST_COUNT);
  if (status == LP_OK) *out = nodes.count > 0 ? lp_builder_any_of(b, nodes.data, nodes.count) : -1;
  lp_vec_free(&nodes);
  return status;
}

/* ---- objects and lists ------------------------------------------------------------------------------------------- */

/* "KEY": before the node `value`, and then `next`. */
static int32_t put_key(lp_builder *b, const char *name, int32_t value, int32_t next) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_json_quote(name, &key);
  next = text(b, lp_buf_text(&key), key.size, range(b, ':', ':', call(b, b->space, call(b, value, next))));
  return next;
}

/* How many properties an object may have. */
typedef struct {
  int64_t least, most;
  size_t states; /* numbers of properties so far that differ */
} property_counts;

static lp_status read_counts(lp_builder *b, const lp_json *schema, size_t listed, property_counts *out) {
  *out = (property_counts){.most = INT32_MAX};
  LP_TRY(lp_builder_count(b, schema, "minProperties", true, INT32_MAX, &out->least));
  LP_TRY(lp_builder_count(b, schema, "maxProperties", true, INT32_MAX, &out->most));
  const int64_t last = out->most < (int64_t)listed ? out->most + 1 : out->least;
  out->states = (size_t)(last > out->least ? last : out->least) + 1;
  if (out->states < 2) out->states = 2;
  if (out->states * listed <= LP_MOST_COUNTED || out->least > (int64_t)listed) return LP_OK;
  return lp_json_error(schema, b->diag, "the schema's '%s' is not supported beside so many 'properties'",
                       out->least > 0 ? "minProperties" : "maxProperties");
}

/* The properties in their order; those that are not required may be left out. `after[n]`: what follows where n are
 * there, -1: nothing can. */
static lp_status put_property(lp_builder *b, const lp_json *schema, const lp_json *property,
                              const property_counts *counts, int depth, int32_t *after) {
  const bool optional = !lp_builder_requires(schema, property->key);
  int32_t value;
  LP_TRY(build(b, property, depth + 1, &value));
  for (size_t n = 0; n < counts->states; n++) {
    const int32_t next = after[n + 1 < counts->states ? n + 1 : n], without = optional ? after[n] : -1;
    after[n] = without;
    if (value < 0 || next < 0 || (int64_t)n >= counts->most) continue;
    int32_t with = call(b, b->space, put_key(b, property->key, value, next));
    if (n > 0) with = range(b, ',', ',', with);
    after[n] = without < 0 ? with : either(b, with, without);
  }
  return LP_OK;
}

static lp_status build_properties(lp_builder *b, const lp_json *schema, const lp_json *properties, int depth,
                                  int32_t *out) {
  const int32_t end = call(b, b->space, range(b, '}', '}', b->done));
  property_counts counts;
  LP_TRY(read_counts(b, schema, lp_json_count(properties), &counts));
  if (counts.least > (int64_t)lp_json_count(properties))
    return lp_builder_none(b, schema, "the schema's 'minProperties' exceeds its 'properties'", out);
  int32_t *after = lp_alloc(counts.states * sizeof *after);
  for (size_t n = 0; n < counts.states; n++)
    after[n] = (int64_t)n >= counts.least && (int64_t)n <= counts.most ? end : -1;
  lp_status status = LP_OK;
  for (size_t i = lp_json_count(properties); status == LP_OK && i-- > 0;) {
    const lp_json property = lp_json_entry(properties, i);
    status = put_property(b, schema, &property, &counts, depth, after);
  }
  const int32_t first = after[0];
  free(after);
  LP_TRY(status);
  if (first < 0) return lp_builder_none(b, schema, "the schema requires 'properties' that it does not accept", out);
  *out = range(b, '{', '{', first);
  return LP_OK;
}

/* An object of keys that the schema does not list. Of keys with a pattern it has only those. */
static lp_status build_map(lp_builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json names = lp_json_member(schema, "propertyNames"), patterns = lp_json_member(schema, "patternProperties"),
          more = lp_json_member(schema, "additionalProperties");
  lp_builder_list list = {.open = '{', .close = '}', .most = -1};
  int32_t key = b->string, value = b->value;
  LP_TRY(lp_builder_count(b, schema, "minProperties", false, 1, &list.least)); /* two may have one key */
  LP_TRY(lp_builder_count(b, schema, "maxProperties", true, LP_MOST_COUNT, &list.most));
  if (lp_json_count(&patterns) > 1)
    return lp_json_error(&patterns, b->diag, "the schema's 'patternProperties' has several patterns");
  if (lp_json_count(&patterns) == 1) {
    const lp_json only = lp_json_entry(&patterns, 0);
    LP_TRY(lp_builder_pattern(b, &only, only.key, &key));
    LP_TRY(build(b, &only, depth + 1, &value));
  } else if (lp_json_is(&more, LP_JSON_OBJECT)) {
    LP_TRY(build(b, &more, depth + 1, &value));
  }
  if (lp_json_is_given(&names)) {
    const lp_json of = lp_builder_resolve(b, &names, depth);
    lp_json type = lp_json_member(&of, "type"), first = {.value = lp_builder_literal(&of, 0)};
    const bool is_text = lp_json_equals(&type, "string") || (!type.value && lp_json_is(&first, LP_JSON_TEXT));
    if (!is_text || lp_json_count(&patterns) > 0)
      return lp_json_error(&names, b->diag, "the schema's 'propertyNames' must be of the type 'string'");
    LP_TRY(build(b, &names, depth + 1, &key));
  }
  if (key < 0 || value < 0)
    list.item = -1;
  else
    list.item = call(b, key, range(b, ':', ':', call(b, b->space, call(b, value, b->done))));
  if (list.item < 0 && list.least > 0)
    return lp_builder_none(b, schema, "the schema's 'minProperties' exceeds its properties", out);
  *out = lp_builder_items(b, &list);
  return LP_OK;
}

static lp_status build_object(lp_builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json properties = lp_json_member(schema, "properties"), more = lp_json_member(schema, "additionalProperties"),
          patterns = lp_json_member(schema, "patternProperties"),
          unevaluated = lp_json_member(schema, "unevaluatedProperties");
  const size_t count = lp_json_count(&properties);
  if (lp_json_is_given(&properties)) LP_TRY(lp_json_object(&properties, b->diag));
  if (lp_json_is_given(&patterns)) LP_TRY(lp_json_object(&patterns, b->diag));
  if (count > LP_MOST_COUNT)
    return lp_json_error(schema, b->diag, "the schema's 'properties' has %zu members, at most %d are taken", count,
                         LP_MOST_COUNT);
  if (!lp_json_is_given(&more)) more = unevaluated;
  bool none = lp_json_is(&more, LP_JSON_BOOL) && !lp_json_is_true(&more) && lp_json_count(&patterns) == 0;
  bool lists = count > 0 || none || (lp_json_is_given(&properties) && !lp_json_is_given(&more));
  return !lists ? build_map(b, schema, depth, out) : build_properties(b, schema, &properties, depth, out);
}

/* Reads how many items a list may have. With only `first` items of their own, it has at most these. */
static lp_status read_lengths(lp_builder *b, const lp_json *schema, bool closed, size_t first, lp_builder_list *out) {
  LP_TRY(lp_builder_count(b, schema, "minItems", false, LP_MOST_COUNT, &out->least));
  LP_TRY(lp_builder_count(b, schema, "maxItems", true, LP_MOST_COUNT, &out->most));
  if (closed && (out->most < 0 || out->most > (int64_t)first)) out->most = (int64_t)first;
  if (lp_json_is_true(LP_MEMBER(schema, "uniqueItems")) && (out->most < 0 || out->most > 1))
    return lp_json_error(schema, b->diag, "the schema's keyword 'uniqueItems' is not supported");
  return LP_OK;
}

/* The rules of the items: those of `prefixItems`, and that of the others. */
static lp_status build_items(lp_builder *b, const lp_json *prefix, const lp_json *rest, int depth, int32_t *first,
                             lp_builder_list *out) {
  LP_FOR_ITEMS(at, prefix)
    LP_TRY(build(b, &at, depth + 1, &first[at.index]));
  if (out->item >= 0 && lp_json_is_given(rest)) LP_TRY(build(b, rest, depth + 1, &out->item));
  for (size_t i = out->first_count; i-- > 0;) /* it ends before an item that can't be */
    if (first[i] < 0) out->first_count = i, out->item = -1;
  const int64_t most = (int64_t)out->first_count;
  if (out->item < 0 && (out->most < 0 || out->most > most)) out->most = most;
  return LP_OK;
}

static lp_status build_array(lp_builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json items = lp_json_member(schema, "items"), prefix = lp_json_member(schema, "prefixItems"),
          more = lp_json_member(schema, "additionalItems"), unevaluated = lp_json_member(schema, "unevaluatedItems");
  const bool is_old = lp_json_is(&items, LP_JSON_ARRAY); /* "items" was "prefixItems", and "additionalItems" "items" */
  if (is_old) prefix = items;
  const lp_json *rest = is_old ? &more : &items;
  if (!lp_json_is_given(rest)) rest = &unevaluated;
  const size_t count = lp_json_count(&prefix);
  const bool no_more = lp_json_is(rest, LP_JSON_BOOL) && !lp_json_is_true(rest);
  lp_builder_list list = {.open = '[', .close = ']', .first_count = count, .most = -1};
  if (count > LP_MOST_COUNT)
    return lp_json_error(&prefix, b->diag, "the schema's 'prefixItems' has %zu schemas", count);
  LP_TRY(read_lengths(b, schema, no_more, count, &list));
  const bool closed = no_more || (count > 0 && !lp_json_is_given(rest) && list.least <= (int64_t)count);
  if (closed && (list.most < 0 || list.most > (int64_t)count)) list.most = (int64_t)count;
  list.item = closed ? -1 : b->value;
  LP_OWNED(lp_free_at) int32_t *first = lp_alloc((count + 1) * sizeof *first);
  lp_status status = build_items(b, &prefix, rest, depth, first, &list);
  list.first = first;
  if (status == LP_OK && list.most >= 0 && list.least > list.most)
    status = lp_builder_none(b, schema, "the schema's 'minItems' exceeds 'maxItems'", out);
  else if (status == LP_OK)
    *out = count > 0 ? lp_builder_items(b, &list) : lp_builder_same_items(b, &list);
  return status;
}

static lp_status build_type(lp_builder *b, const lp_json *schema, const char *type, int depth, int32_t *out) {
  if (lp_streq(type, "object")) return build_object(b, schema, depth, out);
  if (lp_streq(type, "array")) return build_array(b, schema, depth, out);
  if (lp_streq(type, "string")) return lp_builder_text(b, schema, out);
  if (lp_streq(type, "number") || lp_streq(type, "integer"))
    return lp_builder_number(b, schema, lp_streq(type, "integer"), out);
  *out = lp_streq(type, "boolean") ? either(b, text(b, "true", 4, b->done), text(b, "false", 5, b->done))
         : lp_streq(type, "null")  ? text(b, "null", 4, b->done)
                                   : -1;
  return *out >= 0 ? LP_OK : lp_json_error(schema, b->diag, "the schema's type '%.40s' is unknown", type);
}

/* 'type': a name, or a list of names. */
static lp_status build_types(lp_builder *b, const lp_json *schema, const lp_json *type, int depth, int32_t *out) {
  const char *only = lp_json_text_or(type, NULL);
  if (only) return build_type(b, schema, only, depth, out);
  int32_t node = -1;
  LP_FOR_ITEMS(item, type) {
    int32_t one;
    LP_TRY(build_type(b, schema, lp_json_text_or(&item, ""), depth, &one));
    if (one >= 0) node = node < 0 ? one : either(b, node, one);
  }
  *out = node;
  if (lp_json_count(type) > 0) return LP_OK;
  return lp_json_error(schema, b->diag, "the schema's 'type' must be a name or a list of names");
}

/* The type that keywords imply. */
static const char *implied_type(const lp_json *schema) {
  static const char *const signs[][2] = {{"properties", "object"},
                                         {"required", "object"},
                                         {"additionalProperties", "object"},
                                         {"patternProperties", "object"},
                                         {"propertyNames", "object"},
                                         {"minProperties", "object"},
                                         {"maxProperties", "object"},
                                         {"items", "array"},
                                         {"prefixItems", "array"},
                                         {"minItems", "array"},
                                         {"maxItems", "array"},
                                         {"minLength", "string"},
                                         {"maxLength", "string"},
                                         {"pattern", "string"},
                                         {"minimum", "number"},
                                         {"maximum", "number"},
                                         {"exclusiveMinimum", "number"},
                                         {"exclusiveMaximum", "number"},
                                         {"multipleOf", "number"}};
  for (size_t i = 0; i < LP_COUNT(signs); i++)
    if (lp_json_is_given(LP_MEMBER(schema, signs[i][0]))) return signs[i][1];
  return NULL;
}

/* Tells whether something else is said of the properties that are listed, or one that is required is not listed. */
static bool joins_properties(const lp_json *schema) {
  lp_json properties = lp_json_member(schema, "properties"), patterns = lp_json_member(schema, "patternProperties"),
          required = lp_json_member(schema, "required"), names = lp_json_member(schema, "propertyNames");
  bool joins = lp_json_count(&properties) > 0 && (lp_json_count(&patterns) > 0 || names.value);
  for (size_t i = 0; !joins && i < lp_json_count(&required); i++)
    joins = !lp_json_member(&properties, lp_json_text_or(LP_ITEM(&required, i), "")).value;
  return joins;
}

/* Tells whether a schema has several of the keywords of which this file follows one, or others that are alternatives in
 * disguise. Literal values may have a type. */
static bool joins(const lp_json *schema) {
  static const char *const keys[] = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "type"};
  static const char *const disguised[] = {"not", "if", "dependencies", "dependentRequired", "dependentSchemas"};
  const lp_json all = lp_json_member(schema, "allOf");
  const char *first = NULL, *second = implied_type(schema);
  for (size_t i = 0; i < LP_COUNT(disguised); i++)
    if (lp_json_member(schema, disguised[i]).value) return true;
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    const lp_json at = lp_json_member(schema, keys[i]);
    const bool literal = first && (lp_streq(first, "enum") || lp_streq(first, "const"));
    if (!at.value || (lp_streq(keys[i], "type") && (literal || !first))) continue;
    if (first) second = keys[i];
    first = first ? first : keys[i];
  }
  return lp_json_count(&all) > 1 || (first ? second != NULL : joins_properties(schema));
}

/* ---- any schema -------------------------------------------------------------------------------------------------- */

static lp_status build_simple(lp_builder *b, const lp_json *schema, int depth, int32_t *out) {
  lp_json type = lp_json_member(schema, "type"), values = lp_json_member(schema, "enum"),
          only = lp_json_member(schema, "const"), any = lp_json_member(schema, "anyOf"),
          one_of = lp_json_member(schema, "oneOf"), all = lp_json_member(schema, "allOf"),
          reference = lp_json_member(schema, "$ref");
  *out = b->value;
  if (lp_json_is(schema, LP_JSON_BOOL))
    return lp_json_is_true(schema) ? LP_OK : lp_builder_none(b, schema, "the schema accepts no value", out);
  if (lp_json_is_given(&reference)) return build_reference(b, schema, lp_json_text_or(&reference, ""), depth, out);
  if (lp_json_is_given(&any)) return build_any_of(b, &any, NULL, depth, out);
  if (lp_json_is_given(&one_of)) {
    lp_json list = one_of;
    LP_TRY(lp_builder_exclude(b, &one_of, depth, &list.value));
    return build_any_of(b, &list, NULL, depth, out);
  }
  if (lp_json_is_given(&all)) {
    const lp_json one = lp_json_item(&all, 0);
    LP_TRY(lp_json_array(&all, b->diag));
    return one.value ? build(b, &one, depth + 1, out) : LP_OK;
  }
  if (only.value) {
    const lp_json_value list = {.kind = LP_JSON_ARRAY, .size = 1, .items = only.value};
    const lp_json values_of = {.value = &list};
    return lp_builder_literals(b, schema, &values_of, &type, out);
  }
  if (lp_json_is_given(&values)) return lp_builder_literals(b, schema, &values, &type, out);
  if (lp_json_is_given(&type)) return build_types(b, schema, &type, depth, out);
  const char *implied = lp_json_is_given(LP_MEMBER(schema, "format")) ? "string" : implied_type(schema);
  return implied ? build_type(b, schema, implied, depth, out) : LP_OK;
}

static lp_status build(lp_builder *b, const lp_json *schema, int depth, int32_t *out) {
  if (depth > MOST_DEPTH || b->grammar->nodes.count > LP_GRAMMAR_MOST_NODES) return lp_builder_too_large(b, schema);
  if (!lp_json_is(schema, LP_JSON_BOOL)) LP_TRY(lp_builder_check_keywords(b, schema));
  return joins(schema) ? build_rule(b, schema, true, depth, out) : build_simple(b, schema, depth, out);
}

/* ---- grammars ---------------------------------------------------------------------------------------------------- */

static lp_builder begin(lp_diag *diag) {
  lp_builder b = {.grammar = lp_alloc(sizeof(lp_grammar)),
                  .diag = diag,
                  .build = build_simple,
                  .none = lp_diag_create(),
                  .arena = lp_arena_create()};
  lp_builder_define_plain(&b);
  return b;
}

/* Fails for a grammar without texts, and for one with too many alternatives in a place. */
static lp_status check_texts(lp_builder *b, int32_t root) {
  const lp_diag_entry *why = lp_diag_count(b->none) > 0 ? lp_diag_get(b->none, 0) : NULL;
  if (root < 0) return lp_error(b->diag, LP_LOC_NONE, "%s", why ? why->text : "the schema accepts no value");
  const lp_match match = lp_grammar_explore(b->grammar);
  if (match == LP_MATCH_NO)
    return lp_error(b->diag, LP_LOC_NONE, "the schema's '$ref' refers to itself, and accepts no value");
  if (match != LP_MATCH_YES)
    return lp_error(b->diag, LP_LOC_NONE, "the schema has too many alternatives that begin alike");
  lp_grammar_sign(b->grammar);
  return LP_OK;
}

/* The text may begin with a space, as many vocabularies have tokens with one before the bracket. */
static lp_status end(lp_builder *b, lp_status status, int32_t root, lp_grammar **out) {
  b->grammar->root = root;
  if (status == LP_OK) status = check_texts(b, root);
  lp_builder_free(b);
  if (status == LP_OK) b->grammar->root = either(b, root, range(b, ' ', ' ', root));
  *out = status == LP_OK ? b->grammar : NULL;
  if (status != LP_OK) lp_grammar_free(b->grammar);
  return status;
}

lp_status lp_grammar_of_schema(const lp_json *schema, lp_grammar **out, lp_diag *diag) {
  lp_builder b = begin(diag);
  int32_t root = b.object;
  b.root = *schema;
  lp_status status = lp_json_is_given(schema) ? build(&b, schema, 0, &root) : LP_OK;
  return end(&b, status, root, out);
}

static lp_status build_tool(lp_builder *b, const lp_json *tool, const char *wanted, int32_t *out) {
  static const char name_of[] = "{\"name\": ", arguments_of[] = ", \"arguments\": ";
  lp_json function = lp_json_member(tool, "function"), parameters = lp_json_member(&function, "parameters");
  const char *name = lp_json_text_or(LP_MEMBER(&function, "name"), NULL);
  if (!name) return lp_error(b->diag, LP_LOC_NONE, "a tool must have 'function' with a 'name'");
  if (wanted && !lp_streq(name, wanted)) return LP_OK;
  int32_t arguments = text(b, "{}", 2, b->done); /* of a function without parameters */
  b->root = parameters;
  if (lp_json_count(&parameters) > 0) LP_TRY(build(b, &parameters, 0, &arguments));
  if (arguments < 0) return LP_OK;
  lp_buf quoted = {0};
  lp_json_quote(name, &quoted);
  int32_t node = text(b, arguments_of, sizeof arguments_of - 1, call(b, arguments, range(b, '}', '}', b->done)));
  node = text(b, name_of, sizeof name_of - 1, text(b, lp_buf_text(&quoted), quoted.size, node));
  lp_buf_free(&quoted);
  *out = *out < 0 ? node : either(b, *out, node);
  return LP_OK;
}

lp_status lp_grammar_of_tools(const lp_json *tools, const char *name, lp_grammar **out, lp_diag *diag) {
  lp_builder b = begin(diag);
  int32_t root = -1;
  lp_status status = LP_OK;
  for (size_t i = 0; status == LP_OK && i < lp_json_count(tools); i++)
    status = build_tool(&b, LP_ITEM(tools, i), name, &root);
  if (status == LP_OK && root < 0 && lp_diag_count(b.none) == 0)
    status = lp_error(diag, LP_LOC_NONE, "'tools' has no function '%.80s'", name ? name : "");
  return end(&b, status, root, out);
}
