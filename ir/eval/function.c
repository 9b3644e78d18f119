/* Elementwise functions, by the names that op.map gives them. Floats are computed in double, integers in 64 bits. */
#include "ir/eval/eval.h"

#include <math.h>

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
UNARY(asinh, asinh(a))
UNARY(acosh, acosh(a))
UNARY(atanh, atanh(a))
UNARY(erf, erf(a))
UNARY(sigmoid, 1 / (1 + exp(-a)))
UNARY(hardsigmoid, fmax(0, fmin(1, s.alpha *a + s.beta)))
UNARY(hardswish, a *fmax(0, fmin(1, a / 6 + 0.5)))
UNARY(relu, a > 0 || isnan(a) ? a : 0)
UNARY(thresholdedrelu, a > s.alpha || isnan(a) ? a : 0)
UNARY(leakyrelu, a < 0 ? s.alpha * a : a)
UNARY(prelu, a < 0 ? b * a : a)
UNARY(elu, a < 0 ? s.alpha * expm1(a) : a)
UNARY(selu, s.beta *(a > 0 ? a : s.alpha * expm1(a)))
UNARY(celu, fmax(0, a) + fmin(0, s.alpha *expm1(a / s.alpha)))
UNARY(shrink, a<-s.alpha ? a + s.beta : a> s.alpha ? a - s.beta : 0)
UNARY(softplus, a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)))
UNARY(softsign, a / (1 + fabs(a)))
UNARY(mish, a *tanh(f_softplus(a, b, s)))
UNARY(gelu, 0.5 * a * (1 + erf(a * 0.70710678118654752440)))
UNARY(gelu_tanh, 0.5 * a * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a))))
UNARY(silu, a / (1 + exp(-s.alpha * a)))
UNARY(cast, a)
#undef UNARY

/* ---- on integers ---- */

/* Wraps around in two's complement, as every target does. */
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
  I_BITAND,
  I_BITOR,
  I_BITXOR,
  I_BITNOT,
  I_SHL,
  I_SHR,
  I_NONE
} integer_function;

/* Bits that are shifted out are lost. A shift by 64 or more, or by a negative number, shifts out all of them. */
static int64_t shift(integer_function f, int64_t a, int64_t by, bool without_sign) {
  bool all = by < 0 || by > 63;
  if (f == I_SHL) return all ? 0 : wrap((uint64_t)a << by);
  if (without_sign) return all ? 0 : wrap((uint64_t)a >> by);
  return a >> (all ? 63 : by);
}

/* The functions that differ for unsigned numbers of 64 bits. */
static bool on_u64(integer_function f, uint64_t a, uint64_t b, int64_t *out) {
  switch (f) {
  case I_DIV:
    return *out = wrap(b == 0 ? 0 : a / b), true;
  case I_MOD:
  case I_FMOD:
    return *out = wrap(b == 0 ? 0 : a % b), true;
  case I_MIN:
    return *out = wrap(a < b ? a : b), true;
  case I_MAX:
    return *out = wrap(a > b ? a : b), true;
  case I_LT:
    return *out = a < b, true;
  case I_LE:
    return *out = a <= b, true;
  case I_GT:
    return *out = a > b, true;
  case I_GE:
    return *out = a >= b, true;
  case I_ABS:
  case I_RELU:
    return *out = wrap(a), true;
  case I_SIGN:
    return *out = a > 0, true;
  default:
    return false;
  }
}

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
  case I_BITAND:
    return a & b;
  case I_BITOR:
    return a | b;
  case I_BITXOR:
    return a ^ b;
  case I_BITNOT:
    return ~a;
  default:
    return a;
  }
}

/* ---- the table ---- */

static double no_float(double a, double b, settings s) {
  (void)a, (void)b, (void)s;
  return (double)NAN;
}

typedef struct {
  const char *name;
  double (*on_floats)(double, double, settings);
  double alpha, beta; /* unless given */
  int32_t arity;
  integer_function on_integers;
} function;

static const function functions[] = {
    {"add", f_add, 0, 0, 2, I_ADD},
    {"sub", f_sub, 0, 0, 2, I_SUB},
    {"mul", f_mul, 0, 0, 2, I_MUL},
    {"div", f_div, 0, 0, 2, I_DIV},
    {"pow", f_pow, 0, 0, 2, I_POW},
    {"mod", f_mod, 0, 0, 2, I_MOD},
    {"fmod", f_fmod, 0, 0, 2, I_FMOD},
    {"min", f_min, 0, 0, 2, I_MIN},
    {"max", f_max, 0, 0, 2, I_MAX},
    {"and", f_and, 0, 0, 2, I_AND},
    {"or", f_or, 0, 0, 2, I_OR},
    {"xor", f_xor, 0, 0, 2, I_XOR},
    {"bitand", no_float, 0, 0, 2, I_BITAND},
    {"bitor", no_float, 0, 0, 2, I_BITOR},
    {"bitxor", no_float, 0, 0, 2, I_BITXOR},
    {"bitnot", no_float, 0, 0, 1, I_BITNOT},
    {"shl", no_float, 0, 0, 2, I_SHL},
    {"shr", no_float, 0, 0, 2, I_SHR},
    {"eq", f_eq, 0, 0, 2, I_EQ},
    {"lt", f_lt, 0, 0, 2, I_LT},
    {"le", f_le, 0, 0, 2, I_LE},
    {"gt", f_gt, 0, 0, 2, I_GT},
    {"ge", f_ge, 0, 0, 2, I_GE},
    {"not", f_not, 0, 0, 1, I_NOT},
    {"isnan", f_isnan, 0, 0, 1, I_NONE},
    {"isinf", f_isinf, 1, 1, 1, I_NONE},
    {"abs", f_abs, 0, 0, 1, I_ABS},
    {"neg", f_neg, 0, 0, 1, I_NEG},
    {"sign", f_sign, 0, 0, 1, I_SIGN},
    {"floor", f_floor, 0, 0, 1, I_SAME},
    {"ceil", f_ceil, 0, 0, 1, I_SAME},
    {"round", f_round, 0, 0, 1, I_SAME},
    {"sqrt", f_sqrt, 0, 0, 1, I_NONE},
    {"recip", f_recip, 0, 0, 1, I_NONE},
    {"exp", f_exp, 0, 0, 1, I_NONE},
    {"log", f_log, 0, 0, 1, I_NONE},
    {"sin", f_sin, 0, 0, 1, I_NONE},
    {"cos", f_cos, 0, 0, 1, I_NONE},
    {"tan", f_tan, 0, 0, 1, I_NONE},
    {"tanh", f_tanh, 0, 0, 1, I_NONE},
    {"sinh", f_sinh, 0, 0, 1, I_NONE},
    {"cosh", f_cosh, 0, 0, 1, I_NONE},
    {"asin", f_asin, 0, 0, 1, I_NONE},
    {"acos", f_acos, 0, 0, 1, I_NONE},
    {"atan", f_atan, 0, 0, 1, I_NONE},
    {"asinh", f_asinh, 0, 0, 1, I_NONE},
    {"acosh", f_acosh, 0, 0, 1, I_NONE},
    {"atanh", f_atanh, 0, 0, 1, I_NONE},
    {"erf", f_erf, 0, 0, 1, I_NONE},
    {"sigmoid", f_sigmoid, 0, 0, 1, I_NONE},
    {"hardsigmoid", f_hardsigmoid, 0.2, 0.5, 1, I_NONE},
    {"hardswish", f_hardswish, 0, 0, 1, I_NONE},
    {"relu", f_relu, 0, 0, 1, I_RELU},
    {"thresholdedrelu", f_thresholdedrelu, 1, 0, 1, I_NONE},
    {"leakyrelu", f_leakyrelu, 0.01, 0, 1, I_NONE},
    {"prelu", f_prelu, 0, 0, 2, I_NONE},
    {"elu", f_elu, 1, 0, 1, I_NONE},
    {"selu", f_selu, 1.67326319217681884765625, 1.05070102214813232421875, 1, I_NONE},
    {"celu", f_celu, 1, 0, 1, I_NONE},
    {"shrink", f_shrink, 0.5, 0, 1, I_NONE},
    {"softplus", f_softplus, 0, 0, 1, I_NONE},
    {"softsign", f_softsign, 0, 0, 1, I_NONE},
    {"mish", f_mish, 0, 0, 1, I_NONE},
    {"gelu", f_gelu, 0, 0, 1, I_NONE},
    {"gelu_tanh", f_gelu_tanh, 0, 0, 1, I_NONE},
    {"quick_gelu", f_silu, 1.702, 0, 1, I_NONE},
    {"silu", f_silu, 1, 0, 1, I_NONE},
    {"cast", f_cast, 0, 0, 1, I_SAME},
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

static int64_t integer_result(integer_function f, lp_dtype dtype, int64_t a, int64_t b) {
  int64_t y;
  if (f == I_SHL || f == I_SHR) return shift(f, a, b, dtype == LP_U64);
  return dtype == LP_U64 && on_u64(f, (uint64_t)a, (uint64_t)b, &y) ? y : on_integers(f, a, b);
}

/* The same bits under another type of the same width. */
static void reinterpret_elements(const lp_array *in, lp_array *out) {
  if (lp_array_numel(out) > 0) memcpy(out->data, in->data, lp_array_bytes(out));
}

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
      lp_array_set_i64(out, i, integer_result(f->on_integers, in[0]->dtype, lp_array_i64(in[0], a), y));
    }
  }
}

static void cast_to_mini(const lp_op *op, const lp_array *in, lp_array *out) {
  const lp_cast cast = lp_op_cast(op);
  for (int64_t i = 0; i < lp_array_numel(out); i++) {
    double x = lp_array_f64(in, i);
    if (out->dtype == LP_F8E8M0)
      ((uint8_t *)out->data)[i] = (uint8_t)lp_e8m0_encode((float)x, cast.rounding, cast.saturate);
    else
      lp_array_set_mini(out, i, x, cast.saturate);
  }
}

/* Constants of 16 bits may stand beside values that are computed in f32. */
static void select_elements(const lp_array *const *in, lp_array *out) {
  int64_t count = lp_array_numel(out);
  for (int64_t i = 0; i < count; i++) {
    const lp_array *from = in[lp_array_i64(in[0], lp_broadcast_index(in[0], i, out->rank, out->dim)) ? 1 : 2];
    const int64_t at = lp_broadcast_index(from, i, out->rank, out->dim);
    if (from->dtype == out->dtype)
      lp_array_copy(out, i, from, at);
    else
      lp_array_set_f64(out, i, lp_array_f64(from, at));
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
  if (strcmp(fn, "bitcast") == 0) {
    if (in_count < 1 || !in[0] || lp_array_bytes(in[0]) != lp_array_bytes(out))
      return lp_eval_fail(e, "its operand and result differ in size");
    reinterpret_elements(in[0], out);
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
  else if (strcmp(fn, "cast") == 0 && lp_dtype_is_mini(out->dtype))
    cast_to_mini(e->op, in[0], out);
  else
    map_elements(f, (settings){isnan(alpha) ? f->alpha : alpha, isnan(beta) ? f->beta : beta}, in, out);
  return LP_OK;
}
