/* The keys of config.json for layers that keep a state in place of keys and values: short convolutions, state spaces
 * and gated delta nets. */
#include "frontend/huggingface/config.h"

static lp_status check_taps(const lp_config *r, int64_t taps) {
  if (taps > 1 && taps <= LP_CONFIG_MOST_TAPS) return LP_OK;
  return lp_json_error(r->root, r->diag, "convolutions of %" PRId64 " taps; 2 to %d are supported", taps,
                       LP_CONFIG_MOST_TAPS);
}

/* Reads layer_types, or how often a layer attends. */
static lp_status read_delta_layer(const lp_config *r, int64_t layer, lp_decoder_layer *out) {
  static const char *const types[] = {"full_attention", "linear_attention"};
  lp_json list = lp_json_member(r->root, "layer_types"), at = lp_json_item(&list, (size_t)layer);
  int64_t interval;
  LP_TRY(lp_config_size(r, "full_attention_interval", 4, &interval));
  int32_t type = (layer + 1) % interval != 0;
  if (lp_json_is_given(&list)) LP_TRY(lp_json_choice(&at, types, LP_COUNT(types), &type, r->diag));
  if (type == 0) return LP_OK;
  out->scans = true;
  LP_TRY(lp_config_size(r, "linear_conv_kernel_dim", 4, &out->taps));
  return check_taps(r, out->taps);
}

/* The list of the kinds of layers of Nemotron-H, or a text with a letter for each, or neither. */
static lp_status find_kinds(const lp_config *r, lp_json *list, const char **pattern) {
  lp_json letters = lp_json_member(r->root, "hybrid_override_pattern");
  *list = lp_json_member(r->root, "layers_block_type");
  if (!lp_json_is_given(list)) *list = lp_json_member(r->root, "layer_types");
  *pattern = "ME*-";
  return lp_json_is_given(list) || !lp_json_is_given(&letters) ? LP_OK : lp_json_text(&letters, pattern, r->diag);
}

lp_status lp_config_count_layers(const lp_config *r, int64_t *out) {
  lp_json list;
  const char *pattern;
  LP_TRY(find_kinds(r, &list, &pattern));
  *out = (int64_t)(lp_json_is_given(&list) ? lp_json_count(&list) : strlen(pattern));
  return *out > 0 ? LP_OK : lp_json_error(r->root, r->diag, "there are no layers");
}

static lp_status read_kind(const lp_config *r, int64_t layer, lp_decoder_layer *out) {
  static const char *const types[] = {"full_attention", "linear_attention", "mlp", "moe", "attention", "mamba"};
  static const char letters[] = "*M-E";
  lp_json list;
  const char *pattern;
  int32_t type = 0;
  LP_TRY(find_kinds(r, &list, &pattern));
  if (lp_json_is_given(&list)) {
    lp_json at = lp_json_item(&list, (size_t)layer);
    LP_TRY(lp_json_choice(&at, types, LP_COUNT(types), &type, r->diag));
  } else {
    const char *letter = strchr(letters, pattern[layer]);
    if (!letter)
      return lp_json_error(r->root, r->diag, "'%.60s': only letters of '%s' are supported", pattern, letters);
    type = (int32_t)(letter - letters);
  }
  out->only_mixes = type % 4 < 2;
  out->only_feeds = !out->only_mixes;
  out->sparse = type == 3;
  if (type % 4 != 1) return LP_OK;
  out->scans = true;
  LP_TRY(lp_config_size(r, "conv_kernel", 4, &out->taps));
  return check_taps(r, out->taps);
}

/* Reads layer_types, or the list of the layers with attention. */
lp_status lp_config_read_taps(const lp_config *r, int64_t layer, lp_decoder_layer *out) {
  static const char *const types[] = {"full_attention", "conv"}, *const scans[] = {"full_attention", "linear_attention",
                                                                                   "attention", "mamba"};
  const bool scan = r->family->scans;
  lp_json list = lp_json_member(r->root, "layer_types");
  if (r->family->delta) return read_delta_layer(r, layer, out);
  if (r->family->alone) return read_kind(r, layer, out);
  if (scan && !lp_json_is_given(&list)) list = lp_json_member(r->root, "layers_block_type");
  lp_json at = lp_json_item(&list, (size_t)layer);
  lp_json attention = lp_json_member(r->root, scan ? "attn_layer_indices" : "full_attn_idxs");
  bool attends;
  if (!r->family->convolves && !scan) return LP_OK;
  out->both = r->family->both;
  LP_TRY(lp_config_lists(r, &attention, layer, &attends));
  int32_t type = (scan || lp_json_is_given(&attention)) && (!attends || out->both);
  if (lp_json_is_given(&list) && !out->both)
    LP_TRY(lp_json_choice(&at, scan ? scans : types, scan ? 4 : 2, &type, r->diag));
  if (type % 2 == 0) return LP_OK;
  out->scans = scan;
  LP_TRY(lp_config_size(r, scan ? "mamba_d_conv" : "conv_L_cache", scan ? 4 : 3, &out->taps));
  return check_taps(r, out->taps);
}

/* The keys of Mamba 2, and their defaults. */
typedef struct {
  const char *heads, *groups, *state, *width;
  int64_t usual[3], usual_width; /* 0: what the mixer's elements leave */
} mamba_keys;

/* Limits of time steps are refused, because transformers leaves them out where one token follows a state. It does so
 * with the least step of Nemotron-H as well, which is left out here everywhere if it is at most the usual 0.001; the
 * limits of Nemotron-H it does not read. */
static lp_status check_limits(const lp_config *r) {
  lp_json limit = lp_json_member(r->root, "time_step_limit"), least = lp_json_member(r->root, "time_step_min");
  lp_json low = lp_json_item(&limit, 0), high = lp_json_item(&limit, 1), most = lp_json_member(&high, "__float__");
  double step = 0;
  if (lp_json_is_given(&limit) && !(lp_config_is_off(&low) && lp_json_equals(&most, "Infinity")))
    return lp_json_error(&limit, r->diag, "limits of time steps other than 0 and infinity are not supported");
  if (r->family->alone) LP_TRY(lp_config_number(r->root, "time_step_min", 0, &step, r->diag));
  return step <= 0.001 ? LP_OK : lp_json_error(&least, r->diag, "a least time step above 0.001 is not supported");
}

/* The elements of the mixer: of all heads. */
static lp_status read_inner(const lp_config *r, int64_t *out) {
  lp_json own = lp_json_member(r->root, "mamba_d_ssm");
  int64_t expand;
  if (r->family->both && !lp_json_is(&own, LP_JSON_NULL)) return lp_config_size(r, "mamba_d_ssm", 1024, out);
  LP_TRY(lp_config_size(r, "mamba_expand", 2, &expand));
  *out = expand * r->out->hidden;
  return LP_OK;
}

static lp_status read_mamba(const lp_config *r) {
  static const mamba_keys usual = {"mamba_n_heads", "mamba_n_groups", "mamba_d_state",
                                   "mamba_d_head",  {128, 1, 256},    0},
                          nemotron = {"mamba_num_heads", "n_groups",    "ssm_state_size",
                                      "mamba_head_dim",  {128, 8, 128}, 64};
  const mamba_keys *keys = r->family->alone ? &nemotron : &usual;
  lp_scan *m = &r->out->scan;
  lp_json width = lp_json_member(r->root, keys->width);
  int64_t inner;
  LP_TRY(lp_config_size(r, keys->heads, keys->usual[0], &m->heads));
  LP_TRY(lp_config_size(r, keys->groups, keys->usual[1], &m->groups));
  LP_TRY(lp_config_size(r, keys->state, keys->usual[2], &m->state));
  LP_TRY(read_inner(r, &inner));
  m->width = keys->usual_width ? keys->usual_width : inner / m->heads;
  if (lp_json_is_given(&width) && !lp_json_equals(&width, "auto"))
    LP_TRY(lp_json_i64(&width, 1, LP_CONFIG_MOST_SIZE, &m->width, r->diag));
  LP_TRY(check_limits(r));
  m->norm_first = r->family->both && lp_config_is_true(r, "mamba_norm_before_gate", true);
  if (m->heads % m->groups == 0 && m->width > 0 && m->heads <= LP_CONFIG_MOST_SIZE / 4 / m->width &&
      (r->family->alone || m->heads * m->width == inner) && m->groups <= LP_CONFIG_MOST_SIZE / 4 / m->state)
    return LP_OK;
  return lp_json_error(r->root, r->diag,
                       "%" PRId64 " heads of %" PRId64 " elements in %" PRId64
                       " groups do not go together with %" PRId64 " elements of the mixer",
                       m->heads, m->width, m->groups, inner);
}

/* The numbers of a list, which are 1 without it. */
static lp_status read_list(const lp_config *r, const char *key, size_t count, double *const *out) {
  lp_json list = lp_json_member(r->root, key);
  for (size_t i = 0; i < count; i++) {
    lp_json at = lp_json_item(&list, i);
    *out[i] = 1;
    if (lp_json_is_given(&list)) LP_TRY(lp_json_number(&at, -1e30, 1e30, out[i], r->diag));
  }
  return !lp_json_is_given(&list) || lp_json_count(&list) == count
             ? LP_OK
             : lp_json_error(&list, r->diag, "%zu numbers are wanted", count);
}

lp_status lp_config_read_factors(const lp_config *r) {
  lp_decoder *d = r->out;
  lp_factors *f = LP_NEW(r->arena, lp_factors);
  double of_keys, *parts[] = {&f->scan[0], &f->scan[1], &f->scan[2], &f->scan[3], &f->scan[4]};
  double *mlp[] = {&f->gate, &f->down};
  const struct {
    const char *key;
    double *out;
  } numbers[] = {{"embedding_multiplier", &d->embedding_scale},
                 {"lm_head_multiplier", &d->logit_scale},
                 {"key_multiplier", &of_keys},
                 {"attention_in_multiplier", &f->attention_in},
                 {"attention_out_multiplier", &f->attention_out},
                 {"ssm_in_multiplier", &f->scan_in},
                 {"ssm_out_multiplier", &f->scan_out}};
  for (size_t i = 0; i < LP_COUNT(numbers); i++)
    LP_TRY(lp_config_positive(r->root, numbers[i].key, 1, numbers[i].out, r->diag));
  LP_TRY(read_list(r, "mlp_multipliers", LP_COUNT(mlp), mlp));
  LP_TRY(read_list(r, "ssm_multipliers", LP_COUNT(parts), parts));
  d->attention_scale *= of_keys;
  d->factors = f;
  return LP_OK;
}

static lp_status read_delta(const lp_config *r) {
  lp_scan *m = &r->out->scan;
  m->delta = r->out->gates_queries = true;
  LP_TRY(lp_config_size(r, "linear_num_value_heads", 32, &m->heads));
  LP_TRY(lp_config_size(r, "linear_num_key_heads", 16, &m->groups));
  LP_TRY(lp_config_size(r, "linear_key_head_dim", 128, &m->state));
  LP_TRY(lp_config_size(r, "linear_value_head_dim", 128, &m->width));
  if (m->heads % m->groups == 0 && m->heads <= LP_CONFIG_MOST_SIZE / 4 / m->width &&
      m->groups <= LP_CONFIG_MOST_SIZE / 4 / m->state)
    return LP_OK;
  return lp_json_error(r->root, r->diag, "%" PRId64 " heads of values and %" PRId64 " of keys do not go together",
                       m->heads, m->groups);
}

lp_status lp_config_read_scan(const lp_config *r) {
  if (r->family->delta) return read_delta(r);
  return r->family->scans ? read_mamba(r) : LP_OK;
}
