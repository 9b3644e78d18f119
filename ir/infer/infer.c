/* Types of onnx.* operators from their operands. The rule of each operator is named in ops.def; an entry without a rule
 * does not compile. */
#include "ir/infer/infer.h"

#include <assert.h>

static lp_infer_rule *const rules[LP_OP_COUNT] = {
#define LP_ONNX(id, name, imin, imax, omin, omax, traits, attrs, infer, lower) [LP_ONNX_##id] = infer_##infer,
#include "ir/ops.def"
};

lp_status lp_op_infer(lp_module *module, lp_op *op, lp_diag *diag) {
  if (op->kind == LP_OP_CONSTANT) lp_infer_constant_known(module, op->out[0]);
  if (op->kind == LP_OP_DIMS) {
    op->out[0]->known = lp_op_attr(op, "values")->polys;
    op->out[0]->known_count = lp_op_attr(op, "values")->count;
  }
  const lp_op_info *info = lp_op_info_get(op->kind);
  if (info->level != LP_LEVEL_ONNX) return LP_OK;
  lp_infer c = {.m = module, .op = op, .diag = diag};
  LP_TRY(lp_infer_need(&c, info->in_min));
  do { /* each round removes a symbol, so this ends */
    c.again = false;
    assert(rules[op->kind]);
    LP_TRY(rules[op->kind](&c));
  } while (c.again);
  lp_infer_values(&c);
  return LP_OK;
}

lp_status lp_block_infer(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    LP_TRY(lp_op_infer(module, op, diag));
    if (op->region) LP_TRY(lp_block_infer(module, op->region, diag));
  }
  return LP_OK;
}
