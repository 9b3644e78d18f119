/* Alternatives of which exactly one may fit. */

#include "runtime/grammar/values.h"

enum { MOST_ONE_OF = 64 };

/* Tells whether both list values, and none in common, as far as that is looked at. */
static bool has_other_values(lp_builder *b, const lp_json *one, const lp_json *other) {
  if (!lp_builder_literal(one, 0) || !lp_builder_literal(other, 0)) return false;
  for (size_t i = 0; lp_builder_literal(one, i); i++)
    for (size_t k = 0; lp_builder_literal(other, k); k++)
      if (b->tried > LP_MOST_TRIED || lp_builder_is_equal(b, lp_builder_literal(one, i), lp_builder_literal(other, k)))
        return false;
  return true;
}

static bool has_other_types(const lp_json *one, const lp_json *other) {
  static const char *const names[] = {"object", "array", "string", "integer", "boolean", "null"};
  const lp_json type = lp_json_member(one, "type"), other_type = lp_json_member(other, "type");
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (lp_value_has_type(type.value, names[i]) && lp_value_has_type(other_type.value, names[i])) return false;
  return true;
}

/* Tells whether one requires a property that the other has with other values, or may not have. */
static bool excludes(lp_builder *b, const lp_json *one, const lp_json *other) {
  const lp_json required = lp_json_member(one, "required"), properties = lp_json_member(one, "properties"),
                others = lp_json_member(other, "properties"), patterns = lp_json_member(other, "patternProperties"),
                more = lp_json_member(other, "additionalProperties");
  LP_FOR_ITEMS(name, &required) {
    const char *key = lp_json_text_or(&name, "");
    const lp_json property = lp_json_member(&properties, key);
    lp_json same = lp_json_member(&others, key);
    if (!same.value && lp_json_count(&patterns) == 0) same = more;
    if (lp_value_is_bool(same.value, false)) return true;
    if (lp_builder_requires(other, key) && has_other_values(b, &property, &same)) return true;
  }
  return false;
}

/* Tells whether no value fits both. */
static bool is_disjoint(lp_builder *b, const lp_json *one, const lp_json *other) {
  if (lp_value_is_bool(one->value, false) || lp_value_is_bool(other->value, false)) return true;
  return has_other_types(one, other) || has_other_values(b, one, other) || excludes(b, one, other) ||
         excludes(b, other, one);
}

/* A property that one requires and the other need not have; NULL: there is none. */
static const char *find_extra(const lp_json *one, const lp_json *other) {
  const lp_json required = lp_json_member(one, "required");
  LP_FOR_ITEMS(name, &required) {
    const char *key = lp_json_text_or(&name, NULL);
    if (key && !lp_builder_requires(other, key)) return key;
  }
  return NULL;
}

/* An alternative without the values that fit others: those of a property that another requires. */
static lp_status exclude(lp_builder *b, const lp_json *list, const lp_json *joined, size_t index,
                         const lp_json_value **out) {
  *out = lp_json_item(list, index).value;
  for (size_t i = 0; i < lp_json_count(list); i++) {
    if (i == index || is_disjoint(b, &joined[i], &joined[index])) continue;
    const char *key = find_extra(&joined[i], &joined[index]);
    if (!key)
      return lp_json_error(list, b->diag,
                           "the schema's keyword 'oneOf' is not supported where a value may fit two of its schemas, "
                           "here those at %zu and %zu: use 'anyOf'",
                           i < index ? i : index, i < index ? index : i);
    const lp_json_value *absent = lp_value_of_member(b, key, &lp_value_nothing);
    *out = lp_value_both(b, *out, lp_value_of_member(b, "properties", absent));
  }
  return LP_OK;
}

lp_status lp_builder_exclude(lp_builder *b, const lp_json *list, int depth, const lp_json_value **out) {
  const size_t count = lp_json_count(list);
  lp_json joined[MOST_ONE_OF];
  lp_values all = {0};
  lp_status status = LP_OK;
  if (count > MOST_ONE_OF)
    return lp_json_error(list, b->diag, "the schema's 'oneOf' has more than %d schemas", MOST_ONE_OF);
  LP_FOR_ITEMS(item, list)
    joined[item.index] = lp_builder_resolve(b, &item, depth);
  for (size_t i = 0; status == LP_OK && i < count; i++) {
    const lp_json_value *alternative;
    status = exclude(b, list, joined, i, &alternative);
    lp_vec_push(&all, *alternative);
  }
  *out = lp_value_pack(b, LP_JSON_ARRAY, &all);
  return status;
}
