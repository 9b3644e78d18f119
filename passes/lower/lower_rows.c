/* Lowering of softmax and norms: to op.softmax and op.norm where these fit, else to reductions and elementwise
 * loops. */
#include "base/poly.h"
#include "passes/lower/lower.h"

/* [lead..., trail...] as [lead..., product of trail] */
static lp_type flatten_from(const lp_lowering *l, lp_type type, int32_t axis) {
  const lp_poly *dims[LP_MAX_RANK];
  for (int32_t i = 0; i < axis; i++)
    dims[i] = type.dim[i];
  dims[axis] = lp_dim_product(l->b.module, type.dim, axis, type.rank);
  return lp_type_make(l->b.module, type.dtype, axis + 1, dims);
}

static lp_value *map1(lp_lowering *l, const char *fn, lp_value *x) {
  return lp_build_map1(&l->b, fn, x, x->type.dtype);
}

static lp_value *map2(lp_lowering *l, const char *fn, lp_value *x, lp_value *y) {
  return lp_build_map2(&l->b, fn, x, y, x->type.dtype);
}

/* A reduction over the last axis that keeps it as one of size 1. */
static lp_value *reduce_last(lp_lowering *l, const char *fn, lp_value *x) {
  const lp_poly *dims[LP_MAX_RANK];
  int64_t last = x->type.rank - 1;
  for (int32_t i = 0; i < last; i++)
    dims[i] = x->type.dim[i];
  dims[last] = lp_dim_const(l->b.module, 1);
  lp_type type = lp_type_make(l->b.module, x->type.dtype, x->type.rank, dims);
  lp_op *op = lp_build_typed(&l->b, LP_OP_REDUCE, 1, &x, type);
  lp_op_set_str(l->b.module, op, "fn", fn);
  lp_op_set_i64s(l->b.module, op, "axes", &last, 1);
  lp_op_set_bool(l->b.module, op, "keepdims", true);
  return op->out[0];
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* Moves the axis to the end. `flatten`, for opsets before 13: joins it with all axes after it. */
static lp_value *rows_of(lp_lowering *l, lp_value *x, bool flatten, int32_t axis) {
  if (x->type.rank == 0) {
    const lp_poly *one = lp_dim_const(l->b.module, 1);
    return lp_build_reshape(&l->b, x, lp_type_make(l->b.module, x->type.dtype, 1, &one));
  }
  if (!flatten) return lp_lower_axis_last(l, x, axis, false);
  const lp_poly *dims[] = {lp_dim_product(l->b.module, x->type.dim, 0, axis),
                           lp_dim_product(l->b.module, x->type.dim, axis, x->type.rank)};
  return lp_build_reshape(&l->b, x, lp_type_make(l->b.module, x->type.dtype, 2, dims));
}

static lp_value *rows_back(lp_lowering *l, lp_value *y, bool flatten, int32_t axis) {
  lp_type type = lp_op_in(l->op, 0)->type;
  return flatten || type.rank == 0 ? lp_build_reshape(&l->b, y, type) : lp_lower_axis_last(l, y, axis, true);
}

/* op.softmax computes in f32. */
static lp_value *build_softmax(lp_lowering *l, lp_value *x, bool logarithm) {
  if (x->type.dtype != LP_F64) {
    lp_op *op = lp_build_typed(&l->b, LP_OP_SOFTMAX, 1, &x, x->type);
    if (logarithm) lp_op_set_bool(l->b.module, op, "log", true);
    return op->out[0];
  }
  lp_value *shifted = map2(l, "sub", x, reduce_last(l, "max", x)), *power = map1(l, "exp", shifted);
  lp_value *sum = reduce_last(l, "sum", power);
  return logarithm ? map2(l, "sub", shifted, map1(l, "log", sum)) : map2(l, "div", power, sum);
}

lp_status lp_lower_softmax(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  bool flatten = lp_op_bool(l->op, "flatten", false);
  int32_t axis = (int32_t)lp_lower_axis(l, "axis", flatten ? 1 : -1, x->type.rank);
  lp_value *y = build_softmax(l, rows_of(l, x, flatten, axis), l->op->kind == LP_ONNX_LogSoftmax);
  l->result[0] = rows_back(l, y, flatten, axis);
  return LP_OK;
}

lp_status lp_lower_hardmax(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  bool flatten = lp_op_bool(l->op, "flatten", false);
  int32_t axis = (int32_t)lp_lower_axis(l, "axis", flatten ? 1 : -1, x->type.rank);
  lp_value *rows = rows_of(l, x, flatten, axis), *in[] = {rows};
  const lp_poly *dims[LP_MAX_RANK];
  int32_t last = rows->type.rank - 1;
  for (int32_t i = 0; i < last; i++)
    dims[i] = rows->type.dim[i];
  dims[last] = lp_dim_const(l->b.module, 1);
  lp_op *best = lp_build_typed(&l->b, LP_OP_ARGMAX, 1, in, lp_type_make(l->b.module, LP_I64, rows->type.rank, dims));
  lp_op_set_i64(l->b.module, best, "axis", last);
  lp_op_set_bool(l->b.module, best, "keepdims", true);
  lp_op *count =
      lp_build_typed(&l->b, LP_OP_IOTA, 0, NULL, lp_type_make(l->b.module, LP_I64, 1, &rows->type.dim[last]));
  lp_op_set_poly(l->b.module, count, "start", lp_dim_const(l->b.module, 0));
  lp_op_set_poly(l->b.module, count, "step", lp_dim_const(l->b.module, 1));
  lp_value *hit = lp_build_map2(&l->b, "eq", best->out[0], count->out[0], LP_BOOL);
  l->result[0] = rows_back(l, lp_build_map1(&l->b, "cast", hit, x->type.dtype), flatten, axis);
  return LP_OK;
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* Tells whether op.norm computes this norm. It takes f32, returns no statistics, and has a scale and bias of exactly
 * the normalised axes. */
static bool is_plain(const lp_lowering *l, lp_type rows, int32_t axis) {
  const lp_op *op = l->op;
  if (rows.dtype == LP_F64) return false;
  for (int32_t i = 1; i < op->out_count; i++)
    if (op->out[i]->uses) return false;
  for (int32_t i = 1; i < op->in_count && i < 3; i++) {
    const lp_value *in = lp_op_in(op, i);
    if (in && !lp_poly_equal(lp_type_numel(l->b.module, in->type), rows.dim[axis])) return false;
  }
  return true;
}

static lp_value *plain_norm(lp_lowering *l, lp_type rows, int32_t axis, bool rms) {
  lp_value *in[3] = {lp_build_reshape(&l->b, lp_op_in(l->op, 0), rows)};
  for (int32_t i = 1; i < 3; i++) {
    if (!lp_op_in(l->op, i)) continue;
    lp_type vector = lp_type_make(l->b.module, lp_op_in(l->op, i)->type.dtype, 1, &rows.dim[axis]);
    in[i] = lp_build_reshape(&l->b, lp_op_in(l->op, i), vector);
  }
  lp_op *op = lp_build_typed(&l->b, LP_OP_NORM, in[2] ? 3 : 2, in, in[0]->type);
  lp_op_set_str(l->b.module, op, "type", rms ? "rms" : "layer");
  lp_op_set_f64(l->b.module, op, "epsilon", lp_op_f64(l->op, "epsilon", 1e-5));
  return lp_build_reshape(&l->b, op->out[0], lp_op_in(l->op, 0)->type);
}

/* Computes the norm by single operators. Results: y, then the mean and the inverse deviation (an RMS norm has only the
 * latter). */
static void norm_by_parts(lp_lowering *l, lp_type rows, bool rms) {
  lp_type type = lp_op_in(l->op, 0)->type;
  lp_value *x = lp_build_reshape(&l->b, lp_op_in(l->op, 0), rows), *mean = rms ? NULL : reduce_last(l, "mean", x);
  lp_value *centred = mean ? map2(l, "sub", x, mean) : x;
  lp_value *variance = reduce_last(l, "mean", map2(l, "mul", centred, centred));
  lp_value *epsilon = lp_build_float(&l->b, rows.dtype, lp_op_f64(l->op, "epsilon", 1e-5));
  lp_value *deviation = map1(l, "sqrt", map2(l, "add", variance, epsilon));
  lp_value *y = lp_build_reshape(&l->b, map2(l, "div", centred, deviation), type);
  const char *const fns[] = {"mul", "add"};
  for (int32_t i = 1; i < 3; i++)
    if (lp_op_in(l->op, i)) y = map2(l, fns[i - 1], y, lp_op_in(l->op, i));
  lp_value *inverse = map1(l, "recip", deviation);
  l->result[0] = y;
  for (int32_t i = 1; i < l->op->out_count && i < 3; i++) {
    lp_value *found = mean && i == 1 ? mean : inverse;
    lp_type wanted = l->op->out[i]->type;
    if (found->type.dtype != wanted.dtype) found = lp_build_map1(&l->b, "cast", found, wanted.dtype);
    l->result[i] = lp_build_reshape(&l->b, found, wanted);
  }
}

lp_status lp_lower_norm(lp_lowering *l) {
  lp_type type = lp_op_in(l->op, 0)->type;
  int32_t axis = (int32_t)lp_lower_axis(l, "axis", -1, type.rank);
  lp_type rows = flatten_from(l, type, axis);
  bool rms = l->op->kind != LP_ONNX_LayerNormalization;
  if (is_plain(l, rows, axis))
    l->result[0] = plain_norm(l, rows, axis, rms);
  else
    norm_by_parts(l, rows, rms);
  return LP_OK;
}
