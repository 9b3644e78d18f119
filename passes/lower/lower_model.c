/* Lowering of products, attention and rotary positions. Norms and softmax are in lower_rows.c. */
#include "base/poly.h"
#include "passes/lower/lower.h"

#include <math.h>

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A product's constant operand: a matrix, perhaps quantised in groups along its inner axis. */
typedef struct {
  lp_value *w, *scale, *zero;
  bool transposed;
  int64_t group; /* 0: one scale for the whole inner axis */
} weight;

/* Tells whether the slice only cuts off the end of an axis. */
static bool cuts_end(const lp_op *op) {
  const lp_attr *starts = lp_op_attr(op, "starts"), *steps = lp_op_attr(op, "steps");
  for (int32_t i = 0; i < starts->count; i++) {
    int64_t start;
    if (!lp_poly_is_const(starts->polys[i], &start) || start != 0 || steps->is[i] != 1) return false;
  }
  return true;
}

/* Tells whether the weight is quantised along the axis that the product sums over, or has one scale for each of its
 * columns. Looks through a transpose of the codes, as quantizers write it for a head that is the embedding. */
static bool take_quantised(const lp_op *op, int64_t inner, weight *out) {
  lp_value *w = lp_op_in(op, 0), *scale = lp_op_in(op, 1), *zero = lp_op_in(op, 2);
  int64_t axis = lp_op_i64(op, "axis", 1), block = lp_op_i64(op, "block_size", 0), one;
  if (lp_op_is(w->def, LP_OP_TRANSPOSE) && w->type.rank == 2 && block == 0) {
    w = lp_op_in(w->def, 0);
    axis = 1 - axis;
    out->transposed = !out->transposed;
  }
  int64_t k = out->transposed ? 1 : 0;
  bool single = lp_type_static_numel(scale->type, &one) && one == 1;
  bool packable = lp_dtype_is_code(w->type.dtype) && !(zero && lp_dtype_is_float(w->type.dtype));
  if (!lp_value_is_constant(w) || !lp_value_is_constant(scale) || (zero && !lp_value_is_constant(zero))) return false;
  if (!packable || w->type.rank != 2 || (!single && (block > 0) != (axis == k))) return false;
  int64_t stored;
  if (!lp_type_static_dim(w->type, (int32_t)k, &stored)) return false;
  if (stored != inner && (!out->transposed || block == 0)) return false; /* a cut needs whole rows before it */
  *out = (weight){w, scale, zero, out->transposed, single ? 0 : block};
  return true;
}

/* Looks through transposes and through slices that cut off the padding of blocks. */
static bool find_weight(lp_value *value, bool transposed, weight *out) {
  *out = (weight){.transposed = transposed};
  int64_t inner;
  if (value->type.rank != 2) return false;
  if (lp_op_is(value->def, LP_OP_TRANSPOSE)) {
    out->transposed = !out->transposed;
    value = lp_op_in(value->def, 0);
  }
  bool sized = lp_type_static_dim(value->type, out->transposed ? 1 : 0, &inner);
  if (lp_op_is(value->def, LP_OP_SLICE) && cuts_end(value->def)) value = lp_op_in(value->def, 0);
  if (sized && lp_op_is(value->def, LP_OP_DEQUANTIZE)) return take_quantised(value->def, inner, out);
  int64_t own;
  bool whole = lp_type_static_dim(value->type, out->transposed ? 1 : 0, &own) && sized && own == inner;
  out->w = value;
  return whole && lp_value_is_constant(value) && lp_dtype_is_float(value->type.dtype) &&
         !lp_dtype_is_mini(value->type.dtype);
}

static lp_value *build_linear(lp_lowering *l, lp_value *x, const weight *w, lp_value *bias) {
  const lp_poly *dims[LP_MAX_RANK];
  for (int32_t i = 0; i + 1 < x->type.rank; i++)
    dims[i] = x->type.dim[i];
  dims[x->type.rank - 1] = w->w->type.dim[w->transposed ? 0 : 1];
  lp_value *in[] = {x, w->w, bias, NULL, NULL, w->scale, w->zero};
  int32_t count = w->zero ? 7 : w->scale ? 6 : bias ? 3 : 2;
  lp_op *op =
      lp_build_typed(&l->b, LP_OP_LINEAR, count, in, lp_type_make(l->b.module, x->type.dtype, x->type.rank, dims));
  if (w->transposed) lp_op_set_bool(l->b.module, op, "transpose_b", true);
  if (w->scale) lp_op_set_i64(l->b.module, op, "group", w->group);
  return op->out[0];
}

/* Marks the product that the choice of experts comes from, through operators on its scores. */
static void mark_router(lp_module *module, const lp_value *index) {
  enum { MOST_STEPS = 24 };
  for (int step = 0; index && index->def && step < MOST_STEPS; step++) {
    lp_op *op = index->def;
    if (op->kind == LP_OP_LINEAR) {
      lp_op_set_bool(module, op, "exact", true);
      return;
    }
    index = op->in_count > 0 ? lp_op_in(op, 0) : NULL;
  }
}

lp_status lp_lower_experts(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0), *index = lp_op_in(l->op, 1);
  weight w;
  if (!find_weight(lp_op_in(l->op, 2), true, &w) || !w.transposed)
    return lp_lower_refuse(l, "has a weight that is not a constant [experts * n][k]");
  mark_router(l->b.module, index);
  if (index->type.dtype != LP_I64) index = lp_build_map1(&l->b, "cast", index, LP_I64);
  lp_value *in[] = {x, w.w, lp_op_in(l->op, 3), index, NULL, w.scale, w.zero};
  lp_type type = lp_type_with_dtype(l->op->out[0]->type, x->type.dtype);
  lp_op *op = lp_build_typed(&l->b, LP_OP_EXPERTS, w.zero ? 7 : w.scale ? 6 : 4, in, type);
  lp_op_set_i64(l->b.module, op, "experts", lp_op_i64(l->op, "experts", 1));
  lp_op_set_bool(l->b.module, op, "transpose_b", true);
  if (w.scale) lp_op_set_i64(l->b.module, op, "group", w.group);
  l->result[0] = op->out[0];
  return LP_OK;
}

static lp_value *with_axis_of_one(lp_lowering *l, lp_value *x, bool in_front) {
  const lp_poly *one = lp_dim_const(l->b.module, 1);
  const lp_poly *dims[] = {in_front ? one : x->type.dim[0], in_front ? x->type.dim[0] : one};
  return lp_build_reshape(&l->b, x, lp_type_make(l->b.module, x->type.dtype, 2, dims));
}

static lp_value *build_matmul(lp_lowering *l, lp_value *a, lp_value *b) {
  const lp_poly *dims[LP_MAX_RANK];
  int32_t rank = a->type.rank > b->type.rank ? a->type.rank : b->type.rank;
  lp_type lead_a = a->type, lead_b = b->type;
  lead_a.rank -= 2;
  lead_b.rank -= 2;
  lp_type lead = lp_build_broadcast(&l->b, lead_a, lead_b, a->type.dtype);
  for (int32_t i = 0; i < rank - 2; i++)
    dims[i] = lead.dim[i];
  dims[rank - 2] = a->type.dim[a->type.rank - 2];
  dims[rank - 1] = b->type.dim[b->type.rank - 1];
  lp_value *in[] = {a, b};
  return lp_build_typed(&l->b, LP_OP_MATMUL, 2, in, lp_type_make(l->b.module, a->type.dtype, rank, dims))->out[0];
}

static const char refused_type[] =
    "multiplies matrices of a type other than f32, f16, bf16, f64, i32, i64, u32 and u64";

static bool multiplies(lp_dtype dtype) {
  if (lp_dtype_is_float(dtype)) return !lp_dtype_is_mini(dtype);
  return dtype == LP_I32 || dtype == LP_I64 || dtype == LP_U32 || dtype == LP_U64;
}

/* Tells whether the value can be the left operand of op.linear. */
static bool is_computed_f32(const lp_value *value) {
  return lp_dtype_is_float(value->type.dtype) && value->type.dtype != LP_F64 && !lp_value_is_constant(value);
}

lp_status lp_lower_matmul(lp_lowering *l) {
  lp_value *a = lp_op_in(l->op, 0), *b = lp_op_in(l->op, 1);
  weight w;
  if (!multiplies(a->type.dtype)) return lp_lower_refuse(l, refused_type);
  if (is_computed_f32(a) && a->type.rank >= 1 && find_weight(b, false, &w)) {
    l->result[0] = build_linear(l, a, &w, NULL);
    return LP_OK;
  }
  if (a->type.rank == 1) a = with_axis_of_one(l, a, true);
  if (b->type.rank == 1) b = with_axis_of_one(l, b, false);
  l->result[0] = lp_build_reshape(&l->b, build_matmul(l, a, b), l->op->out[0]->type);
  return LP_OK;
}

static lp_value *transposed_if(lp_lowering *l, lp_value *x, const char *flag) {
  static const int64_t swap[] = {1, 0};
  return lp_op_i64(l->op, flag, 0) ? lp_build_transpose(&l->b, x, swap) : x;
}

static lp_value *scaled(lp_lowering *l, lp_value *x, double factor) {
  if (factor == 1.0) return x;
  return lp_build_map2(&l->b, "mul", x, lp_build_float(&l->b, x->type.dtype, factor), x->type.dtype);
}

lp_status lp_lower_gemm(lp_lowering *l) {
  lp_value *a = transposed_if(l, lp_op_in(l->op, 0), "transA"), *b = lp_op_in(l->op, 1), *c = lp_op_in(l->op, 2);
  double alpha = lp_op_f64(l->op, "alpha", 1.0), beta = lp_op_f64(l->op, "beta", 1.0);
  bool transposed = lp_op_i64(l->op, "transB", 0) != 0;
  if (!multiplies(a->type.dtype)) return lp_lower_refuse(l, refused_type);
  weight w;
  lp_value *y;
  if (is_computed_f32(a) && find_weight(b, transposed, &w)) {
    const lp_poly *n = w.w->type.dim[w.transposed ? 0 : 1];
    bool vector = c && alpha == 1.0 && beta == 1.0 && lp_value_is_constant(c) &&
                  lp_poly_equal(lp_type_numel(l->b.module, c->type), n) && c->type.rank >= 1 &&
                  lp_poly_equal(c->type.dim[c->type.rank - 1], n);
    lp_type flat = lp_type_make(l->b.module, c ? c->type.dtype : LP_F32, 1, &n);
    lp_value *bias = vector ? lp_build_reshaped_constant(&l->b, c, flat) : NULL;
    y = build_linear(l, a, &w, bias);
    if (bias) c = NULL;
  } else {
    y = build_matmul(l, a, transposed_if(l, b, "transB"));
  }
  y = scaled(l, y, alpha);
  l->result[0] = c ? lp_build_map2(&l->b, "add", y, scaled(l, c, beta), y->type.dtype) : y;
  return LP_OK;
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* [b, s, heads * d] as [b, s, heads, d]. An operand with four axes stays as it is ([b, heads, s, d]). */
static lp_value *split_heads(lp_lowering *l, lp_value *x, int64_t heads) {
  if (x->type.rank == 4) return x;
  const lp_poly *count = lp_dim_const(l->b.module, heads);
  const lp_poly *dims[] = {x->type.dim[0], x->type.dim[1], count,
                           lp_poly_div(l->b.module->arena, x->type.dim[2], count)};
  return dims[3] ? lp_build_reshape(&l->b, x, lp_type_make(l->b.module, x->type.dtype, 4, dims)) : NULL;
}

static lp_value *heads_first(lp_lowering *l, lp_value *x, bool three_axes) {
  static const int64_t swap[] = {0, 2, 1, 3};
  return three_axes ? lp_build_transpose(&l->b, x, swap) : x;
}

/* past and new rows of keys or values, heads first */
static lp_value *join_past(lp_lowering *l, lp_value *past, lp_value *x) {
  if (!past) return x;
  const lp_poly *dims[] = {x->type.dim[0], x->type.dim[1],
                           lp_poly_add(l->b.module->arena, past->type.dim[2], x->type.dim[2]), x->type.dim[3]};
  lp_value *in[] = {past, x};
  lp_op *op = lp_build_typed(&l->b, LP_OP_CONCAT, 2, in, lp_type_make(l->b.module, x->type.dtype, 4, dims));
  lp_op_set_i64(l->b.module, op, "axis", 2);
  return op->out[0];
}

static lp_value *build_attention(lp_lowering *l, lp_value *q, lp_value *k, lp_value *v, bool bshd, int64_t heads) {
  const lp_op *from = l->op;
  lp_value *mask = lp_op_in(from, 3), *sinks = lp_op_in(from, 7), *in[] = {q, k, v, mask, sinks};
  const lp_poly *dims[] = {q->type.dim[0], q->type.dim[1], q->type.dim[2], v->type.dim[3]};
  lp_op *op = lp_build_typed(&l->b, LP_OP_ATTENTION,
                             sinks  ? 5
                             : mask ? 4
                                    : 3,
                             in, lp_type_make(l->b.module, q->type.dtype, 4, dims));
  int64_t kv_heads = 1, d = 1;
  (void)lp_poly_is_const(k->type.dim[1], &kv_heads);
  (void)lp_poly_is_const(q->type.dim[3], &d);
  lp_op_set_i64(l->b.module, op, "heads", heads);
  lp_op_set_i64(l->b.module, op, "kv_heads", kv_heads);
  lp_op_set_i64(l->b.module, op, "head_dim", d);
  lp_op_set_f64(l->b.module, op, "scale", lp_op_f64(from, "scale", 1.0 / sqrt((double)d)));
  lp_op_set_f64(l->b.module, op, "softcap", lp_op_f64(from, "softcap", 0));
  lp_op_set_bool(l->b.module, op, "causal", lp_op_i64(from, "is_causal", 0) != 0);
  lp_op_set_i64(l->b.module, op, "window", lp_op_i64(from, "window", 0));
  lp_op_set_str(l->b.module, op, "layout", bshd ? "bshd" : "bhsd");
  return op->out[0];
}

/* decompose has rewritten every other form into this one. */
static lp_status check_attention(const lp_lowering *l) {
  const lp_op *op = l->op;
  if (lp_op_in(op, 6) || lp_op_attr(op, "left_window_size") || lp_op_attr(op, "right_window_size") ||
      (op->out_count > 3 && op->out[3]->uses) || (lp_op_i64(op, "is_causal", 0) && !lp_op_i64(op, "bottom_right", 0)))
    return lp_lower_refuse(l, "was not decomposed");
  return LP_OK;
}

lp_status lp_lower_attention(lp_lowering *l) {
  lp_value *q = lp_op_in(l->op, 0), *k = lp_op_in(l->op, 1), *v = lp_op_in(l->op, 2);
  bool three = q->type.rank == 3, shared = k == v && lp_op_in(l->op, 4) == lp_op_in(l->op, 5);
  LP_TRY(check_attention(l));
  int64_t heads = lp_op_i64(l->op, "q_num_heads", 0), kv_heads = lp_op_i64(l->op, "kv_num_heads", heads);
  if (!three && !lp_type_static_dim(q->type, 1, &heads))
    return lp_lower_refuse(l, "has a number of heads that is not constant");
  if (three && (heads < 1 || kv_heads < 1)) return lp_lower_refuse(l, "lacks q_num_heads or kv_num_heads");
  q = split_heads(l, q, heads);
  k = split_heads(l, k, kv_heads);
  v = split_heads(l, v, kv_heads);
  if (!q || !k || !v) return lp_lower_refuse(l, "has a width that its heads do not divide");
  k = join_past(l, lp_op_in(l->op, 4), heads_first(l, k, three));
  v = shared ? k : join_past(l, lp_op_in(l->op, 5), heads_first(l, v, three));
  lp_value *y = build_attention(l, q, k, v, three, heads);
  l->result[0] = lp_build_reshape(&l->b, y, lp_type_with_dtype(l->op->out[0]->type, y->type.dtype));
  l->result[1] = k;
  l->result[2] = v;
  return LP_OK;
}

lp_status lp_lower_linear_attention(lp_lowering *l) {
  const lp_op *from = l->op;
  const char *rule = lp_op_str(from, "update_rule", "gated_delta");
  int64_t heads = lp_op_i64(from, "q_num_heads", 1), width;
  double scale = lp_op_f64(from, "scale", 0);
  lp_value *in[6];
  for (int32_t i = 0; i < 6; i++)
    in[i] = lp_op_in(from, i);
  if (!lp_type_static_dim(in[0]->type, 2, &width)) return lp_lower_refuse(l, "has a width that is not constant");
  lp_type y = from->out[0]->type;
  int64_t kv_heads = lp_op_i64(from, "kv_num_heads", 1);
  const lp_poly *dims[] = {in[0]->type.dim[0], lp_dim_const(l->b.module, kv_heads),
                           lp_dim_const(l->b.module, width / heads),
                           lp_poly_div(l->b.module->arena, y.dim[2], lp_dim_const(l->b.module, heads))};
  lp_op *op = lp_build_typed(&l->b, LP_OP_LINEAR_ATTENTION, from->in_count, in, y);
  lp_op_add_result(l->b.module, op, lp_type_make(l->b.module, y.dtype, 4, dims));
  lp_op_set_i64(l->b.module, op, "heads", heads);
  lp_op_set_i64(l->b.module, op, "kv_heads", kv_heads);
  lp_op_set_f64(l->b.module, op, "scale", scale != 0 ? scale : 1 / sqrt((double)width / (double)heads));
  lp_op_set_bool(l->b.module, op, "delta", lp_streq(rule, "delta") || lp_streq(rule, "gated_delta"));
  l->result[0] = op->out[0];
  l->result[1] = op->out[1];
  return LP_OK;
}

lp_status lp_lower_rotary(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0), *tables[2], *positions = lp_op_in(l->op, 3);
  lp_type type = x->type;
  for (int32_t i = 0; i < 2; i++) {
    tables[i] = lp_op_in(l->op, i + 1);
    if (!positions) continue;
    lp_value *in[] = {tables[i], positions};
    const lp_poly *dims[] = {positions->type.dim[0], positions->type.dim[1], tables[i]->type.dim[1]};
    lp_op *rows = lp_build_typed(&l->b, LP_OP_GATHER, 2, in, lp_type_make(l->b.module, LP_F32, 3, dims));
    lp_op_set_i64(l->b.module, rows, "axis", 0);
    tables[i] = rows->out[0];
  }
  int64_t heads = lp_op_i64(l->op, "num_heads", 0), half = 0;
  if (type.rank == 3 && heads < 1) return lp_lower_refuse(l, "lacks num_heads");
  if (!lp_type_static_dim(tables[0]->type, -1, &half))
    return lp_lower_refuse(l, "has a table whose width is not constant");
  x = split_heads(l, x, heads);
  if (!x) return lp_lower_refuse(l, "has a width that its heads do not divide");
  lp_value *in[] = {x, tables[0], tables[1]};
  lp_op *op = lp_build_typed(&l->b, LP_OP_ROTARY, 3, in, x->type);
  lp_op_set_bool(l->b.module, op, "interleaved", lp_op_i64(l->op, "interleaved", 0) != 0);
  lp_op_set_i64(l->b.module, op, "rotary_dim", 2 * half);
  lp_op_set_str(l->b.module, op, "layout", type.rank == 3 ? "bshd" : "bhsd");
  l->result[0] = lp_build_reshape(&l->b, op->out[0], type);
  return LP_OK;
}

lp_status lp_lower_decomposed(lp_lowering *l) {
  return lp_lower_refuse(l, "was not decomposed");
}
