/* op.quantize and op.dequantize in ONNX. */

#include "backend/onnx/constants.h"

/* Scale and zero point in the standard's form: a single one is a scalar. */
static lp_status parameters(onnx_graph *g, const lp_op *op, onnx_name *scale, onnx_name *zero) {
  const lp_value *value = lp_op_in(op, 1);
  int64_t count = 0;
  LP_TRY(onnx_operand_as(g, 1, LP_F32, scale));
  LP_TRY(onnx_operand(g, 2, zero));
  if (!lp_type_static_numel(value->type, &count) || count != 1 || value->type.rank == 0) return LP_OK;
  onnx_name scalar = onnx_i64s(g, NULL, 0);
  *scale = ONNX_NODE(g, "Reshape", *scale, scalar);
  if (*zero) *zero = ONNX_NODE(g, "Reshape", *zero, scalar);
  return LP_OK;
}

/* One zero point for many scales is repeated. */
static void spread(onnx_graph *g, const lp_op *op, onnx_name scale, onnx_name *zero) {
  int64_t scales = 0, zeros = 0;
  bool known = *zero && lp_type_static_numel(lp_op_in(op, 1)->type, &scales) &&
               lp_type_static_numel(lp_op_in(op, 2)->type, &zeros);
  if (*zero && !(known && scales == zeros)) *zero = ONNX_NODE(g, "Expand", *zero, ONNX_NODE(g, "Shape", scale));
}

static lp_status check(const onnx_graph *g, const lp_op *op, lp_dtype codes) {
  if (lp_op_i64(op, "block_size", 0) > 0 && g->opset < 21) return onnx_refuse(g, "scales of blocks need --opset=21");
  if (lp_dtype_is_mini(codes)) return onnx_refuse(g, "floats of 8 bits are not supported");
  if (lp_dtype_bits(codes) < 4) return onnx_refuse(g, "ONNX has no integers of 2 bits");
  if (g->opset < 21 && codes != LP_I8 && codes != LP_U8 && codes != LP_I32)
    return onnx_refuse(g, "integers other than i8 and u8 need --opset=21");
  return LP_OK;
}

static void place(onnx_graph *g, const lp_op *op) {
  onnx_attr_i(g, "axis", lp_op_i64(op, "axis", 0));
  if (lp_op_i64(op, "block_size", 0) > 0) onnx_attr_i(g, "block_size", lp_op_i64(op, "block_size", 0));
}

lp_status onnx_lower_quantize(onnx_graph *g, const lp_op *op, onnx_name *out) {
  lp_dtype codes = op->out[0]->type.dtype;
  onnx_name x, scale, zero;
  LP_TRY(check(g, op, codes));
  LP_TRY(onnx_operand_as(g, 0, LP_F32, &x));
  LP_TRY(parameters(g, op, &scale, &zero));
  if (!zero) { /* it determines the type of the result */
    int64_t one = 1;
    uint64_t data = 0;
    Onnx__TensorProto *nothing = onnx_tensor(g, codes, 1, &one);
    onnx_tensor_set_data(g, nothing, &data, ((size_t)lp_dtype_bits(codes) + 7) / 8);
    zero = ONNX_NODE(g, "ConstantOfShape", ONNX_NODE(g, "Shape", scale));
    onnx_attr_tensor(g, "value", nothing);
  }
  if (lp_op_in(op, 2)) spread(g, op, scale, &zero);
  out[0] = ONNX_NODE(g, "QuantizeLinear", x, scale, zero);
  place(g, op);
  if (onnx_dtype(codes) != codes) out[0] = onnx_cast(g, out[0], onnx_dtype(codes));
  return LP_OK;
}

lp_status onnx_lower_dequantize(onnx_graph *g, const lp_op *op, onnx_name *out) {
  lp_dtype dtype = op->out[0]->type.dtype;
  lp_dtype codes = lp_op_in(op, 0)->type.dtype;
  onnx_name x, scale, zero;
  LP_TRY(check(g, op, codes));
  LP_TRY(onnx_operand(g, 0, &x));
  LP_TRY(parameters(g, op, &scale, &zero));
  if (zero && onnx_dtype(codes) != codes && !lp_value_is_constant(lp_op_in(op, 0)))
    zero = onnx_cast(g, zero, onnx_dtype(codes));
  spread(g, op, scale, &zero);
  out[0] = ONNX_NODE(g, "DequantizeLinear", x, scale, zero);
  place(g, op);
  if (dtype != LP_F32) out[0] = onnx_cast(g, out[0], dtype);
  return LP_OK;
}
