/* Rewrites com.microsoft: QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearConcat,
 * QGemm (ContribOperators.md). ONNX Runtime's quantiser writes them in its format QOperator,
 * with a scale and a zero point after each operand. All but QGemm, with sums of integers that are exact, become the
 * standard's operator between DequantizeLinear and QuantizeLinear. */
#include "passes/recognise/decompose/rewrite.h"

/* A scale or zero point of one element as a scalar. */
static lp_value *scalar(lp_rewrite *r, lp_value *x) {
  int64_t count;
  if (!x || x->type.rank != 1 || !lp_type_static_dim(x->type, 0, &count) || count != 1) return x;
  return lp_rw_op(r, LP_ONNX_Squeeze, x, LP_RW_INTS(r, 0));
}

lp_value *lp_rw_real(lp_rewrite *r, int32_t operand, int32_t scale, int32_t zero) {
  if (!lp_op_in(r->op, operand) || !lp_op_in(r->op, scale)) {
    (void)lp_rw_refuse(r, "lacks an operand or its scale");
    return NULL;
  }
  return lp_rw_scaled(r, LP_ONNX_DequantizeLinear, lp_op_in(r->op, operand), scalar(r, lp_op_in(r->op, scale)),
                      scalar(r, lp_op_in(r->op, zero)), LP_F32);
}

/* Quantises the result with the scale and the zero point at these indices. */
static lp_status quantise(lp_rewrite *r, lp_value *y, int32_t scale, int32_t zero) {
  if (!lp_op_in(r->op, scale)) return lp_rw_refuse(r, "lacks the scale of its result");
  return lp_rw_give(r, lp_rw_scaled(r, LP_ONNX_QuantizeLinear, y, scalar(r, lp_op_in(r->op, scale)),
                                    scalar(r, lp_op_in(r->op, zero)), r->op->out[0]->type.dtype));
}

/* Without a zero point QuantizeLinear would make uint8 of any operand. */
static lp_status need_zero(const lp_rewrite *r, int32_t zero) {
  bool usual = r->op->out[0]->type.dtype == LP_U8;
  return usual || lp_op_in(r->op, zero) ? LP_OK : lp_rw_refuse(r, "has a result of int8 without a zero point");
}

lp_status lp_rewrite_qlinear_binary(lp_rewrite *r) {
  lp_kind kind = r->op->kind == LP_ONNX_MsQLinearAdd ? LP_ONNX_Add : LP_ONNX_Mul;
  LP_TRY(need_zero(r, 7));
  lp_value *a = lp_rw_real(r, 0, 1, 2), *b = lp_rw_real(r, 3, 4, 5);
  return a && b ? quantise(r, lp_rw_op(r, kind, a, b), 6, 7) : LP_FAILED;
}

lp_status lp_rewrite_qlinear_unary(lp_rewrite *r) {
  int32_t rank = r->op->out[0]->type.rank;
  int64_t axis = lp_op_i64(r->op, "axis", -1);
  lp_value *x = lp_rw_real(r, 0, 1, 2), *y = NULL;
  LP_TRY(need_zero(r, 4));
  if (!x) return LP_FAILED;
  switch (r->op->kind) {
  case LP_ONNX_MsQLinearSoftmax:
    if (lp_op_i64(r->op, "opset", 13) < 13 && axis != -1 && axis != rank - 1)
      return lp_rw_refuse(r, "of an opset before 13 over more than the last axis is not supported");
    y = lp_rw_with(r, LP_ONNX_Softmax, 1, &x, (lp_rw_attr){"axis", axis});
    break;
  case LP_ONNX_MsQLinearLeakyRelu:
    y = lp_rw_op(r, LP_ONNX_LeakyRelu, x, NULL);
    if (y) lp_op_set_f64(r->b.module, y->def, "alpha", lp_op_f64(r->op, "alpha", 0.01));
    break;
  default:
    y = lp_rw_op(r, LP_ONNX_Sigmoid, x, NULL);
  }
  return quantise(r, y, 3, 4);
}

lp_status lp_rewrite_qlinear_concat(lp_rewrite *r) {
  int32_t count = (r->op->in_count - 2) / 3;
  lp_value **parts = LP_NEW_ARRAY(r->b.module->arena, lp_value *, (size_t)count);
  for (int32_t i = 0; i < count; i++)
    parts[i] = lp_rw_real(r, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i);
  return quantise(r, lp_rw_concat(r, count, parts, lp_op_i64(r->op, "axis", 0)), 0, 1);
}

static lp_value *turned(lp_rewrite *r, lp_value *x, const char *flag) {
  static const int64_t swap[] = {1, 0};
  return lp_op_i64(r->op, flag, 0) ? lp_rw_transpose(r, x, 2, swap) : x;
}

lp_status lp_rewrite_qgemm(lp_rewrite *r) {
  enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, BIAS, Y_SCALE, Y_ZERO, COUNT };
  lp_value *in[COUNT];
  for (int32_t i = 0; i < COUNT; i++)
    in[i] = lp_op_in(r->op, i);
  lp_rw_integers p = {turned(r, in[A], "transA"), in[A_SCALE], in[A_ZERO],
                      turned(r, in[B], "transB"), in[B_SCALE], in[B_ZERO]};
  if (!p.a || !p.b) return LP_FAILED;
  lp_value *y = lp_rw_product(r, &p, in[BIAS], lp_op_f64(r->op, "alpha", 1));
  return in[Y_SCALE] && in[Y_ZERO] && y ? quantise(r, y, Y_SCALE, Y_ZERO) : lp_rw_give(r, y);
}
