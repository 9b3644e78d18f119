/* Joins a norm with the scale that follows it and with the residual add before it: x + r and its norm in one pass over
 * the row. Adds that a linear operator has absorbed as its residual no longer exist here. */
#include "base/poly.h"
#include "passes/lower/fuse_steps.h"

/* ---- scale: norm(x, 1) * w is norm(x, w) ------------------------------------------------------------------------- */

static bool is_ones(const lp_value *value) {
  lp_tensor tensor;
  int64_t count;
  if (!value) return true;
  if (!lp_value_constant(value, &tensor) || !lp_type_static_numel(value->type, &count)) return false;
  for (int64_t i = 0; i < count; i++)
    if (lp_tensor_f64(&tensor, i) != 1.0) return false;
  return true;
}

static void take_scale(lp_module *module, lp_op *norm) {
  lp_value *x = norm->out[0];
  lp_op *reader = lp_only_reader(x);
  if (!lp_is_map(reader, "mul") || !lp_type_equal(reader->out[0]->type, x->type) || lp_op_in(norm, 2)) return;
  lp_value *scale = lp_op_in(reader, lp_op_in(reader, 0) == x ? 1 : 0);
  bool vector = lp_value_is_constant(scale) && scale->type.rank == 1 && lp_dtype_is_float(scale->type.dtype) &&
                lp_poly_equal(scale->type.dim[0], x->type.dim[x->type.rank - 1]);
  if (!vector || !is_ones(lp_op_in(norm, 1))) return;
  lp_value *in[] = {lp_op_in(norm, 0), scale};
  lp_op_set_ins(module, norm, 2, in);
  for (int32_t i = 0; i < reader->attr_count; i++) /* the norm takes the layer of its scale */
    if (!lp_streq(reader->attr[i].name, "fn")) lp_op_set_attr(module, norm, &reader->attr[i]);
  lp_value_replace(reader->out[0], x);
  lp_op_erase(reader);
}

/* ---- residual ---------------------------------------------------------------------------------------------------- */

/* The norm over the last axis that reads `sum`, or NULL. */
static lp_op *norm_reader(const lp_value *sum) {
  lp_op *norm = NULL;
  for (const lp_use *use = sum->uses; use; use = use->next)
    if (lp_op_is(use->owner, LP_OP_NORM) && use == &use->owner->in[0] &&
        lp_type_equal(use->owner->out[0]->type, sum->type) && (!norm || use->owner->order < norm->order))
      norm = use->owner;
  return norm;
}

static bool is_whole(const lp_op *add, int32_t index) {
  lp_value *value = lp_op_in(add, index);
  return value && !lp_value_is_constant(value) && lp_type_equal(value->type, add->out[0]->type);
}

/* Tells whether the sum feeds an early exit. The program may leave the device after the exit; then only the sum should
 * cross, without its norm. */
static bool feeds_exit(const lp_value *sum) {
  for (const lp_use *use = sum->uses; use; use = use->next)
    if (lp_streq(lp_op_str(use->owner, "layer_kind", NULL), "exit_head")) return true;
  return false;
}

static void join(lp_module *module, lp_op *add, lp_op *norm) {
  lp_value *in[] = {lp_op_in(add, 0), lp_op_in(add, 1), lp_op_in(norm, 1), lp_op_in(norm, 2)};
  lp_type types[] = {add->out[0]->type, norm->out[0]->type};
  int32_t count = in[3] ? 4 : in[2] ? 3 : 2;
  lp_op *joined = lp_op_create(module, LP_OP_ADD_NORM, norm->loc, count, in, 2, types);
  for (int32_t i = 0; i < norm->attr_count; i++)
    lp_op_set_attr(module, joined, &norm->attr[i]);
  joined->out[0]->name = add->out[0]->name;
  joined->out[1]->name = norm->out[0]->name;
  lp_op_insert_before(add, joined);
  lp_value_replace(add->out[0], joined->out[0]);
  lp_value_replace(norm->out[0], joined->out[1]);
  lp_op_erase(norm);
  lp_op_erase(add);
}

void lp_fuse_norm(lp_module *module, lp_block *block) {
  LP_FOR_OPS(op, block)
    if (op->kind == LP_OP_NORM) take_scale(module, op);
  lp_block_renumber(block);
  for (lp_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (!lp_is_map(op, "add") || !is_whole(op, 0) || !is_whole(op, 1) || feeds_exit(op->out[0])) continue;
    lp_op *norm = norm_reader(op->out[0]);
    if (!norm || (lp_op_in(norm, 1) && !lp_value_is_constant(lp_op_in(norm, 1))) ||
        (lp_op_in(norm, 2) && !lp_value_is_constant(lp_op_in(norm, 2))))
      continue;
    if (next == norm) next = norm->next;
    join(module, op, norm);
  }
}
