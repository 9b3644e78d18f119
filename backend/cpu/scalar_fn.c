/* The functions of op.map, with ONNX's semantics. One row of `functions` per fn. */
#include "backend/cpu/cpu_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A function at work: operands of one element type (`type`), the attributes. */
typedef struct {
  cpu_emitter *e;
  LLVMBuilderRef b;
  const lp_op *op;
  LLVMTypeRef type;
  bool real, negatives; /* float; not unsigned */
  int32_t count;
  LLVMValueRef x, y, z; /* the operands; NULL where absent */
} args;

static LLVMValueRef number(const args *a, double value) {
  return a->real ? LLVMConstReal(a->type, value) : LLVMConstInt(a->type, (unsigned long long)(long long)value, 1);
}

static LLVMValueRef intrinsic1(const args *a, const char *name, LLVMValueRef x) {
  return cpu_intrinsic(a->e, name, a->type, &x, 1);
}

static LLVMValueRef intrinsic2(const args *a, const char *name, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef list[] = {x, y};
  return cpu_intrinsic(a->e, name, a->type, list, 2);
}

/* A scalar function of the kernels, which are in float. */
static LLVMValueRef kernel1(const args *a, const char *name, LLVMValueRef x) {
  LLVMTypeRef f32 = a->e->gen->types.f32;
  if (a->type == f32) return cpu_kernel_value(a->e, name, &x, 1);
  LLVMValueRef narrow = LLVMBuildFPTrunc(a->b, x, f32, "");
  return LLVMBuildFPExt(a->b, cpu_kernel_value(a->e, name, &narrow, 1), a->type, "");
}

static LLVMValueRef compare(const args *a, LLVMRealPredicate real, LLVMIntPredicate with_sign, LLVMIntPredicate without,
                            LLVMValueRef x, LLVMValueRef y) {
  if (a->real) return LLVMBuildFCmp(a->b, real, x, y, "");
  return LLVMBuildICmp(a->b, a->negatives ? with_sign : without, x, y, "");
}

static LLVMValueRef less(const args *a, LLVMValueRef x, LLVMValueRef y) {
  return compare(a, LLVMRealOLT, LLVMIntSLT, LLVMIntULT, x, y);
}

static LLVMValueRef select_value(const args *a, LLVMValueRef bit, LLVMValueRef yes, LLVMValueRef no) {
  return LLVMBuildSelect(a->b, bit, yes, no, "");
}

/* ---- arithmetic ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef add(const args *a, LLVMValueRef x, LLVMValueRef y) {
  return a->real ? LLVMBuildFAdd(a->b, x, y, "") : LLVMBuildAdd(a->b, x, y, "");
}
static LLVMValueRef sub(const args *a, LLVMValueRef x, LLVMValueRef y) {
  return a->real ? LLVMBuildFSub(a->b, x, y, "") : LLVMBuildSub(a->b, x, y, "");
}
static LLVMValueRef mul(const args *a, LLVMValueRef x, LLVMValueRef y) {
  return a->real ? LLVMBuildFMul(a->b, x, y, "") : LLVMBuildMul(a->b, x, y, "");
}

/* A divisor that never traps: 0 becomes 1, and so does -1, whose quotient the caller takes as -x. */
static LLVMValueRef safe_divisor(const args *a, LLVMValueRef y, LLVMValueRef *minus_one) {
  LLVMValueRef zero = LLVMBuildICmp(a->b, LLVMIntEQ, y, number(a, 0), "");
  *minus_one = a->negatives ? LLVMBuildICmp(a->b, LLVMIntEQ, y, number(a, -1), "") : LLVMConstNull(LLVMTypeOf(zero));
  return select_value(a, LLVMBuildOr(a->b, zero, *minus_one, ""), number(a, 1), y);
}

static LLVMValueRef divide(const args *a, LLVMValueRef x, LLVMValueRef y) {
  if (a->real) return LLVMBuildFDiv(a->b, x, y, "");
  LLVMValueRef minus_one, safe = safe_divisor(a, y, &minus_one);
  if (!a->negatives) return LLVMBuildUDiv(a->b, x, safe, "");
  return select_value(a, minus_one, LLVMBuildNeg(a->b, x, ""), LLVMBuildSDiv(a->b, x, safe, ""));
}

/* x - trunc(x / y) * y in double, so that large quotients stay exact. */
static LLVMValueRef real_remainder(const args *a, LLVMValueRef x, LLVMValueRef y) {
  LLVMTypeRef f64 = a->e->gen->types.f64;
  args wide = *a;
  wide.type = f64;
  bool widen = a->type != f64;
  LLVMValueRef xd = widen ? LLVMBuildFPExt(a->b, x, f64, "") : x, yd = widen ? LLVMBuildFPExt(a->b, y, f64, "") : y;
  LLVMValueRef quotient = intrinsic1(&wide, "llvm.trunc", LLVMBuildFDiv(a->b, xd, yd, ""));
  LLVMValueRef list[] = {LLVMBuildFNeg(a->b, quotient, ""), yd, xd};
  LLVMValueRef rest = cpu_intrinsic(a->e, "llvm.fma", f64, list, 3);
  return widen ? LLVMBuildFPTrunc(a->b, rest, a->type, "") : rest;
}

/* The remainder with the sign of x (C's). */
static LLVMValueRef remainder_of(const args *a, LLVMValueRef x, LLVMValueRef y) {
  if (a->real) return real_remainder(a, x, y);
  LLVMValueRef minus_one, safe = safe_divisor(a, y, &minus_one);
  return a->negatives ? LLVMBuildSRem(a->b, x, safe, "") : LLVMBuildURem(a->b, x, safe, "");
}

static LLVMValueRef fn_add(const args *a) { return add(a, a->x, a->y); }
static LLVMValueRef fn_sub(const args *a) { return sub(a, a->x, a->y); }
static LLVMValueRef fn_mul(const args *a) { return mul(a, a->x, a->y); }
static LLVMValueRef fn_div(const args *a) { return divide(a, a->x, a->y); }
static LLVMValueRef fn_fmod(const args *a) { return remainder_of(a, a->x, a->y); }

/* The remainder with the sign of y (Python's). */
static LLVMValueRef fn_mod(const args *a) {
  LLVMValueRef rest = remainder_of(a, a->x, a->y), zero = number(a, 0);
  if (!a->real && !a->negatives) return rest;
  LLVMValueRef differ = LLVMBuildXor(a->b, less(a, rest, zero), less(a, a->y, zero), "");
  LLVMValueRef some = LLVMBuildNot(a->b, compare(a, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ, rest, zero), "");
  return select_value(a, LLVMBuildAnd(a->b, differ, some, ""), add(a, rest, a->y), rest);
}

static LLVMValueRef fn_min(const args *a) {
  return intrinsic2(a, a->real ? "llvm.minimum" : a->negatives ? "llvm.smin" : "llvm.umin", a->x, a->y);
}
static LLVMValueRef fn_max(const args *a) {
  return intrinsic2(a, a->real ? "llvm.maximum" : a->negatives ? "llvm.smax" : "llvm.umax", a->x, a->y);
}

/* x to a whole power by squaring; exponents of 64 and more overflow anyway. */
static LLVMValueRef whole_power(const args *a) {
  LLVMValueRef result = number(a, 1), base = a->x;
  for (int bit = 0; bit < 6; bit++) {
    LLVMValueRef on = LLVMBuildAnd(a->b, LLVMBuildLShr(a->b, a->y, number(a, bit), ""), number(a, 1), "");
    LLVMValueRef is_on = LLVMBuildICmp(a->b, LLVMIntNE, on, number(a, 0), "");
    result = select_value(a, is_on, mul(a, result, base), result);
    base = mul(a, base, base);
  }
  return result;
}

static LLVMValueRef fn_pow(const args *a) {
  if (!a->real) return whole_power(a);
  LLVMBool inexact;
  double power = LLVMIsAConstantFP(a->y) ? LLVMConstRealGetDouble(a->y, &inexact) : 0;
  if (power == 2) return mul(a, a->x, a->x);
  if (power == 3) return mul(a, mul(a, a->x, a->x), a->x);
  if (power == 0.5) return intrinsic1(a, "llvm.sqrt", a->x);
  LLVMTypeRef f32 = a->e->gen->types.f32;
  LLVMValueRef list[] = {a->x, a->y};
  for (int i = 0; i < 2 && a->type != f32; i++)
    list[i] = LLVMBuildFPTrunc(a->b, list[i], f32, "");
  LLVMValueRef value = cpu_kernel_value(a->e, "lpk_pow", list, 2);
  return a->type == f32 ? value : LLVMBuildFPExt(a->b, value, a->type, "");
}

/* ---- comparisons, logic ---------------------------------------------------------------------------------------------- */

static LLVMValueRef fn_eq(const args *a) { return compare(a, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ, a->x, a->y); }
static LLVMValueRef fn_lt(const args *a) { return less(a, a->x, a->y); }
static LLVMValueRef fn_le(const args *a) { return compare(a, LLVMRealOLE, LLVMIntSLE, LLVMIntULE, a->x, a->y); }
static LLVMValueRef fn_gt(const args *a) { return less(a, a->y, a->x); }
static LLVMValueRef fn_ge(const args *a) { return compare(a, LLVMRealOGE, LLVMIntSGE, LLVMIntUGE, a->x, a->y); }
static LLVMValueRef fn_and(const args *a) { return LLVMBuildAnd(a->b, a->x, a->y, ""); }
static LLVMValueRef fn_or(const args *a) { return LLVMBuildOr(a->b, a->x, a->y, ""); }
static LLVMValueRef fn_xor(const args *a) { return LLVMBuildXor(a->b, a->x, a->y, ""); }
static LLVMValueRef fn_not(const args *a) { return LLVMBuildXor(a->b, a->x, number(a, 1), ""); }

static LLVMValueRef never(const args *a) { return LLVMConstNull(a->e->gen->types.i1); }

static LLVMValueRef fn_isnan(const args *a) {
  return a->real ? LLVMBuildFCmp(a->b, LLVMRealUNO, a->x, a->x, "") : never(a);
}

/* alpha, beta: are negative and positive infinities looked for? */
static LLVMValueRef fn_isinf(const args *a) {
  if (!a->real) return never(a);
  LLVMValueRef low = LLVMBuildFCmp(a->b, LLVMRealOEQ, a->x, number(a, -INFINITY), "");
  LLVMValueRef high = LLVMBuildFCmp(a->b, LLVMRealOEQ, a->x, number(a, INFINITY), "");
  if (lp_op_f64(a->op, "alpha", 1) == 0) low = never(a);
  if (lp_op_f64(a->op, "beta", 1) == 0) high = never(a);
  return LLVMBuildOr(a->b, low, high, "");
}

/* ---- one operand ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef fn_abs(const args *a) {
  if (a->real) return intrinsic1(a, "llvm.fabs", a->x);
  if (!a->negatives) return a->x;
  return select_value(a, less(a, a->x, number(a, 0)), LLVMBuildNeg(a->b, a->x, ""), a->x);
}
static LLVMValueRef fn_neg(const args *a) {
  return a->real ? LLVMBuildFNeg(a->b, a->x, "") : LLVMBuildNeg(a->b, a->x, "");
}
static LLVMValueRef fn_sign(const args *a) {
  LLVMValueRef zero = number(a, 0);
  LLVMValueRef low = a->negatives ? select_value(a, less(a, a->x, zero), number(a, -1), zero) : zero;
  LLVMValueRef sign = select_value(a, less(a, zero, a->x), number(a, 1), low);
  return a->real ? select_value(a, fn_isnan(a), a->x, sign) : sign;
}
static LLVMValueRef whole(const args *a, const char *name) { return a->real ? intrinsic1(a, name, a->x) : a->x; }
static LLVMValueRef fn_floor(const args *a) { return whole(a, "llvm.floor"); }
static LLVMValueRef fn_ceil(const args *a) { return whole(a, "llvm.ceil"); }
static LLVMValueRef fn_round(const args *a) { return whole(a, "llvm.roundeven"); }
static LLVMValueRef fn_sqrt(const args *a) { return intrinsic1(a, "llvm.sqrt", a->x); }
static LLVMValueRef fn_recip(const args *a) { return LLVMBuildFDiv(a->b, number(a, 1), a->x, ""); }

static LLVMValueRef fn_exp(const args *a) { return kernel1(a, "lpk_exp", a->x); }
static LLVMValueRef fn_log(const args *a) { return kernel1(a, "lpk_log", a->x); }
static LLVMValueRef fn_sin(const args *a) { return kernel1(a, "lpk_sin", a->x); }
static LLVMValueRef fn_cos(const args *a) { return kernel1(a, "lpk_cos", a->x); }
static LLVMValueRef fn_tanh(const args *a) { return kernel1(a, "lpk_tanh", a->x); }
static LLVMValueRef fn_erf(const args *a) { return kernel1(a, "lpk_erf", a->x); }
static LLVMValueRef fn_sigmoid(const args *a) { return kernel1(a, "lpk_sigmoid", a->x); }
static LLVMValueRef fn_softplus(const args *a) { return kernel1(a, "lpk_softplus", a->x); }
static LLVMValueRef fn_gelu(const args *a) { return kernel1(a, "lpk_gelu_erf", a->x); }
static LLVMValueRef fn_gelu_tanh(const args *a) { return kernel1(a, "lpk_gelu_tanh", a->x); }
static LLVMValueRef fn_quick_gelu(const args *a) { return kernel1(a, "lpk_quick_gelu", a->x); }
static LLVMValueRef fn_tan(const args *a) { return LLVMBuildFDiv(a->b, fn_sin(a), fn_cos(a), ""); }

/* c[0] + x (c[1] + x (c[2] + ...)) */
static LLVMValueRef series(const args *a, LLVMValueRef x, const double *c, int count) {
  LLVMValueRef sum = number(a, c[count - 1]);
  for (int i = count - 2; i >= 0; i--)
    sum = add(a, mul(a, sum, x), number(a, c[i]));
  return sum;
}

/* sinh: (e^x - e^-x) / 2, by its series where that would cancel. */
static LLVMValueRef fn_sinh(const args *a) {
  static const double c[] = {1, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880};
  LLVMValueRef e = fn_exp(a);
  LLVMValueRef far = mul(a, sub(a, e, LLVMBuildFDiv(a->b, number(a, 1), e, "")), number(a, 0.5));
  LLVMValueRef near = mul(a, a->x, series(a, mul(a, a->x, a->x), c, LP_COUNT(c)));
  return select_value(a, less(a, fn_abs(a), number(a, 1)), near, far);
}
static LLVMValueRef fn_cosh(const args *a) {
  LLVMValueRef e = fn_exp(a);
  return mul(a, add(a, e, LLVMBuildFDiv(a->b, number(a, 1), e, "")), number(a, 0.5));
}

/* Cephes' atanf: the argument is brought below tan(pi / 8), then a polynomial. */
static LLVMValueRef arc_tangent(const args *a, LLVMValueRef x) {
  static const double c[] = {-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2};
  LLVMValueRef t = intrinsic1(a, "llvm.fabs", x), one = number(a, 1);
  LLVMValueRef large = less(a, number(a, 2.414213562373095), t), middle = less(a, number(a, 0.4142135623730950), t);
  LLVMValueRef turned = LLVMBuildFDiv(a->b, sub(a, t, one), add(a, t, one), "");
  LLVMValueRef inverse = LLVMBuildFDiv(a->b, number(a, -1), t, "");
  LLVMValueRef r = select_value(a, large, inverse, select_value(a, middle, turned, t));
  LLVMValueRef base = select_value(a, large, number(a, M_PI_2), select_value(a, middle, number(a, M_PI_4), number(a, 0)));
  LLVMValueRef z = mul(a, r, r);
  LLVMValueRef value = add(a, base, add(a, mul(a, mul(a, series(a, z, c, LP_COUNT(c)), z), r), r));
  return intrinsic2(a, "llvm.copysign", value, x);
}
static LLVMValueRef fn_atan(const args *a) { return arc_tangent(a, a->x); }
static LLVMValueRef fn_asin(const args *a) {
  LLVMValueRef one = number(a, 1), square = mul(a, sub(a, one, a->x), add(a, one, a->x));
  return arc_tangent(a, LLVMBuildFDiv(a->b, a->x, intrinsic1(a, "llvm.sqrt", square), ""));
}
static LLVMValueRef fn_acos(const args *a) {
  LLVMValueRef one = number(a, 1), ratio = LLVMBuildFDiv(a->b, sub(a, one, a->x), add(a, one, a->x), "");
  return mul(a, number(a, 2), arc_tangent(a, intrinsic1(a, "llvm.sqrt", ratio)));
}

/* ---- activations ------------------------------------------------------------------------------------------------------- */

static LLVMValueRef attribute(const args *a, const char *name, double otherwise) {
  return number(a, lp_op_f64(a->op, name, otherwise));
}
static LLVMValueRef clamp(const args *a, LLVMValueRef x, LLVMValueRef low, LLVMValueRef high) {
  args t = *a;
  t.x = x, t.y = low;
  t.x = fn_max(&t), t.y = high;
  return fn_min(&t);
}
/* e^x - 1 below 0, where it is taken. */
static LLVMValueRef exp_less_one(const args *a, LLVMValueRef x) {
  return sub(a, kernel1(a, "lpk_exp", x), number(a, 1));
}
static LLVMValueRef by_sign(const args *a, LLVMValueRef negative) {
  return select_value(a, less(a, a->x, number(a, 0)), negative, a->x);
}

static LLVMValueRef fn_relu(const args *a) {
  args t = *a;
  t.y = number(a, 0);
  return fn_max(&t);
}
static LLVMValueRef fn_leakyrelu(const args *a) { return by_sign(a, mul(a, attribute(a, "alpha", 0.01), a->x)); }
static LLVMValueRef fn_prelu(const args *a) { return by_sign(a, mul(a, a->y, a->x)); }
static LLVMValueRef fn_elu(const args *a) {
  return by_sign(a, mul(a, attribute(a, "alpha", 1.0), exp_less_one(a, a->x)));
}
static LLVMValueRef fn_selu(const args *a) {
  LLVMValueRef negative = mul(a, attribute(a, "alpha", 1.67326319217681884765625), exp_less_one(a, a->x));
  return mul(a, attribute(a, "beta", 1.05070102214813232421875), by_sign(a, negative));
}
static LLVMValueRef fn_celu(const args *a) {
  LLVMValueRef alpha = attribute(a, "alpha", 1.0);
  return by_sign(a, mul(a, alpha, exp_less_one(a, LLVMBuildFDiv(a->b, a->x, alpha, ""))));
}
static LLVMValueRef fn_hardsigmoid(const args *a) {
  LLVMValueRef line = add(a, mul(a, attribute(a, "alpha", 0.2), a->x), attribute(a, "beta", 0.5));
  return clamp(a, line, number(a, 0), number(a, 1));
}
static LLVMValueRef fn_hardswish(const args *a) {
  LLVMValueRef line = add(a, mul(a, number(a, 1.0 / 6), a->x), number(a, 0.5));
  return mul(a, a->x, clamp(a, line, number(a, 0), number(a, 1)));
}
static LLVMValueRef fn_softsign(const args *a) {
  return LLVMBuildFDiv(a->b, a->x, add(a, number(a, 1), fn_abs(a)), "");
}
static LLVMValueRef fn_mish(const args *a) { return mul(a, a->x, kernel1(a, "lpk_tanh", fn_softplus(a))); }
static LLVMValueRef fn_silu(const args *a) {
  double alpha = lp_op_f64(a->op, "alpha", 1.0);
  if (alpha == 1.0) return kernel1(a, "lpk_silu", a->x);
  return mul(a, a->x, kernel1(a, "lpk_sigmoid", mul(a, number(a, alpha), a->x)));
}

/* Bounds are operands, or else alpha and beta. */
static LLVMValueRef fn_clip(const args *a) {
  args t = *a;
  if (a->y || lp_op_attr(a->op, "alpha")) {
    t.y = a->y ? a->y : attribute(a, "alpha", 0);
    t.x = fn_max(&t);
  }
  if (a->z || lp_op_attr(a->op, "beta")) {
    t.y = a->z ? a->z : attribute(a, "beta", 0);
    t.x = fn_min(&t);
  }
  return t.x;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------ */

/* In which element type operands are taken. */
typedef enum {
  RESULT,  /* the result's */
  REAL,    /* the result's, as a float */
  COMPARE, /* the operands' common one; gives a bit */
  LOGIC,   /* bool; gives an i8 of 0 or 1 */
  SELECT,  /* where */
  CAST
} domain;

typedef struct {
  const char *fn;
  domain domain;
  LLVMValueRef (*emit)(const args *a);
} function;

static const function functions[] = {
    {"add", RESULT, fn_add},           {"sub", RESULT, fn_sub},
    {"mul", RESULT, fn_mul},           {"div", RESULT, fn_div},
    {"pow", RESULT, fn_pow},           {"mod", RESULT, fn_mod},
    {"fmod", RESULT, fn_fmod},         {"min", RESULT, fn_min},
    {"max", RESULT, fn_max},           {"and", LOGIC, fn_and},
    {"or", LOGIC, fn_or},              {"xor", LOGIC, fn_xor},
    {"not", LOGIC, fn_not},            {"eq", COMPARE, fn_eq},
    {"lt", COMPARE, fn_lt},            {"le", COMPARE, fn_le},
    {"gt", COMPARE, fn_gt},            {"ge", COMPARE, fn_ge},
    {"isnan", COMPARE, fn_isnan},      {"isinf", COMPARE, fn_isinf},
    {"abs", RESULT, fn_abs},           {"neg", RESULT, fn_neg},
    {"sign", RESULT, fn_sign},         {"floor", RESULT, fn_floor},
    {"ceil", RESULT, fn_ceil},         {"round", RESULT, fn_round},
    {"sqrt", REAL, fn_sqrt},           {"recip", REAL, fn_recip},
    {"exp", REAL, fn_exp},             {"log", REAL, fn_log},
    {"sin", REAL, fn_sin},             {"cos", REAL, fn_cos},
    {"tan", REAL, fn_tan},             {"tanh", REAL, fn_tanh},
    {"sinh", REAL, fn_sinh},           {"cosh", REAL, fn_cosh},
    {"asin", REAL, fn_asin},           {"acos", REAL, fn_acos},
    {"atan", REAL, fn_atan},           {"erf", REAL, fn_erf},
    {"sigmoid", REAL, fn_sigmoid},     {"hardsigmoid", REAL, fn_hardsigmoid},
    {"hardswish", REAL, fn_hardswish}, {"relu", RESULT, fn_relu},
    {"leakyrelu", REAL, fn_leakyrelu}, {"prelu", RESULT, fn_prelu},
    {"elu", REAL, fn_elu},             {"selu", REAL, fn_selu},
    {"celu", REAL, fn_celu},           {"softplus", REAL, fn_softplus},
    {"softsign", REAL, fn_softsign},   {"mish", REAL, fn_mish},
    {"gelu", REAL, fn_gelu},           {"gelu_tanh", REAL, fn_gelu_tanh},
    {"quick_gelu", REAL, fn_quick_gelu}, {"silu", REAL, fn_silu},
    {"clip", RESULT, fn_clip},         {"where", SELECT, NULL},
    {"cast", CAST, NULL},
};

static const function *find_function(const char *fn) {
  for (size_t i = 0; i < LP_COUNT(functions); i++)
    if (lp_streq(functions[i].fn, fn)) return &functions[i];
  return NULL;
}

bool cpu_scalar_runs(const char *fn) {
  return find_function(fn) != NULL;
}

/* f16 and bf16 are computed in f32. */
static lp_dtype computed(lp_dtype dtype) {
  return dtype == LP_F16 || dtype == LP_BF16 ? LP_F32 : dtype;
}

/* The type in which operands of different types meet. */
static lp_dtype common_dtype(const cpu_scalar *in, int32_t count) {
  lp_dtype dtype = computed(in[0].dtype);
  for (int32_t i = 1; i < count; i++) {
    lp_dtype other = computed(in[i].dtype);
    if (other == dtype) continue;
    if (other == LP_F64 || dtype == LP_F64) dtype = LP_F64;
    else if (lp_dtype_is_float(other) || lp_dtype_is_float(dtype)) dtype = LP_F32;
    else dtype = LP_I64;
  }
  return dtype;
}

static lp_dtype operand_dtype(const function *f, const cpu_scalar *in, int32_t count, lp_dtype result) {
  switch (f->domain) {
  case COMPARE:
    return common_dtype(in, count);
  case LOGIC:
    return LP_BOOL;
  case REAL:
    return lp_dtype_is_float(result) ? computed(result) : LP_F32;
  default:
    return computed(result);
  }
}

static cpu_scalar where(cpu_emitter *e, const cpu_scalar *in, lp_dtype result) {
  LLVMValueRef on = cpu_scalar_convert(e, in[0], LP_BOOL).value;
  LLVMValueRef bit = LLVMBuildICmp(e->b, LLVMIntNE, on, LLVMConstNull(e->gen->types.i8), "");
  LLVMValueRef yes = cpu_scalar_convert(e, in[1], result).value, no = cpu_scalar_convert(e, in[2], result).value;
  return (cpu_scalar){LLVMBuildSelect(e->b, bit, yes, no, ""), result};
}

cpu_scalar cpu_scalar_map(cpu_emitter *e, const lp_op *op, const cpu_scalar *in, int32_t count, lp_dtype result) {
  const function *f = find_function(lp_op_str(op, "fn", ""));
  assert(f && "checked by runs");
  if (f->domain == CAST) return cpu_scalar_convert(e, in[0], result);
  if (f->domain == SELECT) return where(e, in, result);
  const lp_dtype dtype = operand_dtype(f, in, count, result);
  LLVMValueRef value[3] = {NULL, NULL, NULL};
  for (int32_t i = 0; i < count && i < 3; i++)
    if (in[i].value) value[i] = cpu_scalar_convert(e, in[i], dtype).value;
  args a = {.e = e, .b = e->b, .op = op, .type = cpu_scalar_type(e, dtype), .count = count};
  a.real = lp_dtype_is_float(dtype), a.negatives = !cpu_dtype_unsigned(dtype);
  a.x = value[0], a.y = value[1], a.z = value[2];
  LLVMValueRef y = f->emit(&a);
  if (f->domain != COMPARE) return cpu_scalar_convert(e, (cpu_scalar){y, dtype}, result);
  cpu_scalar bit = {LLVMBuildZExt(e->b, y, e->gen->types.i8, ""), LP_BOOL};
  return cpu_scalar_convert(e, bit, result);
}
