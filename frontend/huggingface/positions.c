/* Rotary positions of config.json, and their scaling: see config.h. */
#include "frontend/huggingface/config.h"

#include <math.h>

static lp_status check_rope_keys(const lp_json *at, lp_diag *diag) {
  static const char *const known[] = {"rope_type",
                                      "type",
                                      "rope_theta",
                                      "factor",
                                      "low_freq_factor",
                                      "high_freq_factor",
                                      "original_max_position_embeddings",
                                      "attention_factor",
                                      "beta_fast",
                                      "beta_slow",
                                      "alpha",
                                      "mscale",
                                      "mscale_all_dim",
                                      "truncate",
                                      "partial_rotary_factor",
                                      "finetuned",
                                      "mrope_section", /* of three positions, which are one in a text */
                                      "mrope_interleaved",
                                      "short_factor",
                                      "long_factor"};
  for (size_t i = 0; i < lp_json_count(at); i++) {
    lp_json entry = lp_json_entry(at, i);
    bool is_known = lp_config_is_off(&entry) && !lp_streq(entry.key, "truncate");
    for (size_t k = 0; k < LP_COUNT(known) && !is_known; k++)
      is_known = lp_streq(entry.key, known[k]);
    if (lp_streq(entry.key, "attn_factor"))
      return lp_json_error(&entry, diag,
                           "transformers does not read this key, and YaRN's first code multiplies attention_factor by "
                           "it: remove it, or give attention_factor");
    if (!is_known) return lp_json_error(&entry, diag, "this key is unknown");
  }
  return LP_OK;
}

static lp_status read_yarn(const lp_config *r, const lp_json *at, lp_rope *rope) {
  double mscale, of_all;
  lp_json truncate = lp_json_member(at, "truncate");
  rope->truncate = !lp_json_is_given(&truncate) || lp_json_is_true(&truncate);
  LP_TRY(lp_config_positive(at, "beta_fast", 32, &rope->beta_fast, r->diag));
  LP_TRY(lp_config_positive(at, "beta_slow", 1, &rope->beta_slow, r->diag));
  LP_TRY(lp_config_number(at, "mscale", 0, &mscale, r->diag));
  LP_TRY(lp_config_number(at, "mscale_all_dim", 0, &of_all, r->diag));
  double own = mscale != 0 && of_all != 0
                   ? lp_rotary_yarn_scale(rope->factor, mscale) / lp_rotary_yarn_scale(rope->factor, of_all)
                   : lp_rotary_yarn_scale(rope->factor, 1);
  LP_TRY(
      lp_config_positive(at, "original_max_position_embeddings", (double)r->context, &rope->original_context, r->diag));
  return lp_config_positive(at, "attention_factor", own, &rope->attention_factor, r->diag);
}

/* Reads a list with a number for each rotated pair. */
static lp_status read_factors(const lp_config *r, const lp_json *at, const char *key, int64_t count,
                              const float **out) {
  lp_json list = lp_json_member(at, key);
  float *factors = LP_NEW_ARRAY(r->arena, float, count + 1);
  LP_TRY(lp_json_array(&list, r->diag));
  if (lp_json_count(&list) != (size_t)count)
    return lp_json_error(&list, r->diag, "%zu numbers instead of %" PRId64, lp_json_count(&list), count);
  for (int64_t i = 0; i < count; i++) {
    lp_json item = lp_json_item(&list, (size_t)i);
    double number;
    LP_TRY(lp_json_number(&item, -1e30, 1e30, &number, r->diag));
    if (number <= 0) return lp_json_error(&item, r->diag, "%g is not positive", number);
    factors[i] = (float)number;
  }
  *out = factors;
  return LP_OK;
}

/* With the original context given, the factor follows from it, as in transformers' _compute_longrope_parameters. */
static lp_status read_longrope(const lp_config *r, const lp_json *at, int64_t pairs, lp_rope *rope) {
  lp_json original = lp_json_member(r->root, "original_max_position_embeddings");
  double context = (double)r->context, factor = 1;
  LP_TRY(lp_config_positive(r->root, "original_max_position_embeddings", context, &rope->original_context, r->diag));
  if (!lp_json_is_given(&original)) {
    LP_TRY(lp_config_positive(at, "original_max_position_embeddings", context, &rope->original_context, r->diag));
    original = lp_json_member(at, "original_max_position_embeddings");
  }
  LP_TRY(lp_config_positive(at, "factor", 1, &factor, r->diag));
  if (lp_json_is_given(&original)) factor = context / rope->original_context;
  if (rope->original_context <= 1 || rope->original_context > (double)LP_CONFIG_MOST_SIZE)
    return lp_json_error(at, r->diag, "an original context of %g positions is not supported", rope->original_context);
  double own = lp_rotary_long_scale(factor, rope->original_context);
  LP_TRY(lp_config_positive(at, "attention_factor", own, &rope->attention_factor, r->diag));
  LP_TRY(read_factors(r, at, "short_factor", pairs, &rope->short_factor));
  return read_factors(r, at, "long_factor", pairs, &rope->long_factor);
}

/* Reads the object rope_scaling, or rope_parameters, which also has the base. */
static lp_status read_rope(const lp_config *r, const lp_json *at, int64_t size, lp_rope *rope) {
  static const char *const names[] = {[LP_ROPE_DEFAULT] = "default",
                                      [LP_ROPE_LINEAR] = "linear",
                                      [LP_ROPE_LLAMA3] = "llama3",
                                      [LP_ROPE_YARN] = "yarn",
                                      [LP_ROPE_LONG] = "longrope"};
  if (!lp_json_is_given(at)) return LP_OK;
  LP_TRY(lp_json_object(at, r->diag));
  LP_TRY(check_rope_keys(at, r->diag));
  lp_json type = lp_json_member(at, "rope_type");
  if (!lp_json_is_given(&type)) type = lp_json_member(at, "type");
  const char *name = lp_json_text_or(&type, lp_json_is_given(&type) ? "" : "default");
  lp_json factors = lp_json_member(at, "short_factor");
  bool is_phi3 = lp_streq(r->family->model_type, "phi3");
  lp_json alpha = lp_json_member(at, "alpha");
  if (lp_json_is_given(&alpha) && !lp_config_is_off(&alpha)) {
    double stretch;
    if (!r->family->norm_after_rotary || !lp_streq(name, "dynamic") || size <= 2)
      return lp_json_error(&alpha, r->diag, "this key is unknown");
    LP_TRY(lp_config_positive(at, "rope_theta", rope->theta, &rope->theta, r->diag));
    LP_TRY(lp_config_positive(at, "alpha", 0, &stretch, r->diag));
    rope->theta *= pow(stretch, (double)size / (double)(size - 2));
    return LP_OK;
  }
  if (lp_streq(name, "su") || (is_phi3 && lp_streq(name, "yarn"))) name = "longrope"; /* its first names */
  size_t kind = 0;
  while (kind < LP_COUNT(names) && !lp_streq(names[kind], name))
    kind++;
  if (kind == LP_COUNT(names))
    return lp_json_error(at, r->diag,
                         "positions of type '%.40s' are not supported: default, linear, llama3, yarn, longrope", name);
  if (kind != LP_ROPE_LONG && lp_json_is_given(&factors))
    return lp_json_error(&factors, r->diag, "positions of type '%s' have no such key", name);
  rope->kind = (lp_rope_kind)kind;
  LP_TRY(lp_config_positive(at, "rope_theta", rope->theta, &rope->theta, r->diag));
  if (rope->kind == LP_ROPE_DEFAULT) return LP_OK;
  if (rope->kind == LP_ROPE_LONG) return read_longrope(r, at, size / 2, rope);
  LP_TRY(lp_config_positive(at, "factor", 0, &rope->factor, r->diag));
  if (rope->kind == LP_ROPE_YARN) return read_yarn(r, at, rope);
  if (rope->kind != LP_ROPE_LLAMA3) return LP_OK;
  LP_TRY(lp_config_positive(at, "low_freq_factor", 0, &rope->low_freq_factor, r->diag));
  LP_TRY(lp_config_positive(at, "high_freq_factor", 0, &rope->high_freq_factor, r->diag));
  return lp_config_positive(at, "original_max_position_embeddings", 0, &rope->original_context, r->diag);
}

/* The elements of a head that rotate. Families that do not read the factor rotate whole heads by the default type, and
 * have no implementation of the others with it. */
static lp_status rotated_size(const lp_config *r, const lp_json *parameters, int64_t *out) {
  double partial;
  const int64_t whole = r->family->latent ? r->out->latent.rotated : r->out->head_dim;
  lp_json type = lp_json_member(parameters, "rope_type"), old = lp_json_member(parameters, "type");
  bool scaled = !lp_json_equals(lp_json_is_given(&type) ? &type : &old, "default");
  LP_TRY(lp_config_positive(r->root, "partial_rotary_factor", r->family->partial, &partial, r->diag));
  LP_TRY(lp_config_positive(parameters, "partial_rotary_factor", partial, &partial, r->diag));
  if (!r->family->rotates_part && partial != 1) {
    if (scaled && (lp_json_is_given(&type) || lp_json_is_given(&old)))
      return lp_json_error(r->root, r->diag,
                           "'partial_rotary_factor' %g with scaled positions is not supported for '%s'", partial,
                           r->family->model_type);
    lp_note(r->diag, LP_LOC_FILE(r->path), "'partial_rotary_factor' has no effect on models of type '%s'",
            r->family->model_type);
    partial = 1;
  }
  *out = (int64_t)((double)whole * fmin(partial, 2)); /* more than a head is refused */
  if (*out >= 2 && *out % 2 == 0 && *out <= whole) return LP_OK;
  return lp_json_error(
      r->root, r->diag,
      "%" PRId64 " of the %" PRId64 " elements of a head rotate; an even number of at least 2 is needed", *out, whole);
}

/* DeepSeek multiplies scores by the square of YaRN's scale as well (transformers' yarn_apply_mscale). */
static lp_status scale_scores(const lp_config *r, const lp_json *at, const lp_rope *rope) {
  double of_all;
  LP_TRY(lp_config_number(at, "mscale_all_dim", 0, &of_all, r->diag));
  if (!r->family->latent || rope->kind == LP_ROPE_DEFAULT || of_all == 0) return LP_OK;
  const double scale = lp_rotary_yarn_scale(rope->factor, of_all);
  r->out->attention_scale *= scale * scale;
  return LP_OK;
}

/* As in transformers, `rope_scaling` replaces `rope_parameters`, or with two bases adds to that of full attention. */
lp_status lp_config_read_rotary(const lp_config *r) {
  lp_rotary *rotary = LP_NEW_ARRAY(r->arena, lp_rotary, 2);
  lp_rope rope[2] = {{.theta = r->family->theta}, {.theta = 10000}};
  lp_json all = lp_json_member(r->root, "rope_parameters"), full = lp_json_member(&all, "full_attention");
  lp_json local = lp_json_member(&all, "sliding_attention"), scaling = lp_json_member(r->root, "rope_scaling");
  bool apart = r->family->two_bases && lp_json_is_given(&full);
  bool scaled = lp_json_is_given(&scaling) && !(lp_json_is(&scaling, LP_JSON_OBJECT) && lp_json_count(&scaling) == 0);
  lp_json shared = apart ? full : scaled ? scaling : all;
  int64_t size = 0;
  if (r->family->mixture && r->family->mixture->limit > 0 && !scaled && !lp_json_is_given(&all))
    return lp_json_error(r->root, r->diag, "the key 'rope_parameters' is missing, or 'rope_scaling'");
  LP_TRY(lp_config_positive(r->root, "rope_theta", rope[0].theta, &rope[0].theta, r->diag));
  LP_TRY(lp_config_positive(r->root, "rope_local_base_freq", rope[1].theta, &rope[1].theta, r->diag));
  LP_TRY(rotated_size(r, &shared, &size));
  LP_TRY(read_rope(r, &shared, size, &rope[0]));
  LP_TRY(scale_scores(r, &shared, &rope[0]));
  if (apart && scaled) LP_TRY(read_rope(r, &scaling, size, &rope[0]));
  if (apart) LP_TRY(read_rope(r, &local, size, &rope[1]));
  for (int i = 0; i < 2; i++)
    rotary[i] = lp_rotary_create(r->arena, size, &rope[i]);
  r->out->rotary = rotary;
  return LP_OK;
}
