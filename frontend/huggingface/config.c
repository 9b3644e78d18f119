/* Turns config.json into the description of a decoder. */
#include "frontend/huggingface/config.h"
#include "base/file.h"

#include <math.h>

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Tells whether the layer has rotary positions. no_rope_layers has 1 for layers that do. */
static lp_status rotates(const lp_config *r, int64_t layer, bool *out) {
  int64_t interval, flag = 1;
  lp_json list = lp_json_member(r->root, "no_rope_layers"), at = lp_json_item(&list, (size_t)layer);
  lp_json kind = lp_json_member(r->root, "position_embedding_type");
  *out = r->family->theta > 0 && (!r->family->names_positions || lp_json_equals(&kind, "rope"));
  if (r->family->no_rope_interval == 0) return LP_OK;
  LP_TRY(lp_config_size(r, "no_rope_layer_interval", r->family->no_rope_interval, &interval));
  *out = (layer + 1) % interval != 0;
  if (!lp_json_is_given(&list) || (lp_json_is(&list, LP_JSON_ARRAY) && lp_json_count(&list) == 0)) return LP_OK;
  LP_TRY(lp_json_i64(&at, 0, 1, &flag, r->diag));
  *out = flag != 0;
  return LP_OK;
}

/* Tells whether the layer has a window, when the file has no layer_types. */
static lp_status has_window(const lp_config *r, int64_t layer, bool rotary, bool *out) {
  lp_json upper = lp_json_member(r->root, "max_window_layers");
  bool used = lp_config_is_true(r, "use_sliding_window", false);
  int64_t first = 28, pattern;
  if (lp_json_is_given(&upper)) LP_TRY(lp_json_i64(&upper, 0, LP_CONFIG_MOST_SIZE, &first, r->diag));
  LP_TRY(lp_config_size(r, "sliding_window_pattern", r->family->pattern, &pattern));
  switch (r->family->windows) {
  case LP_WINDOW_NONE:
    *out = false;
    break;
  case LP_WINDOW_ALL:
    *out = true;
    break;
  case LP_WINDOW_USED:
    *out = used;
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

static lp_status read_layer(const lp_config *r, int64_t index, int64_t window, lp_decoder_layer *out) {
  static const char *const types[] = {"full_attention", "sliding_attention"}, *const chunked[] = {"full_attention",
                                                                                                  "chunked_attention"};
  lp_json list = lp_json_member(r->root, "layer_types"), at = lp_json_item(&list, (size_t)index);
  bool rotary, windowed = false;
  int32_t type = 0;
  LP_TRY(lp_config_read_taps(r, index, out));
  LP_TRY(rotates(r, index, &rotary));
  LP_TRY(has_window(r, index, rotary, &windowed));
  if (lp_json_is_given(&list) && r->family->windows != LP_WINDOW_NONE) {
    LP_TRY(lp_json_choice(&at, types, LP_COUNT(types), &type, r->diag));
    windowed = type == 1;
  }
  if (r->family->chunk > 0) {
    lp_json size = lp_json_member(r->root, "attention_chunk_size");
    type = rotary;
    if (lp_json_is_given(&list)) LP_TRY(lp_json_choice(&at, chunked, LP_COUNT(chunked), &type, r->diag));
    if (type == 1 && lp_json_is(&size, LP_JSON_NULL))
      return lp_json_error(&size, r->diag, "chunked attention needs a size of chunks");
    if (type == 1) LP_TRY(lp_config_size(r, "attention_chunk_size", r->family->chunk, &out->chunk));
  }
  if (windowed) out->window = window;
  out->rotary = !rotary ? -1 : windowed && r->family->two_bases ? 1 : 0;
  return LP_OK;
}

/* Tells whether the layer has experts: Qwen names layers that have none, and a step, Llama 4 those that have them. */
static lp_status is_sparse(const lp_config *r, int64_t layer, bool *out) {
  lp_json none = lp_json_member(r->root, "mlp_only_layers"), own = lp_json_member(r->root, "moe_layers");
  int64_t step, dense;
  bool listed;
  *out = r->out->mixture.experts > 0;
  if (!*out) return LP_OK;
  LP_TRY(lp_config_size(r, "decoder_sparse_step", 1, &step));
  LP_TRY(lp_config_size(r, "interleave_moe_layer_step", step, &step));
  *out = (layer + 1) % step == 0;
  if (r->family->mixture->grouped) {
    const char *key = r->family->mixture->dense_key;
    lp_json first = lp_json_member(r->root, key ? key : "first_k_dense_replace");
    dense = r->family->mixture->dense;
    if (lp_json_is_given(&first)) LP_TRY(lp_json_i64(&first, 0, LP_CONFIG_MOST_SIZE, &dense, r->diag));
    *out = layer >= dense;
  }
  if (r->family->mixture->ranged) {
    lp_json last = lp_json_member(r->root, "moe_layer_end_index"),
            first = lp_json_member(r->root, "moe_layer_start_index");
    int64_t from = 1, to = -1;
    LP_TRY(lp_config_size(r, "moe_layer_interval", 1, &step));
    if (lp_json_is_given(&first)) LP_TRY(lp_json_i64(&first, 0, LP_CONFIG_MOST_SIZE, &from, r->diag));
    if (lp_json_is_given(&last)) LP_TRY(lp_json_i64(&last, -1, LP_CONFIG_MOST_SIZE, &to, r->diag));
    *out = (layer + 1) % step == 0 && layer >= from && (to < 0 || layer <= to);
  }
  LP_TRY(lp_config_lists(r, &none, layer, &listed));
  if (listed) *out = false;
  LP_TRY(lp_config_lists(r, &own, layer, &listed));
  if (lp_json_is_given(&own)) *out = listed;
  return LP_OK;
}

static lp_status read_layers(const lp_config *r) {
  lp_decoder_layer *layer = LP_NEW_ARRAY(r->arena, lp_decoder_layer, r->out->layers);
  lp_json off = lp_json_member(r->root, "sliding_window");
  int64_t window;
  const bool is_off = off.value && lp_config_is_off(&off);
  if (is_off) window = 0;
  if (!is_off) LP_TRY(lp_config_size(r, "sliding_window", r->family->window, &window));
  for (int64_t i = 0; i < r->out->layers; i++) {
    LP_TRY(read_layer(r, i, window, &layer[i]));
    if (!r->family->alone) LP_TRY(is_sparse(r, i, &layer[i].sparse));
  }
  r->out->layer = layer;
  return LP_OK;
}

/* ---- sizes and numbers ------------------------------------------------------------------------------------------- */

/* A size without a default must be given. */
static int64_t or_needed(int64_t size) {
  return size > 0 ? size : -1;
}

/* LFM2 computes the size of its MLPs from that of the file. */
static lp_status adjust_ffn(const lp_config *r) {
  lp_decoder *d = r->out;
  lp_json given = lp_json_member(r->root, "block_ffn_dim_multiplier");
  double factor;
  int64_t multiple, whole = 2 * d->ffn / 3;
  if (!r->family->convolves || r->family->mixture || !lp_config_is_true(r, "block_auto_adjust_ff_dim", true))
    return LP_OK;
  LP_TRY(lp_config_size(r, "block_multiple_of", 256, &multiple));
  LP_TRY(lp_config_positive(r->root, "block_ffn_dim_multiplier", 1, &factor, r->diag));
  factor *= (double)whole;
  if (factor < 1 || factor > (double)LP_CONFIG_MOST_SIZE)
    return lp_json_error(r->root, r->diag, "MLPs of %g elements", factor);
  d->ffn = lp_json_is(&given, LP_JSON_NULL) ? (int64_t)factor : ((int64_t)factor + multiple - 1) / multiple * multiple;
  return LP_OK;
}

static lp_status read_sizes(lp_config *r) {
  const lp_size_keys *keys = r->family->keys;
  lp_json block = lp_json_member(r->root, "block_ff_dim"); /* of LFM2's first files */
  const char *ffn = lp_json_is_given(&block) ? "block_ff_dim" : keys->ffn;
  lp_decoder *d = r->out;
  if (r->family->alone)
    LP_TRY(lp_config_count_layers(r, &d->layers));
  else
    LP_TRY(lp_config_size(r, keys->layers, -1, &d->layers));
  LP_TRY(lp_config_size(r, keys->hidden, -1, &d->hidden));
  LP_TRY(lp_config_size(r, keys->heads, or_needed(r->family->usual_heads), &d->heads));
  LP_TRY(lp_config_size(r, ffn, lp_streq(ffn, "n_inner") ? 4 * d->hidden : -1, &d->ffn));
  LP_TRY(adjust_ffn(r));
  LP_TRY(lp_config_size(r, "vocab_size", or_needed(r->family->vocab), &d->vocab));
  LP_TRY(lp_config_size(r, keys->context, or_needed(r->family->context), &r->context));
  lp_json keys_of = lp_json_member(r->root, "num_key_value_heads");
  const bool usual = r->family->kv_heads > 0 && !lp_json_is(&keys_of, LP_JSON_NULL);
  LP_TRY(lp_config_size(r, "num_key_value_heads", usual ? r->family->kv_heads : d->heads, &d->kv_heads));
  LP_TRY(lp_config_size(r, "head_dim", r->family->head_dim, &d->head_dim));
  if (d->layers > LP_CONFIG_MOST_LAYERS)
    return lp_json_error(r->root, r->diag, "%" PRId64 " layers; at most %d are supported", d->layers,
                         LP_CONFIG_MOST_LAYERS);
  if (d->heads % d->kv_heads != 0 || (d->head_dim == 0 && d->hidden % d->heads != 0))
    return lp_json_error(r->root, r->diag,
                         "the hidden size %" PRId64 " is not a multiple of %" PRId64
                         " heads, or these are not a multiple of %" PRId64 " key heads",
                         d->hidden, d->heads, d->kv_heads);
  if (d->head_dim == 0) d->head_dim = d->hidden / d->heads;
  if (d->names[LP_ROLE_POSITIONS]) d->positions = r->context;
  return LP_OK;
}

static lp_status read_activation(const lp_config *r, const char *key, const char *name, const char **out) {
  static const struct {
    const char *name, *is;
  } forms[] = {{"silu", "silu"},
               {"swish", "silu"},
               {"gelu", "gelu"},
               {"gelu_new", "gelu_tanh"},
               {"gelu_pytorch_tanh", "gelu_tanh"},
               {"gelu_fast", "gelu_tanh"},
               {"relu", "relu"},
               {"relu2", "relu2"},
               {"quick_gelu", "quick_gelu"}};
  lp_json at = lp_json_member(r->root, key);
  if (lp_json_is_given(&at)) LP_TRY(lp_json_text(&at, &name, r->diag));
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (lp_streq(name, forms[i].name)) *out = forms[i].is;
  return *out ? LP_OK : lp_json_error(&at, r->diag, "activation '%.40s' is not supported", name);
}

/* Families without a default do not read the key; a value of null turns the cap off. */
static lp_status read_cap(const lp_config *r, const char *key, double otherwise, double *out) {
  lp_json at = lp_json_member(r->root, key);
  if (r->family->query_scalar == 0 || lp_json_is(&at, LP_JSON_NULL)) return LP_OK;
  return lp_config_positive(r->root, key, otherwise, out, r->diag);
}

/* Reads the factors of Granite, which are 1 when they are absent, that of scores as well. */
static lp_status read_factors(const lp_config *r) {
  lp_decoder *d = r->out;
  LP_TRY(lp_config_positive(r->root, "embedding_multiplier", 1, &d->embedding_scale, r->diag));
  LP_TRY(lp_config_positive(r->root, "attention_multiplier", 1, &d->attention_scale, r->diag));
  LP_TRY(lp_config_positive(r->root, "residual_multiplier", 1, &d->residual_scale, r->diag));
  LP_TRY(lp_config_positive(r->root, "logits_scaling", 1, &d->logit_scale, r->diag));
  d->logit_scale = 1 / d->logit_scale;
  return LP_OK;
}

#define BIT(role) ((uint64_t)1 << LP_ROLE_##role)

/* transformers leaves out biases that a key excludes. */
static void read_biases(const lp_config *r) {
  const uint64_t attention = BIT(Q) | BIT(K) | BIT(V) | BIT(QKV) | BIT(O) | BIT(Q_A) | BIT(Q_B) | BIT(KV_A);
  const uint64_t mlp = BIT(GATE) | BIT(UP) | BIT(GATE_UP) | BIT(DOWN) | BIT(SHARED_GATE) | BIT(SHARED_UP) |
                       BIT(SHARED_DOWN) | BIT(LATENT_IN) | BIT(LATENT_OUT);
  const struct {
    const char *key;
    uint64_t roles;
  } keys[] = {{"use_bias", r->family->alone ? BIT(CONV_IN) | BIT(CONV_OUT) : attention | mlp},
              {"mlp_bias", mlp},
              {"use_qkv_bias", attention},
              {"use_conv_bias", BIT(CONV)},
              {"mamba_conv_bias", BIT(CONV)},
              {"conv_bias", BIT(CONV) | BIT(CONV_IN) | BIT(CONV_OUT)},
              {"projectors_bias", BIT(CONV_OUT)},
              {"mamba_proj_bias", r->family->alone  ? 0
                                  : r->family->both ? BIT(CONV_IN)
                                                    : BIT(CONV_IN) | BIT(CONV_OUT)},
              {r->family->own_biases ? "qkv_bias" : "attention_bias", attention}};
  for (size_t i = 0; i < LP_COUNT(keys); i++)
    if (!lp_config_is_true(r, keys[i].key, true)) r->out->unbiased |= keys[i].roles;
  if (r->family->alone) r->out->unbiased |= attention;
}

static lp_status read_numbers(const lp_config *r) {
  const lp_family *f = r->family;
  lp_decoder *d = r->out;
  double scalar;
  if (f->epsilon_key) LP_TRY(lp_config_positive(r->root, f->epsilon_key, f->epsilon, &d->epsilon, r->diag));
  if (f->query_scalar > 0)
    LP_TRY(lp_config_positive(r->root, "query_pre_attn_scalar", f->query_scalar, &scalar, r->diag));
  else
    scalar = (double)(f->latent ? d->latent.plain + d->latent.rotated : d->head_dim);
  d->attention_scale = 1 / sqrt(scalar);
  LP_TRY(read_cap(r, "attn_logit_softcapping", f->attention_softcap, &d->attention_softcap));
  LP_TRY(read_cap(r, "final_logit_softcapping", f->logit_softcap, &d->logit_softcap));
  if (f->clips) LP_TRY(lp_config_number(r->root, "clip_qkv", 0, &d->clip_qkv, r->diag));
  if (f->tunes) {
    lp_json tunes = lp_json_member(r->root, "attn_temperature_tuning");
    LP_TRY(lp_config_positive(r->root, "floor_scale", 8192, &d->tuning_floor, r->diag));
    LP_TRY(lp_config_number(r->root, "attn_scale", 0.1, &d->tuning_scale, r->diag));
    if (lp_json_is_given(&tunes) && lp_config_is_off(&tunes)) d->tuning_floor = 0;
  }
  if (f->scales_embedding) d->embedding_scale = sqrt((double)d->hidden);
  if (f->both) LP_TRY(lp_config_read_factors(r));
  return f->multiplies ? read_factors(r) : LP_OK;
}

/* Absent keys and other types, such as those of packed weights, stand for f32, as in transformers. */
static lp_dtype read_stored(const lp_config *r) {
  lp_json at = lp_json_member(r->root, "dtype");
  if (!lp_json_is_given(&at)) at = lp_json_member(r->root, "torch_dtype");
  if (lp_json_equals(&at, "bfloat16")) return LP_BF16;
  return lp_json_equals(&at, "float16") ? LP_F16 : LP_F32;
}

/* DeepSeek's keys: the experts are chosen in some of their groups, and 1e-20 keeps the sum of weights from 0. */
static lp_status read_groups(const lp_config *r) {
  lp_mixture *m = &r->out->mixture;
  static const char *const methods[] = {"greedy", "group_limited_greedy", "noaux_tc"};
  const lp_family_experts *f = r->family->mixture;
  m->least = f->least > 0 ? f->least : 1e-20;
  lp_json method = lp_json_member(r->root, "topk_method");
  int32_t chosen_by = f->route == LP_ROUTE_SIGMOID ? 2 : 0;
  LP_TRY(lp_config_number(r->root, "routed_scaling_factor", f->scale, &m->scale, r->diag));
  LP_TRY(lp_config_size(r, "n_group", f->groups, &m->groups));
  LP_TRY(lp_config_size(r, "topk_group", f->taken, &m->taken));
  if (lp_json_is_given(&method)) LP_TRY(lp_json_choice(&method, methods, LP_COUNT(methods), &chosen_by, r->diag));
  if ((chosen_by == 2) != (f->route == LP_ROUTE_SIGMOID))
    return lp_json_error(&method, r->diag, "models of type '%s' do not choose experts so", r->family->model_type);
  if (chosen_by == 0) m->groups = m->taken = 1;
  m->summed = f->summed;
  if (m->taken <= m->groups && m->experts % m->groups == 0 && m->chosen <= m->experts / m->groups * m->taken)
    return LP_OK;
  return lp_json_error(r->root, r->diag, "%" PRId64 " of %" PRId64 " groups of %" PRId64 " experts", m->taken,
                       m->groups, m->experts);
}

/* A size, or a list of one size for each layer, which must be equal. */
static lp_status size_of_layers(const lp_config *r, const char *key, int64_t otherwise, int64_t *out) {
  lp_json list = lp_json_member(r->root, key);
  if (!lp_json_is(&list, LP_JSON_ARRAY) || lp_json_count(&list) == 0) return lp_config_size(r, key, otherwise, out);
  LP_FOR_ITEMS(at, &list) {
    const int64_t before = *out;
    LP_TRY(lp_json_i64(&at, 1, LP_CONFIG_MOST_SIZE, out, r->diag));
    if (at.index > 0 && *out != before) return lp_json_error(&at, r->diag, "only layers of equal sizes are supported");
  }
  return LP_OK;
}

static lp_status read_mixture(const lp_config *r) {
  const lp_family_experts *f = r->family->mixture;
  lp_mixture *m = &r->out->mixture;
  if (!f) return LP_OK;
  lp_json own = lp_json_member(r->root, f->experts_key);
  const char *key = lp_json_is_given(&own) ? f->experts_key : "num_local_experts";
  if (f->optional && lp_json_is_given(&own) && lp_config_is_off(&own)) return LP_OK;
  LP_TRY(size_of_layers(r, key, f->experts, &m->experts));
  LP_TRY(size_of_layers(r, f->chosen_key ? f->chosen_key : "num_experts_per_tok", f->chosen, &m->chosen));
  lp_json predictors = lp_json_member(r->root, "num_nextn_predict_layers");
  if (lp_json_is_given(&predictors))
    LP_TRY(lp_json_i64(&predictors, 0, LP_CONFIG_MOST_LAYERS, &r->out->predictors, r->diag));
  LP_TRY(lp_config_size(r, f->ffn_key, f->ffn, &m->ffn));
  if (f->shared_key) LP_TRY(lp_config_size(r, f->shared_key, f->shared, &m->shared_ffn));
  m->route = f->route;
  m->scale = 1;
  m->gates = f->gates;
  if (f->limit > 0) LP_TRY(lp_config_positive(r->root, "swiglu_limit", f->limit, &m->limit, r->diag));
  if (f->limit > 0) LP_TRY(lp_config_number(r->root, "swiglu_alpha", 1.702, &m->alpha, r->diag));
  m->normalised = f->normalised_key ? lp_config_is_true(r, f->normalised_key, f->normalised) : f->normalised;
  if (f->counts_shared) m->shared_ffn *= m->ffn;
  if (f->grouped) LP_TRY(read_groups(r));
  m->ungated = f->ungated;
  lp_json latent = lp_json_member(r->root, "moe_latent_size");
  if (f->ungated && lp_json_is_given(&latent)) LP_TRY(lp_config_size(r, "moe_latent_size", 1, &m->latent));
  if (f->ranged) LP_TRY(lp_config_positive(r->root, "moe_norm_min", 1e-12, &m->least, r->diag));
  m->bounded = f->ranged;
  LP_TRY(lp_config_number(r->root, "router_jitter_noise", 0.01, &m->jitter, r->diag));
  if (m->chosen <= m->experts && (m->route != LP_ROUTE_MIXER || m->chosen == 2)) return LP_OK;
  return lp_json_error(r->root, r->diag, "num_experts_per_tok is %" PRId64 " of %" PRId64 " experts", m->chosen,
                       m->experts);
}

/* The sizes of latent attention. transformers leaves the epsilon of the latents' norms at its class's default. */
static lp_status read_latent(const lp_config *r) {
  lp_latent *l = &r->out->latent;
  lp_json query = lp_json_member(r->root, "q_lora_rank");
  if (!r->family->latent) return LP_OK;
  l->epsilon = 1e-6;
  if (!lp_json_is(&query, LP_JSON_NULL)) LP_TRY(lp_config_size(r, "q_lora_rank", 1536, &l->query_rank));
  LP_TRY(lp_config_size(r, "kv_lora_rank", 512, &l->rank));
  LP_TRY(lp_config_size(r, "qk_nope_head_dim", 128, &l->plain));
  LP_TRY(lp_config_size(r, "qk_rope_head_dim", 64, &l->rotated));
  LP_TRY(lp_config_size(r, "v_head_dim", 128, &l->value));
  if (r->out->heads > LP_CONFIG_MOST_SIZE / (l->plain + l->value))
    return lp_json_error(r->root, r->diag, "%" PRId64 " heads of %" PRId64 " and %" PRId64 " elements are too many",
                         r->out->heads, l->plain, l->value);
  r->out->rotary_interleaved = lp_config_is_true(r, "rope_interleave", true);
  r->out->kv_heads = 1;
  r->out->head_dim = l->rank + l->rotated;
  return LP_OK;
}

/* ---- the description --------------------------------------------------------------------------------------------- */

/* The layers without attention that a hybrid family has; NULL: another family. */
static const char *other_layers(const char *name) {
  static const char *const types[][2] = {{"kimi_linear", "linear attention (gated delta rule)"},
                                         {"minimax", "linear attention (lightning)"},
                                         {"zamba2", "state spaces (Mamba 2)"},
                                         {"jamba", "state spaces (Mamba)"}};
  for (size_t i = 0; i < LP_COUNT(types); i++)
    if (lp_streq(types[i][0], name)) return types[i][1];
  return NULL;
}

static lp_status find_family(lp_config *r) {
  lp_json type = lp_json_member(r->root, "model_type");
  const char *name = NULL;
  LP_TRY(lp_json_object(r->root, r->diag));
  LP_TRY(lp_json_text(&type, &name, r->diag));
  r->family = lp_family_find(name);
  if (r->family) return LP_OK;
  const char *layers = other_layers(name);
  lp_status status = lp_json_error(&type, r->diag, "models of type '%.60s' are not supported%s%s", name,
                                   layers ? ": they have layers of " : "", layers ? layers : "");
  lp_family_note(r->diag, LP_LOC_FILE(r->path));
  return status;
}

/* The model of text within a model of images and text: `text`, of the file's object `whole`. */
static bool is_text_part(const lp_json *whole, const lp_json *text) {
  static const char *const types[] = {"gemma3",   "llama4",  "mistral3", "llava",
                                      "idefics3", "smolvlm", "qwen3_5",  "qwen3_5_moe"};
  lp_json type = lp_json_member(whole, "model_type");
  for (size_t i = 0; i < LP_COUNT(types); i++)
    if (lp_json_equals(&type, types[i])) return lp_json_is(text, LP_JSON_OBJECT);
  return false;
}

static lp_status read_config(lp_config *r) {
  LP_TRY(find_family(r));
  lp_json tied = lp_json_member(r->root, "tie_embedding"); /* of LFM2's first files */
  if (!lp_json_is_given(&tied)) tied = lp_json_member(r->whole, "tie_word_embeddings");
  LP_TRY(lp_config_check_keys(r));
  LP_TRY(lp_config_check_values(r));
  *r->out = (lp_decoder){.names = r->family->names,
                         .norm = r->family->norm,
                         .epsilon = r->family->epsilon,
                         .norm_offset = r->family->norm_offset,
                         .embedding_scale = 1,
                         .residual_scale = 1,
                         .logit_scale = 1,
                         .parallel = r->family->parallel || lp_config_is_true(r, "use_parallel_residual", false),
                         .norm_whole_heads = r->family->norm_whole_heads,
                         .rotary_interleaved = r->family->neighbours,
                         .norm_after_rotary = r->family->norm_after_rotary,
                         .norm_unscaled = r->family->norm_unscaled,
                         .tied = lp_config_is_true(r, "tie_word_embeddings", r->family->tied),
                         .transposed = r->family->transposed,
                         .stored = read_stored(r)};
  const char **names = lp_arena_copy(r->arena, r->family->names, LP_ROLE_COUNT * sizeof *names);
  r->out->names = names;
  if (!lp_config_is_true(r, "use_qk_norm", !r->family->mixture || !r->family->mixture->grouped || r->family->convolves))
    names[LP_ROLE_Q_NORM] = names[LP_ROLE_K_NORM] = NULL;
  if (!lp_config_is_true(r, "use_expert_bias", true)) names[LP_ROLE_ROUTER_BIAS] = NULL;
  if (r->family->both && !lp_config_is_true(r, "mamba_rms_norm", false)) names[LP_ROLE_GATED_NORM] = NULL;
  if (lp_json_is_given(&tied)) r->out->tied = lp_json_is_true(&tied);
  LP_TRY(read_sizes(r));
  LP_TRY(read_latent(r));
  LP_TRY(read_activation(r, r->family->keys->activation, r->family->activation, &r->out->activation));
  if (r->family->alone) LP_TRY(read_activation(r, "mamba_hidden_act", "silu", &r->out->scan.activation));
  LP_TRY(read_numbers(r));
  read_biases(r);
  LP_TRY(read_mixture(r));
  LP_TRY(lp_config_read_scan(r));
  if (r->family->theta > 0) LP_TRY(lp_config_read_rotary(r));
  return read_layers(r);
}

lp_status lp_huggingface_config(const char *path, lp_arena *arena, lp_decoder *out, bool *is_part, lp_packing *packing,
                                lp_diag *diag) {
  char *data = NULL;
  size_t size;
  lp_json_document *document = NULL;
  LP_TRY(lp_file_read(path, &data, &size, diag));
  lp_status status = lp_json_parse(path, data, size, LP_JSON_REFUSE_NUL, &document, diag);
  free(data);
  if (status != LP_OK) return status;
  lp_json whole = lp_json_root(path, document), text = lp_json_member(&whole, "text_config");
  *is_part = is_text_part(&whole, &text);
  lp_config r = {.root = *is_part ? &text : &whole,
                 .whole = &whole,
                 .path = path,
                 .arena = arena,
                 .diag = diag,
                 .out = out,
                 .packing = packing};
  status = read_config(&r);
  lp_json_free(document);
  return status;
}
