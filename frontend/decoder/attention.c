/* The attention of a layer: over keys and values of heads, or over latents. */
#include "frontend/decoder/parts.h"

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
  if (!b->d->names[role] || (b->d->norm_unscaled && b->d->layer[b->index].rotary < 0)) return x;
  if (b->d->norm_whole_heads) return lp_part_norm(b, x, role, heads * d, b->d->epsilon);
  x = lp_graph_op2(&b->g, LP_ONNX_Reshape, x, lp_graph_ints(&b->g, 4, apart));
  x = lp_part_norm(b, x, role, d, b->d->epsilon);
  return lp_graph_op2(&b->g, LP_ONNX_Reshape, x, lp_graph_ints(&b->g, 3, joined));
}

/* Parts the queries of heads from the gates that follow each of them. */
static lp_value *part_gates(lp_builder *b, lp_value **q) {
  const int64_t heads = b->d->heads, d = b->d->head_dim, widths[] = {d, d};
  const int64_t apart[] = {0, 0, heads, 2 * d}, joined[] = {0, 0, heads * d};
  lp_value *parts[2];
  lp_part_split(b, lp_part_reshaped(b, *q, LP_COUNT(apart), apart), 2, widths, parts);
  *q = lp_part_reshaped(b, parts[0], LP_COUNT(joined), joined);
  return lp_graph_op1(&b->g, LP_ONNX_Sigmoid, lp_part_reshaped(b, parts[1], LP_COUNT(joined), joined));
}

/* Queries, keys and values of the layer: [b, s, heads * d] each. */
static void project(lp_builder *b, lp_value *x, lp_value *qkv[3]) {
  static const lp_role roles[] = {LP_ROLE_Q, LP_ROLE_K, LP_ROLE_V};
  const lp_decoder *d = b->d;
  int64_t widths[] = {d->heads * d->head_dim * (d->gates_queries ? 2 : 1), d->kv_heads * d->head_dim,
                      d->kv_heads * d->head_dim};
  int64_t all = widths[0] + widths[1] + widths[2], first = 0;
  bool packed = d->names[LP_ROLE_QKV] != NULL;
  if (packed && d->transposed) {
    lp_part_split(b, lp_part_linear(b, x, LP_ROLE_QKV, d->hidden, (lp_span){0, all, all}), 3, widths, qkv);
    return;
  }
  for (int i = 0; i < 3; i++) {
    qkv[i] = packed ? lp_part_linear(b, x, LP_ROLE_QKV, d->hidden, (lp_span){first, widths[i], all})
                    : lp_part_whole(b, x, roles[i], d->hidden, widths[i]);
    if (!d->names[LP_ROLE_Q_NORM]) qkv[i] = clipped(b, qkv[i], d->clip_qkv);
    first += widths[i];
  }
}

static lp_value *size_of(lp_builder *b, lp_value *x, int64_t axis) {
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_Gather, 2,
                             (lp_value *[]){lp_graph_op1(&b->g, LP_ONNX_Shape, x), lp_graph_int(&b->g, axis)}, 1);
  return lp_graph_end(&b->g, op);
}

/* True where a key is in the chunk of the query. */
static lp_value *chunk_mask(lp_builder *b, int64_t chunk) {
  if (chunk == 0 || b->chunk) return chunk ? b->chunk : NULL;
  const char *node = b->g.node;
  b->g.node = "chunks";
  lp_value *size = lp_graph_int(&b->g, chunk);
  lp_value *keys[] = {lp_graph_int(&b->g, 0),
                      lp_graph_op2(&b->g, LP_ONNX_Add, size_of(b, b->past[0], 2), size_of(b, b->ids, 1)),
                      lp_graph_int(&b->g, 1)};
  lp_value *of_keys = keys[1] ? lp_graph_end(&b->g, lp_graph_begin(&b->g, LP_ONNX_Range, 3, keys, 1)) : NULL;
  of_keys = lp_graph_op2(&b->g, LP_ONNX_Div, of_keys, size);
  lp_value *of_queries =
      lp_graph_op2(&b->g, LP_ONNX_Div, lp_part_unsqueezed(b, lp_part_unsqueezed(b, b->positions, 1), 3), size);
  b->chunk = lp_graph_op2(&b->g, LP_ONNX_Equal, of_queries, of_keys);
  b->g.node = node;
  return b->chunk;
}

/* The temperature of attention by position (Nakanishi, "Scalable-Softmax", as transformers' Llama4TextAttention has
 * it). */
static lp_value *tuned(lp_builder *b, lp_value *q) {
  const lp_decoder *d = b->d;
  if (d->tuning_floor == 0 || d->layer[b->index].rotary >= 0) return q;
  if (!b->tuning) {
    const char *node = b->g.node;
    lp_value *one = lp_graph_float(&b->g, 1);
    b->g.node = "attention_temperature";
    lp_value *x = lp_graph_cast(&b->g, lp_part_unsqueezed(b, b->positions, 2), LP_F32);
    x = lp_graph_op2(&b->g, LP_ONNX_Div, lp_graph_op2(&b->g, LP_ONNX_Add, x, one),
                     lp_graph_float(&b->g, d->tuning_floor));
    x = lp_graph_op2(&b->g, LP_ONNX_Add, lp_graph_op1(&b->g, LP_ONNX_Floor, x), one);
    x = lp_graph_op2(&b->g, LP_ONNX_Mul, lp_graph_op1(&b->g, LP_ONNX_Log, x), lp_graph_float(&b->g, d->tuning_scale));
    b->tuning = lp_graph_op2(&b->g, LP_ONNX_Add, x, one);
    b->g.node = node;
  }
  return lp_graph_op2(&b->g, LP_ONNX_Mul, q, b->tuning);
}

/* Attends over the past and new rows of keys and values, [b, s, heads * d]; results 1 and 2 are the caches. */
static lp_op *attend(lp_builder *b, lp_value *q, lp_value *k, lp_value *v) {
  const lp_decoder *d = b->d;
  lp_module *m = b->g.module;
  if (!q || !k || !v) return NULL;
  lp_part_enter(b, LP_ROLE_O);
  lp_value *in[] = {
      q, k, v, chunk_mask(b, d->layer[b->index].chunk), b->past[0], b->past[d->latent.rank > 0 ? 0 : 1], NULL, NULL};
  if (d->names[LP_ROLE_SINKS]) {
    const char *name = lp_part_name(b, LP_ROLE_SINKS, "");
    lp_status status = lp_weights_vector(b->w, name, 0, d->heads, d->heads, 0, &in[7]);
    if (status != LP_OK) return (void)lp_part_fail(b, status), NULL;
  }
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_Attention, in[7] ? 8 : 6, in, 3);
  if (!op) return NULL;
  lp_op_set_i64(m, op, "q_num_heads", d->heads);
  lp_op_set_i64(m, op, "kv_num_heads", d->kv_heads);
  lp_op_set_i64(m, op, "is_causal", 1);
  lp_op_set_f64(m, op, "scale", d->attention_scale);
  if (d->attention_softcap > 0) lp_op_set_f64(m, op, "softcap", d->attention_softcap);
  if (d->layer[b->index].window > 0) lp_op_set_i64(m, op, "left_window_size", d->layer[b->index].window - 1);
  return lp_graph_end(&b->g, op) ? op : NULL;
}

/* ---- latents ----------------------------------------------------------------------------------------------------- */

static lp_value *reshaped(lp_builder *b, lp_value *x, int64_t heads, int64_t width) {
  const int64_t joined[] = {0, 0, heads * width}, apart[] = {0, 0, heads, width};
  const bool flat = x && x->type.rank == 4;
  return x ? lp_graph_op2(&b->g, LP_ONNX_Reshape, x, lp_graph_ints(&b->g, flat ? 3 : 4, flat ? joined : apart)) : NULL;
}

/* [b, s, heads]: the number of each head. */
static lp_value *numbers(lp_builder *b) {
  const int64_t heads = b->d->heads;
  int64_t *each = LP_NEW_ARRAY(b->g.module->arena, int64_t, heads);
  if (b->numbers) return b->numbers;
  for (int64_t i = 0; i < heads; i++)
    each[i] = i;
  b->g.node = "heads";
  lp_value *all = lp_graph_op1(&b->g, LP_ONNX_Shape, b->ids);
  all = lp_part_joined(b, all, lp_graph_ints(&b->g, 1, &heads));
  b->numbers = all ? lp_graph_op2(&b->g, LP_ONNX_Expand, lp_graph_ints(&b->g, heads, each), all) : NULL;
  return b->numbers;
}

/* Multiplies [b, s, heads, n] by each head's own rows of KV_B, those of keys or of values: KV_B expands a latent to the
 * heads' keys and values. Because (W x) . q = x . (W^T q), queries go to latents instead, and so does the result. */
static lp_value *by_head(lp_builder *b, lp_value *x, bool values) {
  const lp_latent *l = &b->d->latent;
  lp_value *in[] = {x, numbers(b), NULL};
  if (!x || b->g.status != LP_OK) return NULL;
  const lp_role own = values ? LP_ROLE_V_B : LP_ROLE_K_B;
  const bool apart = lp_part_has(b, own, "");
  const char *name = apart ? lp_part_name(b, own, "") : lp_part_name(b, LP_ROLE_KV_B, ".weight");
  lp_weight_stack part = {.experts = b->d->heads,
                          .first = values ? l->plain : 0,
                          .rows = values ? l->value : l->plain,
                          .all = l->plain + l->value,
                          .columns = l->rank};
  const lp_weight_stack turned = {.experts = b->d->heads,
                                  .rows = values ? l->value : l->rank,
                                  .all = values ? l->value : l->rank,
                                  .columns = values ? l->rank : l->plain};
  lp_status status =
      apart ? lp_weights_stack(b->w, 1, &name, turned, &in[2]) : lp_weights_heads(b->w, name, part, !values, &in[2]);
  if (status != LP_OK) return lp_part_fail(b, status);
  b->g.node = name;
  lp_op *op = lp_graph_begin(&b->g, LP_ONNX_Experts, 3, in, 1);
  if (op) lp_op_set_i64(b->g.module, op, "experts", b->d->heads);
  return lp_graph_end(&b->g, op);
}

/* Queries of heads: over latents, then the rotated part. */
static lp_value *latent_queries(lp_builder *b, lp_value *x) {
  const lp_latent *l = &b->d->latent;
  const int64_t heads = b->d->heads, widths[] = {l->plain, l->rotated}, width = l->plain + l->rotated;
  lp_value *parts[2];
  if (l->query_rank > 0) {
    x = lp_part_whole(b, x, LP_ROLE_Q_A, b->d->hidden, l->query_rank);
    x = lp_part_norm(b, x, LP_ROLE_Q_A_NORM, l->query_rank, l->epsilon);
    x = lp_part_whole(b, x, LP_ROLE_Q_B, l->query_rank, heads * width);
  } else {
    x = lp_part_whole(b, x, LP_ROLE_Q, b->d->hidden, heads * width);
  }
  lp_part_split(b, reshaped(b, x, heads, width), 2, widths, parts);
  parts[0] = by_head(b, parts[0], false);
  parts[1] = rotated(b, reshaped(b, parts[1], heads, l->rotated), heads);
  x = lp_part_joined(b, parts[0], reshaped(b, parts[1], heads, l->rotated));
  return reshaped(b, x, heads, l->rank + l->rotated);
}

/* Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", section 2.1) in the form in which the cache has latents: one
 * head of keys, the latent and a rotated part, of which the latent is also the value. */
static lp_value *latent_attention(lp_builder *b, lp_value *x, lp_value **present) {
  const lp_latent *l = &b->d->latent;
  const int64_t heads = b->d->heads, all = l->rank + l->rotated, widths[] = {l->rank, l->rotated};
  lp_value *q = latent_queries(b, x), *parts[2];
  lp_value *k = lp_part_linear(b, x, LP_ROLE_KV_A, b->d->hidden, (lp_span){0, l->rank, all});
  lp_value *turned = lp_part_linear(b, x, LP_ROLE_KV_A, b->d->hidden, (lp_span){l->rank, l->rotated, all});
  turned = rotated(b, turned, 1);
  k = lp_part_joined(b, lp_part_norm(b, k, LP_ROLE_KV_A_NORM, l->rank, l->epsilon), turned);
  lp_op *op = attend(b, q, k, k);
  if (!op) return NULL;
  present[0] = op->out[1];
  lp_part_split(b, reshaped(b, op->out[0], heads, all), 2, widths, parts);
  lp_value *y = reshaped(b, by_head(b, parts[0], true), heads, l->value);
  return lp_part_whole(b, y, LP_ROLE_O, heads * l->value, b->d->hidden);
}

lp_value *lp_part_attention(lp_builder *b, lp_value *x, lp_value **present) {
  const lp_decoder *d = b->d;
  lp_value *qkv[3];
  if (d->latent.rank > 0) return latent_attention(b, x, present);
  project(b, x, qkv);
  lp_value *gate = d->gates_queries ? part_gates(b, &qkv[0]) : NULL;
  if (d->norm_after_rotary) qkv[0] = rotated(b, qkv[0], d->heads);
  if (d->norm_after_rotary) qkv[1] = rotated(b, qkv[1], d->kv_heads);
  qkv[0] = normed_heads(b, qkv[0], LP_ROLE_Q_NORM, d->heads);
  qkv[1] = normed_heads(b, qkv[1], LP_ROLE_K_NORM, d->kv_heads);
  for (int i = 0; d->names[LP_ROLE_Q_NORM] && i < 3; i++)
    qkv[i] = clipped(b, qkv[i], d->clip_qkv);
  if (!d->norm_after_rotary) qkv[0] = rotated(b, qkv[0], d->heads);
  if (!d->norm_after_rotary) qkv[1] = rotated(b, qkv[1], d->kv_heads);
  lp_op *op = attend(b, tuned(b, qkv[0]), qkv[1], qkv[2]);
  if (!op) return NULL;
  present[0] = op->out[1];
  present[1] = op->out[2];
  lp_value *y = gate ? lp_graph_op2(&b->g, LP_ONNX_Mul, op->out[0], gate) : op->out[0];
  return lp_part_whole(b, y, LP_ROLE_O, d->heads * d->head_dim, d->hidden);
}
