/* Shape rules: elementwise operators, products, reductions and norms. */
#include "base/poly.h"
#include "ir/infer/infer.h"

static lp_status set_all_broadcast(lp_infer *c, lp_dtype dtype, int32_t first) {
  LP_TRY(lp_infer_need(c, c->op->in_count));
  lp_shape shape = lp_infer_shape(c, first);
  for (int32_t i = 0; i < c->op->in_count; i++) {
    lp_shape with = lp_infer_shape(c, i);
    LP_TRY(lp_infer_broadcast(c, &shape, &with));
  }
  return lp_infer_set(c, 0, dtype, &shape);
}

lp_status infer_broadcast(lp_infer *c) {
  LP_TRY(lp_infer_need(c, c->op->in_count));
  for (int32_t i = 1; i < c->op->in_count; i++)
    LP_TRY(lp_infer_same_dtype(c, 0, i));
  return set_all_broadcast(c, lp_infer_in(c, 0).dtype, 0);
}

lp_status infer_bitwise(lp_infer *c) {
  LP_TRY(lp_infer_need(c, c->op->in_count));
  LP_TRY(lp_infer_integer(c, 0));
  const char *direction = lp_op_str(c->op, "direction", "LEFT");
  if (!lp_streq(direction, "LEFT") && !lp_streq(direction, "RIGHT"))
    return lp_infer_fail(c, "its direction is '%s', LEFT or RIGHT wanted", direction);
  return infer_broadcast(c);
}

lp_status infer_pow(lp_infer *c) {
  return set_all_broadcast(c, lp_infer_in(c, 0).dtype, 0);
}

lp_status infer_compare(lp_infer *c) {
  LP_TRY(lp_infer_need(c, c->op->in_count));
  for (int32_t i = 1; i < c->op->in_count; i++)
    LP_TRY(lp_infer_same_dtype(c, 0, i));
  return set_all_broadcast(c, LP_BOOL, 0);
}

lp_status infer_where(lp_infer *c) {
  if (lp_infer_in(c, 0).dtype != LP_BOOL)
    return lp_infer_fail(c, "its condition is of type %s, bool wanted", lp_dtype_name(lp_infer_in(c, 0).dtype));
  LP_TRY(lp_infer_same_dtype(c, 1, 2));
  return set_all_broadcast(c, lp_infer_in(c, 1).dtype, 1);
}

static lp_status set_like(const lp_infer *c, lp_dtype dtype) {
  lp_shape shape = lp_infer_shape(c, 0);
  return lp_infer_set(c, 0, dtype, &shape);
}

/* The axis attribute of an operator with a result like its operand must be one of the operand's axes. */
static lp_status check_axis(const lp_infer *c) {
  const lp_attr *axis = lp_op_attr(c->op, "axis");
  int32_t ignored;
  if (!axis) return LP_OK;
  int32_t rank = lp_infer_in(c, 0).rank;
  return lp_infer_axis(c, axis->i, rank > 0 ? rank : 1, lp_op_bool(c->op, "flatten", false), &ignored);
}

lp_status infer_same(lp_infer *c) {
  if (c->op->kind == LP_ONNX_Not && lp_infer_in(c, 0).dtype != LP_BOOL)
    return lp_infer_fail(c, "input 0 is of type %s, bool wanted", lp_dtype_name(lp_infer_in(c, 0).dtype));
  if (c->op->kind == LP_ONNX_Trilu) LP_TRY(lp_infer_min_rank(c, 0, 2));
  LP_TRY(check_axis(c));
  return set_like(c, lp_infer_in(c, 0).dtype);
}

static lp_status check_rounding(const lp_infer *c) {
  const char *mode = lp_op_str(c->op, "round_mode", "up");
  if (lp_streq(mode, "up") || lp_streq(mode, "down") || lp_streq(mode, "nearest")) return LP_OK;
  return lp_infer_fail(c, "its round_mode is '%s', up, down or nearest wanted", mode);
}

lp_status infer_cast(lp_infer *c) {
  int64_t to = lp_op_i64(c->op, "to", 0);
  lp_dtype dtype;
  LP_TRY(check_rounding(c));
  if (!lp_dtype_from_onnx(to, &dtype)) return lp_infer_fail(c, "a cast to type %" PRId64 " is not supported", to);
  return set_like(c, dtype);
}

lp_status infer_bit_cast(lp_infer *c) {
  LP_TRY(infer_cast(c));
  lp_dtype from = lp_infer_in(c, 0).dtype, to = c->op->out[0]->type.dtype;
  if (lp_dtype_bits(from) == lp_dtype_bits(to)) return LP_OK;
  return lp_infer_fail(c, "%s and %s differ in width", lp_dtype_name(from), lp_dtype_name(to));
}

/* Two operands of one type and shape. */
lp_status infer_gate(lp_infer *c) {
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  LP_TRY(lp_infer_rank(c, 1, lp_infer_in(c, 0).rank));
  lp_shape a = lp_infer_shape(c, 0), b = lp_infer_shape(c, 1);
  const lp_poly *agreed;
  for (int32_t i = 0; i < a.rank; i++)
    LP_TRY(lp_infer_agree(c, a.dim[i], b.dim[i], &agreed));
  return set_like(c, lp_infer_in(c, 0).dtype);
}

lp_status infer_cast_like(lp_infer *c) {
  LP_TRY(check_rounding(c));
  return set_like(c, lp_infer_in(c, 1).dtype);
}

/* Operand `index` as a number, if it is known before the program runs. */
static bool known_number(const lp_infer *c, int32_t index, double *out) {
  lp_tensor tensor;
  int64_t count;
  if (!lp_value_constant(lp_op_in(c->op, index), &tensor) || !lp_type_static_numel(tensor.type, &count) || count != 1)
    return false;
  *out = lp_tensor_f64(&tensor, 0);
  return true;
}

static lp_status refuse_unknown(const lp_infer *c, int32_t index, const char *what) {
  lp_status status = lp_infer_fail(c, "%s depends on input %d, which is not known before it runs", what, index);
  lp_note_binding(c->diag, c->op->loc, lp_op_in(c->op, index));
  return status;
}

/* Training drops random elements, except at a ratio of 0. */
static lp_status check_dropout(lp_infer *c) {
  double training = 0, ratio = 0.5;
  if (!lp_infer_has(c, 2)) return LP_OK;
  if (!known_number(c, 2, &training)) return refuse_unknown(c, 2, "whether it trains");
  if (training == 0) return LP_OK;
  if (lp_infer_has(c, 1) && !known_number(c, 1, &ratio)) return refuse_unknown(c, 1, "what share it drops");
  return ratio == 0 ? LP_OK : lp_infer_fail(c, "dropout in training mode is not supported");
}

lp_status infer_dropout(lp_infer *c) {
  LP_TRY(check_dropout(c));
  lp_shape shape = lp_infer_shape(c, 0);
  LP_TRY(lp_infer_set(c, 1, LP_BOOL, &shape));
  return set_like(c, lp_infer_in(c, 0).dtype);
}

/* ---- products ---- */

static lp_status product(lp_infer *c, lp_shape a, lp_shape b, lp_shape *out) {
  const lp_poly *inner, *rows = NULL, *cols = NULL;
  LP_TRY(lp_infer_agree(c, a.dim[a.rank - 1], b.dim[b.rank > 1 ? b.rank - 2 : 0], &inner));
  if (a.rank > 1) rows = a.dim[a.rank - 2];
  if (b.rank > 1) cols = b.dim[b.rank - 1];
  a.rank = a.rank > 2 ? a.rank - 2 : 0;
  b.rank = b.rank > 2 ? b.rank - 2 : 0;
  LP_TRY(lp_infer_broadcast(c, &a, &b));
  if (rows) LP_TRY(lp_infer_push(c, &a, rows));
  if (cols) LP_TRY(lp_infer_push(c, &a, cols));
  *out = a;
  return LP_OK;
}

lp_status lp_infer_product(lp_infer *c, int32_t first, int32_t second, lp_shape *out) {
  LP_TRY(lp_infer_min_rank(c, first, 1));
  LP_TRY(lp_infer_min_rank(c, second, 1));
  return product(c, lp_infer_shape(c, first), lp_infer_shape(c, second), out);
}

/* A vector has nothing to transpose. */
static lp_shape turned(lp_shape x, bool turn) {
  if (!turn || x.rank < 2) return x;
  const lp_poly *last = x.dim[x.rank - 1];
  x.dim[x.rank - 1] = x.dim[x.rank - 2];
  x.dim[x.rank - 2] = last;
  return x;
}

lp_status infer_fused_matmul(lp_infer *c) {
  lp_shape out;
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  LP_TRY(lp_infer_min_rank(c, 0, 1));
  LP_TRY(lp_infer_min_rank(c, 1, 1));
  if (lp_op_i64(c->op, "transBatchA", 0) || lp_op_i64(c->op, "transBatchB", 0))
    return lp_infer_fail(c, "transBatchA and transBatchB are not supported");
  lp_shape a = turned(lp_infer_shape(c, 0), lp_op_i64(c->op, "transA", 0) != 0);
  lp_shape b = turned(lp_infer_shape(c, 1), lp_op_i64(c->op, "transB", 0) != 0);
  LP_TRY(product(c, a, b, &out));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_matmul(lp_infer *c) {
  lp_shape out;
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  LP_TRY(lp_infer_product(c, 0, 1, &out));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

/* x [..., j or 1, k], index [..., j], w [experts * n][k]: [..., j, n] */
lp_status infer_experts(lp_infer *c) {
  int64_t experts = lp_op_i64(c->op, "experts", 0), rows;
  LP_TRY(lp_infer_rank(c, 2, 2));
  LP_TRY(lp_infer_index(c, 1));
  lp_shape x = lp_infer_shape(c, 0), index = lp_infer_shape(c, 1), w = lp_infer_shape(c, 2);
  if (index.rank < 1 || x.rank != index.rank + 1) return lp_infer_fail(c, "its x has not one axis more than its index");
  if (!lp_poly_is_const(w.dim[0], &rows) || experts < 1 || rows % experts != 0)
    return lp_infer_fail(c, "its weight does not divide into experts");
  LP_TRY(lp_infer_agree(c, x.dim[x.rank - 1], w.dim[1], &w.dim[1]));
  for (int32_t i = 0; i < index.rank; i++)
    if (i + 1 < index.rank || !lp_poly_is_i64(x.dim[i], 1))
      LP_TRY(lp_infer_agree(c, x.dim[i], index.dim[i], &x.dim[i]));
  x.dim[x.rank - 2] = index.dim[index.rank - 1];
  x.dim[x.rank - 1] = lp_dim_const(c->m, rows / experts);
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &x);
}

lp_status infer_gemm(lp_infer *c) {
  LP_TRY(lp_infer_rank(c, 0, 2));
  LP_TRY(lp_infer_rank(c, 1, 2));
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  bool trans_a = lp_op_i64(c->op, "transA", 0) != 0, trans_b = lp_op_i64(c->op, "transB", 0) != 0;
  lp_shape a = lp_infer_shape(c, 0), b = lp_infer_shape(c, 1);
  const lp_poly *inner;
  LP_TRY(lp_infer_agree(c, a.dim[trans_a ? 0 : 1], b.dim[trans_b ? 1 : 0], &inner));
  lp_shape out = {.rank = 2, .dim = {a.dim[trans_a ? 1 : 0], b.dim[trans_b ? 0 : 1]}};
  if (lp_infer_has(c, 2)) {
    lp_shape bias = lp_infer_shape(c, 2);
    if (bias.rank > 2) return lp_infer_fail(c, "its bias has %d axes, at most 2 wanted", bias.rank);
    for (int32_t i = 1; i <= bias.rank; i++)
      if (!lp_poly_is_i64(bias.dim[bias.rank - i], 1))
        LP_TRY(lp_infer_agree(c, bias.dim[bias.rank - i], out.dim[2 - i], &inner));
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_conv(lp_infer *c) {
  LP_TRY(lp_infer_min_rank(c, 0, 3));
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  lp_windows windows;
  LP_TRY(lp_op_windows(c->m, c->op, lp_infer_in(c, 0), lp_infer_in(c, 1), &windows, c->diag));
  lp_shape x = lp_infer_shape(c, 0), w = lp_infer_shape(c, 1);
  int64_t groups = lp_op_i64(c->op, "group", 1), maps;
  const lp_poly *agreed;
  if (groups < 1) return lp_infer_fail(c, "its group is %" PRId64, groups);
  const lp_poly *channels = lp_poly_scale(c->m->arena, w.dim[1], groups);
  if (!channels) return lp_infer_fail(c, "its channels overflow");
  LP_TRY(lp_infer_agree(c, x.dim[1], channels, &agreed));
  if (!lp_poly_is_const(w.dim[0], &maps) || maps % groups != 0)
    return lp_infer_fail(c, "its %s maps are not divided by %" PRId64 " groups", lp_infer_text(c, w.dim[0]), groups);
  if (lp_infer_has(c, 2)) {
    LP_TRY(lp_infer_rank(c, 2, 1));
    LP_TRY(lp_infer_agree(c, lp_infer_shape(c, 2).dim[0], w.dim[0], &agreed));
  }
  lp_shape out = {.rank = x.rank, .dim = {x.dim[0], w.dim[0]}};
  for (int32_t i = 0; i < windows.count; i++)
    out.dim[i + 2] = windows.out[i];
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

/* ---- reductions ---- */

/* The axes that are reduced, from operand 1; all of them when it is absent or empty. */
static lp_status reduced_axes(const lp_infer *c, int32_t rank, bool *reduced) {
  int64_t axes[LP_MAX_KNOWN];
  int32_t count = 0;
  if (lp_infer_has(c, 1)) LP_TRY(lp_infer_need_i64s(c, 1, axes, &count));
  bool all = count == 0 && lp_op_i64(c->op, "noop_with_empty_axes", 0) == 0;
  for (int32_t i = 0; i < rank; i++)
    reduced[i] = all;
  for (int32_t i = 0; i < count; i++) {
    int32_t axis;
    LP_TRY(lp_infer_axis(c, axes[i], rank, false, &axis));
    reduced[axis] = true;
  }
  return LP_OK;
}

lp_status infer_reduce(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0), out = {0};
  bool reduced[LP_MAX_RANK], keep = lp_op_i64(c->op, "keepdims", 1) != 0;
  LP_TRY(reduced_axes(c, in.rank, reduced));
  for (int32_t i = 0; i < in.rank; i++)
    if (!reduced[i])
      out.dim[out.rank++] = in.dim[i];
    else if (keep)
      out.dim[out.rank++] = lp_dim_const(c->m, 1);
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_argmax(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0), out = {0};
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), in.rank, false, &axis));
  bool keep = lp_op_i64(c->op, "keepdims", 1) != 0;
  for (int32_t i = 0; i < in.rank; i++)
    if (i != axis)
      out.dim[out.rank++] = in.dim[i];
    else if (keep)
      out.dim[out.rank++] = lp_dim_const(c->m, 1);
  return lp_infer_set(c, 0, LP_I64, &out);
}

/* Sizes that are not numbers are compared where the operator is lowered. */
lp_status infer_topk(lp_infer *c) {
  lp_shape out = lp_infer_shape(c, 0);
  const lp_poly *const *k;
  int32_t axis, count;
  int64_t wanted, there;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", -1), out.rank, false, &axis));
  LP_TRY(lp_infer_need_known(c, 1, &k, &count));
  if (count != 1) return lp_infer_fail(c, "its k is not one number");
  bool constant = lp_poly_is_const(k[0], &wanted);
  if (constant && (wanted < 0 || (lp_poly_is_const(out.dim[axis], &there) && wanted > there)))
    return lp_infer_fail(c, "it takes %s of %s elements", lp_infer_text(c, k[0]), lp_infer_text(c, out.dim[axis]));
  out.dim[axis] = k[0];
  LP_TRY(lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out));
  return lp_infer_set(c, 1, LP_I64, &out);
}

/* ---- norms ---- */

/* The scale or bias of a norm must broadcast to the input, not the other way. */
static lp_status fits_norm(lp_infer *c, int32_t index, const char *what) {
  lp_shape in = lp_infer_shape(c, 0), weight = lp_infer_shape(c, index), out = in;
  LP_TRY(lp_infer_broadcast(c, &out, &weight));
  if (out.rank != in.rank) return lp_infer_fail(c, "its %s has %d axes, at most %d wanted", what, weight.rank, in.rank);
  for (int32_t i = 0; i < in.rank; i++)
    if (in.dim[i] && out.dim[i] && !lp_poly_equal(out.dim[i], in.dim[i]))
      return lp_infer_fail(c, "its %s does not fit axis %d of its input", what, i);
  return LP_OK;
}

/* Layer and RMS norm; further results are the statistics, one per normalised group. */
lp_status infer_norm(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0);
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", -1), in.rank, false, &axis));
  LP_TRY(fits_norm(c, 1, "scale"));
  if (lp_infer_has(c, 2)) LP_TRY(fits_norm(c, 2, "bias"));
  LP_TRY(lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &in));
  for (int32_t i = axis; i < in.rank; i++)
    in.dim[i] = lp_dim_const(c->m, 1);
  LP_TRY(lp_infer_set(c, 1, LP_F32, &in));
  return lp_infer_set(c, 2, LP_F32, &in);
}

lp_status infer_batch_norm(lp_infer *c) {
  LP_TRY(lp_infer_min_rank(c, 0, 2));
  lp_shape x = lp_infer_shape(c, 0), vector = {.rank = 1};
  for (int32_t i = 1; i < 5; i++) {
    LP_TRY(lp_infer_rank(c, i, 1));
    LP_TRY(lp_infer_agree(c, x.dim[1], lp_infer_shape(c, i).dim[0], &vector.dim[0]));
  }
  LP_TRY(lp_infer_set(c, 1, lp_infer_in(c, 3).dtype, &vector));
  LP_TRY(lp_infer_set(c, 2, lp_infer_in(c, 4).dtype, &vector));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &x);
}

lp_status infer_divide(lp_infer *c) {
  const lp_poly *const *a, *const *b;
  int32_t a_count, b_count;
  LP_TRY(infer_broadcast(c));
  bool sizes = lp_infer_in(c, 0).dtype == LP_I64 && lp_infer_known(c, 0, &a, &a_count) &&
               lp_infer_known(c, 1, &b, &b_count) && a_count == 1 && b_count == 1;
  return sizes && !lp_poly_div(c->m->arena, a[0], b[0]) ? lp_infer_one_batch(c, a[0], b[0]) : LP_OK;
}
