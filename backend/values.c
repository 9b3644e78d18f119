/* Where planned values lie: what every backend and the manifest ask alike. */
#include "backend/backend_internal.h"

#include <stdio.h>

/* The function that a block belongs to; a block inside an operator belongs to the operator's. */
static const lp_op *block_func(const lp_block *block) {
  const lp_op *op = block->parent;
  while (op && op->kind != LP_OP_FUNC)
    op = op->block ? op->block->parent : NULL;
  return op;
}

const lp_attr *lp_func_side_attr(const lp_op *func, const char *name, const char *side) {
  char full[48];
  snprintf(full, sizeof full, "%s_%s", name, side);
  const lp_attr *attr = func ? lp_op_attr(func, full) : NULL;
  return attr && attr->kind == LP_ATTR_I64S ? attr : NULL;
}

int64_t lp_value_buffer(const lp_value *value, const char *side) {
  const lp_attr *attr =
      value->def ? lp_op_attr(value->def, "buffer") : lp_func_side_attr(block_func(value->block), "arg_buffer", side);
  if (!attr || attr->kind != LP_ATTR_I64S || value->index >= attr->count) return -1;
  return attr->is[value->index];
}

lp_value *lp_value_base(lp_value *value) {
  while (value->def && lp_op_has(value->def, LP_ALIAS) && lp_op_in(value->def, 0))
    value = lp_op_in(value->def, 0);
  return value;
}

bool lp_op_is_run(const lp_op *op) {
  return !lp_op_has(op, LP_CONSTANT) && !lp_op_has(op, LP_COMM) && !lp_op_has(op, LP_TERMINATOR) &&
         op->kind != LP_OP_STATE && op->kind != LP_OP_FUNC;
}

const char *lp_op_side(const lp_op *op) {
  return op->kind == LP_OP_COMM_RECV ? lp_op_str(op, "to", "device") : lp_op_str(op, "side", "device");
}
