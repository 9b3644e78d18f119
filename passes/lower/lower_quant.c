/* Lowering of quantising and dequantising. */
#include "passes/lower/lower.h"

static lp_value *build(lp_lowering *l, lp_kind kind, lp_value *x, lp_dtype dtype) {
  lp_value *in[] = {x, lp_op_in(l->op, 1), lp_op_in(l->op, 2)};
  int64_t axis = lp_op_i64(l->op, "axis", 1);
  lp_op *op = lp_build_typed(&l->b, kind, in[2] ? 3 : 2, in, lp_type_with_dtype(x->type, dtype));
  lp_op_set_i64(l->b.module, op, "axis", axis < 0 ? axis + x->type.rank : axis);
  lp_op_set_i64(l->b.module, op, "block_size", lp_op_i64(l->op, "block_size", 0));
  return op->out[0];
}

lp_status lp_lower_quantize(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  if (!lp_dtype_is_float(x->type.dtype)) x = lp_build_map1(&l->b, "cast", x, LP_F32);
  l->result[0] = build(l, LP_OP_QUANTIZE, x, l->op->out[0]->type.dtype);
  if (!lp_op_i64(l->op, "saturate", 1)) lp_op_set_bool(l->b.module, l->result[0]->def, "saturate", false);
  return LP_OK;
}

lp_status lp_lower_dequantize(lp_lowering *l) {
  l->result[0] = build(l, LP_OP_DEQUANTIZE, lp_op_in(l->op, 0), LP_F32);
  return LP_OK;
}
