/* Lowering of elementwise operators to op.map. */
#include "passes/lower_internal.h"

#include <math.h>
#include <string.h>

/* ONNX operator -> fn of op.map, with the defaults of alpha and beta where it has them. */
static const struct {
  lp_kind kind;
  const char *fn;
  const char *alpha, *beta; /* the attributes that fill them */
  double alpha_default, beta_default;
} maps[] = {
    {.kind = LP_ONNX_Add, .fn = "add"},
    {.kind = LP_ONNX_Sub, .fn = "sub"},
    {.kind = LP_ONNX_Mul, .fn = "mul"},
    {.kind = LP_ONNX_Div, .fn = "div"},
    {.kind = LP_ONNX_Pow, .fn = "pow"},
    {.kind = LP_ONNX_Mod, .fn = "mod"},
    {.kind = LP_ONNX_Min, .fn = "min"},
    {.kind = LP_ONNX_Max, .fn = "max"},
    {.kind = LP_ONNX_Sum, .fn = "add"},
    {.kind = LP_ONNX_Mean, .fn = "add"},
    {.kind = LP_ONNX_And, .fn = "and"},
    {.kind = LP_ONNX_Or, .fn = "or"},
    {.kind = LP_ONNX_Xor, .fn = "xor"},
    {.kind = LP_ONNX_Equal, .fn = "eq"},
    {.kind = LP_ONNX_Less, .fn = "lt"},
    {.kind = LP_ONNX_LessOrEqual, .fn = "le"},
    {.kind = LP_ONNX_Greater, .fn = "gt"},
    {.kind = LP_ONNX_GreaterOrEqual, .fn = "ge"},
    {.kind = LP_ONNX_Where, .fn = "where"},
    {.kind = LP_ONNX_Not, .fn = "not"},
    {.kind = LP_ONNX_IsNaN, .fn = "isnan"},
    {LP_ONNX_IsInf, "isinf", "detect_negative", "detect_positive", 1, 1},
    {.kind = LP_ONNX_Abs, .fn = "abs"},
    {.kind = LP_ONNX_Neg, .fn = "neg"},
    {.kind = LP_ONNX_Sign, .fn = "sign"},
    {.kind = LP_ONNX_Floor, .fn = "floor"},
    {.kind = LP_ONNX_Ceil, .fn = "ceil"},
    {.kind = LP_ONNX_Round, .fn = "round"},
    {.kind = LP_ONNX_Sqrt, .fn = "sqrt"},
    {.kind = LP_ONNX_Reciprocal, .fn = "recip"},
    {.kind = LP_ONNX_Exp, .fn = "exp"},
    {.kind = LP_ONNX_Log, .fn = "log"},
    {.kind = LP_ONNX_Sin, .fn = "sin"},
    {.kind = LP_ONNX_Cos, .fn = "cos"},
    {.kind = LP_ONNX_Tan, .fn = "tan"},
    {.kind = LP_ONNX_Tanh, .fn = "tanh"},
    {.kind = LP_ONNX_Sinh, .fn = "sinh"},
    {.kind = LP_ONNX_Cosh, .fn = "cosh"},
    {.kind = LP_ONNX_Asin, .fn = "asin"},
    {.kind = LP_ONNX_Acos, .fn = "acos"},
    {.kind = LP_ONNX_Atan, .fn = "atan"},
    {.kind = LP_ONNX_Erf, .fn = "erf"},
    {.kind = LP_ONNX_Sigmoid, .fn = "sigmoid"},
    {LP_ONNX_HardSigmoid, "hardsigmoid", "alpha", "beta", 0.2, 0.5},
    {.kind = LP_ONNX_HardSwish, .fn = "hardswish"},
    {.kind = LP_ONNX_Relu, .fn = "relu"},
    {LP_ONNX_LeakyRelu, "leakyrelu", "alpha", NULL, 0.01, 0},
    {.kind = LP_ONNX_PRelu, .fn = "prelu"},
    {LP_ONNX_Elu, "elu", "alpha", NULL, 1, 0},
    {LP_ONNX_Selu, "selu", "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
    {LP_ONNX_Celu, "celu", "alpha", NULL, 1, 0},
    {.kind = LP_ONNX_Softplus, .fn = "softplus"},
    {.kind = LP_ONNX_Softsign, .fn = "softsign"},
    {.kind = LP_ONNX_Mish, .fn = "mish"},
    {.kind = LP_ONNX_Gelu, .fn = "gelu"},
    {.kind = LP_ONNX_Swish, .fn = "silu"},
    {.kind = LP_ONNX_Cast, .fn = "cast"},
};

static int map_index(lp_kind kind) {
  for (size_t i = 0; i < LP_COUNT(maps); i++)
    if (maps[i].kind == kind) return (int)i;
  return -1;
}

static double number_attr(const lp_op *op, const char *name, double otherwise) {
  const lp_attr *attr = lp_op_attr(op, name);
  return !attr ? otherwise : attr->kind == LP_ATTR_I64 ? (double)attr->i : attr->f;
}

/* x * sigmoid(alpha x) has names of its own for the two alphas that models use. */
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

/* A cast between float types does nothing once 16-bit floats are computed in f32. */
static bool is_void_cast(const lp_op *op) {
  lp_dtype from = lp_op_in(op, 0)->type.dtype, to = op->out[0]->type.dtype;
  bool both_narrow = lp_dtype_is_float(from) && lp_dtype_is_float(to) && from != LP_F64 && to != LP_F64;
  return op->kind == LP_ONNX_Cast && (from == to || both_narrow);
}

lp_status lp_lower_map(lp_lowering *l) {
  const lp_op *op = l->op;
  int index = map_index(op->kind);
  if (index < 0) return lp_lower_refuse(l, "has no elementwise form");
  if (is_void_cast(op)) {
    l->result[0] = lp_op_in(op, 0);
    return LP_OK;
  }
  if (op->kind == LP_ONNX_Swish) return lower_swish(l, lp_op_in(op, 0), lp_op_f64(op, "alpha", 1.0));
  const char *fn = maps[index].fn;
  if (op->kind == LP_ONNX_Gelu && lp_streq(lp_op_str(op, "approximate", "none"), "tanh")) fn = "gelu_tanh";
  if (op->kind == LP_ONNX_Mod && lp_op_i64(op, "fmod", 0)) fn = "fmod";
  lp_value *in[3] = {0};
  for (int32_t i = 0; i < op->in_count; i++)
    in[i] = lp_op_in(op, i);
  if (op->kind == LP_ONNX_Pow && in[1]->type.dtype != in[0]->type.dtype)
    in[1] = lp_build_map1(&l->b, "cast", in[1], in[0]->type.dtype);
  l->result[0] = lp_build_map(&l->b, fn, op->in_count, in, op->out[0]->type);
  lp_op *map = l->result[0]->def;
  if (maps[index].alpha)
    lp_op_set_f64(l->b.module, map, "alpha", number_attr(op, maps[index].alpha, maps[index].alpha_default));
  if (maps[index].beta)
    lp_op_set_f64(l->b.module, map, "beta", number_attr(op, maps[index].beta, maps[index].beta_default));
  return LP_OK;
}

lp_status lp_lower_variadic_map(lp_lowering *l) {
  const lp_op *op = l->op;
  const char *fn = maps[map_index(op->kind)].fn;
  lp_value *sum = lp_op_in(op, 0);
  for (int32_t i = 1; i < op->in_count; i++)
    sum = lp_build_map2(&l->b, fn, sum, lp_op_in(op, i), op->out[0]->type.dtype);
  if (op->kind == LP_ONNX_Mean && op->in_count > 1) {
    lp_value *share = lp_build_float(&l->b, sum->type.dtype, 1.0 / op->in_count);
    sum = lp_build_map2(&l->b, "mul", sum, share, sum->type.dtype);
  }
  l->result[0] = sum;
  return LP_OK;
}

/* Bounds are attributes before opset 11 and operands since. */
lp_status lp_lower_clip(lp_lowering *l) {
  static const char *const names[] = {"min", "max"}, *const fns[] = {"max", "min"};
  lp_value *x = lp_op_in(l->op, 0);
  for (int32_t i = 0; i < 2; i++) {
    lp_value *bound = lp_op_in(l->op, i + 1);
    if (!bound && lp_op_attr(l->op, names[i]))
      bound = lp_build_float(&l->b, x->type.dtype, lp_op_f64(l->op, names[i], 0));
    if (bound) x = lp_build_map2(&l->b, fns[i], x, bound, x->type.dtype);
  }
  l->result[0] = x;
  return LP_OK;
}

lp_status lp_lower_cast_like(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  lp_dtype to = l->op->out[0]->type.dtype;
  l->result[0] = x->type.dtype == to ? x : lp_build_map1(&l->b, "cast", x, to);
  return LP_OK;
}

lp_status lp_lower_identity(lp_lowering *l) {
  l->result[0] = lp_op_in(l->op, 0);
  return LP_OK;
}

/* Narrow integers are reduced as i64 and cast back: backends know one integer type for it. */
static lp_value *widened(lp_lowering *l, lp_value *x) {
  bool narrow = !lp_dtype_is_float(x->type.dtype) && x->type.dtype != LP_I64;
  return narrow ? lp_build_map1(&l->b, "cast", x, LP_I64) : x;
}

static lp_value *narrowed(lp_lowering *l, lp_value *x, lp_dtype dtype) {
  return x->type.dtype == dtype ? x : lp_build_map1(&l->b, "cast", x, dtype);
}

lp_status lp_lower_reduce(lp_lowering *l) {
  static const struct {
    lp_kind kind;
    const char *fn;
  } fns[] = {{LP_ONNX_ReduceSum, "sum"}, {LP_ONNX_ReduceMean, "mean"},       {LP_ONNX_ReduceMax, "max"},
             {LP_ONNX_ReduceMin, "min"}, {LP_ONNX_ReduceProd, "prod"},       {LP_ONNX_ReduceL1, "l1"},
             {LP_ONNX_ReduceL2, "l2"},   {LP_ONNX_ReduceSumSquare, "sumsq"}, {LP_ONNX_ReduceLogSumExp, "logsumexp"}};
  lp_value *x = lp_op_in(l->op, 0), *operand = lp_op_in(l->op, 1);
  int32_t rank = x->type.rank, count = 0;
  bool listed[LP_MAX_RANK] = {0};
  const lp_attr *attr = lp_op_attr(l->op, "axes");
  int32_t given = operand ? operand->known_count : attr ? attr->count : 0;
  if (operand && !operand->known) return lp_lower_refuse(l, "has axes that depend on data");
  for (int32_t i = 0; i < given; i++) {
    int64_t axis = 0;
    if (operand && !lp_known_i64(operand, i, &axis)) return lp_lower_refuse(l, "has axes that depend on data");
    if (!operand) axis = attr->is[i];
    listed[axis < 0 ? axis + rank : axis] = true;
  }
  if (given == 0 && lp_op_i64(l->op, "noop_with_empty_axes", 0)) return lp_lower_identity(l);
  int64_t axes[LP_MAX_RANK];
  for (int32_t i = 0; i < rank; i++)
    if (listed[i] || given == 0) axes[count++] = i;
  lp_type type = l->op->out[0]->type;
  x = widened(l, x);
  lp_op *reduce = lp_build_typed(&l->b, LP_OP_REDUCE, 1, &x, lp_type_with_dtype(type, x->type.dtype));
  for (size_t i = 0; i < LP_COUNT(fns); i++)
    if (fns[i].kind == l->op->kind) lp_op_set_str(l->b.module, reduce, "fn", fns[i].fn);
  lp_op_set_i64s(l->b.module, reduce, "axes", axes, count);
  lp_op_set_bool(l->b.module, reduce, "keepdims", lp_op_i64(l->op, "keepdims", 1) != 0);
  l->result[0] = narrowed(l, reduce->out[0], type.dtype);
  return LP_OK;
}

lp_status lp_lower_argmax(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  lp_op *op = lp_build_typed(&l->b, LP_OP_ARGMAX, 1, &x, l->op->out[0]->type);
  lp_op_set_i64(l->b.module, op, "axis", lp_lower_axis(l, "axis", 0, x->type.rank));
  lp_op_set_bool(l->b.module, op, "keepdims", lp_op_i64(l->op, "keepdims", 1) != 0);
  lp_op_set_bool(l->b.module, op, "last", lp_op_i64(l->op, "select_last_index", 0) != 0);
  l->result[0] = op->out[0];
  return LP_OK;
}

lp_status lp_lower_cumsum(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  int64_t axis;
  double number;
  if (!lp_known_i64(lp_op_in(l->op, 1), 0, &axis)) {
    if (!lp_scalar_constant(lp_op_in(l->op, 1), &number)) return lp_lower_refuse(l, "has an axis that depends on data");
    axis = (int64_t)number;
  }
  lp_dtype dtype = x->type.dtype;
  x = widened(l, x);
  lp_op *op = lp_build_typed(&l->b, LP_OP_CUMSUM, 1, &x, x->type);
  lp_op_set_i64(l->b.module, op, "axis", axis < 0 ? axis + x->type.rank : axis);
  lp_op_set_bool(l->b.module, op, "exclusive", lp_op_i64(l->op, "exclusive", 0) != 0);
  lp_op_set_bool(l->b.module, op, "reverse", lp_op_i64(l->op, "reverse", 0) != 0);
  l->result[0] = narrowed(l, op->out[0], dtype);
  return LP_OK;
}
