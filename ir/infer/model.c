/* Shape rules: attention, and the fused operators of com.microsoft as ONNX Runtime documents them
 * (onnxruntime/docs/ContribOperators.md). */
#include "base/poly.h"
#include "ir/infer/infer.h"

/* batch, new positions, query heads, key heads, past positions, all positions, sizes of a head */
typedef struct {
  const lp_poly *batch, *query, *past, *total, *hidden;
  int64_t heads, kv_heads;
  const lp_poly *head, *value_head;
} attention;

static lp_status read_heads(const lp_infer *c, const char *name, int64_t *out) {
  *out = lp_op_i64(c->op, name, 0);
  if (*out <= 0 || *out > INT32_MAX)
    return lp_infer_fail(c, "attribute '%s' is %" PRId64 ", a number of heads wanted", name, *out);
  return LP_OK;
}

static lp_status divide(const lp_infer *c, const lp_poly *size, int64_t heads, const lp_poly **out) {
  *out = lp_poly_div(c->m->arena, size, lp_dim_const(c->m, heads));
  if (*out) return LP_OK;
  return lp_infer_fail(c, "%s does not divide into %" PRId64 " heads", lp_infer_text(c, size), heads);
}

static lp_shape cache_shape(const lp_infer *c, const attention *a, const lp_poly *head) {
  return (lp_shape){.rank = 4, .dim = {a->batch, lp_dim_const(c->m, a->kv_heads), a->total, head}};
}

/* Past keys or values have batch, heads and width of the new ones; `length` is how many rows they hold. */
static lp_status agree_past(lp_infer *c, int32_t index, const lp_shape *rows, const lp_poly **length) {
  const lp_poly *same;
  LP_TRY(lp_infer_rank(c, index, 4));
  for (int32_t i = 0; i < 4; i++)
    if (i != 2) LP_TRY(lp_infer_agree(c, rows->dim[i], lp_infer_in(c, index).dim[i], &same));
  *length = lp_infer_in(c, index).dim[2];
  return LP_OK;
}

/* ---- the standard's Attention ---- */

/* Operand `index` as [batch][head][position][dim]; with three axes the heads lie in the last. */
static lp_status read_heads_of(const lp_infer *c, int32_t index, const char *heads_attr, lp_shape *out) {
  lp_shape in = lp_infer_shape(c, index);
  int64_t heads;
  if (in.rank == 4) {
    *out = in;
    return LP_OK;
  }
  LP_TRY(lp_infer_rank(c, index, 3));
  LP_TRY(read_heads(c, heads_attr, &heads));
  *out = (lp_shape){.rank = 4, .dim = {in.dim[0], lp_dim_const(c->m, heads), in.dim[1]}};
  return divide(c, in.dim[2], heads, &out->dim[3]);
}

/* The mask broadcasts to [batch][head][query][total]; it may have fewer columns. */
static lp_status agree_mask(lp_infer *c, const lp_shape *q, const lp_poly *total) {
  lp_shape mask = lp_infer_shape(c, 3), scores = {.rank = 4, .dim = {q->dim[0], q->dim[1], q->dim[2], total}};
  int64_t width, all;
  if (mask.rank < 1 || mask.rank > 4) return lp_infer_fail(c, "its mask has %d axes, 1 to 4 wanted", mask.rank);
  bool is_short = lp_poly_is_const(mask.dim[mask.rank - 1], &width) && lp_poly_is_const(total, &all) && width < all;
  if (is_short) mask.dim[mask.rank - 1] = total;
  lp_shape all_of = scores;
  LP_TRY(lp_infer_broadcast(c, &all_of, &mask));
  for (int32_t i = 0; i < 4 && !c->again; i++)
    if (!lp_poly_equal(all_of.dim[i], scores.dim[i]))
      return lp_infer_fail(c, "its mask has a size of %s where %s is wanted", lp_infer_text(c, all_of.dim[i]),
                           lp_infer_text(c, scores.dim[i]));
  return LP_OK;
}

/* Past rows, if there are any, and the new ones. */
static lp_status count_rows(lp_infer *c, const lp_shape *k, const lp_shape *v, const lp_poly **total) {
  const lp_poly *keys, *values;
  *total = k->dim[2];
  if (lp_infer_has(c, 4) != lp_infer_has(c, 5)) return lp_infer_fail(c, "it has past keys or values without the other");
  if (!lp_infer_has(c, 4)) return LP_OK;
  LP_TRY(agree_past(c, 4, k, &keys));
  LP_TRY(agree_past(c, 5, v, &values));
  LP_TRY(lp_infer_agree(c, keys, values, &keys));
  *total = lp_poly_add(c->m->arena, keys, k->dim[2]);
  return LP_OK;
}

lp_status infer_attention(lp_infer *c) {
  lp_shape q, k, v, in;
  const lp_poly *total;
  LP_TRY(read_heads_of(c, 0, "q_num_heads", &q));
  LP_TRY(read_heads_of(c, 1, "kv_num_heads", &k));
  LP_TRY(read_heads_of(c, 2, "kv_num_heads", &v));
  for (int32_t i = 0; i < 3; i++)
    LP_TRY(lp_infer_agree(c, k.dim[i], v.dim[i], &k.dim[i]));
  LP_TRY(lp_infer_agree(c, q.dim[0], k.dim[0], &q.dim[0]));
  LP_TRY(lp_infer_agree(c, q.dim[3], k.dim[3], &q.dim[3]));
  LP_TRY(count_rows(c, &k, &v, &total));
  in = lp_infer_shape(c, 0);
  lp_dtype dtype = lp_infer_in(c, 0).dtype;
  if (lp_infer_has(c, 3)) LP_TRY(agree_mask(c, &q, total));
  if (in.rank == 3)
    in.dim[2] = lp_poly_mul(c->m->arena, q.dim[1], v.dim[3]);
  else
    in.dim[3] = v.dim[3];
  LP_TRY(lp_infer_set(c, 0, dtype, &in));
  k.dim[2] = v.dim[2] = total;
  LP_TRY(lp_infer_set(c, 1, lp_infer_in(c, 1).dtype, &k));
  LP_TRY(lp_infer_set(c, 2, lp_infer_in(c, 2).dtype, &v));
  lp_shape scores = {.rank = 4, .dim = {q.dim[0], q.dim[1], q.dim[2], total}};
  return lp_infer_set(c, 3, dtype, &scores);
}

/* ---- linear attention and its convolution ---- */

static lp_status check_update_rule(const lp_infer *c) {
  static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
  const char *rule = lp_op_str(c->op, "update_rule", rules[3]);
  size_t at = 0;
  while (at < LP_COUNT(rules) && !lp_streq(rule, rules[at]))
    at++;
  if (at == LP_COUNT(rules)) return lp_infer_fail(c, "update_rule '%s' is not known", rule);
  bool gated = at == 1 || at == 3, delta = at >= 2;
  if (gated != lp_infer_has(c, 4))
    return lp_infer_fail(c, gated ? "rule '%s' needs a decay" : "rule '%s' takes no decay", rule);
  if (delta != lp_infer_has(c, 5))
    return lp_infer_fail(c, delta ? "rule '%s' needs a beta" : "rule '%s' takes no beta", rule);
  return LP_OK;
}

static lp_status check_width(const lp_infer *c, int32_t index, const char *what, const lp_poly *a, const lp_poly *b) {
  if (!lp_infer_has(c, index)) return LP_OK;
  const lp_poly *width = lp_infer_in(c, index).dim[2];
  if (lp_poly_equal(width, a) || lp_poly_equal(width, b)) return LP_OK;
  return lp_infer_fail(c, "its %s has a width of %s, %s or %s wanted", what, lp_infer_text(c, width),
                       lp_infer_text(c, a), lp_infer_text(c, b));
}

/* Batch and length of operand `index` are the query's. */
static lp_status agree_tokens(lp_infer *c, int32_t index) {
  const lp_poly *same;
  if (!lp_infer_has(c, index)) return LP_OK;
  LP_TRY(lp_infer_rank(c, index, 3));
  LP_TRY(lp_infer_agree(c, lp_infer_in(c, 0).dim[0], lp_infer_in(c, index).dim[0], &same));
  return lp_infer_agree(c, lp_infer_in(c, 0).dim[1], lp_infer_in(c, index).dim[1], &same);
}

lp_status infer_linear_attention(lp_infer *c) {
  int64_t heads, kv_heads;
  const lp_poly *d, *key_d, *dv;
  for (int32_t i = 0; i < 3; i++)
    LP_TRY(lp_infer_rank(c, i, 3));
  LP_TRY(read_heads(c, "q_num_heads", &heads));
  LP_TRY(read_heads(c, "kv_num_heads", &kv_heads));
  if (heads % kv_heads) return lp_infer_fail(c, "its key heads do not divide its query heads");
  LP_TRY(check_update_rule(c));
  for (int32_t i = 1; i < c->op->in_count; i++)
    if (i != 3) LP_TRY(agree_tokens(c, i));
  lp_type q = lp_infer_in(c, 0);
  LP_TRY(divide(c, q.dim[2], heads, &d));
  LP_TRY(divide(c, lp_infer_in(c, 1).dim[2], kv_heads, &key_d));
  LP_TRY(divide(c, lp_infer_in(c, 2).dim[2], kv_heads, &dv));
  LP_TRY(lp_infer_agree(c, d, key_d, &d));
  const lp_poly *groups = lp_dim_const(c->m, kv_heads), *keys = lp_infer_in(c, 1).dim[2];
  LP_TRY(check_width(c, 4, "decay", groups, keys));
  LP_TRY(check_width(c, 5, "beta", groups, lp_dim_const(c->m, 1)));
  lp_shape y = {.rank = 3, .dim = {q.dim[0], q.dim[1], lp_poly_scale(c->m->arena, dv, heads)}};
  lp_shape state = {.rank = 4, .dim = {q.dim[0], groups, d, dv}};
  if (lp_infer_has(c, 3)) {
    LP_TRY(lp_infer_rank(c, 3, 4));
    for (int32_t i = 0; i < 4; i++)
      LP_TRY(lp_infer_agree(c, state.dim[i], lp_infer_in(c, 3).dim[i], &state.dim[i]));
  }
  LP_TRY(lp_infer_set(c, 0, q.dtype, &y));
  return lp_infer_set(c, 1, lp_infer_has(c, 3) ? lp_infer_in(c, 3).dtype : q.dtype, &state);
}

lp_status infer_causal_conv(lp_infer *c) {
  const lp_poly *channels, *kernel;
  LP_TRY(lp_infer_rank(c, 0, 3));
  LP_TRY(lp_infer_rank(c, 1, 3));
  LP_TRY(lp_infer_agree(c, lp_infer_in(c, 0).dim[1], lp_infer_in(c, 1).dim[0], &channels));
  kernel = lp_poly_sub(c->m->arena, lp_infer_in(c, 1).dim[2], lp_dim_const(c->m, 1));
  lp_shape y = lp_infer_shape(c, 0), state = y;
  state.dim[2] = kernel;
  LP_TRY(lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &y));
  return lp_infer_set(c, 1, lp_infer_in(c, 0).dtype, &state);
}

/* ---- com.microsoft: norms ---- */

/* norm(x + skip + bias): results y, mean, inverse deviation, x + skip + bias. */
lp_status infer_skip_norm(lp_infer *c) {
  LP_TRY(lp_infer_min_rank(c, 0, 2));
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  lp_shape in = lp_infer_shape(c, 0), skip = lp_infer_shape(c, 1), out = in;
  LP_TRY(lp_infer_broadcast(c, &out, &skip));
  const lp_poly *hidden;
  LP_TRY(lp_infer_min_rank(c, 2, 1));
  LP_TRY(lp_infer_agree(c, in.dim[in.rank - 1], lp_infer_in(c, 2).dim[0], &hidden));
  LP_TRY(lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out));
  LP_TRY(lp_infer_set(c, 3, lp_infer_in(c, 0).dtype, &out));
  out.dim[out.rank - 1] = lp_dim_const(c->m, 1);
  LP_TRY(lp_infer_set(c, 1, LP_F32, &out));
  return lp_infer_set(c, 2, LP_F32, &out);
}

/* Operands ids, segments?, word, position, segment table?, gamma, beta, mask?, then positions? or the scales; results
 * y, mask index, sum. */
lp_status infer_embed_norm(lp_infer *c) {
  if (!lp_infer_has(c, 0) || !lp_infer_has(c, 2) || !lp_infer_has(c, 3))
    return lp_infer_fail(c, "its tokens, word or position table are missing");
  LP_TRY(lp_infer_rank(c, 0, 2));
  LP_TRY(lp_infer_rank(c, 2, 2));
  lp_shape out = lp_infer_shape(c, 0), mask = {.rank = 1, .dim = {out.dim[0]}};
  out.rank = 3;
  out.dim[2] = lp_infer_in(c, 2).dim[1];
  bool quantised = c->op->kind == LP_ONNX_MsQEmbedLayerNormalization;
  lp_dtype dtype = quantised ? LP_F32 : lp_infer_in(c, 2).dtype;
  LP_TRY(lp_infer_set(c, 0, dtype, &out));
  LP_TRY(lp_infer_set(c, 1, LP_I32, &mask));
  return quantised ? LP_OK : lp_infer_set(c, 2, dtype, &out);
}

/* ---- com.microsoft: attention ---- */

/* Past keys and values in one operand: [2][batch][head][past][dim]. */
static lp_status agree_stacked(lp_infer *c, int32_t past, const attention *a, const lp_poly *batch) {
  const lp_poly *const wanted[] = {[1] = batch, [2] = lp_dim_const(c->m, a->heads), [4] = a->head}, *same;
  for (size_t i = 0; i < LP_COUNT(wanted); i++)
    if (wanted[i]) LP_TRY(lp_infer_agree(c, wanted[i], lp_infer_in(c, past).dim[i], &same));
  return LP_OK;
}

/* Operands x, weights [in][q + k + v], bias?, mask?, past? [2][batch][head][past][dim]; results y, present. QAttention
 * has more operands, and its past in another place. */
lp_status infer_ms_attention(lp_infer *c) {
  bool quantised = c->op->kind == LP_ONNX_MsQAttention;
  int32_t past = quantised ? 8 : 4;
  lp_dtype dtype = quantised ? LP_F32 : lp_infer_in(c, 0).dtype;
  attention a = {0};
  const lp_poly *inner, *sizes;
  LP_TRY(lp_infer_rank(c, 0, 3));
  LP_TRY(lp_infer_rank(c, 1, 2));
  LP_TRY(read_heads(c, "num_heads", &a.heads));
  lp_shape x = lp_infer_shape(c, 0);
  LP_TRY(lp_infer_agree(c, x.dim[2], lp_infer_in(c, 1).dim[0], &inner));
  const lp_attr *qkv = lp_op_attr(c->op, "qkv_hidden_sizes");
  if (qkv && qkv->count == 3) {
    LP_TRY(divide(c, lp_dim_const(c->m, qkv->is[1]), a.heads, &a.head));
    LP_TRY(divide(c, lp_dim_const(c->m, qkv->is[2]), a.heads, &a.value_head));
    sizes = lp_dim_const(c->m, qkv->is[2]);
  } else {
    LP_TRY(divide(c, lp_infer_in(c, 1).dim[1], 3, &sizes));
    LP_TRY(divide(c, sizes, a.heads, &a.head));
  }
  lp_shape out = {.rank = 3, .dim = {x.dim[0], x.dim[1], sizes}};
  LP_TRY(lp_infer_set(c, 0, dtype, &out));
  const lp_poly *total = x.dim[1];
  if (lp_infer_has(c, past)) {
    LP_TRY(lp_infer_rank(c, past, 5));
    LP_TRY(agree_stacked(c, past, &a, x.dim[0]));
    total = lp_poly_add(c->m->arena, lp_infer_in(c, past).dim[3], total);
  }
  lp_shape present = {.rank = 5, .dim = {lp_dim_const(c->m, 2), x.dim[0], lp_dim_const(c->m, a.heads), total, a.head}};
  return lp_infer_set(c, 1, dtype, &present);
}

/* The caches of operands `key` and `key` + 1, if it has them: [batch][kv head][length][head]. Quantised caches need not
 * agree: they are packed. */
static lp_status agree_caches(lp_infer *c, int32_t key, const attention *a, const lp_poly **length) {
  const lp_poly *values;
  LP_TRY(lp_infer_rank(c, key, 4));
  *length = lp_infer_in(c, key).dim[2];
  if (!lp_dtype_is_float(lp_infer_in(c, key).dtype)) return LP_OK;
  const lp_shape keys = cache_shape(c, a, a->head);
  LP_TRY(agree_past(c, key, &keys, length));
  if (!lp_infer_has(c, key + 1)) return LP_OK;
  const lp_shape rows = cache_shape(c, a, a->value_head);
  LP_TRY(agree_past(c, key + 1, &rows, &values));
  return lp_infer_agree(c, *length, values, length);
}

/* Query [b, s, hidden], key and value [b, l, hidden] or [b, head, l, dim]; packed forms keep all in the query. */
static lp_status read_mha(lp_infer *c, attention *a) {
  lp_shape q = lp_infer_shape(c, 0);
  a->batch = q.dim[0];
  a->query = a->total = q.dim[1];
  if (q.rank == 5) { /* [b, s, head, 3, dim] */
    a->head = a->value_head = q.dim[4];
    return LP_OK;
  }
  LP_TRY(lp_infer_rank(c, 0, 3));
  LP_TRY(divide(c, q.dim[2], lp_infer_has(c, 1) ? a->heads : 3 * a->heads, &a->head));
  a->value_head = a->head;
  if (!lp_infer_has(c, 1)) return LP_OK;
  lp_shape k = lp_infer_shape(c, 1);
  if (k.rank < 3 || k.rank > 5) return lp_infer_fail(c, "its key has %d axes, 3 to 5 wanted", k.rank);
  a->total = k.dim[k.rank == 4 ? 2 : 1];
  if (!lp_infer_has(c, 2)) return LP_OK;
  lp_shape v = lp_infer_shape(c, 2);
  if (v.rank == 4)
    a->value_head = v.dim[3];
  else if (v.rank == 3)
    LP_TRY(divide(c, v.dim[2], a->heads, &a->value_head));
  return LP_OK;
}

lp_status infer_ms_mha(lp_infer *c) {
  attention a = {0};
  LP_TRY(lp_infer_min_rank(c, 0, 3));
  LP_TRY(read_heads(c, "num_heads", &a.heads));
  a.kv_heads = a.heads;
  LP_TRY(read_mha(c, &a));
  int32_t past = c->op->kind == LP_ONNX_MsMultiHeadAttention ? 6 : 5;
  const lp_poly *length;
  if (lp_infer_has(c, past)) {
    LP_TRY(agree_caches(c, past, &a, &length));
    a.total = lp_poly_add(c->m->arena, length, a.total);
  }
  lp_dtype dtype = lp_infer_in(c, 0).dtype;
  const lp_poly *hidden = lp_poly_mul(c->m->arena, lp_dim_const(c->m, a.heads), a.value_head);
  lp_shape out = {.rank = 3, .dim = {a.batch, a.query, hidden}};
  lp_shape key = cache_shape(c, &a, a.head), value = cache_shape(c, &a, a.value_head);
  lp_shape scores = {.rank = 4, .dim = {a.batch, lp_dim_const(c->m, a.heads), a.query, a.total}};
  LP_TRY(lp_infer_set(c, 0, dtype, &out));
  LP_TRY(lp_infer_set(c, 1, dtype, &key));
  LP_TRY(lp_infer_set(c, 2, dtype, &value));
  return lp_infer_set(c, 3, dtype, &scores);
}

/* Query [b, s, heads * dim], or followed by key and value; past key and value [b, kv_heads, past, dim]. */
lp_status infer_ms_gqa(lp_infer *c) {
  attention a = {0};
  LP_TRY(lp_infer_rank(c, 0, 3));
  LP_TRY(read_heads(c, "num_heads", &a.heads));
  LP_TRY(read_heads(c, "kv_num_heads", &a.kv_heads));
  lp_shape q = lp_infer_shape(c, 0);
  int64_t parts = lp_infer_has(c, 1) ? a.heads : a.heads + 2 * a.kv_heads;
  LP_TRY(divide(c, q.dim[2], parts, &a.head));
  a.batch = q.dim[0];
  a.query = a.total = q.dim[1];
  if (lp_infer_has(c, 3)) {
    bool shared = lp_op_i64(c->op, "past_present_share_buffer", 0) || lp_op_i64(c->op, "sliding_window_cache", 0);
    a.value_head = a.head;
    LP_TRY(agree_caches(c, 3, &a, &a.total));
    if (!shared) a.total = lp_poly_add(c->m->arena, a.total, a.query);
  }
  const lp_poly *agreed;
  if (lp_infer_has(c, 7) && lp_infer_has(c, 8)) { /* cos_cache, sin_cache */
    LP_TRY(lp_infer_rank(c, 7, 2));
    LP_TRY(lp_infer_rank(c, 8, 2));
    LP_TRY(lp_infer_agree(c, lp_infer_in(c, 7).dim[1], lp_infer_in(c, 8).dim[1], &agreed));
  }
  if (lp_infer_has(c, 11)) { /* head_sink */
    LP_TRY(lp_infer_rank(c, 11, 1));
    LP_TRY(lp_infer_agree(c, lp_infer_in(c, 11).dim[0], lp_dim_const(c->m, a.heads), &agreed));
  }
  lp_dtype dtype = lp_infer_in(c, 0).dtype;
  lp_shape out = {.rank = 3, .dim = {a.batch, a.query, lp_poly_mul(c->m->arena, lp_dim_const(c->m, a.heads), a.head)}};
  lp_shape cache = cache_shape(c, &a, a.head);
  lp_shape scores = {.rank = 4, .dim = {a.batch, lp_dim_const(c->m, a.heads), a.query, a.total}};
  LP_TRY(lp_infer_set(c, 0, dtype, &out));
  LP_TRY(lp_infer_set(c, 1, dtype, &cache));
  LP_TRY(lp_infer_set(c, 2, dtype, &cache));
  return lp_infer_set(c, 3, dtype, &scores);
}

/* x, cos, sin, positions?; com.microsoft's has the positions second. Without positions the tables have a row for each
 * of x's. */
lp_status infer_rotary(lp_infer *c) {
  const bool ms = c->op->kind == LP_ONNX_MsRotaryEmbedding;
  const int32_t tables = ms ? 2 : 1, positions = ms ? 1 : 3;
  const int32_t rank = lp_infer_in(c, 0).rank;
  if (rank != 3 && rank != 4) return lp_infer_fail(c, "input 0 has %d axes, 3 or 4 wanted", rank);
  const bool placed = lp_infer_has(c, positions);
  for (int32_t i = tables; i < tables + 2; i++)
    LP_TRY(lp_infer_rank(c, i, placed ? 2 : 3));
  if (placed && !(ms && lp_infer_in(c, positions).rank == 1)) LP_TRY(lp_infer_rank(c, positions, 2));
  const lp_shape shape = lp_infer_shape(c, 0);
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}
