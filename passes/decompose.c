/* decompose: rewrites the operators of com.microsoft by the standard's own, so that the rest of the compiler knows one
 * vocabulary. Each function below is one operator of ONNX Runtime's ContribOperators.md. */
#include "passes/build.h"
#include "passes/passes.h"

#include <string.h>

typedef struct {
  lp_build b;
  lp_op *op;
  lp_value *result[4];
} rewrite;

/* ---- one standard operator at a time; NULL after a diagnostic -------------------------------------------------------- */

static lp_value *one(rewrite *r, lp_kind kind, lp_value *x, lp_value *y) {
  lp_value *in[] = {x, y};
  if (!x) return NULL;
  lp_op *op = lp_build_onnx(&r->b, kind, y ? 2 : 1, in, 1);
  return op ? op->out[0] : NULL;
}

static lp_value *add(rewrite *r, lp_value *x, lp_value *y) {
  return y ? one(r, LP_ONNX_Add, x, y) : x;
}

static lp_value *ints(rewrite *r, int64_t a, int64_t b, int64_t c, int64_t d, int32_t count) {
  int64_t values[] = {a, b, c, d};
  return lp_build_i64s(&r->b, values, count);
}

static lp_value *with_attr_i64(rewrite *r, lp_kind kind, int32_t in_count, lp_value *const *in, const char *name,
                               int64_t value) {
  lp_type unknown = {LP_F32, -1, NULL};
  for (int32_t i = 0; i < in_count; i++)
    if (!in[i]) return NULL;
  lp_op *op = lp_op_create(r->b.module, kind, r->b.loc, in_count, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, name, value);
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

static lp_value *cast(rewrite *r, lp_value *x, int64_t onnx_type) {
  return with_attr_i64(r, LP_ONNX_Cast, 1, &x, "to", onnx_type);
}

enum { ONNX_INT64 = 7, ONNX_BOOL = 9 };

static lp_value *transpose_heads(rewrite *r, lp_value *x) {
  static const int64_t perm[] = {0, 2, 1, 3};
  lp_type unknown = {LP_F32, -1, NULL};
  if (!x) return NULL;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_Transpose, r->b.loc, 1, &x, 1, &unknown);
  lp_op_set_i64s(r->b.module, op, "perm", perm, 4);
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

/* [b, s, heads * d] as [b, heads, s, d] */
static lp_value *split_heads(rewrite *r, lp_value *x, int64_t heads) {
  if (!x || x->type.rank == 4) return x;
  return transpose_heads(r, one(r, LP_ONNX_Reshape, x, ints(r, 0, 0, heads, -1, 4)));
}

static lp_value *join_heads(rewrite *r, lp_value *x) {
  return x ? one(r, LP_ONNX_Reshape, transpose_heads(r, x), ints(r, 0, 0, -1, 0, 3)) : NULL;
}

static lp_value *shape_of(rewrite *r, lp_value *x, int64_t axis) {
  lp_type unknown = {LP_I64, -1, NULL};
  if (!x) return NULL;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_Shape, r->b.loc, 1, &x, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "start", axis);
  lp_op_set_i64(r->b.module, op, "end", axis + 1);
  if (lp_build_place(&r->b, op) != LP_OK) return NULL;
  return one(r, LP_ONNX_Squeeze, op->out[0], ints(r, 0, 0, 0, 0, 1));
}

static lp_value *count_to(rewrite *r, lp_value *size) {
  int64_t zero = 0, step = 1;
  lp_value *from = lp_build_i64s(&r->b, &zero, 1), *by = lp_build_i64s(&r->b, &step, 1);
  lp_value *first = ints(r, 0, 0, 0, 0, 1);
  lp_value *in[] = {one(r, LP_ONNX_Squeeze, from, first), size, one(r, LP_ONNX_Squeeze, by, first)};
  if (!in[0] || !in[1] || !in[2]) return NULL;
  lp_op *op = lp_build_onnx(&r->b, LP_ONNX_Range, 3, in, 1);
  return op ? op->out[0] : NULL;
}

/* [2, b, heads, p, d]: keys or values */
static lp_value *stacked(rewrite *r, lp_value *past, int64_t which) {
  if (!past) return NULL;
  lp_value *index = one(r, LP_ONNX_Squeeze, ints(r, which, 0, 0, 0, 1), ints(r, 0, 0, 0, 0, 1));
  lp_value *in[] = {past, index};
  return with_attr_i64(r, LP_ONNX_Gather, 2, in, "axis", 0);
}

static lp_status done(const rewrite *r) {
  return r->result[0] ? LP_OK : LP_FAILED;
}

/* ---- activations and norms ------------------------------------------------------------------------------------------- */

static lp_value *gelu(rewrite *r, lp_value *x, const char *approximate) {
  lp_value *y = one(r, LP_ONNX_Gelu, x, NULL);
  if (y) lp_op_set_str(r->b.module, y->def, "approximate", approximate);
  return y;
}

static lp_status rewrite_fast_gelu(rewrite *r) {
  r->result[0] = gelu(r, add(r, lp_op_in(r->op, 0), lp_op_in(r->op, 1)), "tanh");
  return done(r);
}

static lp_status rewrite_gelu(rewrite *r) {
  r->result[0] = gelu(r, add(r, lp_op_in(r->op, 0), lp_op_in(r->op, 1)), "none");
  return done(r);
}

static lp_status rewrite_quick_gelu(rewrite *r) {
  r->result[0] = one(r, LP_ONNX_Swish, lp_op_in(r->op, 0), NULL);
  if (r->result[0]) lp_op_set_f64(r->b.module, r->result[0]->def, "alpha", lp_op_f64(r->op, "alpha", 1.702));
  return done(r);
}

static lp_value *norm(rewrite *r, lp_kind kind, lp_value *x, lp_value *scale, lp_value *bias, double epsilon) {
  lp_value *in[] = {x, scale, bias};
  lp_type unknown = {LP_F32, -1, NULL};
  if (!x) return NULL;
  lp_op *op = lp_op_create(r->b.module, kind, r->b.loc, bias ? 3 : 2, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "axis", -1);
  lp_op_set_f64(r->b.module, op, "epsilon", epsilon);
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

static lp_status rewrite_skip_norm(rewrite *r) {
  bool rms = r->op->kind == LP_ONNX_MsSkipSimplifiedLayerNormalization;
  double epsilon = lp_op_f64(r->op, "epsilon", 1e-12);
  lp_value *beta = rms ? NULL : lp_op_in(r->op, 3);
  lp_value *sum = add(r, add(r, lp_op_in(r->op, 0), lp_op_in(r->op, 1)), lp_op_in(r->op, rms ? 3 : 4));
  r->result[0] =
      norm(r, rms ? LP_ONNX_RMSNormalization : LP_ONNX_LayerNormalization, sum, lp_op_in(r->op, 2), beta, epsilon);
  r->result[3] = sum;
  return done(r);
}

static lp_status rewrite_embed_norm(rewrite *r) {
  lp_value *ids = lp_op_in(r->op, 0), *segments = lp_op_in(r->op, 1), *positions = lp_op_in(r->op, 8);
  if (!positions) positions = count_to(r, shape_of(r, ids, 1));
  lp_value *sum = one(r, LP_ONNX_Gather, lp_op_in(r->op, 2), ids);
  sum = positions && sum ? add(r, sum, one(r, LP_ONNX_Gather, lp_op_in(r->op, 3), positions)) : NULL;
  if (sum && segments && lp_op_in(r->op, 4)) sum = add(r, sum, one(r, LP_ONNX_Gather, lp_op_in(r->op, 4), segments));
  r->result[0] = norm(r, LP_ONNX_LayerNormalization, sum, lp_op_in(r->op, 5), lp_op_in(r->op, 6),
                      lp_op_f64(r->op, "epsilon", 1e-12));
  r->result[2] = sum;
  return done(r);
}

/* ---- attention ------------------------------------------------------------------------------------------------------- */

/* Which keys may be seen, bool [b, 1, 1, t], from a 0/1 mask [b, t] or lengths [b]; other forms are refused. */
static lp_status padding_mask(rewrite *r, lp_value *mask, lp_value *total, lp_value **out) {
  *out = NULL;
  if (!mask) return LP_OK;
  if (mask->type.rank == 1) {
    lp_value *length = one(r, LP_ONNX_Unsqueeze, cast(r, mask, ONNX_INT64), ints(r, 1, 2, 3, 0, 3));
    lp_value *keys = count_to(r, total);
    *out = length && keys ? one(r, LP_ONNX_Less, keys, length) : NULL;
  } else if (mask->type.rank == 2) {
    *out = one(r, LP_ONNX_Unsqueeze, cast(r, mask, ONNX_BOOL), ints(r, 1, 2, 0, 0, 2));
  } else if (mask->type.rank == 3) {
    *out = one(r, LP_ONNX_Unsqueeze, cast(r, mask, ONNX_BOOL), ints(r, 1, 0, 0, 0, 1));
  } else {
    return lp_error(r->b.diag, r->op->loc, "'%s' has a mask of %d axes", lp_op_info_get(r->op->kind)->name,
                    mask->type.rank);
  }
  return *out ? LP_OK : LP_FAILED;
}

/* A bool mask and an additive bias become one additive mask. */
static lp_value *join_masks(rewrite *r, lp_value *may, lp_value *bias, double masked) {
  if (!bias || !may) return bias ? bias : may;
  lp_value *in[] = {may, bias, lp_build_float(&r->b, bias->type.dtype, masked)};
  lp_op *op = lp_build_onnx(&r->b, LP_ONNX_Where, 3, in, 1);
  return op ? op->out[0] : NULL;
}

typedef struct {
  lp_value *q, *k, *v, *mask, *past_k, *past_v; /* heads first */
  bool causal;
  double softcap;
} attention;

static lp_status build_attention(rewrite *r, const attention *a) {
  lp_type unknown[3] = {{LP_F32, -1, NULL}, {LP_F32, -1, NULL}, {LP_F32, -1, NULL}};
  lp_value *in[] = {a->q, a->k, a->v, a->mask, a->past_k, a->past_v};
  if (!a->q || !a->k || !a->v) return LP_FAILED;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_Attention, r->b.loc, a->past_k ? 6 : a->mask ? 4 : 3, in, 3, unknown);
  if (lp_op_f64(r->op, "scale", 0) != 0) lp_op_set_f64(r->b.module, op, "scale", lp_op_f64(r->op, "scale", 0));
  if (a->softcap > 0) lp_op_set_f64(r->b.module, op, "softcap", a->softcap);
  lp_op_set_i64(r->b.module, op, "is_causal", a->causal);
  if (a->causal) lp_op_set_i64(r->b.module, op, "bottom_right", 1);
  LP_TRY(lp_build_place(&r->b, op));
  r->result[0] = join_heads(r, op->out[0]);
  r->result[1] = op->out[1];
  r->result[2] = op->out[2];
  return done(r);
}

static lp_op *split_last(rewrite *r, lp_value *x, const int64_t *sizes, int32_t count) {
  lp_type unknown[3] = {{LP_F32, -1, NULL}, {LP_F32, -1, NULL}, {LP_F32, -1, NULL}};
  lp_value *in[] = {x, lp_build_i64s(&r->b, sizes, count)};
  if (!x) return NULL;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_Split, r->b.loc, 2, in, count, unknown);
  lp_op_set_i64(r->b.module, op, "axis", x->type.rank - 1);
  return lp_build_place(&r->b, op) == LP_OK ? op : NULL;
}

/* The present of stacked form: [2, b, heads, t, d]. */
static lp_value *stack(rewrite *r, lp_value *k, lp_value *v) {
  lp_value *in[] = {one(r, LP_ONNX_Unsqueeze, k, ints(r, 0, 0, 0, 0, 1)),
                    one(r, LP_ONNX_Unsqueeze, v, ints(r, 0, 0, 0, 0, 1))};
  return with_attr_i64(r, LP_ONNX_Concat, 2, in, "axis", 0);
}

static lp_value *sum_of(rewrite *r, lp_value *x, lp_value *y) {
  return y ? one(r, LP_ONNX_Add, x, y) : x;
}

static lp_status rewrite_attention(rewrite *r) {
  const lp_op *op = r->op;
  int64_t heads = lp_op_i64(op, "num_heads", 1), width;
  lp_value *past = lp_op_in(op, 4), *x = lp_op_in(op, 0);
  const lp_attr *sizes = lp_op_attr(op, "qkv_hidden_sizes");
  if (lp_op_i64(op, "do_rotary", 0))
    return lp_error(r->b.diag, op->loc, "'com.microsoft.Attention' with do_rotary is not supported");
  if (!lp_type_static_dim(lp_op_in(op, 1)->type, 1, &width))
    return lp_error(r->b.diag, op->loc, "'com.microsoft.Attention' needs weights of constant width");
  int64_t thirds[] = {width / 3, width / 3, width / 3};
  lp_value *qkv = add(r, one(r, LP_ONNX_MatMul, x, lp_op_in(op, 1)), lp_op_in(op, 2));
  lp_op *parts = split_last(r, qkv, sizes && sizes->count == 3 ? sizes->is : thirds, 3);
  if (!parts) return LP_FAILED;
  attention a = {.causal = lp_op_i64(op, "unidirectional", 0) != 0};
  a.q = split_heads(r, parts->out[0], heads);
  a.k = split_heads(r, parts->out[1], heads);
  a.v = split_heads(r, parts->out[2], heads);
  a.past_k = stacked(r, past, 0);
  a.past_v = stacked(r, past, 1);
  lp_value *total = shape_of(r, x, 1), *may;
  if (a.past_k) total = sum_of(r, total, shape_of(r, a.past_k, 2));
  LP_TRY(padding_mask(r, lp_op_in(op, 3), total, &may));
  a.mask = join_masks(r, may, lp_op_in(op, 5), lp_op_f64(op, "mask_filter_value", -10000.0));
  LP_TRY(build_attention(r, &a));
  bool wanted = op->out_count > 1 && op->out[1]->uses;
  r->result[1] = wanted ? stack(r, r->result[1], r->result[2]) : NULL;
  return wanted && !r->result[1] ? LP_FAILED : LP_OK;
}

static lp_status rewrite_multi_head(rewrite *r) {
  const lp_op *op = r->op;
  int64_t heads = lp_op_i64(op, "num_heads", 1), width;
  lp_value *in[3] = {lp_op_in(op, 0), lp_op_in(op, 1), lp_op_in(op, 2)}, *bias = lp_op_in(op, 3), *may;
  if (!in[1] || !in[2] || in[0]->type.rank != 3)
    return lp_error(r->b.diag, op->loc,
                    "'com.microsoft.MultiHeadAttention' with packed queries, keys and values is not supported");
  if (bias) {
    if (!lp_type_static_dim(bias->type, 0, &width)) return LP_FAILED;
    int64_t v_width = width / 3, q_width = width / 3;
    (void)lp_type_static_dim(in[0]->type, 2, &q_width);
    if (in[2]->type.rank == 3) (void)lp_type_static_dim(in[2]->type, 2, &v_width);
    int64_t sizes[] = {q_width, width - q_width - v_width, v_width};
    lp_op *parts = split_last(r, bias, sizes, 3);
    for (int32_t i = 0; i < 3 && parts; i++)
      if (in[i]->type.rank == 3) in[i] = add(r, in[i], parts->out[i]);
  }
  attention a = {
      .causal = lp_op_i64(op, "unidirectional", 0) != 0, .past_k = lp_op_in(op, 6), .past_v = lp_op_in(op, 7)};
  a.q = split_heads(r, in[0], heads);
  a.k = split_heads(r, in[1], heads);
  a.v = split_heads(r, in[2], heads);
  lp_value *total = a.k ? shape_of(r, a.k, 2) : NULL;
  if (total && a.past_k) total = sum_of(r, total, shape_of(r, a.past_k, 2));
  LP_TRY(padding_mask(r, lp_op_in(op, 4), total, &may));
  a.mask = join_masks(r, may, lp_op_in(op, 5), lp_op_f64(op, "mask_filter_value", -10000.0));
  return build_attention(r, &a);
}

/* positions [b, s] of the new tokens: seqlens_k + 1 - s + i, not below i */
static lp_value *gqa_positions(rewrite *r, lp_value *query, lp_value *seqlens) {
  lp_value *s = shape_of(r, query, 1), *rows = count_to(r, s);
  lp_value *flat =
      seqlens && seqlens->type.rank > 1 ? one(r, LP_ONNX_Reshape, seqlens, ints(r, -1, 0, 0, 0, 1)) : seqlens;
  lp_value *last = one(r, LP_ONNX_Unsqueeze, cast(r, flat, ONNX_INT64), ints(r, 1, 0, 0, 0, 1));
  lp_value *past = last && s ? one(r, LP_ONNX_Sub, one(r, LP_ONNX_Add, last, ints(r, 1, 0, 0, 0, 1)), s) : NULL;
  past = past ? one(r, LP_ONNX_Max, past, ints(r, 0, 0, 0, 0, 1)) : NULL;
  return past && rows ? one(r, LP_ONNX_Add, past, rows) : NULL;
}

static lp_value *gqa_rotary(rewrite *r, lp_value *x, lp_value *positions, int64_t heads) {
  lp_value *in[] = {x, lp_op_in(r->op, 7), lp_op_in(r->op, 8), positions};
  lp_type unknown = {LP_F32, -1, NULL};
  if (!x || !positions || !in[1] || !in[2]) return NULL;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_RotaryEmbedding, r->b.loc, 4, in, 1, &unknown);
  lp_op_set_i64(r->b.module, op, "num_heads", heads);
  lp_op_set_i64(r->b.module, op, "interleaved", lp_op_i64(r->op, "rotary_interleaved", 0));
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

/* bool [b, 1, s, t]: key j is seen by a query at position >= j, and within the window */
static lp_value *gqa_mask(rewrite *r, lp_value *positions, lp_value *total, int64_t window) {
  lp_value *query = one(r, LP_ONNX_Unsqueeze, positions, ints(r, 1, 3, 0, 0, 2)), *keys = count_to(r, total);
  lp_value *may = query && keys ? one(r, LP_ONNX_LessOrEqual, keys, query) : NULL;
  if (!may || window <= 0) return may;
  lp_value *oldest = one(r, LP_ONNX_Sub, query, ints(r, window, 0, 0, 0, 1));
  return oldest ? one(r, LP_ONNX_And, may, one(r, LP_ONNX_Greater, keys, oldest)) : NULL;
}

static lp_status rewrite_group_query(rewrite *r) {
  const lp_op *op = r->op;
  int64_t heads = lp_op_i64(op, "num_heads", 1), kv_heads = lp_op_i64(op, "kv_num_heads", 1), width;
  lp_value *in[3] = {lp_op_in(op, 0), lp_op_in(op, 1), lp_op_in(op, 2)};
  lp_value *positions = gqa_positions(r, in[0], lp_op_in(op, 5));
  if (!in[1]) {
    if (!lp_type_static_dim(in[0]->type, 2, &width)) return LP_FAILED;
    int64_t d = width / (heads + 2 * kv_heads), sizes[] = {heads * d, kv_heads * d, kv_heads * d};
    lp_op *parts = split_last(r, in[0], sizes, 3);
    for (int32_t i = 0; i < 3 && parts; i++)
      in[i] = parts->out[i];
  }
  if (lp_op_i64(op, "do_rotary", 0)) {
    in[0] = gqa_rotary(r, in[0], positions, heads);
    in[1] = gqa_rotary(r, in[1], positions, kv_heads);
  }
  attention a = {.past_k = lp_op_in(op, 3), .past_v = lp_op_in(op, 4), .softcap = lp_op_f64(op, "softcap", 0)};
  a.q = split_heads(r, in[0], heads);
  a.k = split_heads(r, in[1], kv_heads);
  a.v = split_heads(r, in[2], kv_heads);
  if (!a.q || !a.k || !a.v) return LP_FAILED;
  lp_value *total = shape_of(r, a.k, 2);
  if (a.past_k) total = sum_of(r, total, shape_of(r, a.past_k, 2));
  a.mask = gqa_mask(r, positions, total, lp_op_i64(op, "local_window_size", -1));
  return a.mask ? build_attention(r, &a) : LP_FAILED;
}

static lp_status rewrite_rotary(rewrite *r) {
  lp_value *positions = lp_op_in(r->op, 1), *x = lp_op_in(r->op, 0);
  if (lp_op_f64(r->op, "scale", 1.0) != 1.0)
    return lp_error(r->b.diag, r->op->loc, "'com.microsoft.RotaryEmbedding' with a scale is not supported");
  if (positions->type.rank == 1) { /* one offset for all: positions are offset + i */
    lp_value *rows = count_to(r, shape_of(r, x, x->type.rank == 4 ? 2 : 1));
    positions = rows ? one(r, LP_ONNX_Unsqueeze, one(r, LP_ONNX_Add, positions, rows), ints(r, 0, 0, 0, 0, 1)) : NULL;
  }
  lp_value *in[] = {x, lp_op_in(r->op, 2), lp_op_in(r->op, 3), positions};
  lp_type unknown = {LP_F32, -1, NULL};
  if (!positions) return LP_FAILED;
  lp_op *op = lp_op_create(r->b.module, LP_ONNX_RotaryEmbedding, r->b.loc, 4, in, 1, &unknown);
  int64_t heads = lp_op_i64(r->op, "num_heads", 0), width, half;
  if (heads == 0 && x->type.rank == 3 && lp_type_static_dim(x->type, 2, &width) &&
      lp_type_static_dim(in[1]->type, 1, &half))
    heads = width / (2 * half);
  lp_op_set_i64(r->b.module, op, "num_heads", heads);
  lp_op_set_i64(r->b.module, op, "interleaved", lp_op_i64(r->op, "interleaved", 0));
  LP_TRY(lp_build_place(&r->b, op));
  r->result[0] = op->out[0];
  return LP_OK;
}

static const struct {
  lp_kind kind;
  lp_status (*run)(rewrite *r);
} rewrites[] = {{LP_ONNX_MsFastGelu, rewrite_fast_gelu},
                {LP_ONNX_MsGelu, rewrite_gelu},
                {LP_ONNX_MsBiasGelu, rewrite_gelu},
                {LP_ONNX_MsQuickGelu, rewrite_quick_gelu},
                {LP_ONNX_MsSkipLayerNormalization, rewrite_skip_norm},
                {LP_ONNX_MsSkipSimplifiedLayerNormalization, rewrite_skip_norm},
                {LP_ONNX_MsEmbedLayerNormalization, rewrite_embed_norm},
                {LP_ONNX_MsAttention, rewrite_attention},
                {LP_ONNX_MsMultiHeadAttention, rewrite_multi_head},
                {LP_ONNX_MsGroupQueryAttention, rewrite_group_query},
                {LP_ONNX_MsRotaryEmbedding, rewrite_rotary}};

static lp_status decompose(lp_module *module, lp_op *op, lp_diag *diag) {
  for (size_t i = 0; i < LP_COUNT(rewrites); i++) {
    if (rewrites[i].kind != op->kind) continue;
    rewrite r = {.b = lp_build_at(module, op, diag), .op = op};
    LP_TRY(rewrites[i].run(&r));
    for (int32_t k = 0; k < op->out_count; k++) {
      if (!op->out[k]->uses) continue;
      if (k >= (int32_t)LP_COUNT(r.result) || !r.result[k])
        return lp_error(diag, op->loc, "'%s' has a result %d that is not supported", lp_op_info_get(op->kind)->name, k);
      lp_value_replace(op->out[k], r.result[k]);
    }
    lp_op_erase(op);
    return LP_OK;
  }
  return LP_OK;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to decompose");
  for (lp_op *op = func->region->first, *next; op; op = next) {
    next = op->next;
    LP_TRY(decompose(module, op, context->diag));
  }
  lp_build_remove_dead(func->region);
  lp_block_renumber(func->region);
  return LP_OK;
}

const lp_pass lp_pass_decompose = {
    .name = "decompose", .summary = "rewrite com.microsoft operators by the standard's", .needs = "", .run = run};
