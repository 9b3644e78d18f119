/* Turns the metadata of a GGUF file into the description of a decoder. */
#include "frontend/gguf/config.h"

#include <math.h>

/* The lengths of keys and values are those of heads, unless the file has them under names of their own: it then has
 * those of the cache. */
static lp_status read_latent(const lp_gguf_reader *r, int64_t key, int64_t value) {
  lp_decoder *d = r->out;
  lp_latent *l = &d->latent;
  LP_TRY(lp_gguf_size(r, "attention.kv_lora_rank", -1, &l->rank));
  if (lp_gguf_i64(r->file, lp_gguf_key(r, "attention.q_lora_rank"), 0) != 0)
    LP_TRY(lp_gguf_size(r, "attention.q_lora_rank", -1, &l->query_rank));
  LP_TRY(lp_gguf_size(r, "rope.dimension_count", -1, &l->rotated));
  LP_TRY(lp_gguf_size(r, "attention.key_length_mla", key, &l->plain));
  LP_TRY(lp_gguf_size(r, "attention.value_length_mla", value, &l->value));
  l->plain -= l->rotated;
  l->epsilon = lp_gguf_number_at(r, "attention.layer_norm_rms_epsilon", 0);
  d->kv_heads = 1;
  d->head_dim = l->rank + l->rotated;
  if (l->plain >= 1 && d->heads <= LP_GGUF_MOST_SIZE / (l->plain + l->value)) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                  "%" PRId64 " heads of %" PRId64 " and %" PRId64 " elements are not supported", d->heads, l->plain,
                  l->value);
}

/* A number, or one for each layer: the same, or 0 where a layer `lacks` it. */
static lp_status read_layered(const lp_gguf_reader *r, const char *name, int64_t otherwise, bool lacks, int64_t *out) {
  const char *key = lp_gguf_key(r, name);
  const lp_gguf_value *list = lp_gguf_find(r->file, key);
  if (!list || !list->is_array) return lp_gguf_size(r, name, otherwise, out);
  bool valid = list->count == (uint64_t)r->out->layers;
  *out = 0;
  for (uint64_t i = 0; i < list->count && valid; i++) {
    const double n = lp_gguf_number(list, i);
    valid = n == 0 ? lacks : n >= 1 && n <= (double)LP_GGUF_MOST_SIZE && (*out == 0 || n == (double)*out);
    if (valid && n > 0) *out = (int64_t)n;
  }
  if (*out == 0) *out = otherwise > 0 ? otherwise : 1;
  return valid ? LP_OK
               : lp_error(r->diag, LP_LOC_FILE(r->file->path), "'%s' is not one number for all layers with it", key);
}

/* The last layers of a file may guess further tokens. */
static lp_status read_predictors(const lp_gguf_reader *r) {
  lp_decoder *d = r->out;
  d->predictors = lp_gguf_i64(r->file, lp_gguf_key(r, "nextn_predict_layers"), 0);
  d->layers -= d->predictors;
  if (d->predictors >= 0 && d->layers >= 1) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "%" PRId64 " layers beside the model's are not supported",
                  d->predictors);
}

static lp_status read_sizes(const lp_gguf_reader *r) {
  lp_decoder *d = r->out;
  int64_t value_length;
  const lp_stored *table = lp_weights_find(r->weights, "token_embd.weight");
  LP_TRY(lp_gguf_size(r, "block_count", -1, &d->layers));
  LP_TRY(lp_gguf_size(r, "embedding_length", -1, &d->hidden));
  if (r->arch->sparse) d->ffn = lp_gguf_i64(r->file, lp_gguf_key(r, "expert_feed_forward_length"), -1);
  LP_TRY(read_layered(r, "feed_forward_length", d->ffn ? d->ffn : -1, r->arch->alone, &d->ffn));
  LP_TRY(lp_gguf_size(r, "attention.head_count", -1, &d->heads));
  const bool lacks = r->arch->other != LP_GGUF_ATTENDS && !r->arch->both;
  LP_TRY(read_layered(r, "attention.head_count_kv", d->heads, lacks, &d->kv_heads));
  LP_TRY(lp_gguf_size(r, "attention.key_length", d->hidden / d->heads, &d->head_dim));
  LP_TRY(lp_gguf_size(r, "attention.value_length", d->head_dim, &value_length));
  lp_loc loc = LP_LOC_FILE(r->file->path);
  if (r->arch->keys & LP_GGUF_LATENT) LP_TRY(read_latent(r, d->head_dim, value_length));
  LP_TRY(read_predictors(r));
  if (d->layers > LP_GGUF_MOST_LAYERS || d->heads % d->kv_heads != 0 ||
      (value_length != d->head_dim && !(r->arch->keys & LP_GGUF_LATENT)))
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

/* Reads how experts are chosen, where the files say it; the keys of groups are absent in DeepSeek's older ones. */
static lp_status read_groups(const lp_gguf_reader *r) {
  lp_mixture *m = &r->out->mixture;
  const int64_t gating = lp_gguf_i64(r->file, lp_gguf_key(r, "expert_gating_func"), r->arch->sigmoid ? 2 : 1);
  const int64_t shared = lp_gguf_i64(r->file, lp_gguf_key(r, "expert_shared_count"), 0);
  const bool counted = shared >= 0 && shared <= LP_GGUF_MOST_SIZE / m->ffn;
  LP_TRY(lp_gguf_size(r, "expert_group_count", 1, &m->groups));
  LP_TRY(lp_gguf_size(r, "expert_group_used_count", 1, &m->taken));
  m->route = gating == 2 ? LP_ROUTE_SIGMOID : LP_ROUTE_SOFTMAX;
  m->summed = gating == 2 ? 2 : 1;
  m->scale = lp_gguf_number_at(r, "expert_weights_scale", 1);
  m->normalised = lp_gguf_bool(r->file, lp_gguf_key(r, "expert_weights_norm"), r->arch->normalised);
  m->least = r->arch->least;
  if (shared > 0 && counted)
    LP_TRY(lp_gguf_size(r, "expert_shared_feed_forward_length", shared * m->ffn, &m->shared_ffn));
  if ((gating == 1 || gating == 2) && counted && m->scale > 0 && m->taken <= m->groups && m->experts % m->groups == 0 &&
      m->chosen <= m->experts / m->groups * m->taken)
    return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                  "experts with gating %" PRId64 ", %" PRId64 " of %" PRId64 " groups, %" PRId64
                  " shared ones and the scale %g are not supported",
                  gating, m->taken, m->groups, shared, m->scale);
}

/* Reads the experts, where the file has them. */
static lp_status read_mixture(const lp_gguf_reader *r) {
  lp_mixture *m = &r->out->mixture;
  if (!r->arch->sparse && lp_gguf_i64(r->file, lp_gguf_key(r, "expert_count"), 0) == 0) return LP_OK;
  LP_TRY(lp_gguf_size(r, "expert_count", -1, &m->experts));
  LP_TRY(lp_gguf_size(r, "expert_used_count", -1, &m->chosen));
  LP_TRY(lp_gguf_size(r, "expert_feed_forward_length", r->out->ffn, &m->ffn));
  const char *shared = lp_gguf_key(r, "expert_shared_feed_forward_length");
  const bool shares =
      r->arch->keys & LP_GGUF_FACTORS ? lp_gguf_i64(r->file, shared, 0) != 0 : !(r->arch->keys & LP_GGUF_GATED);
  if (r->out->names[LP_ROLE_SHARED_UP] && shares)
    LP_TRY(lp_gguf_size(r, "expert_shared_feed_forward_length", r->out->ffn, &m->shared_ffn));
  if (lp_gguf_find(r->file, lp_gguf_key(r, "moe_latent_size")))
    LP_TRY(lp_gguf_size(r, "moe_latent_size", -1, &m->latent));
  m->ungated = !r->out->names[LP_ROLE_EXPERT_GATE];
  m->normalised = r->arch->normalised;
  if (r->arch->clamped) m->route = LP_ROUTE_CHOSEN, m->limit = 7, m->alpha = 1.702;
  m->scale = 1;
  if (r->arch->keys & LP_GGUF_GATED) LP_TRY(read_groups(r));
  if (m->chosen <= m->experts && r->out->names[LP_ROLE_ROUTER]) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "%" PRId64 " of %" PRId64 " experts are not supported for '%s'",
                  m->chosen, m->experts, r->arch->name);
}

/* Tells whether the layer's number in a list is not 0. */
static bool has(const lp_gguf_reader *r, const char *name, int64_t layer) {
  const lp_gguf_value *list = lp_gguf_find(r->file, lp_gguf_key(r, name));
  return !list || !list->is_array || lp_gguf_number(list, (uint64_t)layer) > 0;
}

/* A layer has no attention where its number of key heads is 0, or by an interval. */
static lp_status has_attention(const lp_gguf_reader *r, int64_t layer, bool *out) {
  int64_t interval;
  *out = has(r, "attention.head_count_kv", layer);
  if (!(r->arch->keys & LP_GGUF_INTERVAL)) return LP_OK;
  LP_TRY(lp_gguf_size(r, "full_attention_interval", 4, &interval));
  *out = *out && (layer + 1) % interval == 0;
  return LP_OK;
}

/* Reads which layers have a short convolution, a state space or a gated delta net in place of attention, or beside
 * it. */
static lp_status read_taps(const lp_gguf_reader *r, int64_t layer, lp_decoder_layer *out) {
  const bool convolves = r->arch->other == LP_GGUF_CONVOLVES;
  bool attends;
  out->both = r->arch->both;
  if (r->arch->other == LP_GGUF_ATTENDS || out->only_feeds) return LP_OK;
  LP_TRY(has_attention(r, layer, &attends));
  if (attends && !out->both) return LP_OK;
  out->scans = !convolves;
  LP_TRY(lp_gguf_size(r, convolves ? "shortconv.l_cache" : "ssm.conv_kernel", -1, &out->taps));
  if (out->taps > 1 && out->taps <= LP_GGUF_MOST_TAPS) return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path), "convolutions of %" PRId64 " taps; 2 to %d are supported",
                  out->taps, LP_GGUF_MOST_TAPS);
}

static lp_status read_scan(const lp_gguf_reader *r) {
  lp_scan *m = &r->out->scan;
  int64_t inner;
  if (!(r->arch->keys & LP_GGUF_STATE)) return LP_OK;
  LP_TRY(lp_gguf_size(r, "ssm.time_step_rank", -1, &m->heads));
  LP_TRY(lp_gguf_size(r, "ssm.group_count", -1, &m->groups));
  LP_TRY(lp_gguf_size(r, "ssm.state_size", -1, &m->state));
  LP_TRY(lp_gguf_size(r, "ssm.inner_size", -1, &inner));
  m->width = inner / m->heads;
  m->delta = r->out->gates_queries = r->arch->other != LP_GGUF_SCANS;
  m->activation = m->delta ? NULL : "silu";
  m->tiled = r->arch->other == LP_GGUF_DELTA_TILED;
  m->rates = true;
  if (m->heads % m->groups == 0 && inner % m->heads == 0 && inner <= LP_GGUF_MOST_SIZE / 4 &&
      m->groups <= LP_GGUF_MOST_SIZE / 4 / m->state)
    return LP_OK;
  return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                  "%" PRId64 " heads in %" PRId64 " groups do not go together with %" PRId64 " elements", m->heads,
                  m->groups, inner);
}

static lp_status read_layers(const lp_gguf_reader *r) {
  lp_decoder_layer *layer = LP_NEW_ARRAY(r->arena, lp_decoder_layer, r->out->layers);
  int64_t window = lp_gguf_i64(r->file, lp_gguf_key(r, "attention.sliding_window"), 0), pattern = r->arch->pattern;
  const int64_t dense = lp_gguf_i64(r->file, lp_gguf_key(r, "leading_dense_block_count"), 0);
  bool wanted = pattern > 0, allowed = wanted || r->arch->windows;
  if (window < 0 || window > LP_GGUF_MOST_SIZE || (window > 0 ? !allowed : wanted))
    return lp_error(r->diag, LP_LOC_FILE(r->file->path), "a sliding window of %" PRId64 " is not supported for '%s'",
                    window, r->arch->name);
  /* llama.cpp: whether Granite rotates */
  const bool turned =
      !(r->arch->keys & LP_GGUF_FACTORS) || lp_gguf_bool(r->file, lp_gguf_key(r, "rope.scaling.finetuned"), true);
  for (int64_t i = 0; i < r->out->layers; i++) {
    bool windowed = r->arch->windows || (pattern > 0 && (i + 1) % pattern != 0);
    bool rotates = turned && !r->out->positions && (r->arch->no_rope == 0 || (i + 1) % r->arch->no_rope != 0);
    const bool feeds = !r->arch->alone || has(r, "feed_forward_length", i);
    layer[i] = (lp_decoder_layer){.sparse = feeds && r->out->mixture.experts > 0 && i >= dense,
                                  .only_feeds = feeds && r->arch->alone,
                                  .only_mixes = !feeds,
                                  .window = windowed ? window : 0,
                                  .rotary = !rotates ? -1 : windowed && r->arch->local_base > 0};
    LP_TRY(read_taps(r, i, &layer[i]));
  }
  r->out->layer = layer;
  return LP_OK;
}

/* Reads the epsilon of the norms and the factors and caps of scores and logits. */
static lp_status read_numbers(const lp_gguf_reader *r) {
  lp_decoder *d = r->out;
  lp_loc loc = LP_LOC_FILE(r->file->path);
  d->epsilon = lp_gguf_number_at(
      r, d->norm == LP_NORM_RMS ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 0);
  if (d->epsilon <= 0) return lp_error(r->diag, loc, "the epsilon of the norms is absent or not positive");
  int64_t size = r->arch->wide == d->layers       ? d->hidden / d->heads
                 : r->arch->keys & LP_GGUF_LATENT ? d->latent.plain + d->latent.rotated
                                                  : d->head_dim;
  d->attention_scale = 1 / sqrt((double)size);
  d->attention_softcap = lp_gguf_number_at(r, "attn_logit_softcapping", 0);
  d->logit_softcap = lp_gguf_number_at(r, "final_logit_softcapping", 0);
  d->clip_qkv = lp_gguf_number_at(r, "attention.clamp_kqv", 0);
  if (d->attention_softcap < 0 || d->logit_softcap < 0 || d->clip_qkv < 0 ||
      (r->arch->capped && (d->attention_softcap == 0 || d->logit_softcap == 0)))
    return lp_error(r->diag, loc, "the soft caps of scores and logits are absent or negative");
  if (r->arch->scales_embedding) d->embedding_scale = sqrt((double)d->hidden);
  if (!(r->arch->keys & LP_GGUF_FACTORS)) return LP_OK;
  d->embedding_scale = lp_gguf_number_at(r, "embedding_scale", 1);
  d->residual_scale = lp_gguf_number_at(r, "residual_scale", 1);
  d->attention_scale = lp_gguf_number_at(r, "attention.scale", d->attention_scale);
  d->logit_scale = 1 / lp_gguf_number_at(r, "logit_scale", 1);
  bool valid = d->embedding_scale > 0 && d->residual_scale > 0 && d->attention_scale > 0 && d->logit_scale > 0 &&
               isfinite(d->logit_scale);
  return valid ? LP_OK : lp_error(r->diag, loc, "a factor of embeddings, scores, branches or logits is not positive");
}

lp_status lp_gguf_config(const lp_gguf *file, lp_arena *arena, lp_weights *weights, lp_decoder *out, lp_diag *diag) {
  lp_gguf_reader r = {.file = file, .arena = arena, .weights = weights, .out = out, .diag = diag};
  const char *name = lp_gguf_string(file, "general.architecture");
  r.arch = lp_gguf_architecture_find(name);
  if (!r.arch)
    return lp_error(diag, LP_LOC_FILE(file->path), "models of architecture '%.40s' are not supported: %s",
                    name ? name : "", lp_gguf_architecture_names(arena));
  bool whole = !r.arch->apart || lp_weights_find(weights, r.arch->of);
  *out = (lp_decoder){.names = whole ? r.arch->names : r.arch->apart,
                      .activation = r.arch->activation,
                      .norm = r.arch->norm,
                      .embedding_scale = 1,
                      .residual_scale = 1,
                      .logit_scale = 1,
                      .parallel = r.arch->parallel,
                      .norm_whole_heads = r.arch->norm_whole_heads,
                      .rotary_interleaved = r.arch->neighbours};
  LP_TRY(lp_gguf_check_keys(&r));
  LP_TRY(read_sizes(&r));
  LP_TRY(read_numbers(&r));
  if (lp_gguf_bool(file, lp_gguf_key(&r, "use_parallel_residual"), false)) out->parallel = true;
  if (out->positions == 0) LP_TRY(lp_gguf_read_rotary(&r));
  LP_TRY(read_mixture(&r));
  LP_TRY(read_scan(&r));
  return read_layers(&r);
}
