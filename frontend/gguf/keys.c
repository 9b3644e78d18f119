/* The types of the keys that are read: a key with another type would count as absent, without a word. */
#include "frontend/gguf/file.h"

#include <string.h>

typedef enum { TEXT, WHOLE, NUMBER, FLAG, TEXTS, NUMBERS } wanted;

static const char *const names[] = {
    [TEXT] = "a text",        [WHOLE] = "a whole number",  [NUMBER] = "a number",
    [FLAG] = "true or false", [TEXTS] = "a list of texts", [NUMBERS] = "a list of numbers"};

/* A key that begins with a point belongs to the architecture: "llama.block_count". */
static const struct {
  const char *key;
  wanted type;
} keys[] = {{"general.architecture", TEXT},
            {"general.alignment", WHOLE},
            {"split.no", WHOLE},
            {"split.count", WHOLE},
            {"split.tensors.count", WHOLE},
            {".block_count", WHOLE},
            {".context_length", WHOLE},
            {".embedding_length", WHOLE},
            {".feed_forward_length", WHOLE},
            {".vocab_size", WHOLE},
            {".expert_count", WHOLE},
            {".expert_used_count", WHOLE},
            {".expert_feed_forward_length", WHOLE},
            {".expert_shared_feed_forward_length", WHOLE},
            {".expert_shared_count", WHOLE},
            {".expert_group_count", WHOLE},
            {".expert_group_used_count", WHOLE},
            {".expert_gating_func", WHOLE},
            {".expert_weights_scale", NUMBER},
            {".expert_weights_norm", FLAG},
            {".leading_dense_block_count", WHOLE},
            {".attention.q_lora_rank", WHOLE},
            {".attention.kv_lora_rank", WHOLE},
            {".attention.key_length_mla", WHOLE},
            {".attention.value_length_mla", WHOLE},
            {".attention.head_count", WHOLE},
            {".attention.head_count_kv", WHOLE},
            {".attention.key_length", WHOLE},
            {".attention.value_length", WHOLE},
            {".attention.sliding_window", WHOLE},
            {".attention.layer_norm_rms_epsilon", NUMBER},
            {".attention.layer_norm_epsilon", NUMBER},
            {".attention.clamp_kqv", NUMBER},
            {".attention.scale", NUMBER},
            {".attn_logit_softcapping", NUMBER},
            {".final_logit_softcapping", NUMBER},
            {".embedding_scale", NUMBER},
            {".residual_scale", NUMBER},
            {".logit_scale", NUMBER},
            {".rope.freq_base", NUMBER},
            {".rope.dimension_count", WHOLE},
            {".rope.scaling.type", TEXT},
            {".rope.scaling.factor", NUMBER},
            {".rope.scaling.original_context_length", NUMBER},
            {".rope.scaling.finetuned", FLAG},
            {".rope.scaling.attn_factor", NUMBER},
            {".rope.scaling.yarn_beta_fast", NUMBER},
            {".rope.scaling.yarn_beta_slow", NUMBER},
            {".rope.scaling.yarn_log_multiplier", NUMBER},
            {".use_parallel_residual", FLAG},
            {".tensor_data_layout", TEXT},
            {"tokenizer.ggml.model", TEXT},
            {"tokenizer.ggml.pre", TEXT},
            {"tokenizer.ggml.tokens", TEXTS},
            {"tokenizer.ggml.merges", TEXTS},
            {"tokenizer.ggml.scores", NUMBERS},
            {"tokenizer.ggml.token_type", NUMBERS},
            {"tokenizer.ggml.bos_token_id", WHOLE},
            {"tokenizer.ggml.eos_token_id", WHOLE},
            {"tokenizer.ggml.eot_token_id", WHOLE},
            {"tokenizer.ggml.eom_token_id", WHOLE},
            {"tokenizer.ggml.unknown_token_id", WHOLE},
            {"tokenizer.ggml.seperator_token_id", WHOLE},
            {"tokenizer.ggml.padding_token_id", WHOLE},
            {"tokenizer.ggml.cls_token_id", WHOLE},
            {"tokenizer.ggml.mask_token_id", WHOLE},
            {"tokenizer.ggml.add_bos_token", FLAG},
            {"tokenizer.ggml.add_eos_token", FLAG},
            {"tokenizer.ggml.add_space_prefix", FLAG},
            {"tokenizer.ggml.remove_extra_whitespaces", FLAG},
            {"tokenizer.chat_template", TEXT},
            {"tokenizer.chat_template.default", TEXT},
            {"tokenizer.chat_template.tool_use", TEXT}};

static bool is_of(const lp_gguf_value *v, wanted type) {
  bool text = v->type == LP_GGUF_STRING, real = v->type == LP_GGUF_F32 || v->type == LP_GGUF_F64;
  bool flag = v->type == LP_GGUF_BOOL;
  if (v->is_array != (type == TEXTS || type == NUMBERS)) return false;
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
