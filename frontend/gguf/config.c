/* Turns the metadata of a GGUF file into the description of a decoder. */
#include "base/file.h"
#include "frontend/gguf/gguf.h"

#include <math.h>
#include <string.h>

enum { MOST_LAYERS = 1 << 12, MOST_SIZE = 1 << 28 };

#define BLOCK(name) "blk.%d." name
#define TOP [LP_ROLE_EMBEDDING] = "token_embd", [LP_ROLE_FINAL_NORM] = "output_norm", [LP_ROLE_HEAD] = "output"
#define ATTENTION                                                                                                      \
  [LP_ROLE_Q] = BLOCK("attn_q"), [LP_ROLE_K] = BLOCK("attn_k"), [LP_ROLE_V] = BLOCK("attn_v"),                         \
  [LP_ROLE_O] = BLOCK("attn_output")
#define MLP [LP_ROLE_GATE] = BLOCK("ffn_gate"), [LP_ROLE_UP] = BLOCK("ffn_up"), [LP_ROLE_DOWN] = BLOCK("ffn_down")
#define NORMS [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"), [LP_ROLE_MLP_NORM] = BLOCK("ffn_norm")
#define HEAD_NORMS [LP_ROLE_Q_NORM] = BLOCK("attn_q_norm"), [LP_ROLE_K_NORM] = BLOCK("attn_k_norm")
#define END_NORMS                                                                                                      \
  [LP_ROLE_ATTENTION_END_NORM] = BLOCK("post_attention_norm"), [LP_ROLE_MLP_END_NORM] = BLOCK("post_ffw_norm")

#define PLAIN_MLP [LP_ROLE_UP] = BLOCK("ffn_up"), [LP_ROLE_DOWN] = BLOCK("ffn_down")
#define PACKED_ATTENTION [LP_ROLE_QKV] = BLOCK("attn_qkv"), [LP_ROLE_O] = BLOCK("attn_output")

#define EXPERTS                                                                                                        \
  [LP_ROLE_ROUTER] = BLOCK("ffn_gate_inp"), [LP_ROLE_EXPERT_GATE] = BLOCK("ffn_gate_exps.weight"),                     \
  [LP_ROLE_EXPERT_UP] = BLOCK("ffn_up_exps.weight"), [LP_ROLE_EXPERT_DOWN] = BLOCK("ffn_down_exps.weight")
#define SHARED_EXPERT                                                                                                  \
  [LP_ROLE_SHARED_GATE] = BLOCK("ffn_gate_shexp"), [LP_ROLE_SHARED_UP] = BLOCK("ffn_up_shexp"),                        \
  [LP_ROLE_SHARED_DOWN] = BLOCK("ffn_down_shexp")
#define LATENTS                                                                                                        \
  [LP_ROLE_Q] = BLOCK("attn_q"), [LP_ROLE_Q_A] = BLOCK("attn_q_a"), [LP_ROLE_Q_A_NORM] = BLOCK("attn_q_a_norm"),       \
  [LP_ROLE_Q_B] = BLOCK("attn_q_b"), [LP_ROLE_KV_A] = BLOCK("attn_kv_a_mqa"),                                          \
  [LP_ROLE_KV_A_NORM] = BLOCK("attn_kv_a_norm"), [LP_ROLE_KV_B] = BLOCK("attn_kv_b"),                                  \
  [LP_ROLE_K_B] = BLOCK("attn_k_b.weight"), [LP_ROLE_V_B] = BLOCK("attn_v_b.weight"),                                  \
  [LP_ROLE_O] = BLOCK("attn_output"), [LP_ROLE_ROUTER_BIAS] = BLOCK("exp_probs_b.bias")
#define GPT_OSS                                                                                                        \
  [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"), [LP_ROLE_MLP_NORM] = BLOCK("post_attention_norm"),                    \
  [LP_ROLE_SINKS] = BLOCK("attn_sinks.weight")

static const char *const qwen2moe_names[LP_ROLE_COUNT] = {
    TOP, NORMS, ATTENTION, EXPERTS, SHARED_EXPERT, [LP_ROLE_SHARED_SCALE] = BLOCK("ffn_gate_inp_shexp")};
static const char *const deepseek2_names[LP_ROLE_COUNT] = {TOP, NORMS, LATENTS, MLP, EXPERTS, SHARED_EXPERT};
static const char *const qwen3moe_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, EXPERTS, HEAD_NORMS};
static const char *const gpt_oss_names[LP_ROLE_COUNT] = {TOP, ATTENTION, EXPERTS, GPT_OSS};
static const char *const llama_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP};
static const char *const mixtral_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, EXPERTS};
static const char *const starcoder2_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, PLAIN_MLP};
static const char *const phi2_names[LP_ROLE_COUNT] = {TOP, [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"),
                                                      PACKED_ATTENTION, PLAIN_MLP};
static const char *const phi2_apart_names[LP_ROLE_COUNT] = {TOP, [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"),
                                                            ATTENTION, PLAIN_MLP};
static const char *const phi3_names[LP_ROLE_COUNT] = {
    TOP, NORMS, PACKED_ATTENTION, [LP_ROLE_GATE_UP] = BLOCK("ffn_up"), [LP_ROLE_DOWN] = BLOCK("ffn_down")};
static const char *const gpt2_names[LP_ROLE_COUNT] = {TOP, NORMS, PACKED_ATTENTION,
                                                      PLAIN_MLP, [LP_ROLE_POSITIONS] = "position_embd"};
static const char *const qwen3_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, HEAD_NORMS};
static const char *const gemma2_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, END_NORMS};
static const char *const gemma3_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, END_NORMS, HEAD_NORMS};
static const char *const olmo2_names[LP_ROLE_COUNT] = {TOP, ATTENTION, MLP, END_NORMS, HEAD_NORMS};

/* Properties of an architecture that llama.cpp has in its code and not in the metadata. */
typedef struct {
  const char *name;
  const char *const *names;
  const char *const *apart; /* instead, in files without attn_qkv; NULL: always `names` */
  const char *activation;
  lp_norm_kind norm;
  bool neighbours; /* rotated pairs are neighbours */
  bool scales_embedding, norm_whole_heads;
  bool parallel;     /* attention and MLP read one norm's result */
  bool multiplies;   /* the file has factors of embeddings, scores, branches and logits */
  bool windows;      /* all layers have a window when the file states one */
  int64_t no_rope;   /* every such layer has no rotary positions; 0: all have them */
  int64_t pattern;   /* every pattern-th layer has no window, all others have it; 0: no layer has it */
  double local_base; /* base of rotary positions of layers with a window; 0: the same base as the others */
  /* A model with this number of layers scales scores by the hidden size over heads (the 27B models). */
  int64_t wide;
  bool capped;     /* logits and scores have soft caps */
  bool sparse;     /* each layer has experts; `llama` has them where the file says how many */
  bool clamped;    /* the experts of gpt-oss, which the softmax of the greatest scores weighs */
  bool normalised; /* the weights of the chosen experts are divided by their sum */
  bool latent;     /* DeepSeek's attention, and the keys of its experts */
} architecture;

static const architecture architectures[] = {
    {.name = "llama", .names = mixtral_names, .activation = "silu", .neighbours = true, .normalised = true},
    {.name = "qwen2moe", .names = qwen2moe_names, .activation = "silu", .sparse = true},
    {.name = "qwen3moe", .names = qwen3moe_names, .activation = "silu", .sparse = true, .normalised = true},
    {.name = "olmoe", .names = qwen3moe_names, .activation = "silu", .norm_whole_heads = true, .sparse = true},
    {.name = "gpt-oss", .names = gpt_oss_names, .activation = "silu", .pattern = 2, .sparse = true, .clamped = true},
    {.name = "deepseek2",
     .names = deepseek2_names,
     .activation = "silu",
     .neighbours = true,
     .sparse = true,
     .latent = true},
    {.name = "qwen2", .names = llama_names, .activation = "silu"},
    {.name = "qwen3", .names = qwen3_names, .activation = "silu"},
    {.name = "gemma", .names = llama_names, .activation = "gelu_tanh", .scales_embedding = true},
    {.name = "gemma2",
     .names = gemma2_names,
     .activation = "gelu_tanh",
     .scales_embedding = true,
     .pattern = 2,
     .wide = 46,
     .capped = true},
    {.name = "gemma3",
     .names = gemma3_names,
     .activation = "gelu_tanh",
     .scales_embedding = true,
     .pattern = 6,
     .local_base = 10000,
     .wide = 62},
    {.name = "olmo2", .names = olmo2_names, .activation = "silu", .norm_whole_heads = true},
    {.name = "olmo", .names = llama_names, .activation = "silu", .norm = LP_NORM_LAYER_PLAIN, .neighbours = true},
    {.name = "granite", .names = llama_names, .activation = "silu", .neighbours = true, .multiplies = true},
    {.name = "smollm3", .names = llama_names, .activation = "silu", .neighbours = true, .no_rope = 4},
    {.name = "stablelm", .names = llama_names, .activation = "silu", .norm = LP_NORM_LAYER},
    {.name = "starcoder2",
     .names = starcoder2_names,
     .activation = "gelu_tanh",
     .norm = LP_NORM_LAYER,
     .windows = true},
    {.name = "gpt2", .names = gpt2_names, .activation = "gelu_tanh", .norm = LP_NORM_LAYER},
    {.name = "phi2",
     .names = phi2_names,
     .apart = phi2_apart_names,
     .activation = "gelu_tanh",
     .norm = LP_NORM_LAYER,
     .parallel = true},
    {.name = "phi3", .names = phi3_names, .activation = "silu", .windows = true}};

typedef struct {
  const lp_gguf *file;
  const architecture *arch;
  lp_arena *arena;
  lp_weights *weights;
  lp_decoder *out;
  lp_diag *diag;
} reader;

static const char *key_of(const reader *r, const char *name) {
  return lp_arena_format(r->arena, "%s.%s", r->arch->name, name);
}

static lp_status size_at(const reader *r, const char *name, int64_t otherwise, int64_t *out) {
  const char *key = key_of(r, name);
  *out = lp_gguf_i64(r->file, key, otherwise);
  if (*out >= 1 && *out <= MOST_SIZE) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "'%s' is %s", key,
                  *out < 0 ? "absent or not a valid size" : "not a valid size");
}

static double number_at(const reader *r, const char *name, double otherwise) {
  return lp_gguf_f64(r->file, key_of(r, name), otherwise);
}

/* Checks that each key of the architecture is one that is read, or one that does not affect the computation, and that
 * numbers are finite. */
static lp_status check_keys(const reader *r) {
  static const char *const known[] = {"block_count",
                                      "context_length",
                                      "embedding_length",
                                      "feed_forward_length",
                                      "attention.head_count",
                                      "attention.head_count_kv",
                                      "attention.key_length",
                                      "attention.value_length",
                                      "attention.layer_norm_rms_epsilon",
                                      "attention.layer_norm_epsilon",
                                      "attention.clamp_kqv",
                                      "attention.sliding_window",
                                      "attn_logit_softcapping",
                                      "final_logit_softcapping",
                                      "expert_count",
                                      "expert_used_count",
                                      "expert_feed_forward_length",
                                      "expert_shared_feed_forward_length",
                                      "rope.freq_base",
                                      "rope.dimension_count",
                                      "rope.scaling.type",
                                      "rope.scaling.factor",
                                      "rope.scaling.original_context_length",
                                      "rope.scaling.finetuned",
                                      "rope.scaling.attn_factor",
                                      "rope.scaling.yarn_beta_fast",
                                      "rope.scaling.yarn_beta_slow",
                                      "use_parallel_residual",
                                      "vocab_size",
                                      "tensor_data_layout"};
  static const char *const latents[] = {
      "attention.q_lora_rank",      "attention.kv_lora_rank",    "attention.key_length_mla",
      "attention.value_length_mla", "leading_dense_block_count", "expert_shared_count",
      "expert_group_count",         "expert_group_used_count",   "expert_weights_scale",
      "expert_weights_norm",        "expert_gating_func",        "rope.scaling.yarn_log_multiplier"};
  static const char *const factors[] = {"embedding_scale", "residual_scale", "logit_scale", "attention.scale"};
  size_t length = strlen(r->arch->name);
  for (size_t i = 0; i < lp_map_count(r->file->values); i++) {
    const char *key = lp_map_key_at(r->file->values, i);
    bool is_known = !lp_has_prefix(key, r->arch->name) || key[length] != '.';
    for (size_t k = 0; k < LP_COUNT(known) && !is_known; k++)
      is_known = lp_streq(key + length + 1, known[k]);
    for (size_t k = 0; k < LP_COUNT(factors) && r->arch->multiplies && !is_known; k++)
      is_known = lp_streq(key + length + 1, factors[k]);
    for (size_t k = 0; k < LP_COUNT(latents) && r->arch->latent && !is_known; k++)
      is_known = lp_streq(key + length + 1, latents[k]);
    if (!is_known)
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "the key '%s' is unknown and may change the model's results",
                      key);
    if (lp_has_prefix(key, r->arch->name) && !isfinite(lp_gguf_f64(r->file, key, 0)))
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "'%s' is not a finite number", key);
  }
  return LP_OK;
}

/* The lengths of keys and values are those of heads, unless the file has them under names of their own: it then has
 * those of the cache. */
static lp_status read_latent(const reader *r, int64_t key, int64_t value) {
  lp_decoder *d = r->out;
  lp_latent *l = &d->latent;
  LP_TRY(size_at(r, "attention.kv_lora_rank", -1, &l->rank));
  if (lp_gguf_i64(r->file, key_of(r, "attention.q_lora_rank"), 0) != 0)
    LP_TRY(size_at(r, "attention.q_lora_rank", -1, &l->query_rank));
  LP_TRY(size_at(r, "rope.dimension_count", -1, &l->rotated));
  LP_TRY(size_at(r, "attention.key_length_mla", key, &l->plain));
  LP_TRY(size_at(r, "attention.value_length_mla", value, &l->value));
  l->plain -= l->rotated;
  l->epsilon = number_at(r, "attention.layer_norm_rms_epsilon", 0);
  d->kv_heads = 1;
  d->head_dim = l->rank + l->rotated;
  if (l->plain >= 1 && d->heads <= MOST_SIZE / (l->plain + l->value)) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                  "%" PRId64 " heads of %" PRId64 " and %" PRId64 " elements are not supported", d->heads, l->plain,
                  l->value);
}

static lp_status read_sizes(const reader *r) {
  lp_decoder *d = r->out;
  int64_t value_length;
  const lp_stored *table = lp_weights_find(r->weights, "token_embd.weight");
  LP_TRY(size_at(r, "block_count", -1, &d->layers));
  LP_TRY(size_at(r, "embedding_length", -1, &d->hidden));
  LP_TRY(size_at(r, "feed_forward_length", -1, &d->ffn));
  LP_TRY(size_at(r, "attention.head_count", -1, &d->heads));
  LP_TRY(size_at(r, "attention.head_count_kv", d->heads, &d->kv_heads));
  LP_TRY(size_at(r, "attention.key_length", d->hidden / d->heads, &d->head_dim));
  LP_TRY(size_at(r, "attention.value_length", d->head_dim, &value_length));
  lp_loc loc = LP_LOC_FILE(r->file->path);
  if (r->arch->latent) LP_TRY(read_latent(r, d->head_dim, value_length));
  if (d->layers > MOST_LAYERS || d->heads % d->kv_heads != 0 || (value_length != d->head_dim && !r->arch->latent))
    return lp_error(r->diag, loc,
                    "a model of %" PRId64 " layers with %" PRId64 " heads and %" PRId64 " key heads is not supported",
                    d->layers, d->heads, d->kv_heads);
  if (!table || table->rank != 2) return lp_error(r->diag, loc, "the matrix 'token_embd.weight' is missing");
  d->vocab = table->dim[0];
  d->tied = !lp_weights_find(r->weights, "output.weight");
  if (!d->names[LP_ROLE_POSITIONS]) return LP_OK;
  table = lp_weights_find(r->weights, "position_embd.weight");
  if (!table || table->rank != 2) return lp_error(r->diag, loc, "the matrix 'position_embd.weight' is missing");
  d->positions = table->dim[0];
  return LP_OK;
}

/* Finds a vector with a positive number for each rotated pair; NULL in *out: the file has none. */
static lp_status find_factors(const reader *r, const char *name, int64_t size, const float **out) {
  lp_stored *t = lp_weights_find(r->weights, name);
  *out = NULL;
  if (!t) return LP_OK;
  t->used = true;
  if (t->form || t->dtype != LP_F32 || t->rank != 1 || t->dim[0] != size / 2)
    return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                    "tensor '%s' is not a vector of %" PRId64 " elements of type f32", t->name, size / 2);
  float *factors = LP_NEW_ARRAY(r->arena, float, size / 2 + 1);
  const lp_mapping *part = lp_map_get(r->weights->module->sources, t->file);
  memcpy(factors, part->data + t->offset, (size_t)(size / 2) * sizeof *factors);
  for (int64_t i = 0; i < size / 2; i++)
    if (!(factors[i] > 0))
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "tensor '%s': %g is not positive", t->name,
                      (double)factors[i]);
  *out = factors;
  return LP_OK;
}

/* Each frequency is divided by an element of rope_freqs.weight, which is the scaling of Llama 3.1. */
static lp_status apply_factors(const reader *r, lp_rotary *rotary) {
  const float *factors;
  LP_TRY(find_factors(r, "rope_freqs.weight", rotary->dim, &factors));
  if (!factors) return LP_OK;
  float *inverse = lp_arena_copy(r->arena, rotary->inverse, (size_t)(rotary->dim / 2) * sizeof *inverse);
  for (int64_t i = 0; i < rotary->dim / 2; i++)
    inverse[i] /= factors[i];
  rotary->inverse = inverse;
  return LP_OK;
}

/* Reads the scaling by the two lists of LongRoPE, which need no type: llama.cpp's converter writes none. */
static lp_status read_longrope(const reader *r, int64_t size, lp_rope *rope) {
  LP_TRY(find_factors(r, "rope_factors_short.weight", size, &rope->short_factor));
  LP_TRY(find_factors(r, "rope_factors_long.weight", size, &rope->long_factor));
  if (!rope->short_factor && !rope->long_factor) return LP_OK;
  rope->kind = LP_ROPE_LONG;
  rope->attention_factor = number_at(r, "rope.scaling.attn_factor", 1);
  rope->original_context = number_at(r, "rope.scaling.original_context_length", 0);
  bool valid = rope->short_factor && rope->long_factor && rope->attention_factor > 0 && rope->original_context >= 1 &&
               rope->original_context <= (double)MOST_SIZE;
  return valid ? LP_OK
               : lp_error(r->diag, LP_LOC_FILE(r->file->path),
                          "the lists of longrope's factors or the original context are missing");
}

/* DeepSeek scales scores where others scale cosines and sines, which the file states by a tenth of mscale_all_dim. */
static lp_status scale_scores(const reader *r, lp_rope *rope) {
  const double multiplier = number_at(r, "rope.scaling.yarn_log_multiplier", 0);
  if (multiplier == 0) return LP_OK;
  const double scale = lp_rotary_yarn_scale(rope->factor, 10 * multiplier);
  r->out->attention_scale *= scale * scale;
  rope->attention_factor = 1;
  return LP_OK;
}

static lp_status read_yarn(const reader *r, lp_rope *rope) {
  rope->kind = LP_ROPE_YARN;
  rope->truncate = true;
  rope->factor = number_at(r, "rope.scaling.factor", 0);
  rope->beta_fast = number_at(r, "rope.scaling.yarn_beta_fast", 32);
  rope->beta_slow = number_at(r, "rope.scaling.yarn_beta_slow", 1);
  rope->original_context = number_at(r, "rope.scaling.original_context_length", number_at(r, "context_length", 0));
  rope->attention_factor = number_at(r, "rope.scaling.attn_factor", 1) * lp_rotary_yarn_scale(rope->factor, 1);
  if (r->arch->latent) LP_TRY(scale_scores(r, rope));
  bool valid = rope->factor > 0 && rope->beta_fast > 0 && rope->beta_slow > 0 && rope->original_context > 0 &&
               rope->attention_factor > 0;
  return valid ? LP_OK : lp_error(r->diag, LP_LOC_FILE(r->file->path), "the numbers of yarn are missing or not valid");
}

static lp_status read_scaling(const reader *r, int64_t size, lp_rope *rope) {
  const char *scaling = lp_gguf_string(r->file, key_of(r, "rope.scaling.type"));
  lp_loc loc = LP_LOC_FILE(r->file->path);
  if (scaling && lp_streq(scaling, "yarn")) return read_yarn(r, rope);
  if (scaling && lp_streq(scaling, "linear")) {
    rope->kind = LP_ROPE_LINEAR;
    rope->factor = number_at(r, "rope.scaling.factor", 0);
    return rope->factor > 0 ? LP_OK : lp_error(r->diag, loc, "the factor of linear scaling is absent or not positive");
  }
  if (scaling && !lp_streq(scaling, "none") && !lp_streq(scaling, "longrope"))
    return lp_error(r->diag, loc, "the scaling '%.40s' of positions is not supported", scaling);
  LP_TRY(read_longrope(r, size, rope));
  if (rope->kind == LP_ROPE_DEFAULT && scaling && lp_streq(scaling, "longrope"))
    return lp_error(r->diag, loc, "the lists of longrope's factors or the original context are missing");
  return LP_OK;
}

static lp_status read_rotary(const reader *r) {
  lp_rotary *rotary = LP_NEW_ARRAY(r->arena, lp_rotary, 2);
  lp_rope rope = {.theta = number_at(r, "rope.freq_base", 10000)}, local = {.theta = r->arch->local_base};
  int64_t size;
  LP_TRY(size_at(r, "rope.dimension_count", r->out->head_dim, &size));
  if (rope.theta <= 0 || size % 2 != 0 || size > r->out->head_dim)
    return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                    "rotary positions over %" PRId64 " elements of a head with the base %g are not supported", size,
                    rope.theta);
  LP_TRY(read_scaling(r, size, &rope));
  rotary[0] = lp_rotary_create(r->arena, size, &rope);
  rotary[1] = lp_rotary_create(r->arena, size, r->arch->local_base > 0 ? &local : &rope);
  r->out->rotary = rotary;
  return apply_factors(r, &rotary[0]);
}

/* Reads what DeepSeek's files say of their experts; the keys of groups are absent in older ones. */
static lp_status read_groups(const reader *r) {
  lp_mixture *m = &r->out->mixture;
  const int64_t gating = lp_gguf_i64(r->file, key_of(r, "expert_gating_func"), 1);
  const int64_t shared = lp_gguf_i64(r->file, key_of(r, "expert_shared_count"), 0);
  const bool counted = shared >= 0 && shared <= MOST_SIZE / m->ffn;
  LP_TRY(size_at(r, "expert_group_count", 1, &m->groups));
  LP_TRY(size_at(r, "expert_group_used_count", 1, &m->taken));
  m->route = gating == 2 ? LP_ROUTE_SIGMOID : LP_ROUTE_SOFTMAX;
  m->summed = gating == 2 ? 2 : 1;
  m->scale = number_at(r, "expert_weights_scale", 1);
  m->normalised = lp_gguf_bool(r->file, key_of(r, "expert_weights_norm"), false);
  m->least = 1e-20;
  m->shared_ffn = counted ? shared * m->ffn : 0;
  if ((gating == 1 || gating == 2) && counted && m->scale > 0 && m->taken <= m->groups && m->experts % m->groups == 0 &&
      m->chosen <= m->experts / m->groups * m->taken)
    return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                  "experts with gating %" PRId64 ", %" PRId64 " of %" PRId64 " groups, %" PRId64
                  " shared ones and the scale %g are not supported",
                  gating, m->taken, m->groups, shared, m->scale);
}

/* Reads the experts, where the file has them. */
static lp_status read_mixture(const reader *r) {
  lp_mixture *m = &r->out->mixture;
  if (!r->arch->sparse && lp_gguf_i64(r->file, key_of(r, "expert_count"), 0) == 0) return LP_OK;
  LP_TRY(size_at(r, "expert_count", -1, &m->experts));
  LP_TRY(size_at(r, "expert_used_count", -1, &m->chosen));
  LP_TRY(size_at(r, "expert_feed_forward_length", r->out->ffn, &m->ffn));
  if (r->out->names[LP_ROLE_SHARED_UP] && !r->arch->latent)
    LP_TRY(size_at(r, "expert_shared_feed_forward_length", r->out->ffn, &m->shared_ffn));
  m->normalised = r->arch->normalised;
  if (r->arch->clamped) m->route = LP_ROUTE_CHOSEN, m->limit = 7, m->alpha = 1.702;
  m->scale = 1;
  if (r->arch->latent) LP_TRY(read_groups(r));
  if (m->chosen <= m->experts && r->out->names[LP_ROLE_ROUTER]) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "%" PRId64 " of %" PRId64 " experts are not supported for '%s'",
                  m->chosen, m->experts, r->arch->name);
}

static lp_status read_layers(const reader *r) {
  lp_decoder_layer *layer = LP_NEW_ARRAY(r->arena, lp_decoder_layer, r->out->layers);
  int64_t window = lp_gguf_i64(r->file, key_of(r, "attention.sliding_window"), 0), pattern = r->arch->pattern;
  const int64_t dense = lp_gguf_i64(r->file, key_of(r, "leading_dense_block_count"), 0);
  bool wanted = pattern > 0, allowed = wanted || r->arch->windows;
  if (window < 0 || window > MOST_SIZE || (window > 0 ? !allowed : wanted))
    return lp_error(r->diag, LP_LOC_FILE(r->file->path), "a sliding window of %" PRId64 " is not supported for '%s'",
                    window, r->arch->name);
  for (int64_t i = 0; i < r->out->layers; i++) {
    bool windowed = r->arch->windows || (pattern > 0 && (i + 1) % pattern != 0);
    bool rotates = !r->out->positions && (r->arch->no_rope == 0 || (i + 1) % r->arch->no_rope != 0);
    layer[i] = (lp_decoder_layer){.sparse = r->out->mixture.experts > 0 && i >= dense,
                                  .window = windowed ? window : 0,
                                  .rotary = !rotates ? -1 : windowed && r->arch->local_base > 0};
  }
  r->out->layer = layer;
  return LP_OK;
}

/* Reads the epsilon of the norms and the factors and caps of scores and logits. */
static lp_status read_numbers(const reader *r) {
  lp_decoder *d = r->out;
  lp_loc loc = LP_LOC_FILE(r->file->path);
  d->epsilon =
      number_at(r, d->norm == LP_NORM_RMS ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 0);
  if (d->epsilon <= 0) return lp_error(r->diag, loc, "the epsilon of the norms is absent or not positive");
  int64_t size = r->arch->wide == d->layers ? d->hidden / d->heads
                 : r->arch->latent          ? d->latent.plain + d->latent.rotated
                                            : d->head_dim;
  d->attention_scale = 1 / sqrt((double)size);
  d->attention_softcap = number_at(r, "attn_logit_softcapping", 0);
  d->logit_softcap = number_at(r, "final_logit_softcapping", 0);
  d->clip_qkv = number_at(r, "attention.clamp_kqv", 0);
  if (d->attention_softcap < 0 || d->logit_softcap < 0 || d->clip_qkv < 0 ||
      (r->arch->capped && (d->attention_softcap == 0 || d->logit_softcap == 0)))
    return lp_error(r->diag, loc, "the soft caps of scores and logits are absent or negative");
  if (r->arch->scales_embedding) d->embedding_scale = sqrt((double)d->hidden);
  if (!r->arch->multiplies) return LP_OK;
  if (!lp_gguf_bool(r->file, key_of(r, "rope.scaling.finetuned"), true)) /* llama.cpp: granite without rotation */
    return lp_error(r->diag, loc, "a model without rotary positions is not supported for '%s'", r->arch->name);
  d->embedding_scale = number_at(r, "embedding_scale", 1);
  d->residual_scale = number_at(r, "residual_scale", 1);
  d->attention_scale = number_at(r, "attention.scale", d->attention_scale);
  d->logit_scale = 1 / number_at(r, "logit_scale", 1);
  bool valid = d->embedding_scale > 0 && d->residual_scale > 0 && d->attention_scale > 0 && d->logit_scale > 0 &&
               isfinite(d->logit_scale);
  return valid ? LP_OK : lp_error(r->diag, loc, "a factor of embeddings, scores, branches or logits is not positive");
}

static const char *architecture_names(lp_arena *arena) {
  const char *names = "";
  for (size_t i = 0; i < LP_COUNT(architectures); i++)
    names = lp_arena_format(arena, "%s%s%s", names, i ? ", " : "", architectures[i].name);
  return names;
}

lp_status lp_gguf_config(const lp_gguf *file, lp_arena *arena, lp_weights *weights, lp_decoder *out, lp_diag *diag) {
  reader r = {.file = file, .arena = arena, .weights = weights, .out = out, .diag = diag};
  const char *name = lp_gguf_string(file, "general.architecture");
  for (size_t i = 0; i < LP_COUNT(architectures) && name; i++)
    if (lp_streq(architectures[i].name, name)) r.arch = &architectures[i];
  if (!r.arch)
    return lp_error(diag, LP_LOC_FILE(file->path), "models of architecture '%.40s' are not supported: %s",
                    name ? name : "", architecture_names(arena));
  bool packed = !r.arch->apart || lp_weights_find(weights, "blk.0.attn_qkv.weight");
  *out = (lp_decoder){.names = packed ? r.arch->names : r.arch->apart,
                      .activation = r.arch->activation,
                      .norm = r.arch->norm,
                      .embedding_scale = 1,
                      .residual_scale = 1,
                      .logit_scale = 1,
                      .parallel = r.arch->parallel,
                      .norm_whole_heads = r.arch->norm_whole_heads,
                      .rotary_interleaved = r.arch->neighbours};
  LP_TRY(check_keys(&r));
  LP_TRY(read_sizes(&r));
  LP_TRY(read_numbers(&r));
  if (lp_gguf_bool(file, key_of(&r, "use_parallel_residual"), false)) out->parallel = true;
  if (out->positions == 0) LP_TRY(read_rotary(&r));
  LP_TRY(read_mixture(&r));
  return read_layers(&r);
}
