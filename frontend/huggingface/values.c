/* Values of config.json: see config.h. */
#include "frontend/huggingface/config.h"

lp_status lp_config_size(const lp_config *r, const char *key, int64_t otherwise, int64_t *out) {
  lp_json at = lp_json_member(r->root, key);
  *out = otherwise;
  if (otherwise >= 0 && !lp_json_is_given(&at)) return LP_OK;
  return lp_json_i64(&at, 1, LP_CONFIG_MOST_SIZE, out, r->diag);
}

lp_status lp_config_number(const lp_json *object, const char *key, double otherwise, double *out, lp_diag *diag) {
  lp_json at = lp_json_member(object, key);
  *out = otherwise;
  return lp_json_is_given(&at) ? lp_json_number(&at, -1e30, 1e30, out, diag) : LP_OK;
}

lp_status lp_config_positive(const lp_json *object, const char *key, double otherwise, double *out, lp_diag *diag) {
  lp_json at = lp_json_member(object, key);
  LP_TRY(lp_config_number(object, key, otherwise, out, diag));
  if (*out > 0) return LP_OK;
  return lp_json_is_given(&at) ? lp_json_error(&at, diag, "%g is not positive", *out)
                               : lp_json_error(object, diag, "the key '%s' is missing", key);
}

bool lp_config_is_true(const lp_config *r, const char *key, bool otherwise) {
  lp_json at = lp_json_member(r->root, key);
  return lp_json_is_given(&at) ? lp_json_is_true(&at) : otherwise;
}

bool lp_config_is_off(const lp_json *at) {
  if (!lp_json_is_given(at)) return true;
  if (lp_json_is(at, LP_JSON_BOOL)) return !lp_json_is_true(at);
  if (lp_json_is(at, LP_JSON_INTEGER)) return at->value->integer == 0;
  if (lp_json_is(at, LP_JSON_REAL)) return at->value->real == 0;
  return (lp_json_is(at, LP_JSON_ARRAY) || lp_json_is(at, LP_JSON_OBJECT)) && lp_json_count(at) == 0;
}
