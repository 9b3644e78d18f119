/* Turns the metadata of a GGUF file into the description of a decoder. */
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

static const char *const llama_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP};
static const char *const qwen3_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, HEAD_NORMS};
static const char *const gemma2_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, END_NORMS};
static const char *const gemma3_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, END_NORMS, HEAD_NORMS};
static const char *const olmo2_names[LP_ROLE_COUNT] = {TOP, ATTENTION, MLP, END_NORMS, HEAD_NORMS};

/* Properties of an architecture that llama.cpp has in its code and not in the metadata. */
typedef struct {
  const char *name;
  const char *const *names;
  const char *activation;
  bool neighbours; /* rotated pairs are neighbours */
  bool scales_embedding, norm_whole_heads;
  int64_t pattern;   /* every pattern-th layer has no window, all others have it; 0: no layer has it */
  double local_base; /* base of rotary positions of layers with a window; 0: the same base as the others */
  /* A model with this number of layers scales scores by the hidden size over heads (the 27B models). */
  int64_t wide;
  bool capped; /* logits and scores have soft caps */
} architecture;

static const architecture architectures[] = {
    {.name = "llama", .names = llama_names, .activation = "silu", .neighbours = true},
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
    {.name = "olmo2", .names = olmo2_names, .activation = "silu", .norm_whole_heads = true}};

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

/* Checks that each key of the architecture is one that is read, or one that does not affect the computation. */
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
                                      "attention.sliding_window",
                                      "attn_logit_softcapping",
                                      "final_logit_softcapping",
                                      "rope.freq_base",
                                      "rope.dimension_count",
                                      "rope.scaling.type",
                                      "rope.scaling.factor",
                                      "rope.scaling.original_context_length",
                                      "rope.scaling.finetuned",
                                      "vocab_size",
                                      "tensor_data_layout"};
  size_t length = strlen(r->arch->name);
  for (size_t i = 0; i < lp_map_count(r->file->values); i++) {
    const char *key = lp_map_key_at(r->file->values, i);
    bool is_known = !lp_has_prefix(key, r->arch->name) || key[length] != '.';
    for (size_t k = 0; k < LP_COUNT(known) && !is_known; k++)
      is_known = lp_streq(key + length + 1, known[k]);
    if (!is_known)
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "the key '%s' is unknown and may change the model's results",
                      key);
  }
  return LP_OK;
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
  if (d->layers > MOST_LAYERS || d->heads % d->kv_heads != 0 || value_length != d->head_dim)
    return lp_error(r->diag, loc,
                    "a model of %" PRId64 " layers with %" PRId64 " heads and %" PRId64 " key heads is not supported",
                    d->layers, d->heads, d->kv_heads);
  if (!table || table->rank != 2) return lp_error(r->diag, loc, "the matrix 'token_embd.weight' is missing");
  d->vocab = table->dim[0];
  d->tied = !lp_weights_find(r->weights, "output.weight");
  return LP_OK;
}

/* Each frequency is divided by an element of rope_freqs.weight, which is the scaling of Llama 3.1. */
static lp_status apply_factors(const reader *r, lp_rotary *rotary) {
  lp_stored *t = lp_weights_find(r->weights, "rope_freqs.weight");
  if (!t) return LP_OK;
  t->used = true;
  if (t->rank != 1 || t->dim[0] != rotary->dim / 2 || t->dtype != LP_F32)
    return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                    "tensor '%s' is not a vector of %" PRId64 " elements of type f32", t->name, rotary->dim / 2);
  float *inverse = lp_arena_copy(r->arena, rotary->inverse, (size_t)(rotary->dim / 2) * sizeof *inverse), factor;
  for (int64_t i = 0; i < rotary->dim / 2; i++) {
    memcpy(&factor, r->file->data + t->offset + i * (int64_t)sizeof factor, sizeof factor);
    inverse[i] /= factor;
  }
  rotary->inverse = inverse;
  return LP_OK;
}

static lp_status read_rotary(const reader *r) {
  lp_rotary *rotary = LP_NEW_ARRAY(r->arena, lp_rotary, 2);
  lp_rope rope = {.theta = number_at(r, "rope.freq_base", 10000)}, local = {.theta = r->arch->local_base};
  const char *scaling = lp_gguf_string(r->file, key_of(r, "rope.scaling.type"));
  lp_loc loc = LP_LOC_FILE(r->file->path);
  int64_t size;
  LP_TRY(size_at(r, "rope.dimension_count", r->out->head_dim, &size));
  if (scaling && lp_streq(scaling, "linear")) {
    rope.kind = LP_ROPE_LINEAR;
    rope.factor = number_at(r, "rope.scaling.factor", 0);
  } else if (scaling && !lp_streq(scaling, "none")) {
    return lp_error(r->diag, loc, "the scaling '%.40s' of positions is not supported", scaling);
  }
  if (rope.theta <= 0 || size % 2 != 0 || size > r->out->head_dim || (rope.kind == LP_ROPE_LINEAR && rope.factor <= 0))
    return lp_error(r->diag, loc,
                    "rotary positions over %" PRId64 " elements of a head with the base %g are not supported", size,
                    rope.theta);
  rotary[0] = lp_rotary_create(r->arena, size, &rope);
  rotary[1] = lp_rotary_create(r->arena, size, r->arch->local_base > 0 ? &local : &rope);
  r->out->rotary = rotary;
  return apply_factors(r, &rotary[0]);
}

static lp_status read_layers(const reader *r) {
  lp_decoder_layer *layer = LP_NEW_ARRAY(r->arena, lp_decoder_layer, r->out->layers);
  int64_t window = lp_gguf_i64(r->file, key_of(r, "attention.sliding_window"), 0), pattern = r->arch->pattern;
  if (window < 0 || window > MOST_SIZE || (window > 0) != (pattern > 0))
    return lp_error(r->diag, LP_LOC_FILE(r->file->path), "a sliding window of %" PRId64 " is not supported for '%s'",
                    window, r->arch->name);
  for (int64_t i = 0; i < r->out->layers; i++) {
    bool windowed = pattern > 0 && (i + 1) % pattern != 0;
    layer[i] = (lp_decoder_layer){.window = windowed ? window : 0, .rotary = windowed && r->arch->local_base > 0};
  }
  r->out->layer = layer;
  return LP_OK;
}

lp_status lp_gguf_config(const lp_gguf *file, lp_arena *arena, lp_weights *weights, lp_decoder *out, lp_diag *diag) {
  reader r = {.file = file, .arena = arena, .weights = weights, .out = out, .diag = diag};
  const char *name = lp_gguf_string(file, "general.architecture");
  for (size_t i = 0; i < LP_COUNT(architectures) && name; i++)
    if (lp_streq(architectures[i].name, name)) r.arch = &architectures[i];
  if (!r.arch)
    return lp_error(diag, LP_LOC_FILE(file->path),
                    "models of architecture '%.40s' are not supported: llama, qwen2, "
                    "qwen3, gemma, gemma2, gemma3, olmo2",
                    name ? name : "");
  *out = (lp_decoder){.names = r.arch->names,
                      .activation = r.arch->activation,
                      .embedding_scale = 1,
                      .residual_scale = 1,
                      .logit_scale = 1,
                      .norm_whole_heads = r.arch->norm_whole_heads,
                      .rotary_interleaved = r.arch->neighbours};
  LP_TRY(check_keys(&r));
  LP_TRY(read_sizes(&r));
  out->epsilon = number_at(&r, "attention.layer_norm_rms_epsilon", 0);
  if (out->epsilon <= 0)
    return lp_error(diag, LP_LOC_FILE(file->path), "the epsilon of the norms is absent or not positive");
  int64_t size = r.arch->wide == out->layers ? out->hidden / out->heads : out->head_dim;
  out->attention_scale = 1 / sqrt((double)size);
  out->attention_softcap = number_at(&r, "attn_logit_softcapping", 0);
  out->logit_softcap = number_at(&r, "final_logit_softcapping", 0);
  if (out->attention_softcap < 0 || out->logit_softcap < 0 ||
      (r.arch->capped && (out->attention_softcap == 0 || out->logit_softcap == 0)))
    return lp_error(diag, LP_LOC_FILE(file->path), "the soft caps of scores and logits are absent or negative");
  if (r.arch->scales_embedding) out->embedding_scale = sqrt((double)out->hidden);
  LP_TRY(read_rotary(&r));
  return read_layers(&r);
}
