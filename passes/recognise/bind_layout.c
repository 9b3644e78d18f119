/* Caches with axes in another order become [b, heads, p, d], which the other files and kv-cache expect: the argument
 * takes that order, and the Concat that appends to it is written in that order between transposes, which fold joins. */
#include "passes/build.h"
#include "passes/recognise/bind.h"

/* The permutation between [b, heads, p, d] and a layout that grows along axis `axis`; it is its own inverse. */
static const int64_t *permutation(int32_t axis) {
  static const int64_t tokens_first[] = {0, 2, 1, 3}, tokens_last[] = {0, 1, 3, 2};
  return axis == 1 ? tokens_first : tokens_last;
}

static lp_value *transposed(lp_build *b, lp_value *x, const int64_t *perm) {
  lp_type unknown = {.rank = -1};
  lp_op *op = lp_op_create(b->module, LP_ONNX_Transpose, b->loc, 1, &x, 1, &unknown);
  lp_op_set_i64s(b->module, op, "perm", perm, 4);
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

/* Concat(T(past), new) = T(Concat(past, T(new))) */
static lp_status append_in_order(const lp_bind *b, lp_op *concat, lp_value *past, const int64_t *perm) {
  lp_build build = lp_build_at(b->module, concat, b->diag);
  lp_type unknown = {.rank = -1};
  lp_value *part[] = {past, transposed(&build, lp_op_in(concat, 1), perm)};
  if (!part[1]) return LP_FAILED;
  lp_op *joined = lp_op_create(b->module, LP_ONNX_Concat, build.loc, 2, part, 1, &unknown);
  lp_op_set_i64(b->module, joined, "axis", 2);
  LP_TRY(lp_build_place(&build, joined));
  lp_value *back = transposed(&build, joined->out[0], perm);
  if (!back) return LP_FAILED;
  lp_value_replace(concat->out[0], back);
  return LP_OK;
}

static bool appends_to(const lp_op *op, const lp_value *past, int32_t axis) {
  if (op->kind != LP_ONNX_Concat || op->in_count != 2 || lp_op_in(op, 0) != past) return false;
  int64_t found = lp_op_i64(op, "axis", 0);
  return (found < 0 ? found + 4 : found) == axis;
}

lp_status lp_bind_order_axes(lp_bind *b, int32_t input, int32_t output, int32_t axis) {
  lp_value *past = b->block->arg[input];
  const int64_t *perm = permutation(axis);
  lp_build build = lp_build_at(b->module, b->block->first, b->diag), at_end = lp_build_at(b->module, b->end, b->diag);
  lp_type old = past->type;
  const lp_poly *dims[4];
  for (int32_t i = 0; i < 4; i++)
    dims[i] = old.dim[perm[i]];
  past->type = lp_type_make(b->module, old.dtype, 4, dims);
  lp_value *as_before = transposed(&build, past, perm);
  if (!as_before) return LP_FAILED;
  lp_value_replace(past, as_before);
  lp_op_set_in(as_before->def, 0, past);
  LP_FOR_OPS(op, b->block)
    if (appends_to(op, as_before, axis)) LP_TRY(append_in_order(b, op, past, perm));
  lp_value *present = transposed(&at_end, lp_op_in(b->end, output), perm);
  if (!present) return LP_FAILED;
  lp_op_set_in(b->end, output, present);
  return LP_OK;
}
