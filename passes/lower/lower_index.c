/* Lowering of operators that read or write at indices which the model computes. */
#include "base/poly.h"
#include "passes/lower/lower.h"

#include <assert.h>

/* Tells whether row `at` exists at every size. An axis holds at least one row; op.gather clamps indices outside. */
static bool is_row(const lp_lowering *l, const lp_poly *size, int64_t at) {
  if (at == 0 || at == -1) return !lp_poly_equal(size, lp_dim_const(l->b.module, 0));
  if (at == INT64_MIN) return false;
  return lp_poly_ge(l->b.module->arena, size, lp_dim_const(l->b.module, at < 0 ? -at : at + 1));
}

lp_status lp_lower_gather(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0), *index = lp_op_in(l->op, 1);
  int64_t axis = lp_lower_axis(l, "axis", 0, x->type.rank), at;
  if (index->type.rank == 0 && lp_known_i64(index, 0, &at) && is_row(l, x->type.dim[axis], at)) { /* a plain copy */
    const lp_poly *start = lp_dim_const(l->b.module, at);
    if (at < 0) start = lp_poly_add(l->b.module->arena, start, x->type.dim[axis]);
    lp_value *row = lp_lower_slice_axis(l, x, (int32_t)axis, start, lp_dim_const(l->b.module, 1));
    l->result[0] = lp_build_reshape(&l->b, row, l->op->out[0]->type);
    return LP_OK;
  }
  lp_value *in[] = {x, index};
  lp_op *gather = lp_build_typed(&l->b, LP_OP_GATHER, 2, in, l->op->out[0]->type);
  lp_op_set_i64(l->b.module, gather, "axis", axis);
  l->result[0] = gather->out[0];
  return LP_OK;
}

/* Emitted code reads and writes at the index's own position on the other axes, so that position must exist. */
static lp_status check_index(const lp_lowering *l, int64_t axis) {
  const lp_type data = lp_op_in(l->op, 0)->type, index = lp_op_in(l->op, 1)->type;
  for (int32_t i = 0; i < data.rank; i++)
    if (i != axis && !lp_poly_ge(l->b.module->arena, data.dim[i], index.dim[i]))
      return lp_lower_refuse(l, "has an index that may be larger than its data");
  return LP_OK;
}

lp_status lp_lower_gather_elements(lp_lowering *l) {
  lp_value *in[] = {lp_op_in(l->op, 0), lp_op_in(l->op, 1)};
  LP_TRY(check_index(l, lp_lower_axis(l, "axis", 0, in[0]->type.rank)));
  lp_op *op = lp_build_typed(&l->b, LP_OP_GATHER_ELEMENTS, 2, in, l->op->out[0]->type);
  lp_op_set_i64(l->b.module, op, "axis", lp_lower_axis(l, "axis", 0, in[0]->type.rank));
  l->result[0] = op->out[0];
  return LP_OK;
}

/* Component i of indices[..., k]. A negative component counts from the end of `size`. */
static lp_value *nd_component(lp_lowering *l, lp_value *index, int32_t i, const lp_poly *size) {
  lp_module *m = l->b.module;
  lp_value *part = lp_lower_slice_axis(l, index, index->type.rank - 1, lp_dim_const(m, i), lp_dim_const(m, 1));
  lp_value *zero = lp_lower_size(l, lp_dim_const(m, 0));
  lp_value *negative = lp_build_map2(&l->b, "lt", part, zero, LP_BOOL);
  lp_value *in[] = {negative, lp_build_map2(&l->b, "add", part, lp_lower_size(l, size), LP_I64), part};
  return lp_build_map(&l->b, "where", 3, in, part->type);
}

/* The vector 0, 1, ... below `size`. */
static lp_value *count_to(lp_lowering *l, const lp_poly *size) {
  lp_module *m = l->b.module;
  lp_op *op = lp_build_typed(&l->b, LP_OP_IOTA, 0, NULL, lp_type_make(m, LP_I64, 1, &size));
  lp_op_set_poly(m, op, "start", lp_dim_const(m, 0));
  lp_op_set_poly(m, op, "step", lp_dim_const(m, 1));
  return op->out[0];
}

/* 0, 1, ... over the batches, one for each row of indices below them. */
static lp_value *count_batches(lp_lowering *l, lp_type index, int32_t batch) {
  lp_module *m = l->b.module;
  const lp_poly *dims[LP_MAX_RANK], *count = lp_dim_const(m, 1);
  for (int32_t i = 0; i < index.rank; i++)
    dims[i] = i < batch ? index.dim[i] : lp_dim_const(m, 1);
  for (int32_t i = 0; i < batch; i++)
    count = lp_poly_mul(m->arena, count, index.dim[i]);
  return lp_build_reshape(&l->b, count_to(l, count), lp_type_make(m, LP_I64, index.rank, dims));
}

/* Gathers rows of the flattened data by their flat positions: each component of an index times the sizes after it. */
lp_status lp_lower_gather_nd(lp_lowering *l) {
  lp_module *m = l->b.module;
  lp_value *data = lp_op_in(l->op, 0), *index = lp_op_in(l->op, 1);
  int64_t depth = 0;
  int32_t batch = (int32_t)lp_op_i64(l->op, "batch_dims", 0);
  (void)lp_type_static_dim(index->type, -1, &depth);
  if (depth <= 0) return lp_lower_refuse(l, "has indices of no components");
  if (index->type.dtype != LP_I64) index = lp_build_map1(&l->b, "cast", index, LP_I64);
  lp_value *flat = batch > 0 ? count_batches(l, index->type, batch) : NULL;
  for (int32_t i = batch; i < batch + depth; i++) {
    lp_value *part = nd_component(l, index, i - batch, data->type.dim[i]);
    if (flat) flat = lp_build_map2(&l->b, "mul", flat, lp_lower_size(l, data->type.dim[i]), LP_I64);
    flat = flat ? lp_build_map2(&l->b, "add", flat, part, LP_I64) : part;
  }
  assert(flat); /* a component at least */
  lp_type rows = flat->type;
  rows.rank--; /* drops the axis of components */
  const lp_poly *dims[LP_MAX_RANK] = {lp_dim_const(m, 1)};
  int32_t first = batch + (int32_t)depth;
  for (int32_t i = 0; i < first; i++)
    dims[0] = lp_poly_mul(m->arena, dims[0], data->type.dim[i]);
  for (int32_t i = first; i < data->type.rank; i++)
    dims[i - first + 1] = data->type.dim[i];
  lp_type table = lp_type_make(m, data->type.dtype, data->type.rank - first + 1, dims);
  lp_value *in[] = {lp_build_reshape(&l->b, data, table), lp_build_reshape(&l->b, flat, rows)};
  lp_op *gather = lp_build_typed(&l->b, LP_OP_GATHER, 2, in, l->op->out[0]->type);
  lp_op_set_i64(m, gather, "axis", 0);
  l->result[0] = gather->out[0];
  return LP_OK;
}

/* fold has computed the positions in a constant. A vector of unknown size has them all. */
lp_status lp_lower_nonzero(lp_lowering *l) {
  const lp_type x = lp_op_in(l->op, 0)->type, y = l->op->out[0]->type;
  if (x.rank != 1 || !lp_poly_equal(x.dim[0], y.dim[1]))
    return lp_lower_refuse(l, "has too many elements to find those that are not zero at compile time");
  l->result[0] = lp_build_reshape(&l->b, count_to(l, x.dim[0]), y);
  return LP_OK;
}

/* ---- scatter ----------------------------------------------------------------------------------------------------- */

/* The type in which updates are joined: kernels know f32, f64, i32, i64 and u64. */
static lp_dtype joined_dtype(lp_dtype dtype) {
  if (dtype == LP_U32) return LP_I64;
  if (dtype == LP_F64 || dtype == LP_I32 || dtype == LP_I64 || dtype == LP_U64) return dtype;
  return lp_dtype_is_float(dtype) ? LP_F32 : LP_I32;
}

lp_status lp_lower_scatter(lp_lowering *l) {
  const bool nd = l->op->kind == LP_ONNX_ScatterND;
  const char *reduction = lp_op_str(l->op, "reduction", "none");
  const lp_dtype dtype = l->op->out[0]->type.dtype;
  const lp_dtype joined = lp_streq(reduction, "none") ? dtype : joined_dtype(dtype);
  int64_t axis = lp_lower_axis(l, "axis", 0, lp_op_in(l->op, 0)->type.rank);
  if (!nd) LP_TRY(check_index(l, axis));
  lp_value *index = lp_op_in(l->op, 1);
  if (index->type.dtype != LP_I32) index = lp_lower_cast(l, index, LP_I64);
  lp_value *in[] = {lp_lower_cast(l, lp_op_in(l->op, 0), joined), index, lp_lower_cast(l, lp_op_in(l->op, 2), joined)};
  lp_op *op = lp_build_typed(&l->b, nd ? LP_OP_SCATTER_ND : LP_OP_SCATTER_ELEMENTS, 3, in, in[0]->type);
  if (!nd) lp_op_set_i64(l->b.module, op, "axis", axis);
  lp_op_set_str(l->b.module, op, "reduction", reduction);
  l->result[0] = lp_lower_cast(l, op->out[0], dtype);
  return LP_OK;
}
