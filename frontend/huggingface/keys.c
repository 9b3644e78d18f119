/* The keys of config.json that are known, and their values: see config.h. */
#include "frontend/huggingface/config.h"

/* Keys that are read, and keys that do not affect the computation. */
static const char *const known_keys[] = {"activation_function",
                                         "architectures",
                                         "attention_bias",
                                         "attention_dropout",
                                         "attn_logit_softcapping",
                                         "attn_pdrop",
                                         "auto_map",
                                         "bos_token_id",
                                         "cache_implementation",
                                         "clip_qkv",
                                         "dtype",
                                         "embd_pdrop",
                                         "eos_token_id",
                                         "final_logit_softcapping",
                                         "head_dim",
                                         "hidden_act",
                                         "hidden_activation",
                                         "hidden_size",
                                         "id2label",
                                         "initializer_range",
                                         "intermediate_size",
                                         "label2id",
                                         "layer_norm_eps",
                                         "layer_norm_epsilon",
                                         "layer_types",
                                         "max_position_embeddings",
                                         "max_window_layers",
                                         "mlp_bias",
                                         "model_type",
                                         "n_ctx",
                                         "n_embd",
                                         "n_head",
                                         "n_inner",
                                         "n_layer",
                                         "n_positions",
                                         "no_rope_layer_interval",
                                         "no_rope_layers",
                                         "num_attention_heads",
                                         "num_hidden_layers",
                                         "num_key_value_heads",
                                         "num_logits_to_keep",
                                         "original_max_position_embeddings",
                                         "pad_token_id",
                                         "partial_rotary_factor",
                                         "pretraining_tp",
                                         "query_pre_attn_scalar",
                                         "resid_pdrop",
                                         "rms_norm_eps",
                                         "rope_local_base_freq",
                                         "rope_parameters",
                                         "rope_scaling",
                                         "rope_theta",
                                         "scale_attn_weights",
                                         "sliding_window",
                                         "sliding_window_pattern",
                                         "summary_activation",
                                         "summary_first_dropout",
                                         "summary_proj_to_labels",
                                         "summary_type",
                                         "summary_use_proj",
                                         "task_specific_params",
                                         "tie_word_embeddings",
                                         "tokenizer_class",
                                         "torch_dtype",
                                         "transformers.js_config",
                                         "transformers_version",
                                         "unk_token_id",
                                         "use_cache",
                                         "use_sliding_window",
                                         "vocab_size",
                                         "is_llama_config",
                                         "unsloth_fixed",
                                         "unsloth_version",
                                         "max_length",
                                         "reorder_and_upcast_attn",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "return_dict",
                                         "hidden_dropout",
                                         "chunk_size_feed_forward",
                                         "quantization_config"}; /* lp_packing_read */

static bool is_known(const lp_config *r, const char *key) {
  const char *own = r->family->own_keys;
  for (size_t k = 0; k < LP_COUNT(known_keys); k++)
    if (lp_streq(key, known_keys[k])) return true;
  return own && !strchr(key, ' ') && strstr(own, lp_arena_format(r->arena, " %s ", key));
}

lp_status lp_config_check_keys(const lp_config *r) {
  lp_json quantised = lp_json_member(r->whole, "quantization_config");
  if (lp_json_is_given(&quantised)) LP_TRY(lp_packing_read(&quantised, r->packing, r->diag));
  for (size_t i = 0; i < lp_json_count(r->root); i++) {
    lp_json at = lp_json_entry(r->root, i);
    bool known = at.key[0] == '_' || lp_config_is_off(&at) || is_known(r, at.key);
    if (known) continue;
    lp_status status = lp_json_error(&at, r->diag, "this key is unknown and may change the model's results");
    lp_note(r->diag, LP_LOC_FILE(r->path), "if it does not change them, remove it from the file");
    return status;
  }
  return LP_OK;
}

/* Refuses values that the graph does not implement. */
lp_status lp_config_check_values(const lp_config *r) {
  lp_json scaled = lp_json_member(r->root, "scale_attn_weights");
  if (lp_json_is_given(&scaled) && !lp_json_is_true(&scaled))
    return lp_json_error(&scaled, r->diag, "attention without a scale is not supported");
  const bool sigmoid = r->family->mixture && r->family->mixture->route == LP_ROUTE_SIGMOID;
  const char *const same[][2] = {
      {"mlp_type", "default"}, {"norm_type", "layer_norm"}, {"scoring_func", sigmoid ? "sigmoid" : "softmax"}};
  for (size_t i = 0; i < LP_COUNT(same); i++) {
    lp_json at = lp_json_member(r->root, same[i][0]);
    if (lp_json_is_given(&at) && !lp_json_equals(&at, same[i][1]))
      return lp_json_error(&at, r->diag, "only '%s' is supported", same[i][1]);
  }
  lp_json every = lp_json_member(r->root, "moe_layer_freq"), divided = lp_json_member(r->root, "norm_topk_prob");
  if (lp_json_is_given(&every) && !(lp_json_is(&every, LP_JSON_INTEGER) && every.value->integer == 1))
    return lp_json_error(&every, r->diag, "only 1 is supported: every layer after the dense ones has experts");
  if (lp_streq(r->family->model_type, "deepseek_v2") && lp_json_is_true(&divided))
    return lp_json_error(&divided, r->diag, "transformers does not divide the weights of '%s' by their sum: remove it",
                         r->family->model_type);
  lp_json kinds = lp_json_member(r->whole, "architectures"), kind = lp_json_item(&kinds, 0);
  const char *name = lp_json_text_or(&kind, "ForCausalLM");
  bool is_part = r->whole != r->root && lp_has_suffix(name, "ForConditionalGeneration");
  if (!is_part && !lp_has_suffix(name, "ForCausalLM") && !lp_has_suffix(name, "LMHeadModel"))
    return lp_json_error(&kind, r->diag, "'%.60s' is not a model that generates text", name);
  return LP_OK;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

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

/* Tells whether the list of numbers has the layer. */
lp_status lp_config_lists(const lp_config *r, const lp_json *list, int64_t layer, bool *out) {
  int64_t listed;
  *out = false;
  LP_FOR_ITEMS(at, list) {
    LP_TRY(lp_json_i64(&at, 0, LP_CONFIG_MOST_SIZE, &listed, r->diag));
    *out |= listed == layer;
  }
  return LP_OK;
}
