/* Operators of the reference interpreter that move elements: by index, slice or permutation, joined or split. */
#include "base/poly.h"
#include "ir/eval/eval.h"

/* ---- by index ---- */

lp_status lp_eval_index(const lp_eval *e, const lp_array *index, int64_t at, int64_t size, int64_t *out) {
  *out = lp_array_i64(index, at);
  if (*out < -size || *out >= size) return lp_eval_fail(e, "index %" PRId64 " into an axis of %" PRId64, *out, size);
  if (*out < 0) *out += size;
  return LP_OK;
}

lp_status eval_op_GATHER(const lp_eval *e) {
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
    LP_TRY(lp_eval_index(e, index, k, size, &from));
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++)
        lp_array_copy(out, (o * count + k) * inner + i, data, (o * size + from) * inner + i);
  }
  return LP_OK;
}

lp_status eval_op_GATHER_ELEMENTS(const lp_eval *e) {
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
    LP_TRY(lp_eval_index(e, index, k, data->dim[axis], &where));
    for (int32_t i = data->rank - 1; i >= 0; i--) {
      from += (i == axis ? where : at % index->dim[i]) * stride;
      stride *= data->dim[i];
      at /= index->dim[i];
    }
    lp_array_copy(out, k, data, from);
  }
  return LP_OK;
}

/* The offset in data, in elements, of row `row` of the indices; false when it is out of range. */
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

/* The indices of the elements that are not zero: row d holds the indices on axis d. */
lp_status eval_onnx_nonzero(const lp_eval *e) {
  const lp_array *x = e->in[0];
  int64_t total = lp_array_numel(x), count = 0, found = 0;
  for (int64_t i = 0; i < total; i++)
    count += lp_array_f64(x, i) != 0;
  lp_array *out;
  const int64_t dim[] = {x->rank, count};
  LP_TRY(lp_eval_out(e, 0, LP_I64, 2, dim, &out));
  for (int64_t i = 0; i < total; i++) {
    int64_t at = i;
    if (lp_array_f64(x, i) == 0) continue;
    for (int32_t d = x->rank - 1; d >= 0; d--) {
      lp_array_set_i64(out, d * count + found, at % x->dim[d]);
      at /= x->dim[d];
    }
    found++;
  }
  return LP_OK;
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
  memcpy(dim, in->dim, sizeof dim);
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

lp_status eval_op_TRANSPOSE(const lp_eval *e) {
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

/* ---- joined and split ---- */

lp_status eval_op_CONCAT(const lp_eval *e) {
  LP_TRY(lp_eval_need(e, e->op->in_count));
  int64_t dim[LP_MAX_RANK], outer, size, inner, before = 0;
  int32_t axis;
  memcpy(dim, e->in[0]->dim, sizeof dim);
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

lp_status eval_onnx_split(const lp_eval *e) {
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
  memcpy(dim, in->dim, sizeof dim);
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
