/* Finds operators that mix the rows of a sequence. A model without past inputs runs with a KV cache on s new rows after
 * p old ones. That is right only if each row depends on itself only and rows meet only in attention. */
#include "base/poly.h"
#include "passes/lower/kv_cache.h"

static bool is_long(lp_module *module, const lp_poly *dim) {
  return lp_poly_has(dim, lp_symbols_find(&module->symbols, "s"));
}

/* Tells whether an axis, negative when it counts from the end, counts rows of the sequence. */
static bool axis_is_long(lp_module *module, lp_type type, int64_t axis) {
  if (axis < 0) axis += type.rank;
  return axis >= 0 && axis < type.rank && is_long(module, type.dim[axis]);
}

static bool any_is_long(lp_module *module, lp_type type, int64_t first, int64_t count) {
  for (int64_t i = first; i < first + count; i++)
    if (axis_is_long(module, type, i)) return true;
  return false;
}

static bool reduces_rows(lp_module *module, const lp_op *op) {
  const lp_attr *axes = lp_op_attr(op, "axes");
  for (int32_t i = 0; i < axes->count; i++)
    if (axis_is_long(module, lp_op_in(op, 0)->type, axes->is[i])) return true;
  return false;
}

/* Tells whether the slice takes anything but all rows or the last row. Those two do not depend on the rows before
 * them. */
static bool shifts_rows(lp_module *module, const lp_op *op) {
  const lp_type x = lp_op_in(op, 0)->type, y = op->out[0]->type;
  const lp_attr *starts = lp_op_attr(op, "starts"), *steps = lp_op_attr(op, "steps");
  const lp_poly *one = lp_dim_const(module, 1);
  for (int32_t i = 0; i < x.rank; i++) {
    if (!is_long(module, x.dim[i])) continue;
    bool all = steps->is[i] == 1 && lp_poly_equal(x.dim[i], y.dim[i]);
    bool last =
        lp_poly_equal(y.dim[i], one) && lp_poly_equal(starts->polys[i], lp_poly_sub(module->arena, x.dim[i], one));
    if (!all && !last) return true;
  }
  return false;
}

static bool pads_rows(lp_module *module, const lp_op *op) {
  const lp_type x = lp_op_in(op, 0)->type, y = op->out[0]->type;
  for (int32_t i = 0; i < x.rank; i++)
    if (is_long(module, x.dim[i]) && !lp_poly_equal(x.dim[i], y.dim[i])) return true;
  return false;
}

/* Tells whether the product sums over rows, or may pair each row with all others. */
static bool multiplies_rows(lp_module *module, const lp_op *op) {
  const lp_type x = lp_op_in(op, 0)->type, y = lp_op_in(op, 1)->type;
  bool x_long = any_is_long(module, x, 0, x.rank), y_long = any_is_long(module, y, 0, y.rank);
  if (x_long && y_long) return true;
  return axis_is_long(module, x, lp_op_bool(op, "transpose_a", false) ? -2 : -1) ||
         axis_is_long(module, y, y.rank == 1 || lp_op_bool(op, "transpose_b", false) ? -1 : -2);
}

bool lp_kv_mixes_rows(lp_module *module, const lp_op *op) {
  const lp_type x = op->in_count > 0 && lp_op_in(op, 0) ? lp_op_in(op, 0)->type : (lp_type){0};
  int64_t count = 1;
  switch (op->kind) {
  case LP_OP_MATMUL:
    return multiplies_rows(module, op);
  case LP_OP_LINEAR_ATTENTION:
    return true;
  case LP_OP_REDUCE:
    return reduces_rows(module, op);
  case LP_OP_SLICE:
    return shifts_rows(module, op);
  case LP_OP_PAD:
    return pads_rows(module, op);
  case LP_OP_WINDOWS:
    return any_is_long(module, x, x.rank - lp_op_attr(op, "window")->count, lp_op_attr(op, "window")->count);
  case LP_OP_SCATTER_ND:
    (void)lp_type_static_dim(lp_op_in(op, 1)->type, -1, &count);
    return any_is_long(module, x, 0, count);
  case LP_OP_CONCAT: /* any operand may be the long one */
    return axis_is_long(module, op->out[0]->type, lp_op_i64(op, "axis", 0));
  case LP_OP_SCATTER_ELEMENTS:
  case LP_OP_GATHER:
  case LP_OP_GATHER_ELEMENTS:
  case LP_OP_CUMSUM:
  case LP_OP_ARGMAX:
  case LP_OP_TOPK:
    return axis_is_long(module, x, lp_op_i64(op, "axis", 0));
  default:
    return lp_op_has(op, LP_ROWWISE) && axis_is_long(module, x, -1);
  }
}
