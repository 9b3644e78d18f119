/* The places that plan-memory gave the values of a module, and the side of each operator. */
#include "backend/values.h"

#include "base/side.h"

const lp_attr *lp_func_place_attr(const lp_op *func, const char *name, lp_place place) {
  char key[LP_PLACE_KEY_SIZE];
  const lp_attr *attr = func ? lp_op_attr(func, lp_func_place_key(func, name, place, key)) : NULL;
  return attr && attr->kind == LP_ATTR_I64S ? attr : NULL;
}

int64_t lp_value_buffer(const lp_value *value, lp_place place) {
  const lp_attr *attr = value->def ? lp_op_attr(value->def, "buffer")
                                   : lp_func_place_attr(lp_block_func(value->block), "arg_buffer", place);
  if (!attr || attr->kind != LP_ATTR_I64S || value->index >= attr->count) return -1;
  return attr->is[value->index];
}

lp_value *lp_value_base(lp_value *value) {
  while (value->def && lp_op_has(value->def, LP_ALIAS) && lp_op_in(value->def, 0))
    value = lp_op_in(value->def, 0);
  return value;
}

const lp_poly *lp_cache_rows(lp_module *module, const lp_op *append) {
  return lp_op_bool(append, "once", false) ? append->out[0]->type.dim[2] : lp_dim_symbol(module, "c");
}

bool lp_op_only_reads(const lp_op *op) {
  return op->kind == LP_OP_KV_APPEND && !lp_op_in(op, 0);
}

bool lp_op_is_run(const lp_op *op) {
  return !lp_op_has(op, LP_CONSTANT) && !lp_op_has(op, LP_COMM) && !lp_op_has(op, LP_TERMINATOR) &&
         op->kind != LP_OP_STATE && op->kind != LP_OP_FUNC;
}

lp_place lp_op_at(const lp_op *op) {
  const lp_place place = lp_op_place(op, op->kind == LP_OP_COMM_RECV ? "to" : "side");
  return place < 0 ? LP_SIDE_DEVICE : place;
}

bool lp_op_all_f32(const lp_op *op, char why[64]) {
  for (int32_t i = 0; i < op->in_count + op->out_count; i++) {
    const lp_value *value = i < op->in_count ? lp_op_in(op, i) : op->out[i - op->in_count];
    if (!value || value->type.dtype == LP_F32) continue;
    if (i < op->in_count && lp_value_is_constant(value) && lp_dtype_is_float(value->type.dtype)) continue;
    return snprintf(why, 64, "it computes in f32, found %s", lp_dtype_name(value->type.dtype)), false;
  }
  return true;
}
