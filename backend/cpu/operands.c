/* Facts about operands that rules share. */
#include "backend/cpu/operands.h"

#include "backend/cpu/kernels/kernels.h"

bool cpu_value_immediate(const lp_value *value, lp_tensor *out) {
  int64_t numel = 0;
  return value && lp_value_constant(value, out) && lp_type_static_numel(value->type, &numel) && numel == 1;
}

cpu_form cpu_form_raw(const lp_op *op, int32_t index) {
  (void)op, (void)index;
  return CPU_FORM_RAW;
}

cpu_form cpu_form_f32(const lp_op *op, int32_t index) {
  (void)op, (void)index;
  return CPU_FORM_F32;
}

int cpu_kernel_dtype(lp_dtype dtype) {
  switch (dtype) {
  case LP_F16:
    return LPK_F16;
  case LP_BF16:
    return LPK_BF16;
  case LP_I64:
    return LPK_I64;
  case LP_I32:
    return LPK_I32;
  case LP_U8:
  case LP_BOOL:
    return LPK_U8;
  case LP_I8:
    return LPK_I8;
  case LP_I16:
    return LPK_I16;
  case LP_U16:
    return LPK_U16;
  case LP_U32:
    return LPK_U32;
  case LP_U64:
    return LPK_I64;
  case LP_F64:
    return LPK_F64;
  case LP_I4:
    return LPK_I4;
  case LP_U4:
    return LPK_U4;
  case LP_I2:
    return LPK_I2;
  case LP_U2:
    return LPK_U2;
  default:
    return lp_dtype_is_mini(dtype) ? LPK_MINI + (int)lp_dtype_mini(dtype) : LPK_F32;
  }
}

int32_t cpu_dtype_bytes(lp_dtype dtype) {
  return (lp_dtype_bits(dtype) + 7) / 8;
}
