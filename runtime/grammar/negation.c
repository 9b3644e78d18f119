/* The opposite of a schema, of `not` and of `if` with `else`. */

#include "runtime/grammar/builder.h"
#include "runtime/grammar/values.h"

/* Keywords whose opposite is not written as a schema here. */
static bool has_no_opposite(const char *key) {
  static const char *const keys[] = {
      "oneOf",        "minLength",         "maxLength",        "minimum",     "maximum",
      "minItems",     "exclusiveMinimum",  "exclusiveMaximum", "maxItems",    "minProperties",
      "pattern",      "maxProperties",     "multipleOf",       "format",      "uniqueItems",
      "items",        "prefixItems",       "additionalItems",  "contains",    "additionalProperties",
      "if",           "patternProperties", "propertyNames",    "nullable",    "unevaluatedItems",
      "dependencies", "dependentRequired", "dependentSchemas", "$dynamicRef", "unevaluatedProperties",
      "$recursiveRef"};
  return LP_FIND_IN(keys, key) != NULL;
}

static const lp_json_value *not_of(lp_builder *b, const lp_json_value *of) {
  return lp_value_of_member(b, "not", of);
}

/* An object whose property is of this schema, and which may lack it if that is false. */
static void put_object(lp_builder *b, const char *key, const lp_json_value *property, lp_values *ways) {
  static const lp_json_value type = {.kind = LP_JSON_TEXT, .size = 6, .text = "object"};
  const lp_json_value name = {.kind = LP_JSON_TEXT, .size = (uint32_t)strlen(key), .text = key};
  lp_values object = {0}, required = {0};
  lp_value_put(&object, "type", &type);
  lp_value_put(&object, "properties", lp_value_of_member(b, key, property));
  if (property->kind != LP_JSON_BOOL) {
    lp_vec_push(&required, name);
    lp_value_put(&object, "required", lp_value_pack(b, LP_JSON_ARRAY, &required));
  }
  lp_vec_push(ways, *lp_value_pack(b, LP_JSON_OBJECT, &object));
}

/* All types that are not listed. An integer is a number. */
static void put_other_types(lp_builder *b, const lp_json *type, lp_values *ways) {
  static const char *const names[] = {"object", "array", "string", "number", "boolean", "null"};
  lp_values list = {0};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    const lp_json_value name = {.kind = LP_JSON_TEXT, .size = (uint32_t)strlen(names[i]), .text = names[i]};
    const bool is_number = lp_streq(names[i], "number");
    if (!lp_value_has_type(type->value, is_number ? "integer" : names[i])) lp_vec_push(&list, name);
  }
  if (list.count == 0) return;
  lp_vec_push(ways, *lp_value_of_member(b, "type", lp_value_pack(b, LP_JSON_ARRAY, &list)));
}

/* Appends what contradicts one member of a schema. */
static lp_status contradict(lp_builder *b, const lp_json *schema, const lp_json *member, lp_values *ways) {
  const char *key = member->key;
  const bool all = lp_streq(key, "allOf"), is_list = lp_json_is(member, LP_JSON_ARRAY);
  if (lp_streq(key, "type")) put_other_types(b, member, ways);
  if (lp_streq(key, "const") || lp_streq(key, "enum"))
    lp_vec_push(ways, *not_of(b, lp_value_of_member(b, key, member->value)));
  if (lp_streq(key, "not")) lp_vec_push(ways, *member->value);
  if (lp_streq(key, "$ref")) {
    const lp_json_value *target = lp_builder_target(b, lp_json_text_or(member, ""));
    if (!target) return lp_json_error(schema, b->diag, "the schema's '$ref' finds nothing");
    lp_vec_push(ways, *not_of(b, target));
  }
  lp_values none = {0};
  for (size_t i = 0; is_list && (all || lp_streq(key, "anyOf")) && i < lp_json_count(member); i++)
    lp_vec_push(all ? ways : &none, *not_of(b, &member->value->items[i]));
  if (none.count > 0) lp_vec_push(ways, *lp_value_of_member(b, "allOf", lp_value_pack(b, LP_JSON_ARRAY, &none)));
  for (size_t i = 0; lp_streq(key, "required") && i < lp_json_count(member); i++)
    put_object(b, lp_json_text_or(LP_ITEM(member, i), ""), &lp_value_nothing, ways);
  for (size_t i = 0; lp_streq(key, "properties") && lp_json_is(member, LP_JSON_OBJECT) && i < lp_json_count(member);
       i++) {
    const lp_json property = lp_json_entry(member, i);
    put_object(b, property.key, not_of(b, property.value), ways);
  }
  return LP_OK;
}

lp_status lp_builder_negate(lp_builder *b, const lp_json *schema, const lp_json_value **out) {
  lp_values ways = {0};
  lp_status status = LP_OK;
  if (lp_json_is(schema, LP_JSON_BOOL)) {
    *out = lp_json_is_true(schema) ? &lp_value_nothing : &lp_value_anything;
    return LP_OK;
  }
  if (!lp_json_is(schema, LP_JSON_OBJECT)) return lp_json_error(schema, b->diag, "a schema must be an object");
  for (size_t i = 0; status == LP_OK && i < lp_json_count(schema); i++) {
    const lp_json member = lp_json_entry(schema, i);
    if (has_no_opposite(member.key))
      status = lp_json_error(schema->parent, b->diag,
                             "the schema's keyword 'not' (or 'if') is not supported of '%.40s'", member.key);
    else
      status = contradict(b, schema, &member, &ways);
  }
  if (status == LP_OK && ways.count > 0)
    *out = lp_value_of_member(b, "anyOf", lp_value_pack(b, LP_JSON_ARRAY, &ways));
  else
    *out = &lp_value_nothing;
  lp_vec_free(&ways);
  return status;
}
