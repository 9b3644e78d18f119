/* Functions of op.map as C expressions. Floats are computed in float, integers in long and narrowed. */
#include "backend/gpu/rules/element.h"

#include <math.h>

typedef struct {
  const char *fn;
  const char *on_floats, *on_integers; /* expressions of $x, $y and the numbers $a, $b; NULL: there is none */
  double a, b;                         /* used where the operator has no such attribute */
} function;

static const function functions[] = {
    {"add", "$x + $y", "$x + $y", 0, 0},
    {"sub", "$x - $y", "$x - $y", 0, 0},
    {"mul", "$x * $y", "$x * $y", 0, 0},
    {"div", "$x / $y", "int_div($x, $y)", 0, 0},
    {"pow", "powf($x, $y)", NULL, 0, 0},
    {"mod", "float_mod($x, $y)", "int_mod($x, $y)", 0, 0},
    {"fmod", "fmodf($x, $y)", "int_fmod($x, $y)", 0, 0},
    {"min", "isnan($x) || $x < $y ? $x : $y", "$x < $y ? $x : $y", 0, 0},
    {"max", "isnan($x) || $x > $y ? $x : $y", "$x > $y ? $x : $y", 0, 0},
    {"and", "$x != 0 && $y != 0", "$x != 0 && $y != 0", 0, 0},
    {"or", "$x != 0 || $y != 0", "$x != 0 || $y != 0", 0, 0},
    {"xor", "($x != 0) != ($y != 0)", "($x != 0) != ($y != 0)", 0, 0},
    {"bitand", NULL, "$x & $y", 0, 0},
    {"bitor", NULL, "$x | $y", 0, 0},
    {"bitxor", NULL, "$x ^ $y", 0, 0},
    {"bitnot", NULL, "~$x", 0, 0},
    {"eq", "$x == $y", "$x == $y", 0, 0},
    {"lt", "$x < $y", "$x < $y", 0, 0},
    {"le", "$x <= $y", "$x <= $y", 0, 0},
    {"gt", "$x > $y", "$x > $y", 0, 0},
    {"ge", "$x >= $y", "$x >= $y", 0, 0},
    {"where", "$x ? $y : $z", "$x ? $y : $z", 0, 0},
    {"not", "$x == 0", "$x == 0", 0, 0},
    {"isnan", "isnan($x) != 0", NULL, 0, 0},
    {"isinf", "isinf($x) && ($x < 0 ? $a : $b) != 0", NULL, 1, 1},
    {"abs", "fabsf($x)", "$x < 0 ? -$x : $x", 0, 0},
    {"neg", "-$x", "-$x", 0, 0},
    {"sign", "$x > 0 ? 1.0f : $x < 0 ? -1.0f : $x", "($x > 0) - ($x < 0)", 0, 0},
    {"floor", "floorf($x)", "$x", 0, 0},
    {"ceil", "ceilf($x)", "$x", 0, 0},
    {"round", "rintf($x)", "$x", 0, 0},
    {"sqrt", "sqrtf($x)", NULL, 0, 0},
    {"recip", "1.0f / $x", NULL, 0, 0},
    {"exp", "expf($x)", NULL, 0, 0},
    {"log", "logf($x)", NULL, 0, 0},
    {"sin", "sinf($x)", NULL, 0, 0},
    {"cos", "cosf($x)", NULL, 0, 0},
    {"tan", "tanf($x)", NULL, 0, 0},
    {"tanh", "tanhf($x)", NULL, 0, 0},
    {"sinh", "sinhf($x)", NULL, 0, 0},
    {"cosh", "coshf($x)", NULL, 0, 0},
    {"asin", "asinf($x)", NULL, 0, 0},
    {"acos", "acosf($x)", NULL, 0, 0},
    {"atan", "atanf($x)", NULL, 0, 0},
    {"asinh", "asinhf($x)", NULL, 0, 0},
    {"acosh", "acoshf($x)", NULL, 0, 0},
    {"atanh", "atanhf($x)", NULL, 0, 0},
    {"erf", "erff($x)", NULL, 0, 0},
    {"sigmoid", "1.0f / (1.0f + expf(-$x))", NULL, 0, 0},
    {"hardsigmoid", "fmaxf(0.0f, fminf(1.0f, $a * $x + $b))", NULL, 0.2, 0.5},
    {"hardswish", "$x * fmaxf(0.0f, fminf(1.0f, $x / 6 + 0.5f))", NULL, 0, 0},
    {"relu", "epilogue_relu($x)", "$x > 0 ? $x : 0", 0, 0},
    {"thresholdedrelu", "$x > $a || isnan($x) ? $x : 0", NULL, 1, 0},
    {"leakyrelu", "$x < 0 ? $a * $x : $x", NULL, 0.01, 0},
    {"prelu", "$x < 0 ? $y * $x : $x", NULL, 0, 0},
    {"elu", "$x < 0 ? $a * expm1f($x) : $x", NULL, 1, 0},
    {"selu", "$b * ($x > 0 ? $x : $a * expm1f($x))", NULL, 1.67326319217681884765625, 1.05070102214813232421875},
    {"celu", "fmaxf(0.0f, $x) + fminf(0.0f, $a * expm1f($x / $a))", NULL, 1, 0},
    {"shrink", "$x < -$a ? $x + $b : $x > $a ? $x - $b : 0", NULL, 0.5, 0},
    {"softplus", "softplus($x)", NULL, 0, 0},
    {"softsign", "$x / (1 + fabsf($x))", NULL, 0, 0},
    {"mish", "$x * tanhf(softplus($x))", NULL, 0, 0},
    {"gelu", "epilogue_gelu($x)", NULL, 0, 0},
    {"gelu_tanh", "epilogue_gelu_tanh($x)", NULL, 0, 0},
    {"quick_gelu", "$x / (1.0f + expf(-$a * $x))", NULL, 1.702, 0},
    {"silu", "$x / (1.0f + expf(-$a * $x))", NULL, 1, 0},
};

static const function *find(const char *fn) {
  return LP_FIND_IN(functions, fn);
}

static bool any_float(const lp_op *op) {
  bool select = lp_streq(lp_op_str(op, "fn", ""), "where");
  for (int32_t i = select; i < op->in_count; i++)
    if (lp_op_in(op, i) && lp_dtype_is_float(lp_op_in(op, i)->type.dtype)) return true;
  return false;
}

static bool type_runs(lp_dtype dtype, char why[64]) {
  if (gpu_type(dtype) && lp_dtype_bits(dtype) >= 8) return true;
  return snprintf(why, 64, "values of type %s", lp_dtype_name(dtype)), false;
}

bool gpu_function_runs(const lp_op *op, char why[64]) {
  const char *fn = lp_op_str(op, "fn", "");
  lp_dtype result = op->out[0]->type.dtype;
  for (int32_t i = 0; i < op->in_count; i++)
    if (lp_op_in(op, i) && !type_runs(lp_op_in(op, i)->type.dtype, why)) return false;
  if (!type_runs(result, why)) return false;
  if (lp_streq(fn, "cast") || lp_streq(fn, "clip")) return true;
  const function *f = find(fn);
  bool reals = any_float(op) || lp_dtype_is_float(result);
  if (!f || !(reals ? f->on_floats : f->on_integers)) return snprintf(why, 64, "fn '%s'", fn), false;
  return true;
}

static const char *number(gpu_launch_list *list, double value) {
  if (isnan(value)) return "NAN";
  if (isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  const char *text = gpu_format(list, "%.9g", value);
  bool point = strpbrk(text, ".e") != NULL;
  return gpu_format(list, value < 0 ? "(%s%sf)" : "%s%sf", text, point ? "" : ".0");
}

const char *gpu_literal(gpu_launch_list *list, const lp_value *value) {
  lp_tensor tensor;
  int64_t numel = 0;
  if (!value || !lp_value_constant(value, &tensor) || !lp_type_static_numel(value->type, &numel) || numel != 1 ||
      lp_dtype_bits(value->type.dtype) < 8)
    return NULL;
  if (lp_dtype_is_float(value->type.dtype)) return number(list, lp_tensor_f64(&tensor, 0));
  int64_t whole = lp_tensor_i64(&tensor, 0);
  return gpu_format(list, whole < 0 ? "(%" PRId64 "L)" : "%" PRId64 "L", whole);
}

static const char *clip(gpu_launch_list *list, const lp_op *op, const char *const *in, int32_t count) {
  double a = lp_op_f64(op, "alpha", (double)NAN), b = lp_op_f64(op, "beta", (double)NAN);
  const char *low = count > 1 && in[1] ? in[1] : isnan(a) ? NULL : number(list, a);
  const char *high = count > 2 && in[2] ? in[2] : isnan(b) ? NULL : number(list, b), *x = in[0];
  if (low) x = gpu_format(list, "(%s < %s ? %s : %s)", x, low, low, x);
  return high ? gpu_format(list, "(%s > %s ? %s : %s)", x, high, high, x) : x;
}

static const char *cast(gpu_launch_list *list, lp_dtype from, lp_dtype to, const char *x) {
  if (to == LP_BOOL) return gpu_format(list, "%s != 0", x);
  if (to == LP_F16 || to == LP_BF16)
    return gpu_format(list, "to_float_%s(from_float_%s((float)%s))", gpu_store_name(to), gpu_store_name(to), x);
  if (lp_dtype_is_float(to)) return lp_dtype_is_float(from) ? x : gpu_format(list, "(float)%s", x);
  return lp_dtype_is_float(from) ? gpu_format(list, "(long)%s", x) : x;
}

const char *gpu_function(gpu_launch_list *list, const lp_op *op, const char *const *in, const lp_dtype *types,
                         int32_t count) {
  const char *fn = lp_op_str(op, "fn", "");
  lp_dtype to = op->out[0]->type.dtype;
  bool reals = any_float(op) || lp_dtype_is_float(to);
  const char *text;
  if (lp_streq(fn, "cast")) {
    text = cast(list, types[0], to, in[0]);
  } else if (lp_streq(fn, "clip")) {
    text = clip(list, op, in, count);
  } else {
    const function *f = find(fn);
    double a = lp_op_f64(op, "alpha", f->a), b = lp_op_f64(op, "beta", f->b);
    const char *const params[] = {"x", in[0],
                                  "y", count > 1 ? in[1] : "0",
                                  "z", count > 2 ? in[2] : "0",
                                  "a", number(list, isnan(a) ? f->a : a),
                                  "b", number(list, isnan(b) ? f->b : b),
                                  NULL};
    text = gpu_fill(list, reals ? f->on_floats : f->on_integers, params);
  }
  bool narrow = !lp_dtype_is_float(to) && to != LP_I64 && to != LP_BOOL;
  return narrow ? gpu_format(list, "(%s)(%s)", gpu_type(to), text) : text;
}
