/* Shape rules: operators that keep the elements under another shape or repeat them, and sizes as values. */
#include "base/poly.h"
#include "ir/infer/infer.h"

/* ---- the same elements under another shape ---- */

lp_status infer_transpose(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0), out = {.rank = in.rank};
  const lp_attr *perm = lp_op_attr(c->op, "perm");
  bool seen[LP_MAX_RANK] = {false};
  if (perm && perm->count != in.rank) return lp_infer_fail(c, "perm has %d axes, %d wanted", perm->count, in.rank);
  for (int32_t i = 0; i < in.rank; i++) {
    int32_t from = in.rank - 1 - i;
    if (perm && perm->is[i] < 0) return lp_infer_fail(c, "perm holds the negative axis %" PRId64, perm->is[i]);
    if (perm) LP_TRY(lp_infer_axis(c, perm->is[i], in.rank, false, &from));
    if (seen[from]) return lp_infer_fail(c, "perm holds axis %d twice", from);
    seen[from] = true;
    out.dim[i] = in.dim[from];
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

/* Exporters give a size that several inputs share one name per input, and may reshape one input by another's name. When
 * -1 is used and another size does not divide the elements, that size is therefore set equal to the input's axis at its
 * position. */
static bool agree_by_position(lp_infer *c, const lp_shape *in, const lp_shape *out, int32_t rest) {
  for (int32_t i = 0; i < out->rank; i++) {
    int32_t from = i < rest ? i : in->rank - (out->rank - i);
    if (i == rest || from < 0 || from >= in->rank || !lp_poly_lone_symbol(out->dim[i]) ||
        !lp_poly_lone_symbol(in->dim[from]))
      continue;
    const lp_poly *same;
    if (!lp_poly_equal(out->dim[i], in->dim[from]))
      return lp_infer_agree(c, in->dim[from], out->dim[i], &same) == LP_OK;
  }
  return false;
}

/* Tries again, after the names agree with the input's, when the sizes other than -1 do not divide the elements. */
static lp_status infer_undivided(lp_infer *c, const lp_shape *in, const lp_shape *out, int32_t rest) {
  const lp_poly *total = lp_dim_product(c->m, in->dim, 0, in->rank),
                *others = lp_dim_product(c->m, out->dim, 0, out->rank);
  if (!total || !others) return lp_infer_fail(c, "the number of its elements overflows");
  if (agree_by_position(c, in, out, rest)) return infer_reshape(c);
  return lp_infer_fail(c, "%s elements do not divide by %s, the product of the sizes other than -1",
                       lp_infer_text(c, total), lp_infer_text(c, others));
}

/* The dimension of -1 is the number of elements divided by the other dimensions. */
static const lp_poly *rest_of(const lp_infer *c, const lp_poly *total, lp_shape *shape, int32_t rest) {
  shape->dim[rest] = lp_dim_const(c->m, 1);
  const lp_poly *others = lp_dim_product(c->m, shape->dim, 0, shape->rank);
  return total && others ? lp_poly_div(c->m->arena, total, others) : NULL;
}

lp_status infer_reshape(lp_infer *c) {
  const lp_poly *const *values;
  lp_shape in, out = {0};
  int32_t count, rest = -1;
  LP_TRY(lp_infer_integer(c, 1));
  LP_TRY(lp_infer_need_known(c, 1, &values, &count));
  in = lp_infer_shape(c, 0);
  bool zero_is_zero = lp_op_i64(c->op, "allowzero", 0) != 0;
  for (int32_t i = 0; i < count; i++) {
    const lp_poly *dim = values[i];
    if (lp_poly_is_i64(dim, -1)) {
      if (rest >= 0) return lp_infer_fail(c, "more than one size is -1");
      rest = i;
    } else if (lp_poly_is_i64(dim, 0) && !zero_is_zero) {
      if (i >= in.rank) return lp_infer_fail(c, "size %d is copied from an input with %d axes", i, in.rank);
      dim = in.dim[i];
    }
    LP_TRY(lp_infer_push(c, &out, dim));
  }
  const lp_poly *total = lp_dim_product(c->m, in.dim, 0, in.rank);
  if (rest >= 0) {
    const lp_poly *size = rest_of(c, total, &out, rest);
    if (!size) return infer_undivided(c, &in, &out, rest);
    out.dim[rest] = size;
  } else if (!lp_poly_equal(total, lp_dim_product(c->m, out.dim, 0, out.rank)))
    return lp_infer_fail(c, "%s elements reshaped to %s", lp_infer_text(c, total),
                         lp_infer_text(c, lp_dim_product(c->m, out.dim, 0, out.rank)));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_flatten(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0);
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 1), in.rank, true, &axis));
  lp_shape out = {.rank = 2,
                  .dim = {lp_dim_product(c->m, in.dim, 0, axis), lp_dim_product(c->m, in.dim, axis, in.rank)}};
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_squeeze(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0), out = {0};
  int64_t axes[LP_MAX_KNOWN];
  int32_t count = 0;
  bool drop[LP_MAX_RANK] = {false}, all = !lp_infer_has(c, 1);
  if (!all) LP_TRY(lp_infer_need_i64s(c, 1, axes, &count));
  for (int32_t i = 0; i < count; i++) {
    int32_t axis;
    LP_TRY(lp_infer_axis(c, axes[i], in.rank, false, &axis));
    const lp_poly *one;
    LP_TRY(lp_infer_agree(c, in.dim[axis], lp_dim_const(c->m, 1), &one));
    drop[axis] = true;
  }
  for (int32_t i = 0; i < in.rank; i++)
    if (!drop[i] && !(all && lp_poly_is_i64(in.dim[i], 1))) out.dim[out.rank++] = in.dim[i];
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

lp_status infer_unsqueeze(lp_infer *c) {
  int64_t axes[LP_MAX_KNOWN];
  int32_t count;
  LP_TRY(lp_infer_need_i64s(c, 1, axes, &count));
  lp_shape in = lp_infer_shape(c, 0), out = {.rank = in.rank + count};
  if (out.rank > LP_MAX_RANK) return lp_infer_fail(c, "its result has more than %d axes", LP_MAX_RANK);
  for (int32_t i = 0; i < count; i++) {
    int32_t axis;
    LP_TRY(lp_infer_axis(c, axes[i], out.rank, false, &axis));
    if (out.dim[axis]) return lp_infer_fail(c, "axis %d is inserted twice", axis);
    out.dim[axis] = lp_dim_const(c->m, 1);
  }
  for (int32_t i = 0, from = 0; i < out.rank; i++)
    if (!out.dim[i]) out.dim[i] = in.dim[from++];
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &out);
}

/* Channels to rows and columns, or back. */
lp_status infer_depth_to_space(lp_infer *c) {
  LP_TRY(lp_infer_rank(c, 0, 4));
  lp_shape shape = lp_infer_shape(c, 0);
  int64_t size = lp_op_i64(c->op, "blocksize", 0);
  if (size < 1 || size > INT16_MAX) return lp_infer_fail(c, "its blocksize is %" PRId64 ", at least 1 wanted", size);
  const bool back = c->op->kind == LP_ONNX_SpaceToDepth;
  const lp_poly *block = lp_dim_const(c->m, size), *area = lp_dim_const(c->m, size * size);
  for (int32_t i = 1; i < 4; i++) {
    const lp_poly *factor = i == 1 ? area : block, *dim = shape.dim[i];
    bool grows = (i == 1) == back;
    shape.dim[i] = grows ? lp_poly_mul(c->m->arena, dim, factor) : lp_poly_div(c->m->arena, dim, factor);
    if (!shape.dim[i] && !grows)
      return lp_infer_fail(c, "the size %s of axis %d is not divisible by %s", lp_infer_text(c, dim), i,
                           lp_infer_text(c, factor));
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}

/* Batch and time are the first two axes, in any order. */
lp_status infer_reverse_sequence(lp_infer *c) {
  LP_TRY(lp_infer_min_rank(c, 0, 2));
  LP_TRY(lp_infer_rank(c, 1, 1));
  LP_TRY(lp_infer_integer(c, 1));
  lp_shape shape = lp_infer_shape(c, 0);
  int64_t batch = lp_op_i64(c->op, "batch_axis", 1), time = lp_op_i64(c->op, "time_axis", 0);
  if (batch < 0 || batch > 1 || time != 1 - batch)
    return lp_infer_fail(c, "its batch_axis %" PRId64 " and time_axis %" PRId64 " are not 0 and 1", batch, time);
  LP_TRY(lp_infer_agree(c, shape.dim[batch], lp_infer_shape(c, 1).dim[0], &shape.dim[batch]));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}

/* ---- repeated elements ---- */

lp_status infer_expand(lp_infer *c) {
  const lp_poly *const *values;
  int32_t count;
  LP_TRY(lp_infer_need_known(c, 1, &values, &count));
  lp_shape shape = lp_infer_shape(c, 0), with = {0};
  for (int32_t i = 0; i < count; i++) /* -1, found in exports of torch, keeps the size */
    LP_TRY(lp_infer_push(c, &with, lp_poly_is_i64(values[i], -1) ? lp_dim_const(c->m, 1) : values[i]));
  LP_TRY(lp_infer_broadcast(c, &shape, &with));
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}

lp_status infer_tile(lp_infer *c) {
  const lp_poly *const *values;
  int32_t count;
  LP_TRY(lp_infer_need_known(c, 1, &values, &count));
  lp_shape shape = lp_infer_shape(c, 0);
  if (count != shape.rank) return lp_infer_fail(c, "%d repeats for %d axes", count, shape.rank);
  for (int32_t i = 0; i < count; i++)
    shape.dim[i] = lp_poly_mul(c->m->arena, shape.dim[i], values[i]);
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}

lp_status infer_pad(lp_infer *c) {
  const lp_poly *const *pads;
  int64_t axes[LP_MAX_KNOWN];
  lp_shape shape = lp_infer_shape(c, 0);
  int32_t count, axis_count = shape.rank;
  for (int32_t i = 0; i < shape.rank; i++)
    axes[i] = i;
  LP_TRY(lp_infer_need_known(c, 1, &pads, &count));
  if (lp_infer_has(c, 3)) LP_TRY(lp_infer_need_i64s(c, 3, axes, &axis_count));
  if (count != 2 * axis_count) return lp_infer_fail(c, "%d pads for %d axes", count, axis_count);
  for (int32_t i = 0; i < axis_count; i++) {
    int32_t axis;
    LP_TRY(lp_infer_axis(c, axes[i], shape.rank, false, &axis));
    const lp_poly *both = lp_poly_add(c->m->arena, pads[i], pads[i + axis_count]);
    shape.dim[axis] = lp_poly_add(c->m->arena, shape.dim[axis], both);
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}

/* ---- sizes as values ---- */

lp_status infer_shape(lp_infer *c) {
  int64_t rank = lp_infer_in(c, 0).rank;
  int64_t start = lp_op_i64(c->op, "start", 0), end = lp_op_i64(c->op, "end", rank);
  start = start < 0 ? start + rank : start;
  end = end < 0 ? end + rank : end;
  start = start < 0 ? 0 : start > rank ? rank : start;
  end = end < start ? start : end > rank ? rank : end;
  lp_shape shape = {.rank = 1, .dim = {lp_dim_const(c->m, end - start)}};
  return lp_infer_set(c, 0, LP_I64, &shape);
}

lp_status infer_size(lp_infer *c) {
  lp_shape scalar = {0};
  return lp_infer_set(c, 0, LP_I64, &scalar);
}

lp_status infer_constant(lp_infer *c) {
  const lp_attr *value = lp_op_attr(c->op, "value");
  if (!value || value->kind != LP_ATTR_TENSOR) return lp_infer_fail(c, "attribute 'value' is missing");
  c->op->out[0]->type = value->tensor.type;
  return LP_OK;
}

lp_status infer_constant_of_shape(lp_infer *c) {
  const lp_poly *const *values;
  int32_t count;
  LP_TRY(lp_infer_need_known(c, 0, &values, &count));
  const lp_attr *value = lp_op_attr(c->op, "value");
  int64_t numel;
  if (value && (!lp_type_static_numel(value->tensor.type, &numel) || numel != 1))
    return lp_infer_fail(c, "its value is not one element");
  lp_shape shape = {0};
  for (int32_t i = 0; i < count; i++)
    LP_TRY(lp_infer_push(c, &shape, values[i]));
  return lp_infer_set(c, 0, value ? value->tensor.type.dtype : LP_F32, &shape);
}

lp_status infer_range(lp_infer *c) {
  const lp_poly *value[3];
  for (int32_t i = 0; i < 3; i++) {
    const lp_poly *const *values;
    int32_t count;
    LP_TRY(lp_infer_need_known(c, i, &values, &count));
    if (count != 1) return lp_infer_fail(c, "input %d has %d elements, 1 wanted", i, count);
    value[i] = values[0];
  }
  const lp_poly *span = lp_poly_sub(c->m->arena, value[1], value[0]);
  lp_shape shape = {.rank = 1};
  int64_t length, step;
  if (lp_poly_is_i64(value[2], 0)) return lp_infer_fail(c, "its step is 0");
  if (span && lp_poly_is_const(span, &length) && lp_poly_is_const(value[2], &step) && step != INT64_MIN &&
      length != INT64_MIN) {
    int64_t whole = length / step + (length % step != 0 && (length < 0) == (step < 0) ? 1 : 0);
    shape.dim[0] = lp_dim_const(c->m, whole < 0 ? 0 : whole);
  } else {
    shape.dim[0] = span ? lp_poly_div(c->m->arena, span, value[2]) : NULL;
    if (!shape.dim[0])
      return lp_infer_fail(c, "the size of %s to %s by %s has no closed form", lp_infer_text(c, value[0]),
                           lp_infer_text(c, value[1]), lp_infer_text(c, value[2]));
  }
  return lp_infer_set(c, 0, lp_infer_in(c, 0).dtype, &shape);
}
