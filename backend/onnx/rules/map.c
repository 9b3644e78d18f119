/* Elementwise functions in ONNX. Most are one operator of the standard, the others are made of a few. */
#include "backend/onnx/rules/rules.h"

#include "backend/onnx/constants.h"

#include <math.h>

/* An operator of the same meaning. Its attributes get alpha and beta, or their default values. */
typedef struct {
  const char *fn, *type;
  const char *alpha, *beta; /* names of attributes; NULL: none */
  double alpha_default, beta_default;
  int64_t since; /* opset */
} direct;

static const direct directs[] = {
    {"add", "Add", NULL, NULL, 0, 0, 0},
    {"sub", "Sub", NULL, NULL, 0, 0, 0},
    {"mul", "Mul", NULL, NULL, 0, 0, 0},
    {"div", "Div", NULL, NULL, 0, 0, 0},
    {"pow", "Pow", NULL, NULL, 0, 0, 0},
    {"min", "Min", NULL, NULL, 0, 0, 0},
    {"max", "Max", NULL, NULL, 0, 0, 0},
    {"and", "And", NULL, NULL, 0, 0, 0},
    {"or", "Or", NULL, NULL, 0, 0, 0},
    {"xor", "Xor", NULL, NULL, 0, 0, 0},
    {"bitand", "BitwiseAnd", NULL, NULL, 0, 0, 18},
    {"bitor", "BitwiseOr", NULL, NULL, 0, 0, 18},
    {"bitxor", "BitwiseXor", NULL, NULL, 0, 0, 18},
    {"bitnot", "BitwiseNot", NULL, NULL, 0, 0, 18},
    {"eq", "Equal", NULL, NULL, 0, 0, 0},
    {"lt", "Less", NULL, NULL, 0, 0, 0},
    {"le", "LessOrEqual", NULL, NULL, 0, 0, 0},
    {"gt", "Greater", NULL, NULL, 0, 0, 0},
    {"ge", "GreaterOrEqual", NULL, NULL, 0, 0, 0},
    {"where", "Where", NULL, NULL, 0, 0, 0},
    {"not", "Not", NULL, NULL, 0, 0, 0},
    {"isnan", "IsNaN", NULL, NULL, 0, 0, 0},
    {"abs", "Abs", NULL, NULL, 0, 0, 0},
    {"neg", "Neg", NULL, NULL, 0, 0, 0},
    {"sign", "Sign", NULL, NULL, 0, 0, 0},
    {"floor", "Floor", NULL, NULL, 0, 0, 0},
    {"ceil", "Ceil", NULL, NULL, 0, 0, 0},
    {"round", "Round", NULL, NULL, 0, 0, 0},
    {"sqrt", "Sqrt", NULL, NULL, 0, 0, 0},
    {"recip", "Reciprocal", NULL, NULL, 0, 0, 0},
    {"exp", "Exp", NULL, NULL, 0, 0, 0},
    {"log", "Log", NULL, NULL, 0, 0, 0},
    {"sin", "Sin", NULL, NULL, 0, 0, 0},
    {"cos", "Cos", NULL, NULL, 0, 0, 0},
    {"tan", "Tan", NULL, NULL, 0, 0, 0},
    {"tanh", "Tanh", NULL, NULL, 0, 0, 0},
    {"sinh", "Sinh", NULL, NULL, 0, 0, 0},
    {"cosh", "Cosh", NULL, NULL, 0, 0, 0},
    {"asin", "Asin", NULL, NULL, 0, 0, 0},
    {"acos", "Acos", NULL, NULL, 0, 0, 0},
    {"atan", "Atan", NULL, NULL, 0, 0, 0},
    {"asinh", "Asinh", NULL, NULL, 0, 0, 0},
    {"acosh", "Acosh", NULL, NULL, 0, 0, 0},
    {"atanh", "Atanh", NULL, NULL, 0, 0, 0},
    {"erf", "Erf", NULL, NULL, 0, 0, 0},
    {"sigmoid", "Sigmoid", NULL, NULL, 0, 0, 0},
    {"hardsigmoid", "HardSigmoid", "alpha", "beta", 0.2, 0.5, 0},
    {"hardswish", "HardSwish", NULL, NULL, 0, 0, 0},
    {"relu", "Relu", NULL, NULL, 0, 0, 0},
    {"thresholdedrelu", "ThresholdedRelu", "alpha", NULL, 1, 0, 0},
    {"leakyrelu", "LeakyRelu", "alpha", NULL, 0.01, 0, 0},
    {"prelu", "PRelu", NULL, NULL, 0, 0, 0},
    {"elu", "Elu", "alpha", NULL, 1, 0, 0},
    {"selu", "Selu", "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875, 0},
    {"celu", "Celu", "alpha", NULL, 1, 0, 0},
    {"shrink", "Shrink", "lambd", "bias", 0.5, 0, 0},
    {"softplus", "Softplus", NULL, NULL, 0, 0, 0},
    {"softsign", "Softsign", NULL, NULL, 0, 0, 0},
};

typedef struct {
  onnx_graph *g;
  const char *fn;
  const onnx_name *in;
  int32_t count;
  lp_dtype dtype; /* of the operands */
  double alpha, beta;
} call;

static double given(double value, double otherwise) {
  return isnan(value) ? otherwise : value;
}

static onnx_name number(const call *c, double value) {
  return onnx_scalar(c->g, c->dtype, value);
}

static onnx_name silu(const call *c) {
  double factor = given(c->alpha, lp_streq(c->fn, "quick_gelu") ? 1.702 : 1);
  onnx_name x = c->in[0], inner = factor == 1.0 ? x : ONNX_NODE(c->g, "Mul", x, number(c, factor));
  return ONNX_NODE(c->g, "Mul", x, ONNX_NODE(c->g, "Sigmoid", inner));
}

static onnx_name half_of(const call *c, onnx_name inner) {
  onnx_name sum = ONNX_NODE(c->g, "Add", inner, number(c, 1));
  return ONNX_NODE(c->g, "Mul", ONNX_NODE(c->g, "Mul", c->in[0], number(c, 0.5)), sum);
}

static onnx_name gelu(const call *c) {
  onnx_name inner = ONNX_NODE(c->g, "Mul", c->in[0], number(c, 0.70710678118654752440));
  return half_of(c, ONNX_NODE(c->g, "Erf", inner));
}

static onnx_name gelu_tanh(const call *c) {
  onnx_name x = c->in[0], square = ONNX_NODE(c->g, "Mul", x, x), cube = ONNX_NODE(c->g, "Mul", square, x);
  onnx_name sum = ONNX_NODE(c->g, "Add", x, ONNX_NODE(c->g, "Mul", cube, number(c, 0.044715)));
  return half_of(c, ONNX_NODE(c->g, "Tanh", ONNX_NODE(c->g, "Mul", sum, number(c, 0.79788456080286535588))));
}

static onnx_name mish(const call *c) {
  return ONNX_NODE(c->g, "Mul", c->in[0], ONNX_NODE(c->g, "Tanh", ONNX_NODE(c->g, "Softplus", c->in[0])));
}

/* Mod of floats takes the sign of the dividend; that of the divisor is x - y floor(x / y). */
static onnx_name modulo(const call *c) {
  if (lp_streq(c->fn, "mod") && lp_dtype_is_float(c->dtype)) {
    onnx_name whole = ONNX_NODE(c->g, "Floor", ONNX_NODE(c->g, "Div", c->in[0], c->in[1]));
    return ONNX_NODE(c->g, "Sub", c->in[0], ONNX_NODE(c->g, "Mul", c->in[1], whole));
  }
  onnx_name y = ONNX_NODE(c->g, "Mod", c->in[0], c->in[1]);
  onnx_attr_i(c->g, "fmod", lp_streq(c->fn, "fmod"));
  return y;
}

static onnx_name clip(const call *c) {
  onnx_name low = c->count > 1 ? c->in[1] : NULL, high = c->count > 2 ? c->in[2] : NULL;
  if (!low && !isnan(c->alpha)) low = number(c, c->alpha);
  if (!high && !isnan(c->beta)) high = number(c, c->beta);
  return ONNX_NODE(c->g, "Clip", c->in[0], low, high);
}

static onnx_name is_inf(const call *c) {
  onnx_name y = ONNX_NODE(c->g, "IsInf", c->in[0]);
  onnx_attr_i(c->g, "detect_negative", given(c->alpha, 1) != 0.0);
  onnx_attr_i(c->g, "detect_positive", given(c->beta, 1) != 0.0);
  return y;
}

static bool has_sign(lp_dtype dtype) {
  return dtype == LP_I2 || dtype == LP_I4 || dtype == LP_I8 || dtype == LP_I16 || dtype == LP_I32 || dtype == LP_I64;
}

/* BitShift takes unsigned integers, and the standard leaves open what it does by the width or more. Numbers are shifted
 * as u64, then; other amounts than 0 to 63 give 0. To the right, the bits of a negative x are those of -1 - x turned
 * round, so that its sign fills the result. */
static onnx_name shift(const call *c) {
  const bool left = lp_streq(c->fn, "shl"), sign = !left && has_sign(c->dtype);
  onnx_name x = onnx_cast(c->g, c->in[0], LP_I64), by = onnx_cast(c->g, c->in[1], LP_I64);
  onnx_name zero = onnx_scalar(c->g, LP_I64, 0), ones = onnx_scalar(c->g, LP_I64, -1);
  onnx_name negative = sign ? ONNX_NODE(c->g, "Less", x, zero) : NULL;
  if (sign) x = ONNX_NODE(c->g, "Where", negative, ONNX_NODE(c->g, "Sub", ones, x), x);
  onnx_name bits = onnx_cast(c->g, x, LP_U64), amount = onnx_cast(c->g, by, LP_U64);
  onnx_name y = ONNX_NODE(c->g, "BitShift", bits, amount);
  onnx_attr_s(c->g, "direction", left ? "LEFT" : "RIGHT");
  y = onnx_cast(c->g, y, LP_I64);
  onnx_name from = ONNX_NODE(c->g, "Less", ones, by), to = ONNX_NODE(c->g, "Less", by, onnx_scalar(c->g, LP_I64, 64));
  y = ONNX_NODE(c->g, "Where", ONNX_NODE(c->g, "And", from, to), y, zero);
  if (sign) y = ONNX_NODE(c->g, "Where", negative, ONNX_NODE(c->g, "Sub", ones, y), y);
  return onnx_cast(c->g, y, onnx_dtype(c->dtype));
}

static const struct {
  const char *fn;
  onnx_name (*make)(const call *c);
} made[] = {{"silu", silu},    {"quick_gelu", silu}, {"gelu", gelu},   {"gelu_tanh", gelu_tanh},
            {"mish", mish},    {"mod", modulo},      {"fmod", modulo}, {"clip", clip},
            {"isinf", is_inf}, {"shl", shift},       {"shr", shift}};

static onnx_name direct_node(const call *c, const direct *d) {
  onnx_name y = onnx_node(c->g, d->type, c->count, c->in);
  if (d->alpha) onnx_attr_f(c->g, d->alpha, given(c->alpha, d->alpha_default));
  if (d->beta) onnx_attr_f(c->g, d->beta, given(c->beta, d->beta_default));
  return y;
}

lp_status onnx_function(onnx_graph *g, const lp_op *op, const char *fn, const onnx_name *in, int32_t count,
                        lp_dtype dtype, onnx_name *out) {
  double none = (double)NAN;
  call c = {g, fn, in, count, dtype, op ? lp_op_f64(op, "alpha", none) : none, op ? lp_op_f64(op, "beta", none) : none};
  for (size_t i = 0; i < LP_COUNT(made); i++)
    if (lp_streq(made[i].fn, fn)) return *out = made[i].make(&c), LP_OK;
  for (size_t i = 0; i < LP_COUNT(directs); i++)
    if (lp_streq(directs[i].fn, fn) && directs[i].since <= g->opset) return *out = direct_node(&c, &directs[i]), LP_OK;
  return onnx_refuse(g, lp_arena_format(g->arena, "ONNX has no function '%s'", fn));
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

/* The common type of the operands: that of the result, or for a comparison that of the first float. */
static lp_dtype operand_dtype(const lp_op *op) {
  lp_dtype result = op->out[0]->type.dtype, first = lp_op_in(op, 0)->type.dtype;
  if (lp_dtype_is_float(result)) return result;
  for (int32_t i = 0; i < op->in_count; i++)
    if (lp_op_in(op, i) && lp_dtype_is_float(lp_op_in(op, i)->type.dtype)) return lp_op_in(op, i)->type.dtype;
  return first;
}

static lp_status lower_cast(onnx_graph *g, const lp_op *op, onnx_name *out) {
  lp_dtype to = op->out[0]->type.dtype;
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  if (lp_dtype_is_mini(to)) return onnx_refuse(g, "casts to floats of 8 bits are not supported");
  out[0] = onnx_cast(g, x, to);
  return LP_OK;
}

lp_status onnx_lower_map(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const char *fn = lp_op_str(op, "fn", "");
  lp_dtype dtype = operand_dtype(op);
  onnx_name in[3];
  if (lp_streq(fn, "cast")) return lower_cast(g, op, out);
  for (int32_t i = 0; i < op->in_count && i < 3; i++) {
    LP_TRY(onnx_operand(g, i, &in[i]));
    const lp_value *value = lp_op_in(op, i);
    bool floats = value && lp_dtype_is_float(value->type.dtype) && lp_dtype_is_float(dtype);
    if (floats && value->type.dtype != dtype) in[i] = onnx_cast(g, in[i], dtype);
  }
  return onnx_function(g, op, fn, in, op->in_count, dtype, out);
}

lp_status onnx_lower_fused(onnx_graph *g, const lp_op *op, onnx_name *out) {
  for (int32_t i = 0; i < op->in_count; i++) {
    onnx_name name;
    LP_TRY(onnx_operand(g, i, &name));
    onnx_bind(g, op->region->arg[i], name);
  }
  LP_FOR_OPS(inner, op->region) {
    if (lp_op_has(inner, LP_TERMINATOR)) continue;
    g->op = inner;
    if (lp_op_has(inner, LP_CONSTANT)) continue;
    onnx_name name = NULL;
    LP_TRY(onnx_lower_map(g, inner, &name));
    onnx_bind(g, inner->out[0], name);
  }
  g->op = op;
  const lp_op *end = lp_block_terminator(op->region);
  for (int32_t i = 0; i < op->out_count; i++)
    LP_TRY(onnx_value(g, lp_op_in(end, i), &out[i]));
  return LP_OK;
}
