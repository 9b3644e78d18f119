/* Elementwise functions, by the names that op.map gives them. Floats are computed in double, integers in 64 bits. */
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* ---- on floats ---- */

typedef struct {
  double alpha, beta;
} settings;

#define UNARY(name, expression)                                                                                        \
  static double f_##name(double a, double b, settings s) {                                                             \
    (void)a, (void)b, (void)s;                                                                                         \
    return expression;                                                                                                 \
  }
UNARY(add, a + b)
UNARY(sub, a - b)
UNARY(mul, a *b)
UNARY(div, a / b)
UNARY(pow, pow(a, b))
UNARY(mod, isnan(fmod(a, b)) || fmod(a, b) == 0.0 || (fmod(a, b) < 0) == (b < 0) ? fmod(a, b) : fmod(a, b) + b)
UNARY(fmod, fmod(a, b))
UNARY(min, isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b)
UNARY(max, isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b)
UNARY(and, a != 0.0 && b != 0.0)
UNARY(or, a != 0.0 || b != 0.0)
UNARY(xor, (a != 0.0) != (b != 0.0))
UNARY(eq, a == b)
UNARY(lt, a < b)
UNARY(le, a <= b)
UNARY(gt, a > b)
UNARY(ge, a >= b)
UNARY(not, a == 0.0)
UNARY(isnan, isnan(a) != 0)
UNARY(isinf, isinf(a) && (a < 0 ? s.alpha != 0.0 : s.beta != 0.0))
UNARY(abs, fabs(a))
UNARY(neg, -a)
UNARY(sign, a > 0 ? 1 : a < 0 ? -1 : a)
UNARY(floor, floor(a))
UNARY(ceil, ceil(a))
UNARY(round, nearbyint(a))
UNARY(sqrt, sqrt(a))
UNARY(recip, 1 / a)
UNARY(exp, exp(a))
UNARY(log, log(a))
UNARY(sin, sin(a))
UNARY(cos, cos(a))
UNARY(tan, tan(a))
UNARY(tanh, tanh(a))
UNARY(sinh, sinh(a))
UNARY(cosh, cosh(a))
UNARY(asin, asin(a))
UNARY(acos, acos(a))
UNARY(atan, atan(a))
UNARY(erf, erf(a))
UNARY(sigmoid, 1 / (1 + exp(-a)))
UNARY(hardsigmoid, fmax(0, fmin(1, s.alpha *a + s.beta)))
UNARY(hardswish, a *fmax(0, fmin(1, a / 6 + 0.5)))
UNARY(relu, a > 0 || isnan(a) ? a : 0)
UNARY(leakyrelu, a < 0 ? s.alpha * a : a)
UNARY(prelu, a < 0 ? b * a : a)
UNARY(elu, a < 0 ? s.alpha * expm1(a) : a)
UNARY(selu, s.beta *(a > 0 ? a : s.alpha * expm1(a)))
UNARY(celu, fmax(0, a) + fmin(0, s.alpha *expm1(a / s.alpha)))
UNARY(softplus, a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)))
UNARY(softsign, a / (1 + fabs(a)))
UNARY(mish, a *tanh(f_softplus(a, b, s)))
UNARY(gelu, 0.5 * a * (1 + erf(a * 0.70710678118654752440)))
UNARY(gelu_tanh, 0.5 * a * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a))))
UNARY(silu, a / (1 + exp(-s.alpha * a)))
UNARY(cast, a)
#undef UNARY

/* ---- on integers ---- */

/* Two's complement, as every target computes it. */
static int64_t wrap(uint64_t value) {
  return (int64_t)value;
}

static int64_t i_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (uint64_t b = (uint64_t)base; exponent > 0; exponent /= 2, b *= b)
    if (exponent % 2) result *= b;
  return wrap(result);
}

static int64_t i_div(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? wrap(0 - (uint64_t)a) : a / b;
}

static int64_t i_fmod(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t i_mod(int64_t a, int64_t b) {
  int64_t left = i_fmod(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

typedef enum {
  I_ADD,
  I_SUB,
  I_MUL,
  I_DIV,
  I_POW,
  I_MOD,
  I_FMOD,
  I_MIN,
  I_MAX,
  I_AND,
  I_OR,
  I_XOR,
  I_EQ,
  I_LT,
  I_LE,
  I_GT,
  I_GE,
  I_NOT,
  I_ABS,
  I_NEG,
  I_SIGN,
  I_SAME,
  I_RELU,
  I_NONE
} integer_function;

static int64_t on_integers(integer_function f, int64_t a, int64_t b) {
  switch (f) {
  case I_ADD:
    return wrap((uint64_t)a + (uint64_t)b);
  case I_SUB:
    return wrap((uint64_t)a - (uint64_t)b);
  case I_MUL:
    return wrap((uint64_t)a * (uint64_t)b);
  case I_DIV:
    return i_div(a, b);
  case I_POW:
    return i_pow(a, b);
  case I_MOD:
    return i_mod(a, b);
  case I_FMOD:
    return i_fmod(a, b);
  case I_MIN:
    return a < b ? a : b;
  case I_MAX:
    return a > b ? a : b;
  case I_AND:
    return a && b;
  case I_OR:
    return a || b;
  case I_XOR:
    return !a != !b;
  case I_EQ:
    return a == b;
  case I_LT:
    return a < b;
  case I_LE:
    return a <= b;
  case I_GT:
    return a > b;
  case I_GE:
    return a >= b;
  case I_NOT:
    return !a;
  case I_ABS:
    return a < 0 ? wrap(0 - (uint64_t)a) : a;
  case I_NEG:
    return wrap(0 - (uint64_t)a);
  case I_SIGN:
    return (a > 0) - (a < 0);
  case I_RELU:
    return a > 0 ? a : 0;
  default:
    return a;
  }
}

/* ---- the table ---- */

typedef struct {
  const char *name;
  int32_t arity;
  double (*on_floats)(double, double, settings);
  integer_function on_integers;
  double alpha, beta; /* unless given */
} function;

static const function functions[] = {
    {"add", 2, f_add, I_ADD, 0, 0},
    {"sub", 2, f_sub, I_SUB, 0, 0},
    {"mul", 2, f_mul, I_MUL, 0, 0},
    {"div", 2, f_div, I_DIV, 0, 0},
    {"pow", 2, f_pow, I_POW, 0, 0},
    {"mod", 2, f_mod, I_MOD, 0, 0},
    {"fmod", 2, f_fmod, I_FMOD, 0, 0},
    {"min", 2, f_min, I_MIN, 0, 0},
    {"max", 2, f_max, I_MAX, 0, 0},
    {"and", 2, f_and, I_AND, 0, 0},
    {"or", 2, f_or, I_OR, 0, 0},
    {"xor", 2, f_xor, I_XOR, 0, 0},
    {"eq", 2, f_eq, I_EQ, 0, 0},
    {"lt", 2, f_lt, I_LT, 0, 0},
    {"le", 2, f_le, I_LE, 0, 0},
    {"gt", 2, f_gt, I_GT, 0, 0},
    {"ge", 2, f_ge, I_GE, 0, 0},
    {"not", 1, f_not, I_NOT, 0, 0},
    {"isnan", 1, f_isnan, I_NONE, 0, 0},
    {"isinf", 1, f_isinf, I_NONE, 1, 1},
    {"abs", 1, f_abs, I_ABS, 0, 0},
    {"neg", 1, f_neg, I_NEG, 0, 0},
    {"sign", 1, f_sign, I_SIGN, 0, 0},
    {"floor", 1, f_floor, I_SAME, 0, 0},
    {"ceil", 1, f_ceil, I_SAME, 0, 0},
    {"round", 1, f_round, I_SAME, 0, 0},
    {"sqrt", 1, f_sqrt, I_NONE, 0, 0},
    {"recip", 1, f_recip, I_NONE, 0, 0},
    {"exp", 1, f_exp, I_NONE, 0, 0},
    {"log", 1, f_log, I_NONE, 0, 0},
    {"sin", 1, f_sin, I_NONE, 0, 0},
    {"cos", 1, f_cos, I_NONE, 0, 0},
    {"tan", 1, f_tan, I_NONE, 0, 0},
    {"tanh", 1, f_tanh, I_NONE, 0, 0},
    {"sinh", 1, f_sinh, I_NONE, 0, 0},
    {"cosh", 1, f_cosh, I_NONE, 0, 0},
    {"asin", 1, f_asin, I_NONE, 0, 0},
    {"acos", 1, f_acos, I_NONE, 0, 0},
    {"atan", 1, f_atan, I_NONE, 0, 0},
    {"erf", 1, f_erf, I_NONE, 0, 0},
    {"sigmoid", 1, f_sigmoid, I_NONE, 0, 0},
    {"hardsigmoid", 1, f_hardsigmoid, I_NONE, 0.2, 0.5},
    {"hardswish", 1, f_hardswish, I_NONE, 0, 0},
    {"relu", 1, f_relu, I_RELU, 0, 0},
    {"leakyrelu", 1, f_leakyrelu, I_NONE, 0.01, 0},
    {"prelu", 2, f_prelu, I_NONE, 0, 0},
    {"elu", 1, f_elu, I_NONE, 1, 0},
    {"selu", 1, f_selu, I_NONE, 1.67326319217681884765625, 1.05070102214813232421875},
    {"celu", 1, f_celu, I_NONE, 1, 0},
    {"softplus", 1, f_softplus, I_NONE, 0, 0},
    {"softsign", 1, f_softsign, I_NONE, 0, 0},
    {"mish", 1, f_mish, I_NONE, 0, 0},
    {"gelu", 1, f_gelu, I_NONE, 0, 0},
    {"gelu_tanh", 1, f_gelu_tanh, I_NONE, 0, 0},
    {"quick_gelu", 1, f_silu, I_NONE, 1.702, 0},
    {"silu", 1, f_silu, I_NONE, 1, 0},
    {"cast", 1, f_cast, I_SAME, 0, 0},
};

static const function *find_function(const char *name) {
  for (size_t i = 0; i < LP_COUNT(functions); i++)
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  return NULL;
}

double lp_eval_epilogue(const char *fn, double x) {
  const function *f = find_function(fn);
  settings s = {f ? f->alpha : 0, f ? f->beta : 0};
  return f ? f->on_floats(x, 0, s) : x;
}

/* ---- loops ---- */

static void map_elements(const function *f, settings s, const lp_array *const *in, lp_array *out) {
  int64_t count = lp_array_numel(out);
  bool floats = lp_dtype_is_float(in[0]->dtype) || (f->arity > 1 && lp_dtype_is_float(in[1]->dtype));
  for (int64_t i = 0; i < count; i++) {
    int64_t a = lp_broadcast_index(in[0], i, out->rank, out->dim);
    int64_t b = f->arity > 1 ? lp_broadcast_index(in[1], i, out->rank, out->dim) : 0;
    if (floats || f->on_integers == I_NONE) {
      double y = f->arity > 1 ? lp_array_f64(in[1], b) : 0;
      lp_array_set_f64(out, i, f->on_floats(lp_array_f64(in[0], a), y, s));
    } else {
      int64_t y = f->arity > 1 ? lp_array_i64(in[1], b) : 0;
      lp_array_set_i64(out, i, on_integers(f->on_integers, lp_array_i64(in[0], a), y));
    }
  }
}

static void select_elements(const lp_array *const *in, lp_array *out) {
  int64_t count = lp_array_numel(out);
  for (int64_t i = 0; i < count; i++) {
    const lp_array *from = in[lp_array_i64(in[0], lp_broadcast_index(in[0], i, out->rank, out->dim)) ? 1 : 2];
    lp_array_copy(out, i, from, lp_broadcast_index(from, i, out->rank, out->dim));
  }
}

static void clip_elements(const lp_array *const *in, int32_t in_count, settings s, lp_array *out) {
  const lp_array *low = in_count > 1 ? in[1] : NULL, *high = in_count > 2 ? in[2] : NULL;
  int64_t count = lp_array_numel(out);
  bool floats = lp_dtype_is_float(out->dtype);
  for (int64_t i = 0; i < count; i++) {
    if (floats) {
      double x = lp_array_f64(in[0], i), min = low ? lp_array_f64(low, 0) : s.alpha;
      double max = high ? lp_array_f64(high, 0) : s.beta;
      x = x < min ? min : x;
      lp_array_set_f64(out, i, x > max ? max : x);
    } else {
      int64_t x = lp_array_i64(in[0], i);
      x = low && x < lp_array_i64(low, 0) ? lp_array_i64(low, 0) : x;
      lp_array_set_i64(out, i, high && x > lp_array_i64(high, 0) ? lp_array_i64(high, 0) : x);
    }
  }
}

lp_status lp_eval_function(const lp_eval *e, const char *fn, const lp_array *const *in, int32_t in_count, double alpha,
                           double beta, lp_array *out) {
  if (strcmp(fn, "clip") == 0) {
    clip_elements(in, in_count, (settings){isnan(alpha) ? -INFINITY : alpha, isnan(beta) ? INFINITY : beta}, out);
    return LP_OK;
  }
  bool where = strcmp(fn, "where") == 0;
  const function *f = where ? NULL : find_function(fn);
  if (!f && !where) return lp_eval_fail(e, "unknown function '%s'", fn);
  int32_t arity = where ? 3 : f->arity;
  if (in_count < arity) return lp_eval_fail(e, "function '%s' takes %d operands, found %d", fn, arity, in_count);
  for (int32_t i = 0; i < arity; i++)
    if (!in[i]) return lp_eval_fail(e, "input %d is missing", i);
  if (where)
    select_elements(in, out);
  else
    map_elements(f, (settings){isnan(alpha) ? f->alpha : alpha, isnan(beta) ? f->beta : beta}, in, out);
  return LP_OK;
}

static lp_status broadcast_out(const lp_eval *e, lp_dtype dtype, lp_array **out) {
  int32_t rank = 0;
  int64_t dim[LP_MAX_RANK] = {0};
  LP_TRY(lp_eval_need(e, e->op->in_count));
  for (int32_t i = 0; i < e->op->in_count; i++)
    LP_TRY(lp_eval_broadcast(e, &rank, dim, e->in[i]->rank, e->in[i]->dim));
  return lp_eval_out(e, 0, dtype, rank, dim, out);
}

/* ---- onnx ---- */

typedef struct {
  const char *fn;
  double alpha, beta; /* NaN: the function's own */
} mapping;

/* The op.map function of an onnx.* operator. */
static mapping mapping_of(const lp_op *op) {
  static const struct {
    lp_kind kind;
    const char *fn;
  } names[] = {
      {LP_ONNX_Add, "add"},
      {LP_ONNX_Sub, "sub"},
      {LP_ONNX_Mul, "mul"},
      {LP_ONNX_Div, "div"},
      {LP_ONNX_Pow, "pow"},
      {LP_ONNX_And, "and"},
      {LP_ONNX_Or, "or"},
      {LP_ONNX_Xor, "xor"},
      {LP_ONNX_Equal, "eq"},
      {LP_ONNX_Less, "lt"},
      {LP_ONNX_LessOrEqual, "le"},
      {LP_ONNX_Greater, "gt"},
      {LP_ONNX_GreaterOrEqual, "ge"},
      {LP_ONNX_Where, "where"},
      {LP_ONNX_Not, "not"},
      {LP_ONNX_IsNaN, "isnan"},
      {LP_ONNX_IsInf, "isinf"},
      {LP_ONNX_Abs, "abs"},
      {LP_ONNX_Neg, "neg"},
      {LP_ONNX_Sign, "sign"},
      {LP_ONNX_Floor, "floor"},
      {LP_ONNX_Ceil, "ceil"},
      {LP_ONNX_Round, "round"},
      {LP_ONNX_Sqrt, "sqrt"},
      {LP_ONNX_Reciprocal, "recip"},
      {LP_ONNX_Exp, "exp"},
      {LP_ONNX_Log, "log"},
      {LP_ONNX_Sin, "sin"},
      {LP_ONNX_Cos, "cos"},
      {LP_ONNX_Tan, "tan"},
      {LP_ONNX_Tanh, "tanh"},
      {LP_ONNX_Sinh, "sinh"},
      {LP_ONNX_Cosh, "cosh"},
      {LP_ONNX_Asin, "asin"},
      {LP_ONNX_Acos, "acos"},
      {LP_ONNX_Atan, "atan"},
      {LP_ONNX_Erf, "erf"},
      {LP_ONNX_Sigmoid, "sigmoid"},
      {LP_ONNX_HardSigmoid, "hardsigmoid"},
      {LP_ONNX_HardSwish, "hardswish"},
      {LP_ONNX_Relu, "relu"},
      {LP_ONNX_LeakyRelu, "leakyrelu"},
      {LP_ONNX_PRelu, "prelu"},
      {LP_ONNX_Elu, "elu"},
      {LP_ONNX_Selu, "selu"},
      {LP_ONNX_Celu, "celu"},
      {LP_ONNX_Softplus, "softplus"},
      {LP_ONNX_Softsign, "softsign"},
      {LP_ONNX_Mish, "mish"},
      {LP_ONNX_Swish, "silu"},
      {LP_ONNX_Cast, "cast"},
      {LP_ONNX_Min, "min"},
      {LP_ONNX_Max, "max"},
      {LP_ONNX_Sum, "add"},
      {LP_ONNX_Mean, "add"},
  };
  mapping map = {NULL, lp_op_f64(op, "alpha", (double)NAN), lp_op_f64(op, "beta", (double)NAN)};
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (names[i].kind == op->kind) map.fn = names[i].fn;
  if (op->kind == LP_ONNX_Selu) map.beta = lp_op_f64(op, "gamma", (double)NAN);
  if (op->kind == LP_ONNX_Mod) map.fn = lp_op_i64(op, "fmod", 0) ? "fmod" : "mod";
  if (op->kind == LP_ONNX_Gelu) map.fn = lp_streq(lp_op_str(op, "approximate", "none"), "tanh") ? "gelu_tanh" : "gelu";
  if (op->kind == LP_ONNX_IsInf) {
    map.alpha = (double)lp_op_i64(op, "detect_negative", 1);
    map.beta = (double)lp_op_i64(op, "detect_positive", 1);
  }
  return map;
}

static bool is_integer_division_by_zero(const lp_eval *e) {
  const lp_array *by = lp_eval_in(e, 1);
  if (!by || lp_dtype_is_float(by->dtype) || (e->op->kind != LP_ONNX_Div && e->op->kind != LP_ONNX_Mod)) return false;
  for (int64_t i = 0; i < lp_array_numel(by); i++)
    if (lp_array_i64(by, i) == 0) return true;
  return false;
}

lp_status eval_onnx_map(const lp_eval *e) {
  lp_array *out;
  LP_TRY(broadcast_out(e, e->op->out[0]->type.dtype, &out));
  if (is_integer_division_by_zero(e)) return lp_eval_fail(e, "division by zero");
  mapping map = mapping_of(e->op);
  return lp_eval_function(e, map.fn ? map.fn : "", e->in, e->op->in_count, map.alpha, map.beta, out);
}

lp_status eval_onnx_variadic_map(const lp_eval *e) {
  lp_array *out, sum;
  LP_TRY(broadcast_out(e, e->op->out[0]->type.dtype, &out));
  const lp_array *zero[] = {e->in[0]};
  LP_TRY(lp_eval_function(e, "cast", zero, 1, (double)NAN, (double)NAN, out));
  const char *fn = mapping_of(e->op).fn;
  for (int32_t i = 1; i < e->op->in_count; i++) {
    sum = *out;
    const lp_array *pair[] = {&sum, e->in[i]};
    LP_TRY(lp_eval_function(e, fn, pair, 2, (double)NAN, (double)NAN, out));
  }
  if (e->op->kind == LP_ONNX_Mean)
    for (int64_t i = 0; i < lp_array_numel(out); i++)
      lp_array_set_f64(out, i, lp_array_f64(out, i) / e->op->in_count);
  return LP_OK;
}

static lp_status map_like_first(const lp_eval *e, const char *fn, lp_dtype dtype) {
  lp_array *out;
  LP_TRY(lp_eval_need(e, 1));
  LP_TRY(lp_eval_out(e, 0, dtype, e->in[0]->rank, e->in[0]->dim, &out));
  return lp_eval_function(e, fn, e->in, e->op->in_count, (double)NAN, (double)NAN, out);
}

lp_status eval_onnx_clip(const lp_eval *e) {
  for (int32_t i = 1; i < e->op->in_count; i++)
    if (e->in[i] && lp_array_numel(e->in[i]) != 1) return lp_eval_fail(e, "its bounds are not scalars");
  return map_like_first(e, "clip", e->op->out[0]->type.dtype);
}

lp_status eval_onnx_cast_like(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  return map_like_first(e, "cast", e->in[1]->dtype);
}

lp_status eval_onnx_identity(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  e->out[0] = *e->in[0];
  if (e->op->out_count < 2) return LP_OK; /* Dropout's mask */
  lp_array *mask;
  LP_TRY(lp_eval_out(e, 1, LP_BOOL, e->in[0]->rank, e->in[0]->dim, &mask));
  memset(mask->data, 1, (size_t)lp_array_numel(mask));
  return LP_OK;
}

/* ---- op.* ---- */

lp_status eval_op_MAP(const lp_eval *e) {
  lp_array *out;
  LP_TRY(broadcast_out(e, e->op->out[0]->type.dtype, &out));
  return lp_eval_function(e, lp_op_str(e->op, "fn", ""), e->in, e->op->in_count, lp_op_f64(e->op, "alpha", (double)NAN),
                          lp_op_f64(e->op, "beta", (double)NAN), out);
}

lp_status eval_op_FUSED(const lp_eval *e) {
  return lp_eval_region(e);
}
