/* Scalars of generated loops: loading, storing, converting between element types. */
#include "backend/cpu/cpu_internal.h"

#include <assert.h>
#include <string.h>

bool cpu_dtype_unsigned(lp_dtype dtype) {
  return dtype == LP_BOOL || dtype == LP_U8 || dtype == LP_U16 || dtype == LP_U32 || dtype == LP_U64;
}

/* The type that memory holds. */
static LLVMTypeRef stored_type(const cpu_emitter *e, lp_dtype dtype) {
  const cpu_types *t = &e->gen->types;
  switch (cpu_dtype_bytes(dtype)) {
  case 1:
    return t->i8;
  case 2:
    return dtype == LP_F16 ? t->f16 : t->i16;
  case 4:
    return dtype == LP_F32 ? t->f32 : t->i32;
  default:
    return dtype == LP_F64 ? t->f64 : t->i64;
  }
}

/* The type that a register holds: f16 and bf16 are widened. */
LLVMTypeRef cpu_scalar_type(const cpu_emitter *e, lp_dtype dtype) {
  return dtype == LP_F16 || dtype == LP_BF16 ? e->gen->types.f32 : stored_type(e, dtype);
}

static LLVMValueRef bf16_widen(cpu_emitter *e, LLVMValueRef bits) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef high = LLVMBuildShl(e->b, LLVMBuildZExt(e->b, bits, t->i32, ""), cpu_i32(e, 16), "");
  return LLVMBuildBitCast(e->b, high, t->f32, "");
}

/* To nearest, ties to even; a NaN stays one. */
static LLVMValueRef bf16_bits(cpu_emitter *e, LLVMValueRef value) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef bits = LLVMBuildBitCast(e->b, value, t->i32, "");
  LLVMValueRef high = LLVMBuildLShr(e->b, bits, cpu_i32(e, 16), "");
  LLVMValueRef odd = LLVMBuildAnd(e->b, high, cpu_i32(e, 1), "");
  LLVMValueRef bias = LLVMBuildAdd(e->b, odd, cpu_i32(e, 0x7fff), "");
  LLVMValueRef rounded = LLVMBuildLShr(e->b, LLVMBuildAdd(e->b, bits, bias, ""), cpu_i32(e, 16), "");
  LLVMValueRef nan = LLVMBuildFCmp(e->b, LLVMRealUNO, value, value, "");
  LLVMValueRef quiet = LLVMBuildOr(e->b, high, cpu_i32(e, 0x40), "");
  return LLVMBuildTrunc(e->b, LLVMBuildSelect(e->b, nan, quiet, rounded, ""), t->i16, "");
}

cpu_scalar cpu_scalar_load(cpu_emitter *e, LLVMValueRef address, lp_dtype dtype) {
  LLVMValueRef value = LLVMBuildLoad2(e->b, stored_type(e, dtype), address, "");
  if (dtype == LP_F16) value = LLVMBuildFPExt(e->b, value, e->gen->types.f32, "");
  if (dtype == LP_BF16) value = bf16_widen(e, value);
  return (cpu_scalar){value, dtype};
}

void cpu_scalar_store(cpu_emitter *e, LLVMValueRef address, cpu_scalar scalar, lp_dtype dtype) {
  LLVMValueRef value = cpu_scalar_convert(e, scalar, dtype).value;
  if (dtype == LP_F16) value = LLVMBuildFPTrunc(e->b, value, e->gen->types.f16, "");
  if (dtype == LP_BF16) value = bf16_bits(e, value);
  LLVMBuildStore(e->b, value, address);
}

/* Between two float types; a register of f16 or bf16 holds a float that such an element can hold. */
static LLVMValueRef float_to_float(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef value = scalar.value;
  if (dtype == LP_F64) return LLVMBuildFPExt(e->b, value, t->f64, "");
  if (scalar.dtype == LP_F64) value = LLVMBuildFPTrunc(e->b, value, t->f32, "");
  if (dtype == LP_F16) value = LLVMBuildFPExt(e->b, LLVMBuildFPTrunc(e->b, value, t->f16, ""), t->f32, "");
  if (dtype == LP_BF16) value = bf16_widen(e, bf16_bits(e, value));
  return value;
}

/* Saturating; NaN gives 0. */
static LLVMValueRef float_to_int(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  const char *name = cpu_dtype_unsigned(dtype) ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  LLVMTypeRef types[] = {stored_type(e, dtype), LLVMTypeOf(scalar.value)};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->gen->llvm, id, types, 2);
  return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->gen->context, id, types, 2), function, &scalar.value, 1, "");
}

static LLVMValueRef int_to_float(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  LLVMTypeRef type = cpu_scalar_type(e, dtype);
  LLVMValueRef value = cpu_dtype_unsigned(scalar.dtype) ? LLVMBuildUIToFP(e->b, scalar.value, type, "")
                                                        : LLVMBuildSIToFP(e->b, scalar.value, type, "");
  if (dtype != LP_F16 && dtype != LP_BF16) return value;
  return float_to_float(e, (cpu_scalar){value, LP_F32}, dtype);
}

static LLVMValueRef to_bool(cpu_emitter *e, cpu_scalar scalar) {
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(scalar.value));
  LLVMValueRef bit = lp_dtype_is_float(scalar.dtype) ? LLVMBuildFCmp(e->b, LLVMRealUNE, scalar.value, zero, "")
                                                     : LLVMBuildICmp(e->b, LLVMIntNE, scalar.value, zero, "");
  return LLVMBuildZExt(e->b, bit, e->gen->types.i8, "");
}

cpu_scalar cpu_scalar_convert(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  const bool from_float = lp_dtype_is_float(scalar.dtype), to_float = lp_dtype_is_float(dtype);
  if (scalar.dtype == dtype) return scalar;
  if (dtype == LP_BOOL) return (cpu_scalar){to_bool(e, scalar), dtype};
  LLVMValueRef value;
  if (from_float && to_float)
    value = float_to_float(e, scalar, dtype);
  else if (from_float)
    value = float_to_int(e, scalar, dtype);
  else if (to_float)
    value = int_to_float(e, scalar, dtype);
  else
    value = LLVMBuildIntCast2(e->b, scalar.value, stored_type(e, dtype), !cpu_dtype_unsigned(scalar.dtype), "");
  return (cpu_scalar){value, dtype};
}

cpu_scalar cpu_scalar_immediate(cpu_emitter *e, const lp_tensor *tensor) {
  const lp_dtype dtype = tensor->type.dtype;
  LLVMTypeRef type = cpu_scalar_type(e, dtype);
  LLVMValueRef value = lp_dtype_is_float(dtype) ? LLVMConstReal(type, lp_tensor_f64(tensor, 0))
                                                : LLVMConstInt(type, (unsigned long long)lp_tensor_i64(tensor, 0), 1);
  return (cpu_scalar){value, dtype};
}
