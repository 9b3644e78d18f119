/* Scalars of generated loops: loading, storing, converting between element types. */
#include "backend/cpu/scalar/scalar.h"

#include "backend/cpu/operands.h"

#include <llvm-c/Core.h>

bool cpu_dtype_unsigned(lp_dtype dtype) {
  return dtype == LP_BOOL || dtype == LP_U8 || dtype == LP_U4 || dtype == LP_U2 || dtype == LP_U16 || dtype == LP_U32 ||
         dtype == LP_U64;
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

/* Narrow floats: a register holds a wider type than memory. */
static bool is_narrow(lp_dtype dtype) {
  return dtype == LP_F16 || dtype == LP_BF16 || lp_dtype_is_mini(dtype);
}

/* The type that a register holds: narrow floats are widened. */
LLVMTypeRef cpu_scalar_type(const cpu_emitter *e, lp_dtype dtype) {
  return is_narrow(dtype) ? e->gen->types.f32 : stored_type(e, dtype);
}

static LLVMValueRef bf16_widen(cpu_emitter *e, LLVMValueRef bits) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef high = LLVMBuildShl(e->b, LLVMBuildZExt(e->b, bits, t->i32, ""), cpu_i32(e, 16), "");
  return LLVMBuildBitCast(e->b, high, t->f32, "");
}

/* Rounds to nearest, ties to even; a NaN stays a NaN. */
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

static LLVMValueRef mini_widen(cpu_emitter *e, LLVMValueRef bits, lp_dtype dtype) {
  LLVMValueRef args[] = {LLVMBuildZExt(e->b, bits, e->gen->types.i32, ""), cpu_i32(e, lp_dtype_mini(dtype))};
  return cpu_kernel(e, "lpk_mini_decode", args, 2);
}

/* The bits of a float in a narrow type; with `saturate`, values out of range become the greatest one. */
static LLVMValueRef mini_bits(cpu_emitter *e, LLVMValueRef value, lp_dtype dtype, bool saturate) {
  LLVMValueRef args[] = {value, cpu_i32(e, lp_dtype_mini(dtype)), cpu_i32(e, saturate)};
  return LLVMBuildTrunc(e->b, cpu_kernel(e, "lpk_mini_encode", args, 3), e->gen->types.i8, "");
}

/* ---- packed elements ---- */

typedef struct {
  LLVMValueRef address, shift; /* of the byte; of the element in it, i8 */
} packed_place;

static LLVMValueRef i8_const(const cpu_emitter *e, int64_t value) {
  return LLVMConstInt(e->gen->types.i8, (unsigned long long)value & 0xff, 0);
}

static packed_place place_of(cpu_emitter *e, LLVMValueRef base, LLVMValueRef index, int32_t bits) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef byte = LLVMBuildLShr(e->b, index, cpu_i64(e, bits == 4 ? 1 : 2), "");
  LLVMValueRef part = LLVMBuildAnd(e->b, index, cpu_i64(e, 8 / bits - 1), "");
  LLVMValueRef shift = LLVMBuildMul(e->b, LLVMBuildTrunc(e->b, part, t->i8, ""), i8_const(e, bits), "");
  return (packed_place){LLVMBuildInBoundsGEP2(e->b, t->i8, base, &byte, 1, ""), shift};
}

static cpu_scalar load_packed(cpu_emitter *e, LLVMValueRef base, LLVMValueRef index, lp_dtype dtype) {
  int32_t bits = lp_dtype_bits(dtype);
  packed_place at = place_of(e, base, index, bits);
  LLVMValueRef value = LLVMBuildLShr(e->b, LLVMBuildLoad2(e->b, e->gen->types.i8, at.address, ""), at.shift, "");
  LLVMValueRef rest = i8_const(e, 8 - bits), high = LLVMBuildShl(e->b, value, rest, "");
  bool is_signed = dtype == LP_I4 || dtype == LP_I2;
  value = is_signed ? LLVMBuildAShr(e->b, high, rest, "") : LLVMBuildLShr(e->b, high, rest, "");
  if (lp_dtype_is_mini(dtype)) value = mini_widen(e, value, dtype);
  return (cpu_scalar){value, dtype};
}

/* One thread writes the elements of a byte in order (cpu_share); each store keeps the elements below its own. */
static void store_packed(cpu_emitter *e, LLVMValueRef base, LLVMValueRef index, LLVMValueRef value, lp_dtype dtype) {
  int32_t bits = lp_dtype_bits(dtype);
  packed_place at = place_of(e, base, index, bits);
  LLVMValueRef below = LLVMBuildNot(e->b, LLVMBuildShl(e->b, i8_const(e, -1), at.shift, ""), "");
  LLVMValueRef kept = LLVMBuildAnd(e->b, LLVMBuildLoad2(e->b, e->gen->types.i8, at.address, ""), below, "");
  LLVMValueRef own = LLVMBuildAnd(e->b, value, i8_const(e, (1 << bits) - 1), "");
  LLVMBuildStore(e->b, LLVMBuildOr(e->b, kept, LLVMBuildShl(e->b, own, at.shift, ""), ""), at.address);
}

/* ---- loading and storing ---- */

static LLVMValueRef address_of(cpu_emitter *e, LLVMValueRef base, LLVMValueRef index, lp_dtype dtype) {
  LLVMValueRef bytes = LLVMBuildNSWMul(e->b, index, cpu_i64(e, cpu_dtype_bytes(dtype)), "");
  return LLVMBuildInBoundsGEP2(e->b, e->gen->types.i8, base, &bytes, 1, "");
}

cpu_scalar cpu_scalar_load_at(cpu_emitter *e, LLVMValueRef base, LLVMValueRef offset, LLVMValueRef index,
                              lp_dtype dtype) {
  if (lp_dtype_bits(dtype) < 8) return load_packed(e, base, LLVMBuildNSWAdd(e->b, offset, index, ""), dtype);
  return cpu_scalar_load(e, address_of(e, address_of(e, base, offset, dtype), index, dtype), dtype);
}

void cpu_scalar_store_at(cpu_emitter *e, LLVMValueRef base, LLVMValueRef index, cpu_scalar scalar, lp_dtype dtype) {
  if (lp_dtype_bits(dtype) >= 8) {
    cpu_scalar_store(e, address_of(e, base, index, dtype), scalar, dtype);
    return;
  }
  LLVMValueRef value = cpu_scalar_convert(e, scalar, dtype).value;
  store_packed(e, base, index, lp_dtype_is_mini(dtype) ? mini_bits(e, value, dtype, false) : value, dtype);
}

/* Conversions between the type in memory and the type in registers. */
static cpu_scalar from_stored(cpu_emitter *e, LLVMValueRef value, lp_dtype dtype) {
  if (dtype == LP_F16) value = LLVMBuildFPExt(e->b, value, e->gen->types.f32, "");
  if (dtype == LP_BF16) value = bf16_widen(e, value);
  if (lp_dtype_is_mini(dtype)) value = mini_widen(e, value, dtype);
  return (cpu_scalar){value, dtype};
}

static LLVMValueRef to_stored(cpu_emitter *e, cpu_scalar scalar) {
  if (scalar.dtype == LP_F16) return LLVMBuildFPTrunc(e->b, scalar.value, e->gen->types.f16, "");
  if (lp_dtype_is_mini(scalar.dtype)) return mini_bits(e, scalar.value, scalar.dtype, false);
  return scalar.dtype == LP_BF16 ? bf16_bits(e, scalar.value) : scalar.value;
}

cpu_scalar cpu_scalar_load(cpu_emitter *e, LLVMValueRef address, lp_dtype dtype) {
  return from_stored(e, LLVMBuildLoad2(e->b, stored_type(e, dtype), address, ""), dtype);
}

void cpu_scalar_store(cpu_emitter *e, LLVMValueRef address, cpu_scalar scalar, lp_dtype dtype) {
  LLVMBuildStore(e->b, to_stored(e, cpu_scalar_convert(e, scalar, dtype)), address);
}

/* A packed element takes a whole byte in a register. */
cpu_scalar cpu_scalar_reinterpret(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  LLVMValueRef bits = to_stored(e, scalar);
  int32_t width = lp_dtype_bits(dtype);
  if (width >= 8) return from_stored(e, LLVMBuildBitCast(e->b, bits, stored_type(e, dtype), ""), dtype);
  LLVMTypeRef own = LLVMIntTypeInContext(e->gen->context, (unsigned)width), byte = e->gen->types.i8;
  bits = LLVMBuildIntCast2(e->b, LLVMBuildTrunc(e->b, bits, own, ""), byte, !cpu_dtype_unsigned(dtype), "");
  return from_stored(e, lp_dtype_is_mini(dtype) ? LLVMBuildAnd(e->b, bits, i8_const(e, (1 << width) - 1), "") : bits,
                     dtype);
}

/* Between two float types. The register of a narrow type holds a float that the narrow type can represent. */
static LLVMValueRef float_to_float(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  const cpu_types *t = &e->gen->types;
  LLVMValueRef value = scalar.value;
  if (dtype == LP_F64) return LLVMBuildFPExt(e->b, value, t->f64, "");
  if (scalar.dtype == LP_F64) value = LLVMBuildFPTrunc(e->b, value, t->f32, "");
  if (dtype == LP_F16) value = LLVMBuildFPExt(e->b, LLVMBuildFPTrunc(e->b, value, t->f16, ""), t->f32, "");
  if (dtype == LP_BF16) value = bf16_widen(e, bf16_bits(e, value));
  if (lp_dtype_is_mini(dtype)) value = mini_widen(e, mini_bits(e, value, dtype, true), dtype);
  return value;
}

/* Saturates; NaN gives 0. A packed integer is held in a byte and saturated to its own range. */
static LLVMValueRef float_to_int(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  const char *name = cpu_dtype_unsigned(dtype) ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  int32_t bits = lp_dtype_bits(dtype);
  LLVMTypeRef own = bits < 8 ? LLVMIntTypeInContext(e->gen->context, (unsigned)bits) : stored_type(e, dtype);
  LLVMTypeRef types[] = {own, LLVMTypeOf(scalar.value)};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->gen->llvm, id, types, 2);
  LLVMTypeRef type = LLVMIntrinsicGetType(e->gen->context, id, types, 2);
  LLVMValueRef value = LLVMBuildCall2(e->b, type, function, &scalar.value, 1, "");
  if (bits >= 8) return value;
  return LLVMBuildIntCast2(e->b, value, e->gen->types.i8, !cpu_dtype_unsigned(dtype), "");
}

/* Between integers: the low bits, of a packed one in a byte. */
static LLVMValueRef int_to_int(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  int32_t bits = lp_dtype_bits(dtype);
  bool from_signed = !cpu_dtype_unsigned(scalar.dtype);
  if (bits >= 8) return LLVMBuildIntCast2(e->b, scalar.value, stored_type(e, dtype), from_signed, "");
  LLVMTypeRef own = LLVMIntTypeInContext(e->gen->context, (unsigned)bits);
  LLVMValueRef low = LLVMBuildTrunc(e->b, scalar.value, own, "");
  return LLVMBuildIntCast2(e->b, low, e->gen->types.i8, !cpu_dtype_unsigned(dtype), "");
}

static LLVMValueRef int_to_float(cpu_emitter *e, cpu_scalar scalar, lp_dtype dtype) {
  LLVMTypeRef type = cpu_scalar_type(e, dtype);
  LLVMValueRef value = cpu_dtype_unsigned(scalar.dtype) ? LLVMBuildUIToFP(e->b, scalar.value, type, "")
                                                        : LLVMBuildSIToFP(e->b, scalar.value, type, "");
  if (!is_narrow(dtype)) return value;
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
    value = int_to_int(e, scalar, dtype);
  return (cpu_scalar){value, dtype};
}

/* Floats become packed integers by their low bits. */
cpu_scalar cpu_scalar_cast(cpu_emitter *e, const lp_op *op, cpu_scalar scalar, lp_dtype dtype) {
  const lp_cast cast = lp_op_cast(op);
  if (lp_dtype_bits(dtype) < 8 && !lp_dtype_is_mini(dtype) && lp_dtype_is_float(scalar.dtype))
    scalar = cpu_scalar_convert(e, scalar, LP_I32);
  if (!lp_dtype_is_mini(dtype) || (dtype != LP_F8E8M0 && cast.saturate) || scalar.dtype == dtype)
    return cpu_scalar_convert(e, scalar, dtype);
  LLVMValueRef value = cpu_scalar_convert(e, scalar, LP_F32).value, bits;
  if (dtype == LP_F8E8M0) {
    LLVMValueRef args[] = {value, cpu_i32(e, cast.rounding), cpu_i32(e, cast.saturate)};
    bits = LLVMBuildTrunc(e->b, cpu_kernel(e, "lpk_e8m0_encode", args, 3), e->gen->types.i8, "");
  } else {
    bits = mini_bits(e, value, dtype, false);
  }
  return (cpu_scalar){mini_widen(e, bits, dtype), dtype};
}

cpu_scalar cpu_scalar_immediate(cpu_emitter *e, const lp_tensor *tensor) {
  const lp_dtype dtype = tensor->type.dtype;
  LLVMTypeRef type = cpu_scalar_type(e, dtype);
  LLVMValueRef value = lp_dtype_is_float(dtype) ? LLVMConstReal(type, lp_tensor_f64(tensor, 0))
                                                : LLVMConstInt(type, (unsigned long long)lp_tensor_i64(tensor, 0), 1);
  return (cpu_scalar){value, dtype};
}
