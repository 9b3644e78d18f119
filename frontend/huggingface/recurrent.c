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

/* Reads layer_types, or the list of the layers with attention. */
lp_status lp_config_read_taps(const lp_config *r, int64_t layer, lp_decoder_layer *out) {
  static const char *const types[] = {"full_attention", "conv"}, *const scans[] = {"full_attention", "linear_attention",
                                                                                   "attention", "mamba"};
  const bool scan = r->family->scans;
  lp_json list = lp_json_member(r->root, "layer_types");
  if (r->family->delta) return read_delta_layer(r, layer, out);
  if (scan && !lp_json_is_given(&list)) list = lp_json_member(r->root, "layers_block_type");
  lp_json at = lp_json_item(&list, (size_t)layer);
  lp_json attention = lp_json_member(r->root, scan ? "attn_layer_indices" : "full_attn_idxs");
  bool attends;
  if (!r->family->convolves && !scan) return LP_OK;
  LP_TRY(lp_config_lists(r, &attention, layer, &attends));
  int32_t type = (scan || lp_json_is_given(&attention)) && !attends;
  if (lp_json_is_given(&list)) LP_TRY(lp_json_choice(&at, scan ? scans : types, scan ? 4 : 2, &type, r->diag));
  if (type % 2 == 0) return LP_OK;
  out->scans = scan;
  LP_TRY(lp_config_size(r, scan ? "mamba_d_conv" : "conv_L_cache", scan ? 4 : 3, &out->taps));
  return check_taps(r, out->taps);
}

/* The sizes of Mamba 2. Limits of time steps are refused: transformers leaves them out in steps of one token. */
static lp_status read_mamba(const lp_config *r) {
  lp_scan *m = &r->out->scan;
  lp_json width = lp_json_member(r->root, "mamba_d_head"), limit = lp_json_member(r->root, "time_step_limit");
  lp_json low = lp_json_item(&limit, 0), high = lp_json_item(&limit, 1), most = lp_json_member(&high, "__float__");
  int64_t expand;
  LP_TRY(lp_config_size(r, "mamba_n_heads", 128, &m->heads));
  LP_TRY(lp_config_size(r, "mamba_n_groups", 1, &m->groups));
  LP_TRY(lp_config_size(r, "mamba_d_state", 256, &m->state));
  LP_TRY(lp_config_size(r, "mamba_expand", 2, &expand));
  m->width = expand * r->out->hidden / m->heads;
  if (lp_json_is_given(&width) && !lp_json_equals(&width, "auto"))
    LP_TRY(lp_json_i64(&width, 1, LP_CONFIG_MOST_SIZE, &m->width, r->diag));
  if (lp_json_is_given(&limit) && !(lp_config_is_off(&low) && lp_json_equals(&most, "Infinity")))
    return lp_json_error(&limit, r->diag, "limits of time steps other than 0 and infinity are not supported");
  if (m->heads % m->groups == 0 && m->width > 0 && m->heads <= LP_CONFIG_MOST_SIZE / m->width &&
      m->heads * m->width == expand * r->out->hidden && m->groups <= LP_CONFIG_MOST_SIZE / m->state)
    return LP_OK;
  return lp_json_error(r->root, r->diag,
                       "%" PRId64 " heads of %" PRId64 " elements in %" PRId64
                       " groups do not go together with %" PRId64 " elements of the mixer",
                       m->heads, m->width, m->groups, expand * r->out->hidden);
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
