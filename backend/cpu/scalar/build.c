/* Instructions for the functions of op.map. Each takes operands of one element type and emits the form for it. */
#include "backend/cpu/scalar/scalar.h"

#include <llvm-c/Core.h>

LLVMValueRef cpu_fn_number(const cpu_fn *a, double value) {
  return a->real ? LLVMConstReal(a->type, value) : LLVMConstInt(a->type, (unsigned long long)(long long)value, 1);
}

LLVMValueRef cpu_fn_intrinsic1(const cpu_fn *a, const char *name, LLVMValueRef x) {
  return cpu_intrinsic(a->e, name, a->type, &x, 1);
}

LLVMValueRef cpu_fn_intrinsic2(const cpu_fn *a, const char *name, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef list[] = {x, y};
  return cpu_intrinsic(a->e, name, a->type, list, 2);
}

static LLVMValueRef kernel(const cpu_fn *a, const char *name, const LLVMValueRef *args, unsigned count) {
  char wide[32];
  if (a->type == a->e->gen->types.f32) return cpu_kernel(a->e, name, args, count);
  (void)snprintf(wide, sizeof wide, "%s_f64", name);
  return cpu_kernel(a->e, wide, args, count);
}

LLVMValueRef cpu_fn_kernel(const cpu_fn *a, const char *name, LLVMValueRef x) {
  return kernel(a, name, &x, 1);
}

LLVMValueRef cpu_fn_kernel2(const cpu_fn *a, const char *name, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef list[] = {x, y};
  return kernel(a, name, list, 2);
}

LLVMValueRef cpu_fn_compare(const cpu_fn *a, LLVMRealPredicate real, LLVMIntPredicate with_sign,
                            LLVMIntPredicate without, LLVMValueRef x, LLVMValueRef y) {
  if (a->real) return LLVMBuildFCmp(a->b, real, x, y, "");
  return LLVMBuildICmp(a->b, a->negatives ? with_sign : without, x, y, "");
}

LLVMValueRef cpu_fn_less(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  return cpu_fn_compare(a, LLVMRealOLT, LLVMIntSLT, LLVMIntULT, x, y);
}

LLVMValueRef cpu_fn_select(const cpu_fn *a, LLVMValueRef bit, LLVMValueRef yes, LLVMValueRef no) {
  return LLVMBuildSelect(a->b, bit, yes, no, "");
}

LLVMValueRef cpu_fn_add(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  return a->real ? LLVMBuildFAdd(a->b, x, y, "") : LLVMBuildAdd(a->b, x, y, "");
}
LLVMValueRef cpu_fn_sub(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  return a->real ? LLVMBuildFSub(a->b, x, y, "") : LLVMBuildSub(a->b, x, y, "");
}
LLVMValueRef cpu_fn_mul(const cpu_fn *a, LLVMValueRef x, LLVMValueRef y) {
  return a->real ? LLVMBuildFMul(a->b, x, y, "") : LLVMBuildMul(a->b, x, y, "");
}

LLVMValueRef cpu_fn_min(const cpu_fn *a) {
  return cpu_fn_intrinsic2(a, a->real ? "llvm.minimum" : a->negatives ? "llvm.smin" : "llvm.umin", a->x, a->y);
}
LLVMValueRef cpu_fn_max(const cpu_fn *a) {
  return cpu_fn_intrinsic2(a, a->real ? "llvm.maximum" : a->negatives ? "llvm.smax" : "llvm.umax", a->x, a->y);
}

LLVMValueRef cpu_fn_isnan(const cpu_fn *a) {
  return a->real ? LLVMBuildFCmp(a->b, LLVMRealUNO, a->x, a->x, "") : LLVMConstNull(a->e->gen->types.i1);
}
