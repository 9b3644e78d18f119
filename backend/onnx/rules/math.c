/* Products, norms, reductions in ONNX. */
#include "backend/onnx/rules/rules.h"

#include "backend/onnx/constants.h"

/* ---- products ---------------------------------------------------------------------------------------------------- */

static lp_status apply_epilogue(onnx_graph *g, const lp_op *op, onnx_name *x) {
  const char *epilogue = lp_op_str(op, "epilogue", "none");
  if (lp_streq(epilogue, "none")) return LP_OK;
  return onnx_function(g, NULL, epilogue, x, 1, LP_F32, x);
}

lp_status onnx_lower_linear(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x, w, bias, residual, gate;
  LP_TRY(onnx_operand_as(g, 0, LP_F32, &x));
  LP_TRY(onnx_weight(g, op, false, &w));
  LP_TRY(onnx_operand_as(g, 2, LP_F32, &bias));
  LP_TRY(onnx_operand_as(g, 3, LP_F32, &residual));
  onnx_name y = ONNX_NODE(g, "MatMul", x, w);
  if (bias) y = ONNX_NODE(g, "Add", y, bias);
  if (lp_op_in(op, 4)) {
    LP_TRY(onnx_weight(g, op, true, &w));
    gate = ONNX_NODE(g, "MatMul", x, w);
    LP_TRY(apply_epilogue(g, op, &gate));
    y = ONNX_NODE(g, "Mul", gate, y);
  } else {
    LP_TRY(apply_epilogue(g, op, &y));
  }
  if (residual) y = ONNX_NODE(g, "Add", y, residual);
  out[0] = op->out[0]->type.dtype == LP_F32 ? y : onnx_cast(g, y, op->out[0]->type.dtype);
  return LP_OK;
}

static onnx_name swap_last(onnx_graph *g, onnx_name x, int32_t rank) {
  int64_t perm[LP_MAX_RANK];
  for (int32_t i = 0; i < rank; i++)
    perm[i] = i;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  return onnx_transpose(g, x, perm, rank);
}

lp_status onnx_lower_matmul(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name a, b;
  lp_dtype dtype = op->out[0]->type.dtype;
  LP_TRY(onnx_operand_as(g, 0, dtype, &a));
  LP_TRY(onnx_operand_as(g, 1, dtype, &b));
  if (lp_op_bool(op, "transpose_a", false)) a = swap_last(g, a, lp_op_in(op, 0)->type.rank);
  if (lp_op_bool(op, "transpose_b", false)) b = swap_last(g, b, lp_op_in(op, 1)->type.rank);
  out[0] = ONNX_NODE(g, "MatMul", a, b);
  return LP_OK;
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static lp_status norm_of(onnx_graph *g, const lp_op *op, onnx_name x, int32_t parameter, onnx_name *out) {
  const int64_t last = -1;
  onnx_name weight, bias;
  LP_TRY(onnx_operand_as(g, parameter, LP_F32, &weight));
  LP_TRY(onnx_operand_as(g, parameter + 1, LP_F32, &bias));
  if (!lp_streq(lp_op_str(op, "type", ""), "rms"))
    x = ONNX_NODE(g, "Sub", x, onnx_reduce(g, "ReduceMean", x, &last, 1, true));
  onnx_name mean = onnx_reduce(g, "ReduceMean", ONNX_NODE(g, "Mul", x, x), &last, 1, true);
  onnx_name variance = ONNX_NODE(g, "Add", mean, onnx_scalar(g, LP_F32, lp_op_f64(op, "epsilon", 1e-5)));
  onnx_name y = ONNX_NODE(g, "Div", x, ONNX_NODE(g, "Sqrt", variance));
  if (weight) y = ONNX_NODE(g, "Mul", y, weight);
  *out = bias ? ONNX_NODE(g, "Add", y, bias) : y;
  return LP_OK;
}

lp_status onnx_lower_norm(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x;
  LP_TRY(onnx_operand_as(g, 0, LP_F32, &x));
  return norm_of(g, op, x, 1, out);
}

lp_status onnx_lower_add_norm(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x, r;
  LP_TRY(onnx_operand_as(g, 0, LP_F32, &x));
  LP_TRY(onnx_operand_as(g, 1, LP_F32, &r));
  out[0] = ONNX_NODE(g, "Add", x, r);
  return norm_of(g, op, out[0], 2, &out[1]);
}

/* ---- along axes -------------------------------------------------------------------------------------------------- */

lp_status onnx_lower_softmax(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  out[0] = ONNX_NODE(g, lp_op_bool(op, "log", false) ? "LogSoftmax" : "Softmax", x);
  onnx_attr_i(g, "axis", -1);
  return LP_OK;
}

lp_status onnx_lower_reduce(onnx_graph *g, const lp_op *op, onnx_name *out) {
  static const char *const types[][2] = {{"sum", "ReduceSum"},       {"mean", "ReduceMean"},
                                         {"max", "ReduceMax"},       {"min", "ReduceMin"},
                                         {"prod", "ReduceProd"},     {"l1", "ReduceL1"},
                                         {"l2", "ReduceL2"},         {"sumsq", "ReduceSumSquare"},
                                         {"logsum", "ReduceLogSum"}, {"logsumexp", "ReduceLogSumExp"}};
  const lp_attr *axes = lp_op_attr(op, "axes");
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  for (size_t i = 0; i < LP_COUNT(types); i++) {
    if (!lp_streq(types[i][0], lp_op_str(op, "fn", ""))) continue;
    out[0] = axes->count ? onnx_reduce(g, types[i][1], x, axes->is, axes->count, lp_op_bool(op, "keepdims", false))
                         : ONNX_NODE(g, "Identity", x);
    return LP_OK;
  }
  return onnx_refuse(g, lp_op_str(op, "fn", ""));
}

lp_status onnx_lower_argmax(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  out[0] = ONNX_NODE(g, lp_op_bool(op, "min", false) ? "ArgMin" : "ArgMax", x);
  onnx_attr_i(g, "axis", lp_op_i64(op, "axis", 0));
  onnx_attr_i(g, "keepdims", lp_op_bool(op, "keepdims", false));
  onnx_attr_i(g, "select_last_index", lp_op_bool(op, "last", false));
  return LP_OK;
}

lp_status onnx_lower_topk(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x;
  int64_t axis = lp_op_i64(op, "axis", 0);
  LP_TRY(onnx_operand(g, 0, &x));
  out[0] = ONNX_NODE(g, "TopK", x, onnx_size(g, op->out[0]->type.dim[axis]));
  onnx_attr_i(g, "axis", axis);
  onnx_attr_i(g, "largest", !lp_op_bool(op, "min", false));
  out[1] = onnx_more(g);
  return LP_OK;
}

lp_status onnx_lower_cumsum(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x;
  if (lp_op_bool(op, "product", false)) return onnx_refuse(g, "ONNX has no running product");
  LP_TRY(onnx_operand(g, 0, &x));
  out[0] = ONNX_NODE(g, "CumSum", x, onnx_scalar(g, LP_I64, (double)lp_op_i64(op, "axis", 0)));
  onnx_attr_i(g, "exclusive", lp_op_bool(op, "exclusive", false));
  onnx_attr_i(g, "reverse", lp_op_bool(op, "reverse", false));
  return LP_OK;
}
