/* Functions that the rules of lowering share: refusals and axes. */
#include "passes/lower/lower.h"

lp_status lp_lower_refuse(const lp_lowering *l, const char *what) {
  return lp_error(l->b.diag, l->op->loc, "'%s' %s", lp_op_info_get(l->op->kind)->name, what);
}

lp_status lp_lower_refuse_data(const lp_lowering *l, int32_t index, const char *what) {
  lp_status status = lp_lower_refuse(l, what);
  lp_note_binding(l->b.diag, l->op->loc, lp_op_in(l->op, index));
  return status;
}

int64_t lp_lower_axis(const lp_lowering *l, const char *name, int64_t otherwise, int32_t rank) {
  int64_t axis = lp_op_i64(l->op, name, otherwise);
  return axis < 0 ? axis + rank : axis;
}

lp_value *lp_lower_axis_last(lp_lowering *l, lp_value *x, int32_t axis, bool back) {
  int32_t rank = x->type.rank;
  int64_t perm[LP_MAX_RANK];
  if (axis == rank - 1) return x;
  for (int32_t i = 0; i < rank; i++)
    perm[i] = i < axis ? i : i + 1 < rank ? i + 1 : axis;
  if (back)
    for (int32_t i = 0; i < rank; i++)
      perm[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
  return lp_build_transpose(&l->b, x, perm);
}
