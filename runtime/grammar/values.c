/* Makes and compares values of JSON: see values.h. */
#include "runtime/grammar/values.h"

#include <math.h>

const lp_json_value lp_value_nothing = {.kind = LP_JSON_BOOL, .truth = false};
const lp_json_value lp_value_anything = {.kind = LP_JSON_BOOL, .truth = true};

bool lp_value_is_bool(const lp_json_value *value, bool truth) {
  return value && value->kind == LP_JSON_BOOL && value->truth == truth;
}

double lp_value_number(const lp_json_value *value) {
  return value->kind == LP_JSON_INTEGER ? (double)value->integer : value->kind == LP_JSON_REAL ? value->real : NAN;
}

void lp_value_put(lp_values *object, const char *key, const lp_json_value *value) {
  const lp_json_value name = {.kind = LP_JSON_TEXT, .size = (uint32_t)strlen(key), .text = key};
  lp_vec_push(object, name);
  lp_vec_push(object, *value);
}

const lp_json_value *lp_value_pack(lp_builder *b, lp_json_kind kind, lp_values *from) {
  lp_json_value *out = LP_NEW(b->arena, lp_json_value);
  *out = (lp_json_value){.kind = kind, .size = (uint32_t)(kind == LP_JSON_OBJECT ? from->count / 2 : from->count)};
  out->items = lp_arena_copy(b->arena, from->data, from->count * sizeof *from->data);
  lp_vec_free(from);
  return out;
}

const lp_json_value *lp_value_of_member(lp_builder *b, const char *key, const lp_json_value *value) {
  lp_values object = {0};
  lp_value_put(&object, key, value);
  return lp_value_pack(b, LP_JSON_OBJECT, &object);
}

bool lp_value_is_same(const lp_json_value *one, const lp_json_value *other) {
  return one->kind == other->kind && one->kind == LP_JSON_OBJECT && one->size > 0 && one->items == other->items;
}

bool lp_value_has_type(const lp_json_value *type, const char *name) {
  const lp_json at = {.value = type};
  bool has = !type || lp_json_equals(&at, name);
  for (size_t i = 0; !has && i < lp_json_count(&at); i++)
    has = lp_json_equals(LP_ITEM(&at, i), name);
  return has || (lp_streq(name, "integer") && lp_value_has_type(type, "number"));
}

static bool accepts_all(const lp_json_value *value) {
  return !value || lp_value_is_bool(value, true) || (value->kind == LP_JSON_OBJECT && value->size == 0);
}

const lp_json_value *lp_value_both(lp_builder *b, const lp_json_value *one, const lp_json_value *other) {
  if (accepts_all(one) && accepts_all(other)) return &lp_value_anything;
  if (accepts_all(one) || lp_value_is_bool(other, false)) return other;
  if (accepts_all(other) || lp_value_is_bool(one, false) || lp_value_is_same(one, other)) return one;
  for (size_t i = 0; i < b->pairs.count; i++)
    if (lp_value_is_same(b->pairs.data[i].one, one) && lp_value_is_same(b->pairs.data[i].other, other))
      return b->pairs.data[i].both;
  lp_values list = {0};
  lp_vec_push(&list, *one);
  lp_vec_push(&list, *other);
  const lp_pair made = {one, other, lp_value_of_member(b, "allOf", lp_value_pack(b, LP_JSON_ARRAY, &list))};
  lp_vec_push(&b->pairs, made);
  return made.both;
}
