/* Rewrites com.microsoft: Attention, QAttention, MultiHeadAttention, DecoderMaskedMultiHeadAttention
 * (ContribOperators.md) by the standard's Attention over heads first. */
#include "base/poly.h"
#include "passes/recognise/decompose/rewrite.h"

enum { Y, PRESENT_K, PRESENT_V, SCORES, RESULTS };

lp_status lp_rw_attend(lp_rewrite *r, const lp_rw_attention *a, bool want_scores) {
  lp_type types[RESULTS] = {{.rank = -1}, {.rank = -1}, {.rank = -1}, {.rank = -1}};
  lp_value *in[] = {a->q, a->k, a->v, a->mask, a->past_k, a->past_v, NULL, a->sinks};
  if (!a->q || !a->k || !a->v) return LP_FAILED;
  int32_t count = a->sinks ? 8 : a->past_k ? 6 : a->mask ? 4 : 3;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_Attention, r->b.loc, count, in, want_scores ? RESULTS : SCORES, types);
  if (a->scale != 0) lp_op_set_f64(r->b.module, op, "scale", a->scale);
  if (a->softcap > 0) lp_op_set_f64(r->b.module, op, "softcap", a->softcap);
  if (a->window > 0) lp_op_set_i64(r->b.module, op, "window", a->window);
  if (want_scores) lp_op_set_i64(r->b.module, op, "qk_matmul_output_mode", a->scores);
  lp_op_set_i64(r->b.module, op, "is_causal", a->causal);
  if (a->causal) lp_op_set_i64(r->b.module, op, "bottom_right", 1);
  LP_TRY(lp_build_place(&r->b, op));
  r->result[Y] = lp_rw_join_heads(r, op->out[Y]);
  for (int32_t i = PRESENT_K; i < op->out_count; i++)
    r->result[i] = op->out[i];
  return r->result[Y] ? LP_OK : LP_FAILED;
}

static bool is_used(const lp_op *op, int32_t result) {
  return lp_op_out(op, result) && lp_op_out(op, result)->uses;
}

/* The numbers of positions before the new ones and with them, as scalars. */
static lp_value *total_length(lp_rewrite *r, const lp_rw_attention *a) {
  lp_value *total = lp_rw_size(r, a->k, 2);
  return a->past_k ? lp_rw_add(r, total, lp_rw_size(r, a->past_k, 2)) : total;
}

/* The additive mask of a padding mask and a bias. */
static lp_status set_mask(lp_rewrite *r, lp_rw_attention *a, lp_value *padding, lp_value *bias) {
  lp_value *may = NULL;
  if (padding) LP_TRY(lp_rw_padding_mask(r, padding, a->q, total_length(r, a), &may));
  if (!may && !bias) return LP_OK;
  double masked = lp_op_f64(r->op, "mask_filter_value", -10000.0);
  lp_value *like = bias ? bias : a->q;
  if (may) {
    lp_value *zero = lp_build_float(&r->b, like->type.dtype, 0);
    may = lp_rw_op3(r, LP_ONNX_Where, may, zero, lp_build_float(&r->b, like->type.dtype, masked));
  }
  a->mask = may ? lp_rw_add(r, may, bias) : bias;
  return a->mask ? LP_OK : LP_FAILED;
}

static lp_rw_attention from_attributes(const lp_rewrite *r) {
  return (lp_rw_attention){.causal = lp_op_i64(r->op, "unidirectional", 0) != 0, .scale = lp_op_f64(r->op, "scale", 0)};
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

/* The stacked present: [2, b, heads, t, d]. */
static lp_value *stack(lp_rewrite *r, lp_value *k, lp_value *v) {
  lp_value *first = LP_RW_INTS(r, 0);
  lp_value *in[] = {lp_rw_unsqueeze(r, k, first), lp_rw_unsqueeze(r, v, first)};
  return lp_rw_concat(r, 2, in, 0);
}

/* The widths of queries, keys and values in the columns of the weights. */
static lp_status read_widths(const lp_rewrite *r, int64_t widths[3]) {
  const lp_attr *sizes = lp_op_attr(r->op, "qkv_hidden_sizes");
  int64_t width;
  if (!lp_type_static_dim(lp_op_in(r->op, 1)->type, 1, &width))
    return lp_rw_refuse(r, "needs weights of constant width");
  if (!sizes || sizes->count == 0) {
    widths[0] = widths[1] = widths[2] = width / 3;
    return LP_OK;
  }
  if (sizes->count != 3) return lp_rw_refuse(r, "has qkv_hidden_sizes that are not three");
  memcpy(widths, sizes->is, 3 * sizeof *widths);
  return LP_OK;
}

/* Queries, keys and values [b, s, q + k + v] of Attention or QAttention. */
static lp_value *projected(lp_rewrite *r) {
  lp_value *in[8];
  for (int32_t i = 0; i < 8; i++)
    in[i] = lp_op_in(r->op, i);
  if (r->op->kind == LP_ONNX_MsAttention) return lp_rw_add(r, lp_rw_op(r, LP_ONNX_MatMul, in[0], in[1]), in[2]);
  return lp_rw_product(r, &(lp_rw_integers){in[0], in[3], in[6], in[1], in[4], in[7]}, in[2], 1);
}

lp_status lp_rewrite_ms_attention(lp_rewrite *r) {
  const lp_op *op = r->op;
  bool quantised = op->kind == LP_ONNX_MsQAttention;
  int64_t heads, widths[3];
  lp_value *past = lp_op_in(op, quantised ? 8 : 4);
  LP_TRY(lp_rw_heads(r, "num_heads", &heads));
  if (lp_op_i64(op, "do_rotary", 0)) return lp_rw_refuse(r, "with do_rotary is not supported");
  if (lp_op_i64(op, "past_present_share_buffer", 0))
    return lp_rw_refuse(r, "with past_present_share_buffer is not supported");
  LP_TRY(read_widths(r, widths));
  lp_op *parts = lp_rw_split(r, projected(r), 2, 3, widths);
  if (!parts) return LP_FAILED;
  lp_rw_attention a = from_attributes(r);
  a.q = lp_rw_split_heads(r, parts->out[0], heads);
  a.k = lp_rw_split_heads(r, parts->out[1], heads);
  a.v = lp_rw_split_heads(r, parts->out[2], heads);
  if (past) a.past_k = lp_rw_pick(r, past, 0, 0);
  if (past) a.past_v = lp_rw_pick(r, past, 0, 1);
  if (!a.q || !a.k || !a.v || (past && !a.past_v)) return LP_FAILED;
  LP_TRY(set_mask(r, &a, lp_op_in(op, quantised ? 5 : 3), quantised ? NULL : lp_op_in(op, 5)));
  LP_TRY(lp_rw_attend(r, &a, false));
  r->result[1] = is_used(op, 1) ? stack(r, r->result[PRESENT_K], r->result[PRESENT_V]) : NULL;
  return is_used(op, 1) && !r->result[1] ? LP_FAILED : LP_OK;
}

/* ---- MultiHeadAttention ------------------------------------------------------------------------------------------ */

/* [b, s, heads, parts, d]: part `index` as [b, heads, s, d]. */
static lp_value *packed_part(lp_rewrite *r, lp_value *x, int64_t index) {
  static const int64_t heads_first[] = {0, 2, 1, 3};
  return lp_rw_transpose(r, lp_rw_pick(r, x, 3, index), 4, heads_first);
}

/* Adds the bias [q + k + v] to q, k and v, whichever form they have. */
static lp_status add_bias(lp_rewrite *r, lp_value *bias, int64_t heads, lp_value *qkv[3]) {
  int64_t widths[3], width = 0, d;
  for (int i = 0; i < 3; i++) {
    bool flat = qkv[i]->type.rank == 3;
    if (!lp_type_static_dim(qkv[i]->type, -1, &d)) return lp_rw_refuse(r, "has a bias but no constant width");
    widths[i] = flat ? d : heads * d;
    width += widths[i];
  }
  if (!lp_type_static_dim(bias->type, 0, &d) || d != width) return lp_rw_refuse(r, "has a bias of another width");
  lp_op *parts = lp_rw_split(r, bias, 0, 3, widths);
  for (int i = 0; i < 3 && parts; i++) {
    lp_value *part = parts->out[i];
    if (qkv[i]->type.rank == 4) part = lp_rw_reshape(r, part, LP_RW_INTS(r, heads, 1, -1));
    qkv[i] = part ? lp_rw_add(r, qkv[i], part) : NULL;
    if (!qkv[i]) return LP_FAILED;
  }
  return parts ? LP_OK : LP_FAILED;
}

/* Brings query, key and value from their given forms, packed or not, to [b, heads, s, d] or [b, s, heads * d]. */
static lp_status read_parts(lp_rewrite *r, lp_value *qkv[3]) {
  for (int i = 0; i < 3; i++)
    qkv[i] = lp_op_in(r->op, i);
  if (!qkv[1] && qkv[0]->type.rank == 5) {
    lp_value *packed = qkv[0];
    for (int i = 0; i < 3; i++)
      qkv[i] = packed_part(r, packed, i);
  } else if (!qkv[1]) {
    int64_t width;
    if (!lp_type_static_dim(qkv[0]->type, 2, &width) || width % 3)
      return lp_rw_refuse(r, "has packed queries, keys and values of a width that is no multiple of 3");
    lp_op *parts = lp_rw_split(r, qkv[0], 2, 3, (int64_t[]){width / 3, width / 3, width / 3});
    for (int i = 0; i < 3; i++)
      qkv[i] = parts ? parts->out[i] : NULL;
  } else if (!qkv[2]) {
    if (qkv[1]->type.rank != 5) return lp_rw_refuse(r, "has keys without values");
    lp_value *packed = qkv[1];
    for (int i = 1; i < 3; i++)
      qkv[i] = packed_part(r, packed, i - 1);
  }
  return qkv[0] && qkv[1] && qkv[2] ? LP_OK : LP_FAILED;
}

/* The operand indices of MultiHeadAttention and of DecoderMaskedMultiHeadAttention. */
typedef struct {
  int32_t bias, padding, attention_bias, past_k, past_v;
} operand_places;

static lp_status rewrite_heads(lp_rewrite *r, const operand_places *at) {
  const lp_op *op = r->op;
  int64_t heads;
  lp_value *qkv[3];
  LP_TRY(lp_rw_heads(r, "num_heads", &heads));
  LP_TRY(read_parts(r, qkv));
  if (lp_op_in(op, at->bias)) LP_TRY(add_bias(r, lp_op_in(op, at->bias), heads, qkv));
  lp_rw_attention a = from_attributes(r);
  a.past_k = lp_op_in(op, at->past_k);
  a.past_v = lp_op_in(op, at->past_v);
  a.q = lp_rw_split_heads(r, qkv[0], heads);
  a.k = lp_rw_split_heads(r, qkv[1], heads);
  a.v = lp_rw_split_heads(r, qkv[2], heads);
  if (!a.q || !a.k || !a.v) return LP_FAILED;
  LP_TRY(set_mask(r, &a, lp_op_in(op, at->padding), lp_op_in(op, at->attention_bias)));
  bool other_keys = !a.past_k && !lp_poly_equal(a.q->type.dim[2], a.k->type.dim[2]);
  if (a.causal && other_keys) return lp_rw_refuse(r, "is unidirectional over other keys than its queries'");
  a.scores = 2; /* with masks */
  return lp_rw_attend(r, &a, is_used(op, SCORES));
}

lp_status lp_rewrite_multi_head(lp_rewrite *r) {
  static const operand_places at = {.bias = 3, .padding = 4, .attention_bias = 5, .past_k = 6, .past_v = 7};
  if (lp_op_in(r->op, 8)) return lp_rw_refuse(r, "with a shared buffer (past_sequence_length) is not supported");
  if (lp_op_in(r->op, 9)) return lp_rw_refuse(r, "with cache_indirection is not supported");
  return rewrite_heads(r, &at);
}

lp_status lp_rewrite_decoder_masked(lp_rewrite *r) {
  static const operand_places at = {.bias = 10, .padding = 3, .attention_bias = 4, .past_k = 5, .past_v = 6};
  if (lp_op_i64(r->op, "past_present_share_buffer", 0))
    return lp_rw_refuse(r, "with past_present_share_buffer is not supported");
  if (lp_op_in(r->op, 9)) return lp_rw_refuse(r, "with cache_indirection is not supported");
  return rewrite_heads(r, &at);
}
