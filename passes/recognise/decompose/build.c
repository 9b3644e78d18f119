/* Builds the standard's operators, one at a time, for the rules of decompose. */
#include "passes/recognise/decompose/rewrite.h"

#include <assert.h>

static const lp_type unknown = {.rank = -1};

static lp_op *create(lp_rewrite *r, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count) {
  lp_type types[LP_MAX_RANK];
  assert(out_count <= LP_MAX_RANK);
  for (int32_t i = 0; i < out_count; i++)
    types[i] = unknown;
  return lp_op_create(r->b.module, kind, r->b.loc, in_count, in, out_count, types);
}

static lp_value *place(lp_rewrite *r, lp_op *op) {
  return lp_build_place(&r->b, op) == LP_OK ? op->out[0] : NULL;
}

lp_status lp_rw_give(lp_rewrite *r, lp_value *value) {
  r->result[0] = value;
  return value ? LP_OK : LP_FAILED;
}

lp_value *lp_rw_op(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *y) {
  lp_value *in[] = {x, y};
  return x ? place(r, create(r, kind, y ? 2 : 1, in, 1)) : NULL;
}

lp_value *lp_rw_op3(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *y, lp_value *z) {
  lp_value *in[] = {x, y, z};
  return x && y && z ? place(r, create(r, kind, 3, in, 1)) : NULL;
}

lp_value *lp_rw_with(lp_rewrite *r, lp_kind kind, int32_t in_count, lp_value *const *in, lp_rw_attr attr) {
  for (int32_t i = 0; i < in_count; i++)
    if (!in[i]) return NULL;
  lp_op *op = create(r, kind, in_count, in, 1);
  if (attr.name) lp_op_set_i64(r->b.module, op, attr.name, attr.value);
  return place(r, op);
}

lp_value *lp_rw_add(lp_rewrite *r, lp_value *x, lp_value *y) {
  return y ? lp_rw_op(r, LP_ONNX_Add, x, y) : x;
}

lp_value *lp_rw_ints(lp_rewrite *r, int32_t count, const int64_t *values) {
  return lp_build_i64s(&r->b, values, count);
}

lp_value *lp_rw_int(lp_rewrite *r, int64_t value) {
  return lp_rw_op(r, LP_ONNX_Squeeze, LP_RW_INTS(r, value), LP_RW_INTS(r, 0));
}

lp_value *lp_rw_cast(lp_rewrite *r, lp_value *x, lp_dtype dtype) {
  return lp_build_cast(&r->b, x, dtype);
}

lp_value *lp_rw_reshape(lp_rewrite *r, lp_value *x, lp_value *shape) {
  return shape ? lp_rw_op(r, LP_ONNX_Reshape, x, shape) : NULL;
}

lp_value *lp_rw_unsqueeze(lp_rewrite *r, lp_value *x, lp_value *axes) {
  return lp_rw_op(r, LP_ONNX_Unsqueeze, x, axes);
}

lp_value *lp_rw_transpose(lp_rewrite *r, lp_value *x, int32_t rank, const int64_t *perm) {
  if (!x) return NULL;
  lp_op *op = create(r, LP_ONNX_Transpose, 1, &x, 1);
  lp_op_set_i64s(r->b.module, op, "perm", perm, rank);
  return place(r, op);
}

lp_value *lp_rw_concat(lp_rewrite *r, int32_t count, lp_value *const *in, int64_t axis) {
  return lp_rw_with(r, LP_ONNX_Concat, count, in, (lp_rw_attr){"axis", axis});
}

lp_value *lp_rw_slice(lp_rewrite *r, lp_value *x, int64_t axis, lp_value *from, lp_value *to) {
  lp_value *in[] = {x, from, to, LP_RW_INTS(r, axis)};
  return x && from && to ? place(r, create(r, LP_ONNX_Slice, 4, in, 1)) : NULL;
}

lp_op *lp_rw_split(lp_rewrite *r, lp_value *x, int64_t axis, int32_t count, const int64_t *sizes) {
  if (!x) return NULL;
  lp_value *in[] = {x, lp_rw_ints(r, count, sizes)};
  lp_op *op = create(r, LP_ONNX_Split, 2, in, count);
  lp_op_set_i64(r->b.module, op, "axis", axis);
  return lp_build_place(&r->b, op) == LP_OK ? op : NULL;
}

lp_value *lp_rw_pick(lp_rewrite *r, lp_value *x, int64_t axis, int64_t index) {
  lp_value *in[] = {x, lp_rw_int(r, index)};
  return lp_rw_with(r, LP_ONNX_Gather, 2, in, (lp_rw_attr){"axis", axis});
}

lp_value *lp_rw_size(lp_rewrite *r, lp_value *x, int64_t axis) {
  if (!x) return NULL;
  lp_op *op = create(r, LP_ONNX_Shape, 1, &x, 1);
  lp_op_set_i64(r->b.module, op, "start", axis);
  lp_op_set_i64(r->b.module, op, "end", axis + 1);
  lp_value *size = place(r, op);
  return lp_rw_op(r, LP_ONNX_Squeeze, size, LP_RW_INTS(r, 0));
}

lp_value *lp_rw_count(lp_rewrite *r, lp_value *size) {
  return lp_rw_op3(r, LP_ONNX_Range, lp_rw_int(r, 0), size, lp_rw_int(r, 1));
}

static const int64_t swap_heads[] = {0, 2, 1, 3};

lp_value *lp_rw_split_heads(lp_rewrite *r, lp_value *x, int64_t heads) {
  if (!x || x->type.rank == 4) return x;
  return lp_rw_transpose(r, lp_rw_reshape(r, x, LP_RW_INTS(r, 0, 0, heads, -1)), 4, swap_heads);
}

lp_value *lp_rw_join_heads(lp_rewrite *r, lp_value *x) {
  return lp_rw_reshape(r, lp_rw_transpose(r, x, 4, swap_heads), LP_RW_INTS(r, 0, 0, -1));
}

lp_status lp_rw_refuse(const lp_rewrite *r, const char *what) {
  return lp_error(r->b.diag, r->op->loc, "'%s' %s", lp_op_info_get(r->op->kind)->name, what);
}

lp_status lp_rw_heads(const lp_rewrite *r, const char *name, int64_t *out) {
  *out = lp_op_i64(r->op, name, 0);
  if (*out > 0 && *out <= INT32_MAX) return LP_OK;
  return lp_error(r->b.diag, r->op->loc, "'%s' has a %s of %" PRId64 ", a number of heads wanted",
                  lp_op_info_get(r->op->kind)->name, name, *out);
}
