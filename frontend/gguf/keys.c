/* The keys that are read, and their types: a key with another type would count as absent, without a word. */
#include "frontend/gguf/config.h"

#include <math.h>

typedef enum { TEXT, WHOLE, WHOLES, NUMBER, FLAG, TEXTS, NUMBERS } wanted;

static const char *const names[] = {
    [TEXT] = "a text",        [WHOLE] = "a whole number",  [WHOLES] = "whole numbers",     [NUMBER] = "a number",
    [FLAG] = "true or false", [TEXTS] = "a list of texts", [NUMBERS] = "a list of numbers"};

/* A key that begins with a point belongs to the architecture: "llama.block_count". */
static const struct {
  const char *key;
  wanted type;
  unsigned of; /* the architectures that have it, LP_GGUF_LATENT..; 0: all */
} keys[] = {{"general.architecture", TEXT, 0},
            {"general.alignment", WHOLE, 0},
            {"split.no", WHOLE, 0},
            {"split.count", WHOLE, 0},
            {"split.tensors.count", WHOLE, 0},
            {".block_count", WHOLE, 0},
            {".context_length", WHOLE, 0},
            {".embedding_length", WHOLE, 0},
            {".feed_forward_length", WHOLES, 0},
            {".vocab_size", WHOLE, 0},
            {".expert_count", WHOLE, 0},
            {".expert_used_count", WHOLE, 0},
            {".expert_feed_forward_length", WHOLE, 0},
            {".expert_shared_feed_forward_length", WHOLE, 0},
            {".expert_shared_count", WHOLE, LP_GGUF_GATED},
            {".expert_group_count", WHOLE, LP_GGUF_GATED},
            {".expert_group_used_count", WHOLE, LP_GGUF_GATED},
            {".expert_gating_func", WHOLE, LP_GGUF_GATED},
            {".expert_weights_scale", NUMBER, LP_GGUF_GATED},
            {".expert_weights_norm", FLAG, LP_GGUF_GATED},
            {".leading_dense_block_count", WHOLE, LP_GGUF_GATED},
            {".attention.q_lora_rank", WHOLE, LP_GGUF_LATENT},
            {".attention.kv_lora_rank", WHOLE, LP_GGUF_LATENT},
            {".attention.key_length_mla", WHOLE, LP_GGUF_LATENT},
            {".attention.value_length_mla", WHOLE, LP_GGUF_LATENT},
            {".attention.head_count", WHOLE, 0},
            {".attention.head_count_kv", WHOLES, 0},
            {".attention.key_length", WHOLE, 0},
            {".attention.value_length", WHOLE, 0},
            {".attention.sliding_window", WHOLE, 0},
            {".attention.layer_norm_rms_epsilon", NUMBER, 0},
            {".attention.layer_norm_epsilon", NUMBER, 0},
            {".attention.clamp_kqv", NUMBER, 0},
            {".attention.scale", NUMBER, LP_GGUF_FACTORS},
            {".attn_logit_softcapping", NUMBER, 0},
            {".final_logit_softcapping", NUMBER, 0},
            {".embedding_scale", NUMBER, LP_GGUF_FACTORS},
            {".residual_scale", NUMBER, LP_GGUF_FACTORS},
            {".logit_scale", NUMBER, LP_GGUF_FACTORS},
            {".rope.freq_base", NUMBER, 0},
            {".rope.dimension_count", WHOLE, 0},
            {".rope.scaling.type", TEXT, 0},
            {".rope.scaling.factor", NUMBER, 0},
            {".rope.scaling.original_context_length", NUMBER, 0},
            {".rope.scaling.finetuned", FLAG, 0},
            {".rope.scaling.attn_factor", NUMBER, 0},
            {".rope.scaling.yarn_beta_fast", NUMBER, 0},
            {".rope.scaling.yarn_beta_slow", NUMBER, 0},
            {".rope.scaling.yarn_log_multiplier", NUMBER, LP_GGUF_LATENT},
            {".rope.dimension_sections", NUMBERS, LP_GGUF_PREDICTS}, /* of images: those of text are equal */
            {".nextn_predict_layers", WHOLE, LP_GGUF_PREDICTS},
            {".full_attention_interval", WHOLE, LP_GGUF_INTERVAL},
            {".moe_latent_size", WHOLE, LP_GGUF_NARROWS},
            {".shortconv.l_cache", WHOLE, LP_GGUF_CONV},
            {".ssm.conv_kernel", WHOLE, LP_GGUF_STATE},
            {".ssm.inner_size", WHOLE, LP_GGUF_STATE},
            {".ssm.state_size", WHOLE, LP_GGUF_STATE},
            {".ssm.time_step_rank", WHOLE, LP_GGUF_STATE},
            {".ssm.group_count", WHOLE, LP_GGUF_STATE},
            {".use_parallel_residual", FLAG, 0},
            {".tensor_data_layout", TEXT, 0},
            {"tokenizer.ggml.model", TEXT, 0},
            {"tokenizer.ggml.pre", TEXT, 0},
            {"tokenizer.ggml.tokens", TEXTS, 0},
            {"tokenizer.ggml.merges", TEXTS, 0},
            {"tokenizer.ggml.scores", NUMBERS, 0},
            {"tokenizer.ggml.token_type", NUMBERS, 0},
            {"tokenizer.ggml.bos_token_id", WHOLE, 0},
            {"tokenizer.ggml.eos_token_id", WHOLE, 0},
            {"tokenizer.ggml.eot_token_id", WHOLE, 0},
            {"tokenizer.ggml.eom_token_id", WHOLE, 0},
            {"tokenizer.ggml.unknown_token_id", WHOLE, 0},
            {"tokenizer.ggml.seperator_token_id", WHOLE, 0},
            {"tokenizer.ggml.padding_token_id", WHOLE, 0},
            {"tokenizer.ggml.cls_token_id", WHOLE, 0},
            {"tokenizer.ggml.mask_token_id", WHOLE, 0},
            {"tokenizer.ggml.add_bos_token", FLAG, 0},
            {"tokenizer.ggml.add_eos_token", FLAG, 0},
            {"tokenizer.ggml.add_space_prefix", FLAG, 0},
            {"tokenizer.ggml.remove_extra_whitespaces", FLAG, 0},
            {"tokenizer.chat_template", TEXT, 0},
            {"tokenizer.chat_template.default", TEXT, 0},
            {"tokenizer.chat_template.tool_use", TEXT, 0}};

static bool is_of(const lp_gguf_value *v, wanted type) {
  bool text = v->type == LP_GGUF_STRING, real = v->type == LP_GGUF_F32 || v->type == LP_GGUF_F64;
  bool flag = v->type == LP_GGUF_BOOL;
  if (type == WHOLES)
    type = WHOLE;
  else if (v->is_array != (type == TEXTS || type == NUMBERS))
    return false;
  if (type == TEXT) return text && !memchr(v->text->data, 0, v->text->size);
  if (type == TEXTS || text) return type == TEXTS && text;
  if (type == WHOLE) return !real && !flag;
  if (type == FLAG) return flag || (!real && (lp_gguf_number(v, 0) == 0 || lp_gguf_number(v, 0) == 1));
  return !flag;
}

static const char *whole_key(const lp_gguf *file, const char *key) {
  const char *arch = lp_gguf_string(file, "general.architecture");
  return key[0] == '.' ? lp_arena_format(file->arena, "%s%s", arch ? arch : "", key) : key;
}

bool lp_gguf_is_read(const lp_gguf *file, const char *key) {
  for (size_t i = 0; i < LP_COUNT(keys); i++)
    if (lp_streq(key, whole_key(file, keys[i].key))) return true;
  return false;
}

lp_status lp_gguf_check_types(const lp_gguf *file, lp_diag *diag) {
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    const char *key = whole_key(file, keys[i].key);
    const lp_gguf_value *value = lp_gguf_find(file, key);
    if (value && !is_of(value, keys[i].type))
      return lp_error(diag, LP_LOC_FILE(file->path), "'%s' has another type than %s", key, names[keys[i].type]);
  }
  return LP_OK;
}

/* ---- of the architecture ----------------------------------------------------------------------------------------- */

const char *lp_gguf_key(const lp_gguf_reader *r, const char *name) {
  return lp_arena_format(r->arena, "%s.%s", r->arch->name, name);
}

lp_status lp_gguf_size(const lp_gguf_reader *r, const char *name, int64_t otherwise, int64_t *out) {
  const char *key = lp_gguf_key(r, name);
  *out = lp_gguf_i64(r->file, key, otherwise);
  if (*out >= 1 && *out <= LP_GGUF_MOST_SIZE) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "'%s' is %s", key,
                  *out < 0 ? "absent or not a valid size" : "not a valid size");
}

double lp_gguf_number_at(const lp_gguf_reader *r, const char *name, double otherwise) {
  return lp_gguf_f64(r->file, lp_gguf_key(r, name), otherwise);
}

lp_status lp_gguf_check_keys(const lp_gguf_reader *r) {
  const size_t length = strlen(r->arch->name);
  for (size_t i = 0; i < lp_map_count(r->file->values); i++) {
    const char *key = lp_map_key_at(r->file->values, i);
    if (!lp_has_prefix(key, r->arch->name) || key[length] != '.') continue;
    bool is_known = false;
    for (size_t k = 0; k < LP_COUNT(keys) && !is_known; k++)
      is_known = lp_streq(key + length, keys[k].key) && (keys[k].of == 0 || keys[k].of & r->arch->keys);
    if (!is_known)
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "the key '%s' is unknown and may change the model's results",
                      key);
    if (!isfinite(lp_gguf_f64(r->file, key, 0)))
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "'%s' is not a finite number", key);
  }
  return LP_OK;
}
