/* What moves elements, counts or makes them, in the reference interpreter. */
#include "ir/eval_internal.h"

#include <string.h>

/* ---- by index ---- */

static lp_status read_index(const lp_eval *e, const lp_array *index, int64_t at, int64_t size, int64_t *out) {
  *out = lp_array_i64(index, at);
  if (*out < -size || *out >= size) return lp_eval_fail(e, "index %" PRId64 " into an axis of %" PRId64, *out, size);
  if (*out < 0) *out += size;
  return LP_OK;
}

static lp_status gather(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  const lp_array *data = e->in[0], *index = e->in[1];
  lp_array *out;
  int32_t axis, rank = 0;
  int64_t outer, size, inner, dim[2 * LP_MAX_RANK], from, count = lp_array_numel(index);
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 0), data->rank, &axis));
  for (int32_t i = 0; i < axis; i++)
    dim[rank++] = data->dim[i];
  for (int32_t i = 0; i < index->rank; i++)
    dim[rank++] = index->dim[i];
  for (int32_t i = axis + 1; i < data->rank; i++)
    dim[rank++] = data->dim[i];
  LP_TRY(lp_eval_out(e, 0, data->dtype, rank, dim, &out));
  lp_array_split(data, axis, &outer, &size, &inner);
  for (int64_t k = 0; k < count; k++) {
    LP_TRY(read_index(e, index, k, size, &from));
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++)
        lp_array_copy(out, (o * count + k) * inner + i, data, (o * size + from) * inner + i);
  }
  return LP_OK;
}

lp_status eval_onnx_gather(const lp_eval *e) {
  return gather(e);
}

lp_status eval_op_GATHER(const lp_eval *e) {
  return gather(e);
}

static lp_status gather_elements(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  const lp_array *data = e->in[0], *index = e->in[1];
  lp_array *out;
  int32_t axis;
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 0), data->rank, &axis));
  if (index->rank != data->rank) return lp_eval_fail(e, "its operands differ in axes");
  for (int32_t i = 0; i < data->rank; i++)
    if (i != axis && index->dim[i] > data->dim[i]) return lp_eval_fail(e, "its index is larger than its data");
  LP_TRY(lp_eval_out(e, 0, data->dtype, index->rank, index->dim, &out));
  for (int64_t k = 0; k < lp_array_numel(index); k++) {
    int64_t from = 0, stride = 1, at = k, where;
    LP_TRY(read_index(e, index, k, data->dim[axis], &where));
    for (int32_t i = data->rank - 1; i >= 0; i--) {
      from += (i == axis ? where : at % index->dim[i]) * stride;
      stride *= data->dim[i];
      at /= index->dim[i];
    }
    lp_array_copy(out, k, data, from);
  }
  return LP_OK;
}

/* Where row `row` of the indices points in data, in elements; false when out of range. */
static bool nd_offset(const lp_array *data, const lp_array *index, int64_t row, int32_t batch, int64_t *offset) {
  int64_t depth = index->dim[index->rank - 1], stride = 1, rest = row;
  *offset = 0;
  for (int32_t i = index->rank - 2; i >= batch; i--)
    rest /= index->dim[i];
  for (int32_t i = data->rank - 1; i >= batch + depth; i--)
    stride *= data->dim[i];
  for (int32_t i = (int32_t)depth - 1; i >= 0; i--) {
    int64_t size = data->dim[batch + i], at = lp_array_i64(index, row * depth + i);
    if (at < 0) at += size;
    if (at < 0 || at >= size) return false;
    *offset += at * stride;
    stride *= size;
  }
  *offset += rest * stride;
  return true;
}

lp_status eval_onnx_gather_nd(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  const lp_array *data = lp_eval_in(e, 0), *index = lp_eval_in(e, 1);
  int32_t batch = (int32_t)lp_op_i64(e->op, "batch_dims", 0), rank = 0;
  int64_t dim[LP_MAX_RANK], rows = 1, inner = 1, offset;
  if (index->rank < 1 || batch < 0 || batch >= index->rank || batch + index->dim[index->rank - 1] > data->rank)
    return lp_eval_fail(e, "indices do not fit the data");
  for (int32_t i = 0; i + 1 < index->rank; i++)
    rows *= dim[rank++] = index->dim[i];
  for (int32_t i = (int32_t)(batch + index->dim[index->rank - 1]); i < data->rank; i++) {
    if (rank == LP_MAX_RANK) return lp_eval_fail(e, "the result has too many axes");
    inner *= dim[rank++] = data->dim[i];
  }
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, data->dtype, rank, dim, &out));
  for (int64_t row = 0; row < rows; row++) {
    if (!nd_offset(data, index, row, batch, &offset)) return lp_eval_fail(e, "an index is out of range");
    for (int64_t i = 0; i < inner; i++)
      lp_array_copy(out, row * inner + i, data, offset + i);
  }
  return LP_OK;
}

lp_status eval_onnx_gather_elements(const lp_eval *e) {
  return gather_elements(e);
}

lp_status eval_op_GATHER_ELEMENTS(const lp_eval *e) {
  return gather_elements(e);
}

/* ---- affine moves: slices, transposes, tiles ---- */

/* out[i] = in[start + step * i] on each axis of the result; `from` says which axis of the operand. */
typedef struct {
  int64_t start[LP_MAX_RANK], step[LP_MAX_RANK];
  int32_t from[LP_MAX_RANK];
} affine;

static lp_status move(const lp_eval *e, const lp_array *in, const affine *a, lp_array *out) {
  int64_t stride[LP_MAX_RANK], next = 1, base = 0;
  for (int32_t i = in->rank - 1; i >= 0; i--) {
    stride[i] = next;
    next *= in->dim[i];
  }
  for (int32_t i = 0; i < out->rank; i++) {
    int64_t size = in->dim[a->from[i]], last = a->start[i] + (out->dim[i] - 1) * a->step[i];
    if (out->dim[i] > 0 && (a->start[i] < 0 || a->start[i] >= size || last < 0 || last >= size))
      return lp_eval_fail(e, "axis %d of %" PRId64 " is read from %" PRId64 " to %" PRId64, i, size, a->start[i], last);
    base += a->start[i] * stride[a->from[i]];
  }
  for (int64_t k = 0; k < lp_array_numel(out); k++) {
    int64_t at = k, from = base;
    for (int32_t i = out->rank - 1; i >= 0; i--) {
      from += at % out->dim[i] * a->step[i] * stride[a->from[i]];
      at /= out->dim[i];
    }
    lp_array_copy(out, k, in, from);
  }
  return LP_OK;
}

static affine identity_move(int32_t rank) {
  affine a = {0};
  for (int32_t i = 0; i < rank; i++) {
    a.step[i] = 1;
    a.from[i] = i;
  }
  return a;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* One axis of ONNX's Slice. */
static void slice_axis(int64_t start, int64_t end, int64_t step, int64_t size, int64_t *first, int64_t *count) {
  if (start < 0) start = start < -size ? -1 : start + size;
  if (end < 0) end = end < -size ? -1 : end + size;
  if (step > 0) {
    start = clamp(start, 0, size);
    end = clamp(end, 0, size);
    *count = end > start ? (end - start - 1) / step + 1 : 0;
  } else {
    start = clamp(start, -1, size - 1);
    end = clamp(end, -1, size - 1);
    *count = start > end ? (start - end - 1) / -step + 1 : 0;
  }
  *first = start;
}

lp_status eval_onnx_slice(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 3));
  const lp_array *in = e->in[0];
  int64_t starts[LP_MAX_RANK], ends[LP_MAX_RANK], axes[LP_MAX_RANK], steps[LP_MAX_RANK], dim[LP_MAX_RANK];
  int32_t count, n_ends, n_axes, n_steps, axis;
  LP_TRY(lp_eval_i64s(e, 1, starts, LP_MAX_RANK, &count));
  LP_TRY(lp_eval_i64s(e, 2, ends, LP_MAX_RANK, &n_ends));
  n_axes = n_steps = count;
  for (int32_t i = 0; i < count; i++) {
    axes[i] = i;
    steps[i] = 1;
  }
  if (lp_eval_in(e, 3)) LP_TRY(lp_eval_i64s(e, 3, axes, LP_MAX_RANK, &n_axes));
  if (lp_eval_in(e, 4)) LP_TRY(lp_eval_i64s(e, 4, steps, LP_MAX_RANK, &n_steps));
  if (n_ends != count || n_axes != count || n_steps != count) return lp_eval_fail(e, "its operands differ in length");
  affine a = identity_move(in->rank);
  memcpy(dim, in->dim, sizeof(dim));
  for (int32_t i = 0; i < count; i++) {
    LP_TRY(lp_eval_axis(e, axes[i], in->rank, &axis));
    if (steps[i] == 0 || steps[i] == INT64_MIN) return lp_eval_fail(e, "a step is 0");
    slice_axis(starts[i], ends[i], steps[i], in->dim[axis], &a.start[axis], &dim[axis]);
    a.step[axis] = dim[axis] > 1 ? steps[i] : 1;
  }
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, dim, &out));
  return move(e, in, &a, out);
}

lp_status eval_op_SLICE(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  const lp_attr *starts = lp_op_attr(e->op, "starts"), *steps = lp_op_attr(e->op, "steps");
  lp_array *out;
  LP_TRY(lp_eval_out_typed(e, 0, &out));
  if (out->rank != e->in[0]->rank || starts->count != out->rank || steps->count != out->rank)
    return lp_eval_fail(e, "starts and steps need one entry per axis");
  affine a = identity_move(out->rank);
  for (int32_t i = 0; i < out->rank; i++) {
    a.start[i] = lp_poly_eval(starts->polys[i], e->sym, e->m->symbols.names.count);
    a.step[i] = steps->is[i];
  }
  return move(e, e->in[0], &a, out);
}

static lp_status transpose(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  const lp_array *in = e->in[0];
  const lp_attr *perm = lp_op_attr(e->op, "perm");
  int64_t dim[LP_MAX_RANK];
  affine a = identity_move(in->rank);
  if (perm && perm->count != in->rank) return lp_eval_fail(e, "perm has %d axes, %d wanted", perm->count, in->rank);
  for (int32_t i = 0; i < in->rank; i++) {
    a.from[i] = in->rank - 1 - i;
    if (perm) LP_TRY(lp_eval_axis(e, perm->is[i], in->rank, &a.from[i]));
    dim[i] = in->dim[a.from[i]];
  }
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, dim, &out));
  return move(e, in, &a, out);
}

lp_status eval_onnx_transpose(const lp_eval *e) {
  return transpose(e);
}

lp_status eval_op_TRANSPOSE(const lp_eval *e) {
  return transpose(e);
}

/* ---- joined and split ---- */

static lp_status concat(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, e->op->in_count));
  int64_t dim[LP_MAX_RANK], outer, size, inner, before = 0;
  int32_t axis;
  memcpy(dim, e->in[0]->dim, sizeof(dim));
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 0), e->in[0]->rank, &axis));
  dim[axis] = 0;
  for (int32_t k = 0; k < e->op->in_count; k++) {
    for (int32_t i = 0; i < e->in[0]->rank; i++)
      if (e->in[k]->rank != e->in[0]->rank || (i != axis && e->in[k]->dim[i] != dim[i]))
        return lp_eval_fail(e, "input %d differs in shape from input 0", k);
    dim[axis] += e->in[k]->dim[axis];
  }
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, e->in[0]->dtype, e->in[0]->rank, dim, &out));
  for (int32_t k = 0; k < e->op->in_count; k++) {
    lp_array_split(e->in[k], axis, &outer, &size, &inner);
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < size * inner; i++)
        lp_array_copy(out, (o * dim[axis] + before) * inner + i, e->in[k], o * size * inner + i);
    before += size;
  }
  return LP_OK;
}

lp_status eval_onnx_concat(const lp_eval *e) {
  return concat(e);
}

lp_status eval_op_CONCAT(const lp_eval *e) {
  return concat(e);
}

lp_status eval_onnx_split(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  const lp_array *in = e->in[0];
  int64_t *sizes = LP_NEW_ARRAY(e->arena, int64_t, e->op->out_count), dim[LP_MAX_RANK], start = 0;
  int32_t axis, count = 0;
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 0), in->rank, &axis));
  if (lp_eval_in(e, 1)) {
    LP_TRY(lp_eval_i64s(e, 1, sizes, e->op->out_count, &count));
    if (count != e->op->out_count) return lp_eval_fail(e, "%d sizes for %d outputs", count, e->op->out_count);
  } else {
    int64_t parts = lp_op_i64(e->op, "num_outputs", e->op->out_count), size = in->dim[axis];
    int64_t part = parts > 0 ? (size + parts - 1) / parts : 0;
    for (int32_t i = 0; i < e->op->out_count; i++)
      sizes[i] = clamp(size - i * part, 0, part);
  }
  memcpy(dim, in->dim, sizeof(dim));
  for (int32_t k = 0; k < e->op->out_count; k++) {
    affine a = identity_move(in->rank);
    lp_array *out;
    dim[axis] = sizes[k];
    a.start[axis] = start;
    LP_TRY(lp_eval_out(e, k, in->dtype, in->rank, dim, &out));
    LP_TRY(move(e, in, &a, out));
    start += sizes[k];
  }
  return LP_OK;
}

/* ---- other shapes ---- */

static lp_status reshape_to(const lp_eval *e, int32_t rank, const int64_t *dim) {
  const lp_array *in = e->in[0];
  lp_array result = {.dtype = in->dtype, .rank = rank, .data = in->data};
  int64_t count = 1;
  for (int32_t i = 0; i < rank; i++) {
    result.dim[i] = dim[i];
    if (dim[i] < 0 || !lp_i64_mul(count, dim[i], &count))
      return lp_eval_fail(e, "axis %d has the size %" PRId64, i, dim[i]);
  }
  if (count != lp_array_numel(in))
    return lp_eval_fail(e, "%" PRId64 " elements reshaped to %" PRId64, lp_array_numel(in), count);
  e->out[0] = result;
  return LP_OK;
}

static lp_status reshape_by_values(const lp_eval *e) {
  const lp_array *in = e->in[0];
  int64_t dim[LP_MAX_RANK], others = 1;
  int32_t rank, rest = -1;
  LP_TRY(lp_eval_i64s(e, 1, dim, LP_MAX_RANK, &rank));
  for (int32_t i = 0; i < rank; i++) {
    if (dim[i] == 0 && !lp_op_i64(e->op, "allowzero", 0)) {
      if (i >= in->rank) return lp_eval_fail(e, "size %d is copied from an input with %d axes", i, in->rank);
      dim[i] = in->dim[i];
    }
    if (dim[i] == -1)
      rest = i;
    else if (!lp_i64_mul(others, dim[i], &others))
      return lp_eval_fail(e, "the size of its result overflows");
  }
  if (rest >= 0) dim[rest] = others > 0 ? lp_array_numel(in) / others : 0;
  return reshape_to(e, rank, dim);
}

static lp_status axes_of(const lp_eval *e, int32_t rank, bool *marked) {
  int64_t axes[LP_MAX_RANK];
  int32_t count, axis;
  LP_TRY(lp_eval_i64s(e, 1, axes, LP_MAX_RANK, &count));
  for (int32_t i = 0; i < count; i++) {
    LP_TRY(lp_eval_axis(e, axes[i], rank, &axis));
    marked[axis] = true;
  }
  return LP_OK;
}

static lp_status squeeze(const lp_eval *e) {
  const lp_array *in = e->in[0];
  bool drop[LP_MAX_RANK] = {false};
  int64_t dim[LP_MAX_RANK];
  int32_t rank = 0;
  if (lp_eval_in(e, 1)) LP_TRY(axes_of(e, in->rank, drop));
  for (int32_t i = 0; i < in->rank; i++)
    if (!drop[i] && (lp_eval_in(e, 1) || in->dim[i] != 1)) dim[rank++] = in->dim[i];
  return reshape_to(e, rank, dim);
}

static lp_status unsqueeze(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  const lp_array *in = e->in[0];
  bool added[LP_MAX_RANK] = {false};
  int64_t dim[LP_MAX_RANK], rank = in->rank + lp_array_numel(e->in[1]);
  int32_t from = 0;
  if (rank > LP_MAX_RANK) return lp_eval_fail(e, "its result has more than %d axes", LP_MAX_RANK);
  LP_TRY(axes_of(e, (int32_t)rank, added));
  for (int32_t i = 0; i < (int32_t)rank; i++) {
    if (!added[i] && from == in->rank) return lp_eval_fail(e, "an axis is inserted twice");
    dim[i] = added[i] ? 1 : in->dim[from++];
  }
  return reshape_to(e, (int32_t)rank, dim);
}

static lp_status flatten(const lp_eval *e) {
  const lp_array *in = e->in[0];
  int64_t axis = lp_op_i64(e->op, "axis", 1), dim[2] = {1, 1};
  if (axis < 0) axis += in->rank;
  if (axis < 0 || axis > in->rank) return lp_eval_fail(e, "axis %" PRId64 " of a tensor with %d axes", axis, in->rank);
  for (int32_t i = 0; i < in->rank; i++)
    dim[i >= axis] *= in->dim[i];
  return reshape_to(e, 2, dim);
}

lp_status eval_onnx_reshape(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  switch (e->op->kind) {
  case LP_ONNX_Squeeze:
    return squeeze(e);
  case LP_ONNX_Unsqueeze:
    return unsqueeze(e);
  case LP_ONNX_Flatten:
    return flatten(e);
  default:
    return reshape_by_values(e);
  }
}

static lp_status typed_dims(const lp_eval *e, int64_t *dim) {
  lp_type type = e->op->out[0]->type;
  if (type.rank < 0) return lp_eval_fail(e, "its result has no shape");
  for (int32_t i = 0; i < type.rank; i++)
    dim[i] = lp_poly_eval(type.dim[i], e->sym, e->m->symbols.names.count);
  return LP_OK;
}

lp_status eval_op_RESHAPE(const lp_eval *e) {
  int64_t dim[LP_MAX_RANK];
  LP_TRY(lp_eval_need(e, 1));
  LP_TRY(typed_dims(e, dim));
  return reshape_to(e, e->op->out[0]->type.rank, dim);
}

/* ---- repeated ---- */

static lp_status expand_to(const lp_eval *e, int32_t rank, const int64_t *dim) {
  const lp_array *in = e->in[0];
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, in->dtype, rank, dim, &out));
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    lp_array_copy(out, i, in, lp_broadcast_index(in, i, rank, dim));
  return LP_OK;
}

lp_status eval_onnx_expand(const lp_eval *e) {
  int64_t dim[LP_MAX_RANK];
  int32_t rank;
  LP_TRY(lp_eval_need(e, 2));
  LP_TRY(lp_eval_i64s(e, 1, dim, LP_MAX_RANK, &rank));
  for (int32_t i = 0; i < rank; i++)
    if (dim[i] == -1) dim[i] = 1;
  LP_TRY(lp_eval_broadcast(e, &rank, dim, e->in[0]->rank, e->in[0]->dim));
  return expand_to(e, rank, dim);
}

lp_status eval_op_EXPAND(const lp_eval *e) {
  int64_t dim[LP_MAX_RANK], all[LP_MAX_RANK];
  int32_t rank = e->op->out[0]->type.rank;
  LP_TRY(lp_eval_need(e, 1));
  LP_TRY(typed_dims(e, dim));
  memcpy(all, dim, sizeof(all));
  LP_TRY(lp_eval_broadcast(e, &rank, all, e->in[0]->rank, e->in[0]->dim));
  if (rank != e->op->out[0]->type.rank || memcmp(all, dim, (size_t)rank * sizeof(*dim)) != 0)
    return lp_eval_fail(e, "its operand does not broadcast to its result");
  return expand_to(e, rank, dim);
}

lp_status eval_onnx_tile(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  const lp_array *in = e->in[0];
  int64_t repeats[LP_MAX_RANK], dim[LP_MAX_RANK];
  int32_t count;
  LP_TRY(lp_eval_i64s(e, 1, repeats, LP_MAX_RANK, &count));
  if (count != in->rank) return lp_eval_fail(e, "%d repeats for %d axes", count, in->rank);
  for (int32_t i = 0; i < count; i++)
    if (!lp_i64_mul(in->dim[i], repeats[i], &dim[i])) return lp_eval_fail(e, "the size of its result overflows");
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, dim, &out));
  for (int64_t k = 0; k < lp_array_numel(out); k++) {
    int64_t at = k, from = 0, stride = 1;
    for (int32_t i = in->rank - 1; i >= 0; i--) {
      from += at % dim[i] % in->dim[i] * stride;
      stride *= in->dim[i];
      at /= dim[i];
    }
    lp_array_copy(out, k, in, from);
  }
  return LP_OK;
}

/* ---- padding ---- */

/* Where result position `at` of an axis comes from; -1: padding. */
static int64_t padded_source(int64_t at, int64_t size, const char *mode) {
  if (at >= 0 && at < size) return at;
  if (size < 1 || lp_streq(mode, "constant")) return -1;
  if (lp_streq(mode, "edge")) return at < 0 ? 0 : size - 1;
  int64_t period = lp_streq(mode, "wrap") ? size : size > 1 ? 2 * size - 2 : 1;
  int64_t left = (at % period + period) % period;
  return left < size ? left : period - left;
}

static lp_status pad(const lp_eval *e, const int64_t *before, const int64_t *dim, const char *mode,
                     const lp_array *value, double number) {
  const lp_array *in = e->in[0];
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, dim, &out));
  for (int64_t k = 0; k < lp_array_numel(out); k++) {
    int64_t at = k, from = 0, stride = 1;
    bool inside = true;
    for (int32_t i = in->rank - 1; i >= 0; i--) {
      int64_t source = padded_source(at % dim[i] - before[i], in->dim[i], mode);
      inside = inside && source >= 0;
      from += source * stride;
      stride *= in->dim[i];
      at /= dim[i];
    }
    if (inside)
      lp_array_copy(out, k, in, from);
    else if (value)
      lp_array_copy(out, k, value, 0);
    else
      lp_array_set_f64(out, k, number);
  }
  return LP_OK;
}

lp_status eval_onnx_pad(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 2));
  const lp_array *in = e->in[0], *value = lp_eval_in(e, 2);
  int64_t pads[2 * LP_MAX_RANK], axes[LP_MAX_RANK], before[LP_MAX_RANK] = {0}, dim[LP_MAX_RANK];
  int32_t count, axis_count = in->rank, axis;
  LP_TRY(lp_eval_i64s(e, 1, pads, 2 * LP_MAX_RANK, &count));
  for (int32_t i = 0; i < in->rank; i++)
    axes[i] = i;
  if (lp_eval_in(e, 3)) LP_TRY(lp_eval_i64s(e, 3, axes, LP_MAX_RANK, &axis_count));
  if (count != 2 * axis_count) return lp_eval_fail(e, "%d pads for %d axes", count, axis_count);
  if (value && (lp_array_numel(value) != 1 || value->dtype != in->dtype))
    return lp_eval_fail(e, "its value does not fit");
  memcpy(dim, in->dim, sizeof(dim));
  for (int32_t i = 0; i < axis_count; i++) {
    LP_TRY(lp_eval_axis(e, axes[i], in->rank, &axis));
    before[axis] = pads[i];
    if (!lp_i64_add(dim[axis], pads[i], &dim[axis]) || !lp_i64_add(dim[axis], pads[i + axis_count], &dim[axis]))
      return lp_eval_fail(e, "the size of its result overflows");
  }
  return pad(e, before, dim, lp_op_str(e->op, "mode", "constant"), value, 0);
}

lp_status eval_op_PAD(const lp_eval *e) {
  int64_t before[LP_MAX_RANK], dim[LP_MAX_RANK];
  LP_TRY(lp_eval_need(e, 1));
  LP_TRY(typed_dims(e, dim));
  const lp_attr *attr = lp_op_attr(e->op, "before");
  if (attr->count != e->in[0]->rank) return lp_eval_fail(e, "before needs one entry per axis");
  for (int32_t i = 0; i < attr->count; i++)
    before[i] = lp_poly_eval(attr->polys[i], e->sym, e->m->symbols.names.count);
  return pad(e, before, dim, "constant", NULL, lp_op_f64(e->op, "value", 0));
}

/* ---- made ---- */

lp_status eval_onnx_dims(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 1));
  const lp_array *in = e->in[0];
  lp_array *out;
  if (e->op->kind == LP_ONNX_Size) {
    LP_TRY(lp_eval_out(e, 0, LP_I64, 0, NULL, &out));
    lp_array_set_i64(out, 0, lp_array_numel(in));
    return LP_OK;
  }
  int64_t start = lp_op_i64(e->op, "start", 0), end = lp_op_i64(e->op, "end", in->rank);
  start = clamp(start < 0 ? start + in->rank : start, 0, in->rank);
  end = clamp(end < 0 ? end + in->rank : end, start, in->rank);
  int64_t count = end - start;
  LP_TRY(lp_eval_out(e, 0, LP_I64, 1, &count, &out));
  for (int64_t i = 0; i < count; i++)
    lp_array_set_i64(out, i, in->dim[start + i]);
  return LP_OK;
}

static lp_status tensor_out(const lp_eval *e, const lp_tensor *tensor) {
  lp_array *out;
  int64_t dim[LP_MAX_RANK];
  for (int32_t i = 0; i < tensor->type.rank; i++)
    if (!lp_type_static_dim(tensor->type, i, &dim[i])) return lp_eval_fail(e, "a constant has no size");
  LP_TRY(lp_eval_out(e, 0, tensor->type.dtype, tensor->type.rank, dim, &out));
  if (tensor->bytes != lp_array_bytes(out)) return lp_eval_fail(e, "a constant's data does not fit its type");
  if (tensor->bytes > 0) memcpy(out->data, tensor->data, tensor->bytes);
  return LP_OK;
}

lp_status eval_onnx_constant(const lp_eval *e) {
  const lp_attr *value = lp_op_attr(e->op, "value");
  if (!value || value->kind != LP_ATTR_TENSOR) return lp_eval_fail(e, "attribute 'value' is missing");
  return tensor_out(e, &value->tensor);
}

lp_status eval_onnx_fill(const lp_eval *e) {
  const lp_attr *value = lp_op_attr(e->op, "value");
  int64_t dim[LP_MAX_RANK], one;
  int32_t rank;
  lp_array *out;
  LP_TRY(lp_eval_need(e, 1));
  LP_TRY(lp_eval_i64s(e, 0, dim, LP_MAX_RANK, &rank));
  LP_TRY(lp_eval_out(e, 0, value ? value->tensor.type.dtype : LP_F32, rank, dim, &out));
  if (!value) return LP_OK;
  if (!lp_type_static_numel(value->tensor.type, &one) || one != 1)
    return lp_eval_fail(e, "its value is not one element");
  const lp_array from = {.dtype = out->dtype, .data = (void *)(uintptr_t)value->tensor.data};
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    lp_array_copy(out, i, &from, 0);
  return LP_OK;
}

lp_status eval_op_FILL(const lp_eval *e) {
  lp_array *out;
  LP_TRY(lp_eval_out_typed(e, 0, &out));
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    lp_array_set_f64(out, i, lp_op_f64(e->op, "value", 0));
  return LP_OK;
}

lp_status eval_onnx_range(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, 3));
  lp_array *out;
  for (int32_t i = 0; i < 3; i++)
    if (lp_array_numel(e->in[i]) != 1) return lp_eval_fail(e, "input %d is not one number", i);
  double start = lp_array_f64(e->in[0], 0), limit = lp_array_f64(e->in[1], 0), step = lp_array_f64(e->in[2], 0);
  double exact = (limit - start) / step;
  if (!(exact < 0x1p40)) return lp_eval_fail(e, "its step is 0");
  int64_t count = exact > 0 ? (int64_t)exact : 0;
  if (exact > (double)count) count++;
  LP_TRY(lp_eval_out(e, 0, e->in[0]->dtype, 1, &count, &out));
  for (int64_t i = 0; i < count; i++)
    lp_array_set_f64(out, i, start + (double)i * step);
  return LP_OK;
}

lp_status eval_op_IOTA(const lp_eval *e) {
  lp_array *out;
  LP_TRY(lp_eval_out_typed(e, 0, &out));
  int64_t start = lp_poly_eval(lp_op_poly(e->op, "start"), e->sym, e->m->symbols.names.count);
  int64_t step = lp_poly_eval(lp_op_poly(e->op, "step"), e->sym, e->m->symbols.names.count);
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    lp_array_set_i64(out, i, start + i * step);
  return LP_OK;
}

lp_status eval_op_DIMS(const lp_eval *e) {
  lp_array *out;
  LP_TRY(lp_eval_out_typed(e, 0, &out));
  const lp_attr *values = lp_op_attr(e->op, "values");
  if (values->count != lp_array_numel(out)) return lp_eval_fail(e, "its values do not fit its type");
  for (int32_t i = 0; i < values->count; i++)
    lp_array_set_i64(out, i, lp_poly_eval(values->polys[i], e->sym, e->m->symbols.names.count));
  return LP_OK;
}
