/* Turns config.json into the description of a decoder. */
#include "base/file.h"
#include "base/json/reader.h"
#include "frontend/huggingface/families.h"
#include "frontend/huggingface/huggingface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 1 << 12, MOST_SIZE = 1 << 28 };

typedef struct {
  const lp_json *root;
  const char *path;
  lp_arena *arena;
  lp_diag *diag;
  const lp_family *family;
  lp_decoder *out;
  int64_t context;
} reader;

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Returns `otherwise` when the key is absent or null. A key without a default (-1) must be present. */
static lp_status size_at(const reader *r, const char *key, int64_t otherwise, int64_t *out) {
  lp_json at = lp_json_member(r->root, key);
  *out = otherwise;
  if (otherwise >= 0 && !lp_json_is_given(&at)) return LP_OK;
  return lp_json_i64(&at, 1, MOST_SIZE, out, r->diag);
}

static lp_status number_at(const lp_json *object, const char *key, double otherwise, double *out, lp_diag *diag) {
  lp_json at = lp_json_member(object, key);
  *out = otherwise;
  return lp_json_is_given(&at) ? lp_json_number(&at, -1e30, 1e30, out, diag) : LP_OK;
}

/* Reads a number that must be positive, because it is a divisor or its logarithm is taken. */
static lp_status positive_at(const lp_json *object, const char *key, double otherwise, double *out, lp_diag *diag) {
  lp_json at = lp_json_member(object, key);
  LP_TRY(number_at(object, key, otherwise, out, diag));
  if (*out > 0) return LP_OK;
  return lp_json_is_given(&at) ? lp_json_error(&at, diag, "%g is not positive", *out)
                               : lp_json_error(object, diag, "the key '%s' is missing", key);
}

static bool true_at(const reader *r, const char *key, bool otherwise) {
  lp_json at = lp_json_member(r->root, key);
  return lp_json_is_given(&at) ? lp_json_is_true(&at) : otherwise;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

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
                                         "chunk_size_feed_forward"};

/* Tells whether the value is the one that turns the key's feature off. */
static bool is_off(const lp_json *at) {
  if (!lp_json_is_given(at)) return true;
  if (lp_json_is(at, LP_JSON_BOOL)) return !lp_json_is_true(at);
  if (lp_json_is(at, LP_JSON_INTEGER)) return at->value->integer == 0;
  if (lp_json_is(at, LP_JSON_REAL)) return at->value->real == 0;
  return (lp_json_is(at, LP_JSON_ARRAY) || lp_json_is(at, LP_JSON_OBJECT)) && lp_json_count(at) == 0;
}

static lp_status check_keys(const reader *r) {
  lp_json quantised = lp_json_member(r->root, "quantization_config");
  if (lp_json_is_given(&quantised)) {
    lp_json method = lp_json_member(&quantised, "quant_method");
    return lp_json_error(&quantised, r->diag, "quantised weights ('%s') are not supported",
                         lp_json_text_or(&method, "unknown method"));
  }
  for (size_t i = 0; i < lp_json_count(r->root); i++) {
    lp_json at = lp_json_entry(r->root, i);
    bool known = at.key[0] == '_' || is_off(&at);
    for (size_t k = 0; k < LP_COUNT(known_keys) && !known; k++)
      known = lp_streq(at.key, known_keys[k]);
    if (known) continue;
    lp_status status = lp_json_error(&at, r->diag, "this key is unknown and may change the model's results");
    lp_note(r->diag, LP_LOC_FILE(r->path), "if it does not change them, remove it from the file");
    return status;
  }
  return LP_OK;
}

/* Refuses values that the graph does not implement. */
static lp_status check_values(const reader *r) {
  lp_json scaled = lp_json_member(r->root, "scale_attn_weights");
  if (lp_json_is_given(&scaled) && !lp_json_is_true(&scaled))
    return lp_json_error(&scaled, r->diag, "attention without a scale is not supported");
  lp_json kinds = lp_json_member(r->root, "architectures"), kind = lp_json_item(&kinds, 0);
  const char *name = lp_json_text_or(&kind, "ForCausalLM");
  if (!lp_has_suffix(name, "ForCausalLM") && !lp_has_suffix(name, "LMHeadModel"))
    return lp_json_error(&kind, r->diag, "'%.60s' is not a model that generates text", name);
  return LP_OK;
}

/* ---- rotary positions -------------------------------------------------------------------------------------------- */

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
                                      "mscale",
                                      "mscale_all_dim",
                                      "truncate",
                                      "partial_rotary_factor",
                                      "finetuned",
                                      "short_factor",
                                      "long_factor"};
  for (size_t i = 0; i < lp_json_count(at); i++) {
    lp_json entry = lp_json_entry(at, i);
    bool is_known = is_off(&entry) && !lp_streq(entry.key, "truncate");
    for (size_t k = 0; k < LP_COUNT(known) && !is_known; k++)
      is_known = lp_streq(entry.key, known[k]);
    if (!is_known) return lp_json_error(&entry, diag, "this key is unknown");
  }
  return LP_OK;
}

static lp_status read_yarn(const reader *r, const lp_json *at, lp_rope *rope) {
  double mscale, of_all;
  lp_json truncate = lp_json_member(at, "truncate");
  rope->truncate = !lp_json_is_given(&truncate) || lp_json_is_true(&truncate);
  LP_TRY(positive_at(at, "beta_fast", 32, &rope->beta_fast, r->diag));
  LP_TRY(positive_at(at, "beta_slow", 1, &rope->beta_slow, r->diag));
  LP_TRY(number_at(at, "mscale", 0, &mscale, r->diag));
  LP_TRY(number_at(at, "mscale_all_dim", 0, &of_all, r->diag));
  double own = mscale != 0 && of_all != 0
                   ? lp_rotary_yarn_scale(rope->factor, mscale) / lp_rotary_yarn_scale(rope->factor, of_all)
                   : lp_rotary_yarn_scale(rope->factor, 1);
  LP_TRY(positive_at(at, "original_max_position_embeddings", (double)r->context, &rope->original_context, r->diag));
  return positive_at(at, "attention_factor", own, &rope->attention_factor, r->diag);
}

/* Reads a list with a number for each rotated pair. */
static lp_status read_factors(const reader *r, const lp_json *at, const char *key, int64_t count, const float **out) {
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
static lp_status read_longrope(const reader *r, const lp_json *at, int64_t pairs, lp_rope *rope) {
  lp_json original = lp_json_member(r->root, "original_max_position_embeddings");
  double context = (double)r->context, factor = 1;
  LP_TRY(positive_at(r->root, "original_max_position_embeddings", context, &rope->original_context, r->diag));
  if (!lp_json_is_given(&original)) {
    LP_TRY(positive_at(at, "original_max_position_embeddings", context, &rope->original_context, r->diag));
    original = lp_json_member(at, "original_max_position_embeddings");
  }
  LP_TRY(positive_at(at, "factor", 1, &factor, r->diag));
  if (lp_json_is_given(&original)) factor = context / rope->original_context;
  if (rope->original_context <= 1 || rope->original_context > (double)MOST_SIZE)
    return lp_json_error(at, r->diag, "an original context of %g positions is not supported", rope->original_context);
  double own = lp_rotary_long_scale(factor, rope->original_context);
  LP_TRY(positive_at(at, "attention_factor", own, &rope->attention_factor, r->diag));
  LP_TRY(read_factors(r, at, "short_factor", pairs, &rope->short_factor));
  return read_factors(r, at, "long_factor", pairs, &rope->long_factor);
}

/* Reads the object rope_scaling, or rope_parameters, which also has the base. */
static lp_status read_rope(const reader *r, const lp_json *at, int64_t size, lp_rope *rope) {
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
  if (lp_streq(name, "su")) name = "longrope"; /* its first name */
  size_t kind = 0;
  while (kind < LP_COUNT(names) && !lp_streq(names[kind], name))
    kind++;
  if (kind == LP_COUNT(names))
    return lp_json_error(at, r->diag,
                         "positions of type '%.40s' are not supported: default, linear, llama3, yarn, longrope", name);
  if (kind != LP_ROPE_LONG && lp_json_is_given(&factors))
    return lp_json_error(&factors, r->diag, "positions of type '%s' have no such key", name);
  rope->kind = (lp_rope_kind)kind;
  LP_TRY(positive_at(at, "rope_theta", rope->theta, &rope->theta, r->diag));
  if (rope->kind == LP_ROPE_DEFAULT) return LP_OK;
  if (rope->kind == LP_ROPE_LONG) return read_longrope(r, at, size / 2, rope);
  LP_TRY(positive_at(at, "factor", 0, &rope->factor, r->diag));
  if (rope->kind == LP_ROPE_YARN) return read_yarn(r, at, rope);
  if (rope->kind != LP_ROPE_LLAMA3) return LP_OK;
  LP_TRY(positive_at(at, "low_freq_factor", 0, &rope->low_freq_factor, r->diag));
  LP_TRY(positive_at(at, "high_freq_factor", 0, &rope->high_freq_factor, r->diag));
  return positive_at(at, "original_max_position_embeddings", 0, &rope->original_context, r->diag);
}

/* The share of a head that rotates. */
static lp_status rotated_size(const reader *r, const lp_json *parameters, int64_t *out) {
  double partial;
  LP_TRY(positive_at(r->root, "partial_rotary_factor", r->family->partial, &partial, r->diag));
  LP_TRY(positive_at(parameters, "partial_rotary_factor", partial, &partial, r->diag));
  *out = (int64_t)((double)r->out->head_dim * partial);
  if (*out >= 2 && *out % 2 == 0 && *out <= r->out->head_dim) return LP_OK;
  return lp_json_error(r->root, r->diag,
                       "%" PRId64 " of the %" PRId64
                       " elements of a head rotate; an even number of at least 2 is needed",
                       *out, r->out->head_dim);
}

/* Fills one rotary for all layers or for those without a window, and a second for those with one. */
static lp_status read_rotary(const reader *r) {
  lp_rotary *rotary = LP_NEW_ARRAY(r->arena, lp_rotary, 2);
  lp_rope rope[2] = {{.theta = r->family->theta}, {.theta = 10000}};
  lp_json all = lp_json_member(r->root, "rope_parameters"), full = lp_json_member(&all, "full_attention");
  lp_json local = lp_json_member(&all, "sliding_attention"), scaling = lp_json_member(r->root, "rope_scaling");
  bool apart = r->family->two_bases && lp_json_is_given(&full);
  lp_json shared = apart ? full : lp_json_is_given(&all) ? all : scaling;
  int64_t size;
  LP_TRY(positive_at(r->root, "rope_theta", rope[0].theta, &rope[0].theta, r->diag));
  LP_TRY(positive_at(r->root, "rope_local_base_freq", rope[1].theta, &rope[1].theta, r->diag));
  LP_TRY(rotated_size(r, &shared, &size));
  LP_TRY(read_rope(r, &shared, size, &rope[0]));
  if (apart) LP_TRY(read_rope(r, &local, size, &rope[1]));
  for (int i = 0; i < 2; i++)
    rotary[i] = lp_rotary_create(r->arena, size, &rope[i]);
  r->out->rotary = rotary;
  return LP_OK;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Tells whether the layer has rotary positions. no_rope_layers has 1 for layers that do. */
static lp_status rotates(const reader *r, int64_t layer, bool *out) {
  int64_t interval, flag = 1;
  lp_json list = lp_json_member(r->root, "no_rope_layers"), at = lp_json_item(&list, (size_t)layer);
  *out = r->family->theta > 0;
  if (r->family->no_rope_interval == 0) return LP_OK;
  LP_TRY(size_at(r, "no_rope_layer_interval", r->family->no_rope_interval, &interval));
  *out = (layer + 1) % interval != 0;
  if (!lp_json_is_given(&list)) return LP_OK;
  LP_TRY(lp_json_i64(&at, 0, 1, &flag, r->diag));
  *out = flag != 0;
  return LP_OK;
}

/* Tells whether the layer has a window, when the file has no layer_types. */
static lp_status has_window(const reader *r, int64_t layer, bool rotary, bool *out) {
  lp_json upper = lp_json_member(r->root, "max_window_layers");
  bool used = true_at(r, "use_sliding_window", false);
  int64_t first = 28, pattern;
  if (lp_json_is_given(&upper)) LP_TRY(lp_json_i64(&upper, 0, MOST_SIZE, &first, r->diag));
  LP_TRY(size_at(r, "sliding_window_pattern", r->family->pattern, &pattern));
  switch (r->family->windows) {
  case LP_WINDOW_NONE:
    *out = false;
    break;
  case LP_WINDOW_ALL:
    *out = true;
    break;
  case LP_WINDOW_UPPER:
    *out = used && layer >= first;
    break;
  case LP_WINDOW_PATTERN:
    *out = (layer + 1) % pattern != 0;
    break;
  case LP_WINDOW_NO_ROPE:
    *out = used && !rotary;
    break;
  }
  return LP_OK;
}

static lp_status read_layer(const reader *r, int64_t index, int64_t window, lp_decoder_layer *out) {
  static const char *const types[] = {"full_attention", "sliding_attention"};
  lp_json list = lp_json_member(r->root, "layer_types"), at = lp_json_item(&list, (size_t)index);
  bool rotary, windowed = false;
  int32_t type = 0;
  LP_TRY(rotates(r, index, &rotary));
  LP_TRY(has_window(r, index, rotary, &windowed));
  if (lp_json_is_given(&list) && r->family->windows != LP_WINDOW_NONE) {
    LP_TRY(lp_json_choice(&at, types, LP_COUNT(types), &type, r->diag));
    windowed = type == 1;
  }
  if (windowed) out->window = window;
  out->rotary = !rotary ? -1 : windowed && r->family->two_bases ? 1 : 0;
  return LP_OK;
}

static lp_status read_layers(const reader *r) {
  lp_decoder_layer *layer = LP_NEW_ARRAY(r->arena, lp_decoder_layer, r->out->layers);
  lp_json off = lp_json_member(r->root, "sliding_window");
  int64_t window;
  LP_TRY(size_at(r, "sliding_window", r->family->window, &window));
  if (lp_json_is(&off, LP_JSON_NULL)) window = 0;
  for (int64_t i = 0; i < r->out->layers; i++)
    LP_TRY(read_layer(r, i, window, &layer[i]));
  r->out->layer = layer;
  return LP_OK;
}

/* ---- sizes and numbers ------------------------------------------------------------------------------------------- */

static lp_status read_sizes(reader *r) {
  const lp_size_keys *keys = r->family->keys;
  lp_decoder *d = r->out;
  LP_TRY(size_at(r, keys->layers, -1, &d->layers));
  LP_TRY(size_at(r, keys->hidden, -1, &d->hidden));
  LP_TRY(size_at(r, keys->heads, -1, &d->heads));
  LP_TRY(size_at(r, keys->ffn, lp_streq(keys->ffn, "n_inner") ? 4 * d->hidden : -1, &d->ffn));
  LP_TRY(size_at(r, "vocab_size", -1, &d->vocab));
  LP_TRY(size_at(r, keys->context, -1, &r->context));
  LP_TRY(size_at(r, "num_key_value_heads", r->family->kv_heads ? r->family->kv_heads : d->heads, &d->kv_heads));
  LP_TRY(size_at(r, "head_dim", r->family->head_dim, &d->head_dim));
  if (d->layers > MOST_LAYERS)
    return lp_json_error(r->root, r->diag, "%" PRId64 " layers; at most %d are supported", d->layers, MOST_LAYERS);
  if (d->heads % d->kv_heads != 0 || (d->head_dim == 0 && d->hidden % d->heads != 0))
    return lp_json_error(r->root, r->diag,
                         "the hidden size %" PRId64 " is not a multiple of %" PRId64
                         " heads, or these are not a multiple of %" PRId64 " key heads",
                         d->hidden, d->heads, d->kv_heads);
  if (d->head_dim == 0) d->head_dim = d->hidden / d->heads;
  if (d->names[LP_ROLE_POSITIONS]) d->positions = r->context;
  return LP_OK;
}

static lp_status read_activation(const reader *r) {
  static const struct {
    const char *name, *is;
  } forms[] = {{"silu", "silu"},
               {"swish", "silu"},
               {"gelu", "gelu"},
               {"gelu_new", "gelu_tanh"},
               {"gelu_pytorch_tanh", "gelu_tanh"},
               {"gelu_fast", "gelu_tanh"},
               {"relu", "relu"},
               {"quick_gelu", "quick_gelu"}};
  lp_json at = lp_json_member(r->root, r->family->keys->activation);
  const char *name = r->family->activation;
  if (lp_json_is_given(&at)) LP_TRY(lp_json_text(&at, &name, r->diag));
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (lp_streq(name, forms[i].name)) r->out->activation = forms[i].is;
  return r->out->activation ? LP_OK : lp_json_error(&at, r->diag, "activation '%.40s' is not supported", name);
}

/* Families without a default do not read the key; a value of null turns the cap off. */
static lp_status read_cap(const reader *r, const char *key, double otherwise, double *out) {
  lp_json at = lp_json_member(r->root, key);
  if (r->family->query_scalar == 0 || lp_json_is(&at, LP_JSON_NULL)) return LP_OK;
  return positive_at(r->root, key, otherwise, out, r->diag);
}

static lp_status read_numbers(const reader *r) {
  const lp_family *f = r->family;
  lp_decoder *d = r->out;
  double scalar;
  if (f->epsilon_key) LP_TRY(positive_at(r->root, f->epsilon_key, f->epsilon, &d->epsilon, r->diag));
  if (f->query_scalar > 0)
    LP_TRY(positive_at(r->root, "query_pre_attn_scalar", f->query_scalar, &scalar, r->diag));
  else
    scalar = (double)d->head_dim;
  d->attention_scale = 1 / sqrt(scalar);
  LP_TRY(read_cap(r, "attn_logit_softcapping", f->attention_softcap, &d->attention_softcap));
  LP_TRY(read_cap(r, "final_logit_softcapping", f->logit_softcap, &d->logit_softcap));
  if (f->norm == LP_NORM_LAYER_PLAIN) LP_TRY(number_at(r->root, "clip_qkv", 0, &d->clip_qkv, r->diag));
  if (f->scales_embedding) d->embedding_scale = sqrt((double)d->hidden);
  return LP_OK;
}

/* ---- the description --------------------------------------------------------------------------------------------- */

static lp_status read_config(reader *r) {
  lp_json type = lp_json_member(r->root, "model_type");
  const char *name = NULL;
  LP_TRY(lp_json_object(r->root, r->diag));
  LP_TRY(lp_json_text(&type, &name, r->diag));
  r->family = lp_family_find(name);
  if (!r->family) {
    lp_status status = lp_json_error(&type, r->diag, "models of type '%.60s' are not supported", name);
    lp_family_note(r->diag, LP_LOC_FILE(r->path));
    return status;
  }
  LP_TRY(check_keys(r));
  LP_TRY(check_values(r));
  *r->out = (lp_decoder){.names = r->family->names,
                         .norm = r->family->norm,
                         .epsilon = r->family->epsilon,
                         .norm_offset = r->family->norm_offset,
                         .embedding_scale = 1,
                         .residual_scale = 1,
                         .logit_scale = 1,
                         .parallel = r->family->parallel,
                         .norm_whole_heads = r->family->norm_whole_heads,
                         .tied = true_at(r, "tie_word_embeddings", r->family->tied),
                         .transposed = r->family->transposed};
  LP_TRY(read_sizes(r));
  LP_TRY(read_activation(r));
  LP_TRY(read_numbers(r));
  if (r->family->theta > 0) LP_TRY(read_rotary(r));
  return read_layers(r);
}

lp_status lp_huggingface_config(const char *path, lp_arena *arena, lp_decoder *out, lp_diag *diag) {
  char *text = NULL;
  size_t size;
  lp_json_document *document = NULL;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_status status = lp_json_parse(path, text, size, LP_JSON_REFUSE_NUL, &document, diag);
  free(text);
  if (status != LP_OK) return status;
  lp_json root = lp_json_root(path, document);
  reader r = {.root = &root, .path = path, .arena = arena, .diag = diag, .out = out};
  status = read_config(&r);
  lp_json_free(document);
  return status;
}
