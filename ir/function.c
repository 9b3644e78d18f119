/* The elementwise operators of ONNX as functions of op.map: one table for the reference and for lowering. */
#include "ir/ir.h"

#include <math.h>

typedef struct {
  lp_kind kind;
  const char *fn;
  const char *alpha, *beta; /* the attributes that set them; NULL: the function has none */
  double alpha_default, beta_default;
} mapping;

static const mapping mappings[] = {
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
    {.kind = LP_ONNX_BitwiseAnd, .fn = "bitand"},
    {.kind = LP_ONNX_BitwiseOr, .fn = "bitor"},
    {.kind = LP_ONNX_BitwiseXor, .fn = "bitxor"},
    {.kind = LP_ONNX_BitwiseNot, .fn = "bitnot"},
    {.kind = LP_ONNX_BitShift, .fn = "shl"},
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
    {.kind = LP_ONNX_Asinh, .fn = "asinh"},
    {.kind = LP_ONNX_Acosh, .fn = "acosh"},
    {.kind = LP_ONNX_Atanh, .fn = "atanh"},
    {.kind = LP_ONNX_Erf, .fn = "erf"},
    {.kind = LP_ONNX_Sigmoid, .fn = "sigmoid"},
    {LP_ONNX_HardSigmoid, "hardsigmoid", "alpha", "beta", 0.2, 0.5},
    {.kind = LP_ONNX_HardSwish, .fn = "hardswish"},
    {.kind = LP_ONNX_Relu, .fn = "relu"},
    {LP_ONNX_ThresholdedRelu, "thresholdedrelu", "alpha", NULL, 1, 0},
    {LP_ONNX_LeakyRelu, "leakyrelu", "alpha", NULL, 0.01, 0},
    {.kind = LP_ONNX_PRelu, .fn = "prelu"},
    {LP_ONNX_Elu, "elu", "alpha", NULL, 1, 0},
    {LP_ONNX_Selu, "selu", "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
    {LP_ONNX_Celu, "celu", "alpha", NULL, 1, 0},
    {LP_ONNX_Shrink, "shrink", "lambd", "bias", 0.5, 0},
    {.kind = LP_ONNX_Softplus, .fn = "softplus"},
    {.kind = LP_ONNX_Softsign, .fn = "softsign"},
    {.kind = LP_ONNX_Mish, .fn = "mish"},
    {.kind = LP_ONNX_Gelu, .fn = "gelu"},
    {LP_ONNX_Swish, "silu", "alpha", NULL, 1, 0},
    {.kind = LP_ONNX_Cast, .fn = "cast"},
    {.kind = LP_ONNX_BitCast, .fn = "bitcast"},
};

static const mapping *find(lp_kind kind) {
  for (size_t i = 0; i < LP_COUNT(mappings); i++)
    if (mappings[i].kind == kind) return &mappings[i];
  return NULL;
}

static double number_attr(const lp_op *op, const char *name, double otherwise) {
  const lp_attr *attr = name ? lp_op_attr(op, name) : NULL;
  if (!name) return (double)NAN;
  return !attr ? otherwise : attr->kind == LP_ATTR_I64 ? (double)attr->i : attr->f;
}

bool lp_op_function(const lp_op *op, lp_function *out) {
  const mapping *m = find(op->kind);
  if (!m) return false;
  *out = (lp_function){m->fn, number_attr(op, m->alpha, m->alpha_default), number_attr(op, m->beta, m->beta_default)};
  if (op->kind == LP_ONNX_Mod && lp_op_i64(op, "fmod", 0)) out->fn = "fmod";
  if (op->kind == LP_ONNX_BitShift && lp_streq(lp_op_str(op, "direction", ""), "RIGHT")) out->fn = "shr";
  if (op->kind == LP_ONNX_Gelu && lp_streq(lp_op_str(op, "approximate", "none"), "tanh")) out->fn = "gelu_tanh";
  return true;
}

lp_cast lp_op_cast(const lp_op *op) {
  const lp_attr *saturate = lp_op_attr(op, "saturate");
  const char *round = lp_op_str(op, "round_mode", lp_op_str(op, "round", "up"));
  lp_cast cast = {true, LP_E8M0_UP};
  if (saturate) cast.saturate = saturate->kind == LP_ATTR_BOOL ? saturate->b : saturate->i != 0;
  if (lp_streq(round, "down")) cast.rounding = LP_E8M0_DOWN;
  if (lp_streq(round, "nearest")) cast.rounding = LP_E8M0_NEAREST;
  return cast;
}
