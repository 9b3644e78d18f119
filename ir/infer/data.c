/* Shape rules of operators with results of a size that depends on the elements of an operand, which must be known. */
#include "base/poly.h"
#include "ir/infer/infer.h"

/* The result for a vector of symbolic length with elements that are all nonzero or all zero. Older exporters count
 * positions by it. */
static bool is_filled(const lp_value *value, bool *nonzero) {
  lp_tensor tensor;
  if (!value || !value->def || value->type.rank != 1) return false;
  if (value->def->kind == LP_ONNX_ConstantOfShape) {
    const lp_attr *fill = lp_op_attr(value->def, "value");
    *nonzero = fill && lp_tensor_f64(&fill->tensor, 0) != 0;
    return true;
  }
  if (value->def->kind != LP_ONNX_Expand || !lp_value_constant(lp_op_in(value->def, 0), &tensor)) return false;
  int64_t count;
  *nonzero = lp_type_static_numel(tensor.type, &count) && count == 1 && lp_tensor_f64(&tensor, 0) != 0;
  return count == 1;
}

/* Counts the elements among the first `most` that are not zero. */
static bool count_nonzero(const lp_infer *c, int32_t index, int64_t most, int64_t *count) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_array array;
  bool known = lp_infer_evaluate(c, index, arena, &array);
  *count = 0;
  if (known) {
    lp_tensor tensor = {.type = lp_type_static(c->m, array.dtype, array.rank, array.dim), .data = array.data};
    int64_t numel = 0;
    known = lp_type_static_numel(tensor.type, &numel);
    for (int64_t i = 0; i < numel && i < most; i++)
      *count += lp_tensor_f64(&tensor, i) != 0;
  }
  return known;
}

/* The number of places, if the result's type already gives it as a symbol. The importer bounds that symbol later. */
static const lp_poly *given_count(const lp_infer *c) {
  const lp_value *out = lp_op_out(c->op, 0);
  bool given = out && out->type.rank == 2 && out->type.dim[1] && !lp_poly_is_const(out->type.dim[1], NULL);
  return given ? out->type.dim[1] : NULL;
}

/* One row of places for each axis. */
lp_status infer_nonzero(lp_infer *c) {
  lp_type x = lp_infer_in(c, 0);
  int64_t count = 0;
  bool nonzero = false;
  lp_shape out = {.rank = 2, .dim = {lp_dim_const(c->m, x.rank)}};
  if (count_nonzero(c, 0, INT64_MAX, &count))
    out.dim[1] = lp_dim_const(c->m, count);
  else if (is_filled(lp_op_in(c->op, 0), &nonzero))
    out.dim[1] = nonzero ? x.dim[0] : lp_dim_const(c->m, 0);
  else if (given_count(c))
    out.dim[1] = given_count(c);
  else
    return lp_infer_refuse_data(c, 0);
  return lp_infer_set(c, 0, LP_I64, &out);
}

/* x, condition: the slices of `axis`, or without one the elements, where the condition, which may be shorter, holds. */
lp_status infer_compress(lp_infer *c) {
  LP_TRY(lp_infer_rank(c, 1, 1));
  lp_shape out = lp_infer_shape(c, 0);
  int32_t axis = 0;
  int64_t count, most;
  if (lp_op_attr(c->op, "axis"))
    LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), out.rank, false, &axis));
  else
    out = (lp_shape){.rank = 1, .dim = {lp_type_numel(c->m, lp_infer_in(c, 0))}};
  if (!out.dim[axis] || !lp_poly_is_const(out.dim[axis], &most))
    return lp_infer_fail(c, "the axis that it compresses has no constant size");
  if (!count_nonzero(c, 1, most, &count)) return lp_infer_refuse_data(c, 1);
  out.dim[axis] = lp_dim_const(c->m, count);
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

/* A matrix of x's shape, of the type `dtype` or x's. */
lp_status infer_eye_like(lp_infer *c) {
  LP_TRY(lp_infer_rank(c, 0, 2));
  lp_shape shape = lp_infer_shape(c, 0);
  lp_dtype dtype = lp_infer_in(c, 0).dtype;
  int64_t wanted = lp_op_i64(c->op, "dtype", -1);
  if (wanted >= 0 && !lp_dtype_from_onnx(wanted, &dtype))
    return lp_infer_fail(c, "its dtype %" PRId64 " is not supported", wanted);
  return lp_infer_set(c, 0, dtype, &shape);
}
