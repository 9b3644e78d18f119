/* Lowering of elementwise operators to op.map. */
#include "base/poly.h"
#include "passes/lower/lower.h"

#include <assert.h>
#include <math.h>

lp_value *lp_lower_cast(lp_lowering *l, lp_value *x, lp_dtype dtype) {
  return x->type.dtype == dtype ? x : lp_build_map1(&l->b, "cast", x, dtype);
}

/* x * sigmoid(alpha x) has a name for each of the two alphas that models use. */
static lp_status lower_swish(lp_lowering *l, lp_value *x, double alpha) {
  if (alpha == 1.0 || fabs(alpha - 1.702) < 1e-6) {
    l->result[0] = lp_build_map1(&l->b, alpha == 1.0 ? "silu" : "quick_gelu", x, x->type.dtype);
    return LP_OK;
  }
  lp_value *scaled = lp_build_map2(&l->b, "mul", x, lp_build_float(&l->b, x->type.dtype, alpha), x->type.dtype);
  lp_value *gate = lp_build_map1(&l->b, "sigmoid", scaled, x->type.dtype);
  l->result[0] = lp_build_map2(&l->b, "mul", x, gate, x->type.dtype);
  return LP_OK;
}

static bool is_computed_in_f32(lp_dtype dtype) {
  return dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16;
}

/* Tells whether the cast is between float types and so does nothing once 16-bit floats are computed in f32. */
static bool is_void_cast(const lp_op *op) {
  lp_dtype from = lp_op_in(op, 0)->type.dtype, to = op->out[0]->type.dtype;
  return op->kind == LP_ONNX_Cast && (from == to || (is_computed_in_f32(from) && is_computed_in_f32(to)));
}

static lp_value *build_cast(lp_lowering *l, lp_value *x, lp_dtype to) {
  const lp_cast cast = lp_op_cast(l->op);
  static const char *const roundings[] = {[LP_E8M0_UP] = "up", [LP_E8M0_DOWN] = "down", [LP_E8M0_NEAREST] = "nearest"};
  if (x->type.dtype == to) return x;
  lp_value *y = lp_build_map1(&l->b, "cast", x, to);
  if (lp_dtype_is_mini(to) && !cast.saturate) lp_op_set_bool(l->b.module, y->def, "saturate", false);
  if (to == LP_F8E8M0) lp_op_set_str(l->b.module, y->def, "round", roundings[cast.rounding]);
  return y;
}

/* A whole base with a broken exponent is raised as a float and truncated. */
static lp_status lower_pow(lp_lowering *l, lp_value *x, lp_value *y) {
  assert(x && y);
  lp_dtype result = x->type.dtype, other = y->type.dtype, meet = result;
  if (!lp_dtype_is_float(result) && lp_dtype_is_float(other)) meet = result == LP_I32 ? other : LP_F64;
  lp_value *power = lp_build_map2(&l->b, "pow", lp_lower_cast(l, x, meet), lp_lower_cast(l, y, meet), meet);
  l->result[0] = lp_lower_cast(l, power, result);
  return LP_OK;
}

static void set_number(lp_lowering *l, const char *name, double value) {
  if (!isnan(value)) lp_op_set_f64(l->b.module, l->result[0]->def, name, value);
}

lp_status lp_lower_map(lp_lowering *l) {
  const lp_op *op = l->op;
  lp_function map;
  if (!lp_op_function(op, &map)) return lp_lower_refuse(l, "has no elementwise form");
  if (is_void_cast(op)) {
    l->result[0] = lp_op_in(op, 0);
    return LP_OK;
  }
  if (op->kind == LP_ONNX_Cast) {
    l->result[0] = build_cast(l, lp_op_in(op, 0), op->out[0]->type.dtype);
    return LP_OK;
  }
  if (op->kind == LP_ONNX_Swish) return lower_swish(l, lp_op_in(op, 0), lp_op_f64(op, "alpha", 1.0));
  lp_value *in[3] = {0};
  for (int32_t i = 0; i < op->in_count; i++)
    in[i] = lp_op_in(op, i);
  if (op->kind == LP_ONNX_Pow) return lower_pow(l, in[0], in[1]);
  l->result[0] = lp_build_map(&l->b, map.fn, op->in_count, in, op->out[0]->type);
  set_number(l, "alpha", map.alpha);
  set_number(l, "beta", map.beta);
  return LP_OK;
}

lp_status lp_lower_variadic_map(lp_lowering *l) {
  const lp_op *op = l->op;
  lp_function map;
  lp_value *sum = lp_op_in(op, 0);
  if (!lp_op_function(op, &map)) return lp_lower_refuse(l, "has no elementwise form");
  for (int32_t i = 1; i < op->in_count; i++)
    sum = lp_build_map2(&l->b, map.fn, sum, lp_op_in(op, i), op->out[0]->type.dtype);
  if (op->kind == LP_ONNX_Mean && op->in_count > 1) {
    lp_value *share = lp_build_float(&l->b, sum->type.dtype, 1.0 / op->in_count);
    sum = lp_build_map2(&l->b, "mul", sum, share, sum->type.dtype);
  }
  l->result[0] = sum;
  return LP_OK;
}

lp_status lp_lower_clip(lp_lowering *l) {
  static const char *const fns[] = {"max", "min"};
  lp_value *x = lp_op_in(l->op, 0);
  for (int32_t i = 0; i < 2; i++) {
    lp_value *bound = lp_op_in(l->op, i + 1);
    if (bound) x = lp_build_map2(&l->b, fns[i], x, bound, x->type.dtype);
  }
  l->result[0] = x;
  return LP_OK;
}

lp_status lp_lower_cast_like(lp_lowering *l) {
  l->result[0] = build_cast(l, lp_op_in(l->op, 0), l->op->out[0]->type.dtype);
  return LP_OK;
}

lp_status lp_lower_identity(lp_lowering *l) {
  l->result[0] = lp_op_in(l->op, 0);
  return LP_OK;
}

/* Inference drops no elements. */
lp_status lp_lower_dropout(lp_lowering *l) {
  l->result[0] = lp_op_in(l->op, 0);
  if (l->op->out_count < 2 || !l->op->out[1]->uses) return LP_OK;
  lp_op *mask = lp_build_typed(&l->b, LP_OP_FILL, 0, NULL, l->op->out[1]->type);
  lp_op_set_f64(l->b.module, mask, "value", 1);
  l->result[1] = mask->out[0];
  return LP_OK;
}

/* Integers are reduced in 64 bits and cast back; results that are not integers are computed in f64. The greatest and
 * the least keep their type, because their initial values belong to it. */
static lp_dtype reduced_in(lp_kind kind, lp_dtype dtype) {
  if (lp_dtype_is_float(dtype)) return dtype;
  switch (kind) {
  case LP_ONNX_ReduceMax:
  case LP_ONNX_ReduceMin:
    return dtype == LP_BOOL ? LP_U8 : dtype;
  case LP_ONNX_ReduceL2:
  case LP_ONNX_ReduceLogSum:
  case LP_ONNX_ReduceLogSumExp:
    return LP_F64;
  default:
    return dtype == LP_U64 ? LP_U64 : LP_I64;
  }
}

lp_status lp_lower_reduce(lp_lowering *l) {
  static const struct {
    lp_kind kind;
    const char *fn;
  } fns[] = {
      {LP_ONNX_ReduceSum, "sum"},      {LP_ONNX_ReduceMean, "mean"},       {LP_ONNX_ReduceMax, "max"},
      {LP_ONNX_ReduceMin, "min"},      {LP_ONNX_ReduceProd, "prod"},       {LP_ONNX_ReduceL1, "l1"},
      {LP_ONNX_ReduceL2, "l2"},        {LP_ONNX_ReduceSumSquare, "sumsq"}, {LP_ONNX_ReduceLogSumExp, "logsumexp"},
      {LP_ONNX_ReduceLogSum, "logsum"}};
  lp_value *x = lp_op_in(l->op, 0), *operand = lp_op_in(l->op, 1);
  int32_t rank = x->type.rank, count = 0;
  bool listed[LP_MAX_RANK] = {0};
  int32_t given = operand ? operand->known_count : 0;
  if (operand && !operand->known) return lp_lower_refuse_data(l, 1, "has axes that depend on data");
  for (int32_t i = 0; i < given; i++) {
    int64_t axis;
    if (!lp_known_i64(operand, i, &axis)) return lp_lower_refuse_data(l, 1, "has axes that depend on data");
    listed[axis < 0 ? axis + rank : axis] = true;
  }
  if (given == 0 && lp_op_i64(l->op, "noop_with_empty_axes", 0)) return lp_lower_identity(l);
  int64_t axes[LP_MAX_RANK];
  for (int32_t i = 0; i < rank; i++)
    if (listed[i] || given == 0) axes[count++] = i;
  lp_type type = l->op->out[0]->type;
  x = lp_lower_cast(l, x, reduced_in(l->op->kind, x->type.dtype));
  lp_op *reduce = lp_build_typed(&l->b, LP_OP_REDUCE, 1, &x, lp_type_with_dtype(type, x->type.dtype));
  for (size_t i = 0; i < LP_COUNT(fns); i++)
    if (fns[i].kind == l->op->kind) lp_op_set_str(l->b.module, reduce, "fn", fns[i].fn);
  lp_op_set_i64s(l->b.module, reduce, "axes", axes, count);
  lp_op_set_bool(l->b.module, reduce, "keepdims", lp_op_i64(l->op, "keepdims", 1) != 0);
  l->result[0] = lp_lower_cast(l, reduce->out[0], type.dtype);
  return LP_OK;
}

lp_status lp_lower_argmax(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  lp_op *op = lp_build_typed(&l->b, LP_OP_ARGMAX, 1, &x, l->op->out[0]->type);
  lp_op_set_i64(l->b.module, op, "axis", lp_lower_axis(l, "axis", 0, x->type.rank));
  lp_op_set_bool(l->b.module, op, "keepdims", lp_op_i64(l->op, "keepdims", 1) != 0);
  lp_op_set_bool(l->b.module, op, "last", lp_op_i64(l->op, "select_last_index", 0) != 0);
  if (l->op->kind == LP_ONNX_ArgMin) lp_op_set_bool(l->b.module, op, "min", true);
  l->result[0] = op->out[0];
  return LP_OK;
}

lp_status lp_lower_topk(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  int64_t axis = lp_lower_axis(l, "axis", -1, x->type.rank), size;
  const lp_poly *there = x->type.dim[axis], *k = l->op->out[0]->type.dim[axis];
  bool numbers = lp_poly_is_const(there, &size) && lp_poly_is_const(k, &size); /* shape inference has compared it */
  if (!numbers && !lp_poly_equal(there, k)) return lp_lower_refuse(l, "may take more elements than there are");
  lp_type types[] = {l->op->out[0]->type, l->op->out[1]->type};
  lp_op *op = lp_op_create(l->b.module, LP_OP_TOPK, l->op->loc, 1, &x, 2, types);
  lp_op_insert_before(l->op, op);
  lp_op_set_i64(l->b.module, op, "axis", axis);
  if (lp_op_i64(l->op, "largest", 1) == 0) lp_op_set_bool(l->b.module, op, "min", true);
  l->result[0] = op->out[0];
  l->result[1] = op->out[1];
  return LP_OK;
}

lp_status lp_lower_cumsum(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  int64_t axis;
  double number;
  if (!lp_known_i64(lp_op_in(l->op, 1), 0, &axis)) {
    if (!lp_scalar_constant(lp_op_in(l->op, 1), &number))
      return lp_lower_refuse_data(l, 1, "has an axis that depends on data");
    axis = (int64_t)number;
  }
  lp_dtype dtype = x->type.dtype;
  x = lp_lower_cast(l, x, reduced_in(l->op->kind, dtype));
  lp_op *op = lp_build_typed(&l->b, LP_OP_CUMSUM, 1, &x, x->type);
  lp_op_set_i64(l->b.module, op, "axis", axis < 0 ? axis + x->type.rank : axis);
  lp_op_set_bool(l->b.module, op, "exclusive", lp_op_i64(l->op, "exclusive", 0) != 0);
  lp_op_set_bool(l->b.module, op, "reverse", lp_op_i64(l->op, "reverse", 0) != 0);
  if (l->op->kind == LP_ONNX_CumProd) lp_op_set_bool(l->b.module, op, "product", true);
  l->result[0] = lp_lower_cast(l, op->out[0], dtype);
  return LP_OK;
}

/* ---- quantise, dequantise ---------------------------------------------------------------------------------------- */

static lp_value *build_quantised(lp_lowering *l, lp_kind kind, lp_value *x, lp_dtype dtype) {
  lp_value *in[] = {x, lp_op_in(l->op, 1), lp_op_in(l->op, 2)};
  int64_t axis = lp_op_i64(l->op, "axis", 1);
  lp_op *op = lp_build_typed(&l->b, kind, in[2] ? 3 : 2, in, lp_type_with_dtype(x->type, dtype));
  lp_op_set_i64(l->b.module, op, "axis", axis < 0 ? axis + x->type.rank : axis);
  lp_op_set_i64(l->b.module, op, "block_size", lp_op_i64(l->op, "block_size", 0));
  return op->out[0];
}

lp_status lp_lower_quantize(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  if (!lp_dtype_is_float(x->type.dtype)) x = lp_build_map1(&l->b, "cast", x, LP_F32);
  l->result[0] = build_quantised(l, LP_OP_QUANTIZE, x, l->op->out[0]->type.dtype);
  if (!lp_op_i64(l->op, "saturate", 1)) lp_op_set_bool(l->b.module, l->result[0]->def, "saturate", false);
  return LP_OK;
}

lp_status lp_lower_dequantize(lp_lowering *l) {
  l->result[0] = build_quantised(l, LP_OP_DEQUANTIZE, lp_op_in(l->op, 0), LP_F32);
  return LP_OK;
}
