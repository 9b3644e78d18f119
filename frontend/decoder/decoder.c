/* Builds the graph of a decoder from its description: see decoder.h. */
#include "frontend/decoder/decoder.h"
#include "base/poly.h"
#include "frontend/decoder/parts.h"

#include <string.h>

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Builds a norm over the last axis, which has `size` elements. */
static lp_value *norm(lp_builder *b, lp_value *x, lp_role role, int64_t size) {
  const lp_decoder *d = b->d;
  lp_value *in[] = {x, NULL, NULL};
  lp_status status = LP_OK;
  lp_part_enter(b, role);
  if (!x || b->g.status != LP_OK) return NULL;
  if (d->norm == LP_NORM_LAYER_PLAIN) {
    float *ones = LP_NEW_ARRAY(b->g.module->arena, float, size);
    for (int64_t i = 0; i < size; i++)
      ones[i] = 1;
    in[1] = lp_graph_floats(&b->g, 1, &size, ones);
  } else {
    status = lp_weights_vector(b->w, lp_part_name(b, role, ".weight"), 0, size, size, d->norm_offset, &in[1]);
  }
  bool biased = d->norm == LP_NORM_LAYER && lp_part_has(b, role, ".bias");
  if (status == LP_OK && biased)
    status = lp_weights_vector(b->w, lp_part_name(b, role, ".bias"), 0, size, size, 0, &in[2]);
  if (status != LP_OK) return lp_part_fail(b, status);
  lp_kind kind = d->norm == LP_NORM_RMS ? LP_ONNX_RMSNormalization : LP_ONNX_LayerNormalization;
  lp_op *op = lp_graph_begin(&b->g, kind, biased ? 3 : 2, in, 1);
  if (op) lp_op_set_i64(b->g.module, op, "axis", -1);
  if (op) lp_op_set_f64(b->g.module, op, "epsilon", d->epsilon);
  return lp_graph_end(&b->g, op);
}

static lp_value *norm_if_named(lp_builder *b, lp_value *x, lp_role role) {
  return b->d->names[role] ? norm(b, x, role, b->d->hidden) : x;
}

/* cap * tanh(x / cap) */
static lp_value *soft_capped(lp_builder *b, lp_value *x, double cap) {
  if (cap == 0 || !x) return x;
  x = lp_graph_op1(&b->g, LP_ONNX_Tanh, lp_graph_op2(&b->g, LP_ONNX_Div, x, lp_graph_float(&b->g, cap)));
  return lp_part_scaled(b, x, cap);
}

static lp_value *clipped(lp_builder *b, lp_value *x, double limit) {
  if (limit == 0 || !x) return x;
  lp_value *in[] = {x, lp_graph_float(&b->g, -limit), lp_graph_float(&b->g, limit)};
  return lp_graph_end(&b->g, lp_graph_begin(&b->g, LP_ONNX_Clip, 3, in, 1));
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* The frequencies [1, 1, dim / 2]: those beyond the limit when a position of any sequence reaches it, as in
 * transformers' longrope_frequency_update. */
static lp_value *frequencies(lp_builder *b, const lp_rotary *r) {
  const int64_t dim[] = {1, 1, r->dim / 2}, last = r->limit - 1;
  lp_value *near = lp_graph_floats(&b->g, 3, dim, r->inverse);
  if (!r->beyond) return near;
  lp_op *highest = lp_graph_begin(&b->g, LP_ONNX_ReduceMax, 1, &b->positions, 1);
  if (highest) lp_op_set_i64(b->g.module, highest, "keepdims", 0);
  lp_value *in[] = {lp_graph_op2(&b->g, LP_ONNX_Greater, lp_graph_end(&b->g, highest), lp_graph_ints(&b->g, 1, &last)),
                    lp_graph_floats(&b->g, 3, dim, r->beyond), near};
  if (!in[0] || !in[1] || !in[2]) return NULL;
  return lp_graph_end(&b->g, lp_graph_begin(&b->g, LP_ONNX_Where, 3, in, 1));
}

/* Cosines and sines of the positions, in f32. */
static void make_tables(lp_builder *b, int32_t rotary) {
  static const int64_t last = 2;
  const lp_rotary *r = &b->d->rotary[rotary];
  if (b->cosine[rotary]) return;
  b->g.node = lp_arena_format(b->g.module->arena, "rotary_emb%s", rotary ? "_local" : "");
  lp_value *positions = lp_graph_cast(&b->g, b->positions, LP_F32);
  lp_value *column = lp_graph_op2(&b->g, LP_ONNX_Unsqueeze, positions, lp_graph_ints(&b->g, 1, &last));
  lp_value *angles = lp_graph_op2(&b->g, LP_ONNX_Mul, column, frequencies(b, r));
  b->cosine[rotary] = lp_part_scaled(b, lp_graph_op1(&b->g, LP_ONNX_Cos, angles), r->scale);
  b->sine[rotary] = lp_part_scaled(b, lp_graph_op1(&b->g, LP_ONNX_Sin, angles), r->scale);
}

static lp_value *rotated(lp_builder *b, lp_value *x, int64_t heads) {
  int32_t rotary = b->d->layer[b->index].rotary;
  if (rotary < 0 || !x) return x;
  const char *node = b->g.node;
  make_tables(b, rotary);
  b->g.node = node;
  lp_value *in[] = {x, b->cosine[rotary], b->sine[rotary]};
  lp_op *op = in[1] && in[2] ? lp_graph_begin(&b->g, LP_ONNX_RotaryEmbedding, 3, in, 1) : NULL;
  if (!op) return NULL;
  lp_op_set_i64(b->g.module, op, "num_heads", heads);
  lp_op_set_i64(b->g.module, op, "rotary_embedding_dim", b->d->rotary[rotary].dim);
  if (b->d->rotary_interleaved) lp_op_set_i64(b->g.module, op, "interleaved", 1);
  return lp_graph_end(&b->g, op);
}

/* Queries or keys [b, s, heads * d] with a norm over each head. */
static lp_value *normed_heads(lp_builder *b, lp_value *x, lp_role role, int64_t heads) {
  int64_t d = b->d->head_dim, apart[] = {0, 0, heads, d}, joined[] = {0, 0, heads * d};
  if (!b->d->names[role]) return x;
  if (b->d->norm_whole_heads) return norm(b, x, role, heads * d);
  x = lp_graph_op2(&b->g, LP_ONNX_Reshape, x, lp_graph_ints(&b->g, 4, apart));
  x = norm(b, x, role, d);
  return lp_graph_op2(&b->g, LP_ONNX_Reshape, x, lp_graph_ints(&b->g, 3, joined));
}

/* Queries, keys and values of the layer: [b, s, heads * d] each. */
static void project(lp_builder *b, lp_value *x, lp_value *qkv[3]) {
  static const lp_role roles[] = {LP_ROLE_Q, LP_ROLE_K, LP_ROLE_V};
  const lp_decoder *d = b->d;
  int64_t widths[] = {d->heads * d->head_dim, d->kv_heads * d->head_dim, d->kv_heads * d->head_dim};
  int64_t all = widths[0] + widths[1] + widths[2], first = 0;
  bool packed = d->names[LP_ROLE_QKV] != NULL;
  if (packed && d->transposed) {
    lp_value *in[] = {lp_part_linear(b, x, LP_ROLE_QKV, d->hidden, (lp_span){0, all, all}),
                      lp_graph_ints(&b->g, 3, widths)};
    lp_op *split = lp_graph_begin(&b->g, LP_ONNX_Split, 2, in, 3);
    if (split) lp_op_set_i64(b->g.module, split, "axis", 2);
    lp_value *ok = lp_graph_end(&b->g, split);
    for (int i = 0; i < 3; i++)
      qkv[i] = ok ? split->out[i] : NULL;
    return;
  }
  for (int i = 0; i < 3; i++) {
    qkv[i] = packed ? lp_part_linear(b, x, LP_ROLE_QKV, d->hidden, (lp_span){first, widths[i], all})
                    : lp_part_whole(b, x, roles[i], d->hidden, widths[i]);
    if (!d->names[LP_ROLE_Q_NORM]) qkv[i] = clipped(b, qkv[i], d->clip_qkv);
    first += widths[i];
  }
}

/* The past keys, or values, of this layer. */
static lp_value *past(const lp_builder *b, bool values) {
  return b->g.block->arg[2 + 2 * b->index + values];
}

static lp_value *attention(lp_builder *b, lp_value *x, lp_value **present) {
  const lp_decoder *d = b->d;
  lp_module *m = b->g.module;
  lp_value *qkv[3];
  project(b, x, qkv);
  qkv[0] = normed_heads(b, qkv[0], LP_ROLE_Q_NORM, d->heads);
  qkv[1] = normed_heads(b, qkv[1], LP_ROLE_K_NORM, d->kv_heads);
  for (int i = 0; d->names[LP_ROLE_Q_NORM] && i < 3; i++)
    qkv[i] = clipped(b, qkv[i], d->clip_qkv);
  qkv[0] = rotated(b, qkv[0], d->heads);
  qkv[1] = rotated(b, qkv[1], d->kv_heads);
  if (!qkv[0] || !qkv[1] || !qkv[2]) return NULL;
  lp_part_enter(b, LP_ROLE_O);
  lp_value *in[] = {qkv[0], qkv[1], qkv[2], NULL, past(b, false), past(b, true)};
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_Attention, 6, in, 3);
  if (!op) return NULL;
  lp_op_set_i64(m, op, "q_num_heads", d->heads);
  lp_op_set_i64(m, op, "kv_num_heads", d->kv_heads);
  lp_op_set_i64(m, op, "is_causal", 1);
  lp_op_set_f64(m, op, "scale", d->attention_scale);
  if (d->attention_softcap > 0) lp_op_set_f64(m, op, "softcap", d->attention_softcap);
  if (d->layer[b->index].window > 0) lp_op_set_i64(m, op, "left_window_size", d->layer[b->index].window - 1);
  lp_value *y = lp_graph_end(&b->g, op);
  if (!y) return NULL;
  present[0] = op->out[1];
  present[1] = op->out[2];
  return lp_part_whole(b, y, LP_ROLE_O, d->heads * d->head_dim, d->hidden);
}

/* ---- feed-forward ------------------------------------------------------------------------------------------------ */

static lp_value *mlp(lp_builder *b, lp_value *x) {
  const lp_decoder *d = b->d;
  lp_value *y;
  if (d->layer[b->index].sparse) return lp_part_mixture(b, x);
  if (d->names[LP_ROLE_GATE] && !d->names[LP_ROLE_GATE_UP])
    return lp_part_gated(b, x, LP_ROLE_GATE, LP_ROLE_UP, LP_ROLE_DOWN, d->ffn);
  if (d->names[LP_ROLE_GATE_UP]) {
    lp_value *gate =
        lp_part_activated(b, lp_part_linear(b, x, LP_ROLE_GATE_UP, d->hidden, (lp_span){0, d->ffn, 2 * d->ffn}));
    y = lp_part_linear(b, x, LP_ROLE_GATE_UP, d->hidden, (lp_span){d->ffn, d->ffn, 2 * d->ffn});
    y = lp_graph_op2(&b->g, LP_ONNX_Mul, gate, y);
  } else {
    y = lp_part_activated(b, lp_part_whole(b, x, LP_ROLE_UP, d->hidden, d->ffn));
  }
  return lp_part_whole(b, y, LP_ROLE_DOWN, d->ffn, d->hidden);
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

static lp_value *layer(lp_builder *b, lp_value *x, lp_value **present) {
  lp_value *in = norm_if_named(b, x, LP_ROLE_ATTENTION_NORM);
  lp_value *branch = norm_if_named(b, attention(b, in, present), LP_ROLE_ATTENTION_END_NORM);
  lp_value *middle = added(b, x, branch);
  if (!b->d->parallel) in = norm_if_named(b, middle, LP_ROLE_MLP_NORM);
  branch = norm_if_named(b, mlp(b, in), LP_ROLE_MLP_END_NORM);
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

/* input_ids, position_ids, then keys and values of each layer. */
static lp_op *add_main(lp_module *m, const lp_decoder *d) {
  int32_t count = 2 + 2 * (int32_t)d->layers;
  lp_type *types = LP_NEW_ARRAY(m->arena, lp_type, count);
  const char **names = LP_NEW_ARRAY(m->arena, const char *, count);
  const lp_poly *ids[] = {lp_dim_symbol(m, "b"), lp_dim_symbol(m, "s")};
  const lp_poly *rows[] = {ids[0], lp_dim_const(m, d->kv_heads), lp_dim_symbol(m, "p"), lp_dim_const(m, d->head_dim)};
  types[0] = types[1] = lp_type_make(m, LP_I64, 2, ids);
  names[0] = "input_ids";
  names[1] = "position_ids";
  for (int32_t i = 2; i < count; i++) {
    types[i] = lp_type_make(m, LP_F32, 4, rows);
    names[i] = lp_arena_format(m->arena, "past_key_values.%d.%s", i / 2 - 1, i % 2 ? "value" : "key");
  }
  lp_op *func = lp_module_add_func(m, "main", count, types);
  for (int32_t i = 0; i < count; i++)
    func->region->arg[i]->name = names[i];
  lp_op_set_strs(m, func, "inputs", names, count);
  return func;
}

static void add_return(lp_builder *b, lp_op *func, lp_value **results) {
  lp_module *m = b->g.module;
  int32_t count = 1 + 2 * (int32_t)b->d->layers;
  const char **names = LP_NEW_ARRAY(m->arena, const char *, count);
  names[0] = "logits";
  for (int32_t i = 1; i < count; i++)
    names[i] = lp_arena_format(m->arena, "present.%d.%s", (i - 1) / 2, i % 2 ? "key" : "value");
  for (int32_t i = 0; i < count; i++)
    results[i]->name = names[i];
  lp_op_append(b->g.block, lp_op_create(m, LP_OP_RETURN, LP_LOC_FILE(b->g.path), count, results, 0, NULL));
  lp_op_set_strs(m, func, "outputs", names, count);
}

lp_status lp_decoder_build(lp_module *module, const lp_decoder *decoder, lp_weights *weights, lp_diag *diag) {
  lp_op *func = add_main(module, decoder);
  lp_builder b = {.d = decoder, .w = weights, .index = -1};
  b.g = (lp_graph){.module = module, .block = func->region, .path = weights->path, .diag = diag};
  weights->block = func->region;
  b.ids = func->region->arg[0];
  b.positions = func->region->arg[1];
  lp_value **results = LP_NEW_ARRAY(module->arena, lp_value *, 1 + 2 * decoder->layers);
  lp_value *x = embedded(&b);
  for (b.index = 0; b.index < decoder->layers && x; b.index++)
    x = layer(&b, x, &results[1 + 2 * b.index]);
  results[0] = x ? logits(&b, x) : NULL;
  if (b.g.status != LP_OK) return b.g.status;
  LP_TRY(lp_weights_check_used(weights));
  add_return(&b, func, results);
  return LP_OK;
}
