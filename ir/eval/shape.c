/* Reference interpreter: operators that change a shape, repeat or pad elements, or make a tensor. */
#include "base/poly.h"
#include "ir/eval/eval.h"

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
  LP_TRY(lp_eval_i64s(e, 1, dim, LP_MAX_RANK, &rank));
  for (int32_t i = 0; i < rank; i++)
    if (dim[i] == -1) dim[i] = 1;
  LP_TRY(lp_eval_broadcast(e, &rank, dim, e->in[0]->rank, e->in[0]->dim));
  return expand_to(e, rank, dim);
}

lp_status eval_op_EXPAND(const lp_eval *e) {
  int64_t dim[LP_MAX_RANK], all[LP_MAX_RANK];
  int32_t rank = e->op->out[0]->type.rank;
  LP_TRY(typed_dims(e, dim));
  memcpy(all, dim, sizeof all);
  LP_TRY(lp_eval_broadcast(e, &rank, all, e->in[0]->rank, e->in[0]->dim));
  if (rank != e->op->out[0]->type.rank || memcmp(all, dim, (size_t)rank * sizeof *dim) != 0)
    return lp_eval_fail(e, "its operand does not broadcast to its result");
  return expand_to(e, rank, dim);
}

lp_status eval_onnx_tile(const lp_eval *e) {
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
      from += at % out->dim[i] % in->dim[i] * stride;
      stride *= in->dim[i];
      at /= out->dim[i];
    }
    lp_array_copy(out, k, in, from);
  }
  return LP_OK;
}

/* ---- padding ---- */

/* The position in x of result position `at` of an axis; -1: padding. */
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
      int64_t size = out->dim[i], source = padded_source(at % size - before[i], in->dim[i], mode);
      inside = inside && source >= 0;
      from += source * stride;
      stride *= in->dim[i];
      at /= size;
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
  const lp_array *in = e->in[0], *value = lp_eval_in(e, 2);
  int64_t pads[2 * LP_MAX_RANK] = {0}, axes[LP_MAX_RANK], before[LP_MAX_RANK] = {0}, dim[LP_MAX_RANK];
  int32_t count, axis_count = in->rank, axis;
  LP_TRY(lp_eval_i64s(e, 1, pads, 2 * LP_MAX_RANK, &count));
  for (int32_t i = 0; i < in->rank; i++)
    axes[i] = i;
  if (lp_eval_in(e, 3)) LP_TRY(lp_eval_i64s(e, 3, axes, LP_MAX_RANK, &axis_count));
  if (count != 2 * axis_count) return lp_eval_fail(e, "%d pads for %d axes", count, axis_count);
  if (value && (lp_array_numel(value) != 1 || value->dtype != in->dtype))
    return lp_eval_fail(e, "its value does not fit");
  memcpy(dim, in->dim, sizeof dim);
  for (int32_t i = 0; i < axis_count; i++) {
    LP_TRY(lp_eval_axis(e, axes[i], in->rank, &axis));
    before[axis] = pads[i];
    if (!lp_i64_add(dim[axis], pads[i], &dim[axis]) || !lp_i64_add(dim[axis], pads[i + axis_count], &dim[axis]))
      return lp_eval_fail(e, "the size of its result overflows");
  }
  return pad(e, before, dim, lp_op_str(e->op, "mode", "constant"), value, 0);
}

lp_status eval_op_PAD(const lp_eval *e) {
  int64_t before[LP_MAX_RANK] = {0}, dim[LP_MAX_RANK] = {0};
  LP_TRY(typed_dims(e, dim));
  const lp_attr *attr = lp_op_attr(e->op, "before");
  if (attr->count != e->in[0]->rank) return lp_eval_fail(e, "before needs one entry per axis");
  for (int32_t i = 0; i < attr->count; i++)
    before[i] = lp_poly_eval(attr->polys[i], e->sym, e->m->symbols.names.count);
  return pad(e, before, dim, "constant", NULL, lp_op_f64(e->op, "value", 0));
}

/* ---- made ---- */

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

lp_status eval_onnx_dims(const lp_eval *e) {
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
