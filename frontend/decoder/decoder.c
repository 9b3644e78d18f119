/* Builds the graph of a decoder from its description: see decoder.h. */
#include "frontend/decoder/decoder.h"
#include "base/poly.h"
#include "frontend/decoder/parts.h"

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static lp_value *norm_if_named(lp_builder *b, lp_value *x, lp_role role) {
  return b->d->names[role] ? lp_part_norm(b, x, role, b->d->hidden, b->d->epsilon) : x;
}

/* cap * tanh(x / cap) */
static lp_value *soft_capped(lp_builder *b, lp_value *x, double cap) {
  if (cap == 0 || !x) return x;
  x = lp_graph_op1(&b->g, LP_ONNX_Tanh, lp_graph_op2(&b->g, LP_ONNX_Div, x, lp_graph_float(&b->g, cap)));
  return lp_part_scaled(b, x, cap);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static lp_value *embedded(lp_builder *b) {
  const lp_decoder *d = b->d;
  lp_value *x = NULL, *at = NULL;
  lp_part_enter(b, LP_ROLE_EMBEDDING);
  lp_status status =
      lp_weights_rows(b->w, lp_part_name(b, LP_ROLE_EMBEDDING, ".weight"), d->vocab, d->hidden, b->ids, &x);
  if (status != LP_OK) return lp_part_fail(b, status);
  x = lp_part_scaled(b, x, d->embedding_scale);
  if (!d->names[LP_ROLE_POSITIONS] || d->positions == 0) return x;
  const char *name = lp_part_name(b, LP_ROLE_POSITIONS, ".weight");
  status = lp_weights_rows(b->w, name, d->positions, d->hidden, b->positions, &at);
  return status == LP_OK ? lp_graph_op2(&b->g, LP_ONNX_Add, x, at) : lp_part_fail(b, status);
}

static lp_value *added(lp_builder *b, lp_value *x, lp_value *branch) {
  branch = lp_part_scaled(b, branch, b->d->residual_scale);
  return x && branch ? lp_graph_op2(&b->g, LP_ONNX_Add, x, branch) : NULL;
}

/* Attention, what takes its place, or the sum of both, for which the caches of attention are the last. */
static lp_value *mixed(lp_builder *b, lp_value *in, lp_value **present) {
  const lp_decoder_layer *kind = &b->d->layer[b->index];
  const lp_factors *f = b->d->factors;
  lp_value *y = !kind->taps        ? NULL
                : !kind->scans     ? lp_part_convolution(b, in, present)
                : b->d->scan.delta ? lp_part_delta(b, in, present)
                                   : lp_part_scan(b, in, present);
  if (kind->taps > 0 && !kind->both) return y;
  const int32_t before = kind->both ? 2 : 0;
  b->past += before;
  lp_value *attention = lp_part_attention(b, lp_part_scaled(b, in, f ? f->attention_in : 1), present + before);
  b->past -= before;
  attention = lp_part_scaled(b, attention, f ? f->attention_out : 1);
  if (!kind->both) return attention;
  return y && attention ? lp_graph_op2(&b->g, LP_ONNX_Add, y, attention) : NULL;
}

static lp_value *layer(lp_builder *b, lp_value *x, lp_value **present) {
  const lp_decoder_layer *kind = &b->d->layer[b->index];
  lp_value *in = kind->only_feeds ? x : norm_if_named(b, x, LP_ROLE_ATTENTION_NORM), *middle = x, *branch;
  if (!kind->only_feeds) {
    branch = norm_if_named(b, mixed(b, in, present), LP_ROLE_ATTENTION_END_NORM);
    middle = added(b, x, branch);
  }
  if (kind->only_mixes) return middle;
  if (!b->d->parallel) in = norm_if_named(b, middle, LP_ROLE_MLP_NORM);
  branch = norm_if_named(b, kind->sparse ? lp_part_mixture(b, in) : lp_part_mlp(b, in), LP_ROLE_MLP_END_NORM);
  return added(b, middle, branch);
}

/* Tells whether the head is the embedding's table. A file with another head than the configuration states keeps its
 * own, as in transformers 5 (PreTrainedModel.tie_weights). */
static bool shares_table(lp_builder *b) {
  if (!b->d->tied) return false;
  lp_stored *head = lp_weights_find(b->w, lp_part_name(b, LP_ROLE_HEAD, ".weight"));
  const lp_stored *table = lp_weights_find(b->w, lp_part_name(b, LP_ROLE_EMBEDDING, ".weight"));
  if (!head || !table) return true;
  head->used = !head->group && head->dtype == table->dtype && head->bytes == table->bytes &&
               memcmp(lp_weights_bytes(b->w, head), lp_weights_bytes(b->w, table), (size_t)head->bytes) == 0;
  if (!head->used)
    lp_warning(b->g.diag, LP_LOC_FILE(b->g.path),
               "'%s' is not the embedding, although tie_word_embeddings is true: it is used as it is", head->name);
  return head->used;
}

static lp_value *logits(lp_builder *b, lp_value *x) {
  const lp_decoder *d = b->d;
  b->index = -1;
  x = norm_if_named(b, x, LP_ROLE_FINAL_NORM);
  lp_role role = shares_table(b) ? LP_ROLE_EMBEDDING : LP_ROLE_HEAD;
  x = lp_part_scaled(b, lp_part_whole(b, x, role, d->hidden, d->vocab), d->logit_scale);
  return soft_capped(b, x, d->logit_softcap);
}

static int32_t count_caches(const lp_decoder *d) {
  int32_t count = 0;
  for (int64_t i = 0; i < d->layers; i++)
    count += lp_decoder_caches(d, i);
  return count;
}

/* The name of cache `i` of the layer. */
static const char *cache_name(lp_arena *arena, const lp_decoder *d, const char *when, const char *attention,
                              int64_t layer, int32_t i) {
  if (d->layer[layer].taps > 0 && i < 2)
    return lp_arena_format(arena, "%s_%s.%" PRId64, when, i ? "state" : "conv", layer);
  return lp_arena_format(arena, "%s.%" PRId64 ".%s", attention, layer, i % 2 ? "value" : "key");
}

/* input_ids, position_ids, then the caches of each layer. */
static lp_op *add_main(lp_module *m, const lp_decoder *d) {
  const int32_t count = 2 + count_caches(d);
  lp_type *types = LP_NEW_ARRAY(m->arena, lp_type, count);
  const char **names = LP_NEW_ARRAY(m->arena, const char *, count);
  const lp_poly *ids[] = {lp_dim_symbol(m, "b"), lp_dim_symbol(m, "s")};
  const lp_poly *rows[] = {ids[0], lp_dim_const(m, d->kv_heads), lp_dim_symbol(m, "p"), lp_dim_const(m, d->head_dim)};
  const lp_poly *state[] = {ids[0], lp_dim_const(m, d->scan.heads), lp_dim_const(m, d->scan.state),
                            lp_dim_const(m, d->scan.width)};
  types[0] = types[1] = lp_type_make(m, LP_I64, 2, ids);
  names[0] = "input_ids";
  names[1] = "position_ids";
  for (int64_t layer = 0, at = 2; layer < d->layers; layer++) {
    const lp_poly *columns[] = {ids[0], lp_dim_const(m, lp_decoder_channels(d, layer)),
                                lp_dim_const(m, d->layer[layer].taps - 1)};
    for (int32_t i = 0; i < lp_decoder_caches(d, layer); i++, at++) {
      if (d->layer[layer].taps > 0 && i == 0)
        types[at] = lp_type_make(m, LP_F32, 3, columns);
      else
        types[at] = lp_type_make(m, LP_F32, 4, d->layer[layer].scans && i == 1 ? state : rows);
      names[at] = cache_name(m->arena, d, "past", "past_key_values", layer, i);
    }
  }
  lp_op *func = lp_module_add_func(m, "main", count, types);
  for (int32_t i = 0; i < count; i++)
    func->region->arg[i]->name = names[i];
  lp_op_set_strs(m, func, "inputs", names, count);
  return func;
}

static void add_return(lp_builder *b, lp_op *func, lp_value **results) {
  lp_module *m = b->g.module;
  const int32_t count = 1 + count_caches(b->d);
  const char **names = LP_NEW_ARRAY(m->arena, const char *, count);
  names[0] = "logits";
  for (int64_t layer = 0, at = 1; layer < b->d->layers; layer++)
    for (int32_t i = 0; i < lp_decoder_caches(b->d, layer); i++)
      names[at++] = cache_name(m->arena, b->d, "present", "present", layer, i);
  for (int32_t i = 0; i < count; i++)
    if (results[i]) results[i]->name = names[i];
  lp_op_append(b->g.block, lp_op_create(m, LP_OP_RETURN, LP_LOC_FILE(b->g.path), count, results, 0, NULL));
  lp_op_set_strs(m, func, "outputs", names, count);
}

static lp_status check_biases(lp_builder *b) {
  for (int role = 0; role < LP_ROLE_COUNT; role++)
    for (b->index = 0; b->index < b->d->layers && b->d->names[role] && b->d->unbiased >> role & 1; b->index++)
      if (lp_part_has(b, (lp_role)role, ".bias"))
        return lp_error(b->g.diag, LP_LOC_FILE(b->g.path),
                        "the file has '%.120s', and its configuration says that there are no biases",
                        lp_part_name(b, (lp_role)role, ".bias"));
  b->index = -1;
  return LP_OK;
}

/* Layers after the last guess further tokens. */
static void leave_out_predictors(const lp_builder *b) {
  const char *form = b->d->names[LP_ROLE_O], *digit = strstr(form, "%d");
  for (size_t i = 0; i < lp_map_count(b->w->tensors); i++) {
    const char *name = lp_map_key_at(b->w->tensors, i);
    if (strncmp(name, form, (size_t)(digit - form)) != 0) continue;
    const int64_t layer = strtoll(name + (digit - form), NULL, 10);
    if (layer >= b->d->layers && layer < b->d->layers + b->d->predictors)
      ((lp_stored *)lp_map_value_at(b->w->tensors, i))->used = true;
  }
}

lp_status lp_decoder_build(lp_module *module, const lp_decoder *decoder, lp_weights *weights, lp_diag *diag) {
  lp_op *func = add_main(module, decoder);
  lp_builder b = {.d = decoder, .w = weights, .index = -1};
  b.g = (lp_graph){.module = module, .block = func->region, .path = weights->path, .diag = diag};
  weights->block = func->region;
  b.ids = func->region->arg[0];
  b.positions = func->region->arg[1];
  LP_TRY(check_biases(&b));
  b.past = &func->region->arg[2];
  lp_value **results = LP_NEW_ARRAY(module->arena, lp_value *, 1 + count_caches(decoder)), **present = &results[1];
  lp_value *x = embedded(&b);
  for (b.index = 0; b.index < decoder->layers && x; b.index++) {
    x = layer(&b, x, present);
    b.past += lp_decoder_caches(decoder, b.index);
    present += lp_decoder_caches(decoder, b.index);
  }
  results[0] = x ? logits(&b, x) : NULL;
  if (b.g.status != LP_OK) return b.g.status;
  leave_out_predictors(&b);
  LP_TRY(lp_weights_check_used(weights));
  add_return(&b, func, results);
  return LP_OK;
}
