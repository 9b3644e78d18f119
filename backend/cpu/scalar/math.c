/* Functions of one real operand for op.map: elementary functions and activations. */
#include "backend/cpu/scalar/scalar.h"

#include <llvm-c/Core.h>
#include <math.h>

/* ---- one operand ------------------------------------------------------------------------------------------------- */

static LLVMValueRef magnitude(const cpu_fn *a, LLVMValueRef x) {
  return cpu_fn_intrinsic1(a, "llvm.fabs", x);
}
static LLVMValueRef fn_abs(const cpu_fn *a) {
  if (a->real) return magnitude(a, a->x);
  if (!a->negatives) return a->x;
  return cpu_fn_select(a, cpu_fn_less(a, a->x, cpu_fn_number(a, 0)), LLVMBuildNeg(a->b, a->x, ""), a->x);
}
static LLVMValueRef fn_neg(const cpu_fn *a) {
  return a->real ? LLVMBuildFNeg(a->b, a->x, "") : LLVMBuildNeg(a->b, a->x, "");
}
static LLVMValueRef fn_sign(const cpu_fn *a) {
  LLVMValueRef zero = cpu_fn_number(a, 0);
  LLVMValueRef low = a->negatives ? cpu_fn_select(a, cpu_fn_less(a, a->x, zero), cpu_fn_number(a, -1), zero) : zero;
  LLVMValueRef sign = cpu_fn_select(a, cpu_fn_less(a, zero, a->x), cpu_fn_number(a, 1), low);
  return a->real ? cpu_fn_select(a, cpu_fn_isnan(a), a->x, sign) : sign;
}
static LLVMValueRef whole(const cpu_fn *a, const char *name) {
  return a->real ? cpu_fn_intrinsic1(a, name, a->x) : a->x;
}
static LLVMValueRef fn_floor(const cpu_fn *a) {
  return whole(a, "llvm.floor");
}
static LLVMValueRef fn_ceil(const cpu_fn *a) {
  return whole(a, "llvm.ceil");
}
static LLVMValueRef fn_round(const cpu_fn *a) {
  return whole(a, "llvm.roundeven");
}
static LLVMValueRef fn_sqrt(const cpu_fn *a) {
  return cpu_fn_intrinsic1(a, "llvm.sqrt", a->x);
}
static LLVMValueRef fn_recip(const cpu_fn *a) {
  return LLVMBuildFDiv(a->b, cpu_fn_number(a, 1), a->x, "");
}

static LLVMValueRef fn_exp(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_exp", a->x);
}
static LLVMValueRef fn_log(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_log", a->x);
}
static LLVMValueRef fn_sin(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_sin", a->x);
}
static LLVMValueRef fn_cos(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_cos", a->x);
}
static LLVMValueRef fn_tanh(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_tanh", a->x);
}
static LLVMValueRef fn_erf(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_erf", a->x);
}
static LLVMValueRef fn_sigmoid(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_sigmoid", a->x);
}
static LLVMValueRef fn_softplus(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_softplus", a->x);
}
static LLVMValueRef fn_gelu(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_gelu_erf", a->x);
}
static LLVMValueRef fn_gelu_tanh(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_gelu_tanh", a->x);
}
static LLVMValueRef fn_quick_gelu(const cpu_fn *a) {
  return cpu_fn_kernel(a, "lpk_quick_gelu", a->x);
}
static LLVMValueRef fn_tan(const cpu_fn *a) {
  return LLVMBuildFDiv(a->b, fn_sin(a), fn_cos(a), "");
}

/* c[0] + x (c[1] + x (c[2] + ...)) */
static LLVMValueRef series(const cpu_fn *a, LLVMValueRef x, const double *c, int count) {
  LLVMValueRef sum = cpu_fn_number(a, c[count - 1]);
  for (int i = count - 2; i >= 0; i--)
    sum = cpu_fn_add(a, cpu_fn_mul(a, sum, x), cpu_fn_number(a, c[i]));
  return sum;
}

static bool is_double(const cpu_fn *a) {
  return a->type == a->e->gen->types.f64;
}

/* sinh: (e^x - e^-x) / 2, or its series near 0, where the difference cancels. */
static LLVMValueRef fn_sinh(const cpu_fn *a) {
  static const double c[] = {1,
                             1.0 / 6,
                             1.0 / 120,
                             1.0 / 5040,
                             1.0 / 362880,
                             1.0 / 39916800,
                             1.0 / 6227020800,
                             1.0 / 1307674368000,
                             1.0 / 355687428096000};
  const int terms = is_double(a) ? LP_COUNT(c) : 5;
  LLVMValueRef e = fn_exp(a);
  LLVMValueRef far =
      cpu_fn_mul(a, cpu_fn_sub(a, e, LLVMBuildFDiv(a->b, cpu_fn_number(a, 1), e, "")), cpu_fn_number(a, 0.5));
  LLVMValueRef near = cpu_fn_mul(a, a->x, series(a, cpu_fn_mul(a, a->x, a->x), c, terms));
  return cpu_fn_select(a, cpu_fn_less(a, fn_abs(a), cpu_fn_number(a, 1)), near, far);
}
static LLVMValueRef fn_cosh(const cpu_fn *a) {
  LLVMValueRef e = fn_exp(a);
  return cpu_fn_mul(a, cpu_fn_add(a, e, LLVMBuildFDiv(a->b, cpu_fn_number(a, 1), e, "")), cpu_fn_number(a, 0.5));
}

/* The atanf of Cephes: reduces the argument to at most tan(pi / 8), then evaluates a polynomial. */
static LLVMValueRef arc_tangent(const cpu_fn *a, LLVMValueRef x) {
  if (is_double(a)) return cpu_fn_kernel(a, "lpk_atan", x);
  static const double c[] = {-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2};
  LLVMValueRef t = cpu_fn_intrinsic1(a, "llvm.fabs", x), one = cpu_fn_number(a, 1);
  LLVMValueRef large = cpu_fn_less(a, cpu_fn_number(a, 2.414213562373095), t),
               middle = cpu_fn_less(a, cpu_fn_number(a, 0.4142135623730950), t);
  LLVMValueRef turned = LLVMBuildFDiv(a->b, cpu_fn_sub(a, t, one), cpu_fn_add(a, t, one), "");
  LLVMValueRef inverse = LLVMBuildFDiv(a->b, cpu_fn_number(a, -1), t, "");
  LLVMValueRef r = cpu_fn_select(a, large, inverse, cpu_fn_select(a, middle, turned, t));
  LLVMValueRef base = cpu_fn_select(a, large, cpu_fn_number(a, M_PI_2),
                                    cpu_fn_select(a, middle, cpu_fn_number(a, M_PI_4), cpu_fn_number(a, 0)));
  LLVMValueRef z = cpu_fn_mul(a, r, r);
  LLVMValueRef value =
      cpu_fn_add(a, base, cpu_fn_add(a, cpu_fn_mul(a, cpu_fn_mul(a, series(a, z, c, LP_COUNT(c)), z), r), r));
  return cpu_fn_intrinsic2(a, "llvm.copysign", value, x);
}
static LLVMValueRef fn_atan(const cpu_fn *a) {
  return arc_tangent(a, a->x);
}
static LLVMValueRef fn_asin(const cpu_fn *a) {
  LLVMValueRef one = cpu_fn_number(a, 1), square = cpu_fn_mul(a, cpu_fn_sub(a, one, a->x), cpu_fn_add(a, one, a->x));
  return arc_tangent(a, LLVMBuildFDiv(a->b, a->x, cpu_fn_intrinsic1(a, "llvm.sqrt", square), ""));
}
static LLVMValueRef fn_acos(const cpu_fn *a) {
  LLVMValueRef one = cpu_fn_number(a, 1),
               ratio = LLVMBuildFDiv(a->b, cpu_fn_sub(a, one, a->x), cpu_fn_add(a, one, a->x), "");
  return cpu_fn_mul(a, cpu_fn_number(a, 2), arc_tangent(a, cpu_fn_intrinsic1(a, "llvm.sqrt", ratio)));
}

/* log(1 + x): log of the rounded sum, corrected by the rounding error of the sum. */
static LLVMValueRef log_of_one_more(const cpu_fn *a, LLVMValueRef x) {
  LLVMValueRef one = cpu_fn_number(a, 1), u = cpu_fn_add(a, one, x);
  LLVMValueRef lost = LLVMBuildFDiv(a->b, cpu_fn_sub(a, cpu_fn_sub(a, u, one), x), u, "");
  LLVMValueRef y = cpu_fn_kernel(a, "lpk_log", u);
  LLVMValueRef finite = LLVMBuildFCmp(a->b, LLVMRealOLT, magnitude(a, y), cpu_fn_number(a, INFINITY), "");
  return cpu_fn_select(a, finite, cpu_fn_sub(a, y, lost), y);
}
/* Above this bound squares overflow, and asinh and acosh equal log(2 x). */
static LLVMValueRef far_out(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef far = cpu_fn_add(a, cpu_fn_kernel(a, "lpk_log", x), cpu_fn_number(a, M_LN2));
  return cpu_fn_select(a, cpu_fn_less(a, cpu_fn_number(a, 1e9), x), far, y);
}
static LLVMValueRef fn_asinh(const cpu_fn *a) {
  LLVMValueRef x = fn_abs(a), one = cpu_fn_number(a, 1), square = cpu_fn_mul(a, x, x);
  LLVMValueRef root = cpu_fn_intrinsic1(a, "llvm.sqrt", cpu_fn_add(a, square, one));
  LLVMValueRef more = LLVMBuildFDiv(a->b, square, cpu_fn_add(a, one, root), "");
  LLVMValueRef y = far_out(a, x, log_of_one_more(a, cpu_fn_add(a, x, more)));
  return cpu_fn_intrinsic2(a, "llvm.copysign", y, a->x);
}
static LLVMValueRef fn_acosh(const cpu_fn *a) {
  LLVMValueRef t = cpu_fn_sub(a, a->x, cpu_fn_number(a, 1));
  LLVMValueRef square = cpu_fn_mul(a, t, cpu_fn_add(a, t, cpu_fn_number(a, 2)));
  LLVMValueRef root = cpu_fn_intrinsic1(a, "llvm.sqrt", square);
  return far_out(a, a->x, log_of_one_more(a, cpu_fn_add(a, t, root)));
}
static LLVMValueRef fn_atanh(const cpu_fn *a) {
  LLVMValueRef x = fn_abs(a), rest = cpu_fn_sub(a, cpu_fn_number(a, 1), x);
  LLVMValueRef ratio = LLVMBuildFDiv(a->b, cpu_fn_add(a, x, x), rest, "");
  LLVMValueRef y = cpu_fn_mul(a, cpu_fn_number(a, 0.5), log_of_one_more(a, ratio));
  return cpu_fn_intrinsic2(a, "llvm.copysign", y, a->x);
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

static LLVMValueRef attribute(const cpu_fn *a, const char *name, double otherwise) {
  return cpu_fn_number(a, lp_op_f64(a->op, name, otherwise));
}
static LLVMValueRef clamp(const cpu_fn *a, LLVMValueRef x, LLVMValueRef low, LLVMValueRef high) {
  cpu_fn t = *a;
  t.x = x, t.y = low;
  t.x = cpu_fn_max(&t), t.y = high;
  return cpu_fn_min(&t);
}
/* e^x - 1. The callers use the result only for x < 0 (by_sign), where it does not overflow. */
static LLVMValueRef exp_less_one(const cpu_fn *a, LLVMValueRef x) {
  if (is_double(a)) return cpu_fn_kernel(a, "lpk_expm1", x);
  return cpu_fn_sub(a, cpu_fn_kernel(a, "lpk_exp", x), cpu_fn_number(a, 1));
}
static LLVMValueRef by_sign(const cpu_fn *a, LLVMValueRef negative) {
  return cpu_fn_select(a, cpu_fn_less(a, a->x, cpu_fn_number(a, 0)), negative, a->x);
}

static LLVMValueRef fn_relu(const cpu_fn *a) {
  cpu_fn t = *a;
  t.y = cpu_fn_number(a, 0);
  return cpu_fn_max(&t);
}
static LLVMValueRef fn_thresholdedrelu(const cpu_fn *a) {
  LLVMValueRef low = LLVMBuildFCmp(a->b, LLVMRealOLE, a->x, attribute(a, "alpha", 1.0), "");
  return cpu_fn_select(a, low, cpu_fn_number(a, 0), a->x);
}
static LLVMValueRef fn_shrink(const cpu_fn *a) {
  LLVMValueRef limit = attribute(a, "alpha", 0.5), bias = attribute(a, "beta", 0), zero = cpu_fn_number(a, 0);
  LLVMValueRef low = cpu_fn_less(a, a->x, cpu_fn_sub(a, zero, limit)), high = cpu_fn_less(a, limit, a->x);
  LLVMValueRef y = cpu_fn_select(a, high, cpu_fn_sub(a, a->x, bias), zero);
  return cpu_fn_select(a, low, cpu_fn_add(a, a->x, bias), y);
}
static LLVMValueRef fn_leakyrelu(const cpu_fn *a) {
  return by_sign(a, cpu_fn_mul(a, attribute(a, "alpha", 0.01), a->x));
}
static LLVMValueRef fn_prelu(const cpu_fn *a) {
  return by_sign(a, cpu_fn_mul(a, a->y, a->x));
}
static LLVMValueRef fn_elu(const cpu_fn *a) {
  return by_sign(a, cpu_fn_mul(a, attribute(a, "alpha", 1.0), exp_less_one(a, a->x)));
}
static LLVMValueRef fn_selu(const cpu_fn *a) {
  LLVMValueRef negative = cpu_fn_mul(a, attribute(a, "alpha", 1.67326319217681884765625), exp_less_one(a, a->x));
  return cpu_fn_mul(a, attribute(a, "beta", 1.05070102214813232421875), by_sign(a, negative));
}
static LLVMValueRef fn_celu(const cpu_fn *a) {
  LLVMValueRef alpha = attribute(a, "alpha", 1.0);
  return by_sign(a, cpu_fn_mul(a, alpha, exp_less_one(a, LLVMBuildFDiv(a->b, a->x, alpha, ""))));
}
static LLVMValueRef fn_hardsigmoid(const cpu_fn *a) {
  LLVMValueRef line = cpu_fn_add(a, cpu_fn_mul(a, attribute(a, "alpha", 0.2), a->x), attribute(a, "beta", 0.5));
  return clamp(a, line, cpu_fn_number(a, 0), cpu_fn_number(a, 1));
}
static LLVMValueRef fn_hardswish(const cpu_fn *a) {
  LLVMValueRef line = cpu_fn_add(a, cpu_fn_mul(a, cpu_fn_number(a, 1.0 / 6), a->x), cpu_fn_number(a, 0.5));
  return cpu_fn_mul(a, a->x, clamp(a, line, cpu_fn_number(a, 0), cpu_fn_number(a, 1)));
}
static LLVMValueRef fn_softsign(const cpu_fn *a) {
  return LLVMBuildFDiv(a->b, a->x, cpu_fn_add(a, cpu_fn_number(a, 1), fn_abs(a)), "");
}
static LLVMValueRef fn_mish(const cpu_fn *a) {
  return cpu_fn_mul(a, a->x, cpu_fn_kernel(a, "lpk_tanh", fn_softplus(a)));
}
static LLVMValueRef fn_silu(const cpu_fn *a) {
  double alpha = lp_op_f64(a->op, "alpha", 1.0);
  if (alpha == 1.0) return cpu_fn_kernel(a, "lpk_silu", a->x);
  return cpu_fn_mul(a, a->x, cpu_fn_kernel(a, "lpk_sigmoid", cpu_fn_mul(a, cpu_fn_number(a, alpha), a->x)));
}

/* Bounds are operands, or else alpha and beta. */
static LLVMValueRef fn_clip(const cpu_fn *a) {
  cpu_fn t = *a;
  if (a->y || lp_op_attr(a->op, "alpha")) {
    t.y = a->y ? a->y : attribute(a, "alpha", 0);
    t.x = cpu_fn_max(&t);
  }
  if (a->z || lp_op_attr(a->op, "beta")) {
    t.y = a->z ? a->z : attribute(a, "beta", 0);
    t.x = cpu_fn_min(&t);
  }
  return t.x;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const cpu_function functions[] = {
    {"abs", CPU_FN_RESULT, fn_abs},
    {"neg", CPU_FN_RESULT, fn_neg},
    {"sign", CPU_FN_RESULT, fn_sign},
    {"floor", CPU_FN_RESULT, fn_floor},
    {"ceil", CPU_FN_RESULT, fn_ceil},
    {"round", CPU_FN_RESULT, fn_round},
    {"sqrt", CPU_FN_REAL, fn_sqrt},
    {"recip", CPU_FN_REAL, fn_recip},
    {"exp", CPU_FN_REAL, fn_exp},
    {"log", CPU_FN_REAL, fn_log},
    {"sin", CPU_FN_REAL, fn_sin},
    {"cos", CPU_FN_REAL, fn_cos},
    {"tan", CPU_FN_REAL, fn_tan},
    {"tanh", CPU_FN_REAL, fn_tanh},
    {"sinh", CPU_FN_REAL, fn_sinh},
    {"cosh", CPU_FN_REAL, fn_cosh},
    {"asin", CPU_FN_REAL, fn_asin},
    {"acos", CPU_FN_REAL, fn_acos},
    {"atan", CPU_FN_REAL, fn_atan},
    {"asinh", CPU_FN_REAL, fn_asinh},
    {"acosh", CPU_FN_REAL, fn_acosh},
    {"atanh", CPU_FN_REAL, fn_atanh},
    {"erf", CPU_FN_REAL, fn_erf},
    {"sigmoid", CPU_FN_REAL, fn_sigmoid},
    {"hardsigmoid", CPU_FN_REAL, fn_hardsigmoid},
    {"hardswish", CPU_FN_REAL, fn_hardswish},
    {"relu", CPU_FN_RESULT, fn_relu},
    {"thresholdedrelu", CPU_FN_REAL, fn_thresholdedrelu},
    {"shrink", CPU_FN_REAL, fn_shrink},
    {"leakyrelu", CPU_FN_REAL, fn_leakyrelu},
    {"prelu", CPU_FN_RESULT, fn_prelu},
    {"elu", CPU_FN_REAL, fn_elu},
    {"selu", CPU_FN_REAL, fn_selu},
    {"celu", CPU_FN_REAL, fn_celu},
    {"softplus", CPU_FN_REAL, fn_softplus},
    {"softsign", CPU_FN_REAL, fn_softsign},
    {"mish", CPU_FN_REAL, fn_mish},
    {"gelu", CPU_FN_REAL, fn_gelu},
    {"gelu_tanh", CPU_FN_REAL, fn_gelu_tanh},
    {"quick_gelu", CPU_FN_REAL, fn_quick_gelu},
    {"silu", CPU_FN_REAL, fn_silu},
    {"clip", CPU_FN_RESULT, fn_clip},
};

const cpu_function *cpu_math_function(const char *fn) {
  return LP_FIND_IN(functions, fn);
}
