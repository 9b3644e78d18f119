/* op.quantize and op.dequantize. */
#include "backend/cpu/codegen/build.h"

#include "backend/cpu/operands.h"

#include <llvm-c/Core.h>

enum { X, SCALE, ZERO };

static bool is_code(lp_dtype dtype) {
  if (lp_dtype_is_mini(dtype)) return dtype != LP_F8E8M0;
  return !lp_dtype_is_float(dtype) && dtype != LP_BOOL && dtype != LP_I64 && dtype != LP_U64;
}

static bool fails(char why[64], const char *what, lp_dtype dtype) {
  (void)snprintf(why, 64, "%s of type %s", what, lp_dtype_name(dtype));
  return false;
}

static bool is_f32(const lp_value *value) {
  return value->type.dtype == LP_F32 || (lp_value_is_constant(value) && lp_dtype_is_float(value->type.dtype));
}

static bool quantize_runs(const lp_op *op, char why[64]) {
  const lp_value *x = lp_op_in(op, X), *scale = lp_op_in(op, SCALE), *zero = lp_op_in(op, ZERO);
  lp_dtype codes = op->out[0]->type.dtype;
  if (!is_f32(x)) return fails(why, "an operand", x->type.dtype);
  if (!is_f32(scale)) return fails(why, "a scale", scale->type.dtype);
  if (!is_code(codes) || codes == LP_I32 || codes == LP_U32) return fails(why, "codes", codes);
  return !zero || zero->type.dtype == codes || fails(why, "a zero point", zero->type.dtype);
}

static bool dequantize_runs(const lp_op *op, char why[64]) {
  const lp_value *x = lp_op_in(op, X), *scale = lp_op_in(op, SCALE), *zero = lp_op_in(op, ZERO);
  if (!is_code(x->type.dtype)) return fails(why, "codes", x->type.dtype);
  if (!is_f32(scale)) return fails(why, "a scale", scale->type.dtype);
  if (op->out[0]->type.dtype != LP_F32) return fails(why, "a result", op->out[0]->type.dtype);
  return !zero || is_code(zero->type.dtype) || is_f32(zero) || fails(why, "a zero point", zero->type.dtype);
}

static bool is_16_bit_float(lp_dtype dtype) {
  return dtype == LP_F16 || dtype == LP_BF16;
}

static cpu_form quant_form(const lp_op *op, int32_t index) {
  bool real = index == SCALE || (index == X && op->kind == LP_OP_QUANTIZE) ||
              (index == ZERO && is_16_bit_float(lp_op_in(op, ZERO)->type.dtype));
  return real ? CPU_FORM_F32 : CPU_FORM_RAW;
}

/* Builds an lpk_cover on the stack: it says which elements of x share an element of the scale or zero point. */
static LLVMValueRef cover(cpu_emitter *e, const lp_value *scale) {
  const lp_type x = lp_op_in(e->op, X)->type;
  const int32_t axis = (int32_t)lp_op_i64(e->op, "axis", 0);
  const int64_t block = lp_op_i64(e->op, "block_size", 0);
  LLVMValueRef zero = cpu_i64(e, 0), one = cpu_i64(e, 1), total = cpu_poly_product(e, x.dim, 0, x.rank);
  int64_t count;
  if (!scale || (lp_type_static_numel(scale->type, &count) && count == 1)) {
    LLVMValueRef single[] = {total, one, one, one, zero, zero, zero};
    return cpu_array(e, single, 7);
  }
  LLVMValueRef size = cpu_poly(e, x.dim[axis]), inner = cpu_poly_product(e, x.dim, axis + 1, x.rank);
  if (block == 0) {
    LLVMValueRef per_index[] = {total, size, inner, one, zero, one, zero};
    return cpu_array(e, per_index, 7);
  }
  LLVMValueRef groups = cpu_poly(e, scale->type.dim[axis]);
  LLVMValueRef per_block[] = {total, size, inner, cpu_i64(e, block), LLVMBuildNSWMul(e->b, groups, inner, ""),
                              inner, one};
  return cpu_array(e, per_block, 7);
}

static void emit_quant(cpu_emitter *e) {
  const bool back = e->op->kind == LP_OP_DEQUANTIZE;
  const lp_value *zero = lp_op_in(e->op, ZERO);
  const lp_dtype codes = back ? lp_op_in(e->op, X)->type.dtype : e->op->out[0]->type.dtype;
  const lp_dtype zeros = !zero                                                                        ? codes
                         : lp_dtype_is_mini(zero->type.dtype) || !lp_dtype_is_float(zero->type.dtype) ? zero->type.dtype
                                                                                                      : LP_F32;
  cpu_kernel(e, back ? "lpk_dequantize" : "lpk_quantize",
             CPU_ARGS(e->out[0], e->in[X], e->in[SCALE], zero ? e->in[ZERO] : cpu_null(e),
                      cover(e, lp_op_in(e->op, SCALE)), cover(e, zero), cpu_i32(e, cpu_kernel_dtype(codes)),
                      cpu_i32(e, back ? cpu_kernel_dtype(zeros) : lp_op_bool(e->op, "saturate", true)), e->thread,
                      e->threads));
}

const cpu_rule cpu_rule_quantize = {
    .kind = LP_OP_QUANTIZE, .runs = quantize_runs, .form = quant_form, .emit = emit_quant, .reads_packed = true};
const cpu_rule cpu_rule_dequantize = {
    .kind = LP_OP_DEQUANTIZE, .runs = dequantize_runs, .form = quant_form, .emit = emit_quant, .reads_packed = true};
