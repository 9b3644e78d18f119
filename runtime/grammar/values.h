/* Values of JSON that are made while schemas are joined: they live in the builder's arena. */
#pragma once

#include "runtime/grammar/builder.h"

/* An object's keys and values, alternating, or a list's items. */
typedef LP_VEC(lp_json_value) lp_values;
void lp_value_put(lp_values *object, const char *key, const lp_json_value *value); /* borrows both */
/* Makes a value of them, and empties them. */
const lp_json_value *lp_value_pack(lp_builder *b, lp_json_kind kind, lp_values *from);
const lp_json_value *lp_value_of_member(lp_builder *b, const char *key, const lp_json_value *value); /* {key: value} */

extern const lp_json_value lp_value_nothing, lp_value_anything; /* the schemas false and true */
bool lp_value_is_bool(const lp_json_value *value, bool truth);
double lp_value_number(const lp_json_value *value); /* NaN: it is none */
/* Tells whether two objects are one: copies share their members. */
bool lp_value_is_same(const lp_json_value *one, const lp_json_value *other);
/* Tells whether a schema's `type` has the name; an absent one (NULL) has all, and a number may be an integer. */
bool lp_value_has_type(const lp_json_value *type, const char *name);
/* The schema of values that both accept; NULL stands for one that is absent, and accepts all. The same pair has the
 * same schema, so that schemas that refer to themselves come to an end. */
const lp_json_value *lp_value_both(lp_builder *b, const lp_json_value *one, const lp_json_value *other);
