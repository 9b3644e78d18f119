/* Rewrites OneHot, EyeLike, Compress, ReverseSequence, TensorScatter and similar operators by operators that
 * compare, gather and scatter. */
#include "base/poly.h"
#include "passes/recognise/decompose/rewrite.h"

/* A vector over `axis` of `rank` axes: [1, .., size, .., 1]. */
static lp_value *along(lp_rewrite *r, lp_value *vector, int64_t axis, int32_t rank) {
  int64_t dims[LP_MAX_RANK];
  for (int32_t i = 0; i < rank; i++)
    dims[i] = i == axis ? -1 : 1;
  return lp_rw_reshape(r, vector, lp_rw_ints(r, rank, dims));
}

static int64_t axis_of(const lp_op *op, int64_t otherwise, int32_t rank) {
  int64_t axis = lp_op_i64(op, "axis", otherwise);
  return axis < 0 ? axis + rank : axis;
}

/* Where(wrapped indices == 0, 1, ..., on, off); an index outside is off everywhere. */
lp_status lp_rewrite_one_hot(lp_rewrite *r) {
  lp_value *indices = lp_op_in(r->op, 0), *values = lp_op_in(r->op, 2), *zero = lp_rw_int(r, 0);
  int32_t rank = r->op->out[0]->type.rank;
  int64_t axis = axis_of(r->op, -1, rank);
  lp_value *depth = lp_rw_reshape(r, lp_rw_cast(r, lp_op_in(r->op, 1), LP_I64), lp_rw_ints(r, 0, NULL));
  indices = lp_rw_unsqueeze(r, lp_rw_cast(r, indices, LP_I64), LP_RW_INTS(r, axis));
  if (!depth || !indices || !zero) return LP_FAILED;
  lp_value *wrapped = lp_rw_op3(r, LP_ONNX_Where, lp_rw_op(r, LP_ONNX_Less, indices, zero),
                                lp_rw_op(r, LP_ONNX_Add, indices, depth), indices);
  lp_value *places = along(r, lp_rw_count(r, depth), axis, rank);
  lp_value *hot = wrapped && places ? lp_rw_op(r, LP_ONNX_Equal, wrapped, places) : NULL;
  return lp_rw_give(r, lp_rw_op3(r, LP_ONNX_Where, hot, lp_rw_pick(r, values, 0, 1), lp_rw_pick(r, values, 0, 0)));
}

/* A Gather at the positions where the condition holds. */
lp_status lp_rewrite_compress(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0);
  const lp_attr *axis = lp_op_attr(r->op, "axis");
  lp_tensor condition;
  int64_t count;
  if (!lp_value_constant(lp_op_in(r->op, 1), &condition) || !lp_type_static_numel(condition.type, &count))
    return lp_rw_refuse(r, "has a condition with too many elements to evaluate at compile time");
  if (!axis) x = lp_rw_reshape(r, x, LP_RW_INTS(r, -1));
  int64_t most = 0, found = 0, *places = LP_NEW_ARRAY(r->b.module->arena, int64_t, count + 1);
  if (!x || !lp_type_static_dim(x->type, axis ? (int32_t)axis_of(r->op, 0, x->type.rank) : 0, &most)) return LP_FAILED;
  for (int64_t i = 0; i < count && i < most; i++)
    if (lp_tensor_i64(&condition, i) != 0) places[found++] = i;
  lp_value *in[] = {x, lp_rw_ints(r, (int32_t)found, places)};
  return lp_rw_give(r, lp_rw_with(r, LP_ONNX_Gather, 2, in, (lp_rw_attr){"axis", axis ? axis->i : 0}));
}

/* 1 where column - row == k. */
lp_status lp_rewrite_eye_like(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0);
  lp_value *row = lp_rw_unsqueeze(r, lp_rw_count(r, lp_rw_size(r, x, 0)), LP_RW_INTS(r, 1));
  lp_value *column = lp_rw_count(r, lp_rw_size(r, x, 1));
  if (row) row = lp_rw_op(r, LP_ONNX_Add, row, lp_rw_int(r, lp_op_i64(r->op, "k", 0)));
  lp_value *eye = row && column ? lp_rw_op(r, LP_ONNX_Equal, row, column) : NULL;
  return lp_rw_give(r, lp_rw_cast(r, eye, r->op->out[0]->type.dtype));
}

/* Element t of a sequence comes from length - 1 - t where t is below the length, else from t. */
lp_status lp_rewrite_reverse_sequence(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0);
  int64_t batch = lp_op_i64(r->op, "batch_axis", 1);
  int32_t rank = x->type.rank;
  lp_value *time = along(r, lp_rw_count(r, lp_rw_size(r, x, 1 - batch)), 1 - batch, rank);
  lp_value *length = along(r, lp_rw_cast(r, lp_op_in(r->op, 1), LP_I64), batch, rank);
  if (!time || !length) return LP_FAILED;
  lp_value *last = lp_rw_op(r, LP_ONNX_Sub, length, lp_rw_int(r, 1));
  lp_value *mirrored = last ? lp_rw_op(r, LP_ONNX_Sub, last, time) : NULL;
  lp_value *from = lp_rw_op3(r, LP_ONNX_Where, lp_rw_op(r, LP_ONNX_Less, time, length), mirrored, time);
  lp_value *shape = lp_rw_op(r, LP_ONNX_Shape, x, NULL);
  lp_value *in[] = {x, from && shape ? lp_rw_op(r, LP_ONNX_Expand, from, shape) : NULL};
  return lp_rw_give(r, lp_rw_with(r, LP_ONNX_GatherElements, 2, in, (lp_rw_attr){"axis", 1 - batch}));
}

/* The channels of the two forms are [c / b^2][b][b] (CRD) or [b][b][c / b^2]; the b rows and b columns join the
 * spatial axes. */
lp_status lp_rewrite_depth_to_space(lp_rewrite *r) {
  static const int64_t spread[][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}}; /* DCR, CRD */
  static const int64_t gathered[][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
  lp_value *x = lp_op_in(r->op, 0);
  const lp_type in = x->type, out = r->op->out[0]->type;
  const lp_poly *b = lp_dim_const(r->b.module, lp_op_i64(r->op, "blocksize", 1));
  const char *mode = lp_op_str(r->op, "mode", "DCR");
  bool crd = lp_streq(mode, "CRD"), deeper = r->op->kind == LP_ONNX_SpaceToDepth;
  if (!crd && !lp_streq(mode, "DCR")) return lp_rw_refuse(r, "has a mode that is not known");
  const lp_poly *by_rows[] = {in.dim[0], b, b, out.dim[1], in.dim[2], in.dim[3]};
  const lp_poly *by_channels[] = {in.dim[0], out.dim[1], b, b, in.dim[2], in.dim[3]};
  const lp_poly *by_blocks[] = {in.dim[0], in.dim[1], out.dim[2], b, out.dim[3], b};
  const lp_poly *const *dims = deeper ? by_blocks : crd ? by_channels : by_rows;
  const int64_t *perm = deeper ? gathered[crd] : spread[crd];
  lp_type split = lp_type_make(r->b.module, in.dtype, 6, dims);
  x = lp_rw_transpose(r, lp_rw_reshape(r, x, lp_build_sizes(&r->b, split)), 6, perm);
  return lp_rw_give(r, x ? lp_rw_reshape(r, x, lp_build_sizes(&r->b, out)) : NULL);
}

/* ScatterElements at write_indices[b] + 0, 1, ..., which wrap around where the buffer is circular. */
lp_status lp_rewrite_tensor_scatter(lp_rewrite *r) {
  lp_value *past = lp_op_in(r->op, 0), *update = lp_op_in(r->op, 1), *begin = lp_op_in(r->op, 2);
  const char *mode = lp_op_str(r->op, "mode", "linear");
  bool circular = lp_streq(mode, "circular");
  int32_t rank = past->type.rank;
  int64_t axis = axis_of(r->op, -2, rank);
  if (!circular && !lp_streq(mode, "linear")) return lp_rw_refuse(r, "has a mode that is not known");
  lp_value *rows = along(r, lp_rw_count(r, lp_rw_size(r, update, axis)), axis, rank);
  if (rows && begin) rows = lp_rw_add(r, along(r, lp_rw_cast(r, begin, LP_I64), 0, rank), rows);
  if (circular && rows) rows = lp_rw_op(r, LP_ONNX_Mod, rows, lp_rw_size(r, past, axis));
  lp_value *shape = lp_rw_op(r, LP_ONNX_Shape, update, NULL);
  lp_value *index = rows && shape ? lp_rw_op(r, LP_ONNX_Expand, rows, shape) : NULL;
  lp_value *in[] = {past, index, update};
  return lp_rw_give(r, lp_rw_with(r, LP_ONNX_ScatterElements, 3, in, (lp_rw_attr){"axis", axis}));
}
