/* The functions of op.map, with the semantics of ONNX: arithmetic, comparisons, and the table from names to emitters.
 * math.c has the functions of one operand. */
#include "backend/cpu/scalar/scalar.h"

#include <assert.h>
#include <llvm-c/Core.h>
#include <math.h>

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* A divisor that never traps: 0 becomes 1, and so does -1, for which the caller uses -x as the quotient. */
static LLVMValueRef safe_divisor(const cpu_fn *a, LLVMValueRef y, LLVMValueRef *minus_one) {
  LLVMValueRef zero = LLVMBuildICmp(a->b, LLVMIntEQ, y, cpu_fn_number(a, 0), "");
  *minus_one =
      a->negatives ? LLVMBuildICmp(a->b, LLVMIntEQ, y, cpu_fn_number(a, -1), "") : LLVMConstNull(LLVMTypeOf(zero));
  return cpu_fn_select(a, LLVMBuildOr(a->b, zero, *minus_one, ""), cpu_fn_number(a, 1), y);
}

static LLVMValueRef divide(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  if (a->real) return LLVMBuildFDiv(a->b, x, y, "");
  LLVMValueRef minus_one, safe = safe_divisor(a, y, &minus_one);
  if (!a->negatives) return LLVMBuildUDiv(a->b, x, safe, "");
  return cpu_fn_select(a, minus_one, LLVMBuildNeg(a->b, x, ""), LLVMBuildSDiv(a->b, x, safe, ""));
}

/* x - trunc(x / y) * y in double, so that large quotients stay exact. */
static LLVMValueRef real_remainder(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  LLVMTypeRef f64 = a->e->gen->types.f64;
  cpu_fn wide = *a;
  wide.type = f64;
  bool widen = a->type != f64;
  LLVMValueRef xd = widen ? LLVMBuildFPExt(a->b, x, f64, "") : x, yd = widen ? LLVMBuildFPExt(a->b, y, f64, "") : y;
  LLVMValueRef quotient = cpu_fn_intrinsic1(&wide, "llvm.trunc", LLVMBuildFDiv(a->b, xd, yd, ""));
  LLVMValueRef list[] = {LLVMBuildFNeg(a->b, quotient, ""), yd, xd};
  LLVMValueRef rest = cpu_intrinsic(a->e, "llvm.fma", f64, list, 3), inf = LLVMConstReal(f64, INFINITY);
  LLVMValueRef endless = LLVMBuildFCmp(a->b, LLVMRealOEQ, cpu_fn_intrinsic1(&wide, "llvm.fabs", yd), inf, "");
  LLVMValueRef finite = LLVMBuildFCmp(a->b, LLVMRealOLT, cpu_fn_intrinsic1(&wide, "llvm.fabs", xd), inf, "");
  rest = LLVMBuildSelect(a->b, LLVMBuildAnd(a->b, endless, finite, ""), xd, rest, "");
  return widen ? LLVMBuildFPTrunc(a->b, rest, a->type, "") : rest;
}

/* The remainder with the sign of x (C's). */
static LLVMValueRef remainder_of(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  if (a->real) return real_remainder(a, x, y);
  LLVMValueRef minus_one, safe = safe_divisor(a, y, &minus_one);
  return a->negatives ? LLVMBuildSRem(a->b, x, safe, "") : LLVMBuildURem(a->b, x, safe, "");
}

static LLVMValueRef fn_add(const cpu_fn *a) {
  return cpu_fn_add(a, a->x, a->y);
}
static LLVMValueRef fn_sub(const cpu_fn *a) {
  return cpu_fn_sub(a, a->x, a->y);
}
static LLVMValueRef fn_mul(const cpu_fn *a) {
  return cpu_fn_mul(a, a->x, a->y);
}
static LLVMValueRef fn_div(const cpu_fn *a) {
  return divide(a, a->x, a->y);
}
static LLVMValueRef fn_fmod(const cpu_fn *a) {
  return remainder_of(a, a->x, a->y);
}

/* The remainder with the sign of y (Python's). */
static LLVMValueRef fn_mod(const cpu_fn *a) {
  LLVMValueRef rest = remainder_of(a, a->x, a->y), zero = cpu_fn_number(a, 0);
  if (!a->real && !a->negatives) return rest;
  LLVMValueRef differ = LLVMBuildXor(a->b, cpu_fn_less(a, rest, zero), cpu_fn_less(a, a->y, zero), "");
  LLVMValueRef some = LLVMBuildNot(a->b, cpu_fn_compare(a, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ, rest, zero), "");
  return cpu_fn_select(a, LLVMBuildAnd(a->b, differ, some, ""), cpu_fn_add(a, rest, a->y), rest);
}

/* x to a whole power by squaring; exponents of 64 and more overflow anyway. */
static LLVMValueRef whole_power(const cpu_fn *a) {
  LLVMValueRef result = cpu_fn_number(a, 1), base = a->x;
  for (int bit = 0; bit < 6; bit++) {
    LLVMValueRef on = LLVMBuildAnd(a->b, LLVMBuildLShr(a->b, a->y, cpu_fn_number(a, bit), ""), cpu_fn_number(a, 1), "");
    LLVMValueRef is_on = LLVMBuildICmp(a->b, LLVMIntNE, on, cpu_fn_number(a, 0), "");
    result = cpu_fn_select(a, is_on, cpu_fn_mul(a, result, base), result);
    base = cpu_fn_mul(a, base, base);
  }
  return result;
}

static LLVMValueRef fn_pow(const cpu_fn *a) {
  if (!a->real) return whole_power(a);
  LLVMBool inexact;
  double power = LLVMIsAConstantFP(a->y) ? LLVMConstRealGetDouble(a->y, &inexact) : 0;
  if (power == 2) return cpu_fn_mul(a, a->x, a->x);
  if (power == 3) return cpu_fn_mul(a, cpu_fn_mul(a, a->x, a->x), a->x);
  if (power == 0.5) return cpu_fn_intrinsic1(a, "llvm.sqrt", a->x);
  return cpu_fn_kernel2(a, "lpk_pow", a->x, a->y);
}

/* ---- comparisons, logic ------------------------------------------------------------------------------------------ */

static LLVMValueRef fn_eq(const cpu_fn *a) {
  return cpu_fn_compare(a, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ, a->x, a->y);
}
static LLVMValueRef fn_lt(const cpu_fn *a) {
  return cpu_fn_less(a, a->x, a->y);
}
static LLVMValueRef fn_le(const cpu_fn *a) {
  return cpu_fn_compare(a, LLVMRealOLE, LLVMIntSLE, LLVMIntULE, a->x, a->y);
}
static LLVMValueRef fn_gt(const cpu_fn *a) {
  return cpu_fn_less(a, a->y, a->x);
}
static LLVMValueRef fn_ge(const cpu_fn *a) {
  return cpu_fn_compare(a, LLVMRealOGE, LLVMIntSGE, LLVMIntUGE, a->x, a->y);
}
static LLVMValueRef fn_and(const cpu_fn *a) {
  return LLVMBuildAnd(a->b, a->x, a->y, "");
}
static LLVMValueRef fn_or(const cpu_fn *a) {
  return LLVMBuildOr(a->b, a->x, a->y, "");
}
static LLVMValueRef fn_xor(const cpu_fn *a) {
  return LLVMBuildXor(a->b, a->x, a->y, "");
}
static LLVMValueRef fn_not(const cpu_fn *a) {
  return LLVMBuildXor(a->b, a->x, cpu_fn_number(a, 1), "");
}

/* Bits that are shifted out are lost. A count below zero, or at least as large as the width, gives 0. */
static LLVMValueRef in_range(const cpu_fn *a) {
  return LLVMBuildICmp(a->b, LLVMIntULT, a->y, cpu_fn_number(a, (double)LLVMGetIntTypeWidth(a->type)), "");
}
static LLVMValueRef fn_shl(const cpu_fn *a) {
  LLVMValueRef count = cpu_fn_select(a, in_range(a), a->y, cpu_fn_number(a, 0));
  return cpu_fn_select(a, in_range(a), LLVMBuildShl(a->b, a->x, count, ""), cpu_fn_number(a, 0));
}
static LLVMValueRef fn_shr(const cpu_fn *a) {
  LLVMValueRef last = cpu_fn_number(a, (double)LLVMGetIntTypeWidth(a->type) - 1);
  LLVMValueRef count = cpu_fn_select(a, in_range(a), a->y, last);
  if (a->negatives) return LLVMBuildAShr(a->b, a->x, count, "");
  return cpu_fn_select(a, in_range(a), LLVMBuildLShr(a->b, a->x, count, ""), cpu_fn_number(a, 0));
}
static LLVMValueRef fn_bitnot(const cpu_fn *a) {
  return LLVMBuildNot(a->b, a->x, "");
}

static LLVMValueRef never(const cpu_fn *a) {
  return LLVMConstNull(a->e->gen->types.i1);
}

/* The attributes alpha and beta say whether negative and positive infinities count. */
static LLVMValueRef fn_isinf(const cpu_fn *a) {
  if (!a->real) return never(a);
  LLVMValueRef low = LLVMBuildFCmp(a->b, LLVMRealOEQ, a->x, cpu_fn_number(a, -INFINITY), "");
  LLVMValueRef high = LLVMBuildFCmp(a->b, LLVMRealOEQ, a->x, cpu_fn_number(a, INFINITY), "");
  if (lp_op_f64(a->op, "alpha", 1) == 0) low = never(a);
  if (lp_op_f64(a->op, "beta", 1) == 0) high = never(a);
  return LLVMBuildOr(a->b, low, high, "");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const cpu_function functions[] = {
    {"add", CPU_FN_RESULT, fn_add},
    {"sub", CPU_FN_RESULT, fn_sub},
    {"mul", CPU_FN_RESULT, fn_mul},
    {"div", CPU_FN_RESULT, fn_div},
    {"pow", CPU_FN_RESULT, fn_pow},
    {"mod", CPU_FN_RESULT, fn_mod},
    {"fmod", CPU_FN_RESULT, fn_fmod},
    {"min", CPU_FN_RESULT, cpu_fn_min},
    {"max", CPU_FN_RESULT, cpu_fn_max},
    {"bitand", CPU_FN_RESULT, fn_and},
    {"bitor", CPU_FN_RESULT, fn_or},
    {"bitxor", CPU_FN_RESULT, fn_xor},
    {"bitnot", CPU_FN_RESULT, fn_bitnot},
    {"shl", CPU_FN_RESULT, fn_shl},
    {"shr", CPU_FN_RESULT, fn_shr},
    {"and", CPU_FN_LOGIC, fn_and},
    {"or", CPU_FN_LOGIC, fn_or},
    {"xor", CPU_FN_LOGIC, fn_xor},
    {"not", CPU_FN_LOGIC, fn_not},
    {"eq", CPU_FN_COMPARE, fn_eq},
    {"lt", CPU_FN_COMPARE, fn_lt},
    {"le", CPU_FN_COMPARE, fn_le},
    {"gt", CPU_FN_COMPARE, fn_gt},
    {"ge", CPU_FN_COMPARE, fn_ge},
    {"isnan", CPU_FN_COMPARE, cpu_fn_isnan},
    {"isinf", CPU_FN_COMPARE, fn_isinf},
    {"where", CPU_FN_SELECT, NULL},
    {"cast", CPU_FN_CAST, NULL},
    {"bitcast", CPU_FN_BITS, NULL},
};

static const cpu_function *find_function(const char *fn) {
  for (size_t i = 0; i < LP_COUNT(functions); i++)
    if (lp_streq(functions[i].fn, fn)) return &functions[i];
  return cpu_math_function(fn);
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
    if (other == LP_F64 || dtype == LP_F64)
      dtype = LP_F64;
    else if (lp_dtype_is_float(other) || lp_dtype_is_float(dtype))
      dtype = LP_F32;
    else
      dtype = LP_I64;
  }
  return dtype;
}

static lp_dtype operand_dtype(const cpu_function *f, const cpu_scalar *in, int32_t count, lp_dtype result) {
  switch (f->domain) {
  case CPU_FN_COMPARE:
    return common_dtype(in, count);
  case CPU_FN_LOGIC:
    return LP_BOOL;
  case CPU_FN_REAL:
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
  const cpu_function *f = find_function(lp_op_str(op, "fn", ""));
  assert(f && "checked by runs");
  if (f->domain == CPU_FN_CAST) return cpu_scalar_cast(e, op, in[0], result);
  if (f->domain == CPU_FN_BITS) return cpu_scalar_reinterpret(e, in[0], result);
  if (f->domain == CPU_FN_SELECT) return where(e, in, result);
  const lp_dtype dtype = operand_dtype(f, in, count, result);
  LLVMValueRef value[3] = {NULL, NULL, NULL};
  for (int32_t i = 0; i < count && i < 3; i++)
    if (in[i].value) value[i] = cpu_scalar_convert(e, in[i], dtype).value;
  cpu_fn a = {.e = e, .b = e->b, .op = op, .type = cpu_scalar_type(e, dtype)};
  a.real = lp_dtype_is_float(dtype), a.negatives = !cpu_dtype_unsigned(dtype);
  a.x = value[0], a.y = value[1], a.z = value[2];
  LLVMValueRef y = f->emit(&a);
  if (f->domain != CPU_FN_COMPARE) return cpu_scalar_convert(e, (cpu_scalar){y, dtype}, result);
  cpu_scalar bit = {LLVMBuildZExt(e->b, y, e->gen->types.i8, ""), LP_BOOL};
  return cpu_scalar_convert(e, bit, result);
}
