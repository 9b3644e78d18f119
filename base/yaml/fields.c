/* Mappings read by a table of their keys. */
#include "base/units.h"
#include "base/yaml/yaml.h"

typedef struct {
  const lp_yaml_field *fields;
  size_t count;
  char *out;
  bool *given;
} field_reader;

/* A value with a unit; the parser's complaint follows the key. */
static lp_status read_unit(const lp_yaml *yaml, const lp_yaml_node *node, const lp_yaml_field *field, double *out) {
  const char *text = NULL;
  double value = 0;
  bool time = field->kind == LP_YAML_TIME_S;
  LP_TRY(lp_yaml_text(yaml, node, field->key, &text));
  lp_loc loc = lp_yaml_loc(yaml, node);
  lp_diag *inner = lp_diag_create();
  lp_status status = time ? lp_parse_time_ms(text, &value, inner, loc) : lp_parse_rate_bps(text, &value, inner, loc);
  if (status != LP_OK) status = lp_error(yaml->diag, loc, "'%s': %s", field->key, lp_diag_get(inner, 0)->text);
  lp_diag_free(inner);
  LP_TRY(status);
  value *= time ? 1e-3 : 1;
  if (value < field->least || value > field->most)
    return lp_error(yaml->diag, loc, "'%s' is '%s', but it is from %g to %g %s", field->key, text, field->least,
                    field->most, time ? "s" : "bit/s");
  *out = value;
  return LP_OK;
}

static lp_status read_i64(const lp_yaml *yaml, const lp_yaml_node *node, const lp_yaml_field *field, int64_t *out) {
  double value = 0;
  const char *text = NULL;
  int64_t whole = 0;
  LP_TRY(lp_yaml_text(yaml, node, field->key, &text));
  LP_TRY(lp_yaml_number(yaml, node, field->key, field->least, field->most, &value));
  if (lp_parse_i64(text, INT64_MIN, INT64_MAX, &whole, NULL, LP_LOC_NONE) != LP_OK)
    return lp_yaml_error(yaml, node, "'%s' is '%s', not a whole number from %g to %g", field->key, text, field->least,
                         field->most);
  *out = whole;
  return LP_OK;
}

static lp_status read_value(lp_yaml *yaml, const lp_yaml_node *node, const lp_yaml_field *field, void *place) {
  switch (field->kind) {
  case LP_YAML_F64:
    return lp_yaml_number(yaml, node, field->key, field->least, field->most, place);
  case LP_YAML_I64:
    return read_i64(yaml, node, field, place);
  case LP_YAML_BOOL:
    return lp_yaml_bool(yaml, node, field->key, place);
  case LP_YAML_TEXT:
    return lp_yaml_text(yaml, node, field->key, place);
  case LP_YAML_TIME_S:
  case LP_YAML_BPS:
    return read_unit(yaml, node, field, place);
  case LP_YAML_CHOICE:
    return lp_yaml_choice(yaml, node, field->key, field->names, (size_t)field->name_count, place);
  case LP_YAML_NODE:
    *(const lp_yaml_node **)place = node;
    return LP_OK;
  }
  return LP_OK;
}

static lp_status read_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                            void *user) {
  field_reader *r = user;
  for (size_t i = 0; i < r->count; i++) {
    if (!lp_streq(r->fields[i].key, name)) continue;
    r->given[i] = true;
    return read_value(yaml, value, &r->fields[i], r->out + r->fields[i].offset);
  }
  const char **keys = lp_alloc((r->count + 1) * sizeof *keys);
  for (size_t i = 0; i < r->count; i++)
    keys[i] = r->fields[i].key;
  lp_status status = lp_yaml_unknown_key(yaml, key, name, keys, r->count);
  free(keys);
  return status;
}

lp_status lp_yaml_fields(lp_yaml *yaml, const lp_yaml_node *node, const char *what, const lp_yaml_field *fields,
                         size_t count, void *out) {
  field_reader r = {fields, count, out, lp_alloc(count + 1)};
  lp_status status = lp_yaml_each(yaml, node, what, read_entry, &r);
  for (size_t i = 0; i < count && status == LP_OK; i++)
    if (fields[i].required && !r.given[i]) status = lp_yaml_error(yaml, node, "%s lacks '%s'", what, fields[i].key);
  free(r.given);
  return status;
}

uint64_t lp_yaml_digest(const lp_yaml_field *fields, size_t count, const void *of, uint64_t seed) {
  static const size_t size[] = {[LP_YAML_F64] = sizeof(double),     [LP_YAML_I64] = sizeof(int64_t),
                                [LP_YAML_BOOL] = sizeof(bool),      [LP_YAML_TEXT] = 0,
                                [LP_YAML_TIME_S] = sizeof(double),  [LP_YAML_BPS] = sizeof(double),
                                [LP_YAML_CHOICE] = sizeof(int32_t), [LP_YAML_NODE] = 0};
  for (size_t i = 0; i < count; i++) {
    const char *at = (const char *)of + fields[i].offset;
    const char *text = NULL;
    if (fields[i].kind == LP_YAML_TEXT) memcpy(&text, at, sizeof text);
    seed += i; /* one value in another field is another value */
    seed = text ? lp_hash_bytes(text, strlen(text) + 1, seed) : lp_hash_bytes(at, size[fields[i].kind], seed);
  }
  return seed;
}
