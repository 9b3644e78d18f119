/* Shape rules: operators that take elements by index, and parts of tensors. Sizes that are values are read as
 * polynomials. */
#include "base/poly.h"
#include "ir/infer/infer.h"

static lp_dtype dtype_of(const lp_infer *c, int32_t index) {
  return lp_infer_in(c, index).dtype;
}

/* ---- by index ---- */

lp_status infer_gather(lp_infer *c) {
  LP_TRY(lp_infer_index(c, 1));
  lp_shape data = lp_infer_shape(c, 0), index = lp_infer_shape(c, 1), out = {0};
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), data.rank, false, &axis));
  for (int32_t i = 0; i < axis; i++)
    LP_TRY(lp_infer_push(c, &out, data.dim[i]));
  for (int32_t i = 0; i < index.rank; i++)
    LP_TRY(lp_infer_push(c, &out, index.dim[i]));
  for (int32_t i = axis + 1; i < data.rank; i++)
    LP_TRY(lp_infer_push(c, &out, data.dim[i]));
  return lp_infer_set(c, 0, dtype_of(c, 0), &out);
}

/* Sizes that are not numbers are compared where the operator is lowered. */
static bool exceeds(const lp_poly *size, const lp_poly *most) {
  int64_t found, limit;
  return lp_poly_is_const(size, &found) && lp_poly_is_const(most, &limit) && found > limit;
}

static lp_status fits_other_axes(const lp_infer *c, const lp_shape *index, const lp_shape *data, int32_t axis) {
  for (int32_t i = 0; i < data->rank; i++)
    if (i != axis && exceeds(index->dim[i], data->dim[i]))
      return lp_infer_fail(c, "its index has %s rows on axis %d, its data %s", lp_infer_text(c, index->dim[i]), i,
                           lp_infer_text(c, data->dim[i]));
  return LP_OK;
}

lp_status infer_gather_elements(lp_infer *c) {
  LP_TRY(lp_infer_index(c, 1));
  LP_TRY(lp_infer_rank(c, 1, lp_infer_in(c, 0).rank));
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), lp_infer_in(c, 0).rank, false, &axis));
  lp_shape index = lp_infer_shape(c, 1), data = lp_infer_shape(c, 0);
  LP_TRY(fits_other_axes(c, &index, &data, axis));
  return lp_infer_set(c, 0, dtype_of(c, 0), &index);
}

/* indices[..., k] picks data[i0, ..., ik-1]: the result has the leading axes of indices and the rest of data's. */
lp_status infer_gather_nd(lp_infer *c) {
  LP_TRY(lp_infer_index(c, 1));
  lp_shape data = lp_infer_shape(c, 0), index = lp_infer_shape(c, 1), out = {0};
  int64_t depth, batch = lp_op_i64(c->op, "batch_dims", 0);
  if (index.rank < 1 || !lp_poly_is_const(index.dim[index.rank - 1], &depth) || depth < 1 || batch < 0 ||
      batch >= index.rank || batch + depth > data.rank)
    return lp_error(c->diag, c->op->loc, "indices do not fit data of %d axes", data.rank);
  for (int32_t i = 0; i < batch; i++)
    LP_TRY(lp_infer_agree(c, index.dim[i], data.dim[i], &index.dim[i]));
  for (int32_t i = 0; i + 1 < index.rank; i++)
    LP_TRY(lp_infer_push(c, &out, index.dim[i]));
  for (int32_t i = (int32_t)(batch + depth); i < data.rank; i++)
    LP_TRY(lp_infer_push(c, &out, data.dim[i]));
  return lp_infer_set(c, 0, dtype_of(c, 0), &out);
}

static lp_status infer_scatter_elements(lp_infer *c, const lp_shape *data) {
  lp_shape index = lp_infer_shape(c, 1), updates = lp_infer_shape(c, 2);
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), data->rank, false, &axis));
  LP_TRY(lp_infer_rank(c, 1, data->rank));
  LP_TRY(lp_infer_rank(c, 2, data->rank));
  for (int32_t i = 0; i < data->rank; i++)
    LP_TRY(lp_infer_agree(c, updates.dim[i], index.dim[i], &index.dim[i]));
  return fits_other_axes(c, &index, data, axis);
}

static lp_status infer_scatter_nd(lp_infer *c, const lp_shape *data) {
  LP_TRY(lp_infer_min_rank(c, 1, 1));
  lp_shape index = lp_infer_shape(c, 1), updates = lp_infer_shape(c, 2);
  int64_t depth;
  int32_t lead = index.rank - 1;
  if (!lp_poly_is_const(index.dim[lead], &depth) || depth < 1 || depth > data->rank)
    return lp_infer_fail(c, "%s indices into %d axes", lp_infer_text(c, index.dim[lead]), data->rank);
  LP_TRY(lp_infer_rank(c, 2, lead + data->rank - (int32_t)depth));
  for (int32_t i = 0; i < updates.rank; i++) {
    const lp_poly *wanted = i < lead ? index.dim[i] : data->dim[i - lead + (int32_t)depth];
    LP_TRY(lp_infer_agree(c, updates.dim[i], wanted, &updates.dim[i]));
  }
  return LP_OK;
}

/* Data, indices, updates: data with some elements replaced. */
lp_status infer_scatter(lp_infer *c) {
  LP_TRY(lp_infer_index(c, 1));
  LP_TRY(lp_infer_same_dtype(c, 0, 2));
  lp_shape data = lp_infer_shape(c, 0);
  LP_TRY(c->op->kind == LP_ONNX_ScatterND ? infer_scatter_nd(c, &data) : infer_scatter_elements(c, &data));
  return lp_infer_set(c, 0, dtype_of(c, 0), &data);
}

/* Past rows and new ones, which differ only on `axis`. */
lp_status infer_tensor_scatter(lp_infer *c) {
  LP_TRY(lp_infer_same_dtype(c, 0, 1));
  lp_shape past = lp_infer_shape(c, 0), update = lp_infer_shape(c, 1);
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", -2), past.rank, false, &axis));
  if (axis == 0) return lp_infer_fail(c, "its axis is the batch axis, which is not supported");
  LP_TRY(lp_infer_rank(c, 1, past.rank));
  for (int32_t i = 0; i < past.rank; i++)
    if (i != axis) LP_TRY(lp_infer_agree(c, past.dim[i], update.dim[i], &past.dim[i]));
  if (exceeds(update.dim[axis], past.dim[axis]))
    return lp_infer_fail(c, "it writes %s rows into a cache of %s", lp_infer_text(c, update.dim[axis]),
                         lp_infer_text(c, past.dim[axis]));
  if (lp_infer_has(c, 2)) {
    const lp_poly *rows;
    LP_TRY(lp_infer_integer(c, 2));
    LP_TRY(lp_infer_rank(c, 2, 1));
    LP_TRY(lp_infer_agree(c, lp_infer_shape(c, 2).dim[0], past.dim[0], &rows));
  }
  return lp_infer_set(c, 0, dtype_of(c, 0), &past);
}

/* A new axis of `depth` elements. */
lp_status infer_one_hot(lp_infer *c) {
  lp_shape in = lp_infer_shape(c, 0), out = {0};
  const lp_poly *const *depth, *two;
  int32_t axis, count;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", -1), in.rank + 1, false, &axis));
  LP_TRY(lp_infer_need_known(c, 1, &depth, &count));
  if (count != 1) return lp_infer_fail(c, "its depth is not one number");
  LP_TRY(lp_infer_rank(c, 2, 1));
  LP_TRY(lp_infer_agree(c, lp_infer_shape(c, 2).dim[0], lp_dim_const(c->m, 2), &two));
  for (int32_t i = 0; i <= in.rank; i++)
    LP_TRY(lp_infer_push(c, &out, i < axis ? in.dim[i] : i == axis ? depth[0] : in.dim[i - 1]));
  return lp_infer_set(c, 0, dtype_of(c, 2), &out);
}

/* ---- parts ---- */

/* A bound of a slice, in [0, size]. A negative one counts from the end. One outside is clamped where that can be
 * decided; otherwise it is assumed to lie inside. */
static const lp_poly *slice_bound(const lp_infer *c, const lp_poly *bound, const lp_poly *size) {
  lp_arena *arena = c->m->arena;
  const lp_poly *zero = lp_dim_const(c->m, 0);
  int64_t value;
  if (lp_poly_is_const(bound, &value) && (value >= INT32_MAX || value <= INT32_MIN)) return value > 0 ? size : zero;
  if (!lp_poly_equal(bound, zero) && lp_poly_ge(arena, zero, bound)) {
    bound = lp_poly_add(arena, size, bound);
    if (bound && lp_poly_is_const(bound, &value) && value < 0) return zero;
  }
  if (bound && lp_poly_is_i64(size, 1) && !lp_poly_is_const(bound, NULL)) /* an axis that broadcasts is no table */
    return lp_infer_is_positive(c, bound) ? size : NULL;
  return bound && lp_poly_ge(arena, bound, size) ? size : bound;
}

/* The elements of an axis up to the one at `last`. */
static const lp_poly *length_before(const lp_infer *c, const lp_poly *last, const lp_poly *size) {
  const lp_poly *bound = slice_bound(c, last, size);
  return !bound || bound == size ? bound : lp_poly_add(c->m->arena, bound, lp_dim_const(c->m, 1));
}

static const lp_poly *slice_length(const lp_infer *c, const lp_poly *start, const lp_poly *end, const lp_poly *size,
                                   int64_t step) {
  lp_arena *arena = c->m->arena;
  if (step == 1) {
    const lp_poly *length = lp_poly_sub(arena, slice_bound(c, end, size), slice_bound(c, start, size));
    int64_t value;
    return length && lp_poly_is_const(length, &value) && value < 0 ? lp_dim_const(c->m, 0) : length;
  }
  int64_t first, last, count;
  bool from = lp_poly_is_const(start, &first), to = lp_poly_is_const(end, &last);
  if (step == -1 && to && last <= INT32_MIN) { /* back to the first element */
    if (from && (first == -1 || first >= INT32_MAX)) return size;
    if (!from) return length_before(c, start, size);
  }
  if (!from || !to || !lp_poly_is_const(size, &count) || step == INT64_MIN) {
    const lp_poly *length = step > 1 ? slice_length(c, start, end, size, 1) : NULL;
    return length ? lp_poly_div(arena, length, lp_dim_const(c->m, step)) : NULL;
  }
  if (first < 0) first = first < -count ? -1 : first + count;
  if (last < 0) last = last < -count ? -1 : last + count;
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
  first = first < (step > 0 ? 0 : -1) ? low : first > high ? high : first;
  last = last < low ? low : last > high ? high : last;
  if (step > 0 && first < 0) first = 0;
  int64_t span = step > 0 ? last - first : first - last, stride = step > 0 ? step : -step;
  return lp_dim_const(c->m, span <= 0 ? 0 : (span - 1) / stride + 1);
}

typedef struct {
  const lp_poly *const *start, *const *end;
  int64_t axes[LP_MAX_KNOWN], steps[LP_MAX_KNOWN];
  int32_t count;
} slice_args;

static lp_status read_slice(const lp_infer *c, slice_args *a) {
  int32_t ends, axes, steps;
  LP_TRY(lp_infer_need_known(c, 1, &a->start, &a->count));
  LP_TRY(lp_infer_need_known(c, 2, &a->end, &ends));
  axes = steps = a->count;
  for (int32_t i = 0; i < a->count; i++) {
    a->axes[i] = i;
    a->steps[i] = 1;
  }
  if (lp_infer_has(c, 3)) LP_TRY(lp_infer_need_i64s(c, 3, a->axes, &axes));
  if (lp_infer_has(c, 4)) LP_TRY(lp_infer_need_i64s(c, 4, a->steps, &steps));
  if (ends == a->count && axes == a->count && steps == a->count) return LP_OK;
  return lp_infer_fail(c, "%d starts, %d ends, %d axes and %d steps", a->count, ends, axes, steps);
}

lp_status infer_slice(lp_infer *c) {
  slice_args a;
  LP_TRY(read_slice(c, &a));
  lp_shape shape = lp_infer_shape(c, 0), in = shape;
  for (int32_t i = 0; i < a.count; i++) {
    int32_t axis;
    LP_TRY(lp_infer_axis(c, a.axes[i], in.rank, false, &axis));
    if (a.steps[i] == 0) return lp_infer_fail(c, "a step is 0");
    shape.dim[axis] = slice_length(c, a.start[i], a.end[i], in.dim[axis], a.steps[i]);
    if (!shape.dim[axis])
      return lp_infer_fail(c, "the size of [%s:%s:%" PRId64 "] of %s has no closed form", lp_infer_text(c, a.start[i]),
                           lp_infer_text(c, a.end[i]), a.steps[i], lp_infer_text(c, in.dim[axis]));
  }
  return lp_infer_set(c, 0, dtype_of(c, 0), &shape);
}

lp_status infer_concat(lp_infer *c) {
  LP_TRY(lp_infer_need(c, c->op->in_count));
  lp_shape shape = lp_infer_shape(c, 0);
  int32_t axis;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), shape.rank, false, &axis));
  for (int32_t k = 1; k < c->op->in_count; k++) {
    LP_TRY(lp_infer_same_dtype(c, 0, k));
    LP_TRY(lp_infer_rank(c, k, shape.rank));
    lp_type type = lp_infer_in(c, k);
    for (int32_t i = 0; i < shape.rank; i++)
      if (i == axis)
        shape.dim[i] = lp_poly_add(c->m->arena, shape.dim[i], type.dim[i]);
      else
        LP_TRY(lp_infer_agree(c, shape.dim[i], type.dim[i], &shape.dim[i]));
  }
  return lp_infer_set(c, 0, dtype_of(c, 0), &shape);
}

/* Equal parts; a constant size that does not divide leaves the last part smaller. */
static lp_status equal_part(const lp_infer *c, const lp_poly *size, int32_t parts, int32_t index, const lp_poly **out) {
  int64_t value;
  *out = lp_poly_div(c->m->arena, size, lp_dim_const(c->m, parts));
  if (*out) return LP_OK;
  if (!lp_poly_is_const(size, &value))
    return lp_infer_fail(c, "%s does not divide into %d equal parts", lp_infer_text(c, size), parts);
  int64_t part = (value + parts - 1) / parts, left = value - part * index;
  *out = lp_dim_const(c->m, left < 0 ? 0 : left < part ? left : part);
  return LP_OK;
}

lp_status infer_split(lp_infer *c) {
  lp_shape shape = lp_infer_shape(c, 0);
  int32_t axis, count = 0, parts = c->op->out_count;
  LP_TRY(lp_infer_axis(c, lp_op_i64(c->op, "axis", 0), shape.rank, false, &axis));
  const lp_poly *const *sizes = NULL, *whole = shape.dim[axis], *sum = lp_dim_const(c->m, 0);
  if (lp_infer_has(c, 1)) {
    LP_TRY(lp_infer_need_known(c, 1, &sizes, &count));
    for (int32_t i = 0; i < count; i++)
      sum = lp_poly_add(c->m->arena, sum, sizes[i]);
    if (count < parts || !sum) return lp_infer_fail(c, "%d sizes for %d outputs", count, parts);
    LP_TRY(lp_infer_agree(c, sum, whole, &sum));
    if (c->again) return LP_OK;
  } else if (lp_op_attr(c->op, "num_outputs")) {
    int64_t wanted = lp_op_i64(c->op, "num_outputs", parts);
    if (wanted < parts || wanted > INT16_MAX)
      return lp_infer_fail(c, "num_outputs is %" PRId64 ", but it has %d", wanted, parts);
    parts = (int32_t)wanted;
  }
  for (int32_t i = 0; i < c->op->out_count; i++) {
    if (sizes)
      shape.dim[axis] = sizes[i];
    else
      LP_TRY(equal_part(c, whole, parts, i, &shape.dim[axis]));
    LP_TRY(lp_infer_set(c, i, dtype_of(c, 0), &shape));
  }
  return LP_OK;
}
